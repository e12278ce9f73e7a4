//! Everything the daemon drives, as one machine: the air and the wires.

use crate::input::Input;
use crate::input_log::InputLog;
use manet_engine::{Duration, Instant, Machine};
use manet_medium::config::{Loaded, WireConfig};
use manet_medium::message::{self, StationId};
use manet_medium::trace::Trajectory;
use manet_medium::wired::{Arrived, EndId, LinkSettings, Wires};
use manet_medium::Medium;

/// The air and the wires.
pub struct World {
    /// The air.
    pub medium: Medium,
    /// The wired links.
    pub wires: Wires,
    /// The stations at the ends of each wire; `None`: another host.
    ends: Vec<[Option<StationId>; 2]>,
    /// The log of its inputs; `None`: no log.
    pub inputs: Option<InputLog>,
}

impl World {
    /// The machine of a configuration; `trajectories`: one for each station.
    pub fn new(loaded: &Loaded, trajectories: Vec<Trajectory>) -> Self {
        let mut medium = Medium::new(loaded, trajectories);
        medium.set_recording(true);
        let link = |w: &WireConfig| LinkSettings {
            rate_bps: w.rate_bps,
            delay: Duration::from_micros(w.delay_us),
            queue_packets: w.queue_packets,
        };
        let links: Vec<_> = loaded.config.wires.iter().map(link).collect();
        let index = loaded.station_index();
        let station = |name: &str| index.get(name).map(|i| StationId(*i as u16));
        let ends = loaded.config.wires.iter().map(|w| [station(&w.a.name), station(&w.b.name)]).collect();
        Self { medium, wires: Wires::new(&links), ends, inputs: None }
    }

    /// Whether the wire of this end is up: both its ends have power.
    pub fn wire_is_up(&self, end: EndId) -> bool {
        self.ends[usize::from(end.0 / 2)].iter().flatten().all(|s| self.medium.is_on(*s))
    }

    fn settle_wires(&mut self, now: Instant) {
        for wire in 0..self.ends.len() as u16 {
            let end = EndId(2 * wire);
            self.wires.set_up(now, end, self.wire_is_up(end));
        }
    }
}

/// An output of the air or of the wires.
pub enum Output {
    /// From the air.
    Air(message::Output),
    /// From the wires.
    Wire(Arrived),
}

impl Output {
    /// Whether it acts on a host, so that its lateness counts.
    pub fn is_release(&self) -> bool {
        matches!(self, Output::Air(message::Output::Deliver { .. }) | Output::Wire(_))
    }
}

impl Machine for World {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, mut input: Input) {
        if let Some(log) = &self.inputs {
            log.note(now, &mut input);
        }
        match input {
            Input::Air(input) => {
                let power = matches!(input, message::Input::Power { .. });
                self.medium.handle(now, input);
                if power {
                    self.settle_wires(now);
                }
            }
            Input::Wire(input) => self.wires.handle(now, input),
            Input::Stall { end, stalled } => self.wires.set_stalled(now, end, stalled),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        if self.medium.next_timeout().is_some_and(|at| at <= now) {
            self.medium.handle_timeout(now);
        }
        if self.wires.next_timeout().is_some_and(|at| at <= now) {
            self.wires.handle_timeout(now);
        }
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.medium.poll_output().map(Output::Air).or_else(|| self.wires.poll_output().map(Output::Wire))
    }
    fn next_timeout(&self) -> Option<Instant> {
        [self.medium.next_timeout(), self.wires.next_timeout()].into_iter().flatten().min()
    }
    fn next_visible(&self) -> Option<Instant> {
        [self.medium.next_visible(), self.wires.next_visible()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input_log::Inputs;
    use manet_engine::{event_log, Timeline};
    use manet_medium::config::Config;
    use manet_medium::phy::Radio;
    use serde_json::json;

    /// Three stations in range of each other.
    fn world() -> World {
        let station = |n: u8| {
            let mac = format!("02:00:00:00:00:{n:02x}");
            json!({"name": format!("sta{n}"), "mac": mac, "position": [50 * n, 0, 0]})
        };
        let stations: Vec<_> = (1..=3).map(station).collect();
        let config = json!({"format": "manet-medium/1", "radio": "a.toml", "stations": stations}).to_string();
        let radio = Radio::parse(include_str!("../../radios/ns2-dsss-2m.toml"), &Default::default()).unwrap();
        let loaded = Loaded::new(Config::parse(&config).unwrap(), radio).unwrap();
        let trajectories = manet_medium::trace::of_stations(&loaded, None).unwrap();
        World::new(&loaded, trajectories)
    }

    fn overheard(at: Instant, output: &Output) -> Option<(Instant, StationId)> {
        match output {
            Output::Air(message::Output::Overheard { station, .. }) => Some((at, *station)),
            _ => None,
        }
    }

    #[test]
    fn a_replay_overhears_the_same_frames_as_the_run() {
        let (log, mut in_run) = (InputLog::default(), Vec::new());
        let mut line = Timeline::new(World { inputs: Some(log.clone()), ..world() });
        let mut outside = |at: Instant, output: Output| in_run.extend(overheard(at, &output));
        let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &[0; 100]].concat();
        // sta3 subscribes from 1 s to 2 s; sta1 sends to sta2 before, meanwhile and after
        for (at_ms, on) in [(500, None), (1000, Some(true)), (1500, None), (2000, Some(false)), (2500, None)] {
            let input = match on {
                Some(on) => message::Input::Overhear { station: StationId(2), on },
                None => message::Input::Packet { station: StationId(0), frame: frame.clone() },
            };
            line.input(Instant::ZERO + Duration::from_millis(at_ms), Input::Air(input), &mut outside);
        }
        line.run_until(Instant::ZERO + Duration::from_secs(3), &mut outside);
        assert!(matches!(in_run[..], [(_, StationId(2))]), "{in_run:?}");

        let mut in_replay = Vec::new();
        let mut outside = |at: Instant, output: Output| in_replay.extend(overheard(at, &output));
        let mut line = Timeline::new(world());
        let mut lines = Vec::new();
        log.take(Inputs::default()).take_lines(&mut lines);
        event_log::replay(&lines[..], &mut line, &mut outside).unwrap();
        line.run_until(Instant::ZERO + Duration::from_secs(3), &mut outside);
        assert_eq!(in_replay, in_run);
    }
}
