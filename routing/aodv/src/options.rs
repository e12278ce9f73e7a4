//! AODV's options (formats/routing.md) and the times that follow from them (RFC 3561, section 10).
//!
//! An option that is not given (`null`) is derived from others ([`Derived`]): as in the RFC, or as in AODV-UU 0.9.6 where that differs.

use manet_engine::formula::Formula::{self, By, Flag, Key, Max, Number, Product, Sum};
use manet_engine::keys::{above, derived, from, up_to, within, Declared};
use manet_engine::{choices, keys, Duration};
use manet_routing::OptionError;
use serde::{Deserialize, Serialize};

choices! {
    /// Detection of broken links.
    pub enum Link {
        /// The radio reports failed links; no hellos.
        Feedback = "feedback",
        /// Hello messages; silence is a failed link.
        Hello = "hello",
    }
}

choices! {
    /// The behaviour to follow where RFC 3561 and AODV-UU differ.
    pub enum Style {
        /// RFC 3561.
        Rfc = "rfc",
        /// As AODV-UU 0.9.6; the README lists the places.
        Uu = "uu",
    }
}

choices! {
    /// Destination address of control packets for all neighbours.
    pub enum Broadcast {
        /// To 255.255.255.255 (RFC 3561, 6.9; AODV-UU takes a hello to another address for a reply).
        Limited = "limited",
        /// To the network's last address, as ns-3.
        Subnet = "subnet",
    }
}

choices! {
    /// Forwarding of packets for the Internet (Nordstrom, Gunningberg and Tschudin, MC2R 8(4), 2004, compare both).
    pub enum Internet {
        /// The source encapsulates them to its gateway (half tunnel).
        Tunnel = "tunnel",
        /// Each node forwards them to its own gateway, which it discovers if it has none.
        DefaultRoute = "default-route",
    }
}

keys! {
    /// Options of the daemon; formats/routing.md has units and ranges.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Options {
        /// Detection of broken links: reports of the radio, or hello messages.
        pub link: Link = Link::Feedback;
        /// Behaviour to follow where RFC 3561 and AODV-UU differ.
        pub style: Style = Style::Rfc;
        /// ACTIVE_ROUTE_TIMEOUT; by default 10 s with feedback, 3 s with hellos.
        #[serde(with = "optional_seconds")]
        pub active_route_timeout: Option<Duration> = None => above(0.0).derived(&ACTIVE_ROUTE_TIMEOUT);
        /// PATH_DISCOVERY_TIME: time that a request is remembered and a route to its originator lasts at least; by default 4 *
        /// node_traversal_time * net_diameter. A copy that arrives later is taken for a new request and flooded again.
        #[serde(with = "optional_seconds")]
        pub path_discovery_time: Option<Duration> = None => above(0.0).derived(&PATH_DISCOVERY_TIME);
        /// MY_ROUTE_TIMEOUT; by default derived from other times.
        #[serde(with = "optional_seconds")]
        pub my_route_timeout: Option<Duration> = None => above(0.0).derived(&MY_ROUTE_TIMEOUT);
        /// HELLO_INTERVAL.
        #[serde(with = "manet_routing::seconds")]
        pub hello_interval: Duration = Duration::from_millis(1000) => above(0.0);
        /// ALLOWED_HELLO_LOSS: hellos that may be missing before a link is lost.
        pub allowed_hello_loss: u8 = 2 => from(1.0);
        /// NODE_TRAVERSAL_TIME.
        #[serde(with = "manet_routing::seconds")]
        pub node_traversal_time: Duration = Duration::from_millis(40) => above(0.0);
        /// NET_DIAMETER, in hops.
        pub net_diameter: u8 = 35 => from(1.0);
        /// RREQ_RETRIES.
        pub rreq_retries: u8 = 2 => up_to(10.0);
        /// Time after an unanswered discovery during which no new one starts (RFC: none; ns-2: 10 s).
        #[serde(with = "manet_routing::seconds")]
        pub hold_down: Duration = Duration::ZERO;
        /// RREQ_RATELIMIT: requests per second.
        pub rreq_ratelimit: u32 = 10 => within(1.0, 1000.0);
        /// RERR_RATELIMIT: errors per second.
        pub rerr_ratelimit: u32 = 10 => within(1.0, 1000.0);
        /// TTL_START; by default 1, with style `uu` 2.
        pub ttl_start: Option<u8> = None => from(1.0).derived(&TTL_START);
        /// TTL_INCREMENT.
        pub ttl_increment: u8 = 2 => from(1.0);
        /// TTL_THRESHOLD.
        pub ttl_threshold: u8 = 7;
        /// TIMEOUT_BUFFER.
        pub timeout_buffer: u8 = 2;
        /// LOCAL_ADD_TTL.
        pub local_add_ttl: u8 = 2;
        /// NEXT_HOP_WAIT; by default node_traversal_time + 10 ms.
        #[serde(with = "optional_seconds")]
        pub next_hop_wait: Option<Duration> = None => above(0.0).derived(&NEXT_HOP_WAIT);
        /// Whether a discovery begins with a small TTL (RFC 3561, 6.4).
        pub expanding_ring: bool = true;
        /// Whether requests have the G flag; by default true, with style `uu` false.
        pub gratuitous: Option<bool> = None => derived(&UNLESS_UU);
        /// Whether requests have the D flag.
        pub destination_only: bool = false;
        /// Whether broken routes are repaired locally (6.12); by default true, with style `uu` false.
        pub local_repair: Option<bool> = None => derived(&UNLESS_UU);
        /// Whether the source of a TCP packet that waits for a repair gets host unreachable at once, not only after the repair has
        /// failed.
        pub unreachable_during_repair: bool = true;
        /// Whether RREP-ACK is always requested.
        pub unidirectional: bool = false;
        /// Whether only nodes on active routes send hellos; by default true, with style `uu` false.
        pub hello_while_active: Option<bool> = None => derived(&UNLESS_UU);
        /// Whether hellos state their interval (6.9).
        pub hello_interval_extension: bool = false;
        /// Whether a packet that a broken link returns waits for the new route.
        pub requeue: bool = true;
        /// Whether the node is silent for DELETE_PERIOD after a crash.
        pub reboot_wait: bool = true;
        /// Maximum number of packets that wait for routes.
        pub held_packets: usize = 64 => within(1.0, 4096.0);
        /// Maximum time that a packet waits for a route.
        #[serde(with = "manet_routing::seconds")]
        pub held_seconds: Duration = Duration::from_secs(30) => above(0.0);
        /// Whether a node with wires answers requests for Internet addresses.
        pub gateway: bool = true;
        /// Forwarding of packets for the Internet: in a tunnel to the source's gateway, or by a route of each node to its own.
        pub internet: Internet = Internet::Tunnel;
        /// Destination address of control packets for all neighbours.
        pub broadcast: Broadcast = Broadcast::Limited;
    }
}

const ACTIVE_ROUTE_TIMEOUT: Formula = By("link", &[("feedback", Number(10.0)), ("hello", Number(3.0))]);
const TWICE_ACTIVE: Formula = Product(&[Number(2.0), Key("active_route_timeout")]);
/// 2 * NET_TRAVERSAL_TIME, which is 2 * NODE_TRAVERSAL_TIME * NET_DIAMETER.
const PATH_DISCOVERY_TIME: Formula = Product(&[Number(4.0), Key("node_traversal_time"), Key("net_diameter")]);
const TWICE_PATH_DISCOVERY: Formula = Product(&[Number(2.0), Key("path_discovery_time")]);
/// "should be set to at least 2 * PATH_DISCOVERY_TIME" in the RFC's text; AODV-UU has the formula only.
const MY_ROUTE_TIMEOUT: Formula =
    By("style", &[("rfc", Max(&[TWICE_ACTIVE, TWICE_PATH_DISCOVERY])), ("uu", TWICE_ACTIVE)]);
const NEXT_HOP_WAIT: Formula = Sum(&[Key("node_traversal_time"), Number(0.01)]);
const TTL_START: Formula = By("style", &[("rfc", Number(1.0)), ("uu", Number(2.0))]);
const UNLESS_UU: Formula = By("style", &[("rfc", Flag(true)), ("uu", Flag(false))]);

/// The options that may be null, as given or as derived from others. Times in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Derived {
    /// ACTIVE_ROUTE_TIMEOUT, in seconds.
    pub active_route_timeout: f64,
    /// MY_ROUTE_TIMEOUT, in seconds.
    pub my_route_timeout: f64,
    /// PATH_DISCOVERY_TIME, in seconds.
    pub path_discovery_time: f64,
    /// NEXT_HOP_WAIT, in seconds.
    pub next_hop_wait: f64,
    /// TTL_START, in hops.
    pub ttl_start: u8,
    /// Whether requests have the G flag.
    pub gratuitous: bool,
    /// Whether broken routes are repaired locally.
    pub local_repair: bool,
    /// Whether only nodes on active routes send hellos.
    pub hello_while_active: bool,
}

/// Times and limits of the machine, computed from the options (RFC 3561, section 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// ACTIVE_ROUTE_TIMEOUT.
    pub active_route: Duration,
    /// MY_ROUTE_TIMEOUT.
    pub my_route: Duration,
    /// HELLO_INTERVAL.
    pub hello_interval: Duration,
    /// Silence of a neighbour after which its link is lost.
    pub hello_loss: Duration,
    /// A hello is sent up to this much earlier or later.
    pub hello_jitter: Duration,
    /// NODE_TRAVERSAL_TIME.
    pub node_traversal: Duration,
    /// NET_TRAVERSAL_TIME.
    pub net_traversal: Duration,
    /// PATH_DISCOVERY_TIME.
    pub path_discovery: Duration,
    /// NEXT_HOP_WAIT.
    pub next_hop_wait: Duration,
    /// BLACKLIST_TIMEOUT.
    pub blacklist: Duration,
    /// DELETE_PERIOD.
    pub delete_period: Duration,
    /// MAX_REPAIR_TTL in hops.
    pub max_repair_ttl: u8,
    /// Maximum delay of a forwarded RREQ.
    pub forward_jitter: Duration,
}

impl Options {
    /// Whether AODV-UU's behaviour was chosen.
    pub fn uu(&self) -> bool {
        self.style == Style::Uu
    }
    /// Whether each node forwards packets for the Internet to a gateway of its own.
    pub fn default_routes(&self) -> bool {
        self.internet == Internet::DefaultRoute
    }
    /// Whether hellos detect broken links.
    pub fn hellos(&self) -> bool {
        self.link == Link::Hello
    }

    /// Fails with the first option out of its limits, and the remedy.
    pub fn check(&self) -> Result<(), OptionError> {
        keys::check(Self::KEYS, self)
            .map_err(|e| OptionError(format!("options.{} is {}; give {}", e.key, e.value, e.limits.wanted())))
    }

    /// The options that may be null, of options that [`Self::check`] accepts.
    pub fn derived(&self) -> Result<Derived, OptionError> {
        serde_json::from_value(keys::completed(Self::KEYS, self)).map_err(|e| OptionError(e.to_string()))
    }

    /// Section 10's formulas.
    pub fn timing(&self, derived: &Derived) -> Timing {
        let active_route = Duration::from_secs_f64(derived.active_route_timeout);
        let net_traversal = self.node_traversal_time * 2 * u64::from(self.net_diameter);
        let hello_loss = self.hello_interval * u64::from(self.allowed_hello_loss);
        let uu_jitter = Duration::from_millis(if self.uu() { 50 } else { 0 });
        Timing {
            active_route,
            my_route: Duration::from_secs_f64(derived.my_route_timeout),
            hello_interval: self.hello_interval,
            hello_loss: hello_loss + uu_jitter,
            hello_jitter: uu_jitter,
            node_traversal: self.node_traversal_time,
            net_traversal,
            path_discovery: Duration::from_secs_f64(derived.path_discovery_time),
            next_hop_wait: Duration::from_secs_f64(derived.next_hop_wait),
            blacklist: net_traversal * u64::from(self.rreq_retries.max(1)),
            // K = 5; AODV-UU keeps 15 s with link-layer feedback too
            delete_period: match self.uu() {
                false => active_route.max(self.hello_interval) * 5,
                true => Duration::from_secs(15).max(hello_loss),
            },
            // 0.3 * NET_DIAMETER in whole hops: 10 for 35 (AODV-UU has 10 too)
            max_repair_ttl: (u32::from(self.net_diameter) * 3 / 10) as u8,
            // RFC 3561 leaves jitter to the implementation; 10 ms are ns-2.35's. AODV-UU has none here
            forward_jitter: Duration::from_millis(if self.uu() { 0 } else { 10 }),
        }
    }
}

mod optional_seconds {
    use manet_engine::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Seconds(#[serde(with = "manet_routing::seconds")] Duration);

    pub fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        d.map(Seconds).serialize(s)
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Seconds>::deserialize(d)?.map(|Seconds(d)| d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: &str) -> Options {
        serde_json::from_str(json).unwrap()
    }

    fn timing(json: &str) -> Timing {
        let options = options(json);
        options.timing(&options.derived().unwrap())
    }

    #[test]
    fn defaults_are_section_10s() {
        let t = timing(r#"{"link":"hello"}"#);
        let ms = Duration::from_millis;
        assert_eq!((t.active_route, t.net_traversal, t.path_discovery), (ms(3000), ms(2800), ms(5600)));
        // 2 * PATH_DISCOVERY_TIME; K * ACTIVE_ROUTE_TIMEOUT; RREQ_RETRIES * NET_TRAVERSAL_TIME
        assert_eq!((t.my_route, t.delete_period, t.blacklist), (ms(11_200), ms(15_000), ms(5600)));
        assert_eq!((t.hello_loss, t.next_hop_wait, t.max_repair_ttl), (ms(2000), ms(50), 10));
    }

    #[test]
    fn max_repair_ttl_is_three_tenths_of_the_diameter_and_no_less() {
        let of = |diameter: u8| timing(&format!(r#"{{"net_diameter":{diameter}}}"#)).max_repair_ttl;
        // 0.3 x 1, 3, 4, 10, 20, 255 = 0.3, 0.9, 1.2, 3, 6, 76.5
        assert_eq!([1, 3, 4, 10, 20, 255].map(of), [0, 0, 1, 3, 6, 76]);
    }

    #[test]
    fn requests_are_remembered_for_the_given_time_with_short_waits_too() {
        let short = r#""node_traversal_time":0.01,"net_diameter":12"#;
        let remembered = |more: &str| timing(&format!("{{{short}{more}}}")).path_discovery;
        assert_eq!(remembered(""), Duration::from_millis(480));
        assert_eq!(remembered(r#","path_discovery_time":6"#), Duration::from_secs(6));
        // MY_ROUTE_TIMEOUT is at least twice as long
        assert_eq!(timing(r#"{"path_discovery_time":30}"#).my_route, Duration::from_secs(60));
    }

    #[test]
    fn with_feedback_routes_live_ten_seconds() {
        assert_eq!(timing("{}").active_route, Duration::from_secs(10));
        assert_eq!(timing(r#"{"active_route_timeout":4.5}"#).active_route, Duration::from_millis(4500));
    }

    #[test]
    fn aodv_uus_values_where_they_differ() {
        const UU: &str = r#"{"style":"uu","link":"hello"}"#;
        let uu = options(UU).derived().unwrap();
        assert_eq!((uu.ttl_start, uu.gratuitous, uu.local_repair, uu.hello_while_active), (2, false, false, false));
        assert_eq!((timing(UU).my_route, timing(UU).hello_loss), (Duration::from_secs(6), Duration::from_millis(2050)));
        assert!(options(r#"{"style":"uu","gratuitous":true}"#).derived().unwrap().gratuitous);
    }

    #[test]
    fn nonsense_is_refused_with_the_options_name() {
        assert!(serde_json::from_str::<Options>(r#"{"ttl":1}"#).is_err());
        assert!(options(r#"{"ttl_start":0}"#).check().unwrap_err().0.starts_with("options.ttl_start is 0"));
        assert!(options(r#"{"held_packets":5000}"#).check().unwrap_err().0.ends_with("is 5000; give 1 to 4096"));
        assert_eq!(Options::default().check(), Ok(()));
    }

    #[test]
    fn options_come_back_from_their_json() {
        let o = Options { my_route_timeout: Some(Duration::from_millis(1500)), ..Options::default() };
        assert_eq!(serde_json::from_str::<Options>(&serde_json::to_string(&o).unwrap()).unwrap(), o);
    }
}
