//! The TORA daemon: README.md and formats/routing.md.

fn main() -> std::process::ExitCode {
    manet_routing_host::main::<manet_tora::Tora>()
}
