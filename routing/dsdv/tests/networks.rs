//! Several nodes on an ideal channel.

mod air;

use air::{chain, ip, node, nodes, Air};
use manet_dsdv::Options;
use manet_engine::random::Purpose;
use manet_engine::{Duration, Stream};
use manet_routing::trial::at;
use manet_routing::{Input, Node, Output};
use proptest::prelude::*;

#[test]
fn a_chain_is_known_after_settling_at_each_hop_and_not_before() {
    let hops = 7;
    for seed in 1..=20 {
        let mut air = chain(hops + 1, &Options::with_feedback(), seed);
        // The first hop: the first full update within 2 s and the jitter of 10 ms. Each further one: 2 x 6 s of settling; a
        // fresh number (every 11.25 s at most) that comes before they are over restarts 2 x 7/8 x 6 = 10.5 s; then up to
        // 1 s between updates, 10 ms of jitter, 1 ms in the air. (Measured over these seeds: 11.9 to 15.8 s per hop.)
        let latest = 2.011 + (hops - 1) as f64 * (12.0 + 10.5 + 1.011);
        // two fresh numbers right after the first: 2 x 49/64 x 6 s
        let earliest = (hops - 1) as f64 * 9.18;
        assert!(!air.run_until(at(earliest), Air::all_reach_all), "seed {seed}");
        assert!(air.run_until(at(latest), Air::all_reach_all), "seed {seed}");
        assert_eq!(air.path(0, ip(hops)).unwrap(), (0..=hops).collect::<Vec<_>>());
    }
}

#[test]
fn a_route_breaks_and_its_destination_restores_it_over_the_other_path() {
    // 0 - 1 - 3 and 0 - 2 - 3
    let mut air = nodes(4, &Options::with_feedback(), 2);
    [(0, 1), (1, 3), (0, 2), (2, 3)].iter().for_each(|(a, b)| air.link(*a, *b));
    air.run(at(60.0));
    let by = air.path(0, ip(3)).unwrap()[1];
    air.cut(by, 3);
    air.fail(by, 3);
    assert!(!air.reaches(0, ip(3)));
    // the loss goes by -> 0 -> other -> 3, the answer 3 -> other -> 0: five updates, each up to 1 s + 11 ms late
    assert!(air.run_until(at(60.0 + 5.0 * 1.011), |air| air.reaches(0, ip(3))));
    assert_eq!(air.path(0, ip(3)).unwrap(), [0, 3 - by, 3]);
}

#[test]
fn without_feedback_a_break_is_detected_after_three_periods_of_silence() {
    let mut air = chain(3, &Options::with_feedback(), 3);
    air.run(at(60.0));
    assert!(air.reaches(0, ip(2)));
    air.cut(1, 2);
    let gone = |air: &Air| air.stations[&1].routes.lookup(ip(2)).is_none();
    // the last update was at most 15.01 s ago when the link broke: 45 s after it
    assert!(!air.run_until(at(60.0 + 29.9), gone));
    assert!(air.run_until(at(60.0 + 45.0), gone));
    assert!(air.run_until(at(60.0 + 46.1), |air| air.stations[&0].routes.lookup(ip(2)).is_none()));
    let notes = air.log.iter().filter(|(_, _, o)| *o == Output::note("link-broken", ip(2), 2)).count();
    assert_eq!(notes, 1);
}

#[test]
fn a_restarted_node_continues_its_number_and_is_reachable_again() {
    for crashed in [true, false] {
        let mut air = chain(4, &Options::with_feedback(), 4);
        air.run(at(200.0));
        let before = air.status(1).sequence.unwrap();
        assert!(before >= 26, "13 or more full updates in 200 s: {before}");
        if !crashed {
            air.input(1, Input::Stop);
            air.run(at(205.0));
        }
        air.start(1, Node { restarted: crashed, ..node(1, 4) }, Options::with_feedback());
        let whole = |air: &Air| {
            air.assert_no_loop();
            air.all_reach_all()
        };
        // its neighbours declare it lost, it advertises a newer number; destinations behind it hear that they are lost
        // and do the same: each step takes up to 1.011 s, after a start within 2 s
        assert!(air.run_until(air.now + Duration::from_secs(15), whole), "crashed: {crashed}");
        assert!(air.status(1).sequence.unwrap() > before);
    }
}

#[test]
fn a_daemon_that_ends_announces_it_and_its_routes_are_removed_at_once() {
    let mut air = chain(3, &Options::with_feedback(), 5);
    air.run(at(60.0));
    air.input(1, Input::Stop);
    let gone = |air: &Air| [0, 2].iter().all(|i| air.stations[i].routes.is_empty());
    assert!(air.run_until(at(60.1), gone));
}

#[test]
fn a_one_way_neighbour_is_no_next_hop_with_the_check() {
    // 0 and 1 hear each other; 0 hears 2, but 2 hears no node
    for check in [false, true] {
        let options = Options { bidirectional_check: check, ..Options::with_feedback() };
        let mut air = nodes(3, &options, 6);
        air.link(0, 1);
        air.links.insert((2, 0));
        air.run(at(60.0));
        assert_eq!(air.stations[&0].routes.lookup(ip(2)).is_some(), !check);
        assert_eq!(air.stations[&1].routes.lookup(ip(2)).is_some(), !check);
        assert!(air.reaches(0, ip(1)) && air.reaches(1, ip(0)));
    }
}

#[test]
fn the_check_costs_a_new_neighbour_seconds_not_periods() {
    let options = Options { bidirectional_check: true, ..Options::with_feedback() };
    let mut air = chain(2, &options, 7);
    // both started within 2.01 s; after two triggered updates each knows that it is heard
    assert!(air.run_until(at(2.011 + 2.0 * 1.011), Air::all_reach_all));
    // and a detour is used where the direct link is one-way
    let mut air = chain(3, &options, 7);
    air.links.insert((2, 0));
    assert!(air.run_until(at(40.0), Air::all_reach_all));
    assert_eq!(air.path(0, ip(2)).unwrap(), [0, 1, 2]);
    assert!(!air.run_until(at(400.0), |air| !air.all_reach_all()), "confirmed neighbours stay so");
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let run = |seed| {
        let mut air = chain(5, &Options::with_feedback(), seed);
        air.loss = 0.2;
        air.run(at(300.0));
        (air.messages(), air.log)
    };
    assert_eq!(run(8), run(8));
    assert_ne!(run(8), run(9));
}

/// Links come and go, with and without feedback, and a fifth of the updates is lost.
fn shaken(seed: u64, nodes: usize, options: &Options) -> Air {
    let mut air = air::nodes(nodes, options, seed);
    let mut rng = Stream::new(seed, 0, Purpose::Mobility);
    (air.loss, air.loop_free) = (0.2, true);
    for _ in 0..150 {
        let (a, b) = (rng.below(nodes as u64) as usize, rng.below(nodes as u64) as usize);
        if a == b {
            continue;
        }
        if air.links.contains(&(a, b)) {
            air.cut(a, b);
            if rng.chance(0.7) {
                air.fail(a, b);
            }
        } else if rng.chance(0.6) {
            air.link(a, b);
        }
        let pause = Duration::from_secs_f64(rng.unit() * 12.0);
        air.run(air.now + pause);
    }
    air
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Sequence numbers guarantee it (SIGCOMM 1994, section 5), at each instant and not only at the end.
    #[test]
    fn next_hops_never_form_a_loop(seed in any::<u64>(), nodes in 4usize..9, quick in any::<bool>(), fresh in any::<bool>()) {
        let settling = Duration::from_secs(if quick { 0 } else { 6 });
        let mut air = shaken(seed, nodes, &Options { settling, trigger_on_fresh: fresh, ..Options::with_feedback() });
        // and without further changes every node finds every other one
        air.loss = 0.0;
        (1..nodes).for_each(|i| air.link(i - 1, i));
        let settled = air.now + Duration::from_secs(60 + 28 * nodes as u64);
        prop_assert!(air.run_until(settled, Air::all_reach_all));
    }
}
