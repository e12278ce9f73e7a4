//! A packet's bytes, written as hexadecimal digits in event logs.

use manet_engine::hex;
use serde::{de::Error, Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The octets in the order in which they are sent. JSON: a string of hexadecimal digits, two per octet.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Two lower-case digits per octet, without prefix.
    pub fn to_hex(&self) -> String {
        hex::encode(&self.0)
    }

    /// Reads digits of either case. `None`: the text is not an even number of hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.to_hex())
    }
}
impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_hex())
    }
}
impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::from_hex(&text).ok_or_else(|| D::Error::custom("not an even number of hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_a_round_trip_through_hexadecimal_json() {
        let bytes = Bytes(vec![0, 0x1f, 0xff]);
        assert_eq!(serde_json::to_string(&bytes).unwrap(), "\"001fff\"");
        assert_eq!(serde_json::from_str::<Bytes>("\"001fff\"").unwrap(), bytes);
        assert!(serde_json::from_str::<Bytes>("\"001\"").is_err() && serde_json::from_str::<Bytes>("\"zz\"").is_err());
    }
}
