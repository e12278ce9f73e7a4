//! pcapng blocks (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3): section header, interface description, enhanced packet.
//!
//! ```text
//! +------------+--------------+------ ... ------+--------------+
//! | type (u32) | length (u32) | body, padded    | length (u32) |
//! +------------+--------------+------ ... ------+--------------+
//! ```
//! Little-endian sections only; timestamps in nanoseconds (`if_tsresol` 9); options: `if_name`, `if_tsresol`, `opt_comment`.
//! Others are skipped when reading.

use super::{array, check_len, Malformed, Result};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const NANOSECONDS: u8 = 9;
/// LINKTYPE_IEEE802_11_RADIOTAP.
pub const LINK_RADIOTAP: u16 = 127;
/// Type, two lengths.
const FRAME_LEN: usize = 12;

/// A block of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// Section header: little-endian, version 1.0.
    Section,
    /// Interface description.
    Interface {
        /// LINKTYPE_*.
        link_type: u16,
        /// Name (`if_name`).
        name: &'a str,
    },
    /// Enhanced packet.
    Packet {
        /// Number of the interface, from 0.
        interface: u32,
        /// Timestamp, ns since 1970.
        at_ns: u64,
        /// Length of the packet on the air, bytes.
        original_len: u32,
        /// The bytes captured.
        data: &'a [u8],
        /// Comment (`opt_comment`); empty: none.
        comment: &'a str,
    },
}

impl<'a> Block<'a> {
    /// Appends the block to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        let kind = match *self {
            Block::Section => {
                out.extend_from_slice(&BYTE_ORDER.to_le_bytes());
                out.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
                out.extend_from_slice(&u64::MAX.to_le_bytes()); // length of the section: unspecified
                SECTION
            }
            Block::Interface { link_type, name } => {
                out.extend_from_slice(&link_type.to_le_bytes());
                out.extend_from_slice(&[0; 6]); // reserved; snap length 0: no limit
                emit_option(out, IF_NAME, name.as_bytes());
                emit_option(out, IF_TSRESOL, &[NANOSECONDS]);
                emit_option(out, OPT_END, &[]);
                INTERFACE
            }
            Block::Packet { interface, at_ns, original_len, data, comment } => {
                out.extend_from_slice(&interface.to_le_bytes());
                out.extend_from_slice(&((at_ns >> 32) as u32).to_le_bytes());
                out.extend_from_slice(&(at_ns as u32).to_le_bytes());
                out.extend_from_slice(&(data.len() as u32).to_le_bytes());
                out.extend_from_slice(&original_len.to_le_bytes());
                out.extend_from_slice(data);
                pad(out, data.len());
                if !comment.is_empty() {
                    emit_option(out, OPT_COMMENT, comment.as_bytes());
                    emit_option(out, OPT_END, &[]);
                }
                PACKET
            }
        };
        let length = (out.len() - start + 4) as u32;
        out[start..start + 4].copy_from_slice(&kind.to_le_bytes());
        out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
    }

    /// Parses the first block; returns it with the bytes that follow.
    ///
    /// # Errors
    /// A block that this file does not write, or wrong lengths.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8])> {
        check_len(bytes, FRAME_LEN)?;
        let kind = u32_at(bytes, 0);
        let length = u32_at(bytes, 4) as usize;
        if length < FRAME_LEN || length % 4 != 0 {
            return Err(Malformed("impossible block length"));
        }
        check_len(bytes, length)?;
        if u32_at(bytes, length - 4) as usize != length {
            return Err(Malformed("the two block lengths differ"));
        }
        let body = &bytes[8..length - 4];
        let block = match kind {
            SECTION => parse_section(body)?,
            INTERFACE => parse_interface(body)?,
            PACKET => parse_packet(body)?,
            _ => return Err(Malformed("a block that we do not write")),
        };
        Ok((block, &bytes[length..]))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at..at + 4))
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&[0; 3][..len.wrapping_neg() % 4]);
}

/// # Panics
/// Never for the options of this file: their values are shorter than 64 KiB (longer ones are cut).
fn emit_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn option(mut bytes: &[u8], wanted: u16) -> Result<&[u8]> {
    while bytes.len() >= 4 {
        let code = u16::from_le_bytes(array(bytes, 0..2));
        let length = usize::from(u16::from_le_bytes(array(bytes, 2..4)));
        if code == OPT_END {
            break;
        }
        check_len(bytes, 4 + length.next_multiple_of(4))?;
        if code == wanted {
            return Ok(&bytes[4..4 + length]);
        }
        bytes = &bytes[4 + length.next_multiple_of(4)..];
    }
    Ok(&[])
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Malformed("text that is not UTF-8"))
}

fn parse_section(body: &[u8]) -> Result<Block<'_>> {
    check_len(body, 16)?;
    if u32_at(body, 0) != BYTE_ORDER || body[4..8] != [1, 0, 0, 0] {
        return Err(Malformed("not a little-endian pcapng 1.0 section"));
    }
    Ok(Block::Section)
}

fn parse_interface(body: &[u8]) -> Result<Block<'_>> {
    check_len(body, 8)?;
    if option(&body[8..], IF_TSRESOL)? != [NANOSECONDS] {
        return Err(Malformed("timestamps that are not nanoseconds"));
    }
    Ok(Block::Interface { link_type: u16::from_le_bytes(array(body, 0..2)), name: text(option(&body[8..], IF_NAME)?)? })
}

fn parse_packet(body: &[u8]) -> Result<Block<'_>> {
    check_len(body, 20)?;
    let captured = u32_at(body, 12) as usize;
    let padded = captured.checked_next_multiple_of(4).ok_or(Malformed("impossible captured length"))?;
    let rest = &body[20..];
    check_len(rest, padded)?;
    Ok(Block::Packet {
        interface: u32_at(body, 0),
        at_ns: u64::from(u32_at(body, 4)) << 32 | u64::from(u32_at(body, 8)),
        original_len: u32_at(body, 16),
        data: &rest[..captured],
        comment: text(option(&rest[padded..], OPT_COMMENT)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // written out by hand after the draft
    #[rustfmt::skip]
    const BYTES: [u8; 44] = [
        6, 0, 0, 0, 44, 0, 0, 0,
        0, 0, 0, 0, 0x01, 0, 0, 0, 0x02, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0,
        b'h', b'e', b'l', b'l', b'o', 0, 0, 0,
        0, 0, 0, 0,
        44, 0, 0, 0,
    ];

    fn emitted(block: &Block) -> Vec<u8> {
        let mut out = Vec::new();
        block.emit(&mut out);
        out
    }

    #[test]
    fn golden_bytes_both_ways() {
        let block = Block::Packet { interface: 0, at_ns: 0x1_0000_0002, original_len: 9, data: b"hello", comment: "" };
        assert_eq!(Block::parse(&BYTES), Ok((block.clone(), &[][..])));
        // we leave the end-of-options out where there are none (section 3.5: may be absent)
        let mut expected = BYTES.to_vec();
        expected.drain(36..40);
        (expected[4], expected[36]) = (40, 40);
        assert_eq!(emitted(&block), expected);
        assert_eq!(emitted(&Block::Section)[..12], [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        for n in 0..BYTES.len() {
            assert!(Block::parse(&BYTES[..n]).is_err());
        }
    }

    proptest! {
        #[test]
        fn round_trip(interface: u32, at_ns: u64, original_len: u32, data: Vec<u8>,
                      comment in "[ -~]{0,40}", name in "[a-z0-9]{0,15}", link_type: u16) {
            for block in [
                Block::Section,
                Block::Interface { link_type, name: &name },
                Block::Packet { interface, at_ns, original_len, data: &data, comment: &comment },
            ] {
                let bytes = emitted(&block);
                prop_assert_eq!(Block::parse(&bytes), Ok((block, &[][..])));
            }
        }

        #[test]
        fn no_bytes_panic(kind in prop::sample::select(vec![SECTION, INTERFACE, PACKET, 7]),
                          length in 0u32..80, body in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = kind.to_le_bytes().to_vec();
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&body);
            let _ = Block::parse(&bytes);
            let whole = bytes.len().next_multiple_of(4) + 4;
            bytes.resize(whole, 0);
            bytes[4..8].copy_from_slice(&(whole as u32).to_le_bytes());
            let at = whole - 4;
            bytes[at..].copy_from_slice(&(whole as u32).to_le_bytes());
            let _ = Block::parse(&bytes);
        }
    }
}
