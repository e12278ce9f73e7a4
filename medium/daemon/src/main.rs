//! The program `manet-medium`. `run`: real time over TAPs or radios of hwsim; `sim`: virtual time;
//! `replay`: the inputs of a run again; `columns`: an air log as columns of numbers; `check`: a configuration; `schema`: its JSON Schema; `reach`: ranges of a radio.
//!
//! Exit status: 0 success, 1 an error at run time, 2 a mistake in the configuration. Every error is one line on standard error.

use clap::{Args, Parser, Subcommand, ValueEnum};
use manet_engine::real_time::Clock;
use manet_engine::schema::schema;
use manet_engine::Duration;
use manet_medium::config::{Config, MAX_HWSIM_QUEUE};
use manet_medium::phy::{reach, Radio};
use manet_medium::wire::dot11::{MAX_MSDU_BYTES, SNAP_LEN};
use manet_medium::{rate_tables, sim, AirRow};
use manet_medium_daemon::captured_frame::Names;
use manet_medium_daemon::columns::write_columns;
use manet_medium_daemon::incomplete::Incomplete;
use manet_medium_daemon::recorder::Files;
use manet_medium_daemon::run::Options;
use manet_medium_daemon::setup::{Setup, SetupError};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The 802.11 medium of the testbed (formats/medium.md, formats/sockets.md, formats/air.md).
#[derive(Parser)]
#[command(version, name = "manet-medium")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Create the stations' interfaces and emulate their medium, in real time, until SIGTERM or `stop`
    Run(RunArguments),
    /// Simulate synthetic traffic in virtual time; print one JSON object
    Sim {
        /// medium.json
        file: PathBuf,
    },
    /// Replay the inputs of a run in virtual time; write the same air log
    Replay {
        /// medium.json of the run
        file: PathBuf,
        /// The file that `run --input-log` wrote
        log: PathBuf,
        /// The air log to write
        air_log: PathBuf,
        /// Also write each change of a station's NAV (formats/air.md)
        #[arg(long, value_name = "FILE")]
        nav: Option<PathBuf>,
    },
    /// Write the rows of an air log as columns of numbers; print one JSON object that describes them (formats/air.md)
    Columns {
        /// The air log
        air_log: PathBuf,
        /// The file to write, which may have holes
        out: PathBuf,
    },
    /// Check a configuration; print nothing, or the mistake
    Check {
        /// medium.json
        file: PathBuf,
    },
    /// Print the JSON Schema of medium.json or of a radio profile: limits, units, defaults (formats/schema)
    Schema {
        #[arg(value_enum, default_value = "medium")]
        of: Described,
    },
    /// Print the ranges of a radio: a request on standard input, {"radio", "propagation", "at_m"}, one answer
    Reach,
}

#[derive(Clone, Copy, ValueEnum)]
enum Described {
    Medium,
    Radio,
}

#[derive(Args)]
struct RunArguments {
    /// medium.json
    file: PathBuf,
    /// Stop when the process that started this one has ended
    #[arg(long)]
    die_with_parent: bool,
    /// Do not request real-time priority from the host
    #[arg(long)]
    ordinary_priority: bool,
    /// Write every input of the run to this file, for `replay`
    #[arg(long, value_name = "FILE")]
    input_log: Option<PathBuf>,
    /// End the air log, its capture and the log of inputs when one of them reaches this size; the run is void then
    #[arg(long, value_name = "BYTES")]
    log_limit: Option<u64>,
    /// Debug: release everything this many microseconds late
    #[arg(long, value_name = "US", default_value_t = 0)]
    inject_lateness: u64,
    /// Debug: stop for MS milliseconds every PERIOD_MS
    #[arg(long, value_name = "MS:PERIOD_MS", value_parser = stall)]
    inject_stall: Option<(Duration, Duration)>,
}

fn stall(text: &str) -> Result<(Duration, Duration), NotAStall> {
    let parts = text.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parts {
        Some((length, period)) if period > 0 => Ok((Duration::from_millis(length), Duration::from_millis(period))),
        _ => Err(NotAStall),
    }
}

/// The value of `--inject-stall` is not `MS:PERIOD_MS`.
#[derive(Debug)]
struct NotAStall;

impl fmt::Display for NotAStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("give two whole numbers of milliseconds, e.g. 100:1000")
    }
}
impl std::error::Error for NotAStall {}

/// Exit status 2 or 1.
enum Failure {
    Configuration(SetupError),
    /// A request on standard input that cannot be answered.
    Request(String),
    /// One line each.
    Run(Vec<String>),
}

impl Failure {
    fn of_run(error: impl fmt::Display) -> Self {
        Self::Run(vec![error.to_string()])
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        Self::Configuration(error)
    }
}

fn main() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Run(arguments) => run(arguments),
        Verb::Sim { file } => simulate(&file),
        Verb::Replay { file, log, air_log, nav } => replay(&file, &log, &air_log, nav.as_deref()),
        Verb::Columns { air_log, out } => columns(&air_log, &out),
        Verb::Check { file } => Setup::read(&file).map(drop).map_err(Failure::from),
        Verb::Schema { of } => {
            println!("{}", schema_of(of));
            Ok(())
        }
        Verb::Reach => reach(),
    };
    let (lines, status) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Configuration(error)) => (vec![error.to_string()], 2),
        Err(Failure::Request(error)) => (vec![error], 2),
        Err(Failure::Run(lines)) => (lines, 1),
    };
    for line in lines {
        eprintln!("manet-medium: {line}");
    }
    ExitCode::from(status)
}

fn reach() -> Result<(), Failure> {
    let request = std::io::read_to_string(std::io::stdin()).map_err(|e| Failure::Run(vec![e.to_string()]))?;
    let request = reach::Request::parse(&request).map_err(|e| Failure::Request(e.to_string()))?;
    let answer = reach::answer(&request).map_err(|e| Failure::Request(e.to_string()))?;
    println!("{}", serde_json::json!(answer));
    Ok(())
}

fn schema_of(of: Described) -> String {
    match of {
        Described::Medium => {
            let max_mtu_bytes = MAX_MSDU_BYTES - SNAP_LEN;
            let facts = vec![("hwsim_queue_packets", MAX_HWSIM_QUEUE.into()), ("max_mtu_bytes", max_mtu_bytes.into())];
            schema::<Config>("manet-medium/medium", "medium.json (formats/medium.md)", facts)
        }
        Described::Radio => schema::<Radio>("manet-medium/radio", "A radio profile (formats/radio.md)", Vec::new()),
    }
}

fn run(arguments: RunArguments) -> Result<(), Failure> {
    let setup = Setup::read(&arguments.file)?;
    let options = Options {
        die_with_parent: arguments.die_with_parent,
        ordinary_priority: arguments.ordinary_priority,
        input_log: arguments.input_log,
        log_limit: arguments.log_limit,
        inject_lateness: Duration::from_micros(arguments.inject_lateness),
        inject_stall: arguments.inject_stall,
    };
    let lacking = manet_medium_daemon::run::run(setup, &options)
        .map_err(|e| Failure::of_run(format!("{}: {e}", arguments.file.display())))?;
    complete(&lacking)
}

fn replay(file: &Path, log: &Path, air_log: &Path, nav: Option<&Path>) -> Result<(), Failure> {
    let setup = Setup::read(file)?;
    let files = Files::create(Some(air_log), None, Names::of(&setup.loaded)).map_err(Failure::of_run)?;
    manet_medium_daemon::replay::replay(setup, log, files, nav).map_err(Failure::of_run)
}

fn columns(air_log: &Path, out: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, e: &dyn fmt::Display| Failure::of_run(format!("{}: {e}", path.display()));
    let log = File::open(air_log).map_err(|e| failed(air_log, &e))?;
    let file = File::create(out).map_err(|e| failed(out, &e))?;
    let columns = write_columns(log, &file).map_err(|e| failed(air_log, &e))?;
    println!("{}", serde_json::json!(columns));
    Ok(())
}

fn simulate(file: &Path) -> Result<(), Failure> {
    let mut setup = Setup::read(file)?;
    let trajectories = std::mem::take(&mut setup.trajectories);
    let (loaded, outputs) = (&setup.loaded, &setup.loaded.config.outputs);
    let (csv, pcapng) = (setup.in_folder(&outputs.air_log), setup.in_folder(&outputs.air_pcapng));
    let mut files = Files::create(csv.as_deref(), pcapng.as_deref(), Names::of(loaded)).map_err(Failure::of_run)?;
    if let Some(path) = setup.in_folder(&outputs.monitor) {
        files.monitor(&path).map_err(Failure::of_run)?;
    }
    let clock = Clock::starting_now();
    let result = if files.is_empty() {
        sim::run(loaded, trajectories, None)
    } else {
        sim::run(loaded, trajectories, Some(&mut |record: &AirRow| files.record(record)))
    };
    let wall_s = clock.now().as_secs_f64();
    complete(&files.finish().lacking)?;
    if let Some(path) = setup.in_folder(&outputs.counters) {
        let mut counters = serde_json::json!({"format": "manet-counters/1", "stations": result.stations});
        if !result.jammers.is_empty() {
            counters["jammers"] = serde_json::json!(result.jammers);
        }
        write(&path, &counters)?;
    }
    if let Some(path) = setup.in_folder(&outputs.rates).filter(|_| !result.rates.is_empty()) {
        write(&path, &rate_tables::report(loaded.radio.rate_control.name(), &result.rates))?;
    }
    if let (Some(path), Some(text)) = (setup.in_folder(&outputs.radio_time), &result.radio_time) {
        write_text(&path, text)?;
    }
    let mut json = serde_json::to_value(&result).map_err(Failure::of_run)?;
    json["wall_s"] = wall_s.into();
    println!("{json}");
    Ok(())
}

fn write(path: &Path, content: &serde_json::Value) -> Result<(), Failure> {
    write_text(path, &format!("{content:#}\n"))
}

fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::of_run(format!("{}: {e}", path.display())))
}

/// A failure if any result is incomplete.
fn complete(lacking: &[Incomplete]) -> Result<(), Failure> {
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(lacking.iter().map(Incomplete::to_string).collect()))
    }
}
