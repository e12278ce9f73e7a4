//! The protocol's options; names and units as in formats/routing.md, defaults of RFC 4728, section 9, where it has one.
//!
//! Departures: `discovery_hop_limit` and `max_hops` are 15 (RFC 255; ns-2's routes have 16 nodes), so that a source
//! route fits a frame; `send_buffer` 64 packets as in ns-2 (the RFC names no size).

use manet_engine::keys::{above, from, up_to, within, Declared};
use manet_engine::{choices, keys, Duration};
use manet_routing::arp::Resolution;
use manet_routing::{seconds, Node, OptionError, MIN_MTU};
use serde::{Deserialize, Serialize};

choices! {
    /// Detection of broken links (RFC 4728, section 8.3).
    pub enum Link {
        /// The radio reports them (8.3.1).
        Feedback = "feedback",
        /// Passive acknowledgements (8.3.2), then network-layer ones (8.3.3).
        Ack = "ack",
    }
}

/// Maximum route length in hops: limit of the six bits of segments left, and of the addresses in a request.
const MAX_ROUTE: f64 = 60.0;
/// Maximum of paths and packets, which bounds the memory.
const MAX_PATHS: f64 = 4096.0;

keys! {
    /// Options of the daemon; formats/routing.md has units and ranges.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Options {
        /// Detection of broken links: reports of the radio, or missing acknowledgements.
        pub link: Link = Link::Feedback;
        /// Whether requests are answered from the route cache (8.2.3).
        pub cache_replies: bool = true;
        /// Whether the first request of a discovery reaches neighbours only (3.3.3).
        pub nonpropagating: bool = true;
        /// Whether a packet whose link broke is sent along another cached route (3.4.1).
        pub salvage: bool = true;
        /// Whether a Route Error carries a notice about the TCP packet that met the broken link, to the packet's source (Holland and
        /// Vaidya, 1999, section 6). A flow's `elfn(notice=route-error)` sets it.
        pub error_notices: bool = false;
        /// Whether routes are learned from overheard frames (3.3.1).
        pub snoop: bool = true;
        /// Whether routes are learned from the source routes of data (3.3.1). False: from requests, replies and errors only, as in
        /// ns-2, where flow state omits the source route of most data.
        pub learn_from_data: bool = true;
        /// Whether routes are shortened automatically (3.4.3).
        pub shortening: bool = true;
        /// Address resolution: none (link addresses are learnt from any frame), or ARP as CMU's extension of ns has it, which
        /// reports failures to the protocol or drops packets silently (README.md).
        pub arp: Resolution = Resolution::None;
        /// BroadcastJitter.
        #[serde(with = "seconds")]
        pub broadcast_jitter: Duration = Duration::from_millis(10);
        /// RouteCacheTimeout.
        #[serde(with = "seconds")]
        pub cache_timeout: Duration = Duration::from_secs(300) => above(0.0);
        /// Whether the cache's time-out follows the lifetimes of the routes that broke here (`cache_timeout` is then the maximum):
        /// Holland and Vaidya, 1999, section 5.3 propose to adjust it to the rate of route failures.
        pub adaptive_timeout: bool = false;
        /// Maximum number of paths in the route cache.
        pub cache_paths: usize = 64 => within(1.0, MAX_PATHS);
        /// Maximum number of packets that wait for routes.
        pub send_buffer: usize = 64 => up_to(MAX_PATHS);
        /// SendBufferTimeout.
        #[serde(with = "seconds")]
        pub send_buffer_timeout: Duration = Duration::from_secs(30) => above(0.0);
        /// NonpropRequestTimeout.
        #[serde(with = "seconds")]
        pub nonprop_timeout: Duration = Duration::from_millis(30) => above(0.0);
        /// RequestPeriod.
        #[serde(with = "seconds")]
        pub request_period: Duration = Duration::from_millis(500) => above(0.0);
        /// Factor by which the wait grows with each request: 2 by RFC 4728, 4.3; 4 in ns-2 (dsragent.cc, BackOffTest).
        pub request_backoff: u32 = 2 => within(1.0, 16.0);
        /// MaxRequestPeriod: the maximum wait between two requests.
        #[serde(with = "seconds")]
        pub max_request_period: Duration = Duration::from_secs(10) => above(0.0);
        /// MaxRequestRexmt.
        pub max_request_rexmt: u32 = 16 => up_to(65_535.0);
        /// DiscoveryHopLimit.
        pub discovery_hop_limit: u8 = 15 => from(1.0);
        /// Maximum length of a source route in hops; bounds the MTU.
        pub max_hops: usize = 15 => within(1.0, MAX_ROUTE);
        /// GratReplyHoldoff.
        #[serde(with = "seconds")]
        pub grat_reply_holdoff: Duration = Duration::from_secs(1);
        /// MAX_SALVAGE_COUNT; its field has four bits.
        pub max_salvage: u8 = 15 => up_to(15.0);
        /// MaintHoldoffTime.
        #[serde(with = "seconds")]
        pub maint_holdoff: Duration = Duration::from_millis(250) => above(0.0);
        /// MaxMaintRexmt.
        pub max_maint_rexmt: u32 = 2 => up_to(65_535.0);
        /// PassiveAckTimeout.
        #[serde(with = "seconds")]
        pub passive_ack_timeout: Duration = Duration::from_millis(100) => above(0.0);
    }
}

/// Maximum of bytes that DSR adds to a packet: 4 fixed, 4 + 4n of the source route, 4 of an acknowledgement request. A
/// route of `max_hops` hops lists one hop less, and a salvaged one (or one from outside) also the salvaging node: n =
/// `max_hops`.
pub fn overhead(options: &Options) -> u16 {
    (8 + 4 * options.max_hops + 4) as u16
}

/// Errors name the option and the remedy.
pub fn check(node: &Node, options: &Options) -> Result<(), OptionError> {
    keys::check(Options::KEYS, options)
        .map_err(|e| format!("dsr: {} is {}; give {}", e.key, e.value, e.limits.wanted()))?;
    if node.mtu < MIN_MTU + overhead(options) {
        let needs = MIN_MTU + overhead(options);
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
