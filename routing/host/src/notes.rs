//! Notes: JSON lines about events of routes and packets (formats/routing.md), for a file and for followers.

use crate::error::{HostError, Result};
use manet_engine::Instant;
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::{Note, Route};
use serde_json::{json, Value};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;

/// The writer of notes.
pub struct Notes {
    file: Option<File>,
    /// CLOCK_REALTIME of the daemon's instant 0, since `epoch_ns` of CONFIG.
    offset_ns: i64,
    /// Lines that could not be written.
    pub lost: u64,
}

impl Notes {
    /// Appends to `path`; without a path notes only go to followers. `offset_ns`: see [`Self::time`]. Fails if the file
    /// cannot be opened.
    pub fn open(path: Option<&Path>, offset_ns: i64) -> Result<Self> {
        let file = path.map(|p| append_to("notes", p)).transpose()?;
        Ok(Self { file, offset_ns, lost: 0 })
    }

    /// `at` in nanoseconds since `epoch_ns` of CONFIG: `at` plus `offset_ns`.
    pub fn time(&self, at: Instant) -> i64 {
        self.offset_ns.saturating_add_unsigned(at.as_nanos())
    }

    /// Writes a note at once, so that none is missing after a kill, and returns its line. `and`: further keys.
    pub fn write(&mut self, at: Instant, event: &str, about: Ipv4Addr, value: u64, and: &[(&str, Value)]) -> String {
        let mut note = json!({"t_ns": self.time(at), "event": event, "about": about, "value": value});
        for (key, value) in and {
            note[*key] = value.clone();
        }
        let line = format!("{note}\n");
        if self.file.as_mut().is_some_and(|f| f.write_all(line.as_bytes()).is_err()) {
            self.lost += 1;
        }
        line
    }
}

/// Opens a file of CONFIG for appending. `key`: its name in CONFIG. Fails with the key and the path.
pub fn append_to(key: &str, path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|e| HostError(format!("key \"{key}\": {}: {e}; does the folder exist?", path.display())))
}

/// The further keys of a `route` note.
pub fn about_route(route: &Route) -> [(&'static str, Value); 2] {
    [("via", json!(route.via)), ("prefix", json!(route.prefix))]
}

/// The values of an `unreachable` note: destination, protocol, and the keys source, ports and sequence number.
pub fn about_packet(packet: &ipv4::Packet) -> (Ipv4Addr, u64, Vec<(&'static str, Value)>) {
    let mut and = vec![("source", json!(packet.source()))];
    let (kind, payload) = (packet.protocol(), packet.payload());
    if let ([a, b, c, d, rest @ ..], protocol::TCP | protocol::UDP) = (payload, kind) {
        and.push(("ports", json!([u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])])));
        if let ([s, e, q, n, ..], protocol::TCP) = (rest, kind) {
            and.push(("seq", json!(u32::from_be_bytes([*s, *e, *q, *n]))));
        }
    }
    (packet.destination(), u64::from(kind), and)
}

/// The further keys of a machine's own note (in design B the machine notes its routes itself).
pub fn about_note(note: &Note) -> Vec<(&'static str, Value)> {
    let dead = note.packet.as_ref().and_then(|p| ipv4::Packet::parse(p)).map(|p| about_packet(&p).2);
    let via = note.via.map(|via| ("via", json!(via)));
    // design B has host routes only
    let prefix = matches!(note.event.as_str(), "route" | "lost").then(|| ("prefix", json!(32)));
    dead.into_iter().flatten().chain(via).chain(prefix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_packet::{self, DESTINATION, SOURCE, TCP};
    use manet_routing::{Bytes, Output};

    fn about(note: Note) -> Value {
        about_note(&note)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    #[test]
    fn notes_of_design_b_have_the_same_keys_as_the_hosts_own() {
        let tcp = tcp_packet::packet(&TCP);
        let of = |event: &str| match Output::note(event, DESTINATION, 6) {
            Output::Note(note) => note,
            _ => unreachable!("a note is a note"),
        };
        let dead = Note { packet: Some(Bytes(tcp)), ..of("unreachable") };
        assert_eq!(about(dead), json!({"source": SOURCE, "ports": [5001, 80], "seq": 258}));
        let route = Note { via: Some(Ipv4Addr::new(10, 0, 0, 2)), ..of("route") };
        assert_eq!(about(route), json!({"via": "10.0.0.2", "prefix": 32}));
        assert_eq!(about(of("lost")), json!({"prefix": 32}));
        let malformed = Note { packet: Some(Bytes(vec![0x45; 7])), ..of("unreachable") };
        assert_eq!(about(malformed), json!({}));
    }

    #[test]
    fn a_packet_cut_in_its_tcp_header_yields_the_keys_that_it_has() {
        let keys = |payload: &[u8]| -> Vec<&str> {
            let packet = tcp_packet::packet(payload);
            let (_, _, and) = about_packet(&ipv4::Packet::parse(&packet).unwrap());
            and.into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(keys(&[0; 3]), ["source"]);
        assert_eq!(keys(&[0; 7]), ["source", "ports"]);
        assert_eq!(keys(&[0; 8]), ["source", "ports", "seq"]);
    }

    #[test]
    fn notes_are_written_at_once_and_a_full_disk_is_counted() {
        let path = std::env::temp_dir().join(format!("manet-notes-{}.jsonl", std::process::id()));
        let mut notes = Notes::open(Some(&path), -5).unwrap();
        let line = notes.write(Instant::from_nanos(7), "started", Ipv4Addr::LOCALHOST, 0, &[]);
        assert!(line.contains("\"t_ns\":2,"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), line);
        std::fs::remove_file(&path).unwrap();
        let mut full = Notes::open(Some(Path::new("/dev/full")), 0).unwrap();
        full.write(Instant::ZERO, "started", Ipv4Addr::LOCALHOST, 0, &[]);
        assert_eq!(full.lost, 1);
    }
}
