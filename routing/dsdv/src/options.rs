//! What can be chosen, with ns-2.35's values as defaults (formats/routing.md, "dsdv").

use manet_engine::Duration;
use manet_routing::OptionError;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// The radio tells of failed links.
    Feedback,
    /// Silence tells.
    Hello,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Longest time between full updates.
    #[serde(with = "manet_routing::seconds")]
    pub period: Duration,
    /// Share of the period by which a full update comes earlier, drawn anew each time.
    pub jitter: f64,
    /// Least time between two updates.
    #[serde(with = "manet_routing::seconds")]
    pub trigger_interval: Duration,
    /// An update is sent up to this much later than decided, so that neighbours do not all answer at once.
    #[serde(with = "manet_routing::seconds")]
    pub broadcast_jitter: Duration,
    /// Settling time of a new destination; twice this passes before a changed route is advertised.
    #[serde(with = "manet_routing::seconds")]
    pub settling: Duration,
    /// Weight of the old settling time in the average.
    pub settling_weight: f64,
    /// Whether a fresh number that brings another hop count is advertised when it has settled (SIGCOMM 1994) or waits
    /// for the next update (what ns-2.35 does).
    pub trigger_on_fresh: bool,
    /// A neighbour is lost after so many periods of silence.
    pub missed_periods: u32,
    /// A full update replaces an incremental one that would carry more than this share of the table.
    pub full_dump_share: f64,
    pub link: Link,
    pub held_per_destination: usize,
    pub held_packets: usize,
    #[serde(with = "manet_routing::seconds")]
    pub held_seconds: Duration,
    /// Whether a neighbour must be heard to hear us before anything it says is believed.
    pub bidirectional_check: bool,
}

impl Options {
    /// The defaults, but the radio tells of failed links (ns-2's `use_mac_`, which is off there as here).
    pub fn with_feedback() -> Self {
        Self { link: Link::Feedback, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(15),
            jitter: 0.25,
            trigger_interval: Duration::from_secs(1),
            broadcast_jitter: Duration::from_millis(10),
            settling: Duration::from_secs(6),
            settling_weight: 0.875,
            trigger_on_fresh: true,
            missed_periods: 3,
            full_dump_share: 1.0 / 3.0,
            link: Link::Hello,
            held_per_destination: 5,
            held_packets: 64,
            held_seconds: Duration::from_secs(30),
            bidirectional_check: false,
        }
    }
}

impl Options {
    /// One line that names what is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        let share = |name: &str, v: f64| {
            (0.0..=1.0)
                .contains(&v)
                .then_some(())
                .ok_or_else(|| OptionError(format!("{name}: {v} is no share; choose 0 to 1")))
        };
        share("jitter", self.jitter)?;
        share("settling_weight", self.settling_weight)?;
        share("full_dump_share", self.full_dump_share)?;
        if self.jitter == 1.0 {
            return Err("jitter: 1 lets updates follow without pause; choose less than 1".to_owned().into());
        }
        let short = Duration::from_millis(10);
        if self.period < short || self.trigger_interval < short {
            return Err("period, trigger_interval: at least 0.01 (seconds)".to_owned().into());
        }
        if self.missed_periods == 0 {
            return Err("missed_periods: 0 loses each neighbour at once; choose 1 or more".to_owned().into());
        }
        if self.held_packets > 10_000 || self.held_per_destination > 10_000 {
            return Err("held_packets, held_per_destination: at most 10000".to_owned().into());
        }
        Ok(())
    }

    /// Silence after which a neighbour is lost.
    pub fn silence(&self) -> Duration {
        self.period * u64::from(self.missed_periods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back_and_unknown_ones_are_refused() {
        let json = serde_json::to_string(&Options::default()).unwrap();
        assert_eq!(serde_json::from_str::<Options>(&json).unwrap(), Options::default());
        assert_eq!(serde_json::from_str::<Options>(r#"{"period":5}"#).unwrap().period, Duration::from_secs(5));
        assert!(serde_json::from_str::<Options>(r#"{"port":269}"#).is_err());
    }

    #[test]
    fn senseless_options_are_refused_by_name() {
        let wrong = |json: &str| serde_json::from_str::<Options>(json).unwrap().check().unwrap_err().0;
        assert!(wrong(r#"{"settling_weight":1.5}"#).starts_with("settling_weight"));
        assert!(wrong(r#"{"period":0}"#).starts_with("period"));
        assert!(wrong(r#"{"jitter":1}"#).starts_with("jitter"));
        assert!(wrong(r#"{"missed_periods":0}"#).starts_with("missed_periods"));
        assert!(wrong(r#"{"held_packets":100000}"#).starts_with("held_packets"));
        assert_eq!(Options::default().check(), Ok(()));
    }
}
