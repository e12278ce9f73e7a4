//! CRC-32 (IEEE 802.3, reflected 0xEDB88320), by which a writer says which bytes it wrote. Python's `zlib.crc32` computes the same.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte as u32, 0);
        while bit < 8 {
            value = (value >> 1) ^ (0xEDB8_8320 & (value & 1).wrapping_neg());
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

/// The sum over the bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc32(u32);

impl Crc32 {
    /// Adds the bytes that follow.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 =
            !bytes.iter().fold(!self.0, |sum, byte| (sum >> 8) ^ TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize]);
    }

    /// The sum.
    pub fn value(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_also_in_pieces() {
        let mut sum = Crc32::default();
        sum.add(b"1234");
        sum.add(b"");
        sum.add(b"56789");
        assert_eq!(sum.value(), 0xCBF4_3926); // "check" of CRC-32/ISO-HDLC
    }
}
