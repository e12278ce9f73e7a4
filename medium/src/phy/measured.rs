//! Measured links: power, loss or delivery rate of each directed link over time, read from a table (`formats/links.md`).
//!
//! A value is a pure function of link and time: interpolated linearly between two rows of a link (powers and losses in dB), and that
//! of the first or last row before and after them. Two rows of one time are a step. A row without a value ends the link until its
//! next row. A link without rows does not exist.
//!
//! A power counts for the radio's own power and antennas: a station with others is received by as much more or less. A delivery rate
//! says nothing of power: such links have one that all modes are decoded at, and each frame is lost by a draw.

use super::propagation::radiated_w;
use super::Radio;
use manet_engine::{Duration, Instant};
use std::collections::HashMap;
use std::fmt;

/// First line of a file.
pub const FORMAT: &str = "# manet-links/1";
/// Ratio of the power of a link with a delivery rate to the reception threshold: 30 dB, above what any mode needs.
const CLEAR: f64 = 1000.0;
/// Maximum of a rate, bit/s: that of 802.11be.
const MAX_RATE_BPS: u64 = 50_000_000_000;
/// Limits of the values by column.
const COLUMNS: [(&str, Kind, (f64, f64)); 3] = [
    ("rssi_dbm", Kind::Power, (-300.0, 100.0)),
    ("loss_db", Kind::Loss, (0.0, 300.0)),
    ("delivery", Kind::Delivery, (0.0, 1.0)),
];

/// What a file has of each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Power,
    Loss,
    Delivery,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    at: Instant,
    /// Gain in dB, or delivery rate; `None`: no link from then on.
    value: Option<f64>,
}

/// The points of one link in order of time; of a delivery rate for frames of one rate, or of all others.
#[derive(Clone, Debug, PartialEq)]
struct Series {
    rate_bps: Option<u64>,
    points: Vec<Point>,
}

impl Series {
    fn at(&self, now: Instant) -> Option<f64> {
        let next = self.points.partition_point(|point| point.at <= now);
        let Some(last) = next.checked_sub(1) else { return self.points.first().and_then(|point| point.value) };
        let (last, next) = (self.points[last], self.points.get(next));
        match (last.value, next.and_then(|next| Some((next.at, next.value?)))) {
            (Some(from), Some((end, to))) => {
                let share = now.since(last.at).as_secs_f64() / end.since(last.at).as_secs_f64();
                Some(from + (to - from) * share)
            }
            (value, _) => value,
        }
    }
}

/// The links to one station.
#[derive(Clone, Debug, PartialEq)]
struct Peer {
    to: u16,
    /// Without a rate first, then in order of the rates.
    series: Vec<Series>,
}

/// The links of all stations over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    kind: Kind,
    /// Of each sender, in order of the receivers.
    peers: Vec<Vec<Peer>>,
    /// Gain of a link with a delivery rate.
    clear: f64,
}

/// A mistake in a file of links: one line with file, line number, mistake and remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct LinksError {
    /// Name of the file as given to [`Measured::parse`].
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// The mistake.
    pub mistake: Mistake,
}

impl fmt::Display for LinksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.mistake)
    }
}
impl std::error::Error for LinksError {}

/// A mistake in a line of a file of links.
#[derive(Clone, Debug, PartialEq)]
pub enum Mistake {
    /// The first line is not [`FORMAT`].
    Format,
    /// The line before the rows is no header.
    Header,
    /// Wrong number of fields, and the right one.
    Fields(usize, usize),
    /// A time out of range; the text found and the largest time, s.
    Time(String, f64),
    /// A value out of the range of its column.
    Value {
        /// Name of the column.
        column: &'static str,
        /// The text found.
        text: String,
        /// Smallest and largest value.
        limits: (f64, f64),
    },
    /// A rate out of range; the text found.
    Rate(String),
    /// The time is before that of the row above.
    TimeGoesBack,
    /// `medium.json` does not name this station.
    UnknownStation(String),
    /// A link from a station to itself.
    ToItself(String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => write!(f, "the first line must be `{FORMAT}`"),
            Self::Header => f.write_str(
                "the header must be `time_s,from,to,` and rssi_dbm, loss_db, delivery, or `rate_bps,delivery`",
            ),
            Self::Fields(found, wanted) => write!(f, "{found} fields; a row has {wanted}, as the header"),
            Self::Time(text, max_s) => write!(f, "time_s `{text}` must be a number of seconds from 0 to {max_s:e}"),
            Self::Value { column, text, limits: (min, max) } => {
                write!(f, "{column} `{text}` must be a number from {min} to {max}, or empty")
            }
            Self::Rate(text) => {
                write!(
                    f,
                    "rate_bps `{text}` must be a whole number of bit/s up to {MAX_RATE_BPS}, or empty: any other rate"
                )
            }
            Self::TimeGoesBack => f.write_str("time goes back; sort the rows by time_s"),
            Self::UnknownStation(name) => write!(f, "unknown station `{name}`; medium.json does not name it"),
            Self::ToItself(name) => write!(f, "a link from `{name}` to itself; remove the row"),
        }
    }
}

/// The columns of a file.
struct Header {
    column: &'static str,
    kind: Kind,
    limits: (f64, f64),
    has_rate: bool,
}

impl Header {
    fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("time_s,from,to,")?;
        let (has_rate, name) = rest.strip_prefix("rate_bps,").map_or((false, rest), |name| (true, name));
        let &(column, kind, limits) = COLUMNS.iter().find(|(column, ..)| *column == name)?;
        (!has_rate || kind == Kind::Delivery).then_some(Self { column, kind, limits, has_rate })
    }
}

struct Row<'a> {
    at: Instant,
    from: &'a str,
    to: &'a str,
    rate_bps: Option<u64>,
    value: Option<f64>,
}

impl Measured {
    /// No links at all.
    pub fn none(stations: usize) -> Self {
        Self { kind: Kind::Loss, peers: vec![Vec::new(); stations], clear: 0.0 }
    }

    /// Parses the text of a file for `stations`; `file` is its name in errors, `max_time_s` the largest time in it.
    ///
    /// # Errors
    /// The first mistake in the text.
    pub fn parse(
        text: &str,
        file: &str,
        stations: &[&str],
        radio: &Radio,
        max_time_s: f64,
    ) -> Result<Self, LinksError> {
        let fail = |line, mistake| LinksError { file: file.to_owned(), line, mistake };
        let numbers: HashMap<&str, u16> = (0..).zip(stations).map(|(number, name)| (*name, number)).collect();
        if text.lines().next().map(str::trim_end) != Some(FORMAT) {
            return Err(fail(1, Mistake::Format));
        }
        let lines = (2..).zip(text.lines().skip(1).map(str::trim));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (number, line) = lines.next().unwrap_or((text.lines().count(), ""));
        let header = Header::parse(line).ok_or_else(|| fail(number, Mistake::Header))?;
        // of a power, the gain from what the radio itself radiates
        let radiated_db = 10.0 * radiated_w(radio).log10();
        let clear = CLEAR * radio.receive_threshold_w / radiated_w(radio);
        let mut found: HashMap<(u16, u16), Vec<Series>> = HashMap::new();
        let mut last = Instant::ZERO;
        for (number, line) in lines {
            let row = parse_row(line, &header, max_time_s).map_err(|mistake| fail(number, mistake))?;
            if row.at < last {
                return Err(fail(number, Mistake::TimeGoesBack));
            }
            last = row.at;
            let unknown = |name: &str| fail(number, Mistake::UnknownStation(name.to_owned()));
            let from = *numbers.get(row.from).ok_or_else(|| unknown(row.from))?;
            let to = *numbers.get(row.to).ok_or_else(|| unknown(row.to))?;
            if from == to {
                return Err(fail(number, Mistake::ToItself(row.from.to_owned())));
            }
            let value = row.value.map(|value| match header.kind {
                Kind::Power => value - 30.0 - radiated_db,
                Kind::Loss => -value,
                Kind::Delivery => value,
            });
            let series = found.entry((from, to)).or_default();
            let point = Point { at: row.at, value };
            match series.binary_search_by_key(&row.rate_bps, |one| one.rate_bps) {
                Ok(known) => series[known].points.push(point),
                Err(place) => series.insert(place, Series { rate_bps: row.rate_bps, points: vec![point] }),
            }
        }
        let mut peers = vec![Vec::new(); stations.len()];
        for ((from, to), series) in found {
            peers[usize::from(from)].push(Peer { to, series });
        }
        peers.iter_mut().for_each(|of_one: &mut Vec<Peer>| of_one.sort_by_key(|peer| peer.to));
        Ok(Self { kind: header.kind, peers, clear })
    }

    /// The stations to which `from` has a link at any time, in order of their numbers.
    pub fn receivers(&self, from: u16) -> impl Iterator<Item = u16> + '_ {
        self.peers[usize::from(from)].iter().map(|peer| peer.to)
    }

    /// The factor on the power of a frame from `from` at `to`; 0 without a link.
    pub fn gain(&self, from: u16, to: u16, now: Instant) -> f64 {
        let Some(series) = self.of(from, to) else { return 0.0 };
        match self.kind {
            Kind::Delivery if series.iter().any(|one| one.at(now).is_some()) => self.clear,
            Kind::Delivery => 0.0,
            _ => series[0].at(now).map_or(0.0, |gain_db| 10f64.powf(gain_db / 10.0)),
        }
    }

    /// The probability that a frame of this rate, which was sensed, is delivered: 1 unless the file has delivery rates.
    ///
    /// A rate without rows has those of the rows without a rate, else of the nearest rate above it, which is delivered less often, else of the highest.
    pub fn delivery(&self, from: u16, to: u16, rate_bps: u64, now: Instant) -> f64 {
        if self.kind != Kind::Delivery {
            return 1.0;
        }
        let series = self.of(from, to).unwrap_or_default();
        let own = series.iter().find(|one| one.rate_bps == Some(rate_bps));
        let any = || series.iter().find(|one| one.rate_bps.is_none());
        let above = || series.iter().find(|one| one.rate_bps > Some(rate_bps));
        own.or_else(any).or_else(above).or(series.last()).and_then(|one| one.at(now)).unwrap_or(0.0)
    }

    /// None for two stations without a link; not empty.
    fn of(&self, from: u16, to: u16) -> Option<&[Series]> {
        let peers = &self.peers[usize::from(from)];
        peers.binary_search_by_key(&to, |peer| peer.to).ok().map(|place| &peers[place].series[..])
    }
}

fn parse_row<'a>(line: &'a str, header: &Header, max_time_s: f64) -> Result<Row<'a>, Mistake> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let (time, from, to, rate, value) = match (&fields[..], header.has_rate) {
        ([time, from, to, rate, value], true) => (*time, *from, *to, *rate, *value),
        ([time, from, to, value], false) => (*time, *from, *to, "", *value),
        _ => return Err(Mistake::Fields(fields.len(), if header.has_rate { 5 } else { 4 })),
    };
    let at = match time.parse::<f64>() {
        Ok(time_s) if (0.0..=max_time_s).contains(&time_s) => Instant::ZERO + Duration::from_secs_f64(time_s),
        _ => return Err(Mistake::Time(time.to_owned(), max_time_s)),
    };
    let rate_bps = match rate.parse::<u64>() {
        Ok(rate_bps) if (1..=MAX_RATE_BPS).contains(&rate_bps) => Some(rate_bps),
        _ if rate.is_empty() => None,
        _ => return Err(Mistake::Rate(rate.to_owned())),
    };
    let Header { column, limits: (min, max), .. } = *header;
    let value = match value.parse::<f64>() {
        Ok(number) if (min..=max).contains(&number) => Some(number),
        _ if value.is_empty() => None,
        _ => return Err(Mistake::Value { column, text: value.to_owned(), limits: (min, max) }),
    };
    Ok(Row { at, from, to, rate_bps, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::radio::tests::profile;
    use proptest::prelude::*;

    const MAX_S: f64 = 4e6;

    fn parse(header: &str, rows: &str) -> Result<Measured, String> {
        let text = format!("{FORMAT}\n{header}\n{rows}");
        Measured::parse(&text, "l.csv", &["sta1", "sta2", "sta3"], &profile("ns2-dsss-2m"), MAX_S)
            .map_err(|e| e.to_string())
    }

    fn s(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_loss_is_interpolated_in_db_and_held_at_both_ends() {
        let links = parse("time_s,from,to,loss_db", "10,sta1,sta2,60\n20,sta1,sta2,80\n").unwrap();
        let loss_db = |at_s| -10.0 * links.gain(0, 1, s(at_s)).log10();
        for (at_s, expected) in [(0.0, 60.0), (10.0, 60.0), (12.5, 65.0), (15.0, 70.0), (20.0, 80.0), (1e6, 80.0)] {
            assert!((loss_db(at_s) - expected).abs() < 1e-9, "{at_s} s: {}", loss_db(at_s));
        }
        assert_eq!((links.gain(1, 0, s(0.0)), links.gain(0, 2, s(0.0))), (0.0, 0.0), "no other link, and no way back");
        assert_eq!(links.receivers(0).collect::<Vec<_>>(), [1]);
        assert_eq!(links.delivery(0, 1, 2_000_000, s(0.0)), 1.0);
    }

    #[test]
    fn two_rows_of_one_time_are_a_step_and_a_row_without_a_value_ends_the_link() {
        let rows = "0,sta1,sta2,60\n10,sta1,sta2,60\n10,sta1,sta2,90\n20,sta1,sta2,\n30,sta1,sta2,70\n";
        let links = parse("time_s,from,to,loss_db", rows).unwrap();
        let loss_db = |at_s| -10.0 * links.gain(0, 1, s(at_s)).log10();
        assert!((loss_db(9.999_999) - 60.0).abs() < 1e-9);
        assert!((loss_db(10.0) - 90.0).abs() < 1e-9 && (loss_db(19.9) - 90.0).abs() < 1e-9, "held until the link ends");
        assert_eq!((links.gain(0, 1, s(20.0)), links.gain(0, 1, s(29.9))), (0.0, 0.0));
        assert!((loss_db(30.0) - 70.0).abs() < 1e-9);
    }

    #[test]
    fn an_rssi_is_the_power_of_the_radios_own_frames() {
        let radio = profile("ns2-dsss-2m");
        let links = parse("time_s,from,to,rssi_dbm", "0,sta2,sta1,-64.5\n").unwrap();
        let power_w = radiated_w(&radio) * links.gain(1, 0, s(5.0));
        assert!((10.0 * (power_w * 1e3).log10() + 64.5).abs() < 1e-9);
    }

    #[test]
    fn a_delivery_rate_is_interpolated_and_looked_up_by_the_rate_of_the_frame() {
        let rows = "0,sta1,sta2,1000000,1\n0,sta1,sta2,11000000,0.2\n0,sta1,sta3,,0.5\n0,sta1,sta3,2000000,0.9\n\
                    10,sta1,sta2,1000000,0\n";
        let links = parse("time_s,from,to,rate_bps,delivery", rows).unwrap();
        assert_eq!(links.delivery(0, 1, 1_000_000, s(2.5)), 0.75);
        assert_eq!(links.delivery(0, 1, 2_000_000, s(2.5)), 0.2, "no rows: those of the nearest rate above");
        assert_eq!(links.delivery(0, 1, 54_000_000, s(2.5)), 0.2, "none above: those of the highest");
        assert_eq!(links.delivery(0, 2, 2_000_000, s(0.0)), 0.9);
        assert_eq!(links.delivery(0, 2, 5_500_000, s(0.0)), 0.5, "the rows without a rate");
        assert_eq!(links.delivery(2, 0, 2_000_000, s(0.0)), 0.0);
        let radio = profile("ns2-dsss-2m");
        let power_w = radiated_w(&radio) * links.gain(0, 1, s(10.0));
        assert!((power_w / radio.receive_threshold_w - 1000.0).abs() < 1e-6, "sensed, even if nothing is delivered");
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let refused = |header, rows| parse(header, rows).unwrap_err();
        let loss = "time_s,from,to,loss_db";
        let expected = [
            (
                refused("time_s,from,to", ""),
                "l.csv:2: the header must be `time_s,from,to,` and rssi_dbm, loss_db, delivery, or `rate_bps,delivery`",
            ),
            (
                refused("time_s,from,to,rate_bps,loss_db", ""),
                "l.csv:2: the header must be `time_s,from,to,` and rssi_dbm, loss_db, delivery, or `rate_bps,delivery`",
            ),
            (refused(loss, "0,sta1,sta2"), "l.csv:3: 3 fields; a row has 4, as the header"),
            (refused(loss, "-1,sta1,sta2,60"), "l.csv:3: time_s `-1` must be a number of seconds from 0 to 4e6"),
            (refused(loss, "0,sta1,sta2,301"), "l.csv:3: loss_db `301` must be a number from 0 to 300, or empty"),
            (refused(loss, "0,sta1,sta2,nan"), "l.csv:3: loss_db `nan` must be a number from 0 to 300, or empty"),
            (
                refused(loss, "1,sta1,sta2,60\n\n# later\n0,sta1,sta2,60"),
                "l.csv:6: time goes back; sort the rows by time_s",
            ),
            (refused(loss, "0,sta1,sta9,60"), "l.csv:3: unknown station `sta9`; medium.json does not name it"),
            (refused(loss, "0,sta1,sta1,60"), "l.csv:3: a link from `sta1` to itself; remove the row"),
            (
                refused("time_s,from,to,rate_bps,delivery", "0,sta1,sta2,0,1"),
                "l.csv:3: rate_bps `0` must be a whole number of bit/s up to 50000000000, or empty: any other rate",
            ),
        ];
        for (found, wanted) in expected {
            assert_eq!(found, wanted);
        }
        let first = Measured::parse("time_s,from,to,loss_db\n", "l.csv", &[], &profile("ns2-dsss-2m"), MAX_S);
        assert_eq!(first.unwrap_err().to_string(), "l.csv:1: the first line must be `# manet-links/1`");
        assert_eq!(parse("", "").unwrap_err().split(':').take(2).collect::<Vec<_>>(), ["l.csv", "2"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "(# manet-links/1\n)?[a-z0-9_,.#\n -]{0,200}") {
            if let Err(error) = Measured::parse(&text, "l.csv", &["sta1", "sta2"], &profile("ns2-dsss-2m"), MAX_S) {
                prop_assert!(error.to_string().starts_with("l.csv:") && !error.to_string().contains('\n'));
            }
        }

        /// Between two rows a value is between theirs, and at a row it is the last one of its time.
        #[test]
        fn a_value_is_between_those_of_its_neighbours(rows in prop::collection::vec((0..50u32, prop::option::of(0.0..=1.0f64)), 1..20)) {
            let mut rows = rows;
            rows.sort_by_key(|row| row.0);
            let line = |(at, value): &(u32, Option<f64>)| format!("{at},sta1,sta2,{}\n", value.map_or(String::new(), |v| v.to_string()));
            let links = parse("time_s,from,to,delivery", &rows.iter().map(line).collect::<String>()).unwrap();
            let of = |at_s| links.delivery(0, 1, 1, s(at_s));
            for half in 0..104 {
                let at_s = f64::from(half) / 2.0;
                let before = rows.iter().rev().find(|row| f64::from(row.0) <= at_s).or(rows.first());
                let after = rows.iter().find(|row| f64::from(row.0) > at_s);
                let ends = [before.and_then(|row| row.1), after.and_then(|row| row.1)];
                match ends {
                    [None, _] => prop_assert_eq!(of(at_s), 0.0),
                    [Some(a), None] => prop_assert_eq!(of(at_s), a),
                    [Some(a), Some(b)] => prop_assert!((a.min(b)..=a.max(b)).contains(&of(at_s)), "{at_s}: {} {a} {b}", of(at_s)),
                }
            }
        }
    }
}
