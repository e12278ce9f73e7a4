//! `manet-medium replay`: a run's inputs again, in virtual time. It writes the same air log, byte for byte:
//! what the medium did in real time did not depend on when the host let it run.

use crate::recorder::Files;
use crate::setup::Setup;
use crate::world::{Output, World};
use crate::DaemonError;
use manet_engine::{event_log, Instant, Timeline};
use manet_medium::message;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Plays `log` and writes the air log into `files`.
pub fn replay(setup: Setup, log: &Path, mut files: Files) -> Result<(), DaemonError> {
    let from =
        File::open(log).map_err(|e| DaemonError(format!("{}: {e}; `run --input-log` writes one", log.display())))?;
    let mut timeline = Timeline::new(World::new(&setup.loaded, setup.trajectories));
    let mut outside = |_: Instant, output: Output| {
        if let Output::Air(message::Output::Air(record)) = output {
            files.record(&record);
        }
    };
    event_log::replay(BufReader::new(from), &mut timeline, &mut outside)
        .map_err(|e| DaemonError(format!("{}: {e}", log.display())))?;
    files.finish().pop().map_or(Ok(()), |unwritten| Err(DaemonError(unwritten.to_string())))
}
