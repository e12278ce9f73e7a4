//! The cases of tests/conformance (manet_routing_host::conformance); UPDATE=1 rewrites their outputs.

use manet_routing::Output;
use manet_routing_host::conformance;
use manet_tora::{wire::Packet, Tora};
use std::path::Path;

/// The blocks and messages of a packet.
fn means(output: &Output) -> Option<String> {
    let Output::Control { bytes, .. } = output else { return None };
    Packet::parse(bytes).ok().map(|packet| packet.to_string())
}

#[test]
fn cases() {
    conformance::check::<Tora>(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance"), means);
}
