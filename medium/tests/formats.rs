//! The golden examples of `formats/examples`, as Rust reads and writes them; `tests/test_formats.py` does the same in
//! Python. `UPDATE=1 cargo test -p manet-medium` rewrites the files that the medium writes, to be reviewed as a diff.

use manet_engine::{mac_text, Duration};
use manet_medium::air_log::AirRow;
use manet_medium::config::{Config, Loaded};
use manet_medium::phy::Radio;
use manet_medium::run_verdict::{report, Evidence, Thresholds};
use manet_medium::wire::feedback::Repr;
use manet_medium::{sim, trace};
use serde_json::{json, Value};
use std::path::PathBuf;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../formats/examples").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap()
}

fn check(name: &str, ours: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(example(name), ours).unwrap();
    }
    assert_eq!(ours, read(name), "{name}; if that is meant: UPDATE=1 cargo test -p manet-medium");
}

#[test]
fn the_air_log_and_the_counters_of_the_example_are_golden() {
    let config = Config::parse(&read("sim.json")).unwrap();
    let profile = std::fs::read_to_string(example("").join(&config.radio)).unwrap();
    let radio = Radio::parse(&profile, &config.radio_overrides).unwrap();
    let loaded = Loaded::new(config, radio).unwrap();
    let names = loaded.station_names();
    let mut log = format!("{}\n", AirRow::CSV_HEADER);
    let mut on_air = |record: &AirRow| {
        record.write_csv(&mut log, |s| names[usize::from(s)]);
        log.push('\n');
    };
    let result = sim::run(&loaded, trace::of_stations(&loaded, None).unwrap(), Some(&mut on_air));
    check("air.csv", &log);
    let counters = json!({"format": "manet-counters/1", "stations": result.stations});
    check("counters.json", &format!("{counters:#}\n"));
}

#[test]
fn a_verdict_is_the_golden_one() {
    let mut evidence = Evidence { stalls: 1, tap_read_drops: 2, cpu_s: 1.5, ..Evidence::default() };
    (evidence.stalled, evidence.longest_stall) = (Duration::from_millis(60), Duration::from_millis(60));
    evidence.model = Duration::from_secs(60);
    for late_us in [20, 40, 40, 90, 7_000] {
        evidence.lateness.record(Duration::from_micros(late_us));
    }
    check("verdict.json", &format!("{:#}\n", report(&evidence, &Thresholds::default())));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// As the example client prints it.
fn printed(message: &Repr) -> Value {
    let mac = |m: &[u8; 6]| mac_text::format(*m);
    let reason = |r: u16| if r == 1 { "short retry limit" } else { "long retry limit" };
    match message {
        Repr::Subscribe { flags } => json!({"type": "subscribe", "flags": flags}),
        Repr::Purge { neighbour, token } => json!({"type": "purge", "neighbour": mac(neighbour), "token": token}),
        Repr::Filter { program } => {
            let le = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
            let instruction = |i: &[u8]| json!([le(&i[..2]), i[2], i[3], le(&i[4..])]);
            json!({"type": "filter", "program": program.chunks(8).map(instruction).collect::<Vec<_>>()})
        }
        Repr::Failed { at_ns, neighbour, reason: why, frame } => json!({"type": "failed", "model_ns": at_ns,
            "neighbour": mac(neighbour), "reason": reason(*why), "frame": hex(frame)}),
        Repr::Purged { token, neighbour, frame } => {
            json!({"type": "purged", "token": token, "neighbour": mac(neighbour), "frame": hex(frame)})
        }
        Repr::PurgeDone { token, count } => json!({"type": "purge_done", "token": token, "count": count}),
        Repr::Overheard { at_ns, transmitter, receiver, frame } => json!({"type": "overheard", "model_ns": at_ns,
            "transmitter": mac(transmitter), "receiver": mac(receiver), "frame": hex(frame)}),
        Repr::Delivered { at_ns, neighbour, retries } => {
            json!({"type": "delivered", "model_ns": at_ns, "neighbour": mac(neighbour), "retries": retries})
        }
        Repr::Error { text } => json!({"type": "error", "text": text}),
    }
}

#[test]
fn link_feedback_messages_are_the_golden_bytes_both_ways() {
    let text = read("feedback.txt");
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(lines.len(), 10, "each of the nine types, and both reasons");
    for line in lines {
        let (bytes, says) = line.split_at(line.find('{').unwrap());
        let digits: String = bytes.split_whitespace().collect();
        let bytes: Vec<u8> =
            (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect();
        let message = Repr::parse(&bytes).unwrap();
        assert_eq!(printed(&message), serde_json::from_str::<Value>(says).unwrap());
        assert_eq!(message.to_vec(), bytes);
    }
}
