//! Requests to the kernel over generic netlink (wire/netlink.rs), each answered before the next.

use crate::DaemonError;
use manet_medium::wire::netlink::{Attributes, Builder, Message, ACK, ERROR, REQUEST};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    bind, recv, send, setsockopt, socket, sockopt, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol,
    SockType,
};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The controller of all families (linux/genetlink.h).
const CONTROLLER: u16 = 16;
const CONTROLLER_VERSION: u8 = 2;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Asks for all there is; ended by a message of kind DONE.
const DUMP: u16 = 0x300;
const DONE: u16 = 3;

/// Of a datagram; the kernel's dumps use at most 32 KiB.
const DATAGRAM: usize = 65_536;
const ANSWER_DEADLINE_MS: u16 = 10_000;
const RECEIVE_BUFFER: usize = 16 << 20;

#[derive(Debug)]
pub struct Genl {
    fd: OwnedFd,
    /// 0: whichever the kernel gave.
    pub port: u32,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Genl {
    /// In the thread's present network namespace.
    pub fn open() -> Result<Self, DaemonError> {
        Self::bound_to(0)
    }

    /// With a port that no socket gets unasked (those are process numbers, or from 2^31 on), now or later.
    pub fn with_port_of_its_own() -> Result<Self, DaemonError> {
        let mut random = [0; 4];
        let drawn = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
        drawn.map_err(|e| DaemonError(format!("/dev/urandom: {e}; is /dev mounted?")))?;
        Self::bound_to(u32::from_ne_bytes(random) & 0x3fff_ffff | 0x4000_0000)
    }

    fn bound_to(port: u32) -> Result<Self, DaemonError> {
        let fail = |what: &str, e: Errno| DaemonError(format!("generic netlink: {what}: {}", e.desc()));
        let protocol = SockProtocol::NetlinkGeneric;
        let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)
            .map_err(|e| fail("no socket", e))?;
        bind(fd.as_raw_fd(), &NetlinkAddr::new(port, 0)).map_err(|e| fail("no port", e))?;
        // a wish: without CAP_NET_ADMIN in the first user namespace there is less room, and what is lost is counted
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &RECEIVE_BUFFER);
        Ok(Self { fd, port, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    pub fn next_sequence(&mut self) -> u32 {
        self.sequence += 1;
        self.sequence
    }

    /// The number of a family.
    pub fn family(&mut self, name: &str) -> Result<u16, Errno> {
        let sequence = self.next_sequence();
        let request = Builder::new(CONTROLLER, GET_FAMILY, CONTROLLER_VERSION, REQUEST | ACK, sequence);
        let mut id = 0;
        self.ask(&request.put_text(FAMILY_NAME, name).finish(), sequence, |_, attributes| {
            let ids = attributes.filter(|(kind, _)| *kind == FAMILY_ID).filter_map(|(_, value)| value.try_into().ok());
            id = ids.map(u16::from_ne_bytes).last().unwrap_or(id);
        })?;
        Ok(id)
    }

    /// Sends a request that wants an acknowledgement, shows `answer` what comes before it, and returns the
    /// acknowledgement's number (0, or more where the kernel says something by it).
    pub fn ask(&mut self, request: &[u8], sequence: u32, mut answer: impl FnMut(u8, Attributes)) -> Result<i32, Errno> {
        self.send(request)?;
        loop {
            let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::from(ANSWER_DEADLINE_MS))? == 0 {
                return Err(Errno::ETIMEDOUT);
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let result = self.take_answers(&mut buffer, sequence, &mut answer);
            self.buffer = buffer;
            if let Some(number) = result? {
                return Ok(number);
            }
        }
    }

    fn take_answers(
        &self,
        buffer: &mut [u8],
        sequence: u32,
        answer: &mut impl FnMut(u8, Attributes),
    ) -> Result<Option<i32>, Errno> {
        let length = recv(self.fd.as_raw_fd(), buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..length];
        while let Ok((message, next)) = Message::parse(rest) {
            rest = next;
            if message.sequence != sequence {
                continue;
            }
            match message.kind {
                DONE => return Ok(Some(0)),
                ERROR => {
                    let number = message.error().map_err(|_| Errno::EPROTO)?;
                    return if number < 0 { Err(Errno::from_raw(-number)) } else { Ok(Some(number)) };
                }
                _ => {
                    if let Ok((command, attributes)) = message.generic() {
                        answer(command, attributes);
                    }
                }
            }
        }
        Ok(None)
    }

    /// A command of a family, acknowledged.
    pub fn command(&mut self, family: u16, command: u8, fill: impl FnOnce(Builder) -> Builder) -> Result<i32, Errno> {
        let sequence = self.next_sequence();
        let request = fill(Builder::new(family, command, 0, REQUEST | ACK, sequence)).finish();
        self.ask(&request, sequence, |_, _| ())
    }

    /// All that a family lists.
    pub fn dump(
        &mut self,
        family: u16,
        command: u8,
        fill: impl FnOnce(Builder) -> Builder,
        each: impl FnMut(u8, Attributes),
    ) -> Result<(), Errno> {
        let sequence = self.next_sequence();
        let request = fill(Builder::new(family, command, 0, REQUEST | DUMP, sequence)).finish();
        self.ask(&request, sequence, each).map(drop)
    }

    pub fn send(&self, message: &[u8]) -> Result<(), Errno> {
        send(self.fd.as_raw_fd(), message, MsgFlags::empty()).map(drop)
    }

    /// The next datagram, if there is one. ENOBUFS: some were lost.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Errno> {
        match recv(self.fd.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Genl {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_which_families_it_has() {
        let mut genl = Genl::open().unwrap();
        let controller = genl.family("nlctrl").unwrap();
        assert_eq!(controller, CONTROLLER);
        assert_eq!(genl.family("no-such-family").unwrap_err(), Errno::ENOENT);
    }
}
