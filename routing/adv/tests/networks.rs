//! Several nodes on an ideal channel.

mod air;

use air::{chain, ip, node, nodes, stream, Air};
use manet_adv::{wire, Options};
use manet_engine::random::Purpose;
use manet_engine::{Duration, Stream};
use manet_routing::trial::at;
use manet_routing::{Input, Node, Output};
use proptest::prelude::*;

fn is_receiver(air: &Air, i: usize) -> bool {
    air.status(i).details["receiver"] == true
}

/// A single flow over unbroken links triggers no update; here its ends send some, and the nodes between answer.
fn lively() -> Options {
    serde_json::from_str(r#"{"keep_alive":1}"#).unwrap()
}

#[test]
fn the_first_packet_finds_a_route_over_seven_hops_and_leaves() {
    for seed in 1..=20 {
        let mut air = chain(8, &Options::default(), seed);
        air.data(0, ip(7), b"data");
        // request and answer take 7 hops each: 10 ms of jitter and 1 ms in the air a hop
        assert!(
            air.run_until(at(2.0 * 7.0 * 0.011), |air| air.reaches(0, ip(7)) && air.reaches(7, ip(0))),
            "seed {seed}"
        );
        assert!(air.log.iter().any(|(_, i, o)| *i == 0 && matches!(o, Output::Send { .. })));
        assert!(is_receiver(&air, 0) && is_receiver(&air, 7) && !is_receiver(&air, 3));
    }
}

#[test]
fn an_idle_network_sends_nothing() {
    let mut air = chain(5, &Options::default(), 1);
    air.run(at(1000.0));
    assert_eq!(air.messages(), 0);
}

#[test]
fn a_connection_ends_when_it_is_idle_and_no_node_advertises_its_ends_any_more() {
    let mut air = chain(4, &Options::default(), 2);
    stream(&mut air, 0, 3, 250, at(20.0));
    assert!((0..4).filter(|i| is_receiver(&air, *i)).eq([0, 3]));
    // 30 s without packets, then the end-connection, and the alert of the end that has no other connection
    air.run(at(51.0));
    assert!((0..4).all(|i| !is_receiver(&air, i)));
    assert!((0..4).all(|i| air.status(i).routes.iter().all(|r| r.state != "receiver")), "flags are off");
    assert_eq!(air.counter(0, "end-sent"), 1);
    let sent = air.messages();
    air.run(at(1000.0));
    assert_eq!(air.messages(), sent);
    assert!((0..4).all(|i| air.stations[&i].routes.is_empty()), "unused routes are removed");
}

#[test]
fn a_lost_end_connection_leaves_the_destination_a_receiver_for_another_idle_time_only() {
    let mut air = chain(3, &Options::default(), 3);
    stream(&mut air, 0, 2, 250, at(20.0));
    air.loss = 1.0;
    air.run(at(52.0));
    assert!(!is_receiver(&air, 0) && is_receiver(&air, 2));
    air.run(at(81.0));
    assert!(!is_receiver(&air, 2));
}

#[test]
fn a_break_is_repaired_over_the_other_path_without_a_new_flood() {
    // 0 - 1 - 3 and 0 - 2 - 3
    let mut air = nodes(4, &Options::default(), 2);
    [(0, 1), (1, 3), (0, 2), (2, 3)].iter().for_each(|(a, b)| air.link(*a, *b));
    stream(&mut air, 0, 3, 50, at(10.0));
    let by = air.path(0, ip(3)).unwrap()[1];
    let floods = air.counter(0, "init-sent");
    air.cut(by, 3);
    let lost_at = air.now;
    while !air.reaches(0, ip(3)) {
        assert!(air.now < lost_at + Duration::from_secs(3), "{:?}", air.now);
        let next = air.now + Duration::from_millis(50);
        stream(&mut air, 0, 3, 50, next);
        air.assert_no_loop();
    }
    assert_eq!((air.path(0, ip(3)).unwrap(), air.counter(0, "init-sent")), (vec![0, 3 - by, 3], floods));
    // the node at the break held its packets, and sends them back to the source, which has the new route
    air.run(air.now + Duration::from_secs(2));
    assert_eq!((air.status(by).held, air.status(0).held), (0, 0));
}

#[test]
fn a_source_floods_again_if_updates_bring_no_route() {
    let mut air = chain(3, &Options::default(), 4);
    stream(&mut air, 0, 2, 250, at(5.0));
    let before = air.counter(0, "init-sent");
    air.cut(1, 2);
    stream(&mut air, 0, 2, 250, at(25.0));
    // the loss is known within a second, 3 s later the first flood; pauses of 1, 2, 4, 8 s follow
    let floods = air.counter(0, "init-sent") - before;
    assert!((4..=5).contains(&floods), "{floods}");
    air.link(1, 2);
    assert!(air.run_until(at(50.0), |air| air.reaches(0, ip(2))));
    assert!(air.log.iter().any(|(t, i, o)| *i == 0 && *t > at(25.0) && matches!(o, Output::Send { .. })));
}

#[test]
fn nodes_with_hellos_lose_a_silent_neighbour_within_three_intervals() {
    let options = serde_json::from_str::<Options>(r#"{"link":"hello"}"#).unwrap();
    let mut air = chain(3, &options, 5);
    stream(&mut air, 0, 2, 100, at(10.0));
    air.cut(1, 2);
    assert!(
        !air.run_until(at(10.9), |air| air.stations[&1].routes.lookup(ip(2)).is_none()),
        "silent for less than 3 s less 1 s"
    );
    assert!(air.run_until(at(13.01), |air| air.stations[&1].routes.lookup(ip(2)).is_none()));
    assert!(air.log.iter().any(|(_, i, o)| *i == 1 && *o == Output::note("link-broken", ip(2), 2)));
}

#[test]
fn a_restarted_node_continues_its_number_and_is_reachable_again() {
    for crashed in [true, false] {
        let mut air = chain(4, &lively(), 4);
        for s in 0..60 {
            let (from, to) = if s % 2 == 0 { (0, 3) } else { (3, 0) };
            stream(&mut air, from, to, 100, at(f64::from(s) + 1.0));
        }
        let before = air.status(2).sequence.unwrap();
        assert!(before > 20, "an update of a forwarder every few seconds: {before}");
        if !crashed {
            air.input(2, Input::Stop);
            air.run(at(60.5));
            assert!(air.stations[&1].routes.lookup(ip(2)).is_none() && air.stations[&3].routes.lookup(ip(2)).is_none());
        }
        air.start(2, Node { restarted: crashed, ..node(2, 4) }, lively());
        let end = air.now + Duration::from_secs(10);
        while air.now < end {
            let next = air.now + Duration::from_millis(100);
            stream(&mut air, 0, 3, 100, next);
            air.assert_no_loop();
        }
        assert!(air.reaches(0, ip(3)), "crashed: {crashed}");
        assert!(air.status(2).sequence.unwrap() > before, "crashed: {crashed}");
    }
}

#[test]
fn a_restarted_destination_is_found_although_its_number_is_forgotten() {
    let mut air = chain(4, &lively(), 6);
    stream(&mut air, 0, 3, 100, at(60.0));
    let before = air.status(3).sequence.unwrap();
    air.start(3, Node { restarted: true, ..node(3, 6) }, lively());
    stream(&mut air, 0, 3, 100, at(70.0));
    assert!(air.reaches(0, ip(3)) && air.status(3).sequence.unwrap() > before);
}

#[test]
fn only_receivers_are_advertised() {
    let mut air = chain(5, &lively(), 7);
    stream(&mut air, 0, 4, 100, at(60.0));
    for i in 0..5 {
        let routes = air.status(i).routes;
        let known: Vec<_> = routes.iter().filter(|r| r.state == "receiver").map(|r| r.destination).collect();
        assert!(known.iter().all(|d| [ip(0), ip(4)].contains(d)), "{known:?}");
        assert!(routes.iter().filter(|r| r.state == "known").all(|r| r.hops == 1), "other routes are of neighbours");
    }
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let run = |seed| {
        let mut air = chain(5, &Options::default(), seed);
        air.loss = 0.2;
        stream(&mut air, 0, 4, 100, at(100.0));
        (air.messages(), air.log)
    };
    assert_eq!(run(8), run(8));
    assert_ne!(run(8), run(9));
}

#[test]
fn updates_are_split_at_the_mtu_and_each_datagram_begins_with_the_sender() {
    // a star: 40 receivers around node 0; (576 - 36) / 18 = 30 entries a datagram
    let mut air = nodes(41, &Options::default(), 9);
    (1..41).for_each(|i| air.link(0, i));
    for i in 1..41 {
        air.data(i, ip(0), b"data");
    }
    air.run(at(1.0));
    assert_eq!(air.status(0).routes.iter().filter(|r| r.state == "receiver").count(), 40);
    assert_eq!(wire::entries_per_datagram(576), 30);
}

/// Links come and go, with and without feedback, packets flow between random nodes, and a fifth of the messages is lost.
fn shaken(seed: u64, nodes: usize, options: &Options) -> Air {
    let mut air = air::nodes(nodes, options, seed);
    let mut rng = Stream::new(seed, 0, Purpose::Mobility);
    (air.loss, air.loop_free) = (0.2, true);
    for _ in 0..400 {
        let (a, b) = (rng.below(nodes as u64) as usize, rng.below(nodes as u64) as usize);
        if a == b {
            continue;
        }
        if rng.chance(0.7) {
            for _ in 0..3 {
                air.data(a, ip(b), b"data");
            }
        } else if air.links.contains(&(a, b)) {
            air.cut(a, b);
        } else if rng.chance(0.6) {
            air.link(a, b);
        }
        let pause = Duration::from_secs_f64(rng.unit() * 1.5);
        air.run(air.now + pause);
    }
    air
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Numbers and the fewest hops of each number guarantee it, at each instant and not only at the end.
    #[test]
    fn next_hops_never_form_a_loop(seed in any::<u64>(), nodes in 4usize..9, hellos in any::<bool>()) {
        let json = format!(r#"{{"link":"{}"}}"#, if hellos { "hello" } else { "feedback" });
        let mut air = shaken(seed, nodes, &serde_json::from_str(&json).unwrap());
        // and without further changes a source finds any destination
        air.loss = 0.0;
        (1..nodes).for_each(|i| air.link(i - 1, i));
        let end = air.now + Duration::from_secs(70);
        stream(&mut air, 0, nodes - 1, 500, end);
        prop_assert!(air.reaches(0, ip(nodes - 1)));
    }
}
