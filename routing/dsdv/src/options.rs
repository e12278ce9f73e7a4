//! Options with ns-2.35's values as defaults (formats/routing.md, "dsdv").

use manet_engine::keys::{above, below, from, up_to, within, Declared};
use manet_engine::{choices, keys, Duration};
use manet_routing::OptionError;
use serde::{Deserialize, Serialize};

choices! {
    /// Detection of broken links.
    pub enum Link {
        /// The radio reports failed links.
        Feedback = "feedback",
        /// A silent neighbour is a failed link.
        Hello = "hello",
    }
}

keys! {
    /// Options of the daemon; formats/routing.md has units and ranges.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Options {
        /// Maximum time between full updates.
        #[serde(with = "manet_routing::seconds")]
        pub period: Duration = Duration::from_secs(15) => from(0.01);
        /// Maximum share of the period by which a full update comes earlier; uniform, drawn for each update. With 1, updates would
        /// follow without pause.
        pub jitter: f64 = 0.25 => below(0.0, 1.0);
        /// Minimum time between two updates.
        #[serde(with = "manet_routing::seconds")]
        pub trigger_interval: Duration = Duration::from_secs(1) => from(0.01);
        /// Maximum random delay of an update, so that neighbours do not all answer at once.
        #[serde(with = "manet_routing::seconds")]
        pub broadcast_jitter: Duration = Duration::from_millis(10);
        /// Settling time of a new destination; a changed route is advertised after twice its settling time.
        #[serde(with = "manet_routing::seconds")]
        pub settling: Duration = Duration::from_secs(6);
        /// Weight of the old settling time in its moving average.
        pub settling_weight: f64 = 0.875 => within(0.0, 1.0);
        /// Fresh sequence number with another hop count. True: it is advertised when it has settled (SIGCOMM 1994). False: it waits
        /// for the next update (ns-2.35).
        pub trigger_on_fresh: bool = true;
        /// Periods of silence after which a neighbour is lost.
        pub missed_periods: u32 = 3 => within(1.0, 65_535.0);
        /// Maximum share of the table in an incremental update; a larger one is replaced by a full update.
        pub full_dump_share: f64 = 1.0 / 3.0 => within(0.0, 1.0);
        /// Detection of broken links: reports of the radio, or missing updates.
        pub link: Link = Link::Hello;
        /// Maximum number of packets that wait for a route to one destination.
        pub held_per_destination: usize = 5 => up_to(10_000.0);
        /// Maximum number of packets that wait for routes.
        pub held_packets: usize = 64 => up_to(10_000.0);
        /// Maximum time that a packet waits for a route.
        #[serde(with = "manet_routing::seconds")]
        pub held_seconds: Duration = Duration::from_secs(30) => above(0.0);
        /// Whether updates of a neighbour are used only when it is known to receive this node's.
        pub bidirectional_check: bool = false;
        /// Whether a node with wires advertises the network behind them.
        pub gateway: bool = true;
    }
}

impl Options {
    /// The defaults except that the radio reports failed links (ns-2's `use_mac_`, which is off there as here).
    pub fn with_feedback() -> Self {
        Self { link: Link::Feedback, ..Self::default() }
    }
}

impl Options {
    /// Fails with the first option out of its limits, and the remedy.
    pub fn check(&self) -> Result<(), OptionError> {
        Ok(keys::check(Self::KEYS, self)?)
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
    fn options_out_of_range_are_refused_by_name() {
        let wrong = |json: &str| serde_json::from_str::<Options>(json).unwrap().check().unwrap_err().0;
        assert!(wrong(r#"{"settling_weight":1.5}"#).starts_with("settling_weight"));
        assert!(wrong(r#"{"period":0}"#).starts_with("period"));
        assert!(wrong(r#"{"jitter":1}"#).starts_with("jitter"));
        assert!(wrong(r#"{"missed_periods":0}"#).starts_with("missed_periods"));
        assert!(wrong(r#"{"held_packets":100000}"#).starts_with("held_packets"));
        assert_eq!(Options::default().check(), Ok(()));
    }
}
