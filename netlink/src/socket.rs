//! A netlink socket: requests to the kernel, each answered before the next. The socket needs no privilege; some requests do.

use crate::message::{Builder, Message, Messages, ACK, DONE, DUMP, ERROR};
use nix::errno::Errno;
use nix::sys::socket::{
    bind, recv, send, setsockopt, socket, sockopt, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol,
    SockType,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The controller of all generic families (linux/genetlink.h).
const CONTROLLER: u16 = 16;
const CONTROLLER_VERSION: u8 = 2;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Size of a datagram of answers: the kernel fills at most 32 KiB (NLMSG_GOODSIZE, netlink_dump).
const DATAGRAM: usize = 32 * 1024;
/// An answer is made inside our `send`, the next part of a dump inside `recv`; the deadline allows for the kernel's locks.
const ANSWER_DEADLINE_S: i64 = 10;

/// A socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket with a port of the kernel's choice and no multicast group.
    ///
    /// # Errors
    /// EPROTONOSUPPORT: the kernel lacks the protocol.
    pub fn open(protocol: SockProtocol) -> Result<Self, Errno> {
        Self::bound(protocol, 0, 0)
    }

    /// Opens a socket with this port (0: the kernel's choice) and these multicast groups (one bit each).
    ///
    /// # Errors
    /// EADDRINUSE: another socket of the namespace has the port.
    pub fn bound(protocol: SockProtocol, port: u32, groups: u32) -> Result<Self, Errno> {
        let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        bind(fd.as_raw_fd(), &NetlinkAddr::new(port, groups))?;
        setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_DEADLINE_S))?;
        Ok(Self { fd, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    /// Sends a request and waits for its acknowledgement. Returns the number in the acknowledgement: 0, or a positive number
    /// to which the family gives a meaning.
    ///
    /// # Errors
    /// The kernel's error; ETIMEDOUT without an answer in 10 s.
    pub fn request(&mut self, request: Builder) -> Result<i32, Errno> {
        self.exchange(request.flags(ACK), |_| ())
    }

    /// Requests a whole table; `each` gets its messages.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn dump(&mut self, request: Builder, each: impl FnMut(Message)) -> Result<(), Errno> {
        self.exchange(request.flags(DUMP), each).map(drop)
    }

    /// The number (nlmsg_type) of the generic family `name`.
    ///
    /// # Errors
    /// ENOENT: the kernel has no such family.
    pub fn family(&mut self, name: &str) -> Result<u16, Errno> {
        let request = Builder::generic(CONTROLLER, GET_FAMILY, CONTROLLER_VERSION).put_text(FAMILY_NAME, name);
        let mut id = None;
        self.exchange(request.flags(ACK), |message| {
            id = id.or(message.generic().and_then(|(_, attributes)| attributes.u16(FAMILY_ID)));
        })?;
        id.ok_or(Errno::EPROTO)
    }

    fn exchange(&mut self, request: Builder, mut answer: impl FnMut(Message)) -> Result<i32, Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&request.finish(self.sequence))?;
        loop {
            let length = match recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Err(Errno::EAGAIN) => Err(Errno::ETIMEDOUT),
                result => result,
            }?;
            for message in Messages(&self.buffer[..length]).filter(|m| m.sequence == self.sequence) {
                match message.kind {
                    DONE => return Ok(0),
                    ERROR => return outcome(&message),
                    _ => answer(message),
                }
            }
        }
    }

    /// Sends a message without waiting for an answer.
    ///
    /// # Errors
    /// The errors of send(2).
    pub fn send(&self, message: &[u8]) -> Result<(), Errno> {
        send(self.fd.as_raw_fd(), message, MsgFlags::empty()).map(drop)
    }

    /// The next datagram, cut to the length of `buffer`; `None`: none is waiting.
    ///
    /// # Errors
    /// ENOBUFS: the socket's buffer was full and datagrams were lost.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Errno> {
        match recv(self.fd.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Result of the request according to a message of kind [`ERROR`].
fn outcome(message: &Message) -> Result<i32, Errno> {
    match message.error().ok_or(Errno::EPROTO)? {
        number if number < 0 => Err(Errno::from_raw(number.wrapping_neg())),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_which_families_it_has() {
        let mut socket = Socket::open(SockProtocol::NetlinkGeneric).unwrap();
        assert_eq!(socket.family("nlctrl"), Ok(CONTROLLER));
        assert_eq!(socket.family("no-such-family"), Err(Errno::ENOENT));
        let mut families = Vec::new();
        let all = Builder::generic(CONTROLLER, GET_FAMILY, CONTROLLER_VERSION);
        socket.dump(all, |m| families.extend(m.generic().and_then(|(_, a)| a.u16(FAMILY_ID)))).unwrap();
        assert!(families.contains(&CONTROLLER));
    }

    #[test]
    fn refusals_come_as_errno() {
        let outcome = |payload: &[u8]| outcome(&Message { kind: ERROR, sequence: 1, payload });
        assert_eq!(outcome(&0i32.to_ne_bytes()), Ok(0));
        assert_eq!(outcome(&5i32.to_ne_bytes()), Ok(5), "the number of a radio that hwsim made");
        assert_eq!(outcome(&(-3i32).to_ne_bytes()), Err(Errno::ESRCH));
        assert_eq!(outcome(&i32::MIN.to_ne_bytes()), Err(Errno::UnknownErrno));
        assert_eq!(outcome(&[]), Err(Errno::EPROTO));
    }
}
