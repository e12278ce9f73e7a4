//! CONFIG of formats/routing.md: who the node is, where its sockets and files are, and the protocol's options.

use crate::{Node, Protocol};
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

const FORMAT: &str = "manet-routing/1";
/// Nobody's configuration is longer; a wrong path (a capture, /dev/zero) is found out before it fills the memory.
const LONGEST: u64 = 1 << 20;
/// RFC 791: every host accepts packets of 576 bytes.
const SMALLEST_MTU: u16 = 576;
/// IFNAMSIZ less its final zero.
const LONGEST_NAME: usize = 15;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum FeedbackSource {
    /// The medium's socket of this station (formats/sockets.md).
    Medium(PathBuf),
    Nl80211,
    #[default]
    None,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    format: String,
    pub node: Node,
    pub interface: String,
    #[serde(default = "manet0")]
    pub tun: String,
    #[serde(default)]
    pub feedback: FeedbackSource,
    #[serde(default)]
    pub status: Option<PathBuf>,
    /// CLOCK_REALTIME that notes count from.
    #[serde(default)]
    pub epoch_ns: u64,
    #[serde(default)]
    pub notes: Option<PathBuf>,
    #[serde(default)]
    pub events: Option<PathBuf>,
    #[serde(default)]
    pub quickack: bool,
    #[serde(default = "no_options")]
    options: Value,
}

fn manet0() -> String {
    "manet0".to_owned()
}

fn no_options() -> Value {
    Value::Object(serde_json::Map::new())
}

/// A configuration that `P` accepts, and the options read from it.
#[derive(Clone, Debug)]
pub struct Loaded<P: Protocol> {
    pub config: Config,
    pub options: P::Options,
}

impl<P: Protocol> Loaded<P> {
    /// Errors name the file, the key and the remedy.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        Self::from_text(&read(path)?).map_err(|e| format!("{}: {e}", path.display()))
    }

    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut config: Config = serde_json::from_str(text).map_err(|e| e.to_string())?;
        config.check()?;
        let options: P::Options =
            serde_json::from_value(config.options.clone()).map_err(|e| format!("key \"options\": {e}"))?;
        config.node.feedback &= wants_feedback(&options) && config.feedback != FeedbackSource::None;
        P::new(config.node.clone(), options.clone()).map_err(|e| format!("key \"options\": {e}"))?;
        Ok(Self { config, options })
    }
}

/// With `"link": "hello"` (or DSR's `"ack"`) the protocol finds out by itself, and the radio need not tell.
fn wants_feedback(options: &impl serde::Serialize) -> bool {
    let link = serde_json::to_value(options).ok().and_then(|o| o.get("link").cloned());
    link.is_none_or(|l| l == "feedback")
}

fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    let file = File::open(path).map_err(|e| format!("{name}: {e}"))?;
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|e| format!("{name}: {e}; is it a configuration?"))?;
    if text.len() as u64 > LONGEST {
        return Err(format!("{name}: longer than {LONGEST} bytes; is it a configuration?"));
    }
    Ok(text)
}

impl Config {
    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("key \"format\": \"{}\" is not \"{FORMAT}\"", self.format));
        }
        interface_name("interface", &self.interface)?;
        interface_name("tun", &self.tun)?;
        if self.tun == self.interface {
            return Err(format!("key \"tun\": \"{}\" is the radio; give it a name of its own", self.tun));
        }
        self.check_node()
    }

    fn check_node(&self) -> Result<(), String> {
        let node = &self.node;
        let networks = std::iter::once(("node.network", node.network));
        for (key, (address, prefix)) in networks.chain(node.wires.iter().map(|w| ("node.wires", *w))) {
            if prefix > 32 {
                return Err(format!("key \"{key}\": {address}/{prefix} is no network; a prefix has 0 to 32 bits"));
            }
        }
        if !is_host(node.address) {
            return Err(format!("key \"node.address\": {} is no address of a host", node.address));
        }
        if !node.in_network(node.address) {
            let (network, prefix) = node.network;
            return Err(format!("key \"node.address\": {} is not in {network}/{prefix}", node.address));
        }
        if node.mtu < SMALLEST_MTU {
            return Err(format!("key \"node.mtu\": {} is less than {SMALLEST_MTU}", node.mtu));
        }
        if node.mac[0] & 1 == 1 || node.mac == [0; 6] {
            return Err("key \"node.mac\": no address of one interface (a group's, or all zero)".to_owned());
        }
        Ok(())
    }
}

pub fn is_host(a: Ipv4Addr) -> bool {
    !(a.is_unspecified() || a.is_loopback() || a.is_multicast() || a.octets()[0] >= 240)
}

fn interface_name(key: &str, name: &str) -> Result<(), String> {
    let odd = |c: char| c == '/' || c == '%' || c == ':' || c.is_whitespace() || !c.is_ascii_graphic();
    if name.is_empty() || name.len() > LONGEST_NAME || name.contains(odd) || name.starts_with('.') {
        return Err(format!("key \"{key}\": \"{}\" is no interface name of 1 to 15 characters", name.escape_debug()));
    }
    Ok(())
}
