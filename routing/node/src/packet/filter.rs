//! Classic BPF programs that the kernel runs for a socket (Linux Documentation/networking/filter.rst): what they say. The
//! host gives them to the kernel (`host::attach`); [`run`] is for tests.

use nix::libc;

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
    /// The accumulator into the index.
    IntoIndex,
    /// The index is taken from the accumulator.
    MinusIndex,
    Equal(u32, To, To),
    AtLeast(u32, To, To),
    AnyBit(u32, To, To),
}

impl Step {
    /// The same of a packet that begins `by` bytes later.
    pub fn moved(self, by: u32) -> Self {
        match self {
            Step::LoadWord(at) => Step::LoadWord(at + by),
            Step::LoadHalf(at) => Step::LoadHalf(at + by),
            Step::LoadByte(at) => Step::LoadByte(at + by),
            Step::LoadHalfIndexed(at) => Step::LoadHalfIndexed(at + by),
            other => other,
        }
    }
}

/// SKF_AD_OFF of linux/filter.h and what lies there.
pub const ETHERTYPE: u32 = 0xffff_f000;
pub const PACKET_TYPE: u32 = 0xffff_f000 + 4;

/// What the kernel takes: a program that accepts the first `accept` bytes of a packet, or drops it. No jump leads further than
/// 255 instructions.
pub fn compile(steps: &[Step], accept: u32) -> Vec<libc::sock_filter> {
    use nix::libc::{BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MSH, BPF_RET, BPF_W};
    const JEQ: u32 = 0x10;
    const JGE: u32 = 0x30;
    const JSET: u32 = 0x40;
    const ALU_AND: u32 = 0x54;
    const ALU_SUB_X: u32 = 0x1c;
    const MISC_TAX: u32 = 0x07;
    debug_assert!(steps.len() < 256);
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
            Step::IntoIndex => plain(MISC_TAX, 0),
            Step::MinusIndex => plain(ALU_SUB_X, 0),
            Step::Equal(k, yes, no) => jump(JEQ, k, yes, no),
            Step::AtLeast(k, yes, no) => jump(JGE, k, yes, no),
            Step::AnyBit(k, yes, no) => jump(JSET, k, yes, no),
        });
    }
    program.push(plain(BPF_RET | BPF_K, accept));
    program.push(plain(BPF_RET | BPF_K, 0));
    program
}

/// What the kernel's interpreter says to a packet: how many bytes are accepted, 20 of a program's "accept". For tests.
///
/// # Panics
/// On an instruction that [`compile`] does not write.
pub fn run(steps: &[Step], packet: &[u8], ethertype: u32, packet_type: u32) -> u32 {
    const ACCEPT: u32 = 20;
    let program = compile(steps, ACCEPT);
    let (mut a, mut x, mut at) = (0u32, 0u32, 0);
    loop {
        let libc::sock_filter { code, jt, jf, k } = program[at];
        let load = |from: u32, bytes: usize| match from {
            ETHERTYPE => Some(ethertype),
            PACKET_TYPE => Some(packet_type),
            from => {
                let part = packet.get(from as usize..from as usize + bytes)?;
                Some(part.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
            }
        };
        let jump = |yes: bool| usize::from(if yes { jt } else { jf });
        at += 1;
        // linux/bpf_common.h: class in the low three bits, then size and mode or operation
        let loaded = match code {
            0x20 => load(k, 4),
            0x28 => load(k, 2),
            0x30 => load(k, 1),
            0x48 => load(x + k, 2),
            0xb1 => load(k, 1).inspect(|byte| x = (byte & 0xf) * 4).map(|_| a),
            0x54 => Some(a & k),
            0x07 => {
                x = a;
                Some(a)
            }
            0x1c => Some(a.wrapping_sub(x)),
            0x15 => {
                at += jump(a == k);
                Some(a)
            }
            0x35 => {
                at += jump(a >= k);
                Some(a)
            }
            0x45 => {
                at += jump(a & k != 0);
                Some(a)
            }
            0x06 => return k,
            other => panic!("instruction {other:#x}"),
        };
        // a load beyond the packet ends the program with "drop"
        let Some(value) = loaded else { return 0 };
        a = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_where_they_say() {
        use Step::{Equal, LoadByte};
        let steps = [
            LoadByte(0),
            Equal(1, To::Skip(2), To::Next),
            LoadByte(1),
            Equal(9, To::Accept, To::Drop),
            LoadByte(2),
            Equal(7, To::Drop, To::Accept),
        ];
        let accepted = |packet: &[u8]| run(&steps, packet, 0, 0) > 0;
        assert!(accepted(&[0, 9]) && !accepted(&[0, 8]) && !accepted(&[0]));
        assert!(accepted(&[1, 0, 6]) && !accepted(&[1, 0, 7]));
    }
}
