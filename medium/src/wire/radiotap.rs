//! Radiotap header (radiotap.org, "Radiotap" version 0): precedes an 802.11 frame in a capture.
//!
//! ```text
//!  0     1     2       4          8               16      17     18        20        22
//! +-----+-----+-------+----------+---------------+-------+------+---------+---------+--------+
//! | v=0 | pad | length| present  | TSFT us       | flags | rate | channel | ch.flags| signal |
//! +-----+-----+-------+----------+---------------+-------+------+---------+---------+--------+
//! ```
//! TSFT is the end of the frame, not its first bit as radiotap.org has it: Wireshark takes it so by default (`wlan_radio.tsf_at_end`),
//! and its inter-frame spaces are wrong otherwise. All fields are little-endian. The writer emits TSFT (bit 0), flags (1), rate (2); channel (3) for a radio in a Wi-Fi band; antenna
//! signal in dBm (5) for a frame with one receiver that is switched on. Without a channel the signal follows the rate.
//! Not supported: any other field, a second present word. Rates above 127.5 Mbit/s do not fit the rate field.

use super::{array, check_len, Malformed, Result};

/// Length of a header without channel and signal, bytes.
pub const LEN_WITHOUT_CHANNEL: usize = 18;
/// Length of a header with channel, without signal, bytes.
pub const LEN_WITH_CHANNEL: usize = 22;

const PRESENT_BASE: u32 = 0b0111;
const PRESENT_CHANNEL: u32 = 0b1000;
const PRESENT_SIGNAL: u32 = 0b10_0000;
const FLAG_SHORT_PREAMBLE: u8 = 0x02;
const FLAG_FCS: u8 = 0x10;

/// Channel flag (radiotap.org, "Channel"): CCK (also DSSS).
pub const CHANNEL_CCK: u16 = 0x0020;
/// Channel flag: OFDM.
pub const CHANNEL_OFDM: u16 = 0x0040;
/// Channel flag: 2.4 GHz band.
pub const CHANNEL_2_GHZ: u16 = 0x0080;
/// Channel flag: 5 GHz band.
pub const CHANNEL_5_GHZ: u16 = 0x0100;

mod field {
    use std::ops::Range;
    pub const LENGTH: Range<usize> = 2..4;
    pub const PRESENT: Range<usize> = 4..8;
    pub const TSFT: Range<usize> = 8..16;
    pub const FLAGS: usize = 16;
    pub const RATE: usize = 17;
    pub const CHANNEL_MHZ: Range<usize> = 18..20;
    pub const CHANNEL_FLAGS: Range<usize> = 20..22;
}

/// A radiotap header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// End of the frame, us.
    pub tsft_us: u64,
    /// The short preamble flag.
    pub short_preamble: bool,
    /// Whether the frame ends with its FCS.
    pub fcs: bool,
    /// Rate in units of 500 kbit/s.
    pub rate_500k: u8,
    /// Centre frequency in MHz, and channel flags.
    pub channel: Option<(u16, u16)>,
    /// Power at the receiver, dBm.
    pub signal_dbm: Option<i8>,
}

impl Repr {
    /// Parses a header; returns it with the bytes that follow.
    ///
    /// # Errors
    /// Fields, version, length or flags that this file does not write, or too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8])> {
        check_len(bytes, LEN_WITHOUT_CHANNEL)?;
        let length = usize::from(u16::from_le_bytes(array(bytes, field::LENGTH)));
        let present = u32::from_le_bytes(array(bytes, field::PRESENT));
        if present & PRESENT_BASE != PRESENT_BASE || present & !(PRESENT_BASE | PRESENT_CHANNEL | PRESENT_SIGNAL) != 0 {
            return Err(Malformed("radiotap fields that we do not write"));
        }
        let (has_channel, has_signal) = (present & PRESENT_CHANNEL != 0, present & PRESENT_SIGNAL != 0);
        let expected = header_len(has_channel, has_signal);
        check_len(bytes, expected)?;
        if bytes[0] != 0
            || bytes[1] != 0
            || length != expected
            || bytes[field::FLAGS] & !(FLAG_SHORT_PREAMBLE | FLAG_FCS) != 0
        {
            return Err(Malformed("radiotap version, length or flags that we do not write"));
        }
        let channel = has_channel.then(|| {
            (
                u16::from_le_bytes(array(bytes, field::CHANNEL_MHZ)),
                u16::from_le_bytes(array(bytes, field::CHANNEL_FLAGS)),
            )
        });
        let repr = Self {
            tsft_us: u64::from_le_bytes(array(bytes, field::TSFT)),
            short_preamble: bytes[field::FLAGS] & FLAG_SHORT_PREAMBLE != 0,
            fcs: bytes[field::FLAGS] & FLAG_FCS != 0,
            rate_500k: bytes[field::RATE],
            channel,
            signal_dbm: has_signal.then(|| bytes[expected - 1] as i8),
        };
        Ok((repr, &bytes[expected..]))
    }

    /// Length of the header, bytes.
    pub const fn buffer_len(&self) -> usize {
        header_len(self.channel.is_some(), self.signal_dbm.is_some())
    }

    /// Writes the header to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than `buffer_len()`.
    pub fn emit(&self, out: &mut [u8]) {
        (out[0], out[1]) = (0, 0);
        out[field::LENGTH].copy_from_slice(&(self.buffer_len() as u16).to_le_bytes());
        let mut present = PRESENT_BASE;
        if self.channel.is_some() {
            present |= PRESENT_CHANNEL;
        }
        if let Some(signal_dbm) = self.signal_dbm {
            present |= PRESENT_SIGNAL;
            out[self.buffer_len() - 1] = signal_dbm as u8;
        }
        out[field::PRESENT].copy_from_slice(&present.to_le_bytes());
        out[field::TSFT].copy_from_slice(&self.tsft_us.to_le_bytes());
        let flags = [(self.short_preamble, FLAG_SHORT_PREAMBLE), (self.fcs, FLAG_FCS)];
        out[field::FLAGS] = flags.iter().map(|(set, flag)| if *set { *flag } else { 0 }).sum();
        out[field::RATE] = self.rate_500k;
        if let Some((mhz, flags)) = self.channel {
            out[field::CHANNEL_MHZ].copy_from_slice(&mhz.to_le_bytes());
            out[field::CHANNEL_FLAGS].copy_from_slice(&flags.to_le_bytes());
        }
    }
}

const fn header_len(channel: bool, signal: bool) -> usize {
    (if channel { LEN_WITH_CHANNEL } else { LEN_WITHOUT_CHANNEL }) + signal as usize
}

/// The signal field for a power: whole dBm, limited to -128 to 127.
pub fn signal_dbm(power_dbm: f64) -> i8 {
    power_dbm.round().clamp(i8::MIN.into(), i8::MAX.into()) as i8
}

/// The rate field for a rate in bit/s, limited to 127.5 Mbit/s.
pub fn rate_500k(rate_bps: u64) -> u8 {
    u8::try_from(rate_bps / 500_000).unwrap_or(u8::MAX)
}

/// The channel field (MHz, flags) for a carrier in a Wi-Fi band; `None` for others (ns-2's WaveLAN at 914 MHz).
pub fn channel(frequency_hz: f64, ofdm: bool) -> Option<(u16, u16)> {
    let modulation = if ofdm { CHANNEL_OFDM } else { CHANNEL_CCK };
    let mhz = (frequency_hz * 1e-6).round();
    match mhz {
        2400.0..=2500.0 => Some((mhz as u16, CHANNEL_2_GHZ | modulation)),
        4900.0..=6000.0 => Some((mhz as u16, CHANNEL_5_GHZ | modulation)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // written out by hand after radiotap.org
    const BYTES: [u8; 22] = [0, 0, 22, 0, 0x0f, 0, 0, 0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, 0, 4, 0x6c, 0x09, 0xa0, 0x00];
    const REPR: Repr = Repr {
        tsft_us: 1_000_000,
        short_preamble: false,
        fcs: false,
        rate_500k: 4,
        channel: Some((2412, CHANNEL_2_GHZ | CHANNEL_CCK)),
        signal_dbm: None,
    };
    // the same with an FCS (0x10), at -60 dBm (0xc4)
    const SIGNAL_BYTES: [u8; 23] =
        [0, 0, 23, 0, 0x2f, 0, 0, 0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, 0x10, 4, 0x6c, 0x09, 0xa0, 0x00, 0xc4];

    #[test]
    fn golden_bytes_both_ways() {
        assert_eq!(Repr::parse(&BYTES), Ok((REPR, &[][..])));
        let mut out = [0xa5; 22];
        REPR.emit(&mut out);
        assert_eq!(out, BYTES);
        let repr = Repr { fcs: true, signal_dbm: Some(-60), ..REPR };
        assert_eq!(Repr::parse(&SIGNAL_BYTES), Ok((repr, &[][..])));
        let mut out = [0xa5; 23];
        repr.emit(&mut out);
        assert_eq!(out, SIGNAL_BYTES);
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        for n in 0..BYTES.len() {
            assert!(Repr::parse(&BYTES[..n]).is_err());
            assert!(Repr::parse(&SIGNAL_BYTES[..=n]).is_err());
        }
    }

    #[test]
    fn a_carrier_outside_the_bands_has_no_channel() {
        assert_eq!(channel(914e6, false), None);
        assert_eq!(channel(2.412e9, false), REPR.channel);
        assert_eq!(channel(5.18e9, true), Some((5180, CHANNEL_5_GHZ | CHANNEL_OFDM)));
        assert_eq!((rate_500k(2_000_000), rate_500k(5_500_000), rate_500k(600_000_000)), (4, 11, 255));
    }

    #[test]
    fn a_signal_beyond_the_field_is_its_end() {
        assert_eq!([-60.4, -300.0, 400.0].map(signal_dbm), [-60, -128, 127]);
    }

    proptest! {
        #[test]
        fn round_trip(tsft_us: u64, short_preamble: bool, fcs: bool, rate_500k: u8, channel: Option<(u16, u16)>, signal_dbm: Option<i8>) {
            let repr = Repr { tsft_us, short_preamble, fcs, rate_500k, channel, signal_dbm };
            let mut out = vec![0xa5; repr.buffer_len()];
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok((repr, &[][..])));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), golden: bool) {
            let mut bytes = bytes;
            if golden {
                bytes.splice(0..0, BYTES[..12].iter().copied());
            }
            let _ = Repr::parse(&bytes);
        }
    }
}
