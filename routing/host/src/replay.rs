//! `manet-P replay`: plays a run's inputs in virtual time and prints the same outputs at the same instants, as JSON lines.
//!
//! A log holds one or more runs; each begins with a line `{"at":0,"started":{"restarted":false,"clock_ns":..}}`. The last line of a
//! killed run may be cut and is ignored.

use crate::config::Loaded;
use crate::error::{HostError, Result};
use manet_engine::{Instant, Timeline};
use manet_routing::{Input, Output, Protocol};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// The first line of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Started {
    /// Whether the predecessor was killed.
    pub restarted: bool,
    /// The time at instant 0 on the clock that the nodes share, ns.
    #[serde(default)]
    pub clock_ns: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Started { started: Started },
    Input { at: Instant, input: Input },
}

/// Replays the file `log` to stdout. Fails with path and line of a malformed log.
pub fn run<P: Protocol>(loaded: &Loaded<P>, log: &Path) -> Result<()> {
    let fail = |e: std::io::Error| HostError(format!("{}: {e}", log.display()));
    let mut out = std::io::stdout().lock();
    // a closed pipe is no error
    let mut print = |at: Instant, output: Output| {
        let _ = writeln!(out, "{}", serde_json::json!({"at": at, "output": output}));
    };
    let file = BufReader::new(File::open(log).map_err(fail)?);
    play(loaded, file, &mut print).map_err(|e| HostError(format!("{}: {}", log.display(), e.0)))
}

/// Plays all runs in `log` and passes each output to `put`. Fails with the line of a malformed log.
pub fn play<P: Protocol>(loaded: &Loaded<P>, log: impl BufRead, put: &mut impl FnMut(Instant, Output)) -> Result<()> {
    let mut timeline = fresh(loaded, &Started { restarted: loaded.config.node.restarted, clock_ns: 0 })?;
    let mut cut: Option<HostError> = None;
    for (i, line) in log.lines().enumerate() {
        let line = line.map_err(|e| HostError(format!("line {}: {e}", i + 1)))?;
        match serde_json::from_str(&line) {
            Ok(Line::Started { started }) => {
                cut = None;
                timeline = fresh(loaded, &started)?;
            }
            Ok(Line::Input { at, input }) => {
                if let Some(cut) = cut {
                    return Err(cut);
                }
                if at < timeline.now() {
                    return Err(HostError(format!("line {}: time goes back", i + 1)));
                }
                timeline.input(at, input, put);
            }
            Err(e) => cut = Some(HostError(format!("line {}: {e}", i + 1))),
        }
    }
    Ok(())
}

fn fresh<P: Protocol>(loaded: &Loaded<P>, started: &Started) -> Result<Timeline<P>> {
    let mut node = loaded.config.node.clone();
    node.restarted = started.restarted;
    let mut machine = P::new(node, loaded.options.clone())?;
    machine.synchronise(started.clock_ns);
    Ok(Timeline::new(machine))
}
