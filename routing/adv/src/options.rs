//! Options (formats/routing.md, "adv"). README.md has the source or the reason of each default.

use manet_engine::keys::{above, from, up_to, within, Declared};
use manet_engine::{choices, keys, Duration};
use manet_routing::OptionError;
use serde::{Deserialize, Serialize};

choices! {
    /// Detection of broken links.
    pub enum Link {
        /// The radio reports failed links.
        Feedback = "feedback",
        /// A silent neighbour is a failed link; each node sends its own entry periodically.
        Hello = "hello",
    }
}

keys! {
    /// Options of the daemon; formats/routing.md has units and ranges.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Options {
        /// Detection of broken links: reports of the radio, or silence.
        pub link: Link = Link::Feedback;
        /// Maximum time that a TCP packet waits for a route.
        #[serde(with = "manet_routing::seconds")]
        pub buffer_tcp: Duration = Duration::from_secs(30) => above(0.0);
        /// Maximum time that any other packet waits for a route.
        #[serde(with = "manet_routing::seconds")]
        pub buffer_udp: Duration = Duration::from_secs(30) => above(0.0);
        /// Maximum number of packets that wait for routes.
        pub held_packets: usize = 64 => within(1.0, 4096.0);
        /// Waiting packets for one destination from which on each further one raises the trigger meter.
        pub buffer_threshold: usize = 2 => within(1.0, 4096.0);
        /// TRGMETER_HIGH: rise of the trigger meter for an expected response "high", and the first threshold.
        pub trigger_high: f64 = 20.0 => within(0.0, 1e6);
        /// TRGMETER_MED: rise for an expected response "medium", a waiting packet, and a packet returned by the radio.
        pub trigger_medium: f64 = 8.0 => within(0.0, 1e6);
        /// TRGMETER_LOW: rise for an expected response "low", and the lowest threshold.
        pub trigger_low: f64 = 5.0 => within(0.0, 1e6);
        /// TRGMETER_FULL: above it an update is full, not partial.
        pub trigger_full: f64 = 50.0 => within(0.0, 1e6);
        /// MIN_INTERVAL: minimum time between two updates.
        #[serde(with = "manet_routing::seconds")]
        pub min_interval: Duration = Duration::from_millis(500) => from(0.01);
        /// Maximum random delay of a broadcast message, so that neighbours do not all answer at once.
        #[serde(with = "manet_routing::seconds")]
        pub broadcast_jitter: Duration = Duration::from_millis(10) => up_to(1.0);
        /// Time for which a broken route is advertised, and after which a source with waiting packets floods again.
        #[serde(with = "manet_routing::seconds")]
        pub broken_lifetime: Duration = Duration::from_secs(3) => above(0.0);
        /// Time between the first two floods for a destination; each further time is twice as long.
        #[serde(with = "manet_routing::seconds")]
        pub init_interval: Duration = Duration::from_secs(1) => from(0.01);
        /// Time without packets after which a connection ends.
        #[serde(with = "manet_routing::seconds")]
        pub connection_idle: Duration = Duration::from_secs(30) => from(0.1);
        /// Time after which an unused route to a node that is no receiver is removed.
        #[serde(with = "manet_routing::seconds")]
        pub route_idle: Duration = Duration::from_secs(10) => from(0.1);
        /// Time after which a receiver that has sent no update sends a full one; 0: never.
        #[serde(with = "manet_routing::seconds")]
        pub keep_alive: Duration = Duration::ZERO;
        /// Maximum time between messages of a node with `link = "hello"`.
        #[serde(with = "manet_routing::seconds")]
        pub hello_interval: Duration = Duration::from_secs(1) => from(0.01);
        /// Hello intervals of silence after which a neighbour is lost.
        pub missed_hellos: u32 = 3 => within(1.0, 65_535.0);
    }
}

impl Options {
    /// Fails with the first option out of its limits, and the remedy.
    pub fn check(&self) -> Result<(), OptionError> {
        Ok(keys::check(Self::KEYS, self)?)
    }

    /// Whether silence detects broken links.
    pub fn hellos(&self) -> bool {
        self.link == Link::Hello
    }

    /// Silence after which a neighbour is lost.
    pub fn silence(&self) -> Duration {
        self.hello_interval * u64::from(self.missed_hellos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back_and_unknown_ones_are_refused() {
        let json = serde_json::to_string(&Options::default()).unwrap();
        assert_eq!(serde_json::from_str::<Options>(&json).unwrap(), Options::default());
        assert_eq!(serde_json::from_str::<Options>(r#"{"buffer_udp":1}"#).unwrap().buffer_udp, Duration::from_secs(1));
        assert!(serde_json::from_str::<Options>(r#"{"port":9524}"#).is_err());
    }

    #[test]
    fn options_out_of_range_are_refused_by_name() {
        let wrong = |json: &str| serde_json::from_str::<Options>(json).unwrap().check().unwrap_err().0;
        assert!(wrong(r#"{"min_interval":0}"#).starts_with("min_interval"));
        assert!(wrong(r#"{"buffer_tcp":0}"#).starts_with("buffer_tcp"));
        assert!(wrong(r#"{"held_packets":5000}"#).starts_with("held_packets"));
        assert!(wrong(r#"{"trigger_low":-1}"#).starts_with("trigger_low"));
        assert!(wrong(r#"{"missed_hellos":0}"#).starts_with("missed_hellos"));
        assert_eq!(Options::default().check(), Ok(()));
    }
}
