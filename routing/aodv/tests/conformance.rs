//! The cases of `conformance/`, each a behaviour with its clause. UPDATE=1 writes what is expected anew.

use manet_aodv::{means, Aodv};
use std::path::Path;

#[test]
fn every_case_does_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    manet_routing_host::conformance::check::<Aodv>(&folder, means);
}
