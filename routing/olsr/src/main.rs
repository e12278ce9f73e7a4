//! `manet-olsr`: formats/routing.md.
fn main() -> std::process::ExitCode {
    manet_routing::host::main::<manet_olsr::Olsr>()
}
