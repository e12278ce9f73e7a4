//! A client's filter of overheard frames: a classic BPF program (Linux Documentation/networking/filter.rst), of which the
//! instructions below are supported.
//!
//! The medium runs it for the Ethernet frame of an OVERHEARD message and sends the message if the result is not 0. As in the
//! kernel, loads are big-endian, and a load beyond the frame's end gives 0. Each instruction has 8 bytes, little-endian: u16
//! code, u8 jump if true, u8 jump if false, u32 operand. Jumps lead forward only, so every program ends.

use super::{array, Malformed, Result};

/// Maximum number of instructions of a program.
pub const MAX_INSTRUCTIONS: usize = 1024;
/// Length of an instruction, bytes.
const LEN: usize = 8;

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

#[derive(Clone, Copy, Debug)]
enum Step {
    Load { at: u32, bytes: usize },
    LoadHalfIndexed(u32),
    IndexHeader(u32),
    And(u32),
    IntoIndex,
    MinusIndex,
    Jump { test: Test, k: u32, yes: u8, no: u8 },
    Return(bool),
}

#[derive(Clone, Copy, Debug)]
enum Test {
    Equal,
    AtLeast,
    AnyBit,
}

/// A checked program.
#[derive(Clone, Debug)]
pub struct Program(Vec<Step>);

impl Program {
    /// Parses the instructions of a FILTER message; `None`: there are none, and every frame passes.
    ///
    /// # Errors
    /// An instruction that is not supported, a jump beyond the end, an end without a result, or too many instructions.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.len() % LEN != 0 || bytes.len() > LEN * MAX_INSTRUCTIONS {
            return Err(Malformed("a filter has at most 1024 instructions of 8 bytes"));
        }
        let steps = bytes.chunks_exact(LEN).map(step).collect::<Result<Vec<_>>>()?;
        for (at, step) in steps.iter().enumerate() {
            let reach = match step {
                Step::Return(_) => continue,
                Step::Jump { yes, no, .. } => usize::from(*yes.max(no)),
                _ => 0,
            };
            if at + 1 + reach >= steps.len() {
                return Err(Malformed("the filter does not end with a result"));
            }
        }
        Ok((!steps.is_empty()).then_some(Self(steps)))
    }

    /// Whether the program accepts an Ethernet frame.
    pub fn accepts(&self, frame: &[u8]) -> bool {
        let (mut a, mut x, mut at) = (0u32, 0u32, 0);
        let load = |from: usize, bytes: usize| {
            let part = frame.get(from..from.checked_add(bytes)?)?;
            Some(part.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        loop {
            let loaded = match self.0[at] {
                Step::Load { at, bytes } => load(at as usize, bytes),
                Step::LoadHalfIndexed(k) => load(x as usize + k as usize, 2),
                Step::IndexHeader(k) => load(k as usize, 1).inspect(|byte| x = (byte & 0xf) * 4).map(|_| a),
                Step::And(k) => Some(a & k),
                Step::IntoIndex => {
                    x = a;
                    Some(a)
                }
                Step::MinusIndex => Some(a.wrapping_sub(x)),
                Step::Jump { test, k, yes, no } => {
                    let holds = match test {
                        Test::Equal => a == k,
                        Test::AtLeast => a >= k,
                        Test::AnyBit => a & k != 0,
                    };
                    at += usize::from(if holds { yes } else { no });
                    Some(a)
                }
                Step::Return(accepted) => return accepted,
            };
            let Some(value) = loaded else { return false };
            (a, at) = (value, at + 1);
        }
    }
}

fn step(bytes: &[u8]) -> Result<Step> {
    let (yes, no, k) = (bytes[2], bytes[3], u32::from_le_bytes(array(bytes, 4..8)));
    let jump = |test| Step::Jump { test, k, yes, no };
    Ok(match u16::from_le_bytes(array(bytes, 0..2)) {
        code::LOAD_WORD => Step::Load { at: k, bytes: 4 },
        code::LOAD_HALF => Step::Load { at: k, bytes: 2 },
        code::LOAD_BYTE => Step::Load { at: k, bytes: 1 },
        code::LOAD_HALF_INDEXED => Step::LoadHalfIndexed(k),
        code::INDEX_HEADER => Step::IndexHeader(k),
        code::AND => Step::And(k),
        code::INTO_INDEX => Step::IntoIndex,
        code::MINUS_INDEX => Step::MinusIndex,
        code::EQUAL => jump(Test::Equal),
        code::AT_LEAST => jump(Test::AtLeast),
        code::ANY_BIT => jump(Test::AnyBit),
        code::RETURN => Step::Return(k != 0),
        _ => return Err(Malformed("an instruction that filters do not support")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn program(instructions: &[(u16, u8, u8, u32)]) -> Vec<u8> {
        let bytes = |(code, yes, no, k): &(u16, u8, u8, u32)| {
            [&code.to_le_bytes()[..], &[*yes, *no], &k.to_le_bytes()].concat()
        };
        instructions.iter().flat_map(bytes).collect()
    }

    /// Accepts IPv4 (EtherType 0x0800 at 12), as formats/examples/feedback.txt has it.
    const IPV4: [(u16, u8, u8, u32); 4] = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x800), (0x06, 0, 0, 1), (0x06, 0, 0, 0)];

    #[test]
    fn a_program_accepts_and_drops_by_the_bytes_of_the_frame() {
        let filter = Program::parse(&program(&IPV4)).unwrap().unwrap();
        let frame = |ethertype: [u8; 2]| [&[0; 12][..], &ethertype].concat();
        assert!(filter.accepts(&frame([8, 0])));
        assert!(!filter.accepts(&frame([8, 6])));
        assert!(!filter.accepts(&[0; 13]), "a load beyond the end");
    }

    #[test]
    fn the_index_is_a_header_length_or_a_loaded_value() {
        // the two bytes after an IPv4 header of 4 * 5 bytes are 7
        let by_header = program(&[(0xb1, 0, 0, 0), (0x48, 0, 0, 0), (0x15, 0, 1, 7), (0x06, 0, 0, 1), (0x06, 0, 0, 0)]);
        let filter = Program::parse(&by_header).unwrap().unwrap();
        assert!(filter.accepts(&[&[0x45][..], &[0; 19], &[0, 7]].concat()));
        // byte 1 less byte 0 is 2, and has a bit of 6
        let difference = [(0x30, 0, 0, 0), (0x07, 0, 0, 0), (0x30, 0, 0, 1), (0x1c, 0, 0, 0), (0x54, 0, 0, 3)];
        let test = [(0x45, 0, 1, 6), (0x06, 0, 0, 1), (0x06, 0, 0, 0)];
        let filter = Program::parse(&program(&[&difference[..], &test].concat())).unwrap().unwrap();
        assert!(filter.accepts(&[3, 5]));
        assert!(!filter.accepts(&[3, 7]), "4 has no bit of 3");
    }

    #[test]
    fn no_instructions_are_no_filter() {
        assert!(Program::parse(&[]).unwrap().is_none());
    }

    #[test]
    fn programs_that_could_leave_their_end_are_refused() {
        for bad in [
            &IPV4[..2],                                     // the last instruction falls through
            &[(0x15, 0, 2, 0), (6, 0, 0, 0), (6, 0, 0, 0)], // a jump past the end
            &[(0x99, 0, 0, 0), (6, 0, 0, 0)],               // no such instruction
        ] {
            assert!(Program::parse(&program(bad)).is_err(), "{bad:?}");
        }
        assert!(Program::parse(&program(&IPV4)[..31]).is_err());
        assert!(Program::parse(&program(&[(6, 0, 0, 0); MAX_INSTRUCTIONS + 1])).is_err());
    }

    proptest! {
        #[test]
        fn every_accepted_program_ends_whatever_the_frame(
            steps in prop::collection::vec((0usize..12, 0u8..8, 0u8..8, 0u32..64), 1..40), frame: Vec<u8>) {
            const CODES: [u16; 12] = [0x20, 0x28, 0x30, 0x48, 0xb1, 0x54, 0x07, 0x1c, 0x15, 0x35, 0x45, 0x06];
            let mut steps: Vec<_> = steps.into_iter().map(|(c, yes, no, k)| (CODES[c], yes, no, k)).collect();
            steps.extend([(6, 0, 0, 1); 8]);
            if let Some(filter) = Program::parse(&program(&steps)).unwrap() {
                let _ = filter.accepts(&frame);
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, frame: Vec<u8>) {
            if let Ok(Some(filter)) = Program::parse(&bytes) {
                let _ = filter.accepts(&frame);
            }
        }
    }
}
