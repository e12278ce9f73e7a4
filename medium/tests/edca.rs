//! EDCA in the medium as a whole: packets by their DSCP, each with one end, each category in order, and shares of the air.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::config::Loaded;
use manet_medium::fate::DropReason;
use manet_medium::mac::{Category, Dest};
use manet_medium::phy::FrameKind;
use manet_medium::sim::{self, SimResult};
use manet_medium::{AirRow, Input, Medium, Output, StationId};
use proptest::prelude::*;
use serde_json::{json, Value};
use std::collections::{HashMap, HashSet};

/// EF, AF41, default, CS1.
const DSCPS: [u8; 4] = [46, 34, 0, 8];

/// An Ethernet frame with an IPv4 packet of so many bytes.
fn frame(from: u8, to: Option<u8>, dscp: u8, bytes: usize) -> Vec<u8> {
    let destination = to.map_or([0xff; 6], |to| [2, 0, 0, 0, 0, to + 1]);
    let mut frame = [destination, [2, 0, 0, 0, 0, from + 1]].concat();
    frame.extend([0x08, 0x00, 0x45, dscp << 2]);
    frame.resize(14 + bytes.max(20), 0);
    frame
}

fn edca(n: usize, change: impl FnOnce(&mut Value)) -> Loaded {
    loaded(&chain(n, 20.0), |j| {
        j["radio"] = "dot11n-ht20.toml".into();
        j["radio_overrides"] = json!({"access": "edca"});
        change(j);
    })
}

/// All rows until the medium has nothing more to do before `end`, and those of the stop then.
fn rows(loaded: &Loaded, inputs: Vec<(u64, Input)>, end: Instant) -> Vec<AirRow> {
    let mut medium = Medium::new(loaded, standing(loaded));
    medium.set_recording(true);
    for (at, input) in inputs {
        medium.handle(Instant::from_nanos(at), input);
    }
    while let Some(at) = medium.next_timeout().filter(|at| *at < end) {
        medium.handle_timeout(at);
    }
    medium.handle(end, Input::Stop);
    std::iter::from_fn(|| medium.poll_output())
        .filter_map(|output| match output {
            Output::Air(row) => Some(row),
            _ => None,
        })
        .collect()
}

#[test]
fn a_frame_has_the_category_of_its_packets_dscp_and_arp_is_best_effort() {
    let mut arp = frame(0, None, 0, 28);
    arp[13] = 6;
    let mut inputs: Vec<(u64, Input)> = DSCPS
        .iter()
        .map(|dscp| frame(0, Some(1), *dscp, 100))
        .chain([arp])
        .zip(0..)
        .map(|(frame, n)| (n * 10_000_000, Input::Packet { station: StationId(0), frame }))
        .collect();
    let routing = frame(0, None, 48, 60);
    inputs.push((90_000_000, Input::Packet { station: StationId(0), frame: routing }));
    for (access, wanted) in [
        (
            "edca",
            [
                Category::Voice,
                Category::Video,
                Category::BestEffort,
                Category::Background,
                Category::BestEffort,
                Category::Voice,
            ],
        ),
        ("dcf", [Category::BestEffort; 6]),
    ] {
        let config = edca(2, |j| j["radio_overrides"]["access"] = access.into());
        let rows = rows(&config, inputs.clone(), Instant::from_nanos(1_000_000_000));
        let sent: Vec<Category> = rows
            .iter()
            .filter_map(|row| match row {
                AirRow::Tx { frame, .. } if matches!(frame.kind, FrameKind::Data | FrameKind::Bcast) => {
                    Some(frame.category)
                }
                _ => None,
            })
            .collect();
        assert_eq!(sent, wanted, "{access}");
    }
}

#[derive(Clone, Debug)]
struct Sent {
    at_us: u64,
    from: u8,
    to: Option<u8>,
    dscp: u8,
    bytes: usize,
}

fn packets() -> impl Strategy<Value = Vec<Sent>> {
    let to = prop::option::weighted(0.9, 0..3_u8);
    let one = (0..60_000_u64, 0..3_u8, to, prop::sample::select(DSCPS.to_vec()), 20..1500_usize);
    let sent = |(at_us, from, to, dscp, bytes)| Sent { at_us, from, to, dscp, bytes };
    prop::collection::vec(one.prop_map(sent), 1..150)
}

fn settings() -> impl Strategy<Value = Loaded> {
    let aggregation =
        prop::sample::select(vec![json!(false), json!(true), json!({"max_mpdus": 8, "request_after_silence": true})]);
    let (rts, txop) =
        (prop_oneof![Just(2_000_000_u32), Just(300), Just(0)], prop_oneof![Just(0_u32), Just(600), Just(2080)]);
    let queue = prop_oneof![Just(json!({"packets": 8})), Just(json!({"discipline": "fq-codel"}))];
    (aggregation, rts, txop, queue, 0.0..0.5f64, any::<u32>(), 1..8_u32).prop_map(|(aggregation, rts, txop, queue, error, seed, retries)| {
        edca(3, |j| {
            let voice = json!({"txop_us": txop});
            j["radio_overrides"] = json!({
                "access": "edca", "aggregation": aggregation, "rts_threshold_bytes": rts, "short_retry_limit": retries,
                "access_categories": {"voice": voice},
            });
            j["queue"] = queue;
            j["seed"] = seed.into();
            j["links"] = json!([{"from": "*", "to": "*", "error_rate": error, "frames": "all"}]);
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // a packet has one end: delivered once, or dropped; one whose ACKs were lost may be both. A category keeps its order
    #[test]
    fn each_packet_has_an_end_and_a_category_keeps_its_order(config in settings(), mut packets in packets()) {
        packets.sort_by_key(|sent| sent.at_us);
        packets.retain(|sent| sent.to != Some(sent.from));
        let inputs = packets.iter().map(|sent| {
            let Sent { at_us, from, to, dscp, bytes } = *sent;
            (at_us * 1000, Input::Packet { station: StationId(from.into()), frame: frame(from, to, dscp, bytes) })
        });
        let rows = rows(&config, inputs.collect(), Instant::ZERO + Duration::from_secs(20));
        let mut entered: HashMap<u64, (u16, Dest, Category)> = HashMap::new();
        let (mut delivered, mut dropped): (HashMap<u64, u32>, HashSet<(u64, u16)>) = Default::default();
        let mut last: HashMap<(u16, Dest, Category), u64> = HashMap::new();
        for row in &rows {
            match row {
                AirRow::Enqueue { station, peer, packet, category, .. } => {
                    entered.insert(*packet, (*station, *peer, *category));
                }
                AirRow::Deliver { packet, .. } => {
                    *delivered.entry(*packet).or_default() += 1;
                    let key = entered[packet];
                    if key.1 != Dest::Broadcast {
                        let before = last.insert(key, *packet);
                        prop_assert!(before.is_none_or(|before| before < *packet), "{before:?} before {packet} of {key:?}");
                    }
                }
                AirRow::Drop { station, packet, reason, category, .. } => {
                    // a recipient may wait for an MPDU that was given up until the next packet comes
                    let is_left_over = *reason == DropReason::Stopped && *station == entered[packet].0;
                    prop_assert!(!is_left_over, "{packet} is left over after 20 s");
                    prop_assert_eq!(entered[packet].2, *category);
                    // given up by its sender, and stored by its recipient until the end: not twice at one of them
                    let is_new = dropped.insert((*packet, *station));
                    prop_assert!(is_new, "{packet} is dropped twice at {station}");
                }
                AirRow::Tx { frame, .. } if frame.kind == FrameKind::Data => {
                    prop_assert_eq!(entered[&frame.packet_id()].2, frame.category);
                    prop_assert!(!dropped.contains(&(frame.packet_id(), frame.from)), "sent after its drop");
                }
                AirRow::Tx { .. } | AirRow::Jam { .. } => {}
            }
        }
        for (packet, (station, peer, _)) in entered {
            let up = delivered.get(&packet).copied().unwrap_or(0);
            let is_dropped = [Some(station), peer.station()].into_iter().flatten().any(|at| dropped.contains(&(packet, at)));
            prop_assert!(peer == Dest::Broadcast || up <= 1 && (up == 1 || is_dropped), "{packet}: delivered {up} times");
        }
    }
}

fn shares(overrides: Value, sources: &[(u8, u8)]) -> (SimResult, f64) {
    let config = edca(3, |j| {
        j["radio_overrides"] = overrides;
        j["radio_overrides"]["access"] = "edca".into();
        j["radio_overrides"]["aggregation"] = false.into();
        let source = |(from, dscp): &(u8, u8)| json!({"from": format!("sta{from}"), "to": "sta3", "kind": "saturated", "bytes": 500, "dscp": dscp});
        j["traffic"] = sources.iter().map(source).collect();
        (j["warmup_s"], j["duration_s"]) = (0.5.into(), 4.0.into());
    });
    let result = sim::run(&config, standing(&config), None);
    let share = result.flows[0].throughput_bps / result.flows.iter().map(|flow| flow.throughput_bps).sum::<f64>();
    (result, share)
}

#[test]
fn a_higher_category_has_the_larger_share_in_one_station_and_in_two() {
    let no_txop = json!({"access_categories": {"voice": {"txop_us": 0}}});
    for second in [1, 2] {
        let (result, voice) = shares(no_txop.clone(), &[(1, 46), (second, 0)]);
        assert!((0.8..1.0).contains(&voice), "{voice}");
        // only within a station
        let collisions = result.stations["sta1"].internal_collision;
        assert_eq!(collisions > 100, second == 1, "{collisions}");
    }
    let (_, equal) = shares(no_txop, &[(1, 0), (2, 0)]);
    assert!((equal - 0.5).abs() < 0.02, "{equal}");
}

#[test]
fn counters_have_internal_collisions_only_if_there_were_any() {
    let (result, _) = shares(json!({}), &[(1, 46), (2, 0)]);
    let printed = serde_json::to_value(&result.stations["sta1"]).unwrap();
    assert!(printed.get("internal_collision").is_none(), "{printed}");
}

/// With one category EDCA is the DCF of its parameters, except for the slot that counts at its beginning, which a single sender does not see.
#[test]
fn a_single_sender_of_best_effort_has_the_throughput_of_the_dcf() {
    let throughput = |access: &str| {
        let config = edca(2, |j| {
            j["radio_overrides"] = json!({"access": access, "aggregation": false});
            j["traffic"] = json!([{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500}]);
            (j["warmup_s"], j["duration_s"]) = (0.1.into(), 2.0.into());
        });
        sim::run(&config, standing(&config), None).flows[0].throughput_bps
    };
    assert_eq!(throughput("dcf"), throughput("edca"));
}
