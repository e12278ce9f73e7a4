//! Reaction to a break: from the last delivery on the old path to the first on the new one.
//!
//! Two rows of relays between source and destination, with 200 m between neighbours in a row and across, so that each row is a
//! path and a path can change rows anywhere; the source and the destination reach the first and last relay of both rows
//! (range 250 m):
//!
//! ```text
//!          A1 - A2 - .. - An          y = 100
//!        /  |    |        |  \
//!      S    |    |        |    D      y = 0
//!        \  |    |        |  /
//!          B1 - B2 - .. - Bn          y = -100
//! ```
//! The relay that passes the packets to D jumps out of range of all nodes and stays there.

use crate::protocols::{self, Visitor};
use crate::scenario::{Flow, Scenario, AWAY};
use crate::Mesh;
use manet_engine::random::Purpose;
use manet_engine::{Duration, Instant, Stream};
use manet_routing::Protocol;

/// Time after which the proactive protocols know all routes (DSDV: one period of 15 s, OLSR: some intervals of 5 s).
const WARM_UP_S: f64 = 60.0;
/// The break is at a random time in this window: at any phase of DSDV's period.
const WINDOW_S: f64 = 15.0;
/// Longest wait for the new path: three of DSDV's periods without an update, and the one with the new route.
const PATIENCE_S: f64 = 90.0;
/// 64 bytes forty times a second: far below the capacity of the longest path.
const GAP: Duration = Duration::from_millis(25);
const BYTES: u16 = 64;

/// The scenario with `hops` (2 or more) from the source to the destination.
pub fn scenario(seed: u64, hops: usize) -> Scenario {
    let relays = hops - 1;
    let row = |y: f64| (1..=relays).map(move |i| [200.0 * i as f64, y, 0.0]);
    let mut positions = vec![[0.0, 0.0, 0.0], [200.0 * hops as f64, 0.0, 0.0]];
    positions.extend(row(100.0).chain(row(-100.0)));
    let length = Duration::from_secs_f64(WARM_UP_S + WINDOW_S + PATIENCE_S);
    let mut scenario = Scenario::standing(seed, length, positions);
    let start = Instant::ZERO + Duration::from_secs_f64(WARM_UP_S - 10.0);
    scenario.flows.push(Flow { from: 0, to: 1, bytes: BYTES, gap: GAP, start, stop: Instant::ZERO + length });
    scenario
}

/// The effects of one break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// From the last delivery on the old path to the first on the new one; `None`: no delivery within [`PATIENCE_S`].
    pub interruption: Option<Duration>,
    /// Packets offered after the break (or shortly before) and never delivered.
    pub lost: u64,
    /// Number of loops found.
    pub loops: u64,
}

struct Break;

impl Visitor for Break {
    type Out = Reaction;
    fn visit<P: Protocol>(self, mut mesh: Mesh<P>) -> Reaction {
        let mut rng = Stream::new(mesh.scenario().seed, 1, Purpose::Traffic);
        let at = Instant::ZERO + Duration::from_secs_f64(WARM_UP_S + WINDOW_S * rng.unit());
        mesh.run_until(at);
        let last = *mesh.seen.flows[0].deliveries.last().expect("after the warm-up packets are delivered");
        let relay = last.last_hop.expect("its destination had it from a neighbour");
        assert!(relay >= 2, "{}: the source is no neighbour of the destination", P::NAME);
        mesh.jump(relay, AWAY);
        mesh.run();
        let flow = &mesh.seen.flows[0];
        let old = flow.deliveries.iter().rev().find(|d| d.last_hop == Some(relay)).map_or(last.at, |d| d.at);
        let new = flow.deliveries.iter().find(|d| d.at > at && d.last_hop != Some(relay));
        let delivered = flow.deliveries.iter().filter(|d| flow.offered[d.number as usize] + GAP >= at).count();
        let offered = flow.offered.iter().filter(|o| **o + GAP >= at).count();
        Reaction {
            interruption: new.map(|d| d.at - old),
            lost: (offered - delivered) as u64,
            loops: mesh.seen.loop_count,
        }
    }
}

/// Runs one break with the protocol `name`.
///
/// # Panics
/// If packets were not delivered by a relay before the break.
pub fn run(name: &str, feedback: bool, seed: u64, hops: usize) -> Reaction {
    let (scenario, options) = protocols::with_link(name, feedback, &scenario(seed, hops));
    protocols::with(name, scenario, &options, Break).expect("our own protocol takes its own options")
}
