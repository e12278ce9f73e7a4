//! The load that OLSR itself offers to a channel of 2 Mbit/s, by number of stations: `cargo bench -p manet-olsr --bench load`
//! (minutes; a list of numbers after `--` instead of 30 to 1,000).
//!
//! Stations move in straight lines at 10 m/s, one per 15,000 m2, as in tests/bench/sizes.py. They hear each other up to 250 m over an
//! ideal channel, which loses nothing; the load counts from the 12th to the 22nd second. A station's channel is busy for all
//! frames within the carrier sense range of 550 m: the share is the mean of these, without interframe spaces, backoff and data, so a
//! share of 1 cannot be carried. The same numbers at each call: time and positions are the program's own.
use manet_engine::random::Purpose;
use manet_engine::Stream;
use manet_olsr::{Olsr, Options};
use manet_routing::trial::{at, node, Air};
use manet_routing::Output;

const STATION_M2: f64 = 15_000.0;
const SPEED_MPS: f64 = 10.0;
const RANGE_M: f64 = 250.0;
const SENSE_M: f64 = 550.0;
/// UDP and IP headers, and those of the MAC with FCS (medium/radios/hv-dsss-2m.toml).
const HEADER_BYTES: usize = 28 + 34;
const BIT_RATE: f64 = 2e6;
const PLCP_S: f64 = 192.0 / BIT_RATE;
const BEGIN_S: u32 = 12;
const END_S: u32 = 22;

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    println!("stations  packets/s  kbit/s  kbit/s of a station  share of the channel");
    for n in if given.is_empty() { vec![30, 100, 300, 1000] } else { given } {
        let Load { packets, bytes, airtime_s, within_sense } = load(n);
        let kbps = bytes as f64 * 8.0 / 1e3;
        let share = airtime_s / n as f64 * within_sense;
        println!("{n:8} {packets:10} {kbps:7.0} {:20.1} {share:21.2}", kbps / n as f64);
    }
}

/// Of all stations, per second.
struct Load {
    packets: usize,
    /// Of OLSR packets, without headers.
    bytes: usize,
    airtime_s: f64,
    /// Stations within the carrier sense range of a station and itself, on average.
    within_sense: f64,
}

fn load(n: usize) -> Load {
    let mut air: Air<Olsr> = Air::new((1..=n).map(|i| (i, node(i))), &Options::with_feedback(), 1);
    let mut rng = Stream::new(1, 0, Purpose::Mobility);
    let mut uniform = |below: f64| rng.below(1 << 32) as f64 / (1u64 << 32) as f64 * below;
    let side = (n as f64 * STATION_M2).sqrt();
    let mut stations: Vec<[[f64; 2]; 2]> = (0..n)
        .map(|_| {
            let (sin, cos) = uniform(std::f64::consts::TAU).sin_cos();
            [[uniform(side), uniform(side)], [SPEED_MPS * cos, SPEED_MPS * sin]]
        })
        .collect();
    let near = |a: &[[f64; 2]; 2], b: &[[f64; 2]; 2], m: f64| (a[0][0] - b[0][0]).hypot(a[0][1] - b[0][1]) < m;
    let (mut sizes, mut pairs) = (Vec::new(), 0);
    for s in 0..END_S {
        air.links.clear();
        for (a, b) in (0..n).flat_map(|a| (0..a).map(move |b| (a, b))) {
            if near(&stations[a], &stations[b], RANGE_M) {
                air.link(a + 1, b + 1);
            }
            pairs += usize::from(s >= BEGIN_S && near(&stations[a], &stations[b], SENSE_M));
        }
        air.run(at(s + 1));
        let sent = air.log.drain(..).filter_map(|(_, _, output)| match output {
            Output::Control { bytes, .. } => Some(bytes.len()),
            _ => None,
        });
        sizes.extend(sent.filter(|_| s >= BEGIN_S));
        for [place, velocity] in &mut stations {
            for axis in 0..2 {
                place[axis] += velocity[axis];
                if !(0.0..=side).contains(&place[axis]) {
                    velocity[axis] = -velocity[axis];
                }
            }
        }
    }
    let seconds = (END_S - BEGIN_S) as usize;
    let of_frame = |bytes: &usize| PLCP_S + ((bytes + HEADER_BYTES) * 8) as f64 / BIT_RATE;
    Load {
        packets: sizes.len() / seconds,
        bytes: sizes.iter().sum::<usize>() / seconds,
        airtime_s: sizes.iter().map(of_frame).sum::<f64>() / seconds as f64,
        within_sense: 1.0 + 2.0 * pairs as f64 / (n * seconds) as f64,
    }
}
