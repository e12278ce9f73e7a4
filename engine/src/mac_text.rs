//! MAC addresses as `02:00:00:00:00:01`.

use serde::{de::Error, Deserialize, Deserializer, Serializer};

/// `02:00:00:00:00:01`.
pub fn format(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

/// Parses `02:00:00:00:00:01`; `None` for anything else.
pub fn parse(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(mac: &[u8; 6], s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&format(*mac))
}

/// For `#[serde(with)]`.
///
/// # Errors
/// A string that is not a MAC address.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<[u8; 6], D::Error> {
    let text = String::deserialize(d)?;
    parse(&text).ok_or_else(|| D::Error::custom(format!("\"{text}\" is no MAC address like 02:00:00:00:00:01")))
}
