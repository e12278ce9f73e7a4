//! The position of a station as a pure function of absolute model time (`formats/trace.md`).
//!
//! A [`Trajectory`] is a list of legs, each a straight line at constant speed from the position of the
//! station at the start of the leg. [`Trajectory::at`] is computed from the current leg alone, never stepped,
//! so the result does not depend on the number or times of the calls.
//! A live move inserts a leg; later legs of the trace start from the position that the station then has.
//!
//! Departs from ns-2's `setdest` traces: no `next-hop` or `god` lines, times are absolute.

use crate::config::{Loaded, MAX_COORDINATE_M, MAX_TIME_S};
use manet_engine::{Duration, Instant};
use std::collections::HashMap;
use std::fmt;

/// First line of a trace file.
pub const FORMAT: &str = "# manet-trace/1";
/// Second line of a trace file.
pub const HEADER: &str = "time_s,station,x_m,y_m,z_m,speed_mps";

/// x, y, z in m.
pub type Position = [f64; 3];

#[derive(Clone, Copy, Debug, PartialEq)]
struct Leg {
    start: Instant,
    from: Position,
    to: Position,
    /// Infinite: a jump. Zero: stands still at `from`.
    speed_mps: f64,
    /// Distance from `from` to `to`, stored because every frame needs positions.
    length_m: f64,
}

impl Leg {
    fn new(start: Instant, from: Position, to: Position, speed_mps: f64) -> Self {
        Self { start, from, to, speed_mps, length_m: distance_m(from, to) }
    }

    fn at(&self, now: Instant) -> Position {
        if self.speed_mps == 0.0 {
            return self.from;
        }
        let distance = self.length_m;
        let travelled = self.speed_mps * now.since(self.start).as_secs_f64();
        // at the instant of a jump: inf * 0 is not a number
        if self.speed_mps.is_infinite() || travelled >= distance {
            return if self.speed_mps > 0.0 { self.to } else { self.from };
        }
        let share = travelled / distance;
        std::array::from_fn(|i| self.from[i] + (self.to[i] - self.from[i]) * share)
    }

    /// Instant at which the end of the leg is reached if no leg follows.
    fn arrival(&self) -> Instant {
        if self.speed_mps.is_infinite() || self.speed_mps <= 0.0 {
            return self.start;
        }
        let ns = (self.length_m / self.speed_mps * 1e9).ceil();
        self.start + Duration::from_nanos(ns as u64)
    }
}

/// Straight-line distance in metres.
pub fn distance_m(a: Position, b: Position) -> f64 {
    ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2) + (a[2] - b[2]).powi(2)).sqrt()
}

/// The movement of a station over the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// In order of `start`; the first starts at 0, so that one is always current.
    legs: Vec<Leg>,
}

impl Trajectory {
    /// A station that stays at `position`.
    pub fn standing(position: Position) -> Self {
        Self { legs: vec![Leg::new(Instant::ZERO, position, position, 0.0)] }
    }

    /// From `now` on the station moves towards `to` (m) at `speed_mps` (infinite: it jumps; zero: it stops).
    /// Later legs stay, and start from the position that the station then has.
    pub fn move_to(&mut self, now: Instant, to: Position, speed_mps: f64) {
        debug_assert!(speed_mps >= 0.0 && to.iter().all(|v| v.is_finite()));
        let index = self.legs.partition_point(|leg| leg.start <= now);
        let from = self.at(now);
        self.legs.insert(index, Leg::new(now, from, to, speed_mps));
        for i in index + 1..self.legs.len() {
            let Leg { start, to, speed_mps, .. } = self.legs[i];
            self.legs[i] = Leg::new(start, self.legs[i - 1].at(start), to, speed_mps);
        }
    }

    /// The station stops at `at`; later legs are discarded.
    pub fn halt(&mut self, at: Instant) {
        let here = self.at(at);
        self.legs.truncate(self.legs.partition_point(|leg| leg.start <= at));
        self.legs.push(Leg::new(at, here, here, 0.0));
    }

    /// The position at `now`.
    pub fn at(&self, now: Instant) -> Position {
        self.legs[self.in_force(now)].at(now)
    }

    /// The instant from which on the position never changes; 0 if the station never moves.
    pub fn moving_until(&self) -> Instant {
        let last_real = self.legs.iter().rposition(|leg| leg.speed_mps > 0.0);
        last_real.map_or(Instant::ZERO, |i| {
            let cut = self.legs.get(i + 1).map_or(Instant::MAX, |next| next.start);
            self.legs[i].arrival().min(cut)
        })
    }

    /// The first instant from `now` on at which the position may differ from `at(now)`; `None` if it never does.
    /// During a movement that is `now` itself.
    pub fn changes_at(&self, now: Instant) -> Option<Instant> {
        let index = self.in_force(now);
        let leg = &self.legs[index];
        if leg.speed_mps.is_finite() && leg.arrival() > now {
            return Some(now);
        }
        self.legs[index + 1..].iter().find(|leg| leg.speed_mps > 0.0 && leg.from != leg.to).map(|leg| leg.start)
    }

    /// The movement from `from` to `until`, both included.
    pub fn course(&self, from: Instant, until: Instant) -> Course {
        let (first, last) = (self.in_force(from), self.in_force(until));
        let place = self.legs[first].at(from);
        let (mut reach_m, mut top_m) = (0.0_f64, place[2]);
        for (i, leg) in (first..).zip(&self.legs[first..=last]) {
            let end = self.legs.get(i + 1).map_or(until, |next| next.start.min(until));
            for end in [leg.at(leg.start.max(from)), leg.at(end)] {
                (reach_m, top_m) = (reach_m.max(distance_m(place, end)), top_m.max(end[2]));
            }
        }
        Course { place, reach_m, top_m, leg: (first == last).then(|| self.legs[first]) }
    }

    fn in_force(&self, now: Instant) -> usize {
        self.legs.partition_point(|leg| leg.start <= now) - 1
    }
}

/// The movement of a station during a period.
///
/// It is a row of straight pieces, and along a straight piece the distance from a point and the height are largest at one of
/// its ends; so `reach_m` and `top_m` come from the ends of the pieces. A jump is a piece whose two ends are its destination.
#[derive(Clone, Debug)]
pub struct Course {
    /// The position at the start of the period.
    pub place: Position,
    /// Maximum distance from there within the period, m.
    pub reach_m: f64,
    /// Maximum z within the period, m.
    pub top_m: f64,
    /// The leg of the whole period; `None`: there are several.
    leg: Option<Leg>,
}

impl Course {
    /// The position at an instant of the period: that of the trajectory.
    pub fn at(&self, now: Instant, trajectory: &Trajectory) -> Position {
        self.leg.map_or_else(|| trajectory.at(now), |leg| leg.at(now))
    }
}

/// The contents of a trace file.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// In the order of the stations given to [`Trace::parse`]; `None` for a station that the file does not name.
    pub trajectories: Vec<Option<Trajectory>>,
    /// The end of the trace (`# end_s:`), if the file states it.
    pub end: Option<Instant>,
    file: String,
    end_line: usize,
}

/// A mistake in a trace file: one line with file, line number, mistake and remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceError {
    /// Name of the file as given to [`Trace::parse`].
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// The mistake.
    pub mistake: Mistake,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.mistake)
    }
}
impl std::error::Error for TraceError {}

/// A mistake in a line of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Mistake {
    /// The first line is not [`FORMAT`].
    Format,
    /// The line before the rows is not [`HEADER`].
    Header,
    /// The file ends before the header.
    NoHeader,
    /// Wrong number of fields.
    Fields(usize),
    /// A time out of range.
    Time {
        /// Name of the column or key.
        name: &'static str,
        /// The text found.
        text: String,
    },
    /// A coordinate out of range.
    Coordinate {
        /// Name of the column.
        name: &'static str,
        /// The text found.
        text: String,
    },
    /// A speed out of range; the text found.
    Speed(String),
    /// The time is before that of the row above.
    TimeGoesBack,
    /// `medium.json` does not name this station.
    UnknownStation(String),
    /// The first row of this station is not at time 0.
    NotPlaced(String),
    /// The first row of this station has a speed.
    PlacedMoving(String),
    /// A run lasts longer than the trace.
    EndsEarly {
        /// End of the trace.
        end: Instant,
        /// Length of the run.
        run: Duration,
    },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => write!(f, "the first line must be `{FORMAT}`"),
            Self::Header => write!(f, "the header must be `{HEADER}`"),
            Self::NoHeader => write!(f, "no header; the second line must be `{HEADER}`"),
            Self::Fields(count) => write!(f, "{count} fields; a row is `{HEADER}`"),
            Self::Time { name, text } => {
                write!(f, "{name} `{text}` must be a number of seconds from 0 to {MAX_TIME_S:e}")
            }
            Self::Coordinate { name, text } => write!(
                f,
                "{name} `{text}` must be a number of metres from -{MAX_COORDINATE_M:e} to {MAX_COORDINATE_M:e}"
            ),
            Self::Speed(text) => write!(f, "speed_mps `{text}` must be `inf` or a number of m/s, 0 or more"),
            Self::TimeGoesBack => f.write_str("time goes back; sort the rows by time_s"),
            Self::UnknownStation(name) => write!(f, "unknown station `{name}`; medium.json does not name it"),
            Self::NotPlaced(name) => write!(f, "station `{name}` has no row at time 0; add one that places it"),
            Self::PlacedMoving(name) => write!(
                f,
                "the first row of `{name}` places it and cannot have a speed; give 0, and the movement in a second row"
            ),
            Self::EndsEarly { end, run } => write!(
                f,
                "the trace ends at {} s and the run lasts {} s; shorten the run or make a longer trace",
                end.as_secs_f64(),
                run.as_secs_f64()
            ),
        }
    }
}

struct Row<'a> {
    at: Instant,
    station: &'a str,
    to: Position,
    speed_mps: f64,
}

impl Trace {
    /// Parses the text of a trace for `stations`; `file` is its name in errors.
    ///
    /// # Errors
    /// The first mistake in the text.
    pub fn parse(text: &str, file: &str, stations: &[&str]) -> Result<Self, TraceError> {
        let fail = |line, mistake| TraceError { file: file.to_owned(), line, mistake };
        let index: HashMap<&str, usize> = stations.iter().enumerate().map(|(i, s)| (*s, i)).collect();
        let mut trace =
            Trace { trajectories: vec![None; stations.len()], end: None, file: file.to_owned(), end_line: 0 };
        let mut last = Instant::ZERO;
        let mut header_seen = false;
        if text.lines().next().map(str::trim_end) != Some(FORMAT) {
            return Err(fail(1, Mistake::Format));
        }
        for (i, line) in text.lines().enumerate().skip(1) {
            let (number, line) = (i + 1, line.trim());
            if let Some(comment) = line.strip_prefix('#') {
                if let Some(end) = comment.trim().strip_prefix("end_s:") {
                    trace.end = Some(parse_time("end_s", end).map_err(|e| fail(number, e))?);
                    trace.end_line = number;
                }
            } else if line.is_empty() {
            } else if !header_seen {
                if line != HEADER {
                    return Err(fail(number, Mistake::Header));
                }
                header_seen = true;
            } else {
                let row = parse_row(line).map_err(|e| fail(number, e))?;
                if row.at < last {
                    return Err(fail(number, Mistake::TimeGoesBack));
                }
                last = row.at;
                let unknown = || fail(number, Mistake::UnknownStation(row.station.to_owned()));
                let at = *index.get(row.station).ok_or_else(unknown)?;
                trace.add(at, &row).map_err(|e| fail(number, e))?;
            }
        }
        if !header_seen {
            return Err(fail(text.lines().count(), Mistake::NoHeader));
        }
        Ok(trace)
    }

    fn add(&mut self, station: usize, row: &Row) -> Result<(), Mistake> {
        match &mut self.trajectories[station] {
            Some(trajectory) => trajectory.move_to(row.at, row.to, row.speed_mps),
            None if row.at > Instant::ZERO => {
                return Err(Mistake::NotPlaced(row.station.to_owned()));
            }
            None if row.speed_mps.is_finite() && row.speed_mps > 0.0 => {
                return Err(Mistake::PlacedMoving(row.station.to_owned()));
            }
            place @ None => *place = Some(Trajectory::standing(row.to)),
        }
        Ok(())
    }

    /// Checks that the trace covers a run of `length`.
    ///
    /// # Errors
    /// [`Mistake::EndsEarly`].
    pub fn check_covers(&self, length: Duration) -> Result<(), TraceError> {
        match self.end {
            Some(end) if Instant::ZERO + length > end => {
                let mistake = Mistake::EndsEarly { end, run: length };
                Err(TraceError { file: self.file.clone(), line: self.end_line, mistake })
            }
            _ => Ok(()),
        }
    }
}

/// The text of a trace file with these trajectories by station name, live moves included. Parsing it gives the same trajectories.
pub fn write<'a>(trajectories: impl Iterator<Item = (&'a str, &'a Trajectory)>) -> String {
    let mut rows: Vec<(&str, &Leg)> =
        trajectories.flat_map(|(name, t)| t.legs.iter().map(move |leg| (name, leg))).collect();
    rows.sort_by_key(|(_, leg)| leg.start);
    let mut text = format!("{FORMAT}\n{HEADER}\n");
    for (name, Leg { start, to: [x, y, z], speed_mps, .. }) in rows {
        text += &format!("{},{name},{x},{y},{z},{speed_mps}\n", start.as_secs_f64());
    }
    text
}

/// The trajectory of each station of a configuration: that of `trace`, or a station standing at its position.
///
/// # Errors
/// [`Mistake::EndsEarly`] if the trace is shorter than the run.
pub fn of_stations(loaded: &Loaded, trace: Option<Trace>) -> Result<Vec<Trajectory>, TraceError> {
    let config = &loaded.config;
    let standing: Vec<_> = config.stations.iter().map(|s| Trajectory::standing(s.position)).collect();
    let Some(trace) = trace else { return Ok(standing) };
    if let Some(duration_s) = config.duration_s {
        trace.check_covers(Duration::from_secs_f64(config.warmup_s + duration_s))?;
    }
    let own = trace.trajectories.into_iter().zip(standing).map(|(moving, standing)| moving.unwrap_or(standing));
    let mut all: Vec<_> = own.collect();
    for (radio, node) in loaded.nodes().into_iter().enumerate() {
        if let Some(node) = node {
            all[radio] = all[node].clone();
        }
    }
    Ok(all)
}

/// JSON has no infinity: a jump's speed is `null` there.
pub mod speed_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(speed_mps: &f64, s: S) -> Result<S::Ok, S::Error> {
        speed_mps.is_finite().then_some(*speed_mps).serialize(s)
    }
    /// For `#[serde(with)]`.
    ///
    /// # Errors
    /// Neither a number nor null.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(d)?.unwrap_or(f64::INFINITY))
    }
}

fn parse_row(line: &str) -> Result<Row<'_>, Mistake> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [time, station, x, y, z, speed] = fields[..] else { return Err(Mistake::Fields(fields.len())) };
    let coordinate = |name, text: &str| match text.parse::<f64>() {
        Ok(v) if v.abs() <= MAX_COORDINATE_M => Ok(v),
        _ => Err(Mistake::Coordinate { name, text: text.to_owned() }),
    };
    let speed_mps = match speed.parse::<f64>() {
        // `1e400` and `infinity` parse as infinite too, and are mistakes
        Ok(v) if v.is_finite() && v >= 0.0 => v.abs(),
        Ok(_) if speed == "inf" => f64::INFINITY,
        _ => return Err(Mistake::Speed(speed.to_owned())),
    };
    Ok(Row {
        at: parse_time("time_s", time)?,
        station,
        to: [coordinate("x_m", x)?, coordinate("y_m", y)?, coordinate("z_m", z)?],
        speed_mps,
    })
}

fn parse_time(name: &'static str, text: &str) -> Result<Instant, Mistake> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(v) if (0.0..=MAX_TIME_S).contains(&v) => Ok(Instant::ZERO + Duration::from_secs_f64(v)),
        _ => Err(Mistake::Time { name, text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n";

    fn s(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    fn parse(rows: &str) -> Result<Trace, String> {
        Trace::parse(&format!("{HEAD}{rows}"), "t.csv", &["sta1", "sta2"]).map_err(|e| e.to_string())
    }

    fn error(rows: &str) -> String {
        parse(rows).unwrap_err()
    }

    #[test]
    fn the_golden_trace_gives_the_golden_positions() {
        let read = |name: &str| {
            let path = format!("{}/../formats/examples/{name}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).unwrap()
        };
        let stations = ["sta1", "sta2", "sta3"];
        let trace = Trace::parse(&read("trace.csv"), "trace.csv", &stations).unwrap();
        assert_eq!(trace.end, Some(s(120.0)));
        let positions = read("trace-positions.csv");
        let rows: Vec<Vec<&str>> = positions.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert!(rows.len() > 10);
        for row in rows {
            let number = |i: usize| row[i].parse::<f64>().unwrap();
            let station = stations.iter().position(|name| *name == row[1]).unwrap();
            let place = trace.trajectories[station].as_ref().unwrap().at(s(number(0)));
            assert!(distance_m(place, [number(2), number(3), number(4)]) < 1e-7, "{row:?}: {place:?}");
        }
    }

    #[test]
    fn a_station_moves_in_a_straight_line_and_stops() {
        let trace = parse("0,sta1,0,0,0,0\n0,sta2,200,0,0,0\n10,sta2,400,0,0,5\n").unwrap();
        let path = trace.trajectories[1].clone().unwrap();
        assert_eq!(path.at(s(9.9)), [200.0, 0.0, 0.0]);
        // 20 s after the start at 5 m/s = 100 m
        assert_eq!(path.at(s(30.0)), [300.0, 0.0, 0.0]);
        assert_eq!(path.at(s(50.0)), [400.0, 0.0, 0.0]);
        assert_eq!(path.at(s(1000.0)), [400.0, 0.0, 0.0]);
        assert_eq!(path.moving_until(), s(50.0));
    }

    #[test]
    fn a_second_row_before_arrival_changes_the_course() {
        let trace = parse("0,sta1,0,0,0,0\n0,sta1,100,0,0,10\n5,sta1,50,30,0,10\n").unwrap();
        let path = trace.trajectories[0].clone().unwrap();
        assert_eq!(path.at(s(5.0)), [50.0, 0.0, 0.0]);
        assert_eq!(path.at(s(6.0)), [50.0, 10.0, 0.0]);
        assert_eq!(path.moving_until(), s(8.0));
    }

    #[test]
    fn infinite_speed_is_a_jump_at_that_very_instant() {
        let trace = parse("0,sta1,0,0,0,0\n3,sta1,7,8,9,inf\n").unwrap();
        let path = trace.trajectories[0].clone().unwrap();
        assert_eq!(path.at(Instant::from_nanos(2_999_999_999)), [0.0; 3]);
        assert_eq!(path.at(s(3.0)), [7.0, 8.0, 9.0]);
        assert_eq!(path.moving_until(), s(3.0));
    }

    #[test]
    fn a_live_move_is_followed_by_the_later_rows_of_the_trace() {
        let mut path = parse("0,sta1,0,0,0,0\n10,sta1,10,0,0,1\n").unwrap().trajectories[0].clone().unwrap();
        path.move_to(s(5.0), [20.0, 0.0, 0.0], f64::INFINITY);
        assert_eq!(path.at(s(5.0)), [20.0, 0.0, 0.0]);
        assert_eq!(path.at(s(15.0)), [15.0, 0.0, 0.0]);
    }

    #[test]
    fn a_halt_stops_the_station_and_discards_later_legs() {
        let mut path =
            parse("0,sta1,0,0,0,0\n1,sta1,100,0,0,1\n10,sta1,7,7,7,inf\n").unwrap().trajectories[0].clone().unwrap();
        path.halt(s(5.0));
        assert_eq!([path.at(s(4.0))[0], path.at(s(5.0))[0], path.at(s(50.0))[0]], [3.0, 4.0, 4.0]);
        path.move_to(s(5.0), [9.0, 0.0, 0.0], f64::INFINITY);
        assert_eq!(path.at(s(5.0)), [9.0, 0.0, 0.0]);
    }

    #[test]
    fn a_written_trace_is_read_as_the_same_trajectories() {
        let mut trajectories =
            parse("0,sta1,0,0,0,0\n0,sta2,1.5,-2,0,0\n1.000000001,sta1,1e-7,100,0,0.3\n").unwrap().trajectories;
        trajectories[1].as_mut().unwrap().move_to(Instant::from_nanos(123_456_789_012), [1.0, 2.0, 3.0], f64::INFINITY);
        trajectories[0].as_mut().unwrap().halt(Instant::from_nanos(3_999_999_999_999_999));
        let text = write(["sta1", "sta2"].into_iter().zip(trajectories.iter().flatten()));
        assert_eq!(Trace::parse(&text, "t.csv", &["sta1", "sta2"]).unwrap().trajectories, trajectories, "{text}");
    }

    #[test]
    fn speed_zero_stops_the_station_where_it_is() {
        let mut path = Trajectory::standing([0.0; 3]);
        path.move_to(s(1.0), [10.0, 0.0, 0.0], 1.0);
        path.move_to(s(3.0), [99.0, 0.0, 0.0], 0.0);
        assert_eq!(path.at(s(100.0)), [2.0, 0.0, 0.0]);
        assert_eq!(path.moving_until(), s(3.0));
    }

    #[test]
    fn changes_are_predicted() {
        let mut path = Trajectory::standing([0.0; 3]);
        assert_eq!(path.changes_at(s(0.0)), None);
        path.move_to(s(4.0), [10.0, 0.0, 0.0], 5.0);
        assert_eq!(path.changes_at(s(1.0)), Some(s(4.0)));
        assert_eq!(path.changes_at(s(5.0)), Some(s(5.0)));
        assert_eq!(path.changes_at(s(6.0)), None);
    }

    #[test]
    fn errors_name_file_line_and_remedy() {
        assert!(error("0,sta9,0,0,0,0\n").starts_with("t.csv:3: unknown station `sta9`"));
        assert!(error("0,sta1,0,0,0,0\n5,sta1,1,0,0,1\n4,sta1,1,0,0,1\n").starts_with("t.csv:5: time goes back"));
        assert!(error("-1,sta1,0,0,0,0\n").starts_with("t.csv:3: time_s `-1`"));
        assert!(error("nan,sta1,0,0,0,0\n").starts_with("t.csv:3: time_s `nan`"));
        assert!(error("0,sta1,inf,0,0,0\n").starts_with("t.csv:3: x_m `inf`"));
        assert!(error("0,sta1,0,0,0,-2\n").starts_with("t.csv:3: speed_mps `-2`"));
        assert!(error("0,sta1,0,0,0,NaN\n").starts_with("t.csv:3: speed_mps `NaN`"));
        assert!(error("0,sta1,0,0,0,1e400\n").starts_with("t.csv:3: speed_mps `1e400`"));
        assert!(error("0,sta1,-2e7,0,0,0\n").starts_with("t.csv:3: x_m `-2e7`"));
        assert!(error("1,sta1,0,0,0,0\n").starts_with("t.csv:3: station `sta1` has no row at time 0"));
        assert!(error("0,sta1,0,0\n").starts_with("t.csv:3: 4 fields"));
        assert!(error("0,sta1,0,0,0,3\n").contains("places it and cannot have a speed"));
        let no_format = Trace::parse("time_s\n", "t.csv", &[]).unwrap_err().to_string();
        assert!(no_format.starts_with("t.csv:1: the first line"), "{no_format}");
        let no_header = Trace::parse("# manet-trace/1\n0,sta1,0,0,0,0\n", "t.csv", &[]).unwrap_err().to_string();
        assert!(no_header.starts_with("t.csv:2: the header"), "{no_header}");
    }

    #[test]
    fn a_run_longer_than_the_trace_is_an_error() {
        let trace = parse("# end_s: 900\n0,sta1,0,0,0,0\n").unwrap();
        assert!(trace.check_covers(Duration::from_secs(900)).is_ok());
        let e = trace.check_covers(Duration::from_secs(901)).unwrap_err().to_string();
        assert!(e.starts_with("t.csv:3: the trace ends at 900 s"), "{e}");
        assert!(parse("0,sta1,0,0,0,0\n").unwrap().check_covers(Duration::from_secs(1_000_000)).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", tail in "[-0-9.,einfastn#:\n ]{0,80}") {
            let _ = Trace::parse(&text, "t", &["sta1"]);
            let _ = parse(&tail);
        }

        #[test]
        fn the_path_is_continuous_between_jumps(
            moves in proptest::collection::vec((0u64..100, -500.0..500.0f64, -500.0..500.0f64, 0.0..50.0f64), 0..12),
            at_ms in 0u64..120_000,
        ) {
            let mut path = Trajectory::standing([0.0; 3]);
            for (t, x, y, speed) in moves {
                path.move_to(Instant::from_nanos(t * 1_000_000_000), [x, y, 0.0], speed);
            }
            let t = Instant::from_nanos(at_ms * 1_000_000);
            let step = Duration::from_millis(1);
            // 50 m/s for 1 ms is 0.05 m
            prop_assert!(distance_m(path.at(t), path.at(t + step)) <= 0.05 + 1e-9);
            let rest = path.moving_until();
            prop_assert!(distance_m(path.at(rest), path.at(rest + Duration::from_secs(1000))) < 1e-6);
        }
    }
}
