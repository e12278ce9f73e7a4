//! Raw IPv4 sockets (raw(7)): packets sent as they are, and packets of the machine's own protocols.

use crate::error::{failed, Result};
use manet_routing::packet::ipv4;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{recv, sendto, setsockopt, sockopt, AddressFamily, MsgFlags, SockFlag, SockaddrIn};
use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

fn open(protocol: libc::c_int) -> Result<OwnedFd> {
    let kind = libc::SOCK_RAW | SockFlag::SOCK_CLOEXEC.bits() | SockFlag::SOCK_NONBLOCK.bits();
    // nix knows only some protocols by name
    // SAFETY: no pointers
    let fd = unsafe { libc::socket(AddressFamily::Inet as libc::c_int, kind, protocol) };
    Errno::result(fd).map_err(|e| failed("no raw socket", e))?;
    // SAFETY: socket gave us this descriptor and nobody else has it
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Hands packets with their headers to the kernel, which sends them by its routes and leaves the TTL alone
/// (IP_HDRINCL).
pub struct Sender(OwnedFd);

impl Sender {
    pub fn open() -> Result<Self> {
        // IPPROTO_RAW implies IP_HDRINCL and receives nothing
        let fd = open(libc::IPPROTO_RAW)?;
        setsockopt(&fd, sockopt::Broadcast, &true).map_err(|e| failed("a raw socket", e))?;
        Ok(Self(fd))
    }

    pub fn send(&self, packet: &[u8]) -> Result<(), Errno> {
        let header = ipv4::Packet::parse(packet).ok_or(Errno::EINVAL)?;
        let to = SockaddrIn::from(SocketAddrV4::new(header.destination(), 0));
        sendto(self.0.as_raw_fd(), header.bytes(), &to, MsgFlags::MSG_DONTWAIT).map(drop)
    }
}

/// Packets of one IP protocol that arrive over the radio for an address of ours. While it is open the kernel does not
/// answer them with "protocol unreachable".
pub struct Listener(OwnedFd);

impl Listener {
    pub fn open(protocol: u8, interface: &str) -> Result<Self> {
        let fail = |e| failed(&format!("IP protocol {protocol} on {interface}"), e);
        let fd = open(libc::c_int::from(protocol))?;
        setsockopt(&fd, sockopt::BindToDevice, &OsString::from(interface)).map_err(fail)?;
        Ok(Self(fd))
    }

    /// The length of the next packet, header included.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        recv(self.0.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT).ok()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
