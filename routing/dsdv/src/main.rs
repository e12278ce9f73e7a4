fn main() -> std::process::ExitCode {
    manet_routing::host::main::<manet_dsdv::Dsdv>()
}
