//! The capture of held packets (formats/routing.md): packets that wait in the machine for a route, which no capture of the
//! radio contains. pcapng (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3), little-endian: a section header and an interface
//! of bare IPv4 packets for each start of the daemon, then one commented packet per arrival and one per departure.

use crate::error::Result;
use crate::notes::append_to;
use manet_engine::Instant;
use manet_routing::held::{Change, Passage};
use std::fs::File;
use std::io::Write;
use std::path::Path;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// LINKTYPE_IPV4.
const LINK_IPV4: u16 = 228;
const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// As a power of ten.
const NANOSECONDS: u8 = 9;
/// The headers of IPv4 (60), DSR with its longest source route (4 + 4 + 4 x 15) and TCP (60).
const SNAP_BYTES: usize = 60 + 68 + 60;

/// The open capture file, or none.
pub struct HeldCapture {
    file: Option<File>,
    /// CLOCK_REALTIME of the daemon's instant 0.
    epoch_ns: u64,
    /// Records that could not be written.
    pub lost: u64,
}

impl HeldCapture {
    /// Appends to `path`; without a path nothing is recorded. `interface`: name in the capture. `epoch_ns`: CLOCK_REALTIME
    /// of instant 0. Fails if the file cannot be opened.
    pub fn open(path: Option<&Path>, interface: &str, epoch_ns: u64) -> Result<Self> {
        let file = path.map(|p| append_to("held", p)).transpose()?;
        let mut capture = Self { file, epoch_ns, lost: 0 };
        capture.write(&head(interface));
        Ok(capture)
    }

    /// Whether changes are recorded.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Writes at once, so that no record is missing after a kill.
    pub fn record(&mut self, now: Instant, change: &Change) {
        let block = packet(self.epoch_ns + now.as_nanos(), &change.bytes, &comment(now, change));
        self.write(&block);
    }

    fn write(&mut self, block: &[u8]) {
        if self.file.as_mut().is_some_and(|f| f.write_all(block).is_err()) {
            self.lost += 1;
        }
    }
}

fn comment(now: Instant, change: &Change) -> String {
    let waited_s = now.since(change.since).as_secs_f64();
    match change.passage {
        Passage::Held => "held".to_owned(),
        Passage::SentOn => format!("sent on after {waited_s:.6} s"),
        Passage::GivenUp => format!("given up after {waited_s:.6} s"),
    }
}

fn head(interface: &str) -> Vec<u8> {
    let version = [1, 0, 0, 0];
    let unknown_length = u64::MAX.to_le_bytes();
    let section = block(SECTION, &[&BYTE_ORDER.to_le_bytes(), &version, unknown_length.as_slice()].concat());
    let mut body = LINK_IPV4.to_le_bytes().to_vec();
    body.extend([0; 2]);
    body.extend((SNAP_BYTES as u32).to_le_bytes());
    body.extend(option(IF_NAME, interface.as_bytes()));
    body.extend(option(IF_TSRESOL, &[NANOSECONDS]));
    body.extend(option(OPT_END, &[]));
    [section, block(INTERFACE, &body)].concat()
}

fn packet(at_ns: u64, bytes: &[u8], comment: &str) -> Vec<u8> {
    let kept = &bytes[..bytes.len().min(SNAP_BYTES)];
    let mut body = Vec::new();
    for word in [0, (at_ns >> 32) as u32, at_ns as u32, kept.len() as u32, bytes.len() as u32] {
        body.extend(word.to_le_bytes());
    }
    body.extend(padded(kept));
    body.extend(option(OPT_COMMENT, comment.as_bytes()));
    body.extend(option(OPT_END, &[]));
    block(PACKET, &body)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes(), length.as_slice(), body, &length].concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    [&code.to_le_bytes(), (value.len() as u16).to_le_bytes().as_slice(), &padded(value)].concat()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::Bytes;

    fn change(passage: Passage, bytes: usize) -> Change {
        Change { passage, since: Instant::from_nanos(1_000_000_000), bytes: Bytes(vec![0x45; bytes]) }
    }

    #[test]
    fn a_packet_is_a_block_with_its_time_length_and_comment() {
        // type, length, interface, high and low half of the time, 188 bytes kept of 1500
        let block = packet(0x0000_0001_0000_0002, &[0x45; 1500], "held");
        let words: Vec<u32> = block.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        assert_eq!(words[..7], [6, block.len() as u32, 0, 1, 2, 188, 1500]);
        assert_eq!(block.len(), 8 + 20 + 188 + 8 + 4 + 4);
        assert_eq!(&block[216..228], b"\x01\0\x04\0held\0\0\0\0");
        assert_eq!(words.last(), Some(&(block.len() as u32)));
    }

    #[test]
    fn the_comment_is_the_step_and_the_waiting_time() {
        let now = Instant::from_nanos(1_420_000_000);
        let text = |passage| comment(now, &change(passage, 20));
        assert_eq!(text(Passage::Held), "held");
        assert_eq!(text(Passage::SentOn), "sent on after 0.420000 s");
        assert_eq!(text(Passage::GivenUp), "given up after 0.420000 s");
    }

    #[test]
    fn a_restarted_daemon_begins_a_section_and_a_full_disk_is_counted() {
        let path = std::env::temp_dir().join(format!("manet-held-{}.pcapng", std::process::id()));
        for _ in 0..2 {
            let mut capture = HeldCapture::open(Some(&path), "manet0", 5).unwrap();
            capture.record(Instant::from_nanos(7), &change(Passage::Held, 20));
        }
        let written = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (once, again) = written.split_at(written.len() / 2);
        assert_eq!((once, &once[..4]), (again, SECTION.to_le_bytes().as_slice()));
        let mut full = HeldCapture::open(Some(Path::new("/dev/full")), "manet0", 0).unwrap();
        full.record(Instant::ZERO, &change(Passage::Held, 20));
        assert_eq!(full.lost, 2);
    }
}
