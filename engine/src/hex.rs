//! Bytes as lower-case hexadecimal digits, and back: logs of inputs write each packet so, one formatter call per byte would be
//! the largest cost of a busy daemon.

/// The two digits of each byte.
const DIGITS: [[u8; 2]; 256] = {
    let (digits, mut pairs, mut byte) = (*b"0123456789abcdef", [[0; 2]; 256], 0);
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// The digits of `byte`, in ASCII.
pub fn digits(byte: u8) -> [u8; 2] {
    DIGITS[usize::from(byte)]
}

/// The digits of all `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| digits(*byte)).map(char::from).collect()
}

/// The bytes of digits of either case. `None`: the text is not an even number of hexadecimal digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let value = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    text.as_bytes().chunks(2).map(value).collect()
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_and_has_the_digits_of_the_formatter() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(encode(&bytes), bytes.iter().map(|b| format!("{b:02x}")).collect::<String>());
        assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        assert_eq!(decode("Ff").unwrap(), [255]);
    }

    #[test]
    fn what_is_not_pairs_of_digits_is_refused() {
        for text in ["f", "0g", "+f", "é0", "0é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
