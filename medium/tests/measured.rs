//! Measured links: frames are received, lost and sensed as the table says, at each instant.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::config::{Loaded, MAX_TIME_S};
use manet_medium::fate::Fate;
use manet_medium::phy::{FrameKind, Measured};
use manet_medium::{Input, Medium, Output, StationId};
use serde_json::json;

const EXAMPLE: &str = include_str!("../../formats/examples/links.csv");

/// Stations a kilometre apart, whose links are those of `text`.
fn measured(stations: usize, text: &str) -> Loaded {
    let mut loaded = loaded(&chain(stations, 1000.0), |config| {
        config["propagation"] = json!({"model": "trace", "file": "links.csv"});
    });
    let links = Measured::parse(text, "links.csv", &loaded.station_names(), &loaded.radio, MAX_TIME_S).unwrap();
    loaded.measured = Some(links.into());
    loaded
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// The rows of the air log after a packet of `from` to `to` (`None`: a broadcast) at each of these times, s.
fn sent(medium: &mut Medium, from: u16, to: Option<u16>, times_s: impl Iterator<Item = f64>) -> Vec<AirRow> {
    medium.set_recording(true);
    let mut rows = Vec::new();
    for time_s in times_s {
        let packet = Input::Synthetic { station: StationId(from), to: to.map(StationId), ip_bytes: 500, tag: 0 };
        medium.handle(at(time_s), packet);
        while let Some(due) = medium.next_timeout() {
            medium.handle_timeout(due);
        }
        rows.extend(std::iter::from_fn(|| medium.poll_output()).filter_map(|output| match output {
            Output::Air(row) => Some(row),
            _ => None,
        }));
    }
    rows
}

fn delivered_at(rows: &[AirRow], to: u16) -> Vec<Instant> {
    let at = |row: &AirRow| match row {
        AirRow::Deliver { at, station, .. } if *station == to => Some(*at),
        _ => None,
    };
    rows.iter().filter_map(at).collect()
}

#[test]
fn the_golden_example_breaks_when_its_loss_reaches_the_radio_s_limit_and_ends_with_its_last_row() {
    let loaded = measured(3, EXAMPLE);
    let radio = &loaded.radio;
    // 0.28 W against 3.65e-10 W: 88.9 dB, reached after (88.9 - 70) / 20 of the ten seconds
    let limit_db = 10.0 * (radio.tx_power_w / radio.receive_threshold_w).log10();
    let breaks_s = 10.0 * (limit_db - 70.0) / 20.0;
    assert!((9.0..9.9).contains(&breaks_s), "{breaks_s}");
    let mut medium = Medium::new(&loaded, standing(&loaded));
    let rows = sent(&mut medium, 0, None, (0..300).map(|i| f64::from(i) * 0.1));
    assert_eq!(delivered_at(&rows, 1).len(), (breaks_s / 0.1) as usize + 1, "each one before, none after");
    assert!(delivered_at(&rows, 2).is_empty(), "no row, no link");
    let sensed = |medium: &Medium, seconds| medium.links(at(seconds))[0].sensed;
    assert!(sensed(&medium, 15.0) && !sensed(&medium, 25.0), "90 dB are sensed, a link without a value is not");
}

#[test]
fn the_two_directions_of_a_link_are_its_own() {
    let loaded = measured(2, "# manet-links/1\ntime_s,from,to,loss_db\n0,sta1,sta2,60\n0,sta2,sta1,200\n");
    let mut medium = Medium::new(&loaded, standing(&loaded));
    assert_eq!(delivered_at(&sent(&mut medium, 0, None, [0.0].into_iter()), 1).len(), 1);
    assert_eq!(delivered_at(&sent(&mut medium, 1, None, [1.0].into_iter()), 0).len(), 0);
    let rows = sent(&mut medium, 0, Some(1), [2.0].into_iter());
    let data = rows.iter().filter(|row| matches!(row, AirRow::Tx { frame, .. } if frame.kind == FrameKind::Data));
    assert_eq!(data.count(), 0, "the CTS to the RTS is not received");
}

#[test]
fn a_frame_is_delivered_as_often_as_the_table_says_and_the_others_have_errors() {
    let table = "# manet-links/1\ntime_s,from,to,delivery\n0,sta1,sta2,0.3\n0,sta2,sta1,1\n100,sta1,sta2,0.9\n";
    let loaded = measured(2, table);
    let mut medium = Medium::new(&loaded, standing(&loaded));
    let frames = 4000;
    let times = move || (0..frames).map(|i| f64::from(i) * 0.025);
    let rows = sent(&mut medium, 0, None, times());
    let delivered = delivered_at(&rows, 1);
    // linear from 0.3 to 0.9: four standard errors of the whole 0.03, of a tenth of the time 0.1
    assert!((delivered.len() as f64 / f64::from(frames) - 0.6).abs() < 0.031, "{}", delivered.len());
    for tenth in 0..10u32 {
        let within = |time: &&Instant| (at(f64::from(tenth) * 10.0)..at(f64::from(tenth + 1) * 10.0)).contains(*time);
        let share = delivered.iter().filter(within).count() as f64 / 400.0;
        let expected = 0.33 + 0.06 * f64::from(tenth);
        assert!((share - expected).abs() < 0.1, "{tenth}: {share}, not {expected}");
    }
    let rows = sent(&mut medium, 0, Some(1), (0..200).map(|i| 200.0 + f64::from(i) * 0.1));
    let fates = |fate| rows.iter().filter(|row| matches!(row, AirRow::Tx { fate: Some(f), .. } if *f == fate)).count();
    assert!(fates(Fate::Error) > 20 && fates(Fate::Weak) == 0, "RTS and data are lost alike, and repeated");
    let link = &medium.links(at(50.0))[0];
    assert!(link.in_range && (link.error_rate - 0.4).abs() < 1e-9, "{link:?}");
}

#[test]
fn a_rate_has_its_own_delivery_rate() {
    // of ns2-dsss-2m data go at 2 Mbit/s, broadcasts, RTS and CTS at 1 Mbit/s
    let table = "# manet-links/1\ntime_s,from,to,rate_bps,delivery\n0,sta1,sta2,1000000,1\n0,sta1,sta2,2000000,0\n\
                 0,sta2,sta1,,1\n";
    let loaded = measured(2, table);
    let rates = (loaded.radio.data_rate_bps, loaded.radio.broadcast_rate_bps);
    assert_eq!(rates, (2_000_000, 1_000_000));
    let mut medium = Medium::new(&loaded, standing(&loaded));
    assert_eq!(delivered_at(&sent(&mut medium, 0, None, (0..50).map(f64::from)), 1).len(), 50);
    assert_eq!(delivered_at(&sent(&mut medium, 0, Some(1), (100..120).map(f64::from)), 1).len(), 0);
}
