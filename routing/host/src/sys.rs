//! Socket calls that nix lacks in safe form.

use nix::errno::Errno;
use nix::libc;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};

/// Kernel types that are plain data: any bytes are a valid value.
///
/// # Safety
/// Implement it for types without padding and without invalid values only.
pub unsafe trait Plain: Copy {}
// SAFETY: integers and arrays of them
unsafe impl Plain for libc::c_int {}
// SAFETY: as above
unsafe impl Plain for u64 {}
// SAFETY: as above
unsafe impl<const N: usize> Plain for [u32; N] {}

/// setsockopt(2). Fails with the error of the kernel.
pub fn set<T: Plain>(socket: &impl AsFd, level: i32, name: i32, value: &T) -> Result<(), Errno> {
    let (at, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel reads `length` bytes of the value that `at` points to
    Errno::result(unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, at, length) }).map(drop)
}

/// getsockopt(2); `value` is the initial content of the buffer. Fails with the error of the kernel.
pub fn get<T: Plain>(socket: &impl AsFd, level: i32, name: i32, mut value: T) -> Result<T, Errno> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let at = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the kernel writes at most `length` bytes, which `value` has, and any bytes are a value of a Plain type
    Errno::result(unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, at, &mut length) })?;
    Ok(value)
}

/// Packets dropped because the socket's buffer was full, since it was opened.
pub fn overrun(socket: &impl AsFd) -> u64 {
    // asm-generic/socket.h; linux/sock_diag.h: SK_MEMINFO_DROPS is the last of nine
    const SO_MEMINFO: i32 = 55;
    get(socket, libc::SOL_SOCKET, SO_MEMINFO, [0u32; 9]).map_or(0, |info| u64::from(info[8]))
}

/// Metadata of a received datagram.
pub struct Datagram {
    /// IP source.
    pub from: Ipv4Addr,
    /// IP destination.
    pub to: Ipv4Addr,
    /// TTL on arrival.
    pub ttl: u8,
    /// Length of the payload in bytes; more than the buffer holds if the datagram was cut.
    pub length: usize,
}

/// Reads the next datagram of a UDP socket with IP_PKTINFO and IP_RECVTTL into `buffer`. `None`: none is pending. Fails
/// with the error of the kernel.
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> Result<Option<Datagram>, Errno> {
    // room for the two control messages, aligned as cmsghdr wants it
    let mut control = [0u64; 16];
    // SAFETY: both are plain data for which all zeroes is a value
    let (mut name, mut message): (libc::sockaddr_in, libc::msghdr) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    message.msg_name = std::ptr::from_mut(&mut name).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: `message` points to a name, one part and control space of the lengths it says; all outlive the call
    let length = match Errno::result(unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, flags) }) {
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        other => other? as usize,
    };
    let mut datagram = Datagram { from: ip(name.sin_addr.s_addr), to: Ipv4Addr::UNSPECIFIED, ttl: 0, length };
    // SAFETY: the CMSG macros walk the control space that the kernel has just filled and `message` describes; the data
    // of these two types is an int and an in_pktinfo, read without assuming their alignment
    unsafe {
        let mut head = libc::CMSG_FIRSTHDR(&message);
        while !head.is_null() {
            match ((*head).cmsg_level, (*head).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TTL) => {
                    datagram.ttl = libc::CMSG_DATA(head).cast::<libc::c_int>().read_unaligned() as u8;
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = libc::CMSG_DATA(head).cast::<libc::in_pktinfo>().read_unaligned();
                    datagram.to = ip(info.ipi_addr.s_addr);
                }
                _ => {}
            }
            head = libc::CMSG_NXTHDR(&message, head);
        }
    }
    Ok(Some(datagram))
}

fn ip(network_order: u32) -> Ipv4Addr {
    Ipv4Addr::from(network_order.to_ne_bytes())
}

/// The address of a packet socket: interface index and EtherType (packet(7)).
pub fn link_address(interface: u32, ethertype: u16) -> libc::sockaddr_ll {
    // SAFETY: sockaddr_ll is plain data for which all zeroes is a value
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = interface as i32;
    address
}

/// Binds a packet socket, which receives frames from now on. Fails with the error of the kernel.
pub fn bind_to_link(socket: &impl AsFd, interface: u32, ethertype: u16) -> Result<(), Errno> {
    let address = link_address(interface, ethertype);
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads the sockaddr_ll of that length
    let result = unsafe { libc::bind(socket.as_fd().as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
    Errno::result(result).map(drop)
}
