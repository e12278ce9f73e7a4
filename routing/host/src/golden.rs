//! The golden examples formats/examples/routing.*, as the host reads and writes them; Python reads the same files.
//! `UPDATE=1 cargo test -p manet-routing-host golden` rewrites the files that the host writes; review the diff.

use crate::capture::HeldCapture;
use crate::config::{FeedbackSource, Loaded};
use crate::notes::{self, Notes};
use crate::toy::Toy;
use crate::{replay, status, tcp_packet};
use manet_engine::{Duration, Instant};
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::status::{NeighbourStatus, RouteStatus};
use manet_routing::{Bytes, Counters, Held, Output, Route, Status};
use serde_json::json;
use std::net::Ipv4Addr;
use std::path::PathBuf;

const US: Ipv4Addr = tcp_packet::SOURCE;
const NEXT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const FAR: Ipv4Addr = tcp_packet::DESTINATION;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../formats/examples").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap()
}

fn check(name: &str, written: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(example(name), written).unwrap();
    }
    assert_eq!(written, read(name), "{name}; if that is meant: UPDATE=1 cargo test -p manet-routing-host golden");
}

#[test]
fn the_example_configuration_is_accepted() {
    let loaded = Loaded::<Toy>::from_file(&example("routing.config.json")).unwrap();
    let config = loaded.config;
    assert_eq!((config.interface.as_str(), config.tun.as_str(), config.quickack), ("wlan0", "manet0", true));
    assert_eq!((config.node.number, config.node.address, config.node.mac), (1, US, [2, 0, 0, 0, 0, 1]));
    assert_eq!(config.node.wires, [(Ipv4Addr::new(192, 168, 1, 0), 30)]);
    assert_eq!(config.feedback, FeedbackSource::Medium("/run/manet/feedback/sta1.sock".into()));
    assert!(config.node.feedback && !config.node.restarted);
    assert_eq!(config.epoch_ns, 1_700_000_000_000_000_000);
}

#[test]
fn an_answer_to_status_is_the_golden_one() {
    let (mut machine, mut host) = (Counters::default(), Counters::default());
    machine.add("rreq-sent", 2);
    host.add("routes-set", 1);
    let route = RouteStatus {
        destination: FAR,
        prefix: 32,
        via: NEXT,
        hops: 2,
        state: "valid",
        sequence: Some(7),
        expires_s: Some(9.5),
        precursors: vec![NEXT],
        path: Vec::new(),
    };
    let status = Status {
        sequence: Some(3),
        routes: vec![route],
        neighbours: vec![NeighbourStatus { address: NEXT, state: "heard", expires_s: None }],
        held: 1,
        counters: machine,
        details: json!({"rreq_id": 2}),
    };
    let answer = status::answer("aodv", US, 12_000_000_000, &status, &host);
    check("routing.status.json", &format!("{answer:#}\n"));
}

#[test]
fn notes_are_the_golden_ones() {
    let mut notes = Notes::open(None, 1_000_000_000).unwrap();
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let route = Route::host(FAR, NEXT, 2);
    let dead = tcp_packet::packet(&tcp_packet::TCP);
    let (about, value, and) = notes::about_packet(&ipv4::Packet::parse(&dead).unwrap());
    let lines = [
        notes.write(at(0), "started", US, 0, &[]),
        notes.write(at(5), "discovery", FAR, 1, &[]),
        notes.write(at(9), "route", FAR, u64::from(route.hops), &notes::about_route(&route)),
        notes.write(at(20), "link-broken", NEXT, 1, &[]),
        notes.write(at(20), "lost", FAR, 0, &[("prefix", json!(32))]),
        notes.write(at(21), "held", about, value, &and),
        notes.write(at(400), "restored", about, value, &and),
        notes.write(at(900), "no-route", FAR, 1, &[]),
        notes.write(at(900), "unreachable", about, value, &and),
    ];
    check("routing.notes.jsonl", &lines.concat());
}

#[test]
fn a_capture_of_held_packets_is_the_golden_one() {
    let path = std::env::temp_dir().join(format!("manet-golden-{}.pcapng", std::process::id()));
    // ports 5001 and 80, sequence number 258; 1000 bytes of data
    let mut tcp = vec![0x13, 0x89, 0, 80, 0, 0, 1, 2, 0, 0, 0, 0, 5 << 4, 0x10, 0, 0, 0, 0, 0, 0];
    tcp.resize(1020, 0);
    let packet = |identification| {
        let (tos, dont_fragment, ttl, protocol, source, destination) = (0, true, 64, protocol::TCP, US, FAR);
        let header = ipv4::Repr { tos, identification, dont_fragment, ttl, protocol, source, destination };
        Bytes(header.packet(&tcp))
    };
    let mut capture = HeldCapture::open(Some(&path), "manet0", 1_700_000_000_000_000_000).unwrap();
    let mut held = Held::new(64, 64, Duration::from_secs(30));
    held.keep_journal();
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let mut note = |held: &mut Held, ms| held.take_journal().iter().for_each(|change| capture.record(at(ms), change));
    for n in 1..=2 {
        held.hold(at(1000 * n), FAR, packet(n as u16));
        note(&mut held, 1000 * n);
    }
    held.give_up(FAR, |bytes| *bytes == packet(1));
    note(&mut held, 2200);
    held.take(FAR);
    note(&mut held, 2420);
    let written = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let golden = example("routing.held.pcapng");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &written).unwrap();
    }
    assert!(
        std::fs::read(&golden).unwrap() == written,
        "if that is meant: UPDATE=1 cargo test -p manet-routing-host golden"
    );
}

#[test]
fn the_example_event_log_is_replayed_run_by_run() {
    let loaded = Loaded::<Toy>::from_file(&example("routing.config.json")).unwrap();
    let mut outputs = Vec::new();
    let mut put = |at: Instant, output: Output| outputs.push((at.as_nanos() / 1_000_000, output));
    replay::play(&loaded, read("routing.events.jsonl").as_bytes(), &mut put).unwrap();
    let sent: Vec<(u64, String)> = outputs
        .into_iter()
        .map(|(ms, output)| match output {
            Output::Control { bytes, .. } => (ms, String::from_utf8(bytes.0).unwrap()),
            Output::Unreachable { .. } => (ms, "unreachable".to_owned()),
            other => panic!("{other:?}"),
        })
        .collect();
    // the first run was killed within a line after its packet at 1500 ms; the second starts as restarted
    let expected = [(1000, "hello"), (1500, "unreachable"), (1000, "again"), (1200, "goodbye")];
    assert_eq!(sent, expected.map(|(ms, what)| (ms, what.to_owned())));
}
