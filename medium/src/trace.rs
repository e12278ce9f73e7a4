//! Where a station is: a pure function of absolute model time (`formats/trace.md`).
//!
//! A [`Trajectory`] is a list of legs, each a straight line at constant speed from where the
//! station is when the leg begins. [`Trajectory::at`] is computed from the leg in force alone, never stepped,
//! so the answer does not depend on when or how often it is asked.
//! A live move puts a leg in; legs of the trace that begin later start from wherever the station then is.
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

pub type Position = [f64; 3];

#[derive(Clone, Copy, Debug, PartialEq)]
struct Leg {
    start: Instant,
    from: Position,
    to: Position,
    /// Infinite: a jump. Zero: stands still at `from`.
    speed_mps: f64,
    /// From `from` to `to`; positions are asked for with every frame.
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
        let gone = self.speed_mps * now.since(self.start).as_secs_f64();
        // a jump asked about at its very instant: inf * 0 is not a number
        if self.speed_mps.is_infinite() || gone >= distance {
            return if self.speed_mps > 0.0 { self.to } else { self.from };
        }
        let share = gone / distance;
        std::array::from_fn(|i| self.from[i] + (self.to[i] - self.from[i]) * share)
    }

    /// When the leg's end is reached, if nothing follows.
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

/// A station's way through space, over the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// In order of `start`; the first starts at 0, so there always is one in force.
    legs: Vec<Leg>,
}

impl Trajectory {
    /// A station that stays at `position`.
    pub fn standing(position: Position) -> Self {
        Self { legs: vec![Leg::new(Instant::ZERO, position, position, 0.0)] }
    }

    /// From `now` on the station moves towards `to` at `speed_mps` (infinite: it jumps; zero: it stops).
    /// Legs that begin later stay, and begin from where the station then is.
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

    /// At `at` the station stops where it then is, and the legs that were to begin later are forgotten.
    pub fn halt(&mut self, at: Instant) {
        let here = self.at(at);
        self.legs.truncate(self.legs.partition_point(|leg| leg.start <= at));
        self.legs.push(Leg::new(at, here, here, 0.0));
    }

    /// Where the station is at `now`.
    pub fn at(&self, now: Instant) -> Position {
        self.legs[self.in_force(now)].at(now)
    }

    /// When the station comes to rest for good: from this instant on `at` never changes. 0 if it never moves.
    pub fn moving_until(&self) -> Instant {
        let last_real = self.legs.iter().rposition(|leg| leg.speed_mps > 0.0);
        last_real.map_or(Instant::ZERO, |i| {
            let cut = self.legs.get(i + 1).map_or(Instant::MAX, |next| next.start);
            self.legs[i].arrival().min(cut)
        })
    }

    /// The first instant from `now` on at which the position may differ from `at(now)`; `None` if it never does.
    /// While under way that is `now` itself.
    pub fn changes_at(&self, now: Instant) -> Option<Instant> {
        let index = self.in_force(now);
        let leg = &self.legs[index];
        if leg.speed_mps.is_finite() && leg.arrival() > now {
            return Some(now);
        }
        self.legs[index + 1..].iter().find(|leg| leg.speed_mps > 0.0 && leg.from != leg.to).map(|leg| leg.start)
    }

    fn in_force(&self, now: Instant) -> usize {
        self.legs.partition_point(|leg| leg.start <= now) - 1
    }
}

/// The contents of a trace file.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// In the order of the stations given to [`Trace::parse`]; `None` for a station the file does not name.
    pub trajectories: Vec<Option<Trajectory>>,
    /// The length that the trace was made for (`# end_s:`), if it is given.
    pub end: Option<Instant>,
    file: String,
    end_line: usize,
}

/// What is wrong, where, and what to do: one line.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceError {
    /// As it was given to [`Trace::parse`].
    pub file: String,
    /// From 1.
    pub line: usize,
    pub mistake: Mistake,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.mistake)
    }
}
impl std::error::Error for TraceError {}

/// What a line of a trace has wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Mistake {
    /// The first line is another.
    Format,
    /// The line before the rows is another.
    Header,
    /// No line is left for the header.
    NoHeader,
    /// So many fields.
    Fields(usize),
    /// The time `name`, and what stands there.
    Time {
        name: &'static str,
        text: String,
    },
    Coordinate {
        name: &'static str,
        text: String,
    },
    Speed(String),
    TimeGoesBack,
    UnknownStation(String),
    /// The first row of a station is not at time 0.
    NotPlaced(String),
    /// The first row of a station has a speed.
    PlacedMoving(String),
    /// A run lasts longer than the trace.
    EndsEarly {
        end: Instant,
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
    /// Reads a trace for `stations`; `file` is only for naming it in errors.
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

    /// An error if a run of `length` is longer than what the trace was made for.
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

/// The text of a trace file in which the stations go these ways, live moves among them. Reading it gives the same ways.
pub fn write<'a>(ways: impl Iterator<Item = (&'a str, &'a Trajectory)>) -> String {
    let mut rows: Vec<(&str, &Leg)> =
        ways.flat_map(|(name, way)| way.legs.iter().map(move |leg| (name, leg))).collect();
    rows.sort_by_key(|(_, leg)| leg.start);
    let mut text = format!("{FORMAT}\n{HEADER}\n");
    for (name, Leg { start, to: [x, y, z], speed_mps, .. }) in rows {
        text += &format!("{},{name},{x},{y},{z},{speed_mps}\n", start.as_secs_f64());
    }
    text
}

/// Where each station of a configuration is over time: as `trace` says, or standing at its position. An error if the
/// trace is shorter than the run.
pub fn of_stations(loaded: &Loaded, trace: Option<Trace>) -> Result<Vec<Trajectory>, TraceError> {
    let config = &loaded.config;
    let standing = config.stations.iter().map(|s| Trajectory::standing(s.position));
    let Some(trace) = trace else { return Ok(standing.collect()) };
    if let Some(duration_s) = config.duration_s {
        trace.check_covers(Duration::from_secs_f64(config.warmup_s + duration_s))?;
    }
    Ok(trace.trajectories.into_iter().zip(standing).map(|(moving, standing)| moving.unwrap_or(standing)).collect())
}

/// JSON has no infinity: a jump's speed is `null` there.
pub mod speed_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(speed_mps: &f64, s: S) -> Result<S::Ok, S::Error> {
        speed_mps.is_finite().then_some(*speed_mps).serialize(s)
    }
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
        let way = trace.trajectories[1].clone().unwrap();
        assert_eq!(way.at(s(9.9)), [200.0, 0.0, 0.0]);
        // 20 s after the start at 5 m/s = 100 m
        assert_eq!(way.at(s(30.0)), [300.0, 0.0, 0.0]);
        assert_eq!(way.at(s(50.0)), [400.0, 0.0, 0.0]);
        assert_eq!(way.at(s(1000.0)), [400.0, 0.0, 0.0]);
        assert_eq!(way.moving_until(), s(50.0));
    }

    #[test]
    fn a_second_row_before_arrival_changes_course_on_the_way() {
        let trace = parse("0,sta1,0,0,0,0\n0,sta1,100,0,0,10\n5,sta1,50,30,0,10\n").unwrap();
        let way = trace.trajectories[0].clone().unwrap();
        assert_eq!(way.at(s(5.0)), [50.0, 0.0, 0.0]);
        assert_eq!(way.at(s(6.0)), [50.0, 10.0, 0.0]);
        assert_eq!(way.moving_until(), s(8.0));
    }

    #[test]
    fn infinite_speed_is_a_jump_at_that_very_instant() {
        let trace = parse("0,sta1,0,0,0,0\n3,sta1,7,8,9,inf\n").unwrap();
        let way = trace.trajectories[0].clone().unwrap();
        assert_eq!(way.at(Instant::from_nanos(2_999_999_999)), [0.0; 3]);
        assert_eq!(way.at(s(3.0)), [7.0, 8.0, 9.0]);
        assert_eq!(way.moving_until(), s(3.0));
    }

    #[test]
    fn a_live_move_is_followed_by_the_later_rows_of_the_trace() {
        let mut way = parse("0,sta1,0,0,0,0\n10,sta1,10,0,0,1\n").unwrap().trajectories[0].clone().unwrap();
        way.move_to(s(5.0), [20.0, 0.0, 0.0], f64::INFINITY);
        assert_eq!(way.at(s(5.0)), [20.0, 0.0, 0.0]);
        assert_eq!(way.at(s(15.0)), [15.0, 0.0, 0.0]);
    }

    #[test]
    fn a_halt_stops_the_station_where_it_is_and_forgets_what_was_to_come() {
        let mut way =
            parse("0,sta1,0,0,0,0\n1,sta1,100,0,0,1\n10,sta1,7,7,7,inf\n").unwrap().trajectories[0].clone().unwrap();
        way.halt(s(5.0));
        assert_eq!([way.at(s(4.0))[0], way.at(s(5.0))[0], way.at(s(50.0))[0]], [3.0, 4.0, 4.0]);
        way.move_to(s(5.0), [9.0, 0.0, 0.0], f64::INFINITY);
        assert_eq!(way.at(s(5.0)), [9.0, 0.0, 0.0]);
    }

    #[test]
    fn what_is_written_is_read_as_the_same_ways() {
        let mut ways =
            parse("0,sta1,0,0,0,0\n0,sta2,1.5,-2,0,0\n1.000000001,sta1,1e-7,100,0,0.3\n").unwrap().trajectories;
        ways[1].as_mut().unwrap().move_to(Instant::from_nanos(123_456_789_012), [1.0, 2.0, 3.0], f64::INFINITY);
        ways[0].as_mut().unwrap().halt(Instant::from_nanos(3_999_999_999_999_999));
        let text = write(["sta1", "sta2"].into_iter().zip(ways.iter().flatten()));
        assert_eq!(Trace::parse(&text, "t.csv", &["sta1", "sta2"]).unwrap().trajectories, ways, "{text}");
    }

    #[test]
    fn speed_zero_stops_the_station_where_it_is() {
        let mut way = Trajectory::standing([0.0; 3]);
        way.move_to(s(1.0), [10.0, 0.0, 0.0], 1.0);
        way.move_to(s(3.0), [99.0, 0.0, 0.0], 0.0);
        assert_eq!(way.at(s(100.0)), [2.0, 0.0, 0.0]);
        assert_eq!(way.moving_until(), s(3.0));
    }

    #[test]
    fn changes_are_foretold() {
        let mut way = Trajectory::standing([0.0; 3]);
        assert_eq!(way.changes_at(s(0.0)), None);
        way.move_to(s(4.0), [10.0, 0.0, 0.0], 5.0);
        assert_eq!(way.changes_at(s(1.0)), Some(s(4.0)));
        assert_eq!(way.changes_at(s(5.0)), Some(s(5.0)));
        assert_eq!(way.changes_at(s(6.0)), None);
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
        fn the_way_is_continuous_between_jumps(
            moves in proptest::collection::vec((0u64..100, -500.0..500.0f64, -500.0..500.0f64, 0.0..50.0f64), 0..12),
            at_ms in 0u64..120_000,
        ) {
            let mut way = Trajectory::standing([0.0; 3]);
            for (t, x, y, speed) in moves {
                way.move_to(Instant::from_nanos(t * 1_000_000_000), [x, y, 0.0], speed);
            }
            let t = Instant::from_nanos(at_ms * 1_000_000);
            let step = Duration::from_millis(1);
            // 50 m/s for 1 ms is 0.05 m
            prop_assert!(distance_m(way.at(t), way.at(t + step)) <= 0.05 + 1e-9);
            let rest = way.moving_until();
            prop_assert!(distance_m(way.at(rest), way.at(rest + Duration::from_secs(1000))) < 1e-6);
        }
    }
}
