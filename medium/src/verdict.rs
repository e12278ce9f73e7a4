//! Is a real-time run to be believed? A pure function of what the driver saw of the host.
//!
//! A run on an overloaded host looks better than it is, because a late medium gives hosts time that the air would not.
//! The thresholds are configuration (key `verdict` of medium.json); their defaults come from injecting
//! lateness and stalls and watching throughput: docs/verdict.md.

use manet_engine::{Duration, Lateness};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Valid,
    Suspect,
    Void,
}

/// At or above which value a run is suspect or void.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// A release later than this is late.
    pub late_us: u64,
    /// Share of releases that are late.
    pub suspect_late_share: f64,
    pub void_late_share: f64,
    /// Share of the run in which the loop did not turn for more than 50 ms at a time.
    pub suspect_stalled_share: f64,
    pub void_stalled_share: f64,
    /// The longest such time.
    pub suspect_stall_ms: u64,
    pub void_stall_ms: u64,
    /// Frames lost between the medium and the hosts.
    pub suspect_tap_drops: u64,
    pub void_tap_drops: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            late_us: 5_000,
            suspect_late_share: 0.05,
            void_late_share: 0.20,
            suspect_stalled_share: 0.01,
            void_stalled_share: 0.05,
            suspect_stall_ms: 150,
            void_stall_ms: 500,
            suspect_tap_drops: 1,
            void_tap_drops: 20,
        }
    }
}

/// Why thresholds are refused: one line that names the key of medium.json.
#[derive(Debug)]
pub enum ThresholdsError {
    /// Not an object with the keys and types of [`Thresholds`]: serde's words.
    Json(serde_json::Error),
    /// A share is not between 0 and 1, or that of `suspect` is above that of `void`.
    Shares,
}

impl fmt::Display for ThresholdsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("key \"verdict\": ")?;
        match self {
            Self::Json(e) => e.fmt(f),
            Self::Shares => f.write_str("shares must lie between 0 and 1, suspect not above void"),
        }
    }
}
impl std::error::Error for ThresholdsError {}

impl Thresholds {
    /// From the key `verdict` of medium.json; without it, the defaults.
    pub fn from_config(value: Option<&serde_json::Value>) -> Result<Self, ThresholdsError> {
        let Some(value) = value else { return Ok(Self::default()) };
        let t = Self::deserialize(value).map_err(ThresholdsError::Json)?;
        let pairs = [(t.suspect_late_share, t.void_late_share), (t.suspect_stalled_share, t.void_stalled_share)];
        if pairs.iter().any(|(suspect, void)| !(0.0..=1.0).contains(suspect) || !(*suspect..=1.0).contains(void)) {
            return Err(ThresholdsError::Shares);
        }
        Ok(t)
    }
}

/// What was seen of a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub lateness: Lateness,
    pub stalls: u64,
    pub stalled: Duration,
    pub longest_stall: Duration,
    pub tap_read_drops: u64,
    pub tap_write_drops: u64,
    pub log_drops: u64,
    /// What makes the results incomplete, a line each: files that could not be written, interfaces that went away.
    pub write_errors: Vec<String>,
    pub model: Duration,
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

/// A verdict and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub late_share: f64,
    pub reasons: Vec<String>,
}

pub fn judge(evidence: &Evidence, t: &Thresholds) -> Judgement {
    let late_share = evidence.lateness.share_above(Duration::from_micros(t.late_us));
    let mut judgement = Judgement { verdict: Verdict::Valid, late_share, reasons: Vec::new() };
    let mut find = |void: bool, suspect: bool, reason: String| {
        if void || suspect {
            judgement.verdict = judgement.verdict.max(if void { Verdict::Void } else { Verdict::Suspect });
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
            "the medium stood still {} times, for up to {longest_ms} ms and {:.2} % of the run",
            evidence.stalls,
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
        evidence.log_drops > 0,
        format!("{} rows are missing in the air log and the log of inputs", evidence.log_drops),
    );
    for error in &evidence.write_errors {
        find(true, true, error.clone());
    }
    judgement
}

/// `verdict.json` (formats/air.md).
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
        "log_drops": evidence.log_drops,
        "stalls": evidence.stalls,
        "stalled_share": evidence.stalled_share(),
        "longest_stall_ms": micros(evidence.longest_stall) / 1e3,
        "thresholds": thresholds,
        "model_ns": evidence.model.as_nanos(),
        "cpu_s": evidence.cpu_s,
    })
}

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

    fn verdict(evidence: &Evidence) -> Verdict {
        judge(evidence, &Thresholds::default()).verdict
    }

    #[test]
    fn a_run_in_time_is_valid_and_so_is_one_where_nothing_happened() {
        assert_eq!(verdict(&with_late(0, 1000)), Verdict::Valid);
        assert_eq!(verdict(&Evidence::default()), Verdict::Valid);
        assert!(judge(&with_late(0, 10), &Thresholds::default()).reasons.is_empty());
    }

    #[test]
    fn the_share_of_late_releases_decides() {
        let late = |late, in_time| {
            let mut evidence = with_late(0, in_time);
            (0..late).for_each(|_| evidence.lateness.record(Duration::from_millis(6)));
            verdict(&evidence)
        };
        assert_eq!(late(49, 951), Verdict::Valid);
        assert_eq!(late(50, 950), Verdict::Suspect);
        assert_eq!(late(200, 800), Verdict::Void);
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
        assert_eq!(verdict(&stalled(60, 60, 30)), Verdict::Valid);
        assert_eq!(verdict(&stalled(310, 60, 30)), Verdict::Suspect);
        assert_eq!(verdict(&stalled(1600, 60, 30)), Verdict::Void);
        assert_eq!(verdict(&stalled(150, 150, 900)), Verdict::Suspect);
        assert_eq!(verdict(&stalled(500, 500, 900)), Verdict::Void);
        // a run shorter than its stall, stopped at once
        assert_eq!(verdict(&stalled(60, 60, 0)), Verdict::Void);
    }

    #[test]
    fn every_loss_counts_and_the_worst_decides() {
        let drop = Evidence { tap_read_drops: 1, log_drops: 3, ..Evidence::default() };
        let judgement = judge(&drop, &Thresholds::default());
        assert_eq!((judgement.verdict, judgement.reasons.len()), (Verdict::Suspect, 2));
        let many = Evidence { tap_write_drops: 19, ..drop };
        assert_eq!(verdict(&many), Verdict::Void);
        let full = Evidence { write_errors: vec!["air.csv: disk full".into()], ..Evidence::default() };
        assert_eq!(judge(&full, &Thresholds::default()).reasons, ["air.csv: disk full"]);
        assert_eq!(verdict(&full), Verdict::Void);
    }

    #[test]
    fn thresholds_are_configuration_and_checked() {
        let read = |text: &str| Thresholds::from_config(Some(&serde_json::from_str(text).unwrap()));
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(read(r#"{"late_us": 7}"#).unwrap().late_us, 7);
        assert!(refusal(r#"{"late_ms": 7}"#).starts_with("key \"verdict\": unknown field"));
        assert!(refusal(r#"{"suspect_late_share": 0.5}"#).contains("suspect not above void"));
        assert_eq!(Thresholds::from_config(None).unwrap(), Thresholds::default());
    }
}
