//! Design B: IPv4 packets, and ARP messages, in Ethernet frames that the daemon writes, on packet sockets of the radio
//! (packet(7)).

use crate::error::{failed, Result};
use crate::sys;
use manet_routing::packet::ipv4::{self, TOS_CS6};
use manet_routing::Mac;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{recv, send, socket, AddressFamily, MsgFlags, SockFlag, SockType};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Length of an Ethernet header: destination, source, EtherType.
pub const HEADER_LEN: usize = 14;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x800;
const PACKET_ADD_MEMBERSHIP: i32 = 1;
/// In packet_mreq.
const PACKET_MR_PROMISC: u32 = 1;

/// A packet socket of the radio, for frames of one EtherType.
pub struct Frames {
    socket: OwnedFd,
    own: Mac,
    ethertype: u16,
}

/// Addresses of a received frame; its packet begins at [`HEADER_LEN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Transmitter.
    pub from: Mac,
    /// Receiver.
    pub to: Mac,
}

impl Frames {
    /// `interface`: index of the radio. `own`: its address. `overhear`: receive frames for other stations as well, if the
    /// radio delivers them.
    pub fn open(interface: u32, own: Mac, ethertype: u16, overhear: bool) -> Result<Self> {
        let fail = |e| failed("the radio's packet socket", e);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, None).map_err(fail)?;
        if overhear {
            // packet_mreq: interface, type (two bytes) and address length, address; the kernel drops it with the socket
            let kind = if cfg!(target_endian = "little") { PACKET_MR_PROMISC } else { PACKET_MR_PROMISC << 16 };
            let membership: [u32; 4] = [interface, kind, 0, 0];
            sys::set(&fd, libc::SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership).map_err(fail)?;
        }
        // frames of one EtherType that arrive: our own do not come back
        sys::bind_to_link(&fd, interface, ethertype).map_err(fail)?;
        Ok(Self { socket: fd, own, ethertype })
    }

    /// The radio's address.
    pub fn own(&self) -> Mac {
        self.own
    }

    /// Sends a packet in one frame. `control`: marks it CS6, which only IPv4 has.
    pub fn send(&mut self, to: Mac, mut packet: Vec<u8>, control: bool) -> Result<(), Errno> {
        if control && packet.len() >= ipv4::HEADER_LEN {
            packet[1] = TOS_CS6;
            ipv4::repair(&mut packet);
        }
        let mut frame = Vec::with_capacity(HEADER_LEN + packet.len());
        frame.extend(to);
        frame.extend(self.own);
        frame.extend(self.ethertype.to_be_bytes());
        frame.extend(packet);
        send(self.socket.as_raw_fd(), &frame, MsgFlags::MSG_DONTWAIT).map(drop)
    }

    /// Reads the next frame into `buffer` and returns its length and header. `None`: no frame is pending.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<(usize, Header)> {
        loop {
            match recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => {
                    if let Some(header) = parse(&buffer[..length], self.ethertype).filter(|h| h.from != self.own) {
                        return Some((length, header));
                    }
                }
                // the interface was down; the error is reported once
                Err(Errno::ENETDOWN | Errno::EINTR) => {}
                Err(_) => return None,
            }
        }
    }
}

/// The addresses of a frame. `None`: it has another EtherType.
pub fn parse(frame: &[u8], ethertype: u16) -> Option<Header> {
    let header = frame.get(..HEADER_LEN)?;
    let to = header[..6].try_into().ok()?;
    let from = header[6..12].try_into().ok()?;
    (header[12..] == ethertype.to_be_bytes()).then_some(Header { from, to })
}

impl AsFd for Frames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
