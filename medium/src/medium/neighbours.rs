//! The stations that sense a frame, and the power at each.
//!
//! While no station moves, the neighbourhood of a sender is computed once. While stations move, the power at each of them
//! is computed for each frame, but only for those that can be near enough. Time is divided into periods. For a sender's first frame in a
//! period, its *candidates* are listed: the stations s whose position at the start of the period is at most
//! `range + reach(sender) + reach(s)` from its own, where
//!
//! - `range` ([`Propagation::range_m`](crate::phy::Propagation::range_m)): no station farther away receives the floor or more. The floor is the
//!   lowest power that matters, the carrier sense threshold or, if interference is summed, a tenth of the noise;
//! - `reach` ([`Course`]): no station gets farther from its position at the start of the period within the period.
//!
//! The share of a frame's power at a radio of another channel is at most all of it, and so is the part in any direction of an antenna
//! with a pattern: both only take stations away. No station that senses a frame is left out: at the frame's instant it is at most `range` from the sender, each of the two has moved
//! by at most its reach, and so (triangle inequality) they began the period at most `range` and both reaches apart.
//! This holds for any length of the period and any movement, jumps included; a movement that is requested during the run, a change of an antenna
//! and a change of power or channel begin a new period. Among the candidates the same powers are computed and compared with the
//! same floor as among all stations, in the same order: the air log is the same, byte for byte.
//!
//! All stations are candidates where no distance is out of range: with a matrix of losses, and with `fading_db`, whose draw has no bound.
//! Of measured links those are to which the sender has one at any time. The
//! range of shadowing is that of the sender's strongest pair, since each pair has one draw for the whole run, or of the bound of its field.
//! Fading of links is bounded too: the candidates are those of a floor that is lower by its bound, and while no station moves
//! they are kept with the power of each.

use super::{Medium, Station};
use crate::trace::{distance_m, Course, Position, Trajectory};
use manet_engine::{Duration, Instant};
use std::sync::Arc;

/// Stations that sense a frame, with the power in W at each.
pub(super) type Neighbourhood = Arc<[(u16, f64)]>;

/// More than the rounding of a position or distance within 10,000 km, m.
const ROUNDING_M: f64 = 1e-3;
/// The share of the range that the fastest station moves in a period. A smaller share means more periods, each of which begins with
/// all stations; a larger one means more candidates out of range.
const MARGIN: f64 = 1.0 / 16.0;
const LONGEST: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_millis(10);

pub(super) struct Neighbours {
    /// No station moves from then on.
    still_from: Instant,
    /// Of each sender, valid from then on.
    still: Vec<Option<Neighbourhood>>,
    /// The period ends before this instant.
    until: Instant,
    /// Length of the next period.
    length: Duration,
    /// Of each station in the period.
    courses: Vec<Course>,
    top_m: f64,
    /// Of each sender in the period.
    candidates: Vec<Option<Arc<[u16]>>>,
}

impl Neighbours {
    pub(super) fn new(stations: usize, still_from: Instant) -> Self {
        Self {
            still_from,
            still: vec![None; stations],
            until: Instant::ZERO,
            length: SHORTEST,
            courses: Vec::new(),
            top_m: 0.0,
            candidates: vec![None; stations],
        }
    }

    /// Antennas, power or channels changed.
    pub(super) fn forget(&mut self) {
        self.still.fill(None);
        self.until = Instant::ZERO;
    }

    /// The stations that may sense a frame of `from` that begins now; `range_m(top_m)`: range of a frame of `from` if the
    /// highest station is at `top_m`.
    fn candidates(
        &mut self,
        from: u16,
        now: Instant,
        stations: &[Station],
        range_m: impl Fn(f64) -> f64,
    ) -> Arc<[u16]> {
        if now >= self.until {
            self.begin_period(now, stations, &range_m);
        }
        let (courses, top_m) = (&self.courses, self.top_m);
        let list = self.candidates[usize::from(from)].get_or_insert_with(|| {
            let own = &courses[usize::from(from)];
            let reach_m = range_m(top_m) + own.reach_m + ROUNDING_M;
            let near = |course: &Course| distance_m(own.place, course.place) <= reach_m + course.reach_m;
            (0..).zip(courses).filter(|(s, course)| *s != from && near(course)).map(|(s, _)| s).collect()
        });
        list.clone()
    }

    fn begin_period(&mut self, now: Instant, stations: &[Station], range_m: impl Fn(f64) -> f64) {
        self.until = now + self.length;
        self.courses.clear();
        self.courses.extend(stations.iter().map(|s| s.trajectory.course(now, self.until)));
        self.candidates.fill(None);
        let highest = |of: fn(&Course) -> f64| self.courses.iter().map(of).fold(f64::MIN, f64::max);
        self.top_m = highest(|course| course.top_m);
        let length_s = self.length.as_secs_f64() * MARGIN * range_m(self.top_m) / highest(|course| course.reach_m);
        self.length = Duration::from_secs_f64(length_s.min(LONGEST.as_secs_f64())).max(SHORTEST);
    }

    fn position(&self, station: u16, now: Instant, trajectory: &Trajectory) -> Position {
        if now < self.until {
            self.courses[usize::from(station)].at(now, trajectory)
        } else {
            trajectory.at(now)
        }
    }
}

impl Medium {
    /// The stations that sense a frame of `from` that begins now.
    pub(super) fn neighbourhood(&mut self, from: u16, now: Instant) -> Neighbourhood {
        self.fade(from);
        let floor_w = self.floor_w();
        let all = (0..self.stations.len() as u16).filter(|s| *s != from);
        if let Some(links) = &self.measured {
            return self.that_sense(from, now, floor_w, links.receivers(from), true);
        }
        if !self.fades.is_empty() {
            return self.that_sense(from, now, floor_w, all, true);
        }
        let unfaded_w = floor_w / self.fader.highest();
        if now < self.neighbours.still_from {
            let range_m = |top_m| self.propagation.range_m(from.into(), unfaded_w, top_m);
            let candidates = self.neighbours.candidates(from, now, &self.stations, range_m);
            return self.that_sense(from, now, floor_w, candidates.iter().copied(), true);
        }
        let known = match &self.neighbours.still[usize::from(from)] {
            Some(known) => known.clone(),
            None => {
                let known = self.that_sense(from, now, unfaded_w, all, false);
                self.neighbours.still[usize::from(from)] = Some(known.clone());
                known
            }
        };
        if self.fader.is_on() {
            let power_w = |&(s, power_w): &(u16, f64)| (s, power_w * self.faded(from, s, now));
            known.iter().map(power_w).filter(|(_, p)| *p >= floor_w).collect()
        } else {
            known
        }
    }

    /// The lowest power that matters, W.
    pub(super) fn floor_w(&self) -> f64 {
        // a sum of interference needs powers below the sense threshold too, down to a tenth of the noise
        let sense_w = self.radio.carrier_sense_threshold_w;
        if self.sums_interference() {
            sense_w.min(self.radio.noise_w * 0.1)
        } else {
            sense_w
        }
    }

    /// The stations among these at which the power is the floor or more, with or without fading.
    fn that_sense(
        &self,
        from: u16,
        now: Instant,
        floor_w: f64,
        among: impl Iterator<Item = u16>,
        fades: bool,
    ) -> Neighbourhood {
        let station = |s: u16| &self.stations[usize::from(s)];
        let position = |s: u16| self.neighbours.position(s, now, &station(s).trajectory);
        let (place, freq_mhz) = (position(from), station(from).freq_mhz);
        let adjacent = self.spectrum.is_some();
        let hears = |s: &u16| station(*s).on && (adjacent || station(*s).freq_mhz == freq_mhz);
        let power_w = |s: u16| {
            let there = position(s);
            let power_w =
                self.power_between_w((from, place), (s, there), now) * self.share(freq_mhz, station(s).freq_mhz);
            if fades {
                power_w * self.faded_between((from, place), (s, there), now)
            } else {
                power_w
            }
        };
        among.filter(hears).map(|s| (s, power_w(s))).filter(|(_, p)| *p >= floor_w).collect()
    }

    fn sums_interference(&self) -> bool {
        self.stations[0].receiver.sums()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Loaded};
    use crate::phy::antenna::Change;
    use crate::phy::radio::tests::profile;
    use crate::phy::Measured;
    use crate::{Input, StationId};
    use manet_engine::Machine;
    use proptest::prelude::*;
    use serde_json::{json, Value};

    const STATIONS: u16 = 8;
    /// Station, destination in halves of the area, speed.
    type Leg = (u16, Position, f64);

    #[derive(Clone, Debug)]
    enum Step {
        Frame(u16),
        Move(Leg),
        Halt,
        Power(u16, bool),
        Antenna(u16, f64),
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Losses of all kinds over time, for `propagation = "trace"`.
    const LINKS: &str = "# manet-links/1\ntime_s,from,to,loss_db\n0,sta1,sta2,60\n0,sta2,sta1,90\n0,sta3,sta1,130\n\
                         1,sta1,sta2,140\n2,sta3,sta1,\n5,sta3,sta1,50\n9,sta1,sta2,\n9,sta8,sta1,80\n";

    fn medium(
        propagation: &Value,
        rule: &str,
        fading: (f64, Value),
        mixed: bool,
        trajectories: Vec<Trajectory>,
    ) -> Medium {
        let mac = |i| format!("02:00:00:00:00:{i:02x}");
        let station = |i| json!({"name": format!("sta{i}"), "mac": mac(i), "position": [0, 0, 0]});
        let mut stations: Vec<Value> = (1..=trajectories.len()).map(station).collect();
        if mixed {
            // antennas with patterns, and another channel of the band
            if propagation["model"] != "disc" {
                let sector =
                    |azimuth| json!({"pattern": "sector", "gain_dbi": 6, "beamwidth_deg": 60, "azimuth_deg": azimuth});
                (stations[0]["antenna"], stations[3]["antenna"]) = (sector(45), sector(-120));
            }
            (stations[1]["freq_mhz"], stations[3]["freq_mhz"]) = (json!(2422), json!(2417));
        }
        let config = json!({
            "format": "manet-medium/1", "radio": "a.toml", "stations": stations, "propagation": propagation,
            "interference": rule, "fading_db": fading.0, "fading": fading.1, "adjacent_channels": mixed,
        });
        let mut loaded = Loaded::new(Config::parse(&config.to_string()).unwrap(), profile("ns2-dsss-2m")).unwrap();
        if propagation["model"] == "trace" {
            let links = Measured::parse(LINKS, "links.csv", &loaded.station_names(), &loaded.radio, 100.0).unwrap();
            loaded.measured = Some(links.into());
        }
        Medium::new(&loaded, trajectories)
    }

    /// The neighbourhood by its definition: every station is asked.
    fn by_definition(medium: &Medium, from: u16, now: Instant) -> Vec<(u16, f64)> {
        let (sense_w, noise_w) = (medium.radio.carrier_sense_threshold_w, medium.radio.noise_w);
        let floor_w = if medium.sums_interference() { sense_w.min(noise_w * 0.1) } else { sense_w };
        let others = (0..medium.stations.len() as u16).filter(|s| *s != from && medium.is_on(StationId(*s)));
        let share = |s: u16| {
            medium.share(medium.stations[usize::from(from)].freq_mhz, medium.stations[usize::from(s)].freq_mhz)
        };
        let powers = others.map(|s| (s, medium.power_w(from, s, now) * share(s) * medium.faded(from, s, now)));
        powers.filter(|(_, power_w)| *power_w >= floor_w).collect()
    }

    fn leg(area_m: f64) -> impl Strategy<Value = Leg> {
        let place = (0.0..area_m, 0.0..area_m, prop_oneof![Just(0.0), 0.0..30.0]);
        let speed = prop_oneof![1 => Just(f64::INFINITY), 1 => Just(0.0), 4 => 0.1..40.0, 1 => 40.0..5000.0];
        (0..STATIONS, place, speed).prop_map(|(station, (x, y, z), speed)| (station, [x, y, z], speed))
    }

    fn step(area_m: f64) -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (0..STATIONS).prop_map(Step::Frame),
            2 => leg(area_m).prop_map(Step::Move),
            1 => Just(Step::Halt),
            1 => (0..STATIONS, any::<bool>()).prop_map(|(station, on)| Step::Power(station, on)),
            1 => (0..STATIONS, 0.1..10.0).prop_map(|(station, times)| Step::Antenna(station, times)),
        ]
    }

    /// With the time of each.
    type Movements = (Vec<(u64, Leg)>, Vec<(u64, Step)>);

    fn movements() -> impl Strategy<Value = Movements> {
        prop::sample::select(vec![800.0, 4000.0, 30_000.0]).prop_flat_map(|area_m| {
            let trace = prop::collection::vec((0..20_000_u64, leg(area_m)), 8..40);
            (trace, prop::collection::vec((0..500_u64, step(area_m)), 1..80))
        })
    }

    fn models() -> impl Strategy<Value = Value> {
        prop::sample::select(vec![
            json!({"model": "two-ray"}),
            json!({"model": "free-space"}),
            json!({"model": "log-distance", "exponent": 3.5}),
            json!({"model": "log-distance", "exponent": 0.01, "reference_m": 100}),
            json!({"model": "shadowing", "exponent": 3.0, "sigma_db": 8.0}),
            json!({"model": "shadowing", "exponent": 3.0, "sigma_db": 8.0, "correlation_m": 50.0}),
            json!({"model": "itu-indoor", "floor_height_m": 4.0}),
            json!({"model": "trace", "file": "links.csv"}),
            json!({"model": "disc", "range_m": 250.0, "sense_m": 550.0}),
            json!({"model": "matrix", "matrix": [{"from": "sta1", "to": "sta2", "loss_db": 60}]}),
        ])
    }

    fn fadings() -> impl Strategy<Value = (f64, Value)> {
        let of_links = prop::sample::select(vec![
            json!({"model": "rayleigh"}),
            json!({"model": "rician", "k_db": 3.0, "speed_mps": 2.0}),
            json!({"model": "nakagami", "m": 0.5, "speed_mps": 2.0, "coherence": "block"}),
        ]);
        let none = || Just(json!({"model": "none"}));
        prop_oneof![
            4 => (Just(0.0), none()),
            1 => (0.1..10.0, none()),
            3 => (Just(0.0), of_links.clone()),
            1 => (0.1..10.0, of_links),
        ]
    }

    proptest! {
        #[test]
        fn the_neighbours_are_those_of_the_definition(
            model in models(), sinr: bool, mixed: bool, fading in fadings(), (mut trace, steps) in movements(),
        ) {
            let mut trajectories = vec![Trajectory::standing([0.0; 3]); usize::from(STATIONS)];
            trace.sort_by_key(|row| row.0);
            for (ms, (station, to, speed_mps)) in trace {
                trajectories[usize::from(station)].move_to(at(ms), to, speed_mps);
            }
            let mut medium = medium(&model, if sinr { "sinr" } else { "ns2" }, fading, mixed, trajectories);
            let mut ms = 0;
            for (after_ms, step) in steps {
                ms += after_ms;
                match step {
                    Step::Frame(from) => {
                        let heard = medium.neighbourhood(from, at(ms));
                        prop_assert_eq!(&heard[..], &by_definition(&medium, from, at(ms))[..], "{} at {} ms", from, ms);
                    }
                    Step::Move((station, to, speed_mps)) => {
                        medium.handle(at(ms), Input::Move { station: StationId(station), to, speed_mps });
                    }
                    Step::Halt => medium.handle(at(ms), Input::Halt { at: at(ms + 100) }),
                    Step::Power(station, on) => medium.handle(at(ms), Input::Power { station: StationId(station), on }),
                    Step::Antenna(station, times) if model["model"] != "disc" => {
                        let usual = medium.antenna(StationId(station));
                        let change = Change {
                            tx_power_w: Some(usual.tx_power_w * times),
                            antenna_height_m: Some(usual.height_m * times),
                            ..Change::default()
                        };
                        medium.handle(at(ms), Input::Antenna { station: StationId(station), change });
                    }
                    Step::Antenna(..) => {}
                }
            }
        }
    }

    #[test]
    fn stations_out_of_range_are_no_candidates() {
        let mut trajectories: Vec<_> =
            (0..40).map(|i| Trajectory::standing([f64::from(i) * 400.0, 0.0, 0.0])).collect();
        for trajectory in &mut trajectories {
            trajectory.move_to(Instant::ZERO, [0.0, 5000.0, 0.0], 20.0);
        }
        let mut medium =
            medium(&json!({"model": "two-ray"}), "ns2", (0.0, json!({"model": "none"})), false, trajectories);
        for ms in [0, 20, 1000] {
            medium.neighbourhood(20, at(ms));
            // sensed up to 550 m, and a margin of a sixteenth for each of two stations
            assert_eq!(medium.neighbours.candidates[20].as_deref(), Some(&[19, 21][..]), "{ms} ms");
        }
    }
}
