//! Wire formats. One file for each message, with two levels: a window on bytes (`Frame<T>`, `Header<T>`) whose checked
//! constructor makes the accessors safe, and a `Repr` of the valid messages with `parse` and `emit`.
//!
//! `parse` never panics, whatever the bytes; `emit` writes every byte of `buffer_len()`.

pub mod block_ack;
pub mod dot11;
pub mod ethernet;
pub mod feedback;
pub mod flow;
pub mod hwsim;
pub mod mac80211;
pub mod pcapng;
pub mod radiotap;

use std::fmt;
use std::ops::Range;

/// A MAC address in transmission order.
pub type MacAddress = [u8; 6];
/// The broadcast address.
pub const BROADCAST: MacAddress = [0xff; 6];

/// Whether the group bit of an IEEE 802 address is set: broadcast or multicast.
pub fn is_group(address: &MacAddress) -> bool {
    address[0] & 1 == 1
}

/// A message that is not well formed, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl std::error::Error for Malformed {}

type Result<T> = std::result::Result<T, Malformed>;

/// The bytes of a field of known length. Callers have checked the length.
fn array<const N: usize>(bytes: &[u8], field: Range<usize>) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[field]);
    out
}

fn check_len(bytes: &[u8], min: usize) -> Result<()> {
    if bytes.len() < min {
        Err(Malformed("truncated"))
    } else {
        Ok(())
    }
}
