//! Cases as files: tests/conformance/*.

use manet_olsr::{wire::Packet, Olsr};
use manet_routing::Output;
use std::path::Path;

/// The messages of a control packet.
fn means(output: &Output) -> Option<String> {
    let Output::Control { bytes, .. } = output else { return None };
    Packet::parse(bytes).ok().map(|(packet, _)| packet.to_string())
}

#[test]
fn every_case_has_the_expected_output() {
    manet_routing_host::conformance::check::<Olsr>(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance"),
        means,
    );
}
