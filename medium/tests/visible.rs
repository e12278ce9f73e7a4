//! No externally visible event happens before the instant that the medium names (`Machine::next_visible`), whatever the radio,
//! the positions, the traffic and the errors; and a driver that sleeps until then saves most wake-ups.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Instant, Machine};
use manet_medium::config::Loaded;
use manet_medium::{Input, Medium, Output, StationId};
use proptest::prelude::*;
use serde_json::json;

/// A packet from a host: instant, station, destination (`None`: all), bytes.
type Packet = (u64, u16, Option<u16>, u32);

fn is_visible(output: &Output) -> bool {
    !matches!(output, Output::Air(_) | Output::Broadcast { .. })
}

/// Events handled, and wake-ups of a driver that sleeps until `next_visible`.
fn run(loaded: &Loaded, packets: &[Packet], answers: bool) -> Result<(u64, u64), TestCaseError> {
    let mut medium = Medium::new(loaded, standing(loaded));
    let stations = loaded.config.stations.len() as u16;
    for station in (0..stations).map(StationId) {
        medium.handle(Instant::ZERO, Input::Overhear { station, on: true });
    }
    let mut packets: Vec<_> = packets.to_vec();
    packets.sort();
    let mut waiting = packets.into_iter().peekable();
    let (mut events, mut wakes) = (0, 0);
    // no visible event comes before the first; the driver sleeps until the second
    let (mut promised, mut asleep_until) = (Instant::ZERO, Instant::ZERO);
    loop {
        let arrives = waiting.peek().map(|p| Instant::from_nanos(p.0));
        let due = medium.next_timeout();
        let Some(now) = [arrives, due].into_iter().flatten().min() else { return Ok((events, wakes)) };
        let mut inputs = Vec::new();
        if due == Some(now) {
            medium.handle_timeout(now);
            events += 1;
        } else if let Some((_, from, to, ip_bytes)) = waiting.next() {
            let to = to.map(StationId);
            // with EDCA, of the category of one of the sources
            let tag = u64::from(from % 4) << 48;
            inputs.push(Input::Synthetic { station: StationId(from), to, ip_bytes, tag });
        }
        // a deadline during the sleep is no wake-up
        wakes += u64::from(!inputs.is_empty() || now >= asleep_until);
        let mut awake = now >= asleep_until;
        loop {
            while let Some(output) = medium.poll_output() {
                if is_visible(&output) && !inputs.is_empty() {
                    awake = true;
                } else if is_visible(&output) {
                    prop_assert!(
                        now >= promised,
                        "{output:?} at {now:?}, and nothing was to be seen before {promised:?}"
                    );
                }
                // a host that answers at once
                if let Output::Deliver { station, packet, .. } = output {
                    if answers && packet.tag & 1 == 0 && packet.id % 3 == 0 {
                        let to = Some(StationId((station.0 + 1) % stations));
                        inputs.push(Input::Synthetic { station, to, ip_bytes: 60, tag: 1 });
                    }
                }
            }
            let Some(input) = inputs.pop() else { break };
            medium.handle(now, input);
            (promised, awake) = (Instant::ZERO, true);
        }
        let next = medium.next_visible().unwrap_or(Instant::MAX);
        prop_assert!(medium.next_timeout().is_none_or(|event| next >= event));
        promised = promised.max(next);
        if awake {
            asleep_until = next;
        }
    }
}

fn somewhere() -> impl Strategy<Value = Loaded> {
    let radios = [
        "ns2-dsss-2m",
        "hv-dsss-2m",
        "hv-dsss-2m-alt",
        "dot11b-11m",
        "dot11g-54m",
        "dot11a-54m",
        "dot11n-ht20",
        "dot11ac-vht80",
        "dot11ax-he20",
    ];
    let places = proptest::collection::vec((0.0..900.0f64, 0.0..300.0f64), 2..9);
    let thresholds = prop_oneof![Just(0), Just(300), Just(3000)];
    let radio_of = prop::sample::select(radios.to_vec());
    let queues = prop::sample::select(vec!["drop-tail", "fq-codel"]);
    // a jammer, and stations of two channels
    let others = (prop::option::of((any::<bool>(), 1e-4..0.02f64)), any::<bool>());
    let rest = (thresholds, 0.0..0.5f64, any::<u32>(), queues, any::<bool>(), 1..8_u32, others);
    (radio_of, places, any::<bool>(), rest).prop_map(
        |(name, places, sinr, (rts_threshold_bytes, rate, seed, queue, edca, retries, (jammer, channels)))| {
            let places: Vec<[f64; 2]> = places.into_iter().map(|(x, y)| [x, y]).collect();
            loaded(&places, |j| {
                j["radio"] = format!("{name}.toml").into();
                j["radio_overrides"] = json!({"rts_threshold_bytes": rts_threshold_bytes});
                if name == "dot11a-54m" {
                    // slower than its RTS, so that CTS and ACK differ in length
                    j["radio_overrides"]["data_rate_bps"] = 9_000_000.into();
                }
                if edca && name.starts_with("dot11") {
                    j["radio_overrides"]["access"] = "edca".into();
                    j["radio_overrides"]["short_retry_limit"] = retries.into();
                    let source = |dscp: &u8| {
                        json!({"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 100, "dscp": dscp})
                    };
                    j["traffic"] = [46, 34, 0, 8].iter().map(source).collect();
                }
                j["seed"] = seed.into();
                j["interference"] = if sinr { "sinr" } else { "ns2" }.into();
                j["queue"] = json!({"packets": 4, "discipline": queue});
                j["links"] = json!([{"from": "sta1", "to": "sta2", "error_rate": rate}]);
                if let Some((reactive, on_s)) = jammer {
                    let kind = if reactive { json!({"kind": "reactive"}) } else { json!({"kind": "periodic", "off_s": 0.01}) };
                    let mut all = json!({"name": "jam1", "position": [300, 100, 0], "tx_power_w": 0.1, "on_s": on_s, "stop_s": 0.3});
                    all.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
                    j["jammers"] = json!([all]);
                }
                if channels {
                    j["adjacent_channels"] = true.into();
                    j["stations"][0]["freq_mhz"] = 2422.into();
                }
            })
        },
    )
}

fn traffic() -> impl Strategy<Value = Vec<Packet>> {
    let packet = (0..60_000_000u64, 0..9u16, proptest::option::weighted(0.8, 0..9u16), 20..1500u32);
    proptest::collection::vec(packet, 1..80)
}

proptest! {
    #[test]
    fn nothing_is_seen_before_the_instant_named(loaded in somewhere(), packets in traffic(), answers: bool) {
        let n = loaded.config.stations.len() as u16;
        let within = |(at, from, to, bytes): Packet| (at, from % n, to.map(|t| t % n), bytes);
        let packets: Vec<Packet> = packets.into_iter().map(within).filter(|p| p.2 != Some(p.1)).collect();
        run(&loaded, &packets, answers)?;
    }
}

/// Two hundred packets over one hop: event by event, a driver would wake for each of a dozen per packet.
#[test]
fn an_exchange_alone_on_the_air_takes_two_wake_ups_and_its_packet_s() {
    let chain = loaded(&chain(2, 200.0), |_| ());
    let packets: Vec<Packet> = (0..200).map(|i| (i * 20_000_000, 0, Some(1), 1000)).collect();
    let (events, wakes) = run(&chain, &packets, false).unwrap();
    assert!(events >= 200 * 8, "{events}");
    assert!(wakes <= 200 * 4, "{wakes} of {events}");
}
