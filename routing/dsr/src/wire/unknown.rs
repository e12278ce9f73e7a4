//! An option of an unknown type, and its treatment, which depends on the type (RFC 4728, section 8.1.6).

/// An option of an unknown type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Option type.
    pub kind: u8,
    /// Bytes after type and length.
    pub data: Vec<u8>,
}

/// The treatment of an unknown option: bits 0x60 of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Forward the packet with the option.
    Ignore,
    /// Remove the option.
    Remove,
    /// Set the first bit after the length and forward the packet.
    Mark,
    /// Drop the packet.
    Drop,
}

/// The most significant bit following the Opt Data Len field.
const MARK: u8 = 0x80;

impl Unknown {
    /// Whether the sender requests an error about the option (bit 0x80).
    pub fn wants_error(&self) -> bool {
        self.kind & 0x80 != 0
    }

    /// The treatment that the type requires.
    pub fn treatment(&self) -> Treatment {
        match self.kind >> 5 & 3 {
            0 => Treatment::Ignore,
            1 => Treatment::Remove,
            2 => Treatment::Mark,
            _ => Treatment::Drop,
        }
    }

    /// Sets the mark. An option without data has no such bit.
    pub fn mark(&mut self) {
        if let Some(first) = self.data.first_mut() {
            *first |= MARK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_the_first_bit_after_the_length() {
        // RFC 4728, 8.1.6
        let marked = |data: &[u8]| {
            let mut unknown = Unknown { kind: 0b0100_0001, data: data.to_vec() };
            unknown.mark();
            (unknown.kind, unknown.data)
        };
        assert_eq!(marked(&[0x01, 0x02]), (0b0100_0001, vec![0x81, 0x02]));
        assert_eq!(marked(&[]), (0b0100_0001, vec![]));
    }

    #[test]
    fn the_first_three_bits_of_the_type_decide() {
        let table = [
            (0b0000_0101, false, Treatment::Ignore),
            (0b0010_0001, false, Treatment::Remove),
            (0b0100_0001, false, Treatment::Mark),
            (0b0110_0001, false, Treatment::Drop),
            (0b1000_0000, true, Treatment::Ignore),
            (0b1110_0001, true, Treatment::Drop),
        ];
        for (kind, error, treatment) in table {
            let unknown = Unknown { kind, data: Vec::new() };
            assert_eq!((unknown.wants_error(), unknown.treatment()), (error, treatment), "{kind:#b}");
        }
    }
}
