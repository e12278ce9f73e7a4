//! A-MPDUs, Block Acks and rate control on the air.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::config::Loaded;
use manet_medium::counters::Counters;
use manet_medium::fate::{DropReason, Fate};
use manet_medium::mac::{Dest, Frame};
use manet_medium::phy::FrameKind;
use manet_medium::rate_tables::RateTables;
use manet_medium::{sim, Input, Medium, Output, StationId};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};

fn saturated(positions: &[[f64; 2]], overrides: Value, change: impl FnOnce(&mut Value)) -> Loaded {
    loaded(positions, |j| {
        j["radio"] = "dot11n-ht20.toml".into();
        j["radio_overrides"] = overrides;
        j["queue"] = json!({"packets": 200});
        j["traffic"] = json!([{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500}]);
        j["duration_s"] = 1.0.into();
        change(j);
    })
}

struct Row {
    at: u64,
    frame: Frame,
    fate: Option<Fate>,
    place: Option<(u8, u8)>,
    sinr_db: Option<f64>,
}

struct Run {
    tx: Vec<Row>,
    /// Packets in the order of their delivery.
    delivered: Vec<u64>,
    mbps: f64,
    counters: BTreeMap<String, Counters>,
    rates: RateTables,
}

fn run(loaded: &Loaded) -> Run {
    let (mut tx, mut delivered) = (Vec::new(), Vec::new());
    let mut on_air = |record: &AirRow| match record {
        AirRow::Tx { at, frame, fate, place, sinr_db, .. } => {
            let (at, frame) = (at.as_nanos(), frame.clone());
            tx.push(Row { at, frame, fate: *fate, place: *place, sinr_db: *sinr_db });
        }
        AirRow::Deliver { packet, .. } => delivered.push(*packet),
        _ => {}
    };
    let result = sim::run(loaded, standing(loaded), Some(&mut on_air));
    let mbps = result.flows[0].throughput_bps / 1e6;
    Run { tx, delivered, mbps, counters: result.stations, rates: result.rates }
}

fn mbps(positions: &[[f64; 2]], overrides: Value) -> f64 {
    run(&saturated(positions, overrides, |_| ())).mbps
}

#[test]
fn an_a_mpdu_fills_its_5_484_ms_and_has_one_row_for_each_mpdu() {
    let run = run(&saturated(&chain(2, 20.0), json!({}), |_| ()));
    let data: Vec<_> = run.tx.iter().filter(|row| row.frame.kind == FrameKind::Data).take(28).collect();
    // a subframe of 1538 bytes takes 1544: 28 of them and 36 us of preamble are 5.36 ms at 65 Mbit/s, 29 are 5.55
    assert!(data.iter().zip(1..).all(|(row, n)| row.place == Some((n, 28)) && row.frame.bytes == 1538));
    assert!(data.windows(2).all(|w| w[0].at + w[0].frame.airtime.as_nanos() == w[1].at));
    let airtime: u64 = data.iter().map(|row| row.frame.airtime.as_nanos()).sum();
    assert_eq!(airtime, 36_000 + 4_000 * (16u64 + 6 + 8 * (27 * 1544 + 4 + 1538)).div_ceil(260));
    let answer = run.tx.iter().find(|row| row.frame.kind == FrameKind::Ba).unwrap();
    assert_eq!(
        (answer.frame.bytes, answer.frame.airtime.as_nanos(), answer.frame.mode.rate_bps()),
        (32, 32_000, 24_000_000)
    );
    assert_eq!(answer.at, data[0].at + airtime + 16_000 + 67); // SIFS, and 20 m
}

#[test]
fn a_saturated_sender_reaches_the_closed_form() {
    // AIFS 43, mean backoff 67.5, A-MPDU, SIFS 16, Block Ack 32 (MCS 0: 68 at 6 Mbit/s)
    let exchange_us = |ppdu: f64, ba: f64| 43.0 + 67.5 + ppdu + 16.0 + ba;
    for (overrides, packets, us) in [
        (json!({}), 28.0, exchange_us(5360.0, 32.0)),
        (json!({"aggregation": 4}), 4.0, exchange_us(800.0, 32.0)),
        (json!({"aggregation": {"max_bytes": 16_000}}), 10.0, exchange_us(1940.0, 32.0)),
        (json!({"mcs": 0}), 2.0, exchange_us(3840.0, 68.0)),
    ] {
        let (ours, expected) = (mbps(&chain(2, 20.0), overrides.clone()), packets * 12_000.0 / us);
        assert!((ours / expected - 1.0).abs() < 0.02, "{overrides}: {ours} {expected}");
    }
}

#[test]
fn mpdus_of_an_a_mpdu_are_lost_one_by_one_and_packets_arrive_once_in_order() {
    // 23.4 dB at 250 m: the model has some 0.6
    let run = run(&saturated(&chain(2, 250.0), json!({}), |_| ()));
    let mut mixed = 0;
    let mut ppdu: Vec<bool> = Vec::new();
    for row in run.tx.iter().filter(|row| row.frame.kind == FrameKind::Data) {
        if row.place.is_none_or(|(n, _)| n == 1) {
            mixed += u32::from(ppdu.contains(&true) && ppdu.contains(&false));
            ppdu.clear();
        }
        ppdu.push(row.fate == Some(Fate::Delivered));
    }
    assert!(mixed > 50, "{mixed}");
    assert!(run.delivered.windows(2).all(|w| w[0] < w[1]));
    let sender = &run.counters["sta1"];
    let share = sender.fate_weak as f64 / sender.tx_data as f64;
    assert!((0.2..0.7).contains(&share), "{share}");
    assert!(run.tx.iter().any(|row| row.frame.attempt > 1 && row.frame.retry));
}

#[test]
fn the_rows_of_an_a_mpdu_have_its_sinr_and_the_tables_its_counts() {
    // 23.4 dB at 250 m, noise alone: -96 dBm (see above)
    let run = run(&saturated(&chain(2, 250.0), json!({"rate_control": "minstrel-ht"}), |_| ()));
    let data: Vec<_> = run.tx.iter().filter(|row| row.frame.kind == FrameKind::Data).collect();
    let decoded = data.iter().filter(|row| row.fate == Some(Fate::Delivered));
    assert!(decoded.clone().count() > 1000 && decoded.clone().all(|row| row.sinr_db.is_some()));
    assert!(data.iter().filter_map(|row| row.sinr_db).all(|db| (db - 23.4).abs() < 0.1));
    let table = &run.rates["sta1"]["sta2"];
    let logged = |rate_bps| data.iter().filter(move |row| row.frame.mode.rate_bps() == rate_bps);
    let received = |rate_bps| logged(rate_bps).filter(|row| row.fate == Some(Fate::Delivered)).count() as i64;
    let (mut sent, mut acknowledged) = (0, 0);
    for row in table {
        // the chain in progress at the end is not reported: at most one A-MPDU with its repetitions
        assert!((logged(row.rate_bps).count() as i64 - row.mpdus as i64).abs() <= 64 * 7, "{row:?}");
        assert!(received(row.rate_bps) - row.acknowledged as i64 <= 64 * 7 && row.acknowledged <= row.mpdus, "{row:?}");
        (sent, acknowledged) = (sent + row.mpdus, acknowledged + row.acknowledged);
    }
    assert!(acknowledged > 1000 && acknowledged < sent);
    let role = |letter| table.iter().filter(|row| row.roles.contains(letter)).collect::<Vec<_>>();
    assert!("ABCDP".chars().all(|letter| role(letter).len() == 1), "{table:?}");
    let (best, second) = (role('A')[0], role('B')[0]);
    assert!(best.throughput_bps >= second.throughput_bps && best.mode.as_ref().unwrap().starts_with("ht-mcs"));
    assert!(table.iter().all(|row| row.success.is_none_or(|p| (0.0..=1.0).contains(&p))));
}

#[test]
fn interference_lowers_the_sinr_of_the_mpdus_that_it_covers_only() {
    // a second sender at 250 m from the receiver that does not hear the first
    let positions = [[0.0, 0.0], [200.0, 0.0], [600.0, 0.0], [450.0, 0.0]];
    let traffic = json!([
        {"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500},
        {"from": "sta3", "to": "sta4", "kind": "cbr", "bytes": 200, "rate_bps": 4e5}
    ]);
    let run = run(&saturated(&positions, json!({"mcs": 2}), |j| j["traffic"] = traffic));
    let mut ppdus: Vec<Vec<f64>> = Vec::new();
    for row in run.tx.iter().filter(|row| row.frame.kind == FrameKind::Data && row.frame.from == 0) {
        let Some(db) = row.sinr_db else { continue };
        match row.place {
            Some((n, _)) if n > 1 && !ppdus.is_empty() => ppdus.last_mut().unwrap().push(db),
            _ => ppdus.push(vec![db]),
        }
    }
    let (clear, spread) = (ppdus.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max), |ppdu: &Vec<f64>| {
        ppdu.iter().copied().fold(f64::NEG_INFINITY, f64::max) - ppdu.iter().copied().fold(f64::INFINITY, f64::min)
    });
    let partly = ppdus.iter().filter(|ppdu| spread(ppdu) > 1.0).count();
    assert!(partly > 10, "{partly} of {}", ppdus.len());
    assert!(ppdus.iter().flatten().all(|db| *db <= clear + 1e-9));
}

#[test]
fn an_error_rate_strikes_each_mpdu_and_lost_packets_are_passed_by_a_request() {
    let links = json!([{"from": "sta1", "to": "sta2", "error_rate": 0.5}]);
    let run = run(&saturated(&chain(2, 20.0), json!({"short_retry_limit": 2}), |j| j["links"] = links));
    let sender = &run.counters["sta1"];
    let share = sender.fate_error as f64 / sender.tx_data as f64;
    assert!((share - 0.5).abs() < 0.05, "{share}");
    // a quarter of the packets is given up
    let given_up = sender.retry_short as f64 / sender.enqueued as f64;
    assert!((given_up - 0.25).abs() < 0.04 && sender.tx_bar > 10, "{given_up} {}", sender.tx_bar);
    assert!(run.delivered.windows(2).all(|w| w[0] < w[1]));
}

/// 7.9 dB at 80 m: MCS 1 of 80 MHz arrives, a frame at 24 Mbit/s (16-QAM) does not.
#[test]
fn a_weak_link_that_gives_packets_up_goes_on_after_a_request_at_a_rate_that_arrives() {
    for (rate_control, mcs) in [("minstrel-ht", 9), ("arf", 9), ("aarf", 9), ("ideal", 9), ("fixed", 0)] {
        let overrides = json!({"rate_control": rate_control, "mcs": mcs, "short_retry_limit": 3});
        let run = run(&saturated(&chain(2, 80.0), overrides, |j| {
            j["radio"] = "toplinkst-top-5m01.toml".into();
            j["links"] = json!([{"from": "sta1", "to": "sta2", "error_rate": 0.3}]);
        }));
        let requests: Vec<_> = run.tx.iter().filter(|row| row.frame.kind == FrameKind::Bar).collect();
        let arrived = requests.iter().filter(|row| row.fate == Some(Fate::Delivered)).count();
        assert!(requests.len() > 5 && 3 * arrived > requests.len(), "{rate_control}: {arrived} of {}", requests.len());
        let robust = requests.iter().filter(|row| row.frame.mode.rate_bps() < 24_000_000).count();
        assert!(2 * robust > requests.len(), "{rate_control}: {robust} of {}", requests.len());
        assert!(run.mbps > 8.0, "{rate_control}: {}", run.mbps);
    }
}

/// 80 MHz at 200 m: the fast rates lose whole A-MPDUs; the answer to the request, which is sent at a slow rate, is no success of theirs.
#[test]
fn arf_does_not_take_the_answer_to_a_request_for_one_to_the_data() {
    let mbps = |rate_control: &str, request_after_silence: bool| {
        let aggregation = json!({"request_after_silence": request_after_silence});
        let overrides = json!({"rate_control": rate_control, "aggregation": aggregation});
        run(&saturated(&chain(2, 200.0), overrides, |j| j["radio"] = "dot11ac-vht80.toml".into())).mbps
    };
    for rate_control in ["arf", "aarf"] {
        let (with, without) = (mbps(rate_control, true), mbps(rate_control, false));
        assert!(with > 0.9 * without && without > 100.0, "{rate_control}: {with}, {without}");
    }
}

#[test]
fn an_rts_reserves_the_medium_for_an_a_mpdu_and_its_block_ack() {
    let run = run(&saturated(&chain(2, 20.0), json!({"rts_threshold_bytes": 0}), |_| ()));
    let kinds: Vec<_> =
        run.tx.iter().filter(|row| row.place.is_none_or(|(n, _)| n == 1)).map(|row| row.frame.kind).collect();
    assert_eq!(kinds[..4], [FrameKind::Rts, FrameKind::Cts, FrameKind::Data, FrameKind::Ba]);
    let (rts, ba) = (&run.tx[0], run.tx.iter().find(|row| row.frame.kind == FrameKind::Ba).unwrap());
    let reserved_until = rts.at + (rts.frame.airtime + rts.frame.reserves).as_nanos();
    let over = ba.at + ba.frame.airtime.as_nanos();
    assert!(over - reserved_until < 1_000, "{over} {reserved_until}"); // three times the way of 20 m
}

#[test]
fn each_rate_control_finds_the_fast_rate_near_and_a_slow_one_far() {
    for rate_control in ["ideal", "arf", "aarf", "minstrel-ht"] {
        let at = |metres| {
            let config =
                saturated(&chain(2, metres), json!({"rate_control": rate_control}), |j| j["warmup_s"] = 0.5.into());
            run(&config).mbps
        };
        let (near, far) = (at(20.0), at(550.0));
        assert!(near > 57.0, "{rate_control}: {near}");
        // 15.5 dB: MCS 3 (24.4 Mbit/s), MCS 4 (36.6) with losses
        assert!((15.0..40.0).contains(&far), "{rate_control}: {far}");
    }
    assert!(mbps(&chain(2, 550.0), json!({})) < 0.1, "the fixed rate is MCS 7");
}

#[test]
fn a_rate_control_without_aggregation_works_for_every_phy() {
    for profile in ["dot11b-11m", "dot11a-54m", "dot11n-ht40"] {
        let config = |rate_control: &str| {
            saturated(&chain(2, 20.0), json!({"aggregation": false, "rate_control": rate_control}), |j| {
                j["radio"] = format!("{profile}.toml").into();
                j["warmup_s"] = 0.5.into();
            })
        };
        let (ours, fixed) = (run(&config("minstrel-ht")), run(&config("fixed")));
        assert!((ours.mbps / fixed.mbps - 1.0).abs() < 0.03, "{profile}: {} {}", ours.mbps, fixed.mbps);
        assert!(ours.tx.iter().all(|row| row.place.is_none()));
        let modes: std::collections::HashSet<_> =
            ours.tx.iter().filter(|row| row.frame.kind == FrameKind::Data).map(|row| row.frame.mode).collect();
        assert!(modes.len() > 1, "{profile}: it looked around");
    }
}

#[test]
fn two_peers_are_served_in_turn() {
    let config = saturated(&[[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]], json!({}), |j| {
        let to = |name: &str| json!({"from": "sta1", "to": name, "kind": "cbr", "bytes": 1500, "rate_bps": 40e6});
        j["traffic"] = json!([to("sta2"), to("sta3")]);
        j["queue"] = json!({"packets": 100});
    });
    let result = sim::run(&config, standing(&config), None);
    let [a, b] = [0, 1].map(|i| result.flows[i].throughput_bps / 1e6);
    assert!(a + b > 55.0 && (a / b - 1.0).abs() < 0.15, "{a} {b}");
}

#[test]
fn after_a_pause_without_power_agreements_begin_anew_on_either_side() {
    for off in [0, 1] {
        let config = saturated(&chain(2, 250.0), json!({}), |_| ());
        let mut medium = Medium::new(&config, standing(&config));
        let mut delivered: Vec<u64> = Vec::new();
        let mut sent = 0;
        for ms in 0..1000u64 {
            let now = Instant::from_nanos(ms * 1_000_000);
            if ms == 300 || ms == 400 {
                medium.handle(now, Input::Power { station: StationId(off), on: ms == 400 });
            }
            for _ in 0..2 {
                sent += 1;
                let (station, to) = (StationId(0), Some(StationId(1)));
                medium.handle(now, Input::Synthetic { station, to, ip_bytes: 1000, tag: sent });
            }
            while medium.next_timeout().is_some_and(|at| at < now + Duration::from_millis(1)) {
                let at = medium.next_timeout().unwrap();
                medium.handle_timeout(at);
            }
            while let Some(output) = medium.poll_output() {
                if let Output::Deliver { packet, .. } = output {
                    delivered.push(packet.tag);
                }
            }
        }
        assert!(delivered.windows(2).all(|w| w[0] < w[1]), "station {off} off");
        let after = delivered.iter().filter(|tag| **tag > 2 * 450).count();
        assert!(after > 900, "station {off} off: {after}");
        let meanwhile = delivered.iter().filter(|tag| (2 * 301..2 * 399).contains(*tag)).count();
        assert!(off == 1 || meanwhile == 0, "a radio without power sent {meanwhile}");
    }
}

/// 10.24.7.6: an MPDU behind a gap is acknowledged and not delivered yet.
#[test]
fn every_acknowledged_packet_is_delivered_or_has_a_drop_at_the_recipient_that_was_switched_off() {
    let config = saturated(&chain(2, 250.0), json!({}), |_| ());
    let (mut off, mut stopped) = (0, 0);
    for off_us in (100_000..130_000u64).step_by(1_700) {
        let mut medium = Medium::new(&config, standing(&config));
        medium.set_recording(true);
        let (mut acknowledged, mut delivered, mut dropped): (Vec<u64>, BTreeSet<u64>, BTreeSet<u64>) =
            Default::default();
        for us in (0..=off_us + 15_000).step_by(100) {
            let now = Instant::from_nanos(us * 1_000);
            if us == off_us || us == off_us + 5_000 {
                medium.handle(now, Input::Power { station: StationId(1), on: us != off_us });
            }
            let (station, to) = (StationId(0), Some(StationId(1)));
            medium.handle(now, Input::Synthetic { station, to, ip_bytes: 1000, tag: us });
            if us == off_us + 15_000 {
                medium.handle(now, Input::Stop);
            }
            while let Some(at) = medium.next_timeout().filter(|at| *at < now + Duration::from_micros(100)) {
                medium.handle_timeout(at);
            }
            while let Some(output) = medium.poll_output() {
                match output {
                    Output::Acked { packet, .. } => acknowledged.push(packet.id),
                    Output::Air(AirRow::Deliver { packet, .. }) => {
                        assert!(!dropped.contains(&packet), "off at {off_us}: {packet} is delivered after its end");
                        delivered.insert(packet);
                    }
                    Output::Air(AirRow::Drop { station: 1, peer, packet, reason, .. }) => {
                        assert_eq!(peer, Dest::Station(0));
                        assert!(dropped.insert(packet), "off at {off_us}: {packet} ends twice");
                        match reason {
                            DropReason::Off => off += 1,
                            DropReason::Stopped => stopped += 1,
                            _ => panic!("{reason:?} at the recipient"),
                        }
                    }
                    _ => {}
                }
            }
        }
        assert!(acknowledged.len() > 100, "{}", acknowledged.len());
        let lost: Vec<_> = acknowledged.iter().filter(|id| !delivered.contains(id) && !dropped.contains(id)).collect();
        assert!(lost.is_empty(), "off at {off_us}: {lost:?}");
    }
    assert!(off > 10 && stopped > 10, "{off} {stopped}");
}
