//! Error rates of directed links: losses that an experiment sets, in addition to collisions.
//!
//! A frame is lost at the receiver after decoding, so that the receiver defers for EIFS as after
//! any frame with a wrong FCS.

use crate::config::{ErrorFrames, ErrorUnit, Loaded};
use crate::mac::{Frame, Part};
use crate::phy::FrameKind;
use crate::wire::dot11;
use manet_engine::Stream;

/// Error rate of a link.
#[derive(Clone, Copy)]
struct Link {
    rate: f64,
    unit: ErrorUnit,
    frames: ErrorFrames,
}

const FREE_OF_ERRORS: Link = Link { rate: 0.0, unit: ErrorUnit::Frame, frames: ErrorFrames::Data };

/// Error rates of all ordered pairs of stations; a later entry of `links` overrides an earlier one.
pub struct ErrorRates {
    stations: usize,
    /// Empty while no link has an error rate.
    links: Vec<Link>,
    overhead_bytes: u32,
    /// Around the IP packet of unicast data, which may have QoS control.
    around_data: u32,
}

impl ErrorRates {
    /// The error rates of the configuration.
    pub fn new(loaded: &Loaded) -> Self {
        let n = loaded.config.stations.len();
        let overhead_bytes = loaded.radio.overhead_bytes;
        let around_data = overhead_bytes + if loaded.radio.is_qos() { dot11::QOS_CONTROL_LEN as u32 } else { 0 };
        let mut rates = Self { stations: n, links: Vec::new(), overhead_bytes, around_data };
        let index = loaded.station_index();
        let those = |name: &str| if name == "*" { 0..n } else { index[name]..index[name] + 1 };
        for link in &loaded.config.links {
            for from in those(&link.from) {
                for to in those(&link.to) {
                    *rates.link(from, to) = Link { rate: link.error_rate, unit: link.unit, frames: link.frames };
                }
            }
        }
        rates
    }

    fn link(&mut self, from: usize, to: usize) -> &mut Link {
        self.links.resize(self.stations * self.stations, FREE_OF_ERRORS);
        &mut self.links[from * self.stations + to]
    }

    /// Error rate, 0 to 1, of the link from station `from` to station `to`.
    pub fn rate(&self, from: u16, to: u16) -> f64 {
        self.of(from, to).rate
    }

    fn of(&self, from: u16, to: u16) -> Link {
        let pair = usize::from(from) * self.stations + usize::from(to);
        self.links.get(pair).copied().unwrap_or(FREE_OF_ERRORS)
    }

    /// Sets the error rate of a link, limited to 0 to 1.
    pub fn set(&mut self, from: u16, to: u16, rate: f64) {
        self.link(from.into(), to.into()).rate = rate.clamp(0.0, 1.0);
    }

    /// Whether this frame is lost at station `at`. Draws from `rng` only if the link has an error rate.
    pub fn strikes(&self, frame: &Frame, at: u16, rng: &mut Stream) -> bool {
        self.strikes_bytes(frame, frame.bytes, at, rng)
    }

    /// The MPDUs of an A-MPDU that remain of those in `mpdus`, one bit each.
    pub fn spared(&self, frame: &Frame, mpdus: u64, at: u16, rng: &mut Stream) -> u64 {
        let bit_if_spared = |(n, part): (usize, &Part)| {
            let arrived = mpdus >> n & 1 == 1;
            u64::from(arrived && !self.strikes_bytes(frame, part.bytes, at, rng)) << n
        };
        frame.aggregate().iter().enumerate().map(bit_if_spared).fold(0, |all, bit| all | bit)
    }

    fn strikes_bytes(&self, frame: &Frame, bytes: u32, at: u16, rng: &mut Stream) -> bool {
        let Link { rate, unit, frames } = self.of(frame.from, at);
        let data = matches!(frame.kind, FrameKind::Data | FrameKind::Bcast);
        if rate == 0.0 || !(data || frames == ErrorFrames::All) {
            return false;
        }
        let probability = match unit {
            ErrorUnit::Frame => rate,
            ErrorUnit::Byte => {
                let around = match frame.kind {
                    FrameKind::Data => self.around_data,
                    FrameKind::Bcast => self.overhead_bytes,
                    _ => 0,
                };
                let bytes = bytes.saturating_sub(around);
                1.0 - (1.0 - rate).powi(bytes as i32)
            }
        };
        rng.chance(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::loaded;
    use crate::mac::{Category, Dest};
    use manet_engine::random::Purpose;
    use manet_engine::Duration;
    use serde_json::json;

    fn rates(links: serde_json::Value) -> ErrorRates {
        ErrorRates::new(&loaded(|j| j["links"] = links).unwrap())
    }

    fn frame(kind: FrameKind, bytes: u32) -> Frame {
        Frame {
            kind,
            from: 0,
            dest: Dest::Station(1),
            reserves: Duration::ZERO,
            bytes,
            mode: crate::phy::Mode::Dsss(2_000_000),
            airtime: Duration::ZERO,
            ack_airtime: Duration::ZERO,
            category: Category::default(),
            sequence: 0,
            retry: false,
            attempt: 1,
            backoff_slots: 0,
            packet: None,
            block: None,
            snr_db: None,
        }
    }

    fn share_lost(rates: &ErrorRates, frame: &Frame, at: u16) -> f64 {
        let mut rng = Stream::new(1, 0, Purpose::Error);
        (0..20_000).filter(|_| rates.strikes(frame, at, &mut rng)).count() as f64 / 20_000.0
    }

    #[test]
    fn a_rate_per_frame_is_the_share_of_data_frames_lost() {
        let r = rates(json!([{"from": "sta1", "to": "sta2", "error_rate": 0.2}]));
        // 20,000 draws: 3.5 standard deviations are 0.01
        assert!((share_lost(&r, &frame(FrameKind::Data, 1534), 1) - 0.2).abs() < 0.01);
        assert!((share_lost(&r, &frame(FrameKind::Bcast, 134), 1) - 0.2).abs() < 0.01);
        assert_eq!(share_lost(&r, &frame(FrameKind::Rts, 20), 1), 0.0, "only data by default");
        let back = Frame { from: 1, ..frame(FrameKind::Data, 1534) };
        assert_eq!(share_lost(&r, &back, 0), 0.0, "a directed link");
    }

    #[test]
    fn a_rate_per_byte_counts_the_bytes_of_the_packet() {
        let r = rates(json!([{"from": "sta1", "to": "sta2", "error_rate": 0.001, "unit": "byte"}]));
        // 500 bytes and 34 around them: 1 - 0.999^500 = 0.3936
        assert!((share_lost(&r, &frame(FrameKind::Data, 534), 1) - 0.3936).abs() < 0.012);
    }

    #[test]
    fn all_frames_if_configured_and_the_last_entry_for_a_link_holds() {
        let r = rates(json!([
            {"from": "*", "to": "*", "error_rate": 0.5},
            {"from": "sta1", "to": "sta2", "error_rate": 1.0, "frames": "all"},
        ]));
        assert_eq!((r.rate(0, 1), r.rate(1, 0)), (1.0, 0.5));
        assert_eq!(share_lost(&r, &frame(FrameKind::Rts, 20), 1), 1.0);
    }
}
