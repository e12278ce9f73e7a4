//! The program `manet-capture`: the captures of all stations of a run, until SIGTERM (capture.rs).
//!
//! Exit status: 0 success, 1 an error. Every error is one line on standard error.

use clap::Parser;
use manet_medium_daemon::capture::{run, Interface, Limits, RECEIVE_BUFFER, WHOLE};
use manet_medium_daemon::host;
use std::path::PathBuf;
use std::process::ExitCode;

/// Capture many interfaces, in network namespaces, into pcap files, until SIGTERM or SIGINT.
#[derive(Parser)]
#[command(version, name = "manet-capture")]
struct Arguments {
    /// Folder of the files, which exists
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// Bytes of each packet that NAME.pcap keeps
    #[arg(long, value_name = "BYTES", default_value_t = WHOLE, value_parser = clap::value_parser!(u32).range(1..=i64::from(WHOLE)))]
    snap_bytes: u32,
    /// Bytes of each interface's packets that wait in the kernel
    #[arg(long, value_name = "BYTES", default_value_t = RECEIVE_BUFFER, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    buffer_bytes: u32,
    /// The interfaces: NAME:NETNS:IFNAME, or NAME:NETNS:IFNAME:PORT for the packets of a UDP port whole in NAME.routing.pcap
    #[arg(required = true)]
    interfaces: Vec<Interface>,
}

fn main() -> ExitCode {
    let Arguments { folder, snap_bytes, buffer_bytes, interfaces } = Arguments::parse();
    let limits = Limits { snap: snap_bytes, buffer: buffer_bytes };
    host::raise_descriptor_limit();
    let ended = host::stop_signals().and_then(|signals| run(&interfaces, &folder, limits, &signals));
    match ended {
        Ok(lines) => {
            for line in lines {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("manet-capture: {error}");
            ExitCode::FAILURE
        }
    }
}
