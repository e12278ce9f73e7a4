//! Packet filters: classic BPF programs (Linux Documentation/networking/filter.rst), assembled from [`Step`]s and run.
//!
//! The kernel runs them for a socket, the medium for a client's overheard frames (formats/sockets.md). As in the kernel, loads
//! are big-endian, and a load beyond the packet's end drops the packet. Jumps lead forward only, so every program ends.

use std::fmt;

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
/// Maximum number of instructions of a [`Program`].
pub const MAX_INSTRUCTIONS: usize = 1024;

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

impl Instruction {
    /// Length in bytes.
    pub const LEN: usize = 8;

    /// Little-endian, in the order of the fields (formats/sockets.md).
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let (code, k) = (self.code.to_le_bytes(), self.k.to_le_bytes());
        [code[0], code[1], self.jt, self.jf, k[0], k[1], k[2], k[3]]
    }

    /// Inverse of [`Self::to_bytes`].
    pub fn from_bytes([c0, c1, jt, jf, k @ ..]: [u8; Self::LEN]) -> Self {
        Self { code: u16::from_le_bytes([c0, c1]), jt, jf, k: u32::from_le_bytes(k) }
    }
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

/// A program that is not run, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl std::error::Error for Refused {}

const TOO_LONG: Refused = Refused("a filter has at most 1024 instructions of 8 bytes");

/// A checked program.
#[derive(Clone, Debug)]
pub struct Program(Vec<Instruction>);

impl Program {
    /// Reads instructions ([`Instruction::to_bytes`]) and checks them; `None`: there are none, and every packet passes.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Refused> {
        let instructions = bytes.chunks_exact(Instruction::LEN);
        if !instructions.remainder().is_empty() {
            return Err(TOO_LONG);
        }
        let read = |bytes: &[u8]| Instruction::from_bytes(bytes.try_into().expect("chunks of this length"));
        (!bytes.is_empty()).then(|| Self::new(instructions.map(read).collect())).transpose()
    }

    /// Fails for an instruction that [`compile`] does not write, a jump beyond the end, an end without a result, or too many
    /// instructions.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, Refused> {
        if instructions.len() > MAX_INSTRUCTIONS {
            return Err(TOO_LONG);
        }
        if !instructions.iter().all(|i| is_supported(i.code)) {
            return Err(Refused("an instruction that filters do not support"));
        }
        let reach = |i: &Instruction| match i.code {
            code::RETURN => None,
            code::EQUAL | code::AT_LEAST | code::ANY_BIT => Some(1 + usize::from(i.jt.max(i.jf))),
            _ => Some(1),
        };
        let leaves = |(at, i): (usize, &Instruction)| reach(i).is_some_and(|steps| at + steps >= instructions.len());
        if instructions.is_empty() || instructions.iter().enumerate().any(leaves) {
            return Err(Refused("the filter does not end with a result"));
        }
        Ok(Self(instructions))
    }

    /// The number of bytes accepted; 0: the packet is dropped. `ancillary`: values of offsets beyond any packet.
    pub fn run(&self, packet: &[u8], ancillary: impl Fn(u32) -> Option<u32>) -> u32 {
        let (mut a, mut x, mut at) = (0u32, 0u32, 0);
        let load = |from: usize, bytes: usize| {
            let part = packet.get(from..from.checked_add(bytes)?)?;
            Some(part.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        loop {
            let Instruction { code, jt, jf, k } = self.0[at];
            at += 1;
            let mut jump = |yes: bool| {
                at += usize::from(if yes { jt } else { jf });
                Some(a)
            };
            let loaded = match code {
                code::LOAD_WORD => load(k as usize, 4).or_else(|| ancillary(k)),
                code::LOAD_HALF => load(k as usize, 2),
                code::LOAD_BYTE => load(k as usize, 1),
                code::LOAD_HALF_INDEXED => load(x as usize + k as usize, 2),
                code::INDEX_HEADER => load(k as usize, 1).inspect(|byte| x = (byte & 0xf) * 4).map(|_| a),
                code::AND => Some(a & k),
                code::INTO_INDEX => {
                    x = a;
                    Some(a)
                }
                code::MINUS_INDEX => Some(a.wrapping_sub(x)),
                code::EQUAL => jump(a == k),
                code::AT_LEAST => jump(a >= k),
                code::ANY_BIT => jump(a & k != 0),
                _ => return k, // RETURN: `new` has checked the codes
            };
            let Some(value) = loaded else { return 0 };
            a = value;
        }
    }
}

fn is_supported(code: u16) -> bool {
    matches!(
        code,
        code::LOAD_WORD
            | code::LOAD_HALF
            | code::LOAD_BYTE
            | code::LOAD_HALF_INDEXED
            | code::INDEX_HEADER
            | code::AND
            | code::INTO_INDEX
            | code::MINUS_INDEX
            | code::EQUAL
            | code::AT_LEAST
            | code::ANY_BIT
            | code::RETURN
    )
}

/// Whether the program of `steps` accepts a packet without ancillary values.
pub fn accepts(steps: &[Step], packet: &[u8]) -> bool {
    Program::new(compile(steps, 1)).is_ok_and(|program| program.run(packet, |_| None) > 0)
}

#[cfg(test)]
mod tests {
    use super::Step::{And, AnyBit, Equal, IndexHeader, IntoIndex, LoadByte, LoadHalf, LoadHalfIndexed, MinusIndex};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn jumps_reach_their_targets() {
        let steps = [
            LoadByte(0),
            Equal(1, To::Skip(2), To::Next),
            LoadByte(1),
            Equal(9, To::Accept, To::Drop),
            LoadByte(2),
            Equal(7, To::Drop, To::Accept),
        ];
        let accepted = |packet: &[u8]| accepts(&steps, packet);
        assert!(accepted(&[0, 9]) && !accepted(&[0, 8]) && !accepted(&[0]), "a load beyond the end drops");
        assert!(accepted(&[1, 0, 6]) && !accepted(&[1, 0, 7]));
    }

    #[test]
    fn the_index_is_a_header_length_or_a_loaded_value() {
        // the two bytes after an IPv4 header of 4 * 5 bytes are 7
        let by_header = [IndexHeader, LoadHalfIndexed(0), Equal(7, To::Accept, To::Drop)];
        assert!(accepts(&by_header, &[&[0x45][..], &[0; 19], &[0, 7]].concat()));
        // byte 1 less byte 0 is 2, and has a bit of 6
        let difference = [LoadByte(0), IntoIndex, LoadByte(1), MinusIndex, And(3), AnyBit(6, To::Accept, To::Drop)];
        assert!(accepts(&difference, &[3, 5]));
        assert!(!accepts(&difference, &[3, 7]), "4 has no bit of 3");
    }

    #[test]
    fn a_program_is_read_from_its_bytes_and_no_bytes_are_no_filter() {
        let steps = [LoadHalf(12), Equal(0x800, To::Accept, To::Drop)];
        let bytes: Vec<u8> = compile(&steps, 1).into_iter().flat_map(Instruction::to_bytes).collect();
        let program = Program::parse(&bytes).unwrap().unwrap();
        let frame = |ethertype: [u8; 2]| [&[0; 12][..], &ethertype].concat();
        assert_eq!((program.run(&frame([8, 0]), |_| None), program.run(&frame([8, 6]), |_| None)), (1, 0));
        assert!(Program::parse(&[]).unwrap().is_none());
    }

    #[test]
    fn ancillary_values_are_no_bytes_of_the_packet() {
        let program =
            Program::new(compile(&[Step::LoadWord(ETHERTYPE), Equal(0x800, To::Accept, To::Drop)], 20)).unwrap();
        assert_eq!(program.run(&[], |at| (at == ETHERTYPE).then_some(0x800)), 20);
        assert_eq!(program.run(&[0; 64], |_| None), 0);
    }

    #[test]
    fn programs_that_could_leave_their_end_are_refused() {
        let ipv4 = compile(&[LoadHalf(12), Equal(0x800, To::Accept, To::Drop)], 1);
        assert!(Program::new(ipv4.clone()).is_ok());
        assert!(Program::new(ipv4[..2].to_vec()).is_err(), "the last instruction falls through");
        assert!(Program::new(ipv4[1..3].to_vec()).is_err(), "a jump past the end");
        assert!(Program::new([&[Instruction { code: 0x99, ..ipv4[0] }], &ipv4[..]].concat()).is_err());
        assert!(Program::new(vec![ipv4[3]; MAX_INSTRUCTIONS + 1]).is_err());
        assert!(Program::new(Vec::new()).is_err());
        assert!(Program::parse(&ipv4[0].to_bytes()[..7]).is_err());
    }

    proptest! {
        #[test]
        fn every_accepted_program_ends_whatever_the_packet(
            steps in prop::collection::vec((0usize..13, 0u8..8, 0u8..8, 0u32..64), 1..40), packet: Vec<u8>) {
            const CODES: [u16; 13] = [0x20, 0x28, 0x30, 0x48, 0xb1, 0x54, 0x07, 0x1c, 0x15, 0x35, 0x45, 0x06, 0x99];
            let instruction = |(c, jt, jf, k): (usize, u8, u8, u32)| Instruction { code: CODES[c], jt, jf, k };
            let mut program: Vec<_> = steps.into_iter().map(instruction).collect();
            program.extend([Instruction { code: 6, jt: 0, jf: 0, k: 1 }; 8]);
            let known = program.iter().all(|i| i.code != 0x99);
            let checked = Program::new(program);
            prop_assert_eq!(checked.is_ok(), known);
            checked.map(|program| program.run(&packet, |_| None)).ok();
        }
    }
}
