//! Attaches programs of [`manet_engine::packet_filter`] to sockets.

use manet_engine::packet_filter::{compile, Instruction, Step};
use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsFd, AsRawFd};

/// From now on `socket` receives only packets that the program accepts, cut to `accept` bytes.
pub fn attach(socket: &impl AsFd, steps: &[Step], accept: u32) -> Result<(), Errno> {
    let kernels = |Instruction { code, jt, jf, k }| libc::sock_filter { code, jt, jf, k };
    let mut program: Vec<libc::sock_filter> = compile(steps, accept).into_iter().map(kernels).collect();
    let head = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the program that `head` points to before the call returns; both outlive it
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&head).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    Errno::result(result).map(drop)
}
