//! Options with the values of ns-2's IMEP and TORA as defaults (formats/routing.md, "tora").

use manet_engine::keys::{above, from, up_to, within, Declared};
use manet_engine::{choices, keys, Duration};
use manet_routing::OptionError;
use serde::{Deserialize, Serialize};

choices! {
    /// Detection of broken links.
    pub enum Link {
        /// The radio reports failed links, in addition to silence and missing acknowledgements.
        Feedback = "feedback",
        /// A neighbour that is silent, or does not acknowledge, is a failed link.
        Hello = "hello",
    }
}

keys! {
    /// Options of the daemon; formats/routing.md has units and ranges.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Options {
        /// Time between beacons.
        #[serde(with = "manet_routing::seconds")]
        pub beacon_interval: Duration = Duration::from_secs(1) => from(0.05);
        /// Maximum random delay of a beacon.
        #[serde(with = "manet_routing::seconds")]
        pub beacon_jitter: Duration = Duration::from_millis(10);
        /// Silence after which a link is down.
        #[serde(with = "manet_routing::seconds")]
        pub silence: Duration = Duration::from_secs(3) => above(0.0);
        /// Minimum delay of acknowledgements, which wait for company (low priority).
        #[serde(with = "manet_routing::seconds")]
        pub low_priority_min: Duration = Duration::from_millis(150);
        /// Maximum delay of acknowledgements (low priority).
        #[serde(with = "manet_routing::seconds")]
        pub low_priority_max: Duration = Duration::from_millis(250);
        /// Maximum delay of queries, updates and clears (high priority).
        #[serde(with = "manet_routing::seconds")]
        pub high_priority_max: Duration = Duration::from_millis(10);
        /// Time after which a block without all its acknowledgements is sent again.
        #[serde(with = "manet_routing::seconds")]
        pub retransmit_timeout: Duration = Duration::from_millis(500) => from(0.01);
        /// Retransmissions of a block before the links to the neighbours that did not acknowledge it are down.
        pub retransmissions: u32 = 3 => up_to(16.0);
        /// Minimum time between two queries for one destination.
        #[serde(with = "manet_routing::seconds")]
        pub query_interval: Duration = Duration::from_millis(200) => from(0.001);
        /// Time after which an unanswered query is repeated if packets wait, otherwise forgotten.
        #[serde(with = "manet_routing::seconds")]
        pub request_hold: Duration = Duration::from_secs(10) => from(0.1);
        /// Whether a node announces its heights when a link comes up. False: a neighbour learns them by a query.
        pub announce_heights: bool = false;
        /// Whether a node whose height rose sends packets only to neighbours that have acknowledged the new height: others may send
        /// them back.
        pub await_acknowledgement: bool = true;
        /// Detection of broken links: also reports of the radio, or silence and missing acknowledgements only.
        pub link: Link = Link::Hello;
        /// Whether packets of other stations wait for a route, too. False: they are unreachable.
        pub hold_forwarded: bool = true;
        /// Maximum number of packets that wait for a route to one destination.
        pub held_per_destination: usize = 64 => up_to(10_000.0);
        /// Maximum number of packets that wait for routes.
        pub held_packets: usize = 64 => up_to(10_000.0);
        /// Maximum time that a packet waits for a route.
        #[serde(with = "manet_routing::seconds")]
        pub held_seconds: Duration = Duration::from_secs(30) => within(0.001, 3600.0);
    }
}

impl Options {
    /// The defaults except that the radio reports failed links.
    pub fn with_feedback() -> Self {
        Self { link: Link::Feedback, ..Self::default() }
    }

    /// Fails with the first option out of its limits, and the remedy.
    pub fn check(&self) -> Result<(), OptionError> {
        keys::check(Self::KEYS, self)?;
        let [min, max] = [self.low_priority_min, self.low_priority_max].map(Duration::as_secs_f64);
        if min > max {
            return Err(format!("low_priority_min: {min} s is more than low_priority_max = {max} s").into());
        }
        let timeout = self.retransmit_timeout.as_secs_f64();
        if timeout <= max {
            let text = "an acknowledgement would come too late";
            return Err(format!(
                "retransmit_timeout: {timeout} s is not longer than low_priority_max = {max} s: {text}"
            )
            .into());
        }
        if self.silence <= self.beacon_interval {
            let [silence, beacon] = [self.silence, self.beacon_interval].map(Duration::as_secs_f64);
            return Err(format!("silence: {silence} s is not longer than beacon_interval = {beacon} s").into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back_and_unknown_ones_are_refused() {
        let json = serde_json::to_string(&Options::default()).unwrap();
        assert_eq!(serde_json::from_str::<Options>(&json).unwrap(), Options::default());
        assert!(serde_json::from_str::<Options>(r#"{"beacons":1}"#).is_err());
    }

    #[test]
    fn contradictory_times_are_refused() {
        let seconds = Duration::from_secs_f64;
        let wrong = [
            (Options { silence: seconds(1.0), ..Options::default() }, "silence"),
            (Options { retransmit_timeout: seconds(0.25), ..Options::default() }, "retransmit_timeout"),
            (Options { low_priority_min: seconds(0.3), ..Options::default() }, "low_priority_min"),
            (Options { query_interval: seconds(0.0), ..Options::default() }, "query_interval"),
        ];
        for (options, key) in wrong {
            assert!(options.check().unwrap_err().0.starts_with(key), "{key}");
        }
        assert_eq!(Options::default().check(), Ok(()));
        assert_eq!(Options::with_feedback().check(), Ok(()));
    }
}
