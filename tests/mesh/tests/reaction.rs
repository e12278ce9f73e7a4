//! Interruption of a flow when its path breaks and another exists: `snapshots/reaction.txt`.

use manet_engine::Duration;
use manet_mesh::reaction::{self, Reaction};
use manet_mesh::{protocols, snapshot, summary};

const SEEDS: u64 = 20;
const HOPS: [usize; 3] = [2, 3, 4];

const LEGEND: &str = "\
Reaction to a break with an alternative path (src/reaction.rs), 20 seeds a row: seconds from the last delivery on the old
path to the first on the new one; lost: packets of 64 bytes, 40 a second, that were offered after the break and never arrived, mean.
";

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    feedback: bool,
    hops: usize,
}

/// Bound: AODV and DSR with feedback have a median under 0.3 s.
const CLAIM: Duration = Duration::from_millis(300);

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation: cargo test --release")]
fn on_demand_protocols_with_feedback_change_over_at_once() {
    let variants = protocols::variants();
    let case = |hops| variants.iter().map(move |(name, feedback)| Case { name, feedback: *feedback, hops });
    let cases: Vec<Case> = HOPS.into_iter().flat_map(case).collect();
    let seeds = |c: &Case| (1..=SEEDS).map(|seed| reaction::run(c.name, c.feedback, seed, c.hops)).collect();
    let results: Vec<Vec<Reaction>> = snapshot::in_parallel(&cases, seeds);
    let rows: Vec<Vec<String>> = cases.iter().zip(&results).map(|(c, r)| row(c, r)).collect();
    let header = ["protocol", "link", "hops", "min_s", "median_s", "p95_s", "max_s", "never", "lost"];
    snapshot::check("reaction", &format!("{LEGEND}\n{}", snapshot::table(&header, &rows)));
    for (c, r) in cases.iter().zip(&results) {
        let loops: u64 = r.iter().map(|r| r.loops).sum();
        assert!(loops == 0 || matches!(c.name, "olsr" | "tora"), "{} over {} hops: {loops} loops", c.name, c.hops);
        let median = summary::quantile(&interruptions(r), 0.5);
        if c.feedback && matches!(c.name, "aodv" | "dsr") {
            assert!(median.is_some_and(|m| m < CLAIM), "{} over {} hops: {median:?}", c.name, c.hops);
        }
    }
}

fn interruptions(results: &[Reaction]) -> Vec<Duration> {
    results.iter().filter_map(|r| r.interruption).collect()
}

fn row(case: &Case, results: &[Reaction]) -> Vec<String> {
    let times = interruptions(results);
    let share = |share| millis_as_seconds(summary::quantile(&times, share));
    vec![
        case.name.to_owned(),
        protocols::link(case.name, case.feedback).to_owned(),
        case.hops.to_string(),
        share(0.0),
        share(0.5),
        share(0.95),
        share(1.0),
        (results.len() - times.len()).to_string(),
        format!("{:.1}", results.iter().map(|r| r.lost).sum::<u64>() as f64 / results.len() as f64),
    ]
}

fn millis_as_seconds(d: Option<Duration>) -> String {
    d.map_or("-".to_owned(), |d| format!("{:.3}", d.as_secs_f64()))
}
