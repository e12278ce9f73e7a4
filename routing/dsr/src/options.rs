//! The protocol's options; names and units as in formats/routing.md, defaults of RFC 4728, section 9, where it has one.
//!
//! Departures: `discovery_hop_limit` and `max_hops` are 15 (RFC 255; ns-2's routes have 16 nodes), so that a source
//! route fits a frame; `send_buffer` 64 packets as in ns-2 (the RFC names no size).

use manet_engine::Duration;
use manet_routing::{seconds, Node, OptionError};
use serde::{Deserialize, Serialize};

/// How a node learns that a link is broken (RFC 4728, section 8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// The radio tells (8.3.1).
    Feedback,
    /// Passive acknowledgements (8.3.2), then network-layer ones (8.3.3).
    Ack,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    pub link: Link,
    /// Answers requests from the route cache (8.2.3).
    pub cache_replies: bool,
    /// A first request that only neighbours hear (3.3.3).
    pub nonpropagating: bool,
    pub salvage: bool,
    /// Learns routes from overheard frames (3.3.1).
    pub snoop: bool,
    /// Learns routes from the source routes of data (3.3.1); false: from requests, replies and errors only, which is
    /// what ns-2's flow state leaves, where most data carries no route.
    pub learn_from_data: bool,
    /// Automatic route shortening (3.4.3).
    pub shortening: bool,
    #[serde(with = "seconds")]
    pub broadcast_jitter: Duration,
    #[serde(with = "seconds")]
    pub cache_timeout: Duration,
    pub cache_paths: usize,
    pub send_buffer: usize,
    #[serde(with = "seconds")]
    pub send_buffer_timeout: Duration,
    #[serde(with = "seconds")]
    pub nonprop_timeout: Duration,
    #[serde(with = "seconds")]
    pub request_period: Duration,
    #[serde(with = "seconds")]
    pub max_request_period: Duration,
    pub max_request_rexmt: u32,
    pub discovery_hop_limit: u8,
    pub max_hops: usize,
    #[serde(with = "seconds")]
    pub grat_reply_holdoff: Duration,
    pub max_salvage: u8,
    #[serde(with = "seconds")]
    pub maint_holdoff: Duration,
    pub max_maint_rexmt: u32,
    #[serde(with = "seconds")]
    pub passive_ack_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            link: Link::Feedback,
            cache_replies: true,
            nonpropagating: true,
            salvage: true,
            snoop: true,
            learn_from_data: true,
            shortening: true,
            broadcast_jitter: Duration::from_millis(10),
            cache_timeout: Duration::from_secs(300),
            cache_paths: 64,
            send_buffer: 64,
            send_buffer_timeout: Duration::from_secs(30),
            nonprop_timeout: Duration::from_millis(30),
            request_period: Duration::from_millis(500),
            max_request_period: Duration::from_secs(10),
            max_request_rexmt: 16,
            discovery_hop_limit: 15,
            max_hops: 15,
            grat_reply_holdoff: Duration::from_secs(1),
            max_salvage: 15,
            maint_holdoff: Duration::from_millis(250),
            max_maint_rexmt: 2,
            passive_ack_timeout: Duration::from_millis(100),
        }
    }
}

/// The most bytes that DSR adds to a packet: 4 fixed, 4 + 4n of the source route, 4 of an acknowledgement request. A
/// route of `max_hops` hops lists one hop less, and a salvaged one (or one from outside) also who salvaged it: n =
/// `max_hops`.
pub fn overhead(options: &Options) -> u16 {
    (8 + 4 * options.max_hops + 4) as u16
}

/// IPv4 hosts must be able to receive this much (RFC 791): less is no useful MTU.
const LEAST_MTU: u16 = 576;
/// What six bits of segments left count, and what fits a request behind its target.
const LONGEST_ROUTE: usize = 60;
/// Bounds the memory of what a user may ask for.
const MOST_PATHS: usize = 4096;

/// Errors name the option and the remedy.
pub fn check(node: &Node, options: &Options) -> Result<(), OptionError> {
    let times = [
        ("cache_timeout", options.cache_timeout),
        ("send_buffer_timeout", options.send_buffer_timeout),
        ("nonprop_timeout", options.nonprop_timeout),
        ("request_period", options.request_period),
        ("max_request_period", options.max_request_period),
        ("passive_ack_timeout", options.passive_ack_timeout),
    ];
    if let Some((name, _)) = times.iter().find(|(_, time)| *time == Duration::ZERO) {
        return Err(format!("dsr: {name} is 0; give a time above 0").into());
    }
    if !(1..=LONGEST_ROUTE).contains(&options.max_hops) {
        return Err(format!("dsr: max_hops is {}; give 1 to {LONGEST_ROUTE}", options.max_hops).into());
    }
    if !(1..=MOST_PATHS).contains(&options.cache_paths) {
        return Err(format!("dsr: cache_paths is {}; give 1 to {MOST_PATHS}", options.cache_paths).into());
    }
    if options.send_buffer > MOST_PATHS {
        return Err(format!("dsr: send_buffer is {}; give {MOST_PATHS} packets at most", options.send_buffer).into());
    }
    if options.discovery_hop_limit == 0 {
        return Err("dsr: discovery_hop_limit is 0; give 1 to 255".to_owned().into());
    }
    if options.max_salvage > 15 {
        return Err(format!("dsr: max_salvage is {}; four bits count to 15", options.max_salvage).into());
    }
    if node.mtu < LEAST_MTU + overhead(options) {
        let needs = LEAST_MTU + overhead(options);
        return Err(
            format!("dsr: the radio's mtu is {}; routes of max_hops need {needs}: lower max_hops", node.mtu).into()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_contract_s() {
        // formats/routing.md, "dsr"
        let json = serde_json::to_value(Options::default()).unwrap();
        assert_eq!(
            (&json["link"], &json["nonprop_timeout"], &json["max_hops"]),
            (&"feedback".into(), &0.03.into(), &15.into())
        );
        assert_eq!(serde_json::from_value::<Options>(json).unwrap(), Options::default());
        assert!(serde_json::from_str::<Options>(r#"{"cache":true}"#).is_err());
    }

    #[test]
    fn fifteen_hops_cost_72_bytes() {
        // 4 fixed + 4 of the option + 15 x 4 addresses + 4 of the acknowledgement request: 1500 - 72 = 1428
        assert_eq!(1500 - overhead(&Options::default()), 1428);
    }
}
