//! CPU time of the medium per frame on the air, by number of stations, still and moving: `cargo bench -p manet-medium`.
//!
//! Random waypoint at 1 to 20 m/s, one station per hectare, so that the neighbours are as many at each size; each station sends one
//! packet of 512 bytes a second, in turn to all and to the station nearest to it. `wakes`: as in a run in real time, each event
//! asks for the next visible one. The figure is the CPU time of a process of its own for each case, without its set-up.
//!
//! `cargo bench -p manet-medium -- --against OTHER [--rounds N]`: OTHER, the program of this benchmark in another build, runs the same
//! cases in turn with this one, so that changes of the machine meet both. Figures are medians, and the least of each.
use manet_engine::random::Purpose;
use manet_engine::{Duration, Instant, Machine, Stream};
use manet_medium::config::{Config, Loaded};
use manet_medium::phy::propagation::distance_m;
use manet_medium::phy::Radio;
use manet_medium::trace::Trajectory;
use manet_medium::{Input, Medium, StationId};
use serde_json::{json, Value};
use std::process::Command;

/// Stations, rule of interference, whether they move, whether each event is a wake.
type Case<'a> = (usize, &'a str, bool, bool);
const PACKETS: usize = 10_000;
const STATION_M2: f64 = 10_000.0;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let option = |name: &str| words.iter().position(|word| word == name).map(|at| words[at + 1].clone());
    if let Some(case) = option("--case") {
        let words: Vec<&str> = case.split(',').collect();
        println!("{}", ns_per_frame((words[0].parse().unwrap(), words[1], words[2] == "moving", words[3] == "wakes")));
        return;
    }
    let rounds = option("--rounds").map_or(3, |n| n.parse().unwrap());
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let programs: Vec<String> = option("--against").into_iter().chain([own]).collect();
    println!(
        "case: CPU us per frame, median (least){}",
        if programs.len() > 1 { ", before, now; ratio of the least" } else { "" }
    );
    let sizes = [100, 300, 1000, 2000].iter().flat_map(|n| ["still", "moving"].map(|how| format!("{n},ns2,{how},-")));
    let others = ["1000,ns2,still,wakes", "2000,ns2,moving,wakes", "1000,sinr,still,-", "1000,sinr,moving,-"];
    for case in sizes.chain(others.map(str::to_owned)) {
        let mut taken: Vec<Vec<f64>> = vec![Vec::new(); programs.len()];
        for round in 0..rounds * programs.len() {
            let which = (round + round / programs.len()) % programs.len();
            let done = Command::new(&programs[which]).args(["--case", &case]).output().unwrap();
            taken[which].push(String::from_utf8_lossy(&done.stdout).trim().parse::<f64>().unwrap() / 1e3);
        }
        let middle = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0])
        };
        let all: Vec<(f64, f64)> = taken.iter_mut().map(middle).collect();
        let shown: Vec<String> = all.iter().map(|(median, least)| format!("{median:8.2} ({least:7.2})")).collect();
        let ratio = if let [before, now] = all[..] { format!("  {:.2}", now.1 / before.1) } else { String::new() };
        println!("{case:22} {}{ratio}", shown.join(" "));
    }
}

fn ns_per_frame((n, interference, moving, wakes): Case) -> f64 {
    let loaded = loaded(n, interference);
    let length_s = PACKETS as f64 / n as f64;
    let mut random = Stream::new(1, 0, Purpose::Traffic);
    let mut unit = || random.below(1 << 30) as f64 / f64::from(1 << 30);
    let trajectories: Vec<Trajectory> =
        loaded.config.stations.iter().map(|s| trajectory(s.position, n, moving, length_s, &mut unit)).collect();
    let packets: Vec<(Instant, Input)> = (0..PACKETS)
        .map(|i| {
            let at = Instant::ZERO + Duration::from_secs_f64(length_s * i as f64 / PACKETS as f64);
            let from = (unit() * n as f64) as u16;
            let to = (i % 2 == 1).then(|| nearest(&trajectories, from, at)).map(StationId);
            (at, Input::Synthetic { station: StationId(from), to, ip_bytes: 512, tag: 0 })
        })
        .collect();
    let mut medium = Medium::new(&loaded, trajectories);
    let begun_ns = cpu_ns();
    let mut awaited = Instant::ZERO;
    for (at, input) in packets {
        while let Some(due) = medium.next_timeout().filter(|due| *due <= at) {
            medium.handle_timeout(due);
            while medium.poll_output().is_some() {}
            if wakes {
                awaited = awaited.max(medium.next_visible().unwrap_or(due));
            }
        }
        medium.handle(at, input);
    }
    let taken_ns = cpu_ns() - begun_ns;
    assert!(!wakes || awaited > Instant::ZERO);
    let frames = |station| {
        let c = medium.counters(station);
        c.tx_rts + c.tx_cts + c.tx_data + c.tx_ack + c.tx_bcast
    };
    taken_ns as f64 / (0..n as u16).map(StationId).map(frames).sum::<u64>() as f64
}

fn side_m(n: usize) -> f64 {
    (n as f64 * STATION_M2).sqrt()
}

fn loaded(n: usize, interference: &str) -> Loaded {
    let mut random = Stream::new(2, 0, Purpose::Traffic);
    let mut place_m = || random.below(1 << 30) as f64 / f64::from(1 << 30) * side_m(n);
    let station = |i: usize| {
        let (mac, place) = (format!("02:00:00:00:{:02x}:{:02x}", i / 256, i % 256), [place_m(), place_m(), 0.0]);
        json!({"name": format!("sta{i}"), "mac": mac, "position": place})
    };
    let stations: Vec<Value> = (1..=n).map(station).collect();
    let config = json!({
        "format": "manet-medium/1", "radio": "a.toml", "stations": stations, "interference": interference,
    });
    let radio = Radio::parse(include_str!("../radios/ns2-dsss-2m.toml"), &Default::default()).unwrap();
    Loaded::new(Config::parse(&config.to_string()).unwrap(), radio).unwrap()
}

fn trajectory(from: [f64; 3], n: usize, moving: bool, length_s: f64, unit: &mut impl FnMut() -> f64) -> Trajectory {
    let (mut trajectory, mut place, mut at_s) = (Trajectory::standing(from), from, 0.0);
    while moving && at_s < length_s {
        let (to, speed_mps) = ([unit() * side_m(n), unit() * side_m(n), 0.0], 1.0 + 19.0 * unit());
        trajectory.move_to(Instant::ZERO + Duration::from_secs_f64(at_s), to, speed_mps);
        at_s += distance_m(place, to) / speed_mps;
        place = to;
    }
    trajectory
}

fn nearest(all: &[Trajectory], from: u16, at: Instant) -> u16 {
    let here = all[usize::from(from)].at(at);
    let others = (0..).zip(all).filter(|(other, _)| *other != from);
    others.min_by(|a, b| distance_m(here, a.1.at(at)).total_cmp(&distance_m(here, b.1.at(at)))).unwrap().0
}

/// Time of this thread on a processor so far.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
