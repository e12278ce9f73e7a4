//! Properties that every rate control has, and convergence beside fixed rates on the same channel.

use super::channel::{ht_setup, list, setup, Link, OFDM};
use super::{by_name, Attempts, PacketView, Setup, Tried, ALGORITHMS, MAX_STAGES};
use manet_engine::random::Purpose;
use manet_engine::{Duration, Instant, Stream};
use proptest::prelude::*;

/// With the seconds that it may take to find the best rate. Minstrel-HT samples a rate once in 50 ms, and the estimate of one that has
/// failed rises by a quarter of the rest each time: five to seven samples for each rate on the way up.
const ADAPTIVE: [(&str, f64); 5] =
    [("ideal", 0.1), ("arf", 1.0), ("aarf", 1.0), ("minstrel", 1.5), ("minstrel-ht", 2.0)];

/// Success 1 at the rates that `snr_db` allows, else 0, as `setup`'s model has it.
fn step(link: &mut Link, snr_db: f64) -> Vec<f64> {
    link.snr_db = Some(snr_db);
    OFDM.iter().map(|(_, needed)| f64::from(u8::from(snr_db >= *needed))).collect()
}

/// Share of transmissions at the best rate in the second after `settling` seconds.
fn share_of_best(link: &mut Link, snr_db: f64, settling: f64) -> f64 {
    let success = step(link, snr_db);
    let best = success.iter().filter(|p| **p > 0.0).count() - 1;
    link.run(settling, &success);
    link.run(1.0, &success)[best]
}

/// ARF sends each 11th frame at the rate above; Minstrel each 10th elsewhere, as first or second stage.
#[test]
fn each_finds_the_best_rate_of_a_channel_and_follows_it_down_and_up() {
    for (name, settling) in ADAPTIVE {
        let mut link = Link::new(name, setup(&OFDM));
        for snr_db in [14.0, 9.0, 6.0, 23.0, 11.0, 30.0, 5.0] {
            let share = share_of_best(&mut link, snr_db, settling);
            assert!(share > 0.85, "{name} at {snr_db} dB: {share}");
        }
    }
}

/// On a channel where success falls gradually, against the best of all fixed rates.
#[test]
fn minstrel_reaches_nine_tenths_of_the_best_fixed_rate() {
    let gradual = [1.0, 1.0, 0.98, 0.95, 0.9, 0.7, 0.3, 0.05];
    let delivered = |name: &str, fixed: usize, mpdus: u32| {
        let mut link = Link::new(name, Setup { fixed, ..setup(&OFDM) });
        link.mpdus = mpdus;
        link.run(1.0, &gradual);
        link.run(4.0, &gradual);
        link.acknowledged as f64
    };
    for mpdus in [1, 16] {
        let best = (0..8).map(|rate| delivered("fixed", rate, mpdus)).fold(0.0, f64::max);
        for name in ["minstrel", "minstrel-ht"] {
            let share = delivered(name, 0, mpdus) / best;
            assert!(share > 0.9 && share < 1.02, "{name}, aggregates of {mpdus}: {share}");
        }
    }
}

/// Nobody answers for two seconds: all fall to the most robust rate, and come back.
#[test]
fn after_an_outage_each_recovers() {
    for (name, settling) in ADAPTIVE {
        // the rate that was the best and failed is then the second, while another succeeds
        let mut link = Link::new(name, setup(&OFDM));
        share_of_best(&mut link, 30.0, settling);
        link.run(2.0, &[0.0; 8]);
        let chain = link.choose();
        assert_eq!(chain.rate(99), 0, "{name}");
        let share = share_of_best(&mut link, 30.0, settling);
        assert!(share > 0.85, "{name}: {share}");
    }
}

#[test]
fn peers_are_apart_and_a_switched_off_station_knows_none() {
    for algorithm in ALGORITHMS {
        let mut link = Link::new(algorithm.name, setup(&OFDM));
        let success = step(&mut link, 30.0);
        link.run(2.0, &success);
        let packet = PacketView { mpdu_bytes: 100 };
        assert_eq!(link.control.choose(link.now, 2, &packet).rate(99), 0, "{}", algorithm.name);
        assert_eq!(link.control.table(1).len(), 8);
        assert!(link.control.table(3).is_empty());
        assert!(link.control.peers().contains(&1));
        link.control.forget();
        assert!(link.control.peers().is_empty() && link.control.table(1).is_empty());
    }
}

fn chosen(name: &str, seed: u64) -> Vec<usize> {
    let mut link = Link::new(name, Setup { random: Stream::new(seed, 0, Purpose::Traffic), ..ht_setup() });
    let success: Vec<f64> = (0..32).map(|rate| 1.0 - f64::from(rate % 8) * 0.1).collect();
    (0..2000).flat_map(|_| link.exchange(&success).stages().iter().map(|s| s.rate).collect::<Vec<_>>()).collect()
}

#[test]
fn choices_depend_on_the_seed_alone_and_only_sampling_draws() {
    for algorithm in ALGORITHMS {
        let samples = algorithm.name.starts_with("minstrel");
        assert!(chosen(algorithm.name, 1) == chosen(algorithm.name, 1), "{}", algorithm.name);
        assert_eq!(chosen(algorithm.name, 1) != chosen(algorithm.name, 2), samples, "{}", algorithm.name);
    }
}

proptest! {
    /// Whatever is reported, also what was never chosen.
    #[test]
    fn each_choice_is_a_rate_of_the_list(
        algorithm in 0..ALGORITHMS.len(),
        mut list in prop::collection::vec((1..1000u32, 0.0..40.0f64), 1..40).prop_map(|rates| list(&rates)),
        fixed: prop::sample::Index,
        reports in prop::collection::vec(
            (0..4u16, 0..60u64, prop::collection::vec((0..50usize, 0..5u32, any::<bool>(), 0..65u32), 0..4), prop::option::of(-20.0..60.0)),
            1..200
        )
    ) {
        for (at, entry) in list.iter_mut().enumerate() {
            entry.group.streams = 1 + at as u8 % 3;
        }
        let rates = list.len();
        let mut control =
            by_name(ALGORITHMS[algorithm].name, Setup { rates: list.into(), fixed: fixed.index(rates), ..setup(&OFDM) }).unwrap();
        let mut now = Instant::ZERO;
        for (peer, ms, tried, snr_db) in reports {
            now += Duration::from_millis(ms);
            let chain = control.choose(now, peer, &PacketView { mpdu_bytes: 1500 });
            prop_assert!((1..=MAX_STAGES).contains(&chain.stages().len()));
            prop_assert!(chain.stages().iter().all(|stage| stage.rate < rates && stage.tries > 0));
            let each = |&(rate, transmissions, answered, mpdus): &(usize, u32, bool, u32)| Tried {
                rate,
                transmissions,
                answered,
                mpdus: transmissions * mpdus,
                acknowledged: mpdus * u32::from(answered && transmissions > 0),
            };
            let tried: Vec<Tried> = tried.iter().map(each).collect();
            control.report(now, peer, &Attempts { tried: &tried, snr_db });
            prop_assert!(control.table(peer).iter().all(|row| row.success.is_none_or(|p| (0.0..=1.0).contains(&p))));
        }
    }
}
