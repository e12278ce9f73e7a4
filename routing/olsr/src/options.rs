//! What can be set (formats/routing.md, "olsr"); defaults are those of RFC 3626, section 18.

use manet_engine::Duration;
use manet_routing::OptionError;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Willingness never to be an MPR (18.8).
pub const WILL_NEVER: u8 = 0;
/// Willingness always to be one.
pub const WILL_ALWAYS: u8 = 7;

/// Shorter intervals would flood the radio with nothing but control packets.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// How the breaking of a link is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// The radio tells (section 13), besides silence.
    Feedback,
    /// Silence alone tells.
    Hello,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    #[serde(with = "manet_routing::seconds")]
    pub hello_interval: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub tc_interval: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub mid_interval: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub hna_interval: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub neighbour_hold: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub topology_hold: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub mid_hold: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub hna_hold: Duration,
    #[serde(with = "manet_routing::seconds")]
    pub duplicate_hold: Duration,
    /// MAXJITTER as a share of `hello_interval`.
    pub jitter: f64,
    pub willingness: u8,
    pub tc_redundancy: u8,
    pub mpr_coverage: u8,
    pub hysteresis: bool,
    pub link: Link,
    /// Further addresses of the node, announced as its interfaces (MID).
    pub mid: Vec<Ipv4Addr>,
    /// Networks behind the node, announced besides its wires (HNA).
    pub hna: Vec<(Ipv4Addr, u8)>,
    pub held_packets: usize,
}

impl Options {
    /// The defaults, but the radio tells of failed links (RFC 3626, section 13).
    pub fn with_feedback() -> Self {
        Self { link: Link::Feedback, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hello_interval: Duration::from_secs(2),
            tc_interval: Duration::from_secs(5),
            mid_interval: Duration::from_secs(5),
            hna_interval: Duration::from_secs(5),
            neighbour_hold: Duration::from_secs(6),
            topology_hold: Duration::from_secs(15),
            mid_hold: Duration::from_secs(15),
            hna_hold: Duration::from_secs(15),
            duplicate_hold: Duration::from_secs(30),
            jitter: 0.25,
            willingness: 3,
            tc_redundancy: 0,
            mpr_coverage: 1,
            hysteresis: false,
            link: Link::Hello,
            mid: Vec::new(),
            hna: Vec::new(),
            held_packets: 0,
        }
    }
}

impl Options {
    /// MAXJITTER: HELLO_INTERVAL / 4 by default (18.9), for messages of every kind.
    pub fn max_jitter(&self) -> Duration {
        Duration::from_nanos((self.hello_interval.as_nanos() as f64 * self.jitter) as u64)
    }

    /// The first thing wrong with them, in one line.
    pub fn check(&self) -> Result<(), OptionError> {
        let pairs = [
            ("hello_interval", self.hello_interval, "neighbour_hold", self.neighbour_hold),
            ("tc_interval", self.tc_interval, "topology_hold", self.topology_hold),
            ("mid_interval", self.mid_interval, "mid_hold", self.mid_hold),
            ("hna_interval", self.hna_interval, "hna_hold", self.hna_hold),
        ];
        for (interval, every, hold, long) in pairs {
            if every < SHORTEST_INTERVAL {
                return Err(format!("options.{interval}: at least {} s", SHORTEST_INTERVAL.as_secs_f64()).into());
            }
            if long <= every {
                return Err(format!("options.{hold}: must be longer than {interval} (RFC 3626 has three times)").into());
            }
        }
        if !(0.0..=0.5).contains(&self.jitter) {
            return Err("options.jitter: a share of hello_interval from 0 to 0.5".to_owned().into());
        }
        // messages that come at half their interval and earlier are more than the RFC's jitter ever makes them
        if let Some((name, ..)) = pairs.iter().find(|(_, every, ..)| self.max_jitter() * 2 > *every) {
            let most = self.max_jitter().as_secs_f64();
            return Err(format!("options.{name}: at least twice the jitter, jitter x hello_interval = {most} s").into());
        }
        if self.willingness > WILL_ALWAYS {
            return Err("options.willingness: 0 (never) to 7 (always)".to_owned().into());
        }
        if self.tc_redundancy > 2 {
            return Err("options.tc_redundancy: 0 (selectors), 1 (MPRs too) or 2 (all neighbours)".to_owned().into());
        }
        if self.mpr_coverage == 0 {
            return Err("options.mpr_coverage: at least 1".to_owned().into());
        }
        if let Some((network, prefix)) = self.hna.iter().find(|(_, prefix)| *prefix > 32) {
            return Err(format!("options.hna: {network}/{prefix}: a prefix has 0 to 32 bits").into());
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
    fn what_is_wrong_is_named() {
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
