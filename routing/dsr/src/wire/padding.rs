//! Pad1 and PadN options (RFC 4728, sections 6.8 and 6.9).

/// Type of Pad1, which has neither length nor data.
pub const PAD_1: u8 = 224;
/// Type of PadN.
pub const PAD_N: u8 = 0;

/// Appends `count` bytes of padding.
pub fn put(to: &mut Vec<u8>, count: usize) {
    match count {
        0 => {}
        1 => to.push(PAD_1),
        _ => {
            // type and length are two of them; callers need at most three
            let zeros = (count - 2).min(255);
            to.extend([PAD_N, zeros as u8]);
            to.extend(std::iter::repeat_n(0, zeros));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        // RFC 4728: Pad1 is the byte 224 without length (6.8), PadN is type 0, length, zeros (6.9)
        for (count, bytes) in [(0, &[][..]), (1, &[224]), (2, &[0, 0]), (3, &[0, 1, 0])] {
            let mut padding = Vec::new();
            put(&mut padding, count);
            assert_eq!(padding, bytes);
        }
    }
}
