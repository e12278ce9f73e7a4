//! Control datagrams over the radio: UDP from and to one port (source port = destination port), with DSCP CS6.
//!
//! The socket is bound to the interface (SO_BINDTODEVICE), so that 255.255.255.255 leaves by it independently of the
//! routes; a datagram for a neighbour is sent directly to it, even if the table has another next hop.

use crate::error::{failed, Result};
use crate::sys;
use manet_routing::packet::ipv4::TOS_CS6;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    bind, sendmsg, setsockopt, socket, sockopt, AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, SockaddrIn,
};
use std::ffi::OsString;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The first band of pfifo_fast, before data (tc-prio(8)).
const PRIORITY: libc::c_int = 6;

/// The socket of control datagrams.
pub struct Udp {
    socket: OwnedFd,
    port: u16,
    source: Ipv4Addr,
    /// Present value of IP_TTL.
    ttl: u8,
}

impl Udp {
    /// `source`: address of the datagrams sent. Fails if the port is in use or the interface does not exist.
    pub fn open(interface: &str, port: u16, source: Ipv4Addr) -> Result<Self> {
        let fail = |e| failed(&format!("UDP port {port} on {interface}"), e);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Inet, SockType::Datagram, flags, None).map_err(fail)?;
        setsockopt(&fd, sockopt::BindToDevice, &OsString::from(interface)).map_err(fail)?;
        setsockopt(&fd, sockopt::Broadcast, &true).map_err(fail)?;
        setsockopt(&fd, sockopt::Ipv4PacketInfo, &true).map_err(fail)?;
        setsockopt(&fd, sockopt::IpTos, &libc::c_int::from(TOS_CS6)).map_err(fail)?;
        setsockopt(&fd, sockopt::Priority, &PRIORITY).map_err(fail)?;
        sys::set(&fd, libc::IPPROTO_IP, libc::IP_RECVTTL, &1).map_err(fail)?;
        // without DF: a message longer than the MTU is fragmented
        sys::set(&fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_DONT).map_err(fail)?;
        bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))).map_err(fail)?;
        Ok(Self { socket: fd, port, source, ttl: 0 })
    }

    /// Sends a datagram to a neighbour or a broadcast address. A `ttl` of 0 is sent as 1. Fails with the error of the
    /// kernel.
    pub fn send(&mut self, to: Ipv4Addr, ttl: u8, bytes: &[u8]) -> Result<(), Errno> {
        let ttl = ttl.max(1);
        if ttl != self.ttl {
            setsockopt(&self.socket, sockopt::Ipv4Ttl, &libc::c_int::from(ttl))?;
            self.ttl = ttl;
        }
        let mut flags = MsgFlags::MSG_DONTWAIT;
        if !to.is_broadcast() {
            flags |= MsgFlags::from_bits_retain(libc::MSG_DONTROUTE);
        }
        let info = libc::in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(self.source.octets()) },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        let to = SockaddrIn::from(SocketAddrV4::new(to, self.port));
        let control = [ControlMessage::Ipv4PacketInfo(&info)];
        sendmsg(self.socket.as_raw_fd(), &[IoSlice::new(bytes)], &control, flags, Some(&to)).map(drop)
    }

    /// Reads the next datagram into `buffer`. `None`: none is pending. Fails with the error of the kernel.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<sys::Datagram>, Errno> {
        sys::receive(&self.socket, buffer)
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_of_zero_leaves_as_one_and_not_as_the_kernels_default() {
        // loopback accepts any of 127/8; the port depends on the process so that parallel tests do not interfere
        let port = 20_000 + (std::process::id() % 20_000) as u16;
        let mut udp = Udp::open("lo", port, Ipv4Addr::LOCALHOST).unwrap();
        let mut buffer = [0; 16];
        for (ttl, arrives) in [(0, 1), (7, 7), (0, 1)] {
            udp.send(Ipv4Addr::LOCALHOST, ttl, b"x").unwrap();
            let datagram = udp.receive(&mut buffer).unwrap().expect("loopback delivers at once");
            assert_eq!((datagram.ttl, datagram.from, datagram.length), (arrives, Ipv4Addr::LOCALHOST, 1));
        }
    }
}
