//! Radios on several channels, and nodes of several radios, in small networks in virtual time.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::config::{Config, Loaded};
use manet_medium::fate::Fate;
use manet_medium::phy::Radio;
use manet_medium::{Input, Medium, Output, StationId};
use serde_json::{json, Value};

const CHANNEL_1: u32 = 2412;
const CHANNEL_6: u32 = 2437;

struct Bench {
    medium: Medium,
    now: Instant,
    /// Receiver and the kernel's identifier, or the tag of a synthetic packet.
    delivered: Vec<(u16, u64)>,
    fates: Vec<Option<Fate>>,
}

impl Bench {
    fn new(loaded: &Loaded) -> Self {
        let mut medium = Medium::new(loaded, standing(loaded));
        medium.set_recording(true);
        Self { medium, now: Instant::ZERO, delivered: Vec::new(), fates: Vec::new() }
    }

    fn input(&mut self, input: Input) {
        self.medium.handle(self.now, input);
        self.drain();
    }

    fn send(&mut self, from: u16, to: u16) {
        self.input(Input::Synthetic { station: StationId(from), to: Some(StationId(to)), ip_bytes: 1500, tag: 0 });
    }

    /// The kernel of `from` sends a frame from the address `source` on a channel.
    fn frame(&mut self, from: u16, source: [u8; 6], to: [u8; 6], cookie: u64, freq_mhz: u32) {
        let mut frame = vec![0x88, 0, 0, 0];
        frame.extend(to);
        frame.extend(source);
        frame.resize(200, 0);
        let (rates, freq_mhz) = (Vec::new(), Some(freq_mhz));
        self.input(Input::Mpdu { station: StationId(from), frame, cookie, rates, freq_mhz });
    }

    fn run_for(&mut self, us: u64) {
        let until = self.now + Duration::from_micros(us);
        while let Some(t) = self.medium.next_timeout().filter(|t| *t <= until) {
            self.medium.handle_timeout(t);
            self.drain();
        }
        self.now = until;
    }

    fn drain(&mut self) {
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Deliver { station, packet, .. } => {
                    let number = packet.mpdu.as_ref().map_or(packet.tag, |m| m.cookie);
                    self.delivered.push((station.0, number));
                }
                Output::Air(AirRow::Tx { frame, fate, .. }) if frame.packet.is_some() => self.fates.push(fate),
                _ => {}
            }
        }
    }
}

fn mac(station: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0, station as u8 + 1]
}

/// Stations side by side on these channels.
fn on_channels(freqs_mhz: &[u32]) -> Loaded {
    loaded(&chain(freqs_mhz.len(), 10.0), |config| {
        for (i, freq_mhz) in freqs_mhz.iter().enumerate() {
            config["stations"][i]["freq_mhz"] = json!(freq_mhz);
        }
    })
}

/// Packets that sta2 and sta4 receive in 5 s from sta1 and, if `both`, sta3, whose queues never run empty.
fn delivered_of_pairs(freqs_mhz: [u32; 4], both: bool) -> [usize; 2] {
    let mut bench = Bench::new(&on_channels(&freqs_mhz));
    for _ in 0..500 {
        while bench.medium.backlog(StationId(0)) < 10 {
            bench.send(0, 1);
        }
        while both && bench.medium.backlog(StationId(2)) < 10 {
            bench.send(2, 3);
        }
        bench.run_for(10_000);
    }
    [1, 3].map(|station| bench.delivered.iter().filter(|(to, _)| *to == station).count())
}

#[test]
fn pairs_on_two_channels_do_not_contend() {
    let [alone, none] = delivered_of_pairs([CHANNEL_1; 4], false);
    let [first, second] = delivered_of_pairs([CHANNEL_1; 4], true);
    let two = delivered_of_pairs([CHANNEL_1, CHANNEL_1, CHANNEL_6, CHANNEL_6], true);
    assert_eq!(none, 0);
    assert!(two.iter().all(|n| n.abs_diff(alone) * 50 < alone), "{two:?} of {alone}: within 2 %");
    // of one channel two stations carry together a little more than one, for both count down backoff at once
    let share = (first + second) as f64 / alone as f64;
    assert!((0.95..1.1).contains(&share), "{first} and {second} of {alone}");
}

#[test]
fn a_frame_for_a_station_of_another_channel_is_not_heard() {
    let mut bench = Bench::new(&on_channels(&[CHANNEL_1, CHANNEL_6]));
    bench.send(0, 1);
    bench.run_for(1_000_000);
    assert_eq!(bench.delivered, []);
    assert_eq!(bench.fates, [Some(Fate::Weak); 7], "each try up to the retry limit");
}

#[test]
fn a_radio_is_on_the_channel_of_its_last_frame() {
    let mut bench = Bench::new(&on_channels(&[CHANNEL_1, CHANNEL_1]));
    bench.frame(0, mac(0), [0xff; 6], 1, CHANNEL_6);
    bench.run_for(20_000);
    assert_eq!(bench.delivered, [], "sta2 is still on channel 1");
    bench.frame(1, mac(1), [0xff; 6], 2, CHANNEL_6);
    bench.run_for(20_000);
    bench.frame(0, mac(0), mac(1), 3, CHANNEL_6);
    bench.run_for(20_000);
    assert_eq!(bench.delivered, [(0, 2), (1, 3)]);
}

#[test]
fn frames_for_another_channel_wait_for_the_earlier_ones() {
    let mut bench = Bench::new(&on_channels(&[CHANNEL_1, CHANNEL_1, CHANNEL_6]));
    bench.frame(0, mac(0), mac(1), 1, CHANNEL_1);
    bench.frame(0, mac(0), mac(1), 2, CHANNEL_1);
    // a management frame, which precedes data of its own channel
    let mut probe = vec![0x40, 0, 0, 0];
    probe.extend([0xff; 6]);
    probe.extend(mac(0));
    probe.resize(60, 0);
    let (station, rates, freq_mhz) = (StationId(0), Vec::new(), Some(CHANNEL_6));
    bench.input(Input::Mpdu { station, frame: probe, cookie: 3, rates, freq_mhz });
    bench.run_for(100_000);
    assert_eq!(bench.delivered, [(1, 1), (1, 2), (2, 3)]);
}

#[test]
fn an_address_more_on_a_radio_is_known_from_its_first_frame() {
    let second = [2, 9, 0, 0, 0, 1];
    let mut bench = Bench::new(&on_channels(&[CHANNEL_1, CHANNEL_1]));
    bench.frame(1, mac(1), second, 1, CHANNEL_1);
    bench.run_for(200_000);
    assert_eq!(bench.delivered, [], "no radio is known to have it");
    bench.frame(0, second, [0xff; 6], 2, CHANNEL_1);
    bench.run_for(20_000);
    bench.frame(1, mac(1), second, 3, CHANNEL_1);
    bench.run_for(20_000);
    assert_eq!(bench.delivered, [(1, 2), (0, 3)]);
}

/// sta1 with a further radio, and sta2 far from both.
fn with_further_radio() -> Loaded {
    loaded(&[[0.0, 0.0], [5000.0, 0.0], [0.0, 0.0]], |config| {
        config["stations"][2]["name"] = json!("sta1-wlan1");
        config["stations"][2]["node"] = json!("sta1");
    })
}

#[test]
fn a_further_radio_moves_with_its_node() {
    let mut bench = Bench::new(&with_further_radio());
    let to = [4990.0, 0.0, 0.0];
    bench.input(Input::Move { station: StationId(0), to, speed_mps: f64::INFINITY });
    assert_eq!(bench.medium.position(StationId(2), bench.now), to);
    bench.send(2, 1);
    bench.run_for(20_000);
    assert_eq!(bench.delivered, [(1, 0)]);
}

#[test]
fn a_further_radio_loses_power_with_its_node() {
    let mut bench = Bench::new(&with_further_radio());
    bench.input(Input::Power { station: StationId(0), on: false });
    assert!(!bench.medium.is_on(StationId(2)) && bench.medium.is_on(StationId(1)));
    bench.input(Input::Power { station: StationId(0), on: true });
    assert!(bench.medium.is_on(StationId(2)));
}

#[test]
fn a_further_radio_names_a_station_above_it() {
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut config = json!({"format": "manet-medium/1", "radio": "a.toml", "stations": [
            {"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0, 0, 0]},
            {"name": "sta1-wlan1", "mac": "02:00:00:00:00:02", "position": [0, 0, 0], "node": "sta1"}]});
        change(&mut config);
        let radio = Radio::parse(include_str!("../radios/ns2-dsss-2m.toml"), &Default::default()).unwrap();
        Loaded::new(Config::parse(&config.to_string()).unwrap(), radio).err().map(|e| e.to_string())
    };
    assert_eq!(refusal(&|_| ()), None);
    let wrong = refusal(&|config| config["stations"][1]["node"] = json!("sta2")).unwrap();
    assert_eq!(wrong, "key \"stations[1].node\": no station \"sta2\" is above this one");
    let itself = refusal(&|config| config["stations"][1]["node"] = json!("sta1-wlan1"));
    assert!(itself.is_some_and(|e| e.contains("stations[1].node")));
}
