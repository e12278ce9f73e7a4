//! The probability that the frame a receiver holds survives: its SINR, integrated over the intervals between which interference changes.

use crate::phy::error_model::log_success;
use crate::phy::radio::{Layout, Stretch};

/// What has been received of the frame held.
#[derive(Clone, Debug)]
pub struct Odds {
    layout: Layout,
    begin_ns: u64,
    /// Everything before is counted.
    counted_ns: u64,
    log_header: f64,
    log_body: f64,
    /// The lowest ratio over the MPDU so far; infinite before it.
    worst: f64,
    /// The MPDUs of an A-MPDU, each with the logarithm of its probability and its lowest ratio.
    mpdus: Vec<(Stretch, f64, f64)>,
    /// The station with the most power beside the frame, and that power.
    interferer: Option<(u16, f64)>,
}

impl Odds {
    /// Of a frame that begins now.
    pub fn new(layout: Layout, stretches: &[Stretch], begin_ns: u64) -> Self {
        let mpdus = stretches.iter().map(|stretch| (*stretch, 0.0, f64::INFINITY)).collect();
        let (log_header, log_body, worst) = (0.0, 0.0, f64::INFINITY);
        Self { layout, begin_ns, counted_ns: begin_ns, log_header, log_body, worst, mpdus, interferer: None }
    }

    /// Start of the frame here, ns.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// The ratio was `sinr` since the last call.
    pub fn count(&mut self, now_ns: u64, sinr: f64) {
        let (from, to) = (self.counted_ns - self.begin_ns, now_ns - self.begin_ns);
        self.counted_ns = now_ns;
        let share =
            |(first, last): (u64, u64)| to.min(last).saturating_sub(from.max(first)) as f64 / (last - first) as f64;
        let Layout { mode, header_mode, header_ns, header_bits, body_ns, body_bits } = self.layout;
        let body_bits = if self.is_aggregate() { 0.0 } else { body_bits };
        for (log, mode, bits) in [
            (&mut self.log_header, header_mode, header_bits * share(header_ns)),
            (&mut self.log_body, mode, body_bits * share(body_ns)),
        ] {
            if bits > 0.0 {
                *log += log_success(mode, sinr, bits);
            }
        }
        if share(body_ns) > 0.0 {
            self.worst = self.worst.min(sinr);
        }
        // bits of these modes err independently, so that one bit is enough to know
        let overlaps = |(stretch, ..): &&mut (Stretch, f64, f64)| stretch.from_ns < to && stretch.to_ns > from;
        let mut log_bit = None;
        for (stretch, log, worst) in self.mpdus.iter_mut().filter(overlaps) {
            let bits = stretch.bits * share((stretch.from_ns, stretch.to_ns));
            *log += bits * *log_bit.get_or_insert_with(|| log_success(mode, sinr, 1.0));
            *worst = worst.min(sinr);
        }
    }

    /// The lowest ratio at which the MPDU was received, of an A-MPDU each MPDU, dB. Infinite: nothing of it was counted.
    pub fn worst_db(&self) -> Vec<f64> {
        let single = (!self.is_aggregate()).then_some(self.worst);
        let ratios = self.mpdus.iter().map(|(_, _, worst)| *worst).chain(single);
        ratios.map(|ratio| 10.0 * ratio.log10()).collect()
    }

    /// Whether it is an A-MPDU.
    pub fn is_aggregate(&self) -> bool {
        !self.mpdus.is_empty()
    }

    /// The MPDUs that survive if the header does, one bit each.
    pub fn survivors(&self, mut draw: impl FnMut() -> f64) -> u64 {
        let bits = self.mpdus.iter().enumerate().map(|(n, (_, log, _))| u64::from(draw() < log.exp()) << n);
        bits.fold(0, |all, bit| all | bit)
    }

    /// A station interferes with this power.
    pub fn interferes(&mut self, station: u16, power_w: f64) {
        if self.interferer.is_none_or(|(_, strongest_w)| power_w > strongest_w) {
            self.interferer = Some((station, power_w));
        }
    }

    /// The station that interfered most.
    pub fn interferer(&self) -> Option<u16> {
        self.interferer.map(|(station, _)| station)
    }

    /// Probabilities that the header survived, and header and MPDU.
    pub fn survive(&self) -> (f64, f64) {
        (self.log_header.exp(), (self.log_header + self.log_body).exp())
    }
}

#[cfg(test)]
mod tests {
    use crate::air::{Began, Cause, Demands, FrameId, Heard, Receiver, Rule, Signal, DETECTION_NS};
    use crate::phy::radio::tests::profile;
    use crate::phy::{Mode, Radio};

    const NOISE_W: f64 = 3.162e-13;
    const END_NS: u64 = 2_000_000;

    fn radio() -> Radio {
        Radio { reception: crate::phy::radio::Reception::Sinr, ..profile("dot11a-54m") }
    }

    fn demands(mode: Mode) -> Demands {
        let radio = radio();
        let (header, body) = (radio.header_threshold(mode), radio.threshold(mode));
        Demands { header, body, layout: Some(Box::new(radio.layout(1536, mode))), stretches: [].into() }
    }

    /// A frame at this ratio to the noise.
    fn frame(frame: FrameId, db: f64, begin_ns: u64, end_ns: u64) -> Signal {
        let power_w = NOISE_W * 10f64.powf(db / 10.0);
        Signal { frame, from: frame as u16, distance_m: 0.0, power_w, begin_ns, end_ns }
    }

    fn receiver(radio: &Radio) -> Receiver {
        Receiver::new(Rule::Probability, radio)
    }

    fn begins(r: &mut Receiver, signal: Signal) -> Began {
        r.frame_begins(signal, &demands(Mode::Ofdm(54_000_000)))
    }

    /// Share of the draws with which frame 1 is decoded, and with which at least its header is.
    fn shares(interferers: &[Signal], db: f64) -> (f64, f64) {
        let mut outcomes = [0.0; 2];
        for draw in (0..1000).map(|i| (f64::from(i) + 0.5) / 1000.0) {
            let mut r = receiver(&radio());
            begins(&mut r, frame(1, db, 0, 248_000));
            for other in interferers {
                begins(&mut r, *other);
            }
            for other in interferers.iter().filter(|other| other.end_ns < 248_000) {
                r.frame_ends(other.frame, || unreachable!());
            }
            match r.frame_ends(1, || draw) {
                Heard::Good => outcomes[0] += 0.001,
                Heard::Spoiled => outcomes[1] += 0.001,
                _ => {}
            }
        }
        (outcomes[0], outcomes[0] + outcomes[1])
    }

    #[test]
    fn alone_a_frame_survives_as_the_error_model_says_and_its_header_does_before() {
        // tests/error_models.csv: 54 Mbit/s, 1536 bytes: 0.508 at 22 dB; the header, at 6 Mbit/s, always
        let (whole, header) = shares(&[], 22.0);
        assert!((whole - 0.508).abs() < 0.02, "{whole}");
        assert_eq!((header * 1000.0).round(), 1000.0);
        assert_eq!(shares(&[], 15.0).0, 0.0);
        assert!((shares(&[], 15.0).1 - 1.0).abs() < 1e-9, "EIFS follows");
        assert!(shares(&[], 30.0).0 > 0.999);
    }

    #[test]
    fn interference_counts_for_the_stretch_that_it_covers() {
        // to 22 dB in the last half of the MPDU: the square root of 0.508
        let half = frame(2, 0.0, (248_000 - 20_000) / 2 + 20_000, END_NS);
        let all = frame(2, 0.0, 30_000, END_NS);
        let (none, part, whole) = (shares(&[], 25.01).0, shares(&[half], 25.01).0, shares(&[all], 25.01).0);
        assert!(none > 0.999);
        assert!((part - 0.508f64.sqrt()).abs() < 0.02, "{part}");
        assert!(whole < part - 0.1, "{whole}");
    }

    #[test]
    fn a_header_lost_to_interference_leaves_no_eifs() {
        // equally strong over the header; gone before the end
        let (whole, header) = shares(&[frame(2, 30.0, DETECTION_NS + 1, 100_000)], 25.0);
        assert_eq!((whole, (header * 1000.0).round()), (0.0, 0.0));
    }

    #[test]
    fn within_the_detection_time_the_stronger_preamble_wins_later_only_with_frame_capture() {
        let late = |at, frame_capture| {
            let mut r = receiver(&Radio { frame_capture, ..radio() });
            begins(&mut r, frame(1, 20.0, 0, 248_000));
            begins(&mut r, frame(2, 45.0, at, END_NS))
        };
        let taken = Began { lost: None, spoils: Some(1), captured: false };
        let refused = Began { lost: Some(Cause::Interferer(1)), spoils: None, captured: false };
        assert_eq!(late(DETECTION_NS, false), taken);
        assert_eq!(late(DETECTION_NS + 1, false), refused);
        assert_eq!(late(100_000, true), taken);
    }

    #[test]
    fn a_preamble_below_the_sense_threshold_or_in_noise_is_not_detected_and_energy_alone_is_sensed() {
        let mut r = receiver(&radio());
        assert_eq!(begins(&mut r, frame(1, 12.9, 0, 100)).lost, Some(Cause::Weak), "-82.1 dBm");
        assert!(!r.senses());
        let mut r = receiver(&radio());
        r.send_begins();
        begins(&mut r, frame(1, 32.0, 0, 100_000));
        r.send_ends();
        assert!(!r.senses(), "-63 dBm without a preamble");
        begins(&mut r, frame(2, 34.0, 50_000, 100_000));
        assert!(r.senses(), "two of -63 and -61 dBm");
    }

    #[test]
    fn the_lowest_ratio_over_the_mpdu_is_known_whatever_became_of_it_and_the_header_does_not_count() {
        let worst_db = |interferers: &[Signal]| {
            let mut r = receiver(&radio());
            begins(&mut r, frame(1, 30.0, 0, 248_000));
            for other in interferers {
                begins(&mut r, *other);
            }
            for other in interferers {
                r.frame_ends(other.frame, || unreachable!());
            }
            r.frame_ends(1, || 0.5);
            r.worst_db()
        };
        // preamble and SIGNAL field of OFDM last 20 us; noise 0 dB and an interferer at 10 dB: 30 - 10 log10(1 + 10) = 19.59 dB
        assert!((worst_db(&[])[0] - 30.0).abs() < 1e-9);
        assert!((worst_db(&[frame(2, 10.0, 5_000, 15_000)])[0] - 30.0).abs() < 1e-9);
        assert!((worst_db(&[frame(2, 10.0, 5_000, 100_000)])[0] - 19.586).abs() < 1e-3);
        // lost to one at 35 dB: 30 - 35.0014
        assert!((worst_db(&[frame(2, 35.0, 50_000, 60_000)])[0] + 5.0014).abs() < 1e-3);
        let mut r = receiver(&radio());
        begins(&mut r, frame(1, 30.0, 0, 248_000));
        r.send_begins();
        r.frame_ends(1, || unreachable!());
        assert_eq!(r.worst_db(), [0.0; 0], "abandoned for its own transmission");
    }

    #[test]
    fn the_strongest_interferer_is_kept_for_the_fate() {
        let mut r = receiver(&radio());
        begins(&mut r, frame(1, 20.0, 0, 248_000));
        begins(&mut r, frame(2, 10.0, 30_000, 100_000));
        begins(&mut r, frame(3, 15.0, 40_000, 100_000));
        r.frame_ends(3, || unreachable!());
        r.frame_ends(2, || unreachable!());
        assert_eq!((r.frame_ends(1, || 0.5), r.interferer()), (Heard::Spoiled, Some(3)));
    }
}
