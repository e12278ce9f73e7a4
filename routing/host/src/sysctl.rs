//! Settings under /proc/sys/net of the daemon's network namespace, with their previous values for restoring.

use crate::error::{HostError, Result};
use std::path::PathBuf;

/// Names and previous values, in the order of the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Before(Vec<(String, String)>);

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net").join(name)
}

/// The value of a setting under /proc/sys/net; `None` if the kernel lacks it.
pub fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(path(name)).ok().map(|v| v.trim().to_owned())
}

/// Sets a setting under /proc/sys/net. Fails with the name, the value and the reason.
pub fn write(name: &str, value: &str) -> Result<()> {
    std::fs::write(path(name), value).map_err(|e| HostError(format!("sysctl net/{name}={value}: {e}; run as root")))
}

impl Before {
    /// The present values of the settings that `wanted` changes. Settings that the kernel lacks are left out.
    pub fn of(wanted: &[(String, &str)]) -> Self {
        let differs = |(name, value): &(String, &str)| read(name).filter(|is| is != value).map(|is| (name.clone(), is));
        Self(wanted.iter().filter_map(differs).collect())
    }

    /// Restores the values in reverse order. Failures are ignored: the setting's interface is gone.
    pub fn restore(&self) {
        for (name, value) in self.0.iter().rev() {
            let _ = write(name, value);
        }
    }
}

/// Sets the settings that differ from `wanted`; those that the kernel lacks are left out. Fails at the first refused one.
pub fn apply(wanted: &[(String, &str)]) -> Result<()> {
    for (name, value) in wanted {
        if read(name).is_some_and(|is| is != *value) {
            write(name, value)?;
        }
    }
    Ok(())
}
