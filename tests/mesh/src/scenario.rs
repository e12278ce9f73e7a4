//! Positions, movements and flows: pure functions of a seed, independent of the protocol.

use manet_engine::random::Purpose;
use manet_engine::{Duration, Instant, Stream};
use manet_medium::config::{self, Config, Loaded};
use manet_medium::phy::Radio;
use manet_medium::trace::{distance_m, Position};
use serde_json::json;

/// ns-2's WaveLAN at 2 Mbit/s: 250 m range, 550 m sensed.
const RADIO: &str = include_str!("../../../medium/radios/ns2-dsss-2m.toml");
/// A position out of range of all nodes.
pub const AWAY: Position = [1e6, 1e6, 0.0];

/// A movement of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Its start.
    pub at: Instant,
    /// The node.
    pub node: usize,
    /// Destination, m.
    pub to: Position,
    /// Speed, m/s; infinite: a jump; 0: the node stops.
    pub speed_mps: f64,
}

/// A flow of UDP packets at constant intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Source.
    pub from: usize,
    /// Destination.
    pub to: usize,
    /// Length of the IP packet, bytes.
    pub bytes: u16,
    /// Interval between packets.
    pub gap: Duration,
    /// First packet.
    pub start: Instant,
    /// No packet from here on.
    pub stop: Instant,
}

/// Nodes, movements and flows of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed of all random streams.
    pub seed: u64,
    /// Length of the run.
    pub length: Duration,
    /// Start position of each node, m.
    pub positions: Vec<Position>,
    /// Movements in order of time.
    pub moves: Vec<Move>,
    /// Data flows.
    pub flows: Vec<Flow>,
    /// Whether the radio reports failed links.
    pub feedback: bool,
}

/// Movement of the nodes of a random scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoints {
    /// Extent in x and y from (0, 0), m.
    pub area_m: [f64; 2],
    /// Minimum and maximum speed, m/s.
    pub speed_mps: [f64; 2],
    /// Pause at each waypoint, s.
    pub pause_s: f64,
    /// All nodes move for the first and rest for the second time, s, in turns; `None`: no rests.
    pub go_and_rest_s: Option<[f64; 2]>,
}

impl Scenario {
    /// Nodes that do not move, without traffic.
    pub fn standing(seed: u64, length: Duration, positions: Vec<Position>) -> Self {
        Self { seed, length, positions, moves: Vec::new(), flows: Vec::new(), feedback: true }
    }

    /// A chain of nodes 200 m apart, without traffic.
    pub fn chain(seed: u64, length: Duration, nodes: usize) -> Self {
        Self::standing(seed, length, (0..nodes).map(|i| [200.0 * i as f64, 0.0, 0.0]).collect())
    }

    /// Uniform placement, then random waypoint (Johnson and Maltz 1996): to a uniform point at a uniform speed, pause, repeat.
    pub fn waypoints(seed: u64, length: Duration, nodes: usize, how: Waypoints) -> Self {
        let mut moves = Vec::new();
        let walk = |node| {
            let mut walk = Walk::new(seed, node, how);
            let start = walk.here;
            walk.go(length.as_secs_f64(), &mut moves);
            start
        };
        let positions = (0..nodes).map(walk).collect();
        moves.sort_by_key(|m: &Move| (m.at, m.node));
        Self { moves, ..Self::standing(seed, length, positions) }
    }

    /// Adds `count` flows from different sources to random destinations, each with a random start in the window `start_s`.
    pub fn with_flows(mut self, count: usize, bytes: u16, gap: Duration, start_s: [f64; 2]) -> Self {
        let mut rng = Stream::new(self.seed, 0, Purpose::Traffic);
        let nodes = self.positions.len() as u64;
        let mut sources: Vec<usize> = Vec::new();
        while sources.len() < count.min(self.positions.len()) {
            let from = rng.below(nodes) as usize;
            let to = rng.below(nodes) as usize;
            if from == to || sources.contains(&from) {
                continue;
            }
            sources.push(from);
            let start = Instant::ZERO + Duration::from_secs_f64(start_s[0] + (start_s[1] - start_s[0]) * rng.unit());
            // packets of the last seconds could not arrive any more
            let stop = Instant::ZERO + (self.length - Duration::from_secs(5));
            self.flows.push(Flow { from, to, bytes, gap, start, stop });
        }
        self
    }

    /// The scenario as a configuration of the medium, with two-ray ground and ns-2's radio at 2 Mbit/s.
    pub fn loaded(&self) -> Loaded {
        let station = |(i, position): (usize, &Position)| {
            let mac = manet_engine::mac_text::format(crate::addresses::mac(i));
            json!({"name": format!("sta{}", i + 1), "mac": mac, "position": position})
        };
        let stations: Vec<_> = self.positions.iter().enumerate().map(station).collect();
        let config =
            json!({"format": config::FORMAT, "seed": self.seed, "radio": "ns2-dsss-2m.toml", "stations": stations});
        let config = Config::parse(&config.to_string()).expect("a scenario is a configuration of the medium");
        let radio = Radio::parse(RADIO, &config.radio_overrides).expect("a profile of the project");
        Loaded::new(config, radio).expect("names, places and addresses of a scenario are in range")
    }
}

/// The random waypoint movement of one node; times in s.
struct Walk {
    node: usize,
    how: Waypoints,
    rng: Stream,
    here: Position,
    now: f64,
}

impl Walk {
    fn new(seed: u64, node: usize, how: Waypoints) -> Self {
        let mut walk =
            Self { node, how, rng: Stream::new(seed, node as u64 + 1, Purpose::Mobility), here: [0.0; 3], now: 0.0 };
        walk.here = walk.anywhere();
        walk
    }

    fn anywhere(&mut self) -> Position {
        let [x, y] = self.how.area_m;
        [x * self.rng.unit(), y * self.rng.unit(), 0.0]
    }

    fn go(&mut self, end: f64, moves: &mut Vec<Move>) {
        while self.now < end {
            let to = self.anywhere();
            let [slow, fast] = self.how.speed_mps;
            let speed = slow + (fast - slow) * self.rng.unit();
            let mut left = distance_m(self.here, to) / speed;
            while left > 0.0 {
                let walked = left.min(self.until_rest());
                moves.push(self.step(to, speed));
                self.now += walked;
                left -= walked;
                if left > 0.0 {
                    moves.push(self.step(to, 0.0));
                }
                self.rest();
            }
            self.here = to;
            self.now += self.how.pause_s;
            self.rest();
        }
        moves.retain(|m| m.at.as_secs_f64() < end);
    }

    fn step(&self, to: Position, speed_mps: f64) -> Move {
        Move { at: Instant::ZERO + Duration::from_secs_f64(self.now), node: self.node, to, speed_mps }
    }

    fn until_rest(&self) -> f64 {
        let Some([going, resting]) = self.how.go_and_rest_s else { return f64::INFINITY };
        going - self.now % (going + resting)
    }

    /// Advances to the end of the rest, if the node rests now.
    fn rest(&mut self) {
        let Some([going, resting]) = self.how.go_and_rest_s else { return };
        // a nanosecond of tolerance: the sum of steps may miss the boundary by rounding
        let phase = (self.now + 1e-9) % (going + resting);
        if phase >= going {
            self.now = ((self.now + 1e-9) / (going + resting)).floor() * (going + resting) + going + resting;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_medium::trace::Trajectory;

    const HOW: Waypoints =
        Waypoints { area_m: [1500.0, 300.0], speed_mps: [1.0, 20.0], pause_s: 0.0, go_and_rest_s: Some([30.0, 20.0]) };

    fn trajectory(s: &Scenario, node: usize) -> Trajectory {
        let mut trajectory = Trajectory::standing(s.positions[node]);
        for m in s.moves.iter().filter(|m| m.node == node) {
            trajectory.move_to(m.at, m.to, m.speed_mps);
        }
        trajectory
    }

    fn at(s: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(s)
    }

    #[test]
    fn nodes_stay_in_the_area_and_within_their_speed() {
        let s = Scenario::waypoints(1, Duration::from_secs(200), 20, Waypoints { go_and_rest_s: None, ..HOW });
        for node in 0..20 {
            let path = trajectory(&s, node);
            for second in 0..199u32 {
                let (a, b) = (path.at(at(second.into())), path.at(at(f64::from(second) + 1.0)));
                assert!((0.0..=1500.0).contains(&a[0]) && (0.0..=300.0).contains(&a[1]), "{a:?}");
                assert!(distance_m(a, b) <= 20.0 + 1e-6);
            }
            assert!(distance_m(path.at(at(0.0)), path.at(at(10.0))) > 0.0, "node {node} goes at once");
        }
    }

    #[test]
    fn all_rest_at_the_same_time_and_move_again_afterwards() {
        let s = Scenario::waypoints(1, Duration::from_secs(200), 20, HOW);
        for node in 0..20 {
            let path = trajectory(&s, node);
            for round in 0..3 {
                let begin = 50.0 * f64::from(round) + 30.0;
                assert_eq!(
                    path.at(at(begin + 0.001)),
                    path.at(at(begin + 19.999)),
                    "node {node} rests in round {round}"
                );
                assert_ne!(path.at(at(begin + 20.0)), path.at(at(begin + 21.0)), "and then goes on");
            }
        }
    }

    #[test]
    fn the_seed_decides_and_nodes_do_not_shift_each_other() {
        let few = Scenario::waypoints(3, Duration::from_secs(50), 2, HOW);
        let many = Scenario::waypoints(3, Duration::from_secs(50), 9, HOW);
        assert_eq!(few.positions, many.positions[..2]);
        assert_ne!(few.positions, Scenario::waypoints(4, Duration::from_secs(50), 2, HOW).positions);
    }

    #[test]
    fn flows_have_different_sources_and_never_send_to_themselves() {
        let s = Scenario::chain(5, Duration::from_secs(100), 12).with_flows(
            10,
            512,
            Duration::from_millis(250),
            [5.0, 15.0],
        );
        let sources: std::collections::BTreeSet<usize> = s.flows.iter().map(|f| f.from).collect();
        assert_eq!((s.flows.len(), sources.len()), (10, 10));
        assert!(s.flows.iter().all(|f| f.from != f.to && f.start >= at(5.0) && f.start < at(15.0)));
    }
}
