//! Radios of overlapping channels, in small networks in virtual time, against the shares of the masks.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::config::Loaded;
use manet_medium::phy::spectrum::Spectrum;
use manet_medium::{sim, Input, Medium, StationId};
use serde_json::{json, Value};

/// Two pairs, each of a saturated sender and its receiver 20 m apart, the second pair beside the first; `freq_mhz`: its channel.
fn pairs(radio: &str, apart_m: f64, freq_mhz: u32, change: impl FnOnce(&mut Value)) -> Loaded {
    loaded(&[[0.0, 0.0], [20.0, 0.0], [0.0, apart_m], [20.0, apart_m]], |config| {
        config["radio"] = format!("{radio}.toml").into();
        config["adjacent_channels"] = true.into();
        config["stations"][2]["freq_mhz"] = freq_mhz.into();
        config["stations"][3]["freq_mhz"] = freq_mhz.into();
        let flow = |from: &str, to: &str| json!({"from": from, "to": to, "kind": "saturated", "bytes": 1500});
        config["traffic"] = json!([flow("sta1", "sta2"), flow("sta3", "sta4")]);
        config["duration_s"] = 2.0.into();
        change(config);
    })
}

fn throughputs(loaded: &Loaded) -> [f64; 2] {
    let flows = sim::run(loaded, standing(loaded), None).flows;
    [0, 1].map(|i| flows[i].throughput_bps)
}

#[test]
fn without_the_key_channels_do_not_touch_and_with_it_far_ones_do_not_either() {
    for radio in ["dot11b-11m", "dot11g-54m"] {
        let apart = throughputs(&pairs(radio, 10.0, 2437, |config| config["adjacent_channels"] = false.into()));
        let beyond = throughputs(&pairs(radio, 10.0, 2412 + 100, |_| ()));
        assert_eq!(apart, beyond, "{radio}: more than four widths away");
    }
}

/// Channels 1 and 2 are almost one: the pairs share the air. From channel 6 on they do not notice each other at 200 m.
#[test]
fn near_channels_share_the_air_and_distant_ones_do_not() {
    for radio in ["dot11b-11m", "dot11g-54m"] {
        let [alone, _] = throughputs(&pairs(radio, 1e5, 2412, |_| ()));
        let total =
            |freq_mhz, apart_m| throughputs(&pairs(radio, apart_m, freq_mhz, |_| ())).iter().sum::<f64>() / alone;
        let (one, next, sixth) = (total(2412, 5.0), total(2417, 5.0), total(2437, 200.0));
        assert!((0.8..1.2).contains(&one), "{radio}: {one}");
        // energy detection silences a station, and nobody decodes the other's NAV
        assert!((0.5..1.3).contains(&next), "{radio}: {next}");
        assert!(sixth > 1.98, "{radio}: {sixth}");
    }
}

#[test]
fn a_frame_of_another_channel_is_never_received_and_is_sensed_from_the_energy_threshold_on() {
    let sensed_ns = |freq_mhz: u32, at_m: f64| {
        let loaded = loaded(&chain(2, at_m), |config| {
            config["radio"] = "dot11g-54m.toml".into();
            config["adjacent_channels"] = true.into();
            config["stations"][1]["freq_mhz"] = freq_mhz.into();
            config["outputs"] = json!({"radio_time": "radio-time.csv"});
        });
        let mut medium = Medium::new(&loaded, standing(&loaded));
        medium.handle(Instant::ZERO, Input::Synthetic { station: StationId(0), to: None, ip_bytes: 1000, tag: 0 });
        while let Some(at) = medium.next_timeout() {
            medium.handle_timeout(at);
        }
        assert_eq!(medium.counters(StationId(1)).rx_data, u64::from(freq_mhz == 2412));
        let second = Instant::ZERO + Duration::from_secs(1);
        let csv = medium.radio_time_csv(second, &loaded.station_names()).unwrap();
        let times: Vec<u64> =
            csv.lines().nth(2).unwrap().split(',').skip(2).map(|cell| cell.parse().unwrap()).collect();
        let sent: u64 = csv.lines().nth(1).unwrap().split(',').nth(2).unwrap().parse().unwrap();
        let power_w = medium.links(second)[0].power_w;
        let share = Spectrum::of(&loaded.radio).share(freq_mhz - 2412);
        let expected = power_w * share >= loaded.radio.energy_detect_w.unwrap();
        if freq_mhz > 2412 {
            assert_eq!((times[1], times[2]), (0, if expected { sent } else { 0 }), "{freq_mhz} MHz, {at_m} m");
        }
        times[2]
    };
    let all: Vec<u64> = [2412, 2417, 2422, 2427, 2432, 2437].into_iter().map(|mhz| sensed_ns(mhz, 20.0)).collect();
    assert!(all[1] > 0 && all[5] == 0, "{all:?}");
    assert!(sensed_ns(2437, 1.0) > 0, "a near station of channel 6 is sensed on channel 1");
}

#[test]
fn interference_of_another_channel_spoils_a_weak_frame_and_not_a_strong_one() {
    // sta3 sends broadcasts on channel 4, 15 MHz away, 30 m from sta2; its power there is 15 dB less than on channel 1
    let delivered = |distance_m: f64, freq_mhz: u32| {
        let loaded = loaded(&[[0.0, 0.0], [distance_m, 0.0], [distance_m + 30.0, 0.0]], |config| {
            config["radio"] = "dot11b-11m.toml".into();
            config["interference"] = "sinr".into();
            config["adjacent_channels"] = true.into();
            config["stations"][2]["freq_mhz"] = freq_mhz.into();
            config["traffic"] = json!([
                {"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500},
                {"from": "sta3", "to": "*", "kind": "saturated", "bytes": 1500},
            ]);
            config["duration_s"] = 2.0.into();
        });
        sim::run(&loaded, standing(&loaded), None).flows[0].throughput_bps
    };
    let (strong, weak, apart) = (delivered(10.0, 2427), delivered(150.0, 2427), delivered(150.0, 2462));
    assert!(apart > 4e6, "{apart}");
    assert!(strong > 0.9 * apart, "{strong}");
    assert!(weak < 0.2 * apart, "{weak}");
}
