//! Raw IPv4 sockets (raw(7)): sending of complete packets, and reception of the machine's IP protocols.

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
    // SAFETY: socket returned this descriptor, which has no other owner
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Hands packets with their headers to the kernel, which sends them by its routes and does not change the TTL
/// (IP_HDRINCL).
pub struct Sender(OwnedFd);

impl Sender {
    /// Opens the socket. Fails without root.
    pub fn open() -> Result<Self> {
        // IPPROTO_RAW implies IP_HDRINCL and receives nothing
        let fd = open(libc::IPPROTO_RAW)?;
        setsockopt(&fd, sockopt::Broadcast, &true).map_err(|e| failed("a raw socket", e))?;
        Ok(Self(fd))
    }

    /// Sends a packet. Fails with EINVAL if it is malformed, or with the error of the kernel.
    pub fn send(&self, packet: &[u8]) -> Result<(), Errno> {
        let header = ipv4::Packet::parse(packet).ok_or(Errno::EINVAL)?;
        let to = SockaddrIn::from(SocketAddrV4::new(header.destination(), 0));
        sendto(self.0.as_raw_fd(), header.bytes(), &to, MsgFlags::MSG_DONTWAIT).map(drop)
    }
}

/// Receives packets of one IP protocol that arrive over the radio for this node. While it is open the kernel does not
/// answer them with "protocol unreachable".
pub struct Listener(OwnedFd);

impl Listener {
    /// Opens the socket on `interface`. Fails without root.
    pub fn open(protocol: u8, interface: &str) -> Result<Self> {
        let fail = |e| failed(&format!("IP protocol {protocol} on {interface}"), e);
        let fd = open(libc::c_int::from(protocol))?;
        setsockopt(&fd, sockopt::BindToDevice, &OsString::from(interface)).map_err(fail)?;
        Ok(Self(fd))
    }

    /// Reads the next packet into `buffer` and returns its length, header included. `None`: no packet is pending.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        recv(self.0.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT).ok()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
