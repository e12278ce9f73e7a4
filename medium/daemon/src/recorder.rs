//! The air log (air.csv), the captures of the air (air.pcapng, monitor.pcapng) and the log of inputs (inputs.jsonl).
//!
//! [`Files`] writes them; [`Recorder`] does so in a thread of its own, so that no disk stalls the medium: rows and inputs are passed in
//! batches as they are, and become text in the thread. If it is so far behind that [`MAX_WAITING`] bytes wait, they are dropped and counted.
//!
//! When one of the files would exceed the limit ([`Files::limit`]), all end at the same event. The last line of the text files begins
//! with [`CLOSED`], which no reader takes for a row, and [`Files::finish`] reports it: the verdict is void.
//!
//! [`Files::finish`] also says what it wrote into each file: the testbed compares the files with it at the end of a run.

use crate::captured_frame::{capture, Names, Seen};
use crate::incomplete::Incomplete;
use crate::input_log::{InputLog, Inputs};
use crate::DaemonError;
use crc32fast::Hasher;
use manet_engine::event_log::CLOSED;
use manet_medium::air_log::AirRow;
use manet_medium::mac::Packet;
use manet_medium::wire::pcapng::{Block, LINK_RADIOTAP};
use manet_medium::wire::radiotap;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{fmt, mem};

/// Rows in a batch.
const BATCH: usize = 512;
/// Maximum of memory that waits for the thread, bytes: rows with their packets, and inputs. An exchange with a packet of 1500 bytes takes
/// about 4 kB, so that it is 65,000 exchanges, 15 s of an air of 54 Mbit/s.
pub const MAX_WAITING: usize = 256 << 20;
/// Rows of the air log kept for the control socket.
pub const ROWS_KEPT: usize = 1000;

/// A file that is abandoned at the first error; the error is kept.
struct Output {
    path: PathBuf,
    to: Result<BufWriter<File>, io::Error>,
    written: u64,
    sum: Hasher,
}

/// What the writer of a file wrote into it, as a line of the daemon's output (formats/air.md).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    name: String,
    bytes: u64,
    sum: u32,
}

impl Written {
    /// So many bytes with this CRC-32 in the file `name`, a path within the folder of the run.
    pub fn new(name: String, bytes: u64, sum: u32) -> Self {
        Self { name, bytes, sum }
    }

    /// The whole content of the file at `path`.
    pub fn whole(path: &Path, content: &[u8]) -> Self {
        Self { name: name_of(path), bytes: content.len() as u64, sum: crc32fast::hash(content) }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrote {} {} {:08x}", self.name, self.bytes, self.sum)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The end of the files: the reasons why they are incomplete, and what was written into each of the others.
#[derive(Debug, Default)]
pub struct Ended {
    /// The reasons.
    pub lacking: Vec<Incomplete>,
    /// The files without an error.
    pub written: Vec<Written>,
}

impl Output {
    fn create(path: &Path) -> Result<Self, DaemonError> {
        let file = File::create(path).map_err(|e| {
            DaemonError(format!("{}: {e}; does the folder exist and may it be written?", path.display()))
        })?;
        let to = Ok(BufWriter::with_capacity(1 << 16, file));
        Ok(Self { path: path.to_owned(), to, written: 0, sum: Hasher::new() })
    }

    fn write(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        self.sum.update(bytes);
        self.attempt(|to| to.write_all(bytes));
    }

    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let Ok(to) = &mut self.to else { return };
        if let Err(e) = write(to) {
            // dropping a BufWriter tries to write once more: take it apart instead
            if let Ok(broken) = mem::replace(&mut self.to, Err(e)) {
                let _ = broken.into_parts();
            }
        }
    }

    fn end(self, ended: &mut Ended) {
        match self.to {
            Ok(_) => {
                ended.written.push(Written { name: name_of(&self.path), bytes: self.written, sum: self.sum.finalize() })
            }
            Err(error) => ended.lacking.push(Incomplete::LogBroken { path: self.path, error }),
        }
    }
}

/// All files, written synchronously.
pub struct Files {
    names: Names,
    epoch_ns: u64,
    csv: Option<Output>,
    pcapng: Option<Output>,
    monitor: Option<Output>,
    inputs: Option<Output>,
    limit: u64,
    /// Why the files ended before the run.
    closed: Option<Incomplete>,
    /// Number of the last A-MPDU, for radiotap.
    aggregates: u32,
    line: String,
    bytes: Vec<u8>,
    monitored: Vec<u8>,
}

impl Files {
    /// Creates the air log at `csv` and the capture at `pcapng`; `None`: not written.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn create(csv: Option<&Path>, pcapng: Option<&Path>, names: Names) -> Result<Self, DaemonError> {
        let mut files = Self {
            names,
            epoch_ns: 0,
            csv: csv.map(Output::create).transpose()?,
            pcapng: pcapng.map(Output::create).transpose()?,
            monitor: None,
            inputs: None,
            limit: u64::MAX,
            closed: None,
            aggregates: 0,
            line: String::new(),
            bytes: Vec::new(),
            monitored: Vec::new(),
        };
        if let Some(csv) = &mut files.csv {
            let Names { mcs, aggregates, sinr, edca, heard, .. } = files.names;
            let further = [
                (mcs, AirRow::MODE),
                (aggregates, AirRow::AGGREGATE),
                (sinr, AirRow::SINR),
                (edca, AirRow::CATEGORY),
                (heard, AirRow::HEARD),
            ];
            let further = further.into_iter().filter(|(has, _)| *has).map(|(_, name)| name);
            let head: Vec<&str> = [AirRow::CSV_HEADER].into_iter().chain(further).collect();
            csv.write(format!("{}\n", head.join(",")).as_bytes());
        }
        if let Some(pcapng) = &mut files.pcapng {
            let mut head = Vec::new();
            Block::Section.emit(&mut head);
            Block::Interface { link_type: LINK_RADIOTAP, name: "air" }.emit(&mut head);
            pcapng.write(&head);
        }
        Ok(files)
    }

    /// Creates the capture of the frames that each station decoded at `path`.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn monitor(&mut self, path: &Path) -> Result<(), DaemonError> {
        let mut to = Output::create(path)?;
        let mut head = Vec::new();
        Block::Section.emit(&mut head);
        for name in &self.names.stations {
            Block::Interface { link_type: LINK_RADIOTAP, name }.emit(&mut head);
        }
        to.write(&head);
        self.monitor = Some(to);
        Ok(())
    }

    /// Creates the log of inputs at `path`.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn log_inputs(&mut self, path: &Path) -> Result<(), DaemonError> {
        self.inputs = Some(Output::create(path)?);
        Ok(())
    }

    /// Sets the maximum size of each file in bytes, without the line that closes it; `None`: no limit.
    pub fn limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes.unwrap_or(u64::MAX);
    }

    /// Whether no file is written.
    pub fn is_empty(&self) -> bool {
        [&self.csv, &self.pcapng, &self.monitor, &self.inputs].iter().all(|output| output.is_none())
    }

    /// Sets the wall clock at model time 0, ns since 1970, for timestamps of the capture.
    pub fn set_epoch(&mut self, epoch_ns: u64) {
        self.epoch_ns = epoch_ns;
    }

    /// Writes a row of the air log, and the frame into the capture.
    pub fn record(&mut self, record: &AirRow) {
        if self.closed.is_some() {
            return;
        }
        self.line.clear();
        record.write_csv(&mut self.line, |s| self.names.sender(s));
        if self.names.mcs {
            record.write_mode(&mut self.line);
        }
        if self.names.aggregates {
            record.write_aggregate(&mut self.line);
        }
        if self.names.sinr {
            record.write_sinr(&mut self.line);
        }
        if self.names.edca {
            record.write_category(&mut self.line);
        }
        if self.names.heard {
            record.write_heard(&mut self.line, |s| &self.names.stations[usize::from(s)]);
        }
        self.line.push('\n');
        self.bytes.clear();
        self.monitored.clear();
        if let AirRow::Tx { at, frame, fate, power_w, heard, place, sinr_db, .. } = record {
            if matches!(place, Some((1, _))) {
                self.aggregates = self.aggregates.wrapping_add(1);
            }
            let ampdu = place.map(|(n, of)| radiotap::Ampdu { reference: self.aggregates, is_last: n == of });
            let capture = |out: &mut Vec<u8>, interface, fate, power_w, sinr_db| {
                capture(out, &self.names, self.epoch_ns, *at, frame, Seen { interface, fate, power_w, sinr_db, ampdu });
            };
            if self.pcapng.is_some() {
                capture(&mut self.bytes, 0, *fate, *power_w, *sinr_db);
            }
            for (station, power_w) in heard.iter().filter(|_| self.monitor.is_some()) {
                capture(&mut self.monitored, u32::from(*station), None, Some(*power_w), None);
            }
        }
        let (row, block, more) = (self.line.len() as u64, self.bytes.len() as u64, self.monitored.len() as u64);
        if let Some(full) = self.full([(&self.csv, row), (&self.pcapng, block), (&self.monitor, more)]) {
            return self.close(full);
        }
        if let Some(csv) = &mut self.csv {
            csv.write(self.line.as_bytes());
        }
        if let Some(pcapng) = &mut self.pcapng {
            pcapng.write(&self.bytes);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.write(&self.monitored);
        }
    }

    /// Writes complete lines of the log of inputs.
    pub fn record_inputs(&mut self, lines: &[u8]) {
        if self.closed.is_some() {
            return;
        }
        if let Some(full) = self.full([(&self.inputs, lines.len() as u64)]) {
            return self.close(full);
        }
        if let Some(inputs) = &mut self.inputs {
            inputs.write(lines);
        }
    }

    /// The first file that `more` bytes would push over the limit.
    fn full<const N: usize>(&self, more: [(&Option<Output>, u64); N]) -> Option<Incomplete> {
        let over = |(output, more): (&Option<Output>, u64)| {
            output.as_ref().filter(|o| o.written + more > self.limit).map(|o| o.path.clone())
        };
        let path = more.into_iter().find_map(over)?;
        Some(Incomplete::LogFull { path, limit: self.limit })
    }

    fn close(&mut self, why: Incomplete) {
        for text in [&mut self.csv, &mut self.inputs].into_iter().flatten() {
            text.write(format!("{CLOSED}{why}\n").as_bytes());
        }
        self.closed = Some(why);
        self.flush();
    }

    /// Writes buffered bytes to the files.
    pub fn flush(&mut self) {
        let all = [&mut self.csv, &mut self.pcapng, &mut self.monitor, &mut self.inputs];
        for output in all.into_iter().flatten() {
            output.attempt(Write::flush);
        }
    }

    /// Closes the files.
    pub fn finish(mut self) -> Ended {
        self.flush();
        let mut ended = Ended { lacking: self.closed.into_iter().collect(), written: Vec::new() };
        for output in [self.csv, self.pcapng, self.monitor, self.inputs].into_iter().flatten() {
            output.end(&mut ended);
        }
        ended
    }
}

/// Rows and inputs that are passed to the thread together.
struct Batch {
    rows: Arc<Vec<AirRow>>,
    inputs: Inputs,
    /// Memory that they take.
    bytes: usize,
}

impl Batch {
    fn lines(&self) -> u64 {
        (self.rows.len() + self.inputs.count()) as u64
    }
}

/// Memory that a row takes until it is written, bytes; an upper bound, since the attempts of a packet share it.
fn bytes_of(row: &AirRow) -> usize {
    let AirRow::Tx { frame, heard, .. } = row else { return size_of::<AirRow>() };
    let packet = frame.packet.as_ref().map_or(0, |packet| {
        let mpdu = packet.mpdu.as_ref().map_or(0, |mpdu| mpdu.bytes.len());
        size_of::<Packet>() + packet.ethernet.len() + mpdu
    });
    size_of::<AirRow>() + packet + size_of_val(&heard[..])
}

/// [`Files`] in a thread of their own.
pub struct Recorder {
    to: Option<Sender<Batch>>,
    /// The emptied buffers of inputs that the thread gives back.
    emptied: Receiver<Inputs>,
    thread: Option<JoinHandle<Ended>>,
    /// Memory of the batches that wait for the thread.
    waiting: Arc<AtomicUsize>,
    max_waiting: usize,
    rows: Vec<AirRow>,
    row_bytes: usize,
    /// The batches of the last rows, also those that the thread has written.
    last: VecDeque<Arc<Vec<AirRow>>>,
    inputs: Option<InputLog>,
    drops: u64,
}

impl Recorder {
    /// Starts the thread. `inputs`: the log that the machine writes.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(files: Files, inputs: Option<InputLog>) -> Result<Self, DaemonError> {
        Self::start_with(files, inputs, MAX_WAITING)
    }

    fn start_with(files: Files, inputs: Option<InputLog>, max_waiting: usize) -> Result<Self, DaemonError> {
        let (to, from) = channel();
        let (back, emptied) = sync_channel(1);
        let waiting = Arc::new(AtomicUsize::new(0));
        let is_written = !files.is_empty();
        let write = {
            let waiting = waiting.clone();
            move || write_all(files, &from, &back, &waiting)
        };
        let thread =
            is_written.then(|| std::thread::Builder::new().name("recorder".to_owned()).spawn(write)).transpose()?;
        let (rows, last) = (Vec::with_capacity(BATCH), VecDeque::new());
        let to = is_written.then_some(to);
        Ok(Self { to, emptied, thread, waiting, max_waiting, rows, row_bytes: 0, last, inputs, drops: 0 })
    }

    /// Adds a row of the air log to the current batch.
    pub fn push(&mut self, row: AirRow) {
        self.row_bytes += bytes_of(&row);
        self.rows.push(row);
        if self.rows.len() >= BATCH {
            self.hand_over();
        }
    }

    /// The last rows of the air log, the newest first; at least [`ROWS_KEPT`], if there were as many.
    pub fn last_rows(&self) -> impl Iterator<Item = &AirRow> {
        self.rows.iter().rev().chain(self.last.iter().rev().flat_map(|batch| batch.iter().rev()))
    }

    /// Passes the current batch to the thread; called by the daemon a few times a second.
    pub fn hand_over(&mut self) {
        let batch = self.take_batch();
        let room = self.max_waiting.saturating_sub(self.waiting.load(Ordering::Relaxed));
        if batch.bytes <= room {
            self.send(batch);
        } else if self.to.is_some() {
            self.drops += batch.lines();
        }
    }

    fn send(&mut self, batch: Batch) {
        let Some(to) = self.to.as_ref().filter(|_| batch.lines() > 0) else { return };
        self.waiting.fetch_add(batch.bytes, Ordering::Relaxed);
        if let Err(unsent) = to.send(batch) {
            self.drops += unsent.0.lines();
        }
    }

    fn take_batch(&mut self) -> Batch {
        let emptied = || self.emptied.try_recv().unwrap_or_default();
        let inputs = self.inputs.as_ref().map(|log| log.take(emptied())).unwrap_or_default();
        let bytes = mem::take(&mut self.row_bytes) + inputs.bytes();
        // the few rows of a quiet air do not keep the memory of a whole batch
        let is_whole = self.rows.len() >= BATCH;
        let rows = if is_whole { mem::take(&mut self.rows) } else { self.rows.drain(..).collect() };
        let rows = Arc::new(rows);
        if !rows.is_empty() {
            self.last.push_back(rows.clone());
        }
        let emptied = self.emptied_rows();
        if is_whole {
            self.rows = emptied.unwrap_or_default();
            self.rows.reserve(BATCH);
        }
        Batch { rows, inputs, bytes }
    }

    /// Forgets the batches before the last [`ROWS_KEPT`] rows; returns the memory of one, unless the thread still writes it.
    fn emptied_rows(&mut self) -> Option<Vec<AirRow>> {
        let mut kept: usize = self.last.iter().map(|batch| batch.len()).sum();
        let mut emptied = None;
        while let Some(first) = self.last.front().map(|batch| batch.len()).filter(|first| kept - first >= ROWS_KEPT) {
            kept -= first;
            emptied = self.last.pop_front().and_then(Arc::into_inner);
        }
        emptied.map(|mut rows| {
            rows.clear();
            rows
        })
    }

    /// Number of rows of the air log and lines of the log of inputs that were lost.
    pub fn drops(&self) -> u64 {
        self.drops
    }

    /// Waits until everything is written; returns the number of lost rows and lines, and the end of the files.
    pub fn finish(mut self) -> (u64, Ended) {
        // the run is over: nothing more comes, so that the last batch needs no room
        let batch = self.take_batch();
        self.send(batch);
        self.to = None;
        let ended = match self.thread.take().map(JoinHandle::join) {
            None => Ended::default(),
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Ended { lacking: vec![Incomplete::WriterFailed], written: Vec::new() },
        };
        (self.drops, ended)
    }
}

fn write_all(mut files: Files, from: &Receiver<Batch>, back: &SyncSender<Inputs>, waiting: &AtomicUsize) -> Ended {
    let mut lines = Vec::new();
    while let Ok(Batch { rows, mut inputs, bytes }) = from.recv() {
        lines.clear();
        inputs.take_lines(&mut lines);
        // one is enough for the next batch: others end here
        let _ = back.try_send(inputs);
        files.record_inputs(&lines);
        for row in &*rows {
            files.record(row);
        }
        // a killed run keeps its rows so far
        files.flush();
        waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
    files.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured_frame::tests::{frame, names};
    use crate::input::Input;
    use manet_engine::Instant;
    use manet_medium::mac::Dest;
    use manet_medium::phy::FrameKind;
    use manet_medium::wired::EndId;
    use std::os::unix::fs::OpenOptionsExt;

    fn attempt() -> AirRow {
        let frame = frame(FrameKind::Data, 10);
        let (at, heard) = (Instant::ZERO, Vec::new());
        AirRow::Tx { at, frame, fate: None, receivers: 0, power_w: None, heard, place: None, sinr_db: None }
    }

    #[test]
    fn the_monitor_has_a_frame_on_the_interface_of_each_station_that_decoded_it_with_the_power_there() {
        let folder = std::env::temp_dir().join(format!("manet-monitor-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        let mut files = Files::create(Some(&at("air.csv")), None, Names { heard: true, ..names() }).unwrap();
        files.monitor(&at("monitor.pcapng")).unwrap();
        let mut record = attempt();
        if let AirRow::Tx { heard, .. } = &mut record {
            *heard = vec![(0, 1e-9), (1, 1e-11)];
        }
        files.record(&record);
        let ended = files.finish();
        assert!(ended.lacking.is_empty());
        let csv = std::fs::read_to_string(at("air.csv")).unwrap();
        assert_eq!(ended.written[0], Written::whole(&at("air.csv"), csv.as_bytes()));
        let ends: Vec<&str> = csv.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
        assert_eq!(ends, ["heard_dbm", "sta1=-60.0 sta2=-80.0"]);
        let bytes = std::fs::read(at("monitor.pcapng")).unwrap();
        let (mut rest, mut signals, mut interfaces) = (&bytes[..], Vec::new(), Vec::new());
        while !rest.is_empty() {
            let (block, more) = Block::parse(rest).unwrap();
            match block {
                Block::Interface { name, .. } => interfaces.push(name.to_owned()),
                Block::Packet { interface, data, .. } => {
                    signals.push((interface, radiotap::Repr::parse(data).unwrap().0.signal_dbm));
                }
                Block::Section => {}
            }
            rest = more;
        }
        assert_eq!(interfaces, ["sta1", "sta2"]);
        assert_eq!(signals, [(0, Some(-60)), (1, Some(-80))]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_disk_is_reported_once_and_stops_nothing() {
        let mut files = Files::create(Some(Path::new("/dev/full")), None, names()).unwrap();
        let record = attempt();
        for _ in 0..10_000 {
            files.record(&record);
        }
        let mut recorder = Recorder::start(files, None).unwrap();
        recorder.push(record);
        let (drops, Ended { lacking, written }) = recorder.finish();
        assert_eq!((drops, lacking.len(), written), (0, 1, Vec::new()));
        let line = lacking[0].to_string();
        assert!(line.starts_with("/dev/full: No space left on device") && line.contains("free some space"), "{line}");
    }

    #[test]
    fn rows_and_inputs_that_find_no_room_are_counted_and_the_others_are_written() {
        let folder = std::env::temp_dir().join(format!("manet-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("air.csv");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // nobody reads yet: the thread stands in its first write, as at a disk that stalls
        let reader = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(&pipe).unwrap();
        let mut files = Files::create(Some(&pipe), None, names()).unwrap();
        files.log_inputs(&folder.join("inputs.jsonl")).unwrap();
        let log = InputLog::default();
        let row_bytes = bytes_of(&attempt());
        let mut recorder = Recorder::start_with(files, Some(log.clone()), 100 * BATCH * row_bytes).unwrap();
        let mut pushed = 0;
        while recorder.drops() == 0 {
            log.note(Instant::ZERO, &mut Input::Stall { end: EndId(0), stalled: true });
            recorder.push(attempt());
            pushed += 1;
        }
        // the rows and inputs of one batch
        assert_eq!(recorder.drops(), 2 * BATCH as u64);
        assert!(recorder.waiting.load(Ordering::Relaxed) <= recorder.max_waiting);
        let waits = File::open(&pipe).unwrap();
        drop(reader);
        let reading = std::thread::spawn(move || io::read_to_string(waits).unwrap());
        let (drops, ended) = recorder.finish();
        assert!(drops == 2 * BATCH as u64 && ended.lacking.is_empty(), "{drops} {:?}", ended.lacking);
        let inputs = std::fs::read_to_string(folder.join("inputs.jsonl")).unwrap();
        let lines = reading.join().unwrap().lines().count() - 1 + inputs.lines().count();
        assert_eq!(lines as u64 + drops, 2 * pushed);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_last_rows_remain_for_the_control_socket_and_older_memory_is_used_again() {
        let files = Files::create(None, None, names()).unwrap();
        let mut recorder = Recorder::start(files, None).unwrap();
        let packet = |row: &AirRow| match row {
            AirRow::Enqueue { packet, .. } => *packet,
            _ => 0,
        };
        for n in 1..=3000 {
            let (station, peer) = (0, Dest::Broadcast);
            let (at, category) = (Instant::ZERO, manet_medium::mac::Category::default());
            recorder.push(AirRow::Enqueue { at, station, peer, packet: n, bytes: 1, category });
            if n % 700 == 0 {
                recorder.hand_over();
            }
            let last: Vec<u64> = recorder.last_rows().take(ROWS_KEPT).map(packet).collect();
            let expected: Vec<u64> = (1..=n).rev().take(ROWS_KEPT).collect();
            assert_eq!(last, expected);
        }
        assert!(recorder.last_rows().count() < ROWS_KEPT + 2 * BATCH);
        assert_eq!((recorder.drops(), recorder.waiting.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn at_the_limit_every_file_ends_with_a_line_that_is_no_row() {
        let folder = std::env::temp_dir().join(format!("manet-recorder-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        let mut files = Files::create(Some(&at("air.csv")), Some(&at("air.pcapng")), names()).unwrap();
        files.log_inputs(&at("inputs.jsonl")).unwrap();
        files.limit(Some(1000));
        files.record_inputs(b"{}\n");
        let record = attempt();
        for _ in 0..100 {
            files.record(&record);
        }
        files.record_inputs(b"{}\n");
        let Ended { lacking, written } = files.finish();
        assert!(matches!(&lacking[..], [Incomplete::LogFull { limit: 1000, .. }]), "{lacking:?}");
        let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        let (csv, inputs) = (text("air.csv"), text("inputs.jsonl"));
        let lines: Vec<String> = written.iter().map(Written::to_string).collect();
        assert_eq!(lines.last(), Some(&Written::whole(&at("inputs.jsonl"), inputs.as_bytes()).to_string()));
        let rows = csv.lines().count() - 2;
        assert!((1..100).contains(&rows) && csv.lines().last().unwrap().starts_with(CLOSED), "{csv}");
        assert!(csv.find(CLOSED).unwrap() <= 1000 && std::fs::metadata(at("air.pcapng")).unwrap().len() <= 1000);
        assert_eq!(inputs.lines().map(|l| l.starts_with(CLOSED)).collect::<Vec<_>>(), [false, true]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let e = Files::create(Some(Path::new("/proc/nonexistent/air.csv")), None, names()).err().unwrap();
        assert!(e.0.starts_with("/proc/nonexistent/air.csv: "));
    }
}
