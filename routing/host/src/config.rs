//! CONFIG of formats/routing.md: identity of the node, paths of its sockets and files, options of the protocol.

use crate::rtnetlink::TcpMetrics;
use manet_routing::{Node, OptionError, Protocol, MIN_MTU};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

const FORMAT: &str = "manet-routing/1";
/// No configuration is longer; the limit detects a wrong path (a capture, /dev/zero) before it fills the memory.
const MAX_BYTES: u64 = 1 << 20;
/// IFNAMSIZ less its final zero.
const MAX_NAME_LEN: usize = 15;

/// Key "feedback": the source of link reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum FeedbackSource {
    /// The medium's socket of this station (formats/sockets.md).
    Medium(PathBuf),
    /// Failure counts of mac80211, polled.
    Nl80211,
    /// No link reports.
    #[default]
    None,
}

/// CONFIG except for the protocol's options.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    format: String,
    /// Identity of the node.
    pub node: Node,
    /// Name of the radio's interface.
    pub interface: String,
    /// Name of the TUN device, which the daemon creates.
    #[serde(default = "manet0")]
    pub tun: String,
    /// Source of link reports.
    #[serde(default)]
    pub feedback: FeedbackSource,
    /// Path of the status socket; `None`: no socket.
    #[serde(default)]
    pub status: Option<PathBuf>,
    /// CLOCK_REALTIME in nanoseconds from which notes count.
    #[serde(default)]
    pub epoch_ns: u64,
    /// File of notes, appended to.
    #[serde(default)]
    pub notes: Option<PathBuf>,
    /// File of the event log, appended to.
    #[serde(default)]
    pub events: Option<PathBuf>,
    /// Capture file of the packets that wait for a route, appended to.
    #[serde(default)]
    pub held: Option<PathBuf>,
    /// Whether the routes set RTAX_QUICKACK: TCP acknowledges every segment at once.
    #[serde(default)]
    pub quickack: bool,
    /// Further metrics for TCP of the routes.
    #[serde(default)]
    pub metrics: TcpMetrics,
    #[serde(default)]
    notices: bool,
    /// False: TCP gets no ICMP unreachable, as if Linux lacked its built-in reaction (RFC 6069).
    #[serde(default = "yes")]
    pub tcp_unreachable: bool,
    #[serde(default = "no_options")]
    options: Value,
}

fn manet0() -> String {
    "manet0".to_owned()
}

fn yes() -> bool {
    true
}

fn no_options() -> Value {
    Value::Object(serde_json::Map::new())
}

/// A configuration that `P` accepts, and its options.
#[derive(Clone, Debug)]
pub struct Loaded<P: Protocol> {
    /// All keys but the options.
    pub config: Config,
    /// Key "options".
    pub options: P::Options,
}

/// The error of a refused configuration, with its file.
#[derive(Debug)]
pub struct ConfigError {
    file: PathBuf,
    mistake: Mistake,
}

/// A mistake in a configuration. Its text is one line that names the key and, if there is one, the remedy.
#[derive(Debug)]
pub enum Mistake {
    /// The file cannot be opened.
    Unopened(io::Error),
    /// The file cannot be read or is not UTF-8.
    Unreadable(io::Error),
    /// The file has more than 2^20 bytes.
    TooLong,
    /// The text is not JSON, lacks a key or has an unknown one.
    Malformed(serde_json::Error),
    /// A value of the host's keys is out of range.
    Key {
        /// Name of the key, `node.mtu` for example.
        name: &'static str,
        /// The reason and the remedy.
        problem: String,
    },
    /// An option of the protocol is unknown, or its value has the wrong type.
    MalformedOption(serde_json::Error),
    /// The protocol refuses an option, or the node.
    Option(OptionError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.mistake)
    }
}
impl std::error::Error for ConfigError {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unopened(e) => e.fmt(f),
            Self::Unreadable(e) => write!(f, "{e}; is it a configuration?"),
            Self::TooLong => write!(f, "longer than {MAX_BYTES} bytes; is it a configuration?"),
            Self::Malformed(e) => e.fmt(f),
            Self::Key { name, problem } => write!(f, "key \"{name}\": {problem}"),
            Self::MalformedOption(e) => write!(f, "key \"options\": {e}"),
            Self::Option(e) => write!(f, "key \"options\": {e}"),
        }
    }
}
impl std::error::Error for Mistake {}

impl<P: Protocol> Loaded<P> {
    /// Reads and checks a file of CONFIG. Fails with the path and the first mistake.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = read(path);
        text.and_then(|text| Self::from_text(&text)).map_err(|mistake| ConfigError { file: path.to_owned(), mistake })
    }

    /// Reads and checks the text of CONFIG. Fails with the first mistake. The node's feedback is switched off where the
    /// source or the options exclude it.
    pub fn from_text(text: &str) -> Result<Self, Mistake> {
        let mut config: Config = serde_json::from_str(text).map_err(Mistake::Malformed)?;
        config.check()?;
        let options: P::Options = serde_json::from_value(config.options.clone()).map_err(Mistake::MalformedOption)?;
        config.node.notices |= config.notices;
        config.node.feedback &= wants_feedback(&options) && config.feedback != FeedbackSource::None;
        P::new(config.node.clone(), options.clone()).map_err(Mistake::Option)?;
        Ok(Self { config, options })
    }
}

/// With `"link": "hello"` (or DSR's `"ack"`) the protocol notices failed links itself, without the radio.
fn wants_feedback(options: &impl serde::Serialize) -> bool {
    let link = serde_json::to_value(options).ok().and_then(|o| o.get("link").cloned());
    link.is_none_or(|l| l == "feedback")
}

fn read(path: &Path) -> Result<String, Mistake> {
    let file = File::open(path).map_err(Mistake::Unopened)?;
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(Mistake::Unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Mistake::TooLong);
    }
    Ok(text)
}

fn wrong<T>(name: &'static str, problem: String) -> Result<T, Mistake> {
    Err(Mistake::Key { name, problem })
}

impl Config {
    fn check(&self) -> Result<(), Mistake> {
        if self.format != FORMAT {
            return wrong("format", format!("\"{}\" is not \"{FORMAT}\"", self.format));
        }
        interface_name("interface", &self.interface)?;
        interface_name("tun", &self.tun)?;
        if self.tun == self.interface {
            return wrong("tun", format!("\"{}\" is the radio; give it a name of its own", self.tun));
        }
        self.check_node()
    }

    fn check_node(&self) -> Result<(), Mistake> {
        let node = &self.node;
        let networks = std::iter::once(("node.network", node.network));
        for (key, (address, prefix)) in networks.chain(node.wires.iter().map(|w| ("node.wires", *w))) {
            if prefix > 32 {
                return wrong(key, format!("{address}/{prefix} is no network; a prefix has 0 to 32 bits"));
            }
        }
        if !is_host(node.address) {
            return wrong("node.address", format!("{} is no address of a host", node.address));
        }
        if !node.in_network(node.address) {
            let (network, prefix) = node.network;
            return wrong("node.address", format!("{} is not in {network}/{prefix}", node.address));
        }
        if node.mtu < MIN_MTU {
            return wrong("node.mtu", format!("{} is less than {MIN_MTU}", node.mtu));
        }
        if node.mac[0] & 1 == 1 || node.mac == [0; 6] {
            return wrong("node.mac", "no address of one interface (a group's, or all zero)".to_owned());
        }
        Ok(())
    }
}

/// Whether one host can have this address: not 0.0.0.0, loopback, multicast or 240.0.0.0/4.
pub fn is_host(a: Ipv4Addr) -> bool {
    !(a.is_unspecified() || a.is_loopback() || a.is_multicast() || a.octets()[0] >= 240)
}

fn interface_name(key: &'static str, name: &str) -> Result<(), Mistake> {
    let odd = |c: char| c == '/' || c == '%' || c == ':' || c.is_whitespace() || !c.is_ascii_graphic();
    if name.is_empty() || name.len() > MAX_NAME_LEN || name.contains(odd) || name.starts_with('.') {
        return wrong(key, format!("\"{}\" is no interface name of 1 to 15 characters", name.escape_debug()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;
    use serde_json::json;

    fn good() -> Value {
        json!({
            "format": FORMAT,
            "node": {"number": 1, "address": "10.0.0.1", "network": ["10.0.0.0", 8], "mac": "02:00:00:00:00:01",
                     "seed": 1, "feedback": true},
            "interface": "wlan0",
            "feedback": "nl80211",
        })
    }

    fn load(value: &Value) -> Result<Loaded<Toy>, String> {
        Loaded::from_text(&value.to_string()).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn absent_keys_have_their_defaults() {
        let config = load(&good()).unwrap().config;
        assert_eq!((config.tun.as_str(), config.node.mtu, config.epoch_ns), ("manet0", 1500, 0));
        assert!(!config.node.notices);
        assert!(
            config.status.is_none()
                && config.notes.is_none()
                && config.events.is_none()
                && config.held.is_none()
                && !config.quickack
                && config.metrics == TcpMetrics::default()
        );
    }

    #[test]
    fn the_node_has_feedback_only_if_source_and_options_provide_it() {
        assert!(load(&good()).unwrap().config.node.feedback);
        for (key, value) in [("options", json!({"link": "hello"})), ("feedback", json!("none"))] {
            let mut config = good();
            config[key] = value;
            assert!(!load(&config).unwrap().config.node.feedback, "{key}");
        }
    }

    #[test]
    fn the_key_notices_reaches_the_node() {
        let mut config = good();
        config["notices"] = json!(true);
        assert!(load(&config).unwrap().config.node.notices);
    }

    #[test]
    fn metrics_for_tcp_are_read_and_a_name_that_no_algorithm_has_is_refused() {
        let mut config = good();
        config["metrics"] = json!({"window": 11_680, "cwnd": 8, "initcwnd": 2, "rto_min": 200, "congctl": "reno"});
        let metrics = load(&config).unwrap().config.metrics;
        assert_eq!((metrics.window, metrics.cwnd, metrics.initcwnd), (Some(11_680), Some(8), Some(2)));
        assert_eq!((metrics.rto_min, metrics.advmss), (Some(200), None));
        assert_eq!(metrics.congctl, Some(*b"reno\0\0\0\0\0\0\0\0\0\0\0\0"));
        config["metrics"] = json!({"congctl": "a-name-of-16-chars"});
        assert!(load(&config).err().unwrap().contains("is no name of a congestion control"));
        config["metrics"] = json!({"rtt": 1});
        assert!(load(&config).err().unwrap().contains("unknown field `rtt`"));
    }

    #[test]
    fn each_mistake_is_one_line_that_names_its_key() {
        let mistakes = [
            ("/format", json!("manet-routing/2"), "key \"format\""),
            ("/interface", json!("a-name-too-long-for-linux"), "key \"interface\""),
            ("/interface", json!("w/0"), "key \"interface\""),
            ("/tun", json!("wlan0"), "key \"tun\""),
            ("/feedback", json!("radio"), "unknown variant `radio`"),
            ("/node/address", json!("192.168.0.1"), "key \"node.address\": 192.168.0.1 is not in 10.0.0.0/8"),
            ("/node/address", json!("255.255.255.255"), "key \"node.address\""),
            ("/node/network", json!(["10.0.0.0", 33]), "key \"node.network\""),
            ("/node/wires", json!([["192.168.1.0", 64]]), "key \"node.wires\""),
            ("/node/mac", json!("ff:ff:ff:ff:ff:ff"), "key \"node.mac\""),
            ("/node/mac", json!("02:00:00:00:00"), "is no MAC address"),
            ("/node/mac", json!("02:00:00:00:00:+1"), "is no MAC address"),
            ("/node/mtu", json!(68), "key \"node.mtu\""),
            ("/node/sead", json!(1), "unknown field `sead`"),
            ("/epoch", json!(1), "unknown field `epoch`"),
            ("/options", json!({"links": "hello"}), "key \"options\": unknown field `links`"),
            ("/options", json!({"hello_interval": 0}), "key \"options\": hello_interval"),
            ("/options", json!({"hello_interval": -1}), "key \"options\": -1 is no time"),
        ];
        for (key, value, says) in mistakes {
            let mut config = good();
            let (parent, name) = key.rsplit_once('/').unwrap();
            config.pointer_mut(parent).unwrap()[name] = value;
            let error = load(&config).err().unwrap_or_else(|| panic!("{key} is taken"));
            assert!(error.contains(says) && !error.contains('\n'), "{key}: {error}");
        }
    }

    #[test]
    fn cut_and_oversized_files_are_refused_by_name() {
        let path = std::env::temp_dir().join(format!("manet-config-{}.json", std::process::id()));
        std::fs::write(&path, &good().to_string()[..60]).unwrap();
        let error = Loaded::<Toy>::from_file(&path).err().unwrap().to_string();
        assert!(error.starts_with(&path.display().to_string()) && error.contains("EOF"), "{error}");
        std::fs::write(&path, " ".repeat(MAX_BYTES as usize + 1)).unwrap();
        let error = Loaded::<Toy>::from_file(&path).err().unwrap().to_string();
        assert!(error.contains("longer than 1048576 bytes"), "{error}");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(Loaded::<Toy>::from_file(&path).err().unwrap().to_string().contains("is it a configuration?"));
        std::fs::remove_file(&path).unwrap();
        assert!(Loaded::<Toy>::from_file(&path).err().unwrap().to_string().contains("No such file"));
    }
}
