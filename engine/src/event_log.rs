//! The inputs of a run as JSON lines, and the replay of them.
//!
//! A line is `{"at":<model ns>,"input":...}`. Deadlines are not in it: they follow from the inputs, so a
//! log of a run in real time, replayed in virtual time, gives the same outputs at the same instants.

use crate::virtual_time::{Outside, Timeline};
use crate::{Instant, Machine};
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead, Write};

/// Prefix of the last line of a log that was closed before the end of the run; the reason follows.
pub const CLOSED: &str = "# closed: ";

/// One line of the log.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry<I> {
    /// Model time of the input, ns.
    pub at: Instant,
    /// The input as the machine received it.
    pub input: I,
}

/// The reason why a log cannot be replayed.
#[derive(Debug)]
pub enum ReplayError {
    /// The log cannot be read.
    Read(io::Error),
    /// A line (number from 1) that is not an entry, goes back in time or closes the log early, and the reason.
    Line(usize, String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Read(e) => write!(f, "event log: {e}"),
            ReplayError::Line(n, what) => write!(f, "event log, line {n}: {what}"),
        }
    }
}
impl std::error::Error for ReplayError {}

/// Appends one line to `to`.
///
/// # Errors
/// The error of the writer, or of an input that does not serialise.
pub fn write<I: Serialize>(to: &mut impl Write, at: Instant, input: &I) -> io::Result<()> {
    serde_json::to_writer(&mut *to, &Entry { at, input })?;
    to.write_all(b"\n")
}

/// A machine that writes each of its inputs to a log and passes it on to the machine inside.
pub struct Logged<M, W> {
    /// The machine that does the work.
    pub machine: M,
    /// `None`: no log.
    log: Option<W>,
    error: Option<io::Error>,
}

impl<M, W: Write> Logged<M, W> {
    /// `log`: the destination of the lines; `None` writes no log.
    pub fn new(machine: M, log: Option<W>) -> Self {
        Self { machine, log, error: None }
    }

    /// Flushes the log.
    ///
    /// # Errors
    /// The first error of the writer; the log ends there.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.log.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl<M: Machine<Input: Serialize>, W: Write> Machine for Logged<M, W> {
    type Input = M::Input;
    type Output = M::Output;

    fn handle(&mut self, now: Instant, input: M::Input) {
        if let Some(log) = self.log.as_mut().filter(|_| self.error.is_none()) {
            self.error = write(log, now, &input).err();
        }
        self.machine.handle(now, input);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }
    fn poll_output(&mut self) -> Option<M::Output> {
        self.machine.poll_output()
    }
    fn next_timeout(&self) -> Option<Instant> {
        self.machine.next_timeout()
    }
    fn next_visible(&self) -> Option<Instant> {
        self.machine.next_visible()
    }
}

/// Feeds a log into `timeline`, up to the instant of the last input; the caller runs it on from there.
///
/// # Errors
/// A line that cannot be read, is no entry, goes back in time, or begins with [`CLOSED`].
pub fn replay<M>(
    log: impl BufRead,
    timeline: &mut Timeline<M>,
    outside: &mut impl Outside<M>,
) -> Result<(), ReplayError>
where
    M: Machine,
    M::Input: DeserializeOwned,
{
    for (i, line) in log.lines().enumerate() {
        let line = line.map_err(ReplayError::Read)?;
        if let Some(why) = line.strip_prefix(CLOSED) {
            return Err(ReplayError::Line(i + 1, format!("the log was closed before the end: {why}")));
        }
        let entry: Entry<M::Input> =
            serde_json::from_str(&line).map_err(|e| ReplayError::Line(i + 1, e.to_string()))?;
        if entry.at < timeline.now() {
            return Err(ReplayError::Line(i + 1, "time goes back".to_owned()));
        }
        timeline.input(entry.at, entry.input, outside);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_time::tests::{Echo, Say};
    use crate::Duration;

    fn run(line: &mut Timeline<Echo>, log: &[u8]) -> Result<Vec<(Instant, u64)>, String> {
        let mut heard = Vec::new();
        replay(log, line, &mut |t, o| heard.push((t, o))).map_err(|e| e.to_string())?;
        line.run_until(Instant::from_nanos(1000), &mut |t, o| heard.push((t, o)));
        Ok(heard)
    }

    #[test]
    fn a_replay_repeats_the_run() {
        let (mut log, mut heard) = (Vec::new(), Vec::new());
        let mut line = Timeline::new(Logged::new(Echo::default(), Some(&mut log)));
        let mut at = Instant::ZERO;
        for n in [30, 4, 17, 4] {
            at += Duration::from_nanos(3);
            line.input(at, Say(n), &mut |t, o| heard.push((t, o)));
        }
        line.run_until(Instant::from_nanos(1000), &mut |t, o| heard.push((t, o)));
        assert_eq!(heard.len(), 4);
        line.machine_mut().finish().unwrap();
        assert_eq!(run(&mut Timeline::new(Echo::default()), &log).unwrap(), heard);
    }

    #[test]
    fn a_log_that_cannot_be_written_stops_nothing_and_is_reported() {
        let mut full: [u8; 40] = [0; 40];
        let mut line = Timeline::new(Logged::new(Echo::default(), Some(&mut full[..])));
        let mut heard = 0;
        for n in 1..9 {
            line.input(Instant::ZERO, Say(n), &mut |_, _| ());
        }
        line.run_until(Instant::from_nanos(1000), &mut |_, _| heard += 1);
        assert_eq!(heard, 8);
        assert!(line.machine_mut().finish().is_err());
    }

    #[test]
    fn a_bad_line_is_named() {
        let mut line = Timeline::new(Echo::default());
        let e = run(&mut line, b"{\"at\":5,\"input\":1}\n{\"at\":6}\n").unwrap_err();
        assert!(e.starts_with("event log, line 2: missing field"), "{e}");
        let e = run(&mut line, b"{\"at\":2,\"input\":1}\n").unwrap_err();
        assert_eq!(e, "event log, line 1: time goes back");
        let e = run(&mut Timeline::new(Echo::default()), b"{\"at\":5,\"input\":1}\n# closed: full\n").unwrap_err();
        assert_eq!(e, "event log, line 2: the log was closed before the end: full");
    }
}
