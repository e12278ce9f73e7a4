//! FQ-CoDel in the medium: delay under load, drops and marks, aggregates, airtime, replay.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::config::{Config, Loaded};
use manet_medium::fate::DropReason;
use manet_medium::mac::Dest;
use manet_medium::phy::FrameKind;
use manet_medium::sim::{self, SimResult};
use manet_medium::{Input, Medium, Output, StationId};
use serde_json::{json, Value};
use std::collections::HashMap;

/// Two hops of `radio` with more load than they carry, and a sparse flow beside it.
fn loaded_chain(radio: &str, queue: Value) -> Loaded {
    loaded(&chain(3, 50.0), |j| {
        j["radio"] = radio.into();
        j["queue"] = queue;
        let route = json!(["sta1", "sta2", "sta3"]);
        j["traffic"] = json!([
            {"from": "sta1", "to": "sta3", "kind": "cbr", "bytes": 1500, "rate_bps": 60e6, "route": route},
            {"from": "sta1", "to": "sta3", "kind": "cbr", "bytes": 100, "rate_bps": 8e3, "route": route},
        ]);
        (j["warmup_s"], j["duration_s"]) = (1.0.into(), 2.0.into());
    })
}

fn run(loaded: &Loaded) -> (SimResult, Vec<AirRow>) {
    let mut rows = Vec::new();
    let result = sim::run(loaded, standing(loaded), Some(&mut |row: &AirRow| rows.push(row.clone())));
    (result, rows)
}

fn fq_codel() -> Value {
    json!({"discipline": "fq-codel"})
}

fn drops(rows: &[AirRow], wanted: DropReason) -> u64 {
    rows.iter().filter(|row| matches!(row, AirRow::Drop { reason, .. } if *reason == wanted)).count() as u64
}

// A full queue of 1000 packets of 1500 bytes at 1 to 30 Mbit/s is 0.4 to 12 s of delay; a sparse flow waits for its turn only: an
// A-MPDU (5.5 ms) or a frame of the other flow for each hop, and the contention of two stations
#[test]
fn a_sparse_flow_does_not_wait_behind_a_bulk_flow() {
    for (radio, most_us) in [("dot11n-ht20.toml", 40e3), ("dot11b-11m.toml", 40e3)] {
        let delay_us = |queue| run(&loaded_chain(radio, queue)).0.flows[1].mean_delay_us;
        let (long, fair) = (delay_us(json!({"packets": 1000})), delay_us(fq_codel()));
        assert!(fair > 0.0 && fair < most_us && long > 5.0 * fair, "{radio}: drop-tail {long} us, fq-codel {fair} us");
    }
}

#[test]
fn drops_have_their_reasons_and_counters() {
    let (result, rows) = run(&loaded_chain("dot11n-ht20.toml", fq_codel()));
    let at = |station: &str| &result.stations[station];
    let after_warmup = |row: &&AirRow| matches!(row, AirRow::Drop { at, .. } if at.as_secs_f64() >= 1.0);
    let late: Vec<AirRow> = rows.iter().filter(after_warmup).cloned().collect();
    let counted = |of: fn(&manet_medium::counters::Counters) -> u64| result.stations.values().map(of).sum::<u64>();
    assert_eq!(counted(|c| c.codel), drops(&late, DropReason::Codel));
    assert_eq!(counted(|c| c.overlimit), drops(&late, DropReason::Overlimit));
    assert!(at("sta1").codel > 0 && at("sta1").queue_full == 0, "{:?}", at("sta1"));
    let json = serde_json::to_value(at("sta1")).unwrap();
    assert!(json["codel"].as_u64() == Some(at("sta1").codel) && json.get("ce_marked").is_none(), "{json}");
}

// a packet that was dropped is never sent, and each one enters once
#[test]
fn each_packet_is_sent_dropped_or_left_over() {
    let (_, rows) = run(&loaded_chain("dot11n-ht20.toml", fq_codel()));
    let mut ends: HashMap<u64, u32> = HashMap::new();
    for row in &rows {
        match row {
            AirRow::Enqueue { packet, .. } => assert_eq!(ends.insert(*packet, 0), None),
            AirRow::Drop { packet, reason: DropReason::Codel | DropReason::Overlimit, .. } => {
                *ends.get_mut(packet).unwrap() += 1
            }
            AirRow::Tx { frame, .. } if frame.kind == FrameKind::Data => {
                assert_eq!(ends[&frame.packet_id()], 0, "sent after its drop");
            }
            _ => {}
        }
    }
    assert!(ends.values().all(|drops| *drops <= 1));
}

// the whole A-MPDU is of one receiver, in the order of the queue's turns: the aggregates stay as long as those of drop-tail
#[test]
fn aggregates_are_filled_from_the_flows_of_one_peer() {
    let mbps = |queue| {
        let (result, rows) = run(&loaded(&chain(2, 20.0), |j| {
            j["radio"] = "dot11n-ht20.toml".into();
            j["queue"] = queue;
            let flow = json!({"from": "sta1", "to": "sta2", "kind": "cbr", "bytes": 1500, "rate_bps": 45e6});
            j["traffic"] = json!([flow, flow]);
            (j["warmup_s"], j["duration_s"]) = (0.5.into(), 1.0.into());
        }));
        let of_64 = rows.iter().filter(|row| matches!(row, AirRow::Tx { place: Some((1, 20..)), .. })).count();
        assert!(of_64 > 50, "{of_64} A-MPDUs of 20 or more");
        result.flows.iter().map(|flow| flow.throughput_bps / 1e6).collect::<Vec<f64>>()
    };
    let (plain, fair) = (mbps(json!({"packets": 200})), mbps(fq_codel()));
    let sum = |flows: &[f64]| flows.iter().sum::<f64>();
    assert!((sum(&fair) / sum(&plain) - 1.0).abs() < 0.03, "{plain:?} {fair:?}");
    assert!((fair[0] / fair[1] - 1.0).abs() < 0.03, "{fair:?}");
}

// net/mac80211/tx.c, ieee80211_next_txq: every second frame to sta3 is lost and sent again. Drop-tail serves packets as they come, and a
// frame after RTS is tried 4 times at most (long retry limit): 1 + 1/2 + 1/4 + 1/8 = 1.875 tries a packet in place of one. With airtime
// fairness both take the same
#[test]
fn a_lossy_neighbour_takes_no_more_than_its_share_of_the_air() {
    let share = |queue| {
        let (_, rows) = run(&loaded(&[[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], |j| {
            j["radio"] = "dot11b-11m.toml".into();
            j["queue"] = queue;
            j["links"] = json!([{"from": "sta1", "to": "sta3", "error_rate": 0.5}]);
            let flow =
                |to| json!({"from": "sta1", "to": to, "kind": "cbr", "bytes": 1500, "rate_bps": 8e6, "jitter": true});
            j["traffic"] = json!([flow("sta2"), flow("sta3")]);
            j["duration_s"] = 20.0.into();
        }));
        let mut airtime_s = [0.0; 2];
        for row in &rows {
            if let AirRow::Tx { frame, .. } = row {
                if let (FrameKind::Data, Dest::Station(to)) = (frame.kind, frame.dest) {
                    airtime_s[usize::from(to - 1)] += frame.airtime.as_secs_f64();
                }
            }
        }
        airtime_s[1] / airtime_s[0]
    };
    let (plain, fair) = (share(json!({"packets": 50})), share(fq_codel()));
    assert!((1.7..2.05).contains(&plain) && (0.97..1.03).contains(&fair), "{plain} {fair}");
}

#[test]
fn a_run_is_repeated_exactly_and_the_seed_perturbs_the_hash() {
    let rows = |seed: u64| {
        let mut loaded = loaded_chain("dot11n-ht20.toml", fq_codel());
        (loaded.config.seed, loaded.config.duration_s) = (seed, Some(0.5));
        format!("{:?}", run(&loaded).1)
    };
    assert_eq!(rows(1), rows(1));
    assert_ne!(rows(1), rows(2));
}

/// An Ethernet frame from sta1 to sta2 with an IPv4 header with ECT(0), UDP ports and 1400 bytes.
fn ect_frame() -> Vec<u8> {
    let mut frame =
        vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0x02, 0x05, 0x94, 0, 7, 0, 0, 64, 17, 0, 0];
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0x14, 0x51, 0x05, 0x80, 0, 0]);
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.resize(14 + 1428, 0);
    frame
}

fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

// RFC 8290, section 5.2.6: a marked packet arrives with CE and a right checksum, and nothing is dropped as long as marks can be
// given
#[test]
fn packets_that_are_capable_of_ecn_arrive_marked() {
    let loaded = loaded(&chain(2, 50.0), |j| {
        j["radio"] = "dot11b-11m.toml".into();
        j["queue"] = fq_codel();
    });
    let mut medium = Medium::new(&loaded, standing(&loaded));
    let (mut arrived, mut marked) = (0, 0);
    for n in 0..2000 {
        // 1428 bytes each millisecond are 11 Mbit/s of load, twice what 802.11b carries
        let now = Instant::ZERO + Duration::from_millis(n);
        while let Some(at) = medium.next_timeout().filter(|at| *at < now) {
            medium.handle_timeout(at);
        }
        medium.handle(now, Input::Packet { station: StationId(0), frame: ect_frame() });
        while let Some(output) = medium.poll_output() {
            if let Output::Deliver { packet, .. } = output {
                arrived += 1;
                assert_eq!(checksum(&packet.ethernet[14..34]), 0);
                marked += u64::from(packet.ethernet[15] == 0x03);
            }
        }
    }
    let counters = medium.counters(StationId(0));
    assert!(arrived > 700 && marked > 10, "{arrived} {marked}");
    assert!(counters.ce_marked.abs_diff(marked) <= 1, "one may be on the air: {counters:?}");
    assert_eq!((counters.codel, counters.overlimit, counters.queue_full), (0, 0, 0));
}

#[test]
fn radios_of_hwsim_refuse_it() {
    let stations = json!([{"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0, 0, 0]}]);
    let text =
        json!({"format": "manet-medium/1", "radio": "x.toml", "stations": stations, "hwsim": {}, "queue": fq_codel()});
    let radio = loaded(&chain(1, 1.0), |_| ()).radio;
    let refused = Loaded::new(Config::parse(&text.to_string()).unwrap(), radio).unwrap_err().to_string();
    assert!(refused.starts_with("key \"queue.discipline\": \"fq-codel\" may hold 8192 packets"), "{refused}");
}
