fn main() -> std::process::ExitCode {
    manet_routing_host::main::<manet_dsdv::Dsdv>()
}
