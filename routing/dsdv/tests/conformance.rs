//! The cases of tests/conformance (manet_routing_host::conformance); UPDATE=1 rewrites their outputs.

use manet_dsdv::{wire, Dsdv};
use manet_routing::Output;
use manet_routing_host::conformance;
use std::path::Path;

/// An update's entries: destination, hops for the receiver, number.
fn means(output: &Output) -> Option<String> {
    let Output::Control { bytes, .. } = output else { return None };
    let adverts = wire::parse(bytes).ok()?;
    let entry = |a: &wire::Advert| format!("{} {} #{}", a.destination, a.hops, a.sequence.0);
    Some(adverts.iter().map(entry).collect::<Vec<_>>().join(", "))
}

#[test]
fn cases() {
    conformance::check::<Dsdv>(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance"), means);
}
