//! The command line (formats/routing.md).
//!
//! Exit status: 0 regular end, 1 failure at run time, 2 wrong CONFIG.

use crate::config::{ConfigError, Loaded};
use crate::error::HostError;
use crate::{daemon, replay, status};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use manet_engine::schema::schema;
use manet_routing::{Carrier, Protocol, MIN_MTU};
use std::path::PathBuf;
use std::process::ExitCode;

/// A routing daemon of one station (formats/routing.md)
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Route until SIGTERM or SIGINT; print `ready` once the daemon is set up
    Run { config: PathBuf },
    /// Check a configuration; print nothing, or the mistake
    Check { config: PathBuf },
    /// Print the protocol's options with their defaults
    Options,
    /// Print the JSON Schema of the protocol's options: limits, units, defaults (formats/schema)
    Schema,
    /// Play an event log in virtual time; print each output as a JSON line
    Replay { config: PathBuf, log: PathBuf },
    /// Send a request to a running daemon; print its answer
    Status {
        socket: PathBuf,
        /// status, follow or stop
        #[arg(default_value = "status")]
        op: String,
    },
}

enum Failure {
    Config(ConfigError),
    Run(HostError),
}

/// Parses the command line of `manet-P`, performs its verb and returns the exit status. Errors go to stderr as one line.
pub fn main<P: Protocol>() -> ExitCode {
    // clap keeps names for the life of the process; the program has one
    let name: &'static str = Box::leak(format!("manet-{}", P::NAME).into_boxed_str());
    let command = Arguments::command().name(name);
    let arguments = command.try_get_matches().and_then(|m| Arguments::from_arg_matches(&m));
    let verb = match arguments {
        Ok(arguments) => arguments.verb,
        Err(e) => e.exit(),
    };
    let (line, code) = match perform::<P>(verb) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Config(error)) => (error.to_string(), 2),
        Err(Failure::Run(error)) => (error.0, 1),
    };
    eprintln!("{name}: {}", line.replace('\n', " "));
    ExitCode::from(code)
}

fn perform<P: Protocol>(verb: Verb) -> Result<(), Failure> {
    let load = |path: &PathBuf| Loaded::<P>::from_file(path).map_err(Failure::Config);
    match verb {
        Verb::Run { config } => daemon::run(load(&config)?).map_err(Failure::Run),
        Verb::Check { config } => load(&config).map(drop),
        Verb::Options => {
            let options =
                serde_json::to_value(P::Options::default()).map_err(|e| Failure::Run(HostError(e.to_string())))?;
            println!("{options:#}");
            Ok(())
        }
        Verb::Schema => {
            let mut facts = match P::CARRIER {
                Carrier::Udp(port) => vec![("udp_port", port.into())],
                Carrier::Frames => Vec::new(),
            };
            facts.push(("min_mtu_bytes", MIN_MTU.into()));
            let id = format!("manet-{}/options", P::NAME);
            println!("{}", schema::<P::Options>(&id, &format!("Options of manet-{}", P::NAME), facts));
            Ok(())
        }
        Verb::Replay { config, log } => replay::run(&load(&config)?, &log).map_err(Failure::Run),
        Verb::Status { socket, op } => status::ask(&socket, &op).map_err(Failure::Run),
    }
}
