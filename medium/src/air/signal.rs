//! A frame as it begins at a radio, the conditions of its reception, and the order of frames that begin at once.

use crate::config::Interference;
use crate::phy::radio::{Layout, Reception, Stretch, Threshold};
use crate::phy::Radio;
use std::cmp::Ordering;

/// A frame on the air: an index that the medium assigns and reuses.
pub type FrameId = u32;

/// A frame as it begins at one radio.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// The frame.
    pub frame: FrameId,
    /// The station that sends it.
    pub from: u16,
    /// Distance of that station, m; 0 for a frame that begins alone, which has no order.
    pub distance_m: f64,
    /// Power at this radio, W.
    pub power_w: f64,
    /// Start of the frame at this radio, ns of model time.
    pub begin_ns: u64,
    /// End of the frame at this radio, ns of model time.
    pub end_ns: u64,
}

/// The properties of a frame that decide about its reception, the same at all radios.
#[derive(Clone, Debug)]
pub struct Demands {
    /// Needed for preamble and header.
    pub header: Threshold,
    /// Needed for the MPDU.
    pub body: Threshold,
    /// Parts of the frame in time; [`Rule::Probability`] only.
    pub layout: Option<Box<Layout>>,
    /// The MPDUs of an A-MPDU, each with a fate of its own; [`Rule::Probability`] only, empty for a single MPDU.
    pub stretches: Box<[Stretch]>,
}

/// Rule of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// ns-2's.
    Ns2,
    /// Power is summed and compared with thresholds.
    Sum,
    /// Power is summed and gives a probability.
    Probability,
}

impl Rule {
    /// The rule that a configuration and its radio select.
    pub fn of(interference: Interference, radio: &Radio) -> Self {
        match (radio.reception, interference) {
            (Reception::Sinr, _) => Self::Probability,
            (Reception::Threshold, Interference::Sinr) => Self::Sum,
            (Reception::Threshold, Interference::Ns2) => Self::Ns2,
        }
    }
}

/// The order in which a radio takes frames that begin at one instant. It makes the result independent of the order of events.
///
/// ns-2: the order of arrival, the nearest sender first (`WirelessChannel::sendUp` schedules each copy after distance / c; then
/// `Mac802_11::recv` holds the first and `capture` or `collision` decides about the others). Otherwise all of them are present at
/// once and the radio synchronises with the strongest; each weaker one then counts as interference.
pub fn order(rule: Rule, a: &Signal, b: &Signal) -> Ordering {
    let nearest = a.distance_m.total_cmp(&b.distance_m);
    let strongest = b.power_w.total_cmp(&a.power_w);
    let (first, second) = match rule {
        Rule::Ns2 => (nearest, strongest),
        Rule::Sum | Rule::Probability => (strongest, nearest),
    };
    first.then(second).then(a.from.cmp(&b.from))
}
