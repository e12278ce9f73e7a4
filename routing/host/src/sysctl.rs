//! Settings under /proc/sys/net of the own network namespace, remembered so that they can be put back.

use crate::error::{HostError, Result};
use std::path::PathBuf;

/// Names and the values they had, in the order in which they were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Before(Vec<(String, String)>);

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net").join(name)
}

pub fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(path(name)).ok().map(|v| v.trim().to_owned())
}

pub fn write(name: &str, value: &str) -> Result<()> {
    std::fs::write(path(name), value).map_err(|e| HostError(format!("sysctl net/{name}={value}: {e}; run as root")))
}

impl Before {
    /// The present values of those among `wanted` that are to change. A setting that the kernel lacks is left out.
    pub fn of(wanted: &[(String, &str)]) -> Self {
        let differs = |(name, value): &(String, &str)| read(name).filter(|is| is != value).map(|is| (name.clone(), is));
        Self(wanted.iter().filter_map(differs).collect())
    }

    /// What cannot be put back belongs to an interface that has gone.
    pub fn put_back(&self) {
        for (name, value) in self.0.iter().rev() {
            let _ = write(name, value);
        }
    }
}

/// `wanted` as far as the kernel has it.
pub fn apply(wanted: &[(String, &str)]) -> Result<()> {
    for (name, value) in wanted {
        if read(name).is_some_and(|is| is != *value) {
            write(name, value)?;
        }
    }
    Ok(())
}
