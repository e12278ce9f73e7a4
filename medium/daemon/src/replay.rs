//! `manet-medium replay`: the inputs of a run again, in virtual time. The air log is the same, byte for byte:
//! the medium's behaviour in real time does not depend on when the host schedules it.

use crate::recorder::Files;
use crate::setup::Setup;
use crate::world::{Output, World};
use crate::DaemonError;
use manet_engine::{event_log, Instant, Timeline};
use manet_medium::config::Config;
use manet_medium::message::{self, StationId};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

/// Replays `log` and writes the air log to `files`, and to `nav` each change of a station's NAV (formats/air.md).
///
/// # Errors
/// A log that cannot be read or replayed, or a file that cannot be written.
pub fn replay(setup: Setup, log: &Path, mut files: Files, nav: Option<&Path>) -> Result<(), DaemonError> {
    let from =
        File::open(log).map_err(|e| DaemonError(format!("{}: {e}; `run --input-log` writes one", log.display())))?;
    let mut world = World::new(&setup.loaded, setup.trajectories);
    let mut nav = nav.map(|path| NavLog::create(path, &setup.loaded.config)).transpose()?;
    if nav.is_some() {
        world.medium.set_reporting_nav();
    }
    let mut timeline = Timeline::new(world);
    let mut outside = |_: Instant, output: Output| match output {
        Output::Air(message::Output::Air(record)) => files.record(&record),
        Output::Air(message::Output::Nav { at, station, until }) => {
            if let Some(nav) = &mut nav {
                nav.record(at, station, until);
            }
        }
        _ => {}
    };
    event_log::replay(BufReader::new(from), &mut timeline, &mut outside)
        .map_err(|e| DaemonError(format!("{}: {e}", log.display())))?;
    nav.map_or(Ok(()), NavLog::finish)?;
    files.finish().lacking.pop().map_or(Ok(()), |unwritten| Err(DaemonError(unwritten.to_string())))
}

/// The file of `--nav`.
struct NavLog {
    path: String,
    names: Vec<String>,
    file: BufWriter<File>,
    failed: Option<io::Error>,
}

impl NavLog {
    fn create(path: &Path, config: &Config) -> Result<Self, DaemonError> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| DaemonError(format!("{name}: {e}")))?;
        let names = config.stations.iter().map(|station| station.name.clone()).collect();
        let mut file = BufWriter::new(file);
        let failed = writeln!(file, "t_ns,station,until_ns").err();
        Ok(Self { path: name, names, file, failed })
    }

    /// A row; after the first failure no more.
    fn record(&mut self, at: Instant, station: StationId, until: Instant) {
        if self.failed.is_none() {
            let name = &self.names[usize::from(station.0)];
            self.failed = writeln!(self.file, "{},{name},{}", at.as_nanos(), until.as_nanos()).err();
        }
    }

    fn finish(mut self) -> Result<(), DaemonError> {
        let failed = self.failed.take().or_else(|| self.file.flush().err());
        failed.map_or(Ok(()), |e| Err(DaemonError(format!("{}: {e}", self.path))))
    }
}
