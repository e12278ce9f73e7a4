//! Attributes (struct nlattr) of all netlink families.
//!
//! ```text
//!  0        2      4
//! +--------+------+--------------------------+
//! | length | kind | value, padded to 4 bytes |
//! +--------+------+--------------------------+
//! ```
//! The length counts header and value, not the padding.

const HEADER_LEN: usize = 4;
/// NLA_F_NESTED: the value holds attributes.
pub(crate) const NESTED: u16 = 0x8000;
/// The kind without NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const KIND_MASK: u16 = 0x3fff;

/// Appends an attribute.
///
/// # Panics
/// If the value is longer than an attribute can hold (65 531 bytes).
pub(crate) fn put(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend(length_field(HEADER_LEN + value.len()));
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// # Panics
/// If an attribute cannot be that long (65 535 bytes with its header).
pub(crate) fn length_field(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("an attribute's length has 16 bits").to_ne_bytes()
}

/// The bytes of consecutive attributes; iterates over pairs of kind and value, up to the first malformed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The value of the first attribute of this kind.
    pub fn get(mut self, kind: u16) -> Option<&'a [u8]> {
        self.find(|(k, _)| *k == kind).map(|(_, value)| value)
    }

    /// The value of the first attribute of this kind, if it has `N` bytes.
    pub fn array<const N: usize>(self, kind: u16) -> Option<[u8; N]> {
        self.get(kind)?.try_into().ok()
    }

    /// The value of the first attribute of this kind, if it has 2 bytes; host byte order.
    pub fn u16(self, kind: u16) -> Option<u16> {
        self.array(kind).map(u16::from_ne_bytes)
    }

    /// The value of the first attribute of this kind, if it has 4 bytes; host byte order.
    pub fn u32(self, kind: u16) -> Option<u32> {
        self.array(kind).map(u32::from_ne_bytes)
    }

    /// The attributes inside the first attribute of this kind.
    pub fn nested(self, kind: u16) -> Option<Self> {
        self.get(kind).map(Self)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let header: &[u8; HEADER_LEN] = self.0.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & KIND_MASK;
        let value = self.0.get(HEADER_LEN..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_padded_and_its_padding_not_counted() {
        let mut bytes = Vec::new();
        put(&mut bytes, 6, &[9]);
        assert_eq!(bytes, [&5u16.to_ne_bytes()[..], &6u16.to_ne_bytes(), &[9, 0, 0, 0]].concat());
        assert_eq!(Attributes(&bytes).get(6), Some(&[9][..]));
        // the last attribute of a message may lack its padding
        assert_eq!(Attributes(&bytes[..5]).get(6), Some(&[9][..]));
    }

    #[test]
    fn a_value_of_another_length_is_no_number() {
        let mut bytes = Vec::new();
        put(&mut bytes, 1, &[1, 2, 3]);
        put(&mut bytes, 2, &7u32.to_ne_bytes());
        let attributes = Attributes(&bytes);
        assert_eq!((attributes.u32(1), attributes.u16(1), attributes.array(1)), (None, None, Some([1, 2, 3])));
        assert_eq!((attributes.u32(2), attributes.u32(3)), (Some(7), None));
    }

    #[test]
    fn reading_ends_at_a_length_that_is_impossible() {
        for length in [0u16, 3, 9] {
            let bytes = [&length.to_ne_bytes()[..], &1u16.to_ne_bytes(), &[0; 4]].concat();
            assert_eq!(Attributes(&bytes).next(), None, "length {length}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let attributes = Attributes(&bytes);
            let values: usize = attributes.map(|(_, value)| HEADER_LEN + value.len()).sum();
            prop_assert!(values <= bytes.len());
            let _ = (attributes.u16(1), attributes.u32(2), attributes.nested(3).map(Iterator::count));
        }
    }
}
