//! Conformance cases: inputs played to a machine in virtual time, and the expected outputs, as files of one folder.
//!
//! A case is a folder:
//! - `node.json`: `{"node":{..},"options":{..}}`, as in CONFIG (formats/routing.md);
//! - `input.jsonl`: lines `{"at":ns,"input":{..}}` (as in the event log), `{"until":ns}` (advances the time) and
//!   `{"status":ns}` (the same, and writes the status to the output); lines that begin with `#` are comments;
//! - `output.jsonl`: lines `{"at":ns,"output":{..}}` and `{"at":ns,"status":{..}}`, outputs optionally with `"means"`;
//! - `README`, optional: the behaviour and its clause in one or two lines.
//!
//! A runner is one test: `conformance::check::<Aodv>(Path::new("tests/conformance"), means)`. With UPDATE=1 in the
//! environment it rewrites `output.jsonl` instead of comparing; review the diff before the commit.

use manet_engine::{Instant, Timeline};
use manet_routing::{Input, Node, Output, Protocol};
use serde::Deserialize;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A readable description of an output, in particular of the message in its bytes; `None`: no description.
pub type Means = fn(&Output) -> Option<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup<O> {
    node: Node,
    options: O,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Input { at: Instant, input: Input },
    Until { until: Instant },
    Status { status: Instant },
}

/// Plays every case under `folder` in the order of the names and compares the outputs.
///
/// # Panics
/// With the first differing line of each case that differs, or if there is no case at all.
pub fn check<P: Protocol>(folder: &Path, means: Means) {
    let cases = cases(folder);
    assert!(!cases.is_empty(), "{}: no case here", folder.display());
    let update = std::env::var_os("UPDATE").is_some_and(|v| v == "1");
    let errors = cases.iter().filter_map(|case| check_one::<P>(case, means, update).err());
    let wrong: Vec<String> = errors.map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{} of {} cases\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// A failed or unplayable case: its file (and line) and the reason.
#[derive(Debug)]
struct CaseError {
    at: String,
    problem: String,
}

impl CaseError {
    fn new(at: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self { at: at.to_string(), problem: problem.to_string() }
    }
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.problem)
    }
}
impl std::error::Error for CaseError {}

/// Plays the case in the folder `case` and returns the lines of its `output.jsonl`.
fn play<P: Protocol>(case: &Path, means: Means) -> Result<String, CaseError> {
    let (file, input) = (case.join("node.json"), case.join("input.jsonl"));
    let setup: Setup<P::Options> =
        serde_json::from_str(&read(&file)?).map_err(|e| CaseError::new(file.display(), e))?;
    let mut timeline = Timeline::new(P::new(setup.node, setup.options).map_err(|e| CaseError::new(file.display(), e))?);
    let mut lines = Vec::new();
    for (i, line) in read(&input)?.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let at_line = || format!("{}:{}", input.display(), i + 1);
        let line = serde_json::from_str(line).map_err(|e| CaseError::new(at_line(), e))?;
        let mut put = |at: Instant, output: Output| lines.push(output_line(at, &output, means));
        match line {
            Line::Input { at, .. } if at < timeline.now() => {
                return Err(CaseError::new(at_line(), "time goes back"));
            }
            Line::Input { at, input } => timeline.input(at, input, &mut put),
            Line::Until { until } => timeline.run_until(until, &mut put),
            Line::Status { status: at } => {
                timeline.run_until(at, &mut put);
                let status = timeline.machine().status(at);
                lines.push(serde_json::json!({"at": at, "status": status}).to_string());
            }
        }
    }
    Ok(lines.into_iter().map(|l| l + "\n").collect())
}

fn output_line(at: Instant, output: &Output, means: Means) -> String {
    let mut line = serde_json::json!({"at": at, "output": output});
    if let Some(text) = means(output) {
        line["means"] = text.into();
    }
    line.to_string()
}

fn check_one<P: Protocol>(case: &Path, means: Means, update: bool) -> Result<(), CaseError> {
    let is = play::<P>(case, means)?;
    let file = case.join("output.jsonl");
    if update {
        return fs::write(&file, is).map_err(|e| CaseError::new(file.display(), e));
    }
    let must = read(&file)?;
    if is == must {
        return Ok(());
    }
    let differs = is.lines().zip(must.lines()).position(|(a, b)| a != b);
    let n = differs.unwrap_or(is.lines().count().min(must.lines().count()));
    let line = |text: &str| text.lines().nth(n).unwrap_or("(nothing)").to_owned();
    let problem = format!("\n  must be {}\n  is      {}", line(&must), line(&is));
    Err(CaseError::new(format!("{}:{}", file.display(), n + 1), problem))
}

fn cases(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut cases: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.join("input.jsonl").is_file()).collect();
    cases.sort();
    cases
}

fn read(file: &Path) -> Result<String, CaseError> {
    let fail = |e| CaseError::new(file.display(), format!("{e}; UPDATE=1 writes output.jsonl"));
    fs::read_to_string(file).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_engine::{Duration, Machine};
    use manet_routing::{Carrier, OptionError, Status};

    /// Drops each packet one second after its arrival.
    #[derive(Default)]
    struct GivesUp(Vec<(Instant, manet_routing::Bytes)>, Vec<Output>);

    impl Machine for GivesUp {
        type Input = Input;
        type Output = Output;
        fn handle(&mut self, now: Instant, input: Input) {
            if let Input::Packet { bytes } = input {
                self.0.push((now + Duration::from_secs(1), bytes));
            }
        }
        fn handle_timeout(&mut self, now: Instant) {
            let (due, left) = self.0.drain(..).partition(|(at, _)| *at <= now);
            self.0 = left;
            let due: Vec<(Instant, manet_routing::Bytes)> = due;
            self.1.extend(due.into_iter().map(|(_, bytes)| Output::Unreachable { bytes }));
        }
        fn poll_output(&mut self) -> Option<Output> {
            (!self.1.is_empty()).then(|| self.1.remove(0))
        }
        fn next_timeout(&self) -> Option<Instant> {
            self.0.first().map(|(at, _)| *at)
        }
    }
    impl Protocol for GivesUp {
        const NAME: &'static str = "gives-up";
        const CARRIER: Carrier = Carrier::Udp(9);
        type Options = ();
        fn new(_: Node, (): ()) -> Result<Self, OptionError> {
            Ok(Self::default())
        }
        fn status(&self, _: Instant) -> Status {
            Status { held: self.0.len(), ..Status::default() }
        }
    }

    fn case(name: &str, output: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("manet-conformance-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("case")).unwrap();
        let node = r#"{"node":{"number":1,"address":"10.0.0.1","network":["10.0.0.0",8],"mac":"02:00:00:00:00:01",
            "seed":1,"feedback":true},"options":null}"#;
        let input = "# a packet\n{\"at\":5,\"input\":{\"packet\":{\"bytes\":\"00ff\"}}}\n{\"until\":2000000000}\n";
        for (file, text) in [("node.json", node), ("input.jsonl", input), ("output.jsonl", output)] {
            fs::write(folder.join("case").join(file), text).unwrap();
        }
        folder
    }

    const RIGHT: &str = "{\"at\":1000000005,\"output\":{\"unreachable\":{\"bytes\":\"00ff\"}}}\n";

    #[test]
    fn a_case_with_the_expected_output_passes() {
        let folder = case("right", RIGHT);
        check::<GivesUp>(&folder, |_| None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_difference_is_shown_with_both_lines() {
        let folder = case("wrong", &RIGHT.replace("00ff", "00fe"));
        let error = check_one::<GivesUp>(&folder.join("case"), |_| None, false).unwrap_err().to_string();
        assert!(error.contains("output.jsonl:1: \n") && error.contains("00fe") && error.contains("00ff"), "{error}");
        fs::write(folder.join("case/output.jsonl"), "").unwrap();
        assert!(check_one::<GivesUp>(&folder.join("case"), |_| None, false)
            .unwrap_err()
            .to_string()
            .contains("(nothing)"));
        fs::remove_dir_all(folder).unwrap();
    }
}
