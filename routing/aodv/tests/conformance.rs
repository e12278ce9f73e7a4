//! The cases of `conformance/`, each a behaviour with its clause. UPDATE=1 rewrites the expected outputs.

use manet_aodv::{means, Aodv};
use std::path::Path;

#[test]
fn every_case_has_the_expected_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    manet_routing_host::conformance::check::<Aodv>(&folder, means);
}
