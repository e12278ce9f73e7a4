//! Classic BPF programs that the kernel runs for a socket (Linux Documentation/networking/filter.rst).

use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsFd, AsRawFd};

/// Where an instruction goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Next,
    /// This many instructions further than the next.
    Skip(u8),
    Accept,
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into the accumulator.
    LoadWord(u32),
    LoadHalf(u32),
    LoadByte(u32),
    And(u32),
    /// The IPv4 header's length into the index.
    IndexHeader,
    /// From the index on.
    LoadHalfIndexed(u32),
    Equal(u32, To, To),
    AtLeast(u32, To, To),
    AnyBit(u32, To, To),
}

/// SKF_AD_OFF of linux/filter.h and what lies there.
pub const ETHERTYPE: u32 = 0xffff_f000;
pub const PACKET_TYPE: u32 = 0xffff_f000 + 4;

fn compile(steps: &[Step], accept: u32) -> Vec<libc::sock_filter> {
    use nix::libc::{BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MSH, BPF_RET, BPF_W};
    const JEQ: u32 = 0x10;
    const JGE: u32 = 0x30;
    const JSET: u32 = 0x40;
    const ALU_AND: u32 = 0x54;
    let plain = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = Vec::with_capacity(steps.len() + 2);
    for (i, step) in steps.iter().enumerate() {
        // after the steps come "accept" and "drop"
        let to = |t: To| match t {
            To::Next => 0,
            To::Skip(n) => n,
            To::Accept => (steps.len() - i - 1) as u8,
            To::Drop => (steps.len() - i) as u8,
        };
        let jump = |what: u32, k: u32, yes: To, no: To| libc::sock_filter {
            code: (BPF_JMP | what | BPF_K) as u16,
            jt: to(yes),
            jf: to(no),
            k,
        };
        program.push(match *step {
            Step::LoadWord(at) => plain(BPF_LD | BPF_W | BPF_ABS, at),
            Step::LoadHalf(at) => plain(BPF_LD | BPF_H | BPF_ABS, at),
            Step::LoadByte(at) => plain(BPF_LD | BPF_B | BPF_ABS, at),
            Step::And(k) => plain(ALU_AND, k),
            Step::IndexHeader => plain(BPF_LDX | BPF_B | BPF_MSH, 0),
            Step::LoadHalfIndexed(at) => plain(BPF_LD | BPF_H | BPF_IND, at),
            Step::Equal(k, yes, no) => jump(JEQ, k, yes, no),
            Step::AtLeast(k, yes, no) => jump(JGE, k, yes, no),
            Step::AnyBit(k, yes, no) => jump(JSET, k, yes, no),
        });
    }
    program.push(plain(BPF_RET | BPF_K, accept));
    program.push(plain(BPF_RET | BPF_K, 0));
    program
}

/// From now on `socket` gets only what the program accepts, the first `accept` bytes of it.
pub fn attach(socket: &impl AsFd, steps: &[Step], accept: u32) -> Result<(), Errno> {
    let mut program = compile(steps, accept);
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
