//! Radiotap header (radiotap.org, "Radiotap" version 0): precedes an 802.11 frame in a capture.
//!
//! ```text
//!  0     1     2       4          8               16      17     18        20        22       23
//! +-----+-----+-------+----------+---------------+-------+------+---------+---------+--------+----------------+
//! | v=0 | pad | length| present  | TSFT us       | flags | rate | channel | ch.flags| signal | MCS / VHT / HE |
//! +-----+-----+-------+----------+---------------+-------+------+---------+---------+--------+----------------+
//! ```
//! TSFT is the end of the frame, not its first bit as radiotap.org has it: Wireshark takes it so by default (`wlan_radio.tsf_at_end`),
//! and its inter-frame spaces are wrong otherwise. All fields are little-endian and aligned to their size from the start of the header. The writer emits
//! TSFT (bit 0), flags (1), rate (2) or in its place MCS (19), VHT (21) or HE (23); channel (3) for a radio in a Wi-Fi band; antenna
//! signal in dBm (5) for a frame with one receiver that is switched on, and after it, where the SINR is known, noise with interference in
//! dBm (6); between MCS and VHT or HE the A-MPDU status (20) of an MPDU of an A-MPDU.
//! Not supported: any other field, a second present word. Rates above 127.5 Mbit/s do not fit the rate field.

use super::{array, check_len, Malformed, Result};
use crate::phy::mode::{Family, GuardInterval, Mcs, Mode};

const PRESENT_BASE: u32 = 0b011;
const PRESENT_RATE: u32 = 1 << 2;
const PRESENT_CHANNEL: u32 = 1 << 3;
const PRESENT_SIGNAL: u32 = 1 << 5;
const PRESENT_NOISE: u32 = 1 << 6;
const PRESENT_MCS: u32 = 1 << 19;
const PRESENT_AMPDU: u32 = 1 << 20;
const PRESENT_VHT: u32 = 1 << 21;
const PRESENT_HE: u32 = 1 << 23;
const MCS_LEN: usize = 3;
/// Reference number u32, flags u16, CRC of the delimiter u8 (not known), reserved u8 (radiotap.org, "A-MPDU status").
const AMPDU_LEN: usize = 8;
/// A-MPDU status, "flags": it is known which subframe is the last; this one is.
const AMPDU_LAST_KNOWN: u16 = 0x0004;
const AMPDU_IS_LAST: u16 = 0x0008;
/// Length of VHT and of HE.
const VHT_LEN: usize = 12;
/// MCS, "known": bandwidth, MCS index, guard interval, HT format.
const MCS_KNOWN: u8 = 0x0f;
/// MCS, "flags": 40 MHz; short guard interval.
const MCS_40_MHZ: u8 = 0x01;
const MCS_SHORT_GUARD: u8 = 0x04;
/// VHT, "known": guard interval, bandwidth.
const VHT_KNOWN: u16 = 0x0044;
const VHT_SHORT_GUARD: u8 = 0x04;
/// VHT, "bandwidth": of 20, 40 and 80 MHz.
const VHT_BANDWIDTHS: [(u16, u8); 3] = [(20, 0), (40, 1), (80, 4)];
/// HE, "data1": an HE SU PPDU whose MCS and width are known.
const HE_DATA1: u16 = 0x4020;
/// HE, "data2": guard interval and number of HE-LTFs are known.
const HE_DATA2: u16 = 0x0006;
/// HE, the width in "data5": 20, 40 and 80 MHz.
const HE_BANDWIDTHS: [u16; 3] = [20, 40, 80];
/// HE, the guard interval in "data5": 0.8, 1.6 and 3.2 us. The HE-LTFs are 2x (2), with 3.2 us 4x (3).
const HE_GUARDS: [GuardInterval; 3] = [GuardInterval::Long, GuardInterval::Double, GuardInterval::Quadruple];
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
}

/// What the frame was sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// A rate in units of 500 kbit/s.
    Legacy(u8),
    /// HT-mixed format.
    Ht {
        /// 0 to 76; 8 to 15 have two streams.
        mcs: u8,
        /// 40 MHz wide; else 20.
        wide: bool,
        /// Guard interval of 400 ns.
        short_guard: bool,
    },
    /// VHT of one user.
    Vht {
        /// 0 to 15 in the field.
        mcs: u8,
        /// 1 to 15 in the field.
        streams: u8,
        /// 20, 40 or 80.
        width_mhz: u16,
        /// Guard interval of 400 ns.
        short_guard: bool,
    },
    /// HE SU.
    He {
        /// 0 to 15 in the field.
        mcs: u8,
        /// 1 or 2.
        streams: u8,
        /// 20, 40 or 80.
        width_mhz: u16,
        /// Guard interval, not the short one.
        guard: GuardInterval,
    },
}

impl Rate {
    /// The fields of a mode. Radiotap's field of S1G is of another kind: it has the rate.
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::Mcs(Mcs { family: Family::Ht, mcs, width_mhz, guard, streams }) => {
                let mcs = mcs + 8 * (streams - 1);
                Self::Ht { mcs, wide: width_mhz == 40, short_guard: guard == GuardInterval::Short }
            }
            Mode::Mcs(Mcs { family: Family::Vht, mcs, width_mhz, guard, streams }) => {
                Self::Vht { mcs, streams, width_mhz, short_guard: guard == GuardInterval::Short }
            }
            Mode::Mcs(Mcs { family: Family::He, mcs, width_mhz, guard, streams }) => {
                Self::He { mcs, streams, width_mhz, guard }
            }
            other => Self::Legacy(rate_500k(other.rate_bps())),
        }
    }
}

/// Status of an MPDU of an A-MPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ampdu {
    /// The same for all MPDUs of an A-MPDU, another one for the next.
    pub reference: u32,
    /// Whether it is the last.
    pub is_last: bool,
}

/// Where the optional fields begin, and the end of the header.
struct Fields {
    channel: usize,
    signal: usize,
    noise: usize,
    rate: usize,
    ampdu: usize,
    end: usize,
}

impl Fields {
    fn of(present: u32) -> Self {
        let has = |bit: u32| present & bit != 0;
        let base = if has(PRESENT_RATE) { field::RATE + 1 } else { field::RATE };
        let channel = base.next_multiple_of(2);
        let signal = if has(PRESENT_CHANNEL) { channel + 4 } else { base };
        let noise = signal + usize::from(has(PRESENT_SIGNAL));
        let after = noise + usize::from(has(PRESENT_NOISE));
        let after_mcs = after + if has(PRESENT_MCS) { MCS_LEN } else { 0 };
        let ampdu = after_mcs.next_multiple_of(4);
        let after_ampdu = if has(PRESENT_AMPDU) { ampdu + AMPDU_LEN } else { after_mcs };
        let vht = after_ampdu.next_multiple_of(2);
        let (rate, end) = match (has(PRESENT_MCS), has(PRESENT_VHT | PRESENT_HE)) {
            (true, _) => (after, after_ampdu),
            (_, true) => (vht, vht + VHT_LEN),
            _ => (field::RATE, after_ampdu),
        };
        Self { channel, signal, noise, rate, ampdu, end }
    }
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
    /// Rate, or MCS.
    pub rate: Rate,
    /// Centre frequency in MHz, and channel flags.
    pub channel: Option<(u16, u16)>,
    /// Power at the receiver, dBm.
    pub signal_dbm: Option<i8>,
    /// Noise and interference there, dBm.
    pub noise_dbm: Option<i8>,
    /// Of an MPDU of an A-MPDU.
    pub ampdu: Option<Ampdu>,
}

impl Repr {
    /// Parses a header; returns it with the bytes that follow.
    ///
    /// # Errors
    /// Fields, version, length or flags that this file does not write, or too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8])> {
        check_len(bytes, field::RATE)?;
        let length = usize::from(u16::from_le_bytes(array(bytes, field::LENGTH)));
        let present = u32::from_le_bytes(array(bytes, field::PRESENT));
        let rates = present & (PRESENT_RATE | PRESENT_MCS | PRESENT_VHT | PRESENT_HE);
        let others = present & !(PRESENT_CHANNEL | PRESENT_SIGNAL | PRESENT_NOISE | PRESENT_AMPDU | rates);
        if others != PRESENT_BASE || rates.count_ones() != 1 {
            return Err(Malformed("radiotap fields that we do not write"));
        }
        let fields = Fields::of(present);
        check_len(bytes, fields.end)?;
        if bytes[0] != 0
            || bytes[1] != 0
            || length != fields.end
            || bytes[field::FLAGS] & !(FLAG_SHORT_PREAMBLE | FLAG_FCS) != 0
        {
            return Err(Malformed("radiotap version, length or flags that we do not write"));
        }
        let channel = (present & PRESENT_CHANNEL != 0).then(|| {
            let word = |at: usize| u16::from_le_bytes(array(bytes, at..at + 2));
            (word(fields.channel), word(fields.channel + 2))
        });
        let repr = Self {
            tsft_us: u64::from_le_bytes(array(bytes, field::TSFT)),
            short_preamble: bytes[field::FLAGS] & FLAG_SHORT_PREAMBLE != 0,
            fcs: bytes[field::FLAGS] & FLAG_FCS != 0,
            rate: parse_rate(rates, &bytes[fields.rate..])?,
            channel,
            signal_dbm: (present & PRESENT_SIGNAL != 0).then(|| bytes[fields.signal] as i8),
            noise_dbm: (present & PRESENT_NOISE != 0).then(|| bytes[fields.noise] as i8),
            ampdu: (present & PRESENT_AMPDU != 0).then(|| parse_ampdu(&bytes[fields.ampdu..])).transpose()?,
        };
        Ok((repr, &bytes[fields.end..]))
    }

    fn present(&self) -> u32 {
        let rate = match self.rate {
            Rate::Legacy(_) => PRESENT_RATE,
            Rate::Ht { .. } => PRESENT_MCS,
            Rate::Vht { .. } => PRESENT_VHT,
            Rate::He { .. } => PRESENT_HE,
        };
        let optional = [
            (self.channel.is_some(), PRESENT_CHANNEL),
            (self.signal_dbm.is_some(), PRESENT_SIGNAL),
            (self.noise_dbm.is_some(), PRESENT_NOISE),
            (self.ampdu.is_some(), PRESENT_AMPDU),
        ];
        PRESENT_BASE | rate | optional.iter().map(|(there, bit)| if *there { *bit } else { 0 }).sum::<u32>()
    }

    /// Length of the header, bytes.
    pub fn buffer_len(&self) -> usize {
        Fields::of(self.present()).end
    }

    /// Writes the header to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than `buffer_len()`.
    pub fn emit(&self, out: &mut [u8]) {
        let present = self.present();
        let fields = Fields::of(present);
        out[..fields.end].fill(0);
        out[field::LENGTH].copy_from_slice(&(fields.end as u16).to_le_bytes());
        out[field::PRESENT].copy_from_slice(&present.to_le_bytes());
        out[field::TSFT].copy_from_slice(&self.tsft_us.to_le_bytes());
        let flags = [(self.short_preamble, FLAG_SHORT_PREAMBLE), (self.fcs, FLAG_FCS)];
        out[field::FLAGS] = flags.iter().map(|(set, flag)| if *set { *flag } else { 0 }).sum();
        if let Some((mhz, flags)) = self.channel {
            out[fields.channel..fields.channel + 2].copy_from_slice(&mhz.to_le_bytes());
            out[fields.channel + 2..fields.channel + 4].copy_from_slice(&flags.to_le_bytes());
        }
        if let Some(signal_dbm) = self.signal_dbm {
            out[fields.signal] = signal_dbm as u8;
        }
        if let Some(noise_dbm) = self.noise_dbm {
            out[fields.noise] = noise_dbm as u8;
        }
        if let Some(Ampdu { reference, is_last }) = self.ampdu {
            let flags = AMPDU_LAST_KNOWN | if is_last { AMPDU_IS_LAST } else { 0 };
            out[fields.ampdu..fields.ampdu + 4].copy_from_slice(&reference.to_le_bytes());
            out[fields.ampdu + 4..fields.ampdu + 6].copy_from_slice(&flags.to_le_bytes());
        }
        emit_rate(self.rate, &mut out[fields.rate..fields.end]);
    }
}

fn emit_rate(rate: Rate, out: &mut [u8]) {
    match rate {
        Rate::Legacy(rate_500k) => out[0] = rate_500k,
        Rate::Ht { mcs, wide, short_guard } => {
            let flags = [(wide, MCS_40_MHZ), (short_guard, MCS_SHORT_GUARD)];
            out[0] = MCS_KNOWN;
            out[1] = flags.iter().map(|(set, flag)| if *set { *flag } else { 0 }).sum();
            out[2] = mcs;
        }
        Rate::Vht { mcs, streams, width_mhz, short_guard } => {
            out[..2].copy_from_slice(&VHT_KNOWN.to_le_bytes());
            out[2] = if short_guard { VHT_SHORT_GUARD } else { 0 };
            out[3] = VHT_BANDWIDTHS.iter().find(|(mhz, _)| *mhz == width_mhz).map_or(0, |(_, code)| *code);
            out[4] = mcs << 4 | streams & 0x0f;
        }
        Rate::He { mcs, streams, width_mhz, guard } => {
            let words = he_words(mcs, streams, width_mhz, guard);
            out.chunks_exact_mut(2).zip(words).for_each(|(out, word)| out.copy_from_slice(&word.to_le_bytes()));
        }
    }
}

/// "data1" to "data6" of HE.
fn he_words(mcs: u8, streams: u8, width_mhz: u16, guard: GuardInterval) -> [u16; 6] {
    let code = |found: Option<usize>| found.unwrap_or(0) as u16;
    let (bandwidth, gap) = (
        code(HE_BANDWIDTHS.iter().position(|mhz| *mhz == width_mhz)),
        code(HE_GUARDS.iter().position(|one| *one == guard)),
    );
    let ltf_size = if guard == GuardInterval::Quadruple { 3 } else { 2 };
    // of one stream one HE-LTF (0), of two two (1)
    let ltfs = u16::from(streams) - 1;
    let data5 = bandwidth | gap << 4 | ltf_size << 6 | ltfs << 8;
    [HE_DATA1, HE_DATA2, u16::from(mcs) << 8, 0, data5, streams.into()]
}

fn parse_he(bytes: &[u8]) -> Result<Rate> {
    let word = |n: usize| u16::from_le_bytes(array(bytes, 2 * n..2 * n + 2));
    let width = HE_BANDWIDTHS.get(usize::from(word(4) & 0x0f));
    let guard = HE_GUARDS.get(usize::from(word(4) >> 4 & 0x03));
    let (mcs, streams) = ((word(2) >> 8) as u8, word(5) as u8);
    if let (Some(&width_mhz), Some(&guard), 1..=2) = (width, guard, streams) {
        if mcs <= 0x0f && (0..6).map(word).eq(he_words(mcs, streams, width_mhz, guard)) {
            return Ok(Rate::He { mcs, streams, width_mhz, guard });
        }
    }
    Err(Malformed("radiotap HE fields that we do not write"))
}

fn parse_rate(present: u32, bytes: &[u8]) -> Result<Rate> {
    match present {
        PRESENT_RATE => Ok(Rate::Legacy(bytes[0])),
        PRESENT_MCS if bytes[0] == MCS_KNOWN && bytes[1] & !(MCS_40_MHZ | MCS_SHORT_GUARD) == 0 => Ok(Rate::Ht {
            mcs: bytes[2],
            wide: bytes[1] & MCS_40_MHZ != 0,
            short_guard: bytes[1] & MCS_SHORT_GUARD != 0,
        }),
        PRESENT_VHT if bytes[..2] == VHT_KNOWN.to_le_bytes() && bytes[2] & !VHT_SHORT_GUARD == 0 => {
            let width = VHT_BANDWIDTHS.iter().find(|(_, code)| *code == bytes[3]);
            let (width_mhz, _) = width.ok_or(Malformed("a VHT bandwidth that we do not write"))?;
            let (mcs, streams) = (bytes[4] >> 4, bytes[4] & 0x0f);
            Ok(Rate::Vht { mcs, streams, width_mhz: *width_mhz, short_guard: bytes[2] != 0 })
        }
        PRESENT_HE => parse_he(bytes),
        _ => Err(Malformed("radiotap MCS or VHT fields that we do not write")),
    }
}

fn parse_ampdu(bytes: &[u8]) -> Result<Ampdu> {
    let (reference, flags) = (u32::from_le_bytes(array(bytes, 0..4)), u16::from_le_bytes(array(bytes, 4..6)));
    if flags & !AMPDU_IS_LAST != AMPDU_LAST_KNOWN || bytes[6..AMPDU_LEN] != [0, 0] {
        return Err(Malformed("a radiotap A-MPDU status that we do not write"));
    }
    Ok(Ampdu { reference, is_last: flags & AMPDU_IS_LAST != 0 })
}

/// The field of signal or noise for a power: whole dBm, limited to -128 to 127.
pub fn signal_dbm(power_dbm: f64) -> i8 {
    power_dbm.round().clamp(i8::MIN.into(), i8::MAX.into()) as i8
}

/// The rate field for a rate in bit/s, limited to 127.5 Mbit/s.
fn rate_500k(rate_bps: u64) -> u8 {
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
        rate: Rate::Legacy(4),
        channel: Some((2412, CHANNEL_2_GHZ | CHANNEL_CCK)),
        signal_dbm: None,
        noise_dbm: None,
        ampdu: None,
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
        // and noise of -95 dBm (0xa1, bit 6)
        let with_noise = Repr { noise_dbm: Some(-95), ..repr };
        let mut noise_bytes = [&SIGNAL_BYTES[..], &[0xa1]].concat();
        (noise_bytes[2], noise_bytes[4]) = (24, 0x6f);
        assert_eq!(Repr::parse(&noise_bytes), Ok((with_noise, &[][..])));
        let mut out = [0xa5; 24];
        with_noise.emit(&mut out);
        assert_eq!(out[..], noise_bytes);
    }

    #[test]
    fn golden_bytes_of_ht_vht_and_he() {
        let with = |rate| Repr { rate, fcs: true, signal_dbm: Some(-60), ..REPR };
        let bytes = |repr: Repr| {
            let mut out = vec![0xa5; repr.buffer_len()];
            repr.emit(&mut out);
            out
        };
        // by hand after radiotap.org: no rate, so that byte 17 is padding; MCS (bit 19): known, flags, index
        let ht = with(Rate::Ht { mcs: 15, wide: true, short_guard: true });
        let tsft = [0x40, 0x42, 0x0f, 0, 0, 0, 0, 0];
        let head = |len, present: [u8; 4]| {
            [&[0, 0, len, 0][..], &present, &tsft, &[0x10, 0, 0x6c, 0x09, 0xa0, 0x00, 0xc4]].concat()
        };
        assert_eq!(bytes(ht), [&head(26, [0x2b, 0, 0x08, 0])[..], &[0x0f, 0x05, 15]].concat());
        // VHT (bit 21), aligned to 2: known, flags, bandwidth 4 (80 MHz), MCS 9 of one stream
        let vht = with(Rate::Vht { mcs: 9, streams: 1, width_mhz: 80, short_guard: false });
        let field = [0x44, 0, 0, 4, 0x91, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes(vht), [&head(36, [0x2b, 0, 0x20, 0])[..], &[0], &field].concat());
        // HE (bit 23), aligned to 2: MCS and width known; GI, LTFs known; MCS 11; 80 MHz, 1.6 us, 2x, two HE-LTFs; two streams
        let he = with(Rate::He { mcs: 11, streams: 2, width_mhz: 80, guard: GuardInterval::Double });
        let he_field = [0x20, 0x40, 0x06, 0, 0, 11, 0, 0, 0x92, 0x01, 2, 0];
        assert_eq!(bytes(he), [&head(36, [0x2b, 0, 0x80, 0])[..], &[0], &he_field].concat());
        // A-MPDU status (bit 20), aligned to 4: reference 0x01020304, last known and last (0x0c), no CRC
        let last = Some(Ampdu { reference: 0x0102_0304, is_last: true });
        let status = [4, 3, 2, 1, 0x0c, 0, 0, 0];
        let ht_last = Repr { ampdu: last, ..ht };
        let padded = [0x0f, 0x05, 15, 0, 0];
        assert_eq!(bytes(ht_last), [&head(36, [0x2b, 0, 0x18, 0])[..], &padded, &status].concat());
        let vht_last = Repr { ampdu: last, ..vht };
        assert_eq!(bytes(vht_last), [&head(44, [0x2b, 0, 0x30, 0])[..], &[0], &status, &field].concat());
        let he_last = Repr { ampdu: last, ..he };
        assert_eq!(bytes(he_last), [&head(44, [0x2b, 0, 0x90, 0])[..], &[0], &status, &he_field].concat());
        let vht_first = Repr { ampdu: last.map(|one| Ampdu { is_last: false, ..one }), ..vht };
        assert_eq!(bytes(vht_first)[28..30], [0x04, 0]);
        let all = [ht, vht, he, ht_last, vht_last, he_last, vht_first];
        assert!(all.iter().all(|repr| Repr::parse(&bytes(*repr)) == Ok((*repr, &[][..]))));
        let mut unknown = bytes(vht_first);
        unknown[28] = 0;
        assert!(Repr::parse(&unknown).is_err(), "the last subframe is always known");
        let mut coded = bytes(he);
        coded[24] |= 0x80;
        assert!(Repr::parse(&coded).is_err(), "the code is never known");
        for whole in [bytes(ht_last), bytes(he_last)] {
            assert!((0..whole.len()).all(|n| Repr::parse(&whole[..n]).is_err()));
        }
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

    fn rates() -> impl Strategy<Value = Rate> {
        prop_oneof![
            any::<u8>().prop_map(Rate::Legacy),
            (0..16u8, any::<bool>(), any::<bool>()).prop_map(|(mcs, wide, short_guard)| Rate::Ht {
                mcs,
                wide,
                short_guard
            }),
            (0..10u8, 1..3u8, prop::sample::select(vec![20, 40, 80]), any::<bool>())
                .prop_map(|(mcs, streams, width_mhz, short_guard)| Rate::Vht { mcs, streams, width_mhz, short_guard }),
            (0..12u8, 1..3u8, prop::sample::select(HE_BANDWIDTHS.to_vec()), prop::sample::select(HE_GUARDS.to_vec()))
                .prop_map(|(mcs, streams, width_mhz, guard)| Rate::He { mcs, streams, width_mhz, guard }),
        ]
    }

    proptest! {
        #[test]
        fn round_trip(tsft_us: u64, short_preamble: bool, fcs: bool, rate in rates(), channel: Option<(u16, u16)>, signal_dbm: Option<i8>, noise_dbm: Option<i8>, ampdu: Option<(u32, bool)>) {
            let ampdu = ampdu.map(|(reference, is_last)| Ampdu { reference, is_last });
            let repr = Repr { tsft_us, short_preamble, fcs, rate, channel, signal_dbm, noise_dbm, ampdu };
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
