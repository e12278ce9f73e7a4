//! `manet-medium replay`: the inputs of a run again, in virtual time. The air log is the same, byte for byte:
//! the medium's behaviour in real time does not depend on when the host schedules it.

use crate::recorder::Files;
use crate::setup::Setup;
use crate::world::{Output, World};
use crate::DaemonError;
use manet_engine::{event_log, Instant, Timeline};
use manet_medium::message;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Replays `log` and writes the air log to `files`.
///
/// # Errors
/// A log that cannot be read or replayed, or a file that cannot be written.
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
