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
fn the_machine_does_what_the_cases_say() {
    manet_routing_host::conformance::check::<Olsr>(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance"),
        means,
    );
}
