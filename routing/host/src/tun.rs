//! The TUN device (Linux Documentation/networking/tuntap.rst): what the kernel has no route for comes out of it.
//!
//! Without IFF_VNET_HDR and without offloads, so that packets come segmented and with complete checksums. It is not
//! persistent: when the descriptor goes, however the process ends, so do the device and the routes into it.

use crate::error::{HostError, Result};
use nix::errno::Errno;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

nix::ioctl_write_ptr_bad!(tun_set_iff, nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()), libc::ifreq);
nix::ioctl_write_int_bad!(tun_set_persist, nix::request_code_write!(b'T', 203, size_of::<libc::c_int>()));

pub struct Tun {
    file: File,
}

/// What could be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    Packet(usize),
    Nothing,
    /// Somebody removed the device.
    Deleted,
}

impl Tun {
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
        // one that somebody made beforehand is to go with us as well
        // SAFETY: TUNSETPERSIST takes an int by value; the descriptor is open
        let _ = unsafe { tun_set_persist(file.as_raw_fd(), 0) };
        Ok(Self { file })
    }

    pub fn read(&self, buffer: &mut [u8]) -> Taken {
        match (&self.file).read(buffer) {
            Ok(length) => Taken::Packet(length),
            Err(e) if e.raw_os_error() == Some(libc::EBADFD) => Taken::Deleted,
            Err(_) => Taken::Nothing,
        }
    }

    /// Hands a packet to the kernel as one that has arrived. False: it was not taken.
    pub fn write(&self, packet: &[u8]) -> bool {
        (&self.file).write(packet).is_ok_and(|n| n == packet.len())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
