//! A frame in the log of inputs: its first [`KEPT`] bytes as hexadecimal digits, then `+` and the number of further bytes.
//!
//! The medium reads headers only, and the capture of the air keeps the first 128 bytes of a packet. A replay fills the rest of a
//! frame with zeros, and log and capture come out the same.

use manet_engine::hex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use std::io::Write;

/// Bytes kept: more than the longest headers (a frame of mac80211 with mesh control: 58) and the captured part of a packet (128).
pub const KEPT: usize = 192;
/// `+` and a number.
const MAX_MORE: usize = 21;
/// No interface has longer frames.
const MAX_LEN: usize = 1 << 16;

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(frame: &[u8], s: S) -> Result<S::Ok, S::Error> {
    let mut text = [0; 2 * KEPT + MAX_MORE];
    let kept = frame.len().min(KEPT);
    for (pair, byte) in text.chunks_exact_mut(2).zip(&frame[..kept]) {
        pair.copy_from_slice(&hex::digits(*byte));
    }
    let mut len = 2 * kept;
    if frame.len() > kept {
        let mut rest = &mut text[len..];
        write!(rest, "+{}", frame.len() - kept).expect("a length has at most twenty digits");
        len += MAX_MORE - rest.len();
    }
    s.serialize_str(std::str::from_utf8(&text[..len]).expect("digits are ASCII"))
}

/// For `#[serde(with)]`.
///
/// # Errors
/// Text in another form, or more than 65 536 bytes after the `+`.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(d)?;
    parse(&text).ok_or_else(|| D::Error::custom("a frame is hexadecimal digits and perhaps `+` with a number of bytes"))
}

fn parse(text: &str) -> Option<Vec<u8>> {
    let (digits, more) = match text.split_once('+') {
        Some((digits, more)) => (digits, more.parse().ok().filter(|more| *more <= MAX_LEN)?),
        None => (text, 0),
    };
    let mut frame = hex::decode(digits)?;
    frame.resize(frame.len() + more, 0);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(frame: &[u8]) -> (String, Vec<u8>) {
        let text: String = serde_json::from_value(serialize(frame, serde_json::value::Serializer).unwrap()).unwrap();
        let back = parse(&text).unwrap();
        (text, back)
    }

    #[test]
    fn a_short_frame_comes_back_whole() {
        assert_eq!(there_and_back(&[0x02, 0xff, 0x0a]), ("02ff0a".to_owned(), vec![0x02, 0xff, 0x0a]));
        assert_eq!(there_and_back(&[]), (String::new(), vec![]));
    }

    #[test]
    fn a_long_frame_keeps_its_length_and_its_first_bytes() {
        let frame = [0x5a; 1514];
        let (text, back) = there_and_back(&frame);
        assert!(text.ends_with("5a+1322") && text.len() == 2 * KEPT + 5);
        assert_eq!((back.len(), &back[..KEPT]), (frame.len(), &frame[..KEPT]));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for text in ["0", "0g", "00+", "00+x", "00+99999999999", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
