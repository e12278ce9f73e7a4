//! The time of each radio in its states, in small networks in virtual time, against the durations of the frames.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::config::Loaded;
use manet_medium::phy::FrameKind;
use manet_medium::{sim, Input, Medium, StationId};
use serde_json::json;

const A: StationId = StationId(0);
const IP_BYTES: u32 = 500;

/// A chain whose times are kept; ns-2's radio decodes at 200 m and senses at 400 m.
fn kept(n: usize, change: impl FnOnce(&mut serde_json::Value)) -> Loaded {
    loaded(&chain(n, 200.0), |config| {
        config["outputs"] = json!({"radio_time": "radio-time.csv"});
        change(config);
    })
}

/// Sums over the file, ns by station: transmit, receive, sense, idle, off.
fn sums(csv: &str, station: &str) -> [u64; 5] {
    let mut sums = [0; 5];
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[1] == station {
            sums.iter_mut().zip(&cells[2..]).for_each(|(sum, cell)| *sum += cell.parse::<u64>().unwrap());
        }
    }
    sums
}

/// The file after 1 s in which A sent one broadcast.
fn after_a_broadcast(loaded: &Loaded) -> String {
    let mut medium = Medium::new(loaded, standing(loaded));
    medium.handle(Instant::ZERO, Input::Synthetic { station: A, to: None, ip_bytes: IP_BYTES, tag: 0 });
    while let Some(at) = medium.next_timeout() {
        medium.handle_timeout(at);
    }
    medium.radio_time_csv(Instant::ZERO + Duration::from_secs(1), &loaded.station_names()).unwrap()
}

#[test]
fn of_a_broadcast_the_near_receive_the_far_sense_and_the_farthest_are_idle() {
    let loaded = kept(5, |_| ());
    let csv = after_a_broadcast(&loaded);
    let bytes = IP_BYTES + loaded.radio.overhead_bytes;
    let ns = loaded.radio.airtime(bytes, loaded.radio.mode_of(FrameKind::Bcast)).as_nanos();
    let rest = 1_000_000_000 - ns;
    assert_eq!(sums(&csv, "sta1"), [ns, 0, 0, rest, 0]);
    assert_eq!(sums(&csv, "sta2"), [0, ns, 0, rest, 0], "200 m");
    assert_eq!(sums(&csv, "sta3"), [0, 0, ns, rest, 0], "400 m");
    assert_eq!(sums(&csv, "sta4"), [0, 0, 0, 1_000_000_000, 0], "600 m");
}

#[test]
fn by_sinr_a_radio_that_detects_the_preamble_receives() {
    let of = |sta: &str| {
        let loaded = kept(3, |config| config["radio"] = "dot11n-ht20.toml".into());
        sums(&after_a_broadcast(&loaded), sta)
    };
    // 5.18 GHz, 23 dBm, two-ray: free space up to 485 m. 200 m: -69.7 dBm, 400 m: -75.8 dBm, both above the -82 dBm of a preamble
    let ns = of("sta1")[0];
    assert!(ns > 0);
    assert_eq!((of("sta2")[1], of("sta3")[1]), (ns, ns));
}

#[test]
fn a_radio_without_power_is_off() {
    let loaded = kept(2, |_| ());
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut medium = Medium::new(&loaded, standing(&loaded));
    medium.handle(at(250), Input::Power { station: A, on: false });
    medium.handle(at(750), Input::Power { station: A, on: true });
    let csv = medium.radio_time_csv(at(1000), &loaded.station_names()).unwrap();
    assert_eq!(sums(&csv, "sta1"), [0, 0, 0, 500_000_000, 500_000_000]);
}

/// The file against the air log: time to send is that of the counters, and of two saturated stations side by side one receives or
/// senses whenever the other alone sends.
#[test]
fn under_load_the_states_of_two_stations_fit_together() {
    let flow = |from: &str, to: &str| json!({"from": from, "to": to, "kind": "saturated", "bytes": 1000});
    let loaded = kept(2, |config| config["traffic"] = json!([flow("sta1", "sta2"), flow("sta2", "sta1")]));
    let result = sim::run(&loaded, standing(&loaded), None);
    let csv = result.radio_time.unwrap();
    let (a, b) = (sums(&csv, "sta1"), sums(&csv, "sta2"));
    for (times, name) in [(a, "sta1"), (b, "sta2")] {
        assert_eq!(times.iter().sum::<u64>(), 10_000_000_000);
        // a frame that began before the end is counted whole there
        let over = result.stations[name].airtime_tx_ns - times[0];
        assert!(over < 10_000_000, "{over}");
    }
    // time in which both send is part of neither's reception
    let both = a[0] - (b[1] + b[2]);
    assert_eq!(both, b[0] - (a[1] + a[2]));
    assert!(both > 0 && both < a[0] / 10, "collisions: {both} of {a:?}");
}

#[test]
fn a_run_that_does_not_ask_for_them_has_no_times() {
    let loaded = loaded(&chain(2, 200.0), |_| ());
    assert_eq!(sim::run(&loaded, standing(&loaded), None).radio_time, None);
}
