//! Validity of a real-time run: a pure function of the driver's measurements of the host.
//!
//! An overloaded host makes results look too good, because a late medium gives hosts time that a real one would not.
//! The thresholds are configuration (key `verdict` of medium.json); their defaults come from injecting
//! lateness and stalls and watching throughput: docs/verdict.md.

use crate::wire::dot11::MAX_MSDU_BYTES;
use manet_engine::keys::{of, within, Limits};
use manet_engine::{keys, Duration, Lateness};
use serde::{Deserialize, Serialize};

/// Validity of a run, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunVerdict {
    /// All measurements are below the thresholds.
    Valid,
    /// A measurement reaches a `suspect` threshold.
    Suspect,
    /// A measurement reaches a `void` threshold, or an output is incomplete.
    Void,
}

impl RunVerdict {
    /// The word of the files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Suspect => "suspect",
            Self::Void => "void",
        }
    }
}

/// Range of a share of the releases or of the run.
const SHARE: Limits = within(0.0, 1.0);

keys! {
    /// A run is suspect or void if a measurement is at or above one of these thresholds.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Thresholds {
        /// A release to a host later than this counts as late.
        pub late_us: u64 = 5_000 => of("us");
        /// Share of late releases, from which a run is suspect.
        pub suspect_late_share: f64 = 0.05 => SHARE;
        /// Share of late releases, from which a run is void.
        pub void_late_share: f64 = 0.20 => SHARE;
        /// Share of the run that falls into stalls (gaps of more than 50 ms in the driver's loop), from which it is suspect.
        pub suspect_stalled_share: f64 = 0.01 => SHARE;
        /// Share of the run that falls into stalls, from which it is void.
        pub void_stalled_share: f64 = 0.05 => SHARE;
        /// Length of the longest stall, from which a run is suspect.
        pub suspect_stall_ms: u64 = 150 => of("ms");
        /// Length of the longest stall, from which a run is void.
        pub void_stall_ms: u64 = 500 => of("ms");
        /// Number of frames lost between the medium and the hosts, from which a run is suspect.
        pub suspect_tap_drops: u64 = 1 => of("frames");
        /// Number of frames lost between the medium and the hosts, from which a run is void.
        pub void_tap_drops: u64 = 20 => of("frames");
    }
}

/// Measurements of a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Lateness of the releases to the hosts.
    pub lateness: Lateness,
    /// Number of stalls.
    pub stalls: u64,
    /// Total length of the stalls.
    pub stalled: Duration,
    /// Length of the longest stall.
    pub longest_stall: Duration,
    /// Frames from the hosts that the kernel dropped before the medium read them.
    pub tap_read_drops: u64,
    /// Frames that could not be written to the hosts.
    pub tap_write_drops: u64,
    /// Frames from the hosts that no 802.11 station can send, and that the medium refused.
    pub too_long: u64,
    /// Rows missing in the air log and lines missing in the log of inputs.
    pub log_drops: u64,
    /// Reasons why the results are incomplete, one line each: files not written, interfaces removed.
    pub write_errors: Vec<String>,
    /// Length of the run in model time.
    pub model: Duration,
    /// Processor time of the daemon, s.
    pub cpu_s: f64,
}

impl Evidence {
    fn stalled_share(&self) -> f64 {
        if self.stalled == Duration::ZERO {
            return 0.0;
        }
        self.stalled.as_secs_f64() / self.model.max(self.stalled).as_secs_f64()
    }
}

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: RunVerdict,
    /// Share (0 to 1) of late releases.
    pub late_share: f64,
    /// Measurements that reach a threshold, one line each.
    pub reasons: Vec<String>,
}

/// Compares the measurements of a run with the thresholds.
pub fn judge(evidence: &Evidence, t: &Thresholds) -> Judgement {
    let late_share = evidence.lateness.share_above(Duration::from_micros(t.late_us));
    let mut judgement = Judgement { verdict: RunVerdict::Valid, late_share, reasons: Vec::new() };
    let mut find = |void: bool, suspect: bool, reason: String| {
        if void || suspect {
            judgement.verdict = judgement.verdict.max(if void { RunVerdict::Void } else { RunVerdict::Suspect });
            judgement.reasons.push(reason);
        }
    };
    find(
        late_share >= t.void_late_share && late_share > 0.0,
        late_share >= t.suspect_late_share && late_share > 0.0,
        format!("{:.2} % of releases were more than {} us late", late_share * 100.0, t.late_us),
    );
    let longest_ms = evidence.longest_stall.as_nanos() / 1_000_000;
    let stalled_share = evidence.stalled_share();
    find(
        stalled_share >= t.void_stalled_share || longest_ms >= t.void_stall_ms,
        stalled_share >= t.suspect_stalled_share || longest_ms >= t.suspect_stall_ms,
        format!(
            "the medium stood still {}, for up to {longest_ms} ms and {:.2} % of the run",
            if evidence.stalls == 1 { "once".to_string() } else { format!("{} times", evidence.stalls) },
            stalled_share * 100.0
        ),
    );
    let drops = evidence.tap_read_drops + evidence.tap_write_drops;
    find(
        drops >= t.void_tap_drops,
        drops >= t.suspect_tap_drops,
        format!(
            "{drops} frames were lost at the TAPs ({} from and {} to the hosts)",
            evidence.tap_read_drops, evidence.tap_write_drops
        ),
    );
    find(
        false,
        evidence.too_long > 0,
        format!(
            "{} frames were longer than 802.11 can send (MSDU of {MAX_MSDU_BYTES} bytes) and were refused: lower the MTU of the interface",
            evidence.too_long
        ),
    );
    find(
        false,
        evidence.log_drops > 0,
        format!("{} rows are missing in the air log and the log of inputs", evidence.log_drops),
    );
    for error in &evidence.write_errors {
        find(true, true, error.clone());
    }
    judgement
}

/// The content of `verdict.json` (formats/air.md).
pub fn report(evidence: &Evidence, thresholds: &Thresholds) -> serde_json::Value {
    let judgement = judge(evidence, thresholds);
    serde_json::json!({
        "format": "manet-verdict/1",
        "verdict": judgement.verdict,
        "reasons": judgement.reasons,
        "lateness": lateness_json(&evidence.lateness),
        "late_share": judgement.late_share,
        "tap_read_drops": evidence.tap_read_drops,
        "tap_write_drops": evidence.tap_write_drops,
        "too_long": evidence.too_long,
        "log_drops": evidence.log_drops,
        "stalls": evidence.stalls,
        "stalled_share": evidence.stalled_share(),
        "longest_stall_ms": micros(evidence.longest_stall) / 1e3,
        "thresholds": thresholds,
        "model_ns": evidence.model.as_nanos(),
        "cpu_s": evidence.cpu_s,
    })
}

/// Count, mean, quantiles, maximum and histogram of a lateness, in us.
pub fn lateness_json(lateness: &Lateness) -> serde_json::Value {
    let quantile = |q: f64| micros(lateness.quantile(q));
    serde_json::json!({
        "count": lateness.count(),
        "mean_us": micros(lateness.mean()),
        "p50_us": quantile(0.5),
        "p90_us": quantile(0.9),
        "p99_us": quantile(0.99),
        "p999_us": quantile(0.999),
        "max_us": micros(lateness.max()),
        "histogram_us": lateness.histogram().map(|(bound, n)| (micros(bound), n)).collect::<Vec<_>>(),
    })
}

fn micros(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_late(late: u64, in_time: u64) -> Evidence {
        let mut evidence = Evidence::default();
        for i in 0..late + in_time {
            evidence.lateness.record(if i < late { Duration::from_millis(5) } else { Duration::from_micros(100) });
        }
        evidence
    }

    fn verdict(evidence: &Evidence) -> RunVerdict {
        judge(evidence, &Thresholds::default()).verdict
    }

    #[test]
    fn a_run_in_time_is_valid_and_so_is_one_where_nothing_happened() {
        assert_eq!(verdict(&with_late(0, 1000)), RunVerdict::Valid);
        assert_eq!(verdict(&Evidence::default()), RunVerdict::Valid);
        assert!(judge(&with_late(0, 10), &Thresholds::default()).reasons.is_empty());
    }

    #[test]
    fn the_share_of_late_releases_decides() {
        let late = |late, in_time| {
            let mut evidence = with_late(0, in_time);
            (0..late).for_each(|_| evidence.lateness.record(Duration::from_millis(6)));
            verdict(&evidence)
        };
        assert_eq!(late(49, 951), RunVerdict::Valid);
        assert_eq!(late(50, 950), RunVerdict::Suspect);
        assert_eq!(late(200, 800), RunVerdict::Void);
    }

    #[test]
    fn stalls_are_judged_by_their_share_of_the_run_and_by_the_longest() {
        let stalled = |stalled_ms, longest_ms, run_s| Evidence {
            stalls: 1,
            stalled: Duration::from_millis(stalled_ms),
            longest_stall: Duration::from_millis(longest_ms),
            model: Duration::from_secs(run_s),
            ..Evidence::default()
        };
        assert_eq!(verdict(&stalled(60, 60, 30)), RunVerdict::Valid);
        assert_eq!(verdict(&stalled(310, 60, 30)), RunVerdict::Suspect);
        assert_eq!(verdict(&stalled(1600, 60, 30)), RunVerdict::Void);
        assert_eq!(verdict(&stalled(150, 150, 900)), RunVerdict::Suspect);
        assert_eq!(verdict(&stalled(500, 500, 900)), RunVerdict::Void);
        let reason =
            |stalls| judge(&Evidence { stalls, ..stalled(150, 150, 900) }, &Thresholds::default()).reasons.remove(0);
        assert_eq!(reason(1), "the medium stood still once, for up to 150 ms and 0.02 % of the run");
        assert_eq!(reason(2), "the medium stood still 2 times, for up to 150 ms and 0.02 % of the run");
        // a run shorter than its stall, stopped at once
        assert_eq!(verdict(&stalled(60, 60, 0)), RunVerdict::Void);
    }

    #[test]
    fn every_loss_counts_and_the_worst_decides() {
        let drop = Evidence { tap_read_drops: 1, log_drops: 3, ..Evidence::default() };
        let judgement = judge(&drop, &Thresholds::default());
        assert_eq!((judgement.verdict, judgement.reasons.len()), (RunVerdict::Suspect, 2));
        let many = Evidence { tap_write_drops: 19, ..drop };
        assert_eq!(verdict(&many), RunVerdict::Void);
        let refused = judge(&Evidence { too_long: 7, ..Evidence::default() }, &Thresholds::default());
        assert_eq!(refused.verdict, RunVerdict::Suspect);
        assert!(refused.reasons[0].starts_with("7 frames were longer than 802.11 can send"), "{:?}", refused.reasons);
        let full = Evidence { write_errors: vec!["air.csv: disk full".into()], ..Evidence::default() };
        assert_eq!(judge(&full, &Thresholds::default()).reasons, ["air.csv: disk full"]);
        assert_eq!(verdict(&full), RunVerdict::Void);
    }
}
