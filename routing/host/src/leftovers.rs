//! The kernel's state before the daemon changed it, in a file beside the status socket while the daemon runs.
//!
//! A regular end removes the file. A daemon that finds one restores the state first: its predecessor was killed. The file
//! is valid only in the network namespace and the boot in which it was written.

use crate::error::{HostError, Result};
use crate::rtnetlink::Described;
use crate::{sys, sysctl};
use manet_routing::Bytes;
use nix::libc;
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// asm-generic/socket.h; the value is unique among all namespaces of this boot.
const SO_NETNS_COOKIE: i32 = 71;

/// The state to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    boot: String,
    namespace: u64,
    /// Changed sysctls with their previous values.
    pub sysctls: sysctl::Before,
    /// Routes and addresses that were removed, as netlink described them.
    routes: Vec<Bytes>,
    addresses: Vec<Bytes>,
}

impl Before {
    /// An empty state of this boot and namespace. Fails without a socket.
    pub fn here() -> Result<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        let probe = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|e| HostError(format!("no socket: {}", e.desc())))?;
        let namespace = sys::get(&probe, libc::SOL_SOCKET, SO_NETNS_COOKIE, 0u64).unwrap_or(0);
        Ok(Self { boot, namespace, ..Self::default() })
    }

    /// The routes that the daemon removed.
    pub fn removed_routes(&self) -> Vec<Described> {
        self.routes.iter().map(|b| Described(b.0.clone())).collect()
    }
    /// The addresses that the daemon removed.
    pub fn removed_addresses(&self) -> Vec<Described> {
        self.addresses.iter().map(|b| Described(b.0.clone())).collect()
    }
    /// Records routes and addresses before the daemon removes them.
    pub fn will_remove(&mut self, routes: &[Described], addresses: &[Described]) {
        self.routes = routes.iter().map(|d| Bytes(d.0.clone())).collect();
        self.addresses = addresses.iter().map(|d| Bytes(d.0.clone())).collect();
    }
}

/// The file of `Before`; none for a daemon without a status socket.
pub struct Leftovers(Option<PathBuf>);

impl Leftovers {
    /// The file named like the status socket with `.before` appended.
    pub fn beside(status: Option<&Path>) -> Self {
        Self(status.map(|path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".before");
            PathBuf::from(name)
        }))
    }

    /// The state that a killed predecessor left behind; `None` if there is none, or of another boot or namespace.
    pub fn recall(&self, here: &Before) -> Option<Before> {
        let text = std::fs::read_to_string(self.0.as_ref()?).ok()?;
        let before: Before = serde_json::from_str(&text).ok()?;
        (before.boot == here.boot && before.namespace == here.namespace).then_some(before)
    }

    /// Writes the file atomically (a temporary file is renamed). Fails if the folder does not exist or is not writable.
    pub fn keep(&self, before: &Before) -> Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let beside = path.with_extension("part");
        let text = serde_json::to_string(before).map_err(|e| HostError(e.to_string()))?;
        std::fs::write(&beside, text)
            .and_then(|()| std::fs::rename(&beside, path))
            .map_err(|e| HostError(format!("key \"status\": {}: {e}; does the folder exist?", path.display())))
    }

    /// Removes the file.
    pub fn forget(&self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_valid_in_its_own_namespace_and_boot_only() {
        let status = std::env::temp_dir().join(format!("manet-leftovers-{}.sock", std::process::id()));
        let leftovers = Leftovers::beside(Some(&status));
        let here = Before::here().unwrap();
        assert!(here.namespace != 0 && !here.boot.is_empty());
        assert_eq!(leftovers.recall(&here), None);
        let mut before = here.clone();
        before.will_remove(&[Described(vec![1, 2])], &[Described(vec![3])]);
        leftovers.keep(&before).unwrap();
        assert_eq!(leftovers.recall(&here), Some(before));
        let elsewhere = Before { namespace: here.namespace + 1, ..here.clone() };
        let rebooted = Before { boot: "another".to_owned(), ..here.clone() };
        assert_eq!((leftovers.recall(&elsewhere), leftovers.recall(&rebooted)), (None, None));
        leftovers.forget();
        assert_eq!(leftovers.recall(&here), None);
    }
}
