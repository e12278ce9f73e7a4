//! Fifty mobile nodes for 900 s, every protocol with link feedback and without: no routing loop, and the cost of routing.
//! `snapshots/mobile.txt` has the table and the fingerprints, `snapshots/counters.txt` all counters,
//! `snapshots/rests.txt` how routes follow when all nodes stop.

use manet_engine::{Duration, Instant};
use manet_mesh::protocols::{self, Visitor};
use manet_mesh::scenario::{Scenario, Waypoints};
use manet_mesh::seen::{Loop, CONVERGED};
use manet_mesh::summary::{self, Summary};
use manet_mesh::{snapshot, Mesh};
use manet_routing::Protocol;

const NODES: usize = 50;
const LENGTH: Duration = Duration::from_secs(900);
const SEED: u64 = 1;
/// The area and the traffic of Broch et al. (MobiCom 1998, section 4), a packet size that DSR's headers do not dominate; no
/// rests, and no speed below 1 m/s, so that the mean speed does not decay.
const HOW: Waypoints = Waypoints { area_m: [1500.0, 300.0], speed_mps: [1.0, 20.0], pause_s: 0.0, go_and_rest_s: None };
const FLOWS: usize = 10;
const BYTES: u16 = 512;
const GAP: Duration = Duration::from_millis(250);
const START_S: [f64; 2] = [10.0, 20.0];

/// Seconds in which all nodes move and in which all rest, in turns.
const ROUND_S: [f64; 2] = [60.0, 60.0];

fn mobile(how: Waypoints) -> Scenario {
    Scenario::waypoints(SEED, LENGTH, NODES, how).with_flows(FLOWS, BYTES, GAP, START_S)
}

const MOBILE: &str = "\
50 nodes in 1500 m x 300 m, range 250 m, 2 Mbit/s (medium/radios/ns2-dsss-2m.toml); random waypoint, 1 to 20 m/s, no pause; 900 s;
10 flows of 512 bytes, 4 packets a second; seed 1. tests/mobile.rs, UPDATE=1 rewrites.
";

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation: cargo test --release")]
fn fifty_mobile_nodes_have_no_loops() {
    let scenario = mobile(HOW);
    let run = |(name, feedback): &(&str, bool)| summary::run(name, *feedback, &scenario);
    let runs: Vec<Summary> = snapshot::in_parallel(&protocols::variants(), run);
    let mut text = format!("{MOBILE}\n{}\n{}\n", summary::LEGEND, summary::table(&runs));
    let links = &runs[0].seen.links;
    text += &format!(
        "{} % of all pairs are connected, over {:.2} hops in the mean; a link comes or goes in {} % of the looks\n",
        summary::percent(links.connected, links.pairs),
        links.hops as f64 / links.connected as f64,
        summary::percent(links.changes, links.samples)
    );
    text += "\nFingerprints of all outputs of all machines in order (FNV-1a)\n";
    for r in &runs {
        text += &format!("{:<5} {:<9} {:016x}\n", r.protocol, r.link(), r.seen.fingerprint.value());
    }
    for r in &runs {
        let (what, link) = (r.protocol, r.link());
        if matches!(what, "olsr" | "tora") {
            // OLSR: nodes calculate routes from different knowledge while an update is under way. TORA: a node whose height
            // rose is used by neighbours until they have its update
            assert_eq!(r.seen.late_loop_count, 0, "{what}, {link}: {}", describe(&r.seen.late_loops));
        } else {
            assert_eq!(r.seen.loop_count, 0, "{what}, {link}: {}", describe(&r.seen.loops));
            assert_eq!(r.seen.events.get("ttl-expired"), 0, "{what}, {link}: {:?}", r.seen.events);
        }
    }
    snapshot::check("mobile", &text);
    snapshot::check("counters", &format!("{MOBILE}\n{}", summary::counts(&runs)));
}

fn describe(loops: &[Loop]) -> String {
    loops.iter().map(|l| format!("\n  {l:?}")).collect()
}

/// A run with rests: observations, and the loops at the end of each rest.
struct Rested {
    run: Summary,
    at_rest: Vec<(usize, Vec<usize>)>,
    /// Times from the start, and from the last link change before each rest's end, until all pairs had routes that reach the
    /// destination; `None`: they had not when the rest ended.
    convergences: Vec<Option<Duration>>,
}

struct Rests;

impl Visitor for Rests {
    type Out = Rested;
    fn visit<P: Protocol>(self, mut mesh: Mesh<P>) -> Rested {
        let (mut at_rest, mut convergences) = (Vec::new(), Vec::new());
        let round = ROUND_S[0] + ROUND_S[1];
        for i in 0..(LENGTH.as_secs_f64() / round) as u32 {
            mesh.run_until(Instant::ZERO + Duration::from_secs_f64(round * (f64::from(i) + 1.0) - 0.05));
            at_rest.extend(mesh.loops_now());
            let links = &mesh.seen.links;
            let quiet = mesh.now() - links.last_change;
            assert!(quiet > CONVERGED, "round {i}: only {quiet:?} without a change");
            convergences.push(links.convergences.last().copied().filter(|_| links.disturbed.is_none()));
        }
        Rested { run: summary::of(mesh), at_rest, convergences }
    }
}

/// TORA: the loops of each second, those of them in which no node waits for the acknowledgement of a height, and those that
/// were there a second before as well.
#[derive(Default)]
struct Unexplained {
    seconds: u32,
    loops: usize,
    acknowledged: usize,
    lasting: usize,
}

impl Visitor for Unexplained {
    type Out = Self;
    fn visit<P: Protocol>(mut self, mut mesh: Mesh<P>) -> Self {
        let mut before = Vec::new();
        let end = mesh.scenario().length.as_secs_f64() as u64;
        for second in 1..end {
            mesh.run_until(Instant::ZERO + Duration::from_secs(second));
            let mut loops = mesh.loops_now();
            loops.iter_mut().for_each(|(_, ring)| ring.sort());
            loops.sort();
            loops.dedup();
            let waits = |node: &usize| {
                let details = mesh.machine(*node).status(mesh.now()).details;
                details["outstanding"] != 0 || details["queued"] != 0
            };
            self.seconds += 1;
            self.loops += loops.len();
            self.acknowledged += loops.iter().filter(|(_, ring)| !ring.iter().any(waits)).count();
            self.lasting += loops.iter().filter(|ring| before.contains(*ring)).count();
            before = loops;
        }
        self
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation: cargo test --release")]
fn toras_loops_end_when_the_heights_are_acknowledged() {
    let how = Waypoints { go_and_rest_s: Some(ROUND_S), ..HOW };
    let scenario = Scenario { length: Duration::from_secs(300), ..mobile(how) };
    let (scenario, options) = protocols::with_link("tora", true, &scenario);
    let seen = protocols::with("tora", scenario, &options, Unexplained::default()).expect("its own options");
    let share = |loops: usize| loops as f64 / f64::from(seen.seconds);
    println!(
        "tora: {:.3} loops in the mean, {:.3} without an outstanding block, {:.3} for more than a second",
        share(seen.loops),
        share(seen.acknowledged),
        share(seen.lasting)
    );
    assert!(seen.loops > 0 && share(seen.acknowledged) < 0.05 && share(seen.lasting) < 0.5);
}

const RESTS: &str = "\
As mobile.txt, but all nodes go on for 60 s and rest for 60 s, in turns, without data (so there is no link feedback):
protocols that keep routes to all.
start_s: how long 50 standing nodes that start together take until all connected pairs have routes that lead there; rests: so many;
of these conv converged, within median_s and max_s of the last link change; loops: transient ones while links change;
late: loops that arise, or are there when the rest ends, though no link has changed for 26 s (tests/mesh/src/seen.rs)
";

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation: cargo test --release")]
fn routes_are_right_and_without_loops_soon_after_the_last_change() {
    let scenario = Scenario { flows: Vec::new(), ..mobile(Waypoints { go_and_rest_s: Some(ROUND_S), ..HOW }) };
    let standing = Scenario { moves: Vec::new(), length: Duration::from_secs(120), ..scenario.clone() };
    let run = |name: &&str| {
        let start = summary::run(name, true, &standing).seen.links.convergences.first().copied();
        let (scenario, options) = protocols::with_link(name, true, &scenario);
        let rested = protocols::with(name, scenario, &options, Rests).expect("our own protocol takes its own options");
        (start, rested)
    };
    let results: Vec<(Option<Duration>, Rested)> = snapshot::in_parallel(&["olsr", "dsdv"], run);
    let row = |(start, r): &(Option<Duration>, Rested)| {
        let converged: Vec<Duration> = r.convergences.iter().flatten().copied().collect();
        vec![
            r.run.protocol.to_owned(),
            summary::seconds(*start),
            r.convergences.len().to_string(),
            converged.len().to_string(),
            summary::seconds(summary::quantile(&converged, 0.5)),
            summary::seconds(summary::quantile(&converged, 1.0)),
            r.run.seen.loop_count.to_string(),
            (r.run.seen.late_loop_count + r.at_rest.len() as u64).to_string(),
            format!("{:016x}", r.run.seen.fingerprint.value()),
        ]
    };
    let header = ["protocol", "start_s", "rests", "conv", "median_s", "max_s", "loops", "late", "fingerprint"];
    let rows: Vec<Vec<String>> = results.iter().map(row).collect();
    let text = format!("{RESTS}\n{}", snapshot::table(&header, &rows));
    for (start, r) in &results {
        let what = r.run.protocol;
        assert!(start.is_some(), "{what}: standing nodes never all had routes\n{text}");
        assert_eq!(r.run.seen.late_loop_count, 0, "{what}: {}", describe(&r.run.seen.late_loops));
        assert!(r.at_rest.is_empty(), "{what}: {:?}", r.at_rest);
        assert!(what == "olsr" || r.run.seen.loop_count == 0, "{what}: {}", describe(&r.run.seen.loops));
        assert!(r.convergences.iter().all(Option::is_some), "{what}: {:?}\n{text}", r.convergences);
    }
    snapshot::check("rests", &text);
}
