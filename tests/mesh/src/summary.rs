//! A run as one row of a table.

use crate::protocols::{self, Visitor};
use crate::seen::Seen;
use crate::snapshot;
use crate::{Mesh, Scenario};
use manet_engine::Duration;
use manet_routing::{Counters, Protocol};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Name of the protocol.
    pub protocol: &'static str,
    /// Whether it had link feedback.
    pub feedback: bool,
    /// Observations.
    pub seen: Seen,
    /// The machines' counters, summed over the nodes.
    pub counters: Counters,
}

/// Runs a mesh to the end of its scenario.
pub struct Run;

impl Visitor for Run {
    type Out = Summary;
    fn visit<P: Protocol>(self, mut mesh: Mesh<P>) -> Summary {
        mesh.run();
        of(mesh)
    }
}

/// The result of a mesh so far.
pub fn of<P: Protocol>(mesh: Mesh<P>) -> Summary {
    let mut counters = Counters::default();
    for i in 0..mesh.nodes() {
        for (name, n) in mesh.machine(i).status(mesh.now()).counters.iter() {
            counters.add(name, n);
        }
    }
    Summary { protocol: P::NAME, feedback: mesh.scenario().feedback, seen: mesh.seen, counters }
}

/// Runs `scenario` with the protocol `name`.
pub fn run(name: &str, feedback: bool, scenario: &Scenario) -> Summary {
    let (scenario, options) = protocols::with_link(name, feedback, scenario);
    protocols::with(name, scenario, &options, Run).expect("our own protocol takes its own options")
}

/// Column names of [`table`].
pub const HEADER: [&str; 17] = [
    "protocol",
    "link",
    "offered",
    "deliv",
    "deliv%",
    "delay_ms",
    "p95_ms",
    "hops",
    "ctl_pkt",
    "ctl_tx",
    "ctl_kB",
    "added_kB",
    "ctl/deliv",
    "disc",
    "disc_ms",
    "routed%",
    "loops",
];

/// Explanation of the columns.
pub const LEGEND: &str = "\
deliv: data packets delivered (once); delay_ms: their mean delay; p95_ms: 95 % had less; hops: their mean hop count
ctl_pkt: control packets machines gave to the radio; ctl_tx: frames on the air with control packets, retries counted; ctl_kB: their bytes
(IP, UDP, MAC header and FCS included); added_kB: DSR's headers in data frames; ctl/deliv: ctl_tx per delivered packet
disc: searches that found a route, disc_ms: their median time from the first request to the route
routed%: of all pairs that are connected, looked at ten times a second, those with routes that lead there; on demand: -
loops: next hops that went round, checked at each change of a route (DSR: source routes that name a node twice)
";

impl Summary {
    /// Value of the option `link`.
    pub fn link(&self) -> &'static str {
        protocols::link(self.protocol, self.feedback)
    }

    /// Whether the protocol searches for routes on demand only.
    pub fn on_demand(&self) -> bool {
        matches!(self.protocol, "aodv" | "dsr")
    }

    /// The cells of the run's row.
    pub fn row(&self) -> Vec<String> {
        let s = &self.seen;
        let (offered, delivered) = (s.packets_offered(), s.packets_delivered());
        let delays = self.delays();
        let hops: u64 = s.flows.iter().flat_map(|f| &f.deliveries).map(|d| u64::from(d.hops)).sum();
        let found = &s.discoveries.latencies;
        let proactive = |text: String| if self.on_demand() { "-".to_owned() } else { text };
        vec![
            self.protocol.to_owned(),
            self.link().to_owned(),
            offered.to_string(),
            delivered.to_string(),
            percent(delivered, offered),
            millis(mean(&delays)),
            millis(quantile(&delays, 0.95)),
            format!("{:.2}", hops as f64 / delivered.max(1) as f64),
            s.control_packets.to_string(),
            s.control.frames.to_string(),
            (s.control.bytes / 1000).to_string(),
            (s.added_bytes / 1000).to_string(),
            format!("{:.2}", s.control.frames as f64 / delivered.max(1) as f64),
            if found.is_empty() { "-".to_owned() } else { found.len().to_string() },
            millis(quantile(found, 0.5)),
            proactive(percent(s.links.routed, s.links.connected)),
            s.loop_count.to_string(),
        ]
    }

    fn delays(&self) -> Vec<Duration> {
        let flow = |f: &crate::seen::FlowSeen| -> Vec<Duration> {
            f.deliveries.iter().map(|d| d.at - f.offered[d.number as usize]).collect()
        };
        self.seen.flows.iter().flat_map(flow).collect()
    }
}

/// The table, one row per run.
pub fn table(runs: &[Summary]) -> String {
    snapshot::table(&HEADER, &runs.iter().map(Summary::row).collect::<Vec<_>>())
}

/// All counters of machines, kernels and radios, one line per run and kind.
pub fn counts(runs: &[Summary]) -> String {
    let line =
        |names: Vec<(String, u64)>| names.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ");
    let run = |s: &Summary| {
        let notes = s.seen.notes.iter().map(|(k, v)| (k.clone(), *v)).collect();
        let own = |c: &Counters| c.iter().map(|(k, v)| (k.to_owned(), v)).collect();
        let head = format!("{} {}", s.protocol, s.link());
        format!(
            "{head}, machine: {}\n{head}, notes: {}\n{head}, kernel and radio: {}\n",
            line(own(&s.counters)),
            line(notes),
            line(own(&s.seen.events))
        )
    };
    runs.iter().map(run).collect()
}

/// A share in percent with one decimal.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}", 100.0 * part as f64 / whole.max(1) as f64)
}

/// A duration in ms with one decimal; `-` for `None`.
pub fn millis(d: Option<Duration>) -> String {
    d.map_or("-".to_owned(), |d| format!("{:.1}", d.as_secs_f64() * 1e3))
}

/// A duration in s with two decimals; `-` for `None`.
pub fn seconds(d: Option<Duration>) -> String {
    d.map_or("-".to_owned(), |d| format!("{:.2}", d.as_secs_f64()))
}

/// The mean; `None` for no durations.
pub fn mean(durations: &[Duration]) -> Option<Duration> {
    let sum: u64 = durations.iter().map(|d| d.as_nanos()).sum();
    (!durations.is_empty()).then(|| Duration::from_nanos(sum / durations.len() as u64))
}

/// The smallest value that at least a `share` (0 to 1) of them does not exceed; of two medians the lower. `None` for no durations.
pub fn quantile(durations: &[Duration], share: f64) -> Option<Duration> {
    let mut sorted = durations.to_vec();
    sorted.sort();
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let all: Vec<Duration> = (1..=20).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&all, 0.5), Some(Duration::from_millis(10)));
        assert_eq!(quantile(&all, 0.95), Some(Duration::from_millis(19)));
        assert_eq!((quantile(&all[..1], 0.5), quantile(&[], 0.5)), (Some(Duration::from_millis(20)), None));
        assert_eq!(mean(&all), Some(Duration::from_micros(10_500)));
    }
}
