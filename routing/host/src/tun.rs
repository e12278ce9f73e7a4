//! The TUN device (Linux Documentation/networking/tuntap.rst), which gets the packets for which the kernel has no route.
//!
//! Without IFF_VNET_HDR and without offloads, so that packets arrive segmented and with complete checksums. It is not
//! persistent: the kernel removes the device and the routes into it when the process ends in any way.

use crate::error::{HostError, Result};
use nix::errno::Errno;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

nix::ioctl_write_ptr_bad!(
    /// TUNSETIFF of linux/if_tun.h.
    tun_set_iff,
    nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
    libc::ifreq
);
nix::ioctl_write_int_bad!(
    /// TUNSETPERSIST of linux/if_tun.h.
    tun_set_persist,
    nix::request_code_write!(b'T', 203, size_of::<libc::c_int>())
);

/// A TUN device that exists as long as this value.
pub struct Tun {
    file: File,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A packet of this length, in bytes.
    Packet(usize),
    /// No packet is pending.
    Nothing,
    /// Another process removed the device.
    Deleted,
}

impl Tun {
    /// Creates the device. Fails if the name is in use, the kernel has no TUN, or without root.
    pub fn create(name: &str) -> Result<Self> {
        let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open("/dev/net/tun")
            .map_err(|e| HostError(format!("/dev/net/tun: {e}; load the kernel's tun module and run as root")))?;
        // SAFETY: ifreq is plain data for which all zeroes is a value
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: an ifreq is what TUNSETIFF reads; the descriptor is open
        unsafe { tun_set_iff(file.as_raw_fd(), &request) }.map_err(|e| {
            let remedy = match e {
                Errno::EBUSY | Errno::EINVAL => {
                    "; is another routing daemon running here? stop it, or choose another name"
                }
                Errno::EPERM => "; run as root",
                _ => "",
            };
            HostError(format!("key \"tun\": {name} cannot be made: {}{remedy}", e.desc()))
        })?;
        // a device that existed before is to be removed with the daemon as well
        // SAFETY: TUNSETPERSIST takes an int by value; the descriptor is open
        let _ = unsafe { tun_set_persist(file.as_raw_fd(), 0) };
        Ok(Self { file })
    }

    /// Reads the next packet to the start of `buffer`.
    pub fn read(&self, buffer: &mut [u8]) -> Received {
        match (&self.file).read(buffer) {
            Ok(length) => Received::Packet(length),
            Err(e) if e.raw_os_error() == Some(libc::EBADFD) => Received::Deleted,
            Err(_) => Received::Nothing,
        }
    }

    /// Hands a packet to the kernel as a received one. False: the kernel refused it.
    pub fn write(&self, packet: &[u8]) -> bool {
        (&self.file).write(packet).is_ok_and(|n| n == packet.len())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
