//! The receiver of one radio: the frames that it senses, locks on to and decodes.
//!
//! Three rules. **ns-2** (`Mac802_11::recv`, `capture`, `collision`): the first frame sensed holds the receiver; a
//! later one that is weaker by the held one's ratio or more is ignored (and reserves the medium as a NAV), any other spoils both, and
//! the receiver stays busy until the longer one has ended; interference is never summed. **Sum**: all power present is summed
//! over time with the noise; the receiver locks on to a frame whose header is above its power and its ratio to the rest;
//! the frame stays good while that holds for the MPDU, and a later frame that is as much above everything else takes the receiver over (message in
//! message). **Probability** (`reception = "sinr"`): the receiver locks on to the first preamble that it can detect, and within
//! [`DETECTION_NS`] to a stronger one; at the end a draw decides, by the SINR of header and MPDU, whether they survived ([`odds`]).
//! Carrier sense without a lock is by energy.
//!
//! The header has its own rate: a frame of which only the header is decoded is [`Heard::Spoiled`], and EIFS follows. With one threshold for
//! all rates (`rules.thresholds = "one"`) header and MPDU have the same fate.
//! Without `propagation_delay` frames begin everywhere at once (0.7 us at 200 m, against slots of 9 or 20 us), except for the effect on the order
//! in which frames that begin at one instant reach a radio ([`order`]).

use crate::phy::radio::Threshold;
use crate::phy::Radio;
use crate::radio_time::RadioState;
use odds::Odds;

pub mod odds;
mod signal;

pub use signal::{order, Demands, FrameId, Rule, Signal};

/// Time in which a stronger preamble replaces a weaker one: aCCATime of OFDM, 4 us (802.11-2016 table 17-21; ns-3 has the same).
pub const DETECTION_NS: u64 = 4_000;
/// Ratio to everything else at which a preamble is detected: 4 dB, as ns-3's `ThresholdPreambleDetectionModel`.
const PREAMBLE_RATIO: f64 = 2.511_886_4;

/// Outcome of a reception at this radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Decoded.
    Good,
    /// Its header was decoded, its MPDU was lost.
    Spoiled,
    /// Sensed, its header not decoded: too weak, begun while the radio was sending, or abandoned for its own transmission.
    Sensed,
    /// At its end, the radio held another frame or none.
    Ignored,
}

/// Effects of the start of a frame on this radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Began {
    /// The reason why the new frame cannot be decoded here.
    pub lost: Option<Cause>,
    /// The frame held so far, if the new one spoiled it.
    pub spoils: Option<FrameId>,
    /// ns-2 only: the new frame is ignored and reserves the medium.
    pub captured: bool,
}

/// Reason why a frame cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its power is below the power needed.
    Weak,
    /// The radio was sending.
    Sending,
    /// Another frame's power.
    Interferer(FrameId),
}

/// The frame that a receiver holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    signal: Signal,
    /// Ratio to everything else that its MPDU needs.
    ratio: f64,
}

/// State of one radio's receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    rule: Rule,
    sense_w: f64,
    energy_w: f64,
    noise_w: f64,
    /// Ratio at which a later frame takes the receiver over; [`Rule::Probability`] only.
    takes_over: Option<f64>,
    /// ns-2: only the frame held. Otherwise all frames present.
    signals: Vec<Signal>,
    /// What is present beside the frames of its channel: bursts of jammers, frames of other channels. Each with its source, and
    /// the power.
    interference: Vec<(FrameId, u16, f64)>,
    /// Its sum, W.
    interference_w: f64,
    held: Option<Held>,
    /// Of the frame held; [`Rule::Probability`] only. In a box: the other rules copy and skip as little as possible.
    odds: Option<Box<Odds>>,
    good: bool,
    locked: bool,
    sending: bool,
    /// The station that interfered most with the frame that ended last; [`Rule::Probability`] only.
    interferer: Option<u16>,
    /// The MPDUs decoded of the A-MPDU that ended last, one bit each.
    survivors: u64,
    /// Of the frame that ended last, if it was held to its end; [`Rule::Probability`] only.
    ended: Option<Box<Odds>>,
}

impl Receiver {
    /// A receiver that senses nothing.
    pub fn new(rule: Rule, radio: &Radio) -> Self {
        let ratio = 10f64.powf(radio.capture_db / 10.0);
        Self {
            rule,
            sense_w: radio.carrier_sense_threshold_w,
            energy_w: radio.energy_detect_w.unwrap_or(radio.carrier_sense_threshold_w),
            noise_w: radio.noise_w,
            takes_over: radio.frame_capture.then_some(ratio),
            signals: Vec::new(),
            interference: Vec::new(),
            interference_w: 0.0,
            held: None,
            odds: None,
            good: false,
            locked: false,
            sending: false,
            interferer: None,
            survivors: u64::MAX,
            ended: None,
        }
    }

    /// Whether this radio senses other stations now.
    #[inline]
    pub fn senses(&self) -> bool {
        match self.rule {
            Rule::Ns2 => self.held.is_some() || self.interference_w >= self.energy_w,
            Rule::Sum => {
                let disturbed = self.interference_w > 0.0 && self.total_w() >= self.energy_w;
                self.held.is_some() || self.frames_w() >= self.sense_w || disturbed
            }
            Rule::Probability => self.held.is_some() || self.total_w() >= self.energy_w,
        }
    }

    /// The state of this radio, which has power.
    pub fn state(&self) -> RadioState {
        if self.sending {
            RadioState::Transmit
        } else if self.held.is_some() && (self.good || self.locked) {
            RadioState::Receive
        } else if self.senses() {
            RadioState::Sense
        } else {
            RadioState::Idle
        }
    }

    /// The rule that it follows.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The station that interfered most with the frame that ended last.
    pub fn interferer(&self) -> Option<u16> {
        self.interferer
    }

    /// The MPDUs decoded of the A-MPDU that ended last with [`Heard::Good`], one bit each.
    pub fn survivors(&self) -> u64 {
        self.survivors
    }

    /// The lowest ratio to noise and interference over the MPDU of the frame that ended last, of an A-MPDU over each, dB. Empty for a
    /// frame that was not held to its end, and by the rules of thresholds.
    pub fn worst_db(&self) -> Vec<f64> {
        self.ended.as_ref().map_or_else(Vec::new, |odds| odds.worst_db())
    }

    /// Whether this radio sends.
    pub fn is_sending(&self) -> bool {
        self.sending
    }

    /// Whether interference is summed, so that even frames too weak to be sensed count.
    pub fn sums(&self) -> bool {
        self.rule != Rule::Ns2
    }

    /// The radio changes its channel: what was on the air there is gone.
    pub fn retune(&mut self) {
        self.signals.clear();
        self.interference.clear();
        self.interference_w = 0.0;
        self.held = None;
        (self.good, self.locked) = (false, false);
    }

    /// The radio begins to send; returns the frame that this destroys.
    pub fn send_begins(&mut self) -> Option<FrameId> {
        self.sending = true;
        let lost = self.held.filter(|_| self.good).map(|held| held.signal.frame);
        (self.good, self.locked) = (false, false);
        if self.rule == Rule::Probability {
            // the radio is tuned to no preamble afterwards: it senses the rest of that frame by its energy
            (self.held, self.odds) = (None, None);
        }
        lost
    }

    /// The radio's own frame has ended.
    pub fn send_ends(&mut self) {
        self.sending = false;
    }

    /// The power of something that this radio cannot decode, a burst of a jammer or a frame of another channel of station `from`, is
    /// `power_w` from now on; 0 at its end. Returns the frame that it spoils.
    pub fn interfere(&mut self, now_ns: u64, id: FrameId, from: u16, power_w: f64) -> Option<FrameId> {
        self.count(now_ns);
        self.interference.retain(|(other, ..)| *other != id);
        if power_w > 0.0 {
            self.interference.push((id, from, power_w));
            self.odds.iter_mut().for_each(|odds| odds.interferes(from, power_w));
        }
        self.interference_w = self.interference.iter().map(|(.., power_w)| power_w).sum();
        let held = self.held.filter(|_| self.good && self.rule != Rule::Probability)?;
        // ns-2 has no noise, and sums no frames
        let others_w = match self.rule {
            Rule::Ns2 => self.interference_w,
            _ => self.noise_w + self.total_w() - held.signal.power_w,
        };
        let spoilt = held.signal.power_w < others_w * held.ratio;
        self.good &= !spoilt;
        spoilt.then_some(held.signal.frame)
    }

    /// A frame begins at this radio; several of one instant are passed in their [`order`].
    pub fn frame_begins(&mut self, signal: Signal, demands: &Demands) -> Began {
        match self.rule {
            Rule::Ns2 => self.begins_ns2(signal, demands),
            Rule::Sum => self.begins_sum(signal, demands),
            Rule::Probability => self.begins_probability(signal, demands),
        }
    }

    /// A frame ends at this radio. `draw`: uniform in [0, 1), called only for a frame whose reception is a matter of chance: once, or of an
    /// A-MPDU for the header and each MPDU.
    pub fn frame_ends(&mut self, frame: FrameId, draw: impl FnMut() -> f64) -> Heard {
        if self.rule != Rule::Ns2 {
            self.remove(frame);
        }
        if self.held.is_none_or(|held| held.signal.frame != frame) {
            return Heard::Ignored;
        }
        self.held = None;
        let (good, locked) = (self.good && !self.sending, self.locked);
        self.good = false;
        match (good, locked) {
            (true, _) if self.rule == Rule::Probability => self.drawn(draw),
            (true, _) => Heard::Good,
            (false, true) => Heard::Spoiled,
            (false, false) => Heard::Sensed,
        }
    }

    /// A frame is no longer present.
    #[inline(never)] // in place, rules other than ns-2's, the one of most runs, would burden it with their registers
    fn remove(&mut self, frame: FrameId) {
        self.ended = None;
        if let Some(end_ns) = self.signals.iter().find(|s| s.frame == frame).map(|s| s.end_ns) {
            self.count(end_ns);
        }
        self.signals.retain(|s| s.frame != frame);
    }

    /// The outcome for the frame that was held, by chance.
    #[inline(never)] // as above
    fn drawn(&mut self, mut draw: impl FnMut() -> f64) -> Heard {
        let Some(odds) = self.odds.take() else { return Heard::Sensed };
        let odds = self.ended.insert(odds);
        self.interferer = odds.interferer();
        if odds.is_aggregate() {
            if draw() >= odds.survive().0 {
                return Heard::Sensed;
            }
            self.survivors = odds.survivors(draw);
            return if self.survivors == 0 { Heard::Spoiled } else { Heard::Good };
        }
        let ((header, both), drawn) = (odds.survive(), draw());
        if drawn < both {
            Heard::Good
        } else if drawn < header {
            Heard::Spoiled
        } else {
            Heard::Sensed
        }
    }

    fn begins_ns2(&mut self, new: Signal, demands: &Demands) -> Began {
        let strong = new.power_w >= demands.body.power_w;
        let Some(held) = self.held else {
            let clear = |needs: &Threshold| new.power_w >= self.interference_w * needs.ratio;
            let good = !self.sending && strong && clear(&demands.body);
            let locked = !self.sending && new.power_w >= demands.header.power_w && clear(&demands.header);
            self.hold(new, demands, good, locked);
            let lost = match (self.sending, good) {
                (true, _) => Some(Cause::Sending),
                (false, false) => {
                    Some(self.strongest_other(new.frame).filter(|_| strong).map_or(Cause::Weak, Cause::Interferer))
                }
                _ => None,
            };
            return Began { lost, ..Began::default() };
        };
        let lost = Some(if self.sending {
            Cause::Sending
        } else if !strong {
            Cause::Weak
        } else {
            Cause::Interferer(held.signal.frame)
        });
        if held.signal.power_w / new.power_w >= held.ratio {
            return Began { lost, captured: true, spoils: None };
        }
        let spoils = self.good.then_some(held.signal.frame);
        self.good = false;
        // a collision: EIFS afterwards (PHY-RXSTART, then an error: 802.11-2016 10.3.2.3.7), but not for a radio that only sent. ns-2's
        // NAV of EIFS requires neither (`recv_timer`: MAC_COLL or an error, whatever was sent when the frame began)
        self.locked |= !self.sending && new.power_w >= demands.header.power_w;
        if new.end_ns > held.signal.end_ns {
            self.held = Some(Held { signal: new, ratio: demands.body.ratio });
        }
        Began { lost, spoils, captured: false }
    }

    #[inline(never)] // as above
    fn begins_sum(&mut self, new: Signal, demands: &Demands) -> Began {
        self.signals.push(new);
        let rest_w = self.noise_w + self.total_w() - new.power_w;
        // with ratios below 0 dB a weaker frame can be clear as well: it does not take over from a stronger good frame
        let weaker_than_held = self.good && self.held.is_some_and(|held| held.signal.power_w >= new.power_w);
        let clear = |needs: &Threshold| new.power_w >= needs.power_w && new.power_w >= rest_w * needs.ratio;
        let good = clear(&demands.body) && !weaker_than_held;
        let locks = good || clear(&demands.header) && !weaker_than_held;
        let mut began = Began::default();
        if let Some(Held { signal: held, ratio }) = self.held {
            let others_w = self.noise_w + self.total_w() - held.power_w;
            if self.good && held.power_w < others_w * ratio {
                self.good = false;
                began.spoils = Some(held.frame);
            }
        }
        if locks && !self.sending {
            self.hold(new, demands, good, true);
            if good {
                return began;
            }
        }
        began.lost = Some(match self.strongest_other(new.frame) {
            _ if self.sending => Cause::Sending,
            _ if new.power_w < demands.body.power_w => Cause::Weak,
            Some(other) => Cause::Interferer(other),
            None => Cause::Weak, // noise alone: the threshold is below what the ratio needs
        });
        began
    }

    #[inline(never)] // as above
    fn begins_probability(&mut self, new: Signal, demands: &Demands) -> Began {
        self.count(new.begin_ns);
        self.signals.push(new);
        let rest_w = self.noise_w + self.total_w() - new.power_w;
        let detected = new.power_w >= self.sense_w && new.power_w >= rest_w * PREAMBLE_RATIO;
        let mut began = Began::default();
        if self.sending {
            return Began { lost: Some(Cause::Sending), ..began };
        }
        if let Some(Held { signal: old, .. }) = self.held {
            let detecting = self.odds.as_ref().is_some_and(|odds| new.begin_ns - odds.begin_ns() <= DETECTION_NS);
            let stronger = self.takes_over.is_some_and(|ratio| new.power_w >= rest_w * ratio);
            if !(detected && (stronger || detecting && new.power_w > old.power_w)) {
                self.odds.iter_mut().for_each(|odds| odds.interferes(new.from, new.power_w));
                return Began { lost: Some(Cause::Interferer(old.frame)), ..began };
            }
            began.spoils = self.good.then_some(old.frame);
        } else if !detected {
            let other = self.strongest_other(new.frame);
            let drowned = new.power_w >= self.sense_w && new.power_w >= self.noise_w * PREAMBLE_RATIO;
            let cause = other.filter(|_| drowned).map_or(Cause::Weak, Cause::Interferer);
            return Began { lost: Some(cause), ..began };
        }
        let layout = demands.layout.as_deref().expect("reception by SINR knows the parts of each frame");
        let mut odds = Odds::new(*layout, &demands.stretches, new.begin_ns);
        self.signals.iter().filter(|s| s.frame != new.frame).for_each(|s| odds.interferes(s.from, s.power_w));
        self.interference.iter().for_each(|(_, from, power_w)| odds.interferes(*from, *power_w));
        self.hold(new, demands, true, true);
        self.odds = Some(Box::new(odds));
        began
    }

    /// Counts the SINR of the frame held up to `now_ns`, before what is present changes; [`Rule::Probability`] only.
    fn count(&mut self, now_ns: u64) {
        if self.rule == Rule::Probability {
            let total_w = self.total_w();
            if let (Some(Held { signal, .. }), Some(odds)) = (&self.held, &mut self.odds) {
                // rounding of the sum must not make the rest negative
                let others_w = (total_w - signal.power_w).max(0.0);
                odds.count(now_ns, signal.power_w / (self.noise_w + others_w));
            }
        }
    }

    fn hold(&mut self, signal: Signal, demands: &Demands, good: bool, locked: bool) {
        self.held = Some(Held { signal, ratio: demands.body.ratio });
        self.good = good;
        self.locked = locked;
    }

    /// All power present, without the noise.
    fn total_w(&self) -> f64 {
        self.frames_w() + self.interference_w
    }

    /// Summed each time: a running sum would keep rounding errors for ever.
    fn frames_w(&self) -> f64 {
        self.signals.iter().map(|s| s.power_w).sum::<f64>()
    }

    fn strongest_other(&self, frame: FrameId) -> Option<FrameId> {
        let frames = self.signals.iter().filter(|s| s.frame != frame).map(|s| (s.frame, s.power_w));
        let others = frames.chain(self.interference.iter().map(|(id, _, power_w)| (*id, *power_w)));
        others.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::radio::tests::profile;
    use crate::phy::Mode;

    const GOOD: Began = Began { lost: None, spoils: None, captured: false };

    fn receiver(rule: Rule) -> Receiver {
        Receiver::new(rule, &profile("ns2-dsss-2m"))
    }

    fn signal(frame: FrameId, power_w: f64, end_ns: u64) -> Signal {
        Signal { frame, from: frame as u16, distance_m: 100.0, power_w, begin_ns: 0, end_ns }
    }

    fn demands(radio: &Radio, mode: Mode) -> Demands {
        let (header, body) = (radio.header_threshold(mode), radio.threshold(mode));
        Demands { header, body, layout: None, stretches: [].into() }
    }

    impl Receiver {
        /// A data frame of `ns2-dsss-2m` with this capture ratio.
        fn begins_at(&mut self, signal: Signal, capture_db: f64) -> Began {
            let mut radio = profile("ns2-dsss-2m");
            radio.capture_db = capture_db;
            self.frame_begins(signal, &demands(&radio, radio.data_mode()))
        }

        fn begins(&mut self, signal: Signal) -> Began {
            self.begins_at(signal, 10.0)
        }

        fn ends(&mut self, frame: FrameId) -> Heard {
            self.frame_ends(frame, || unreachable!("thresholds leave nothing to chance"))
        }
    }

    /// Every order in which three events may be handled.
    fn orders<T: Copy>([a, b, c]: [T; 3]) -> [[T; 3]; 6] {
        [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]]
    }

    /// Three frames of one instant: the effect of each start, by frame, and the outcome at each end.
    fn together(rule: Rule, capture_db: f64, mut signals: [Signal; 3]) -> Vec<(FrameId, Began, Heard)> {
        let mut radio = profile("ns2-dsss-2m");
        radio.capture_db = capture_db;
        let mut r = Receiver::new(rule, &radio);
        signals.sort_by(|a, b| order(rule, a, b));
        let began = signals.map(|s| r.begins_at(s, capture_db));
        let mut all: Vec<_> = signals.iter().zip(began).map(|(s, b)| (s.frame, b, r.ends(s.frame))).collect();
        all.sort_by_key(|(frame, ..)| *frame);
        all
    }

    fn at(distance_m: f64, signal: Signal) -> Signal {
        Signal { distance_m, ..signal }
    }

    #[test]
    fn ns2_of_frames_begun_together_the_nearest_is_held_and_captures_those_ten_decibels_weaker() {
        // two-ray ground: 50 m is 23 dB above 200 m
        let (near, far) = (at(50.0, signal(1, 2e-7, 100)), 1e-9);
        for [a, b, c] in orders([near, at(200.0, signal(2, far, 100)), at(200.0, signal(3, far, 100))]) {
            let ends: Vec<Heard> = together(Rule::Ns2, 10.0, [a, b, c]).iter().map(|(.., h)| *h).collect();
            assert_eq!(ends, [Heard::Good, Heard::Ignored, Heard::Ignored]);
        }
    }

    #[test]
    fn ns2_a_stronger_frame_of_the_same_instant_from_farther_away_collides() {
        // shadowing: the nearer one is the weaker
        for [a, b, c] in
            orders([at(50.0, signal(1, 1e-9, 100)), at(90.0, signal(2, 2e-7, 100)), at(95.0, signal(3, 1e-9, 80))])
        {
            assert!(together(Rule::Ns2, 10.0, [a, b, c]).iter().all(|(.., heard)| *heard != Heard::Good));
        }
    }

    #[test]
    fn sinr_of_frames_begun_together_the_strongest_is_decoded_if_it_is_above_the_sum_of_the_others() {
        let weak = at(50.0, signal(2, 0.8e-9, 100));
        for (power_w, heard) in [(2e-8, Heard::Good), (1.5e-8, Heard::Spoiled)] {
            // 10 dB above 1.6e-9 W is 1.6e-8 W
            for [a, b, c] in orders([at(200.0, signal(1, power_w, 100)), weak, Signal { frame: 3, from: 3, ..weak }]) {
                assert_eq!(together(Rule::Sum, 10.0, [a, b, c])[0].2, heard);
            }
        }
    }

    #[test]
    fn the_order_of_events_changes_nothing_of_frames_begun_together() {
        let powers = [1e-10, 5e-10, 1e-9, 2e-8, 2e-7];
        let distances = [50.0, 120.0];
        let signals: Vec<(f64, f64)> = powers.iter().flat_map(|p| distances.map(|d| (*p, d))).collect();
        for (i, a) in signals.iter().enumerate() {
            for (j, b) in signals.iter().enumerate() {
                let three = [(1, *a, 100), (2, *b, 90), (3, signals[(i * 3 + j) % signals.len()], 100)];
                let three = three.map(|(n, (power_w, metres), end)| at(metres, signal(n, power_w, end)));
                for (rule, capture_db) in [(Rule::Ns2, 10.0), (Rule::Sum, 10.0), (Rule::Sum, -3.0)] {
                    let outcomes = orders(three).map(|order| together(rule, capture_db, order));
                    assert!(outcomes.iter().all(|o| *o == outcomes[0]), "{rule:?} {three:?}");
                }
            }
        }
    }

    #[test]
    fn sinr_below_zero_decibels_a_weaker_frame_never_takes_over_from_a_good_one() {
        let mut radio = profile("ns2-dsss-2m");
        radio.capture_db = -3.0;
        let mut r = Receiver::new(Rule::Sum, &radio);
        assert_eq!(r.begins_at(signal(1, 1e-9, 100), -3.0), GOOD);
        let began = r.begins_at(signal(2, 0.7e-9, 100), -3.0);
        assert_eq!(began, Began { lost: Some(Cause::Interferer(1)), spoils: None, captured: false });
        assert_eq!(r.ends(1), Heard::Good);
    }

    #[test]
    fn ns2_a_frame_alone_is_decoded_if_strong_enough() {
        let mut r = receiver(Rule::Ns2);
        assert_eq!(r.begins(signal(1, 1e-9, 100)), GOOD);
        assert!(r.senses());
        assert_eq!(r.ends(1), Heard::Good);
        assert_eq!(r.begins(signal(2, 1e-10, 200)).lost, Some(Cause::Weak));
        assert_eq!(r.ends(2), Heard::Sensed);
        assert!(!r.senses());
    }

    #[test]
    fn ns2_the_first_frame_survives_a_newcomer_ten_decibels_weaker_only() {
        let mut r = receiver(Rule::Ns2);
        r.begins(signal(1, 1e-8, 100));
        let began = r.begins(signal(2, 0.99e-9, 150));
        assert_eq!(began, Began { lost: Some(Cause::Interferer(1)), spoils: None, captured: true });
        let began = r.begins(signal(3, 1.01e-9, 90));
        assert_eq!(began, Began { lost: Some(Cause::Interferer(1)), spoils: Some(1), captured: false });
        assert_eq!(r.ends(3), Heard::Ignored);
        assert_eq!(r.ends(1), Heard::Spoiled);
    }

    #[test]
    fn ns2_a_stronger_late_frame_never_wins_and_the_longer_one_keeps_the_receiver() {
        let mut r = receiver(Rule::Ns2);
        r.begins(signal(1, 1e-9, 100));
        assert_eq!(r.begins(signal(2, 1e-7, 150)).spoils, Some(1));
        assert_eq!(r.ends(1), Heard::Ignored);
        assert!(r.senses(), "until the longer has ended");
        assert_eq!(r.ends(2), Heard::Spoiled);
    }

    #[test]
    fn sinr_sums_interferers_that_none_alone_would_spoil() {
        let mut r = receiver(Rule::Sum);
        assert_eq!(r.begins(signal(1, 1e-8, 100)), GOOD);
        // 10 dB below each would do; the sum of both is 8 dB below
        assert_eq!(r.begins(signal(2, 0.8e-9, 90)).spoils, None);
        assert_eq!(r.begins(signal(3, 0.8e-9, 90)).spoils, Some(1));
        r.ends(2);
        r.ends(3);
        assert_eq!(r.ends(1), Heard::Spoiled, "a frame once spoiled stays so");
    }

    #[test]
    fn sinr_a_much_stronger_late_frame_takes_the_receiver_over() {
        let mut r = receiver(Rule::Sum);
        r.begins(signal(1, 1e-9, 100));
        assert_eq!(r.begins(signal(2, 1e-7, 150)), Began { lost: None, spoils: Some(1), captured: false });
        assert_eq!(r.ends(1), Heard::Ignored);
        assert_eq!(r.ends(2), Heard::Good);
    }

    #[test]
    fn sinr_senses_the_sum_of_powers_below_the_threshold_each() {
        let mut r = receiver(Rule::Sum);
        r.begins(signal(1, 1.0e-11, 100));
        assert!(!r.senses());
        r.begins(signal(2, 1.0e-11, 100));
        assert!(r.senses());
    }

    #[test]
    fn a_radio_that_sends_is_locked_on_none_of_the_frames_around_it() {
        for rule in [Rule::Ns2, Rule::Sum] {
            // a collision of three, its own frame the third
            let mut r = receiver(rule);
            r.send_begins();
            r.begins(signal(1, 1e-9, 100));
            r.begins(signal(2, 1e-9, 100));
            r.send_ends();
            assert!([r.ends(1), r.ends(2)].iter().all(|heard| *heard != Heard::Spoiled), "{rule:?}");
            // an ACK sent over a frame that has begun
            r.begins(signal(3, 1e-9, 100));
            r.send_begins();
            r.send_ends();
            assert_ne!(r.ends(3), Heard::Spoiled, "{rule:?}");
        }
    }

    #[test]
    fn ns2_frames_too_weak_to_be_decoded_alone_lock_no_radio_by_colliding() {
        let mut r = receiver(Rule::Ns2);
        r.begins(signal(1, 1e-10, 100));
        r.begins(signal(2, 1e-10, 90));
        r.ends(2);
        assert_eq!(r.ends(1), Heard::Sensed);
        r.begins(signal(3, 1e-10, 100));
        r.begins(signal(4, 1e-9, 90));
        assert_eq!(r.ends(3), Heard::Spoiled, "the stronger one was begun to be received");
    }

    #[test]
    fn a_radio_that_sends_decodes_nothing_and_loses_the_frame_it_held() {
        for rule in [Rule::Ns2, Rule::Sum] {
            let mut r = receiver(rule);
            r.begins(signal(1, 1e-9, 100));
            assert_eq!(r.send_begins(), Some(1));
            assert_eq!(r.begins(signal(2, 1e-7, 200)).lost, Some(Cause::Sending));
            r.send_ends();
            r.ends(1);
            assert_ne!(r.ends(2), Heard::Good);
        }
    }
}
