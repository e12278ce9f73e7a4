//! The cases of tests/conformance (`manet_routing_host::conformance`): inputs and outputs of one machine.

use manet_dsr::datagram::Datagram;
use manet_routing::Output;
use std::path::Path;

fn means(output: &Output) -> Option<String> {
    match output {
        Output::Frame { bytes, .. } | Output::Deliver { bytes } => {
            Some(Datagram::parse(bytes).map_or_else(str::to_owned, |packet| packet.to_string()))
        }
        _ => None,
    }
}

#[test]
fn cases() {
    manet_routing_host::conformance::check::<manet_dsr::Dsr>(Path::new("tests/conformance"), means);
}
