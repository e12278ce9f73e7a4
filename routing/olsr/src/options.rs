//! Options (formats/routing.md, "olsr"); the defaults are those of RFC 3626, section 18.

use manet_engine::keys::{above, from, up_to, within, Declared, MAX_PREFIX};
use manet_engine::{choices, keys, Duration};
use manet_routing::OptionError;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// WILL_NEVER: willingness of a node that is never an MPR (18.8).
pub const WILL_NEVER: u8 = 0;
/// WILL_ALWAYS: willingness of a node that is always an MPR (18.8).
pub const WILL_ALWAYS: u8 = 7;

/// In seconds: shorter intervals would fill the channel with control packets.
const MIN_INTERVAL_S: f64 = 0.01;

choices! {
    /// Detection of broken links.
    pub enum Link {
        /// Reports of the radio (section 13), besides silence.
        Feedback = "feedback",
        /// Silence only.
        Hello = "hello",
    }
}

keys! {
    /// Options of the daemon; formats/routing.md has units and ranges.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Options {
        /// HELLO_INTERVAL.
        #[serde(with = "manet_routing::seconds")]
        pub hello_interval: Duration = Duration::from_secs(2) => from(MIN_INTERVAL_S);
        /// TC_INTERVAL.
        #[serde(with = "manet_routing::seconds")]
        pub tc_interval: Duration = Duration::from_secs(5) => from(MIN_INTERVAL_S);
        /// MID_INTERVAL.
        #[serde(with = "manet_routing::seconds")]
        pub mid_interval: Duration = Duration::from_secs(5) => from(MIN_INTERVAL_S);
        /// HNA_INTERVAL.
        #[serde(with = "manet_routing::seconds")]
        pub hna_interval: Duration = Duration::from_secs(5) => from(MIN_INTERVAL_S);
        /// NEIGHB_HOLD_TIME.
        #[serde(with = "manet_routing::seconds")]
        pub neighbour_hold: Duration = Duration::from_secs(6) => above(0.0);
        /// TOP_HOLD_TIME.
        #[serde(with = "manet_routing::seconds")]
        pub topology_hold: Duration = Duration::from_secs(15) => above(0.0);
        /// MID_HOLD_TIME.
        #[serde(with = "manet_routing::seconds")]
        pub mid_hold: Duration = Duration::from_secs(15) => above(0.0);
        /// HNA_HOLD_TIME.
        #[serde(with = "manet_routing::seconds")]
        pub hna_hold: Duration = Duration::from_secs(15) => above(0.0);
        /// DUP_HOLD_TIME.
        #[serde(with = "manet_routing::seconds")]
        pub duplicate_hold: Duration = Duration::from_secs(30) => above(0.0);
        /// MAXJITTER as a share of `hello_interval`.
        pub jitter: f64 = 0.25 => within(0.0, 0.5);
        /// WILLINGNESS to be an MPR: 0 (never) to 7 (always).
        pub willingness: u8 = 3 => up_to(WILL_ALWAYS as f64);
        /// TC_REDUNDANCY: 0 (selectors), 1 (MPRs too) or 2 (all neighbours).
        pub tc_redundancy: u8 = 0 => up_to(2.0);
        /// MPR_COVERAGE.
        pub mpr_coverage: u8 = 1 => from(1.0);
        /// Whether links have hysteresis (section 14).
        pub hysteresis: bool = false;
        /// Detection of broken links: reports of the radio and silence, or silence alone.
        pub link: Link = Link::Hello;
        /// Further addresses of the node, announced as its interfaces (MID).
        pub mid: Vec<Ipv4Addr> = Vec::new();
        /// Networks behind the node, announced in addition to its wires (HNA).
        pub hna: Vec<(Ipv4Addr, u8)> = Vec::new();
        /// Maximum number of packets that wait for routes.
        pub held_packets: usize = 0 => up_to(65_535.0);
    }
}

impl Options {
    /// The defaults except that the radio reports failed links (RFC 3626, section 13).
    pub fn with_feedback() -> Self {
        Self { link: Link::Feedback, ..Self::default() }
    }
}

impl Options {
    /// MAXJITTER: HELLO_INTERVAL / 4 by default (18.9), the same for all messages.
    pub fn max_jitter(&self) -> Duration {
        Duration::from_nanos((self.hello_interval.as_nanos() as f64 * self.jitter) as u64)
    }

    /// Fails with the first option that is out of range or contradicts another, in one line.
    pub fn check(&self) -> Result<(), OptionError> {
        keys::check(Self::KEYS, self)
            .map_err(|e| format!("options.{} is {}; give {}", e.key, e.value, e.limits.wanted()))?;
        let pairs = [
            ("hello_interval", self.hello_interval, "neighbour_hold", self.neighbour_hold),
            ("tc_interval", self.tc_interval, "topology_hold", self.topology_hold),
            ("mid_interval", self.mid_interval, "mid_hold", self.mid_hold),
            ("hna_interval", self.hna_interval, "hna_hold", self.hna_hold),
        ];
        for (interval, every, hold, long) in pairs {
            if long <= every {
                return Err(format!("options.{hold}: must be longer than {interval} (RFC 3626 has three times)").into());
            }
        }
        // with more jitter messages would come at less than half their interval, earlier than the RFC's jitter allows
        if let Some((name, ..)) = pairs.iter().find(|(_, every, ..)| self.max_jitter() * 2 > *every) {
            let max = self.max_jitter().as_secs_f64();
            return Err(format!("options.{name}: at least twice the jitter, jitter x hello_interval = {max} s").into());
        }
        if let Some((network, prefix)) = self.hna.iter().find(|(_, prefix)| *prefix > MAX_PREFIX) {
            return Err(format!("options.hna: {network}/{prefix}: a prefix has 0 to {MAX_PREFIX} bits").into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> String {
        match serde_json::from_str::<Options>(json) {
            Ok(options) => options.check().unwrap_err().0,
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn defaults_are_right_and_survive_json() {
        let json = serde_json::to_string(&Options::default()).unwrap();
        assert!(json.contains("\"hello_interval\":2.0") && json.contains("\"link\":\"hello\""), "{json}");
        assert!(serde_json::from_str::<Options>(&json).unwrap().check().is_ok());
        assert!(serde_json::from_str::<Options>("{}").unwrap().check().is_ok());
    }

    #[test]
    fn errors_name_the_wrong_option() {
        assert!(error("{\"helo\":1}").contains("unknown field `helo`"));
        assert!(error("{\"hello_interval\":0}").starts_with("options.hello_interval"));
        assert!(error("{\"tc_interval\":20}").starts_with("options.topology_hold"));
        assert!(error("{\"willingness\":8}").starts_with("options.willingness"));
        assert!(error("{\"tc_redundancy\":3}").starts_with("options.tc_redundancy"));
        assert!(error("{\"mpr_coverage\":0}").starts_with("options.mpr_coverage"));
        assert!(error("{\"jitter\":0.6}").starts_with("options.jitter"));
        // MAXJITTER is 0.5 s
        assert!(error("{\"tc_interval\":0.9}").starts_with("options.tc_interval: at least twice the jitter"));
        assert!(error("{\"hna\":[[\"10.0.0.0\",33]]}").starts_with("options.hna"));
    }
}
