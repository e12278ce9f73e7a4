//! Classic BPF programs (Linux Documentation/networking/filter.rst) as data. The kernel runs them for a socket
//! (`host::attach`), the medium for overheard frames (formats/sockets.md); [`run`] is for tests.

/// The target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The next instruction.
    Next,
    /// Skips this number of instructions.
    Skip(u8),
    /// Ends the program; the packet is accepted.
    Accept,
    /// Ends the program; the packet is dropped.
    Drop,
}

/// An instruction. Offsets are in bytes from the start of the packet; loaded values are big-endian and unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Loads 4 bytes at an offset into the accumulator; an ancillary value for [`ETHERTYPE`] and [`PACKET_TYPE`].
    LoadWord(u32),
    /// Loads 2 bytes at an offset into the accumulator.
    LoadHalf(u32),
    /// Loads 1 byte at an offset into the accumulator.
    LoadByte(u32),
    /// Bitwise and of the accumulator with a constant.
    And(u32),
    /// Sets the index to the length of the IPv4 header at the start of the packet, in bytes.
    IndexHeader,
    /// Loads 2 bytes at index plus offset into the accumulator.
    LoadHalfIndexed(u32),
    /// Copies the accumulator to the index.
    IntoIndex,
    /// Subtracts the index from the accumulator, modulo 2^32.
    MinusIndex,
    /// Jumps by whether the accumulator equals the constant: target if true, target if false.
    Equal(u32, To, To),
    /// Jumps by whether the accumulator is at least the constant: target if true, target if false.
    AtLeast(u32, To, To),
    /// Jumps by whether accumulator and constant share a bit: target if true, target if false.
    AnyBit(u32, To, To),
}

/// Offset of the EtherType (SKF_AD_OFF + SKF_AD_PROTOCOL of linux/filter.h).
pub const ETHERTYPE: u32 = 0xffff_f000;
/// Offset of the packet type of linux/if_packet.h: 0 for this host, 4 outgoing (SKF_AD_OFF + SKF_AD_PKTTYPE).
pub const PACKET_TYPE: u32 = 0xffff_f000 + 4;

/// struct sock_filter of linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation, see linux/bpf_common.h.
    pub code: u16,
    /// Instructions to skip if the comparison is true.
    pub jt: u8,
    /// Instructions to skip if the comparison is false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// linux/bpf_common.h: class in the low three bits, then size and mode or operation.
mod code {
    pub const LOAD_WORD: u16 = 0x20;
    pub const LOAD_HALF: u16 = 0x28;
    pub const LOAD_BYTE: u16 = 0x30;
    pub const LOAD_HALF_INDEXED: u16 = 0x48;
    pub const INDEX_HEADER: u16 = 0xb1;
    pub const AND: u16 = 0x54;
    pub const INTO_INDEX: u16 = 0x07;
    pub const MINUS_INDEX: u16 = 0x1c;
    pub const EQUAL: u16 = 0x15;
    pub const AT_LEAST: u16 = 0x35;
    pub const ANY_BIT: u16 = 0x45;
    pub const RETURN: u16 = 0x06;
}

/// The program in the kernel's form: it accepts the first `accept` bytes of a packet or drops the packet. `steps` are fewer
/// than 256, so that every jump fits into a byte.
pub fn compile(steps: &[Step], accept: u32) -> Vec<Instruction> {
    debug_assert!(steps.len() < 256);
    let plain = |code: u16, k: u32| Instruction { code, jt: 0, jf: 0, k };
    let mut program = Vec::with_capacity(steps.len() + 2);
    for (i, step) in steps.iter().enumerate() {
        // after the steps come "accept" and "drop"
        let to = |t: To| match t {
            To::Next => 0,
            To::Skip(n) => n,
            To::Accept => (steps.len() - i - 1) as u8,
            To::Drop => (steps.len() - i) as u8,
        };
        let jump = |code: u16, k: u32, yes: To, no: To| Instruction { code, jt: to(yes), jf: to(no), k };
        program.push(match *step {
            Step::LoadWord(at) => plain(code::LOAD_WORD, at),
            Step::LoadHalf(at) => plain(code::LOAD_HALF, at),
            Step::LoadByte(at) => plain(code::LOAD_BYTE, at),
            Step::And(k) => plain(code::AND, k),
            Step::IndexHeader => plain(code::INDEX_HEADER, 0),
            Step::LoadHalfIndexed(at) => plain(code::LOAD_HALF_INDEXED, at),
            Step::IntoIndex => plain(code::INTO_INDEX, 0),
            Step::MinusIndex => plain(code::MINUS_INDEX, 0),
            Step::Equal(k, yes, no) => jump(code::EQUAL, k, yes, no),
            Step::AtLeast(k, yes, no) => jump(code::AT_LEAST, k, yes, no),
            Step::AnyBit(k, yes, no) => jump(code::ANY_BIT, k, yes, no),
        });
    }
    program.push(plain(code::RETURN, accept));
    program.push(plain(code::RETURN, 0));
    program
}

/// The result of the kernel's interpreter for a packet: 20 for accepted, 0 for dropped. For tests.
///
/// # Panics
/// On an instruction that [`compile`] does not write.
pub fn run(steps: &[Step], packet: &[u8], ethertype: u32, packet_type: u32) -> u32 {
    const ACCEPT: u32 = 20;
    let program = compile(steps, ACCEPT);
    let (mut a, mut x, mut at) = (0u32, 0u32, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
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
        let loaded = match code {
            code::LOAD_WORD => load(k, 4),
            code::LOAD_HALF => load(k, 2),
            code::LOAD_BYTE => load(k, 1),
            code::LOAD_HALF_INDEXED => load(x + k, 2),
            code::INDEX_HEADER => load(k, 1).inspect(|byte| x = (byte & 0xf) * 4).map(|_| a),
            code::AND => Some(a & k),
            code::INTO_INDEX => {
                x = a;
                Some(a)
            }
            code::MINUS_INDEX => Some(a.wrapping_sub(x)),
            code::EQUAL => {
                at += jump(a == k);
                Some(a)
            }
            code::AT_LEAST => {
                at += jump(a >= k);
                Some(a)
            }
            code::ANY_BIT => {
                at += jump(a & k != 0);
                Some(a)
            }
            code::RETURN => return k,
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
    fn jumps_reach_their_targets() {
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
