//! The machines of our daemons, by name.

use crate::{Mesh, Scenario};
use manet_routing::Protocol;
use serde_json::{json, Value};
use std::fmt;

/// Names of the protocols.
pub const NAMES: [&str; 6] = ["aodv", "dsdv", "olsr", "dsr", "adv", "tora"];

/// An operation on a mesh of any protocol.
pub trait Visitor {
    /// Its result.
    type Out;
    /// Executes it.
    fn visit<P: Protocol>(self, mesh: Mesh<P>) -> Self::Out;
}

/// Reason why a mesh cannot be created: one line.
#[derive(Debug)]
pub enum Unusable {
    /// There is no protocol of this name.
    Protocol(String),
    /// An option of this protocol is unknown, or of the wrong type.
    Options(&'static str, serde_json::Error),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(name) => write!(f, "{name}: no such protocol; one of {}", NAMES.join(", ")),
            Self::Options(name, e) => write!(f, "options of {name}: {e}"),
        }
    }
}
impl std::error::Error for Unusable {}

/// Creates a mesh of the protocol `name` (options as in CONFIG, formats/routing.md) and passes it to `visitor`.
///
/// # Errors
/// An unknown name, or options that the protocol does not have.
pub fn with<V: Visitor>(name: &str, scenario: Scenario, options: &Value, visitor: V) -> Result<V::Out, Unusable> {
    match name {
        manet_aodv::Aodv::NAME => visit::<manet_aodv::Aodv, V>(scenario, options, visitor),
        manet_dsdv::Dsdv::NAME => visit::<manet_dsdv::Dsdv, V>(scenario, options, visitor),
        manet_olsr::Olsr::NAME => visit::<manet_olsr::Olsr, V>(scenario, options, visitor),
        manet_adv::Adv::NAME => visit::<manet_adv::Adv, V>(scenario, options, visitor),
        manet_dsr::Dsr::NAME => visit::<manet_dsr::Dsr, V>(scenario, options, visitor),
        manet_tora::Tora::NAME => visit::<manet_tora::Tora, V>(scenario, options, visitor),
        _ => Err(Unusable::Protocol(name.to_owned())),
    }
}

fn visit<P: Protocol, V: Visitor>(scenario: Scenario, options: &Value, visitor: V) -> Result<V::Out, Unusable> {
    let options = serde_json::from_value(options.clone()).map_err(|e| Unusable::Options(P::NAME, e))?;
    Ok(visitor.visit(Mesh::<P>::new(scenario, options)))
}

/// Value of the option `link`: how the protocol detects broken links (formats/routing.md).
pub fn link(name: &str, feedback: bool) -> &'static str {
    match (feedback, name) {
        (true, _) => "feedback",
        (false, "dsr") => "ack",
        (false, _) => "hello",
    }
}

/// `scenario` with or without link feedback, and the protocol's options for it.
pub fn with_link(name: &str, feedback: bool, scenario: &Scenario) -> (Scenario, Value) {
    (Scenario { feedback, ..scenario.clone() }, json!({"link": link(name, feedback)}))
}

/// Each protocol with link feedback and without.
pub fn variants() -> Vec<(&'static str, bool)> {
    NAMES.iter().flat_map(|name| [(*name, true), (*name, false)]).collect()
}
