//! Messages between the kernel's mac80211_hwsim and its medium: generic netlink, family `MAC80211_HWSIM`, version 1
//! (Linux drivers/net/wireless/virtual/mac80211_hwsim.h; before 6.4 one folder up).

use super::{MacAddress, Malformed, Result};
use manet_netlink::{Attributes, Builder};

/// Name of the generic netlink family.
pub const FAMILY: &str = "MAC80211_HWSIM";
const VERSION: u8 = 1;

/// Commands of the family (HWSIM_CMD_*).
pub mod command {
    /// Become the medium of all radios in the network namespace.
    pub const REGISTER: u8 = 1;
    /// A frame, in both directions.
    pub const FRAME: u8 = 2;
    /// The outcome of a frame.
    pub const TX_INFO_FRAME: u8 = 3;
    /// Create a radio.
    pub const NEW_RADIO: u8 = 4;
}

mod attribute {
    pub const ADDR_RECEIVER: u16 = 1;
    pub const ADDR_TRANSMITTER: u16 = 2;
    pub const FRAME: u16 = 3;
    pub const FLAGS: u16 = 4;
    pub const RX_RATE: u16 = 5;
    pub const SIGNAL: u16 = 6;
    pub const TX_INFO: u16 = 7;
    pub const COOKIE: u16 = 8;
    pub const CHANNELS: u16 = 9;
    pub const REG_CUSTOM_REG: u16 = 12;
    pub const DESTROY_RADIO_ON_CLOSE: u16 = 16;
    pub const RADIO_NAME: u16 = 17;
    pub const NO_VIF: u16 = 18;
    pub const FREQ: u16 = 19;
    pub const TX_INFO_FLAGS: u16 = 21;
    pub const PERM_ADDR: u16 = 22;
}

/// Flags of a rate (enum hwsim_tx_rate_flags).
pub mod rate_flag {
    /// The index is that of an MCS of HT, 0 to 31.
    pub const MCS: u16 = 1 << 3;
    /// 40 MHz.
    pub const WIDTH_40_MHZ: u16 = 1 << 5;
    /// The short guard interval.
    pub const SHORT_GUARD: u16 = 1 << 7;
    /// The index holds MCS and streams of VHT.
    pub const VHT_MCS: u16 = 1 << 8;
}

/// A set of rules of the radio's own (hwsim_world_regdom_custom_01) that lets it send at 5150 to 5240 MHz without another's beacon.
const FREE_5_GHZ: u32 = 0;

/// Flag of a status: the frame was acknowledged (HWSIM_TX_STAT_ACK).
pub const ACKED: u32 = 4;
/// Maximum number of rates for a frame (IEEE80211_TX_MAX_RATES).
pub const STAGES: usize = 4;

/// A step of the kernel's rate control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index into the legacy rates of the band, or by the flags an MCS; -1: no step.
    pub index: i8,
    /// Number of tries at this rate.
    pub tries: u8,
    /// Of [`rate_flag`].
    pub flags: u16,
}
/// An unused step.
pub const NO_STEP: Step = Step { index: -1, tries: 0, flags: 0 };

/// A frame that a radio is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// Address of the radio.
    pub transmitter: MacAddress,
    /// 802.11 header and body without FCS.
    pub frame: &'a [u8],
    /// HWSIM_TX_CTL_* flags, returned in the status.
    pub flags: u32,
    /// The kernel's identifier of the frame, returned in the status.
    pub cookie: u64,
    /// Rates to try, in order.
    pub steps: [Step; STAGES],
    /// Centre frequency, MHz.
    pub freq_mhz: u32,
}

fn value<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Malformed("an attribute of the wrong length"))
}

impl<'a> Transmit<'a> {
    /// Reads the attributes of a [`command::FRAME`].
    ///
    /// # Errors
    /// An attribute of the wrong length, or no address, frame or cookie.
    pub fn parse(attributes: Attributes<'a>) -> Result<Self> {
        let (mut transmitter, mut frame, mut cookie) = (None, None, None);
        let (mut flags, mut freq_mhz, mut steps) = (0, 0, [NO_STEP; STAGES]);
        for (kind, bytes) in attributes {
            match kind {
                attribute::ADDR_TRANSMITTER => transmitter = Some(value(bytes)?),
                attribute::FRAME => frame = Some(bytes),
                attribute::COOKIE => cookie = Some(u64::from_ne_bytes(value(bytes)?)),
                attribute::FLAGS => flags = u32::from_ne_bytes(value(bytes)?),
                attribute::FREQ => freq_mhz = u32::from_ne_bytes(value(bytes)?),
                attribute::TX_INFO => {
                    for (step, pair) in steps.iter_mut().zip(bytes.chunks_exact(2)) {
                        (step.index, step.tries) = (pair[0] as i8, pair[1]);
                    }
                }
                // struct hwsim_tx_rate_flag, packed: the index again, then the flags
                attribute::TX_INFO_FLAGS => {
                    for (step, each) in steps.iter_mut().zip(bytes.chunks_exact(3)) {
                        step.flags = u16::from_ne_bytes([each[1], each[2]]);
                    }
                }
                _ => {}
            }
        }
        let missing = Malformed("a frame without address, content or cookie");
        Ok(Self {
            transmitter: transmitter.ok_or(missing)?,
            frame: frame.ok_or(missing)?,
            cookie: cookie.ok_or(missing)?,
            flags,
            steps,
            freq_mhz,
        })
    }
}

/// Request to become the medium. `family`: number of the family.
pub fn register(family: u16) -> Builder {
    Builder::generic(family, command::REGISTER, VERSION)
}

/// Request for a radio without an interface, removed when the socket is closed. The number in the acknowledgement is that
/// of the radio. `in_5_ghz`: it is to send there, which the kernel's rules for the world allow an access point's stations only.
pub fn new_radio(family: u16, name: &str, address: &MacAddress, in_5_ghz: bool) -> Builder {
    let request = Builder::generic(family, command::NEW_RADIO, VERSION);
    let request = if in_5_ghz { request.put_u32(attribute::REG_CUSTOM_REG, FREE_5_GHZ) } else { request };
    request
        .put(attribute::PERM_ADDR, address)
        .put(attribute::RADIO_NAME, name.as_bytes())
        .put_u32(attribute::CHANNELS, 1)
        .put(attribute::DESTROY_RADIO_ON_CLOSE, &[])
        .put(attribute::NO_VIF, &[])
}

/// A frame that the radio with address `receiver` receives; `rate_index`: into the legacy rates of the band.
pub fn receive(
    family: u16,
    receiver: &MacAddress,
    frame: &[u8],
    rate_index: u32,
    signal_dbm: i32,
    freq_mhz: u32,
) -> Vec<u8> {
    Builder::generic(family, command::FRAME, VERSION)
        .put(attribute::ADDR_RECEIVER, receiver)
        .put(attribute::FRAME, frame)
        .put_u32(attribute::RX_RATE, rate_index)
        .put_u32(attribute::SIGNAL, signal_dbm as u32)
        .put_u32(attribute::FREQ, freq_mhz)
        .finish(0)
}

/// The outcome of a frame; `steps`: the tries actually made. The kernel keeps the flags of its request, step by step.
pub fn status(
    family: u16,
    transmitter: &MacAddress,
    flags: u32,
    signal_dbm: i32,
    steps: &[Step; STAGES],
    cookie: u64,
) -> Vec<u8> {
    let mut pairs = [0; 2 * STAGES];
    for (pair, step) in pairs.chunks_exact_mut(2).zip(steps) {
        pair.copy_from_slice(&[step.index as u8, step.tries]);
    }
    Builder::generic(family, command::TX_INFO_FRAME, VERSION)
        .put(attribute::ADDR_TRANSMITTER, transmitter)
        .put_u32(attribute::FLAGS, flags)
        .put_u32(attribute::SIGNAL, signal_dbm as u32)
        .put(attribute::TX_INFO, &pairs)
        .put(attribute::COOKIE, &cookie.to_ne_bytes())
        .finish(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_netlink::Messages;
    use proptest::prelude::*;

    fn from_kernel(steps: &[u8], flags: &[u8]) -> Vec<u8> {
        Builder::generic(30, command::FRAME, VERSION)
            .put(attribute::ADDR_TRANSMITTER, &[2, 0, 0, 0, 0, 1])
            .put(attribute::FRAME, b"frame")
            .put_u32(attribute::FLAGS, 2)
            .put_u32(attribute::FREQ, 2412)
            .put(attribute::TX_INFO, steps)
            .put(attribute::TX_INFO_FLAGS, flags)
            .put(attribute::COOKIE, &77u64.to_ne_bytes())
            .finish(0)
    }

    fn generic(bytes: &[u8]) -> (u8, Attributes<'_>) {
        Messages(bytes).next().and_then(|message| message.generic()).unwrap()
    }

    #[test]
    fn a_frame_from_the_kernel_is_read_completely() {
        let bytes = from_kernel(&[1, 1, 7, 2, 0xff, 0, 0xff, 0], &[1, 0, 0, 7, 0xa8, 0, 0xff, 0, 0, 0xff, 0, 0]);
        let (_, attributes) = generic(&bytes);
        let t = Transmit::parse(attributes).unwrap();
        assert_eq!((t.frame, t.flags, t.cookie, t.freq_mhz), (&b"frame"[..], 2, 77, 2412));
        let flags = rate_flag::MCS | rate_flag::WIDTH_40_MHZ | rate_flag::SHORT_GUARD;
        let mcs = Step { index: 7, tries: 2, flags };
        assert_eq!(t.steps[..3], [Step { index: 1, tries: 1, flags: 0 }, mcs, NO_STEP]);
    }

    #[test]
    fn a_frame_without_a_cookie_cannot_be_answered_and_is_refused() {
        let bytes = Builder::generic(30, command::FRAME, VERSION).put(attribute::FRAME, b"x").finish(0);
        let (_, attributes) = generic(&bytes);
        assert!(Transmit::parse(attributes).is_err());
    }

    #[test]
    fn a_status_has_all_attributes_that_the_kernel_requires() {
        let steps = [Step { index: 1, tries: 3, flags: 0 }, NO_STEP, NO_STEP, NO_STEP];
        let bytes = status(30, &[2, 0, 0, 0, 0, 1], ACKED, -60, &steps, 77);
        let (command, attributes) = generic(&bytes);
        assert_eq!(command, command::TX_INFO_FRAME);
        let kinds: Vec<u16> = attributes.map(|(kind, _)| kind).collect();
        assert_eq!(
            kinds,
            [attribute::ADDR_TRANSMITTER, attribute::FLAGS, attribute::SIGNAL, attribute::TX_INFO, attribute::COOKIE]
        );
    }

    proptest! {
        #[test]
        fn nothing_panics_whatever_the_attributes(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Transmit::parse(Attributes(&bytes));
        }
    }
}
