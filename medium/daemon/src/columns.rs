//! `manet-medium columns`: the rows of an air log as columns of numbers (formats/air.md), for programs that show or count millions
//! of rows.
//!
//! Some threads take parts of whole lines in the order of the log. Who takes a part counts its lines, so that each thread knows
//! where its rows go, and writes them while others parse. Only what the medium itself writes is accepted, to a comment behind the
//! last row (formats/air.md): a reader that gets no columns reads the log in another way, or reports what is wrong with it.

use crate::DaemonError;
use manet_medium::AirRow;
use serde::Serialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Take};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PART_BYTES: usize = 1 << 20;
const MAX_THREADS: usize = 4;
const MAX_DIGITS: usize = 19; // below 2^64
const COMMENT: u8 = b'#';

/// The type of a column; a number in little-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A whole number in every row.
    I64,
    /// A whole number; 0 for an empty field.
    U32,
    /// A whole number, at most 65,535 even if the log has a larger one; 0 for an empty field.
    U16,
    /// A whole number; -1 for an empty field.
    I32,
    /// A number; NaN for an empty field.
    F32,
    /// The place of a text among those of the column, of which there are at most 256.
    Text8,
    /// The place of a text among those of the column, of which there are at most 65,536.
    Text16,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Self::Text8 => 1,
            Self::U16 | Self::Text16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }

    /// The largest number of texts; 0 for numbers.
    fn texts(self) -> usize {
        match self {
            Self::Text8 => 1 << 8,
            Self::Text16 => 1 << 16,
            _ => 0,
        }
    }
}

/// The columns that are written; others are passed over.
const KINDS: [(&str, Kind); 18] = [
    ("t_ns", Kind::I64),
    ("station", Kind::Text16),
    ("event", Kind::Text8),
    ("frame", Kind::Text8),
    ("peer", Kind::Text16),
    ("packet", Kind::U32),
    ("attempt", Kind::U16),
    ("bytes", Kind::U16),
    ("rate_bps", Kind::U32),
    ("airtime_ns", Kind::U32),
    ("backoff_slots", Kind::I32),
    ("fate", Kind::Text8),
    ("receivers", Kind::U16),
    ("power_dbm", Kind::F32),
    (AirRow::MODE, Kind::Text16),
    (AirRow::AGGREGATE, Kind::Text16),
    (AirRow::SINR, Kind::F32),
    (AirRow::CATEGORY, Kind::Text8),
];

/// The columns of a log.
#[derive(Debug, Serialize)]
pub struct Columns {
    /// The number of rows.
    pub rows: u64,
    /// In the order of the log.
    pub columns: Vec<Column>,
}

/// Where a column is, and what its numbers are.
#[derive(Debug, Serialize)]
pub struct Column {
    /// Its name in the log.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The place of its first number in the file, bytes.
    pub offset: u64,
    /// The texts of a column of texts, in the order of their first rows; the empty one is that of an empty field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
}

/// Writes the rows of `log` to `out`, which has holes behind the columns and must be able to hold them.
///
/// # Errors
/// A log with a line that the medium does not write, by its number; a file that cannot be read or written.
pub fn write_columns(log: File, out: &File) -> Result<Columns, DaemonError> {
    let about = log.metadata()?;
    if !about.is_file() {
        return Err(DaemonError("is no plain file".into()));
    }
    let size = about.len();
    let mut log = log.take(size); // a log that grows has no more rows than there is room for
    let mut text = Vec::new();
    let head = loop {
        if let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let rest = text.split_off(end + 1);
            break std::mem::replace(&mut text, rest);
        }
        if (&mut log).take(PART_BYTES as u64).read_to_end(&mut text)? == 0 {
            return Err(wrong(1, "no whole line"));
        }
    };
    let layout = Layout::of(&head[..head.len() - 1], size)?;
    let lines = Mutex::new(Lines { log, rest: text, row: 0, ended: false });
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let results: Vec<Result<u64, DaemonError>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(&lines, &layout, out))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause)))
            .collect()
    });
    let rows = results.into_iter().sum::<Result<u64, _>>()?;
    let columns = layout.columns.into_iter().map(|place| Column {
        name: place.name,
        kind: place.kind,
        offset: place.offset,
        texts: place.texts.into_inner().unwrap_or_else(PoisonError::into_inner).texts,
    });
    Ok(Columns { rows, columns: columns.collect() })
}

fn wrong(line: u64, what: impl std::fmt::Display) -> DaemonError {
    DaemonError(format!("line {line}: {what}; not an air log (formats/air.md), or was its writer killed?"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What each field of a line is.
struct Layout {
    /// For each field the place of its column; `None` for a field that is passed over.
    fields: Vec<Option<usize>>,
    columns: Vec<Place>,
}

struct Place {
    name: &'static str,
    kind: Kind,
    offset: u64,
    texts: Mutex<Texts>,
}

/// The texts of a column.
#[derive(Default)]
struct Texts {
    texts: Vec<String>,
    places: HashMap<Vec<u8>, u16>,
}

impl Layout {
    fn of(head: &[u8], log_bytes: u64) -> Result<Self, DaemonError> {
        let names: Vec<&[u8]> = head.split(|byte| *byte == b',').collect();
        // the shortest line has its commas, a digit of t_ns and its newline
        let most_rows = log_bytes / (names.len() as u64 + 1) + 1;
        let mut layout = Self { fields: Vec::new(), columns: Vec::new() };
        let mut offset = 0;
        for name in names {
            let Some(&(name, kind)) = KINDS.iter().find(|(known, _)| known.as_bytes() == name) else {
                layout.fields.push(None);
                continue;
            };
            layout.fields.push(Some(layout.columns.len()));
            layout.columns.push(Place { name, kind, offset, texts: Mutex::default() });
            offset += (most_rows * kind.bytes() as u64).next_multiple_of(8);
        }
        for name in AirRow::CSV_HEADER.split(',') {
            if layout.columns.iter().filter(|column| column.name == name).count() != 1 {
                return Err(wrong(1, format!("not one column {name}")));
            }
        }
        Ok(layout)
    }
}

/// The log from the first line that no thread has taken.
struct Lines {
    log: Take<File>,
    rest: Vec<u8>,
    row: u64,
    ended: bool,
}

impl Lines {
    /// Puts whole lines into `text`; returns the number of the first one's row, from 0. An empty text is the end.
    fn take(&mut self, text: &mut Vec<u8>) -> Result<u64, DaemonError> {
        text.clear();
        text.append(&mut self.rest);
        while !self.ended {
            self.ended = (&mut self.log).take(PART_BYTES as u64).read_to_end(text)? == 0;
            if let Some(end) = text.iter().rposition(|byte| *byte == b'\n').filter(|_| !self.ended) {
                self.rest = text.split_off(end + 1);
                break;
            }
        }
        let first = self.row;
        self.row += newlines(text);
        Ok(first)
    }

    fn is_at_end(&mut self) -> bool {
        if self.rest.is_empty() && !self.ended {
            self.ended = matches!((&mut self.log).take(PART_BYTES as u64).read_to_end(&mut self.rest), Ok(0));
        }
        self.rest.is_empty()
    }
}

fn newlines(text: &[u8]) -> u64 {
    // sums of bytes, which the compiler makes vectors of
    text.chunks(usize::from(u8::MAX))
        .map(|part| u64::from(part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>()))
        .sum()
}

/// Writes the rows of one part after another; returns their number.
fn work(lines: &Mutex<Lines>, layout: &Layout, out: &File) -> Result<u64, DaemonError> {
    let mut text = Vec::with_capacity(2 * PART_BYTES);
    let mut known: Vec<Known> = layout.columns.iter().map(|column| Known::of(column.kind)).collect();
    let mut numbers: Vec<Vec<u8>> = vec![Vec::new(); layout.columns.len()];
    let mut count = 0;
    loop {
        let first = locked(lines).take(&mut text)?;
        if text.is_empty() {
            return Ok(count);
        }
        numbers.iter_mut().for_each(Vec::clear);
        let mut left: &[u8] = &text;
        let mut row = first;
        while !left.is_empty() {
            if left[0] == COMMENT {
                let end = left.iter().position(|byte| *byte == b'\n').map_or(left.len(), |end| end + 1);
                if left.len() > end || !locked(lines).is_at_end() {
                    return Err(wrong(row + 2, "a comment before the last line"));
                }
                break;
            }
            left = parse_line(left, layout, &mut known, &mut numbers).map_err(|what| wrong(row + 2, what))?;
            row += 1;
        }
        for (column, numbers) in layout.columns.iter().zip(&numbers) {
            out.write_all_at(numbers, column.offset + first * column.kind.bytes() as u64)?;
        }
        count += row - first;
    }
}

/// Appends the numbers of the first line of `text`; returns what is behind it.
fn parse_line<'a>(
    text: &'a [u8],
    layout: &Layout,
    known: &mut [Known],
    numbers: &mut [Vec<u8>],
) -> Result<&'a [u8], String> {
    let mut left = text;
    let last = layout.fields.len() - 1;
    for (at, column) in layout.fields.iter().enumerate() {
        let length = match *column {
            Some(column) => {
                let place = &layout.columns[column];
                parse_field(left, place, &mut known[column], &mut numbers[column])
                    .filter(|length| matches!(left.get(*length), None | Some(b',' | b'\n')))
                    .ok_or_else(|| format!("{}: {:?}", place.name, String::from_utf8_lossy(field_of(left))))?
            }
            None => field_of(left).len(),
        };
        match left.get(length) {
            Some(b',') if at < last => {}
            Some(b'\n') if at == last => {}
            None if at == last => return Ok(&[]),
            _ => return Err(format!("{} fields are expected", layout.fields.len())),
        }
        left = &left[length + 1..];
    }
    Ok(left)
}

fn field_of(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|byte| matches!(byte, b',' | b'\n')).unwrap_or(text.len())]
}

/// Appends the number of the first field; returns the length of the field, or `None` for a field that is none of its column.
fn parse_field(text: &[u8], place: &Place, known: &mut Known, numbers: &mut Vec<u8>) -> Option<usize> {
    match place.kind {
        Kind::I64 => {
            let (value, length) = digits(text)?;
            numbers.extend_from_slice(&i64::try_from(value.filter(|_| length > 0)?).ok()?.to_le_bytes());
            Some(length)
        }
        Kind::U32 => {
            let (value, length) = digits(text)?;
            numbers.extend_from_slice(&u32::try_from(value.unwrap_or(0)).ok()?.to_le_bytes());
            Some(length)
        }
        Kind::U16 => {
            let (value, length) = digits(text)?;
            let value = u32::try_from(value.unwrap_or(0)).ok()?;
            numbers.extend_from_slice(&u16::try_from(value).unwrap_or(u16::MAX).to_le_bytes());
            Some(length)
        }
        Kind::I32 => {
            let (value, length) = digits(text)?;
            numbers.extend_from_slice(&value.map_or(Some(-1), |value| i32::try_from(value).ok())?.to_le_bytes());
            Some(length)
        }
        Kind::F32 => {
            let (value, length) = decimal(text)?;
            numbers.extend_from_slice(&value.to_le_bytes());
            Some(length)
        }
        Kind::Text8 | Kind::Text16 => {
            let (code, length) = known.place_of(text, place)?;
            if place.kind == Kind::Text8 {
                numbers.push(u8::try_from(code).ok()?);
            } else {
                numbers.extend_from_slice(&code.to_le_bytes());
            }
            Some(length)
        }
    }
}

/// The whole number at the start of a text and its length; no number for an empty field.
fn digits(text: &[u8]) -> Option<(Option<u64>, usize)> {
    let (mut value, mut length) = (0u64, 0);
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    (length <= MAX_DIGITS).then_some(((length > 0).then_some(value), length))
}

/// The number at the start of a text, such as -64.2, and its length; NaN for an empty field. A short one, a whole number divided by a
/// power of ten, is exact in f64, so that it is rounded once.
fn decimal(text: &[u8]) -> Option<(f32, usize)> {
    const TENS: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
    let minus = usize::from(text.first() == Some(&b'-'));
    let (whole, length) = digits(&text[minus..])?;
    let point = minus + length;
    if let (Some(whole @ 0..1_000_000), Some(b'.')) = (whole, text.get(point)) {
        let (fraction, places @ 1..=3) = digits(&text[point + 1..])? else { return longer_decimal(text) };
        let value = (whole as f64 * TENS[places] + fraction.unwrap_or(0) as f64) / TENS[places];
        return Some((if minus == 1 { -value } else { value } as f32, point + 1 + places));
    }
    longer_decimal(text)
}

fn longer_decimal(text: &[u8]) -> Option<(f32, usize)> {
    let field = field_of(text);
    let value = if field.is_empty() {
        f32::NAN
    } else {
        std::str::from_utf8(field).ok()?.parse().ok().filter(|v: &f32| v.is_finite())?
    };
    Some((value, field.len()))
}

/// The texts that a thread has met, each where its hash puts it: most fields are one of a few, of at most 8 bytes.
struct Known {
    slots: Vec<(u64, Vec<u8>, u16)>,
}

impl Known {
    const SLOTS: usize = 1 << 12;

    fn of(kind: Kind) -> Self {
        let empty = (u64::MAX, vec![0], 0); // no field has a byte 0
        Self { slots: if kind.texts() > 0 { vec![empty; Self::SLOTS] } else { Vec::new() } }
    }

    /// The place of the first field among the texts of its column, and the field's length; `None` for a text that the medium does
    /// not write, or one too many.
    fn place_of(&mut self, text: &[u8], column: &Place) -> Option<(u16, usize)> {
        let (start, length) = start_of(text);
        let hash = (start ^ length as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52; // Fibonacci hashing
        let (known, rest, place) = &mut self.slots[hash as usize];
        let behind = text.get(START..length).unwrap_or_default();
        if *known != start || rest.len() != behind.len() || !behind.is_empty() && rest != behind {
            *place = locked(&column.texts).place_of(&text[..length], column.kind.texts())?;
            (*known, *rest) = (start, behind.to_vec());
        }
        Some((*place, length))
    }
}

const START: usize = size_of::<u64>();

/// The first bytes of the first field, as a number with a byte 0 for each that it lacks, and the length of the field.
fn start_of(text: &[u8]) -> (u64, usize) {
    let Some(bytes) = text.first_chunk::<START>() else {
        let field = field_of(text);
        return (field.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), field.len());
    };
    let word = u64::from_le_bytes(*bytes);
    let ends = zero_bytes(word ^ COMMAS) | zero_bytes(word ^ NEWLINES);
    if ends == 0 {
        return (word, START + field_of(&text[START..]).len());
    }
    let length = ends.trailing_zeros() as usize / 8;
    (word & ((1 << (8 * length)) - 1), length)
}

const ONES: u64 = u64::from_le_bytes([1; START]);
const COMMAS: u64 = ONES * b',' as u64;
const NEWLINES: u64 = ONES * b'\n' as u64;

/// The top bit of the lowest byte that is 0, and perhaps bits above it.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

impl Texts {
    fn place_of(&mut self, field: &[u8], most: usize) -> Option<u16> {
        if let Some(place) = self.places.get(field) {
            return Some(*place);
        }
        let text = std::str::from_utf8(field).ok().filter(|text| !text.contains(['"', '\r', '\0']))?;
        let place = u16::try_from(self.texts.len()).ok().filter(|place| usize::from(*place) < most)?;
        self.texts.push(text.to_owned());
        self.places.insert(field.to_vec(), place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const EXAMPLE: &str = include_str!("../../../formats/examples/air.csv");

    /// The columns of a log, each value as text.
    fn columns_of(log: &str) -> Result<HashMap<&'static str, Vec<String>>, DaemonError> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("manet-columns-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, out) = (folder.join("air.csv"), folder.join("columns"));
        std::fs::write(&path, log).unwrap();
        let found = write_columns(File::open(path).unwrap(), &File::create(&out).unwrap());
        let bytes = std::fs::read(&out).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let found = found?;
        let text = |column: &Column| {
            let width = column.kind.bytes();
            let own = bytes.get(column.offset as usize..).unwrap_or_default();
            let numbers = own.chunks(width).take(found.rows as usize);
            let values = numbers.map(|b| match column.kind {
                Kind::I64 => i64::from_le_bytes(b.try_into().unwrap()).to_string(),
                Kind::I32 => i32::from_le_bytes(b.try_into().unwrap()).to_string(),
                Kind::F32 => f32::from_le_bytes(b.try_into().unwrap()).to_string(),
                Kind::U32 => u32::from_le_bytes(b.try_into().unwrap()).to_string(),
                Kind::U16 => u16::from_le_bytes(b.try_into().unwrap()).to_string(),
                Kind::Text8 => column.texts[usize::from(b[0])].clone(),
                Kind::Text16 => column.texts[usize::from(u16::from_le_bytes(b.try_into().unwrap()))].clone(),
            });
            values.collect()
        };
        Ok(found.columns.iter().map(|column| (column.name, text(column))).collect())
    }

    /// The value of a field as `columns_of` has it.
    fn value(kind: Kind, field: &str) -> String {
        match (kind, field) {
            (Kind::U32 | Kind::U16, "") => "0".into(),
            (Kind::I32, "") => "-1".into(),
            (Kind::F32, "") => "NaN".into(),
            (Kind::F32, number) => number.parse::<f32>().unwrap().to_string(),
            (_, field) => field.into(),
        }
    }

    fn assert_has(log: &str) {
        let found = columns_of(log).unwrap();
        let (head, rows) = log.split_once('\n').unwrap();
        for (at, name) in head.split(',').enumerate() {
            let kind = KINDS.iter().find(|(known, _)| *known == name).unwrap().1;
            let wanted: Vec<_> = rows.lines().map(|row| value(kind, row.split(',').nth(at).unwrap())).collect();
            assert!(found[name] == wanted, "{name}"); // too long to print
        }
    }

    #[test]
    fn the_columns_have_every_field_of_the_example() {
        assert_has(EXAMPLE);
        assert_has(EXAMPLE.trim_end()); // no newline behind the last row
    }

    #[test]
    fn rows_of_several_parts_are_in_the_order_of_the_log() {
        let mut log = format!("{},mode,sinr_db\n", AirRow::CSV_HEADER);
        for row in 1..60_000u32 {
            let (a, b) = (row % 70, row % 7);
            log += &format!(
                "{row}000,sta{a},tx,data,sta{b},{row},{b},1534,6500000,{},{a},hidden,,-{a}.{b},ht-mcs{b}-20,{b}.{a}\n",
                4_000_000_000 + row
            );
        }
        assert!(log.len() > 3 * PART_BYTES);
        assert_has(&log);
    }

    #[test]
    fn a_comment_behind_the_last_row_is_no_row_and_other_columns_are_passed_over() {
        let rows = EXAMPLE.replace('\n', ",sta2=-71.2 sta3=-80.4\n").replacen("sta2=-71.2 sta3=-80.4", "heard_dbm", 1);
        for end in ["", "# closed: full\n", "# closed: full"] {
            let found = columns_of(&format!("{rows}{end}")).unwrap();
            assert_eq!(found["t_ns"].len(), EXAMPLE.lines().count() - 1);
            assert!(!found.contains_key("heard_dbm"));
        }
        assert_eq!(columns_of(EXAMPLE.split_inclusive('\n').next().unwrap()).unwrap()["t_ns"].len(), 0);
    }

    #[test]
    fn a_line_that_the_medium_does_not_write_is_named() {
        let good = "1,sta1,enqueue,data,sta2,1,,1000,,,,,,";
        for (line, what) in [
            ("", "line 3: t_ns"),
            ("1,sta1", "line 3: 14 fields"),
            ("1,sta1,enqueue,data,sta2,1,,1000,,,,,,,", "line 3: 14 fields"),
            ("1,sta1,enqueue,data,sta2,one,,1000,,,,,,", "line 3: packet"),
            ("1,sta1,enqueue,data,sta2,4294967296,,1000,,,,,,", "line 3: packet"),
            ("99999999999999999999,sta1,enqueue,data,sta2,1,,1000,,,,,,", "line 3: t_ns"),
            ("1,sta1,enqueue,data,\"sta2\",1,,1000,,,,,,", "line 3: peer"),
            ("1,sta1,enqueue,data,sta2,1,,1000,,,,,,-", "line 3: power_dbm"),
            ("1,sta1,enqueue,data,sta2,1,,1000,,,,,,inf", "line 3: power_dbm"),
            ("# 1,sta1", "line 3: a comment"),
        ] {
            let log = format!("{}\n{good}\n{line}\n{good}\n", AirRow::CSV_HEADER);
            let error = columns_of(&log).unwrap_err().to_string();
            assert!(error.starts_with(what), "{line}: {error}");
        }
        let device = write_columns(File::open("/dev/null").unwrap(), &File::open("/dev/null").unwrap());
        assert_eq!(device.unwrap_err().to_string(), "is no plain file");
        for (head, what) in [("", "line 1: no whole line"), ("a,b\n1,2\n", "line 1: not one column t_ns")] {
            assert!(columns_of(head).unwrap_err().to_string().starts_with(what));
        }
    }
}
