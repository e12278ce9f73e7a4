//! Lateness, stalls and verdict of each second of a run (`lateness.csv`, formats/air.md).
//!
//! The rows stay in memory until the end of the run, some 60 bytes a second: the loop that releases frames writes no file.

use manet_engine::{Duration, Instant, Lateness};
use manet_medium::run_verdict::{judge, Evidence, Thresholds};
use std::fmt::Write;

const EVERY: Duration = Duration::from_secs(1);
const HEAD: &str = "t_ns,count,p50_us,p99_us,max_us,stalls,stalled_ms,verdict\n";

/// The rows so far, and the measurements at the last one.
#[derive(Default)]
pub struct LatenessLog {
    rows: String,
    due: Instant,
    lateness: Lateness,
    stalls: u64,
    stalled: Duration,
}

impl LatenessLog {
    /// Whether a second has passed since the last row.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due + EVERY
    }

    /// Adds a row: the releases and the stalls since the last row, and the verdict so far.
    pub fn note(&mut self, evidence: &Evidence, thresholds: &Thresholds) {
        let here = evidence.lateness.since(&self.lateness);
        let us = |d: Duration| d.as_nanos() as f64 / 1e3;
        let _ = writeln!(
            self.rows,
            "{},{},{},{},{},{},{},{}",
            evidence.model.as_nanos(),
            here.count(),
            us(here.quantile(0.5)),
            us(here.quantile(0.99)),
            us(here.max()),
            evidence.stalls - self.stalls,
            us(evidence.stalled - self.stalled) / 1e3,
            judge(evidence, thresholds).verdict.name(),
        );
        self.due = Instant::ZERO + evidence.model;
        (self.lateness, self.stalls, self.stalled) = (evidence.lateness.clone(), evidence.stalls, evidence.stalled);
    }

    /// The content of the file.
    pub fn text(&self) -> String {
        format!("{HEAD}{}", self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_its_own_second_and_the_verdict_of_all_seconds_so_far() {
        let mut log = LatenessLog::default();
        assert!(!log.is_due(Instant::ZERO));
        assert!(log.is_due(Instant::ZERO + EVERY));
        let mut evidence = Evidence { model: EVERY, ..Evidence::default() };
        evidence.lateness.record(Duration::from_micros(100));
        log.note(&evidence, &Thresholds::default());
        evidence.model = EVERY + EVERY;
        evidence.stalls = 1;
        evidence.stalled = Duration::from_millis(700);
        evidence.longest_stall = evidence.stalled;
        log.note(&evidence, &Thresholds::default());
        assert_eq!(log.text(), include_str!("../../../formats/examples/lateness.csv"));
    }
}
