//! Length of A-MPDUs, and the limits that they must keep.

use manet_engine::Duration;

/// Longest A-MPDU that HT allows: 2^(13 + 3) - 1 bytes, Maximum A-MPDU Length Exponent 3 (IEEE 802.11-2016 9.4.2.56.3).
pub const MAX_HT_BYTES: u32 = 65_535;
/// Longest A-MPDU that VHT allows: 2^(13 + 7) - 1 bytes (9.4.2.158.2). HE allows longer ones, which 64 MPDUs do not reach (802.11ax
/// 9.4.2.248.2: 2^(20 + 3) - 1).
pub const MAX_VHT_BYTES: u32 = 1_048_575;
/// aPPDUMaxTime of HT, VHT and HE: 5.484 ms (tables 19-25 and 21-29; 802.11ax table 27-54).
pub const MAX_PPDU_TIME: Duration = Duration::from_micros(5484);
/// Length of the delimiter before each MPDU; an MPDU that another follows is padded to a multiple of it (9.7.1).
pub const DELIMITER_BYTES: u32 = 4;

/// Limits of the next A-MPDU. A single MPDU is exempt from all but `max_mpdus`: it cannot be made shorter.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// Number of MPDUs; never more than the window in effect.
    pub max_mpdus: usize,
    /// Bytes of the PSDU.
    pub max_bytes: u32,
    /// Time on the air of the PPDU.
    pub max_airtime: Duration,
    /// Time on the air of a PPDU with a PSDU of so many bytes.
    pub airtime: &'a dyn Fn(u32) -> Duration,
}

impl Room<'_> {
    fn holds(&self, psdu_bytes: u32) -> bool {
        psdu_bytes <= self.max_bytes && (self.airtime)(psdu_bytes) <= self.max_airtime
    }
}

/// Length of a PSDU to which MPDUs are added one by one.
#[derive(Clone, Copy, Default)]
pub(super) struct Length {
    /// Their number.
    pub mpdus: usize,
    /// Of one MPDU the MPDU alone, of more an A-MPDU.
    pub psdu_bytes: u32,
    /// All subframes with padding.
    padded_bytes: u32,
}

impl Length {
    /// Adds an MPDU if there is room.
    pub fn add(&mut self, room: &Room, mpdu_bytes: u32) -> bool {
        let subframe_bytes = DELIMITER_BYTES + mpdu_bytes;
        let psdu_bytes = if self.mpdus == 0 { mpdu_bytes } else { self.padded_bytes + subframe_bytes };
        if self.mpdus >= room.max_mpdus || self.mpdus > 0 && !room.holds(psdu_bytes) {
            return false;
        }
        let padded = subframe_bytes.next_multiple_of(DELIMITER_BYTES);
        *self = Length { mpdus: self.mpdus + 1, psdu_bytes, padded_bytes: self.padded_bytes + padded };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_time(_: u32) -> Duration {
        Duration::ZERO
    }

    fn room() -> Room<'static> {
        Room { max_mpdus: 64, max_bytes: MAX_HT_BYTES, max_airtime: MAX_PPDU_TIME, airtime: &any_time }
    }

    fn lengths(room: &Room, mpdus: &[u32]) -> Vec<u32> {
        let mut length = Length::default();
        mpdus.iter().filter_map(|bytes| length.add(room, *bytes).then_some(length.psdu_bytes)).collect()
    }

    #[test]
    fn all_subframes_but_the_last_are_padded() {
        // alone 1541; then delimiter 4 + 1541 + padding 3 + delimiter 4 + 14; then padding 2, delimiter, 14
        assert_eq!(lengths(&room(), &[1541, 14, 14]), [1541, 1548 + 18, 1548 + 20 + 18]);
    }

    #[test]
    fn each_limit_ends_an_aggregate() {
        // a subframe of 1536 bytes takes 1540: 42 of them 64,680 bytes, 43 66,220
        assert_eq!(lengths(&room(), &[1536; 64]).len(), 42);
        assert_eq!(lengths(&Room { max_bytes: MAX_VHT_BYTES, ..room() }, &[1536; 70]).len(), 64);
        // at 65 Mbit/s 5.484 ms carry 44,557 bytes: 28 subframes of 1540 are 43,120
        let airtime = |bytes: u32| Duration::of_bits(u64::from(bytes) * 8, 65_000_000);
        assert_eq!(lengths(&Room { airtime: &airtime, ..room() }, &[1536; 64]).len(), 28);
    }

    #[test]
    fn a_single_mpdu_is_sent_however_long_it_takes() {
        let airtime = |bytes: u32| Duration::of_bits(u64::from(bytes) * 8, 150_000);
        assert_eq!(lengths(&Room { airtime: &airtime, ..room() }, &[1536, 1536]), [1536]);
        assert!(lengths(&Room { max_mpdus: 0, ..room() }, &[1536]).is_empty());
    }
}
