//! EDCA alone against drawn timelines, as [`super::dcf_timelines`] has them of the DCF. Profile `dot11n-ht20` without aggregation: slot 9,
//! SIFS 16, ACK 28 us; AIFS of voice and video 34, of best effort 43, of background 79 us. A packet of 1500 bytes at MCS 7 takes 228 us:
//! preambles of 36 and 48 symbols.

use super::action::FailReason;
use super::dcf_timelines::{us, Bench, ME, OTHER, PEER};
use super::packet::tests::packet;
use super::{Category, Dest, Frame, Packet};
use crate::phy::radio::{Access, Aggregation};
use crate::phy::{FrameKind, Radio};
use manet_engine::Duration;
use std::sync::Arc;
use Category::{Background, BestEffort, Video, Voice};

const DATA: u64 = 228;
const ACK: u64 = 28;
const SIFS: u64 = 16;

fn edca(change: impl FnOnce(&mut Radio)) -> Bench {
    seeded(4, change)
}

fn seeded(seed: u64, change: impl FnOnce(&mut Radio)) -> Bench {
    Bench::seeded(seed, "dot11n-ht20", |r| {
        r.access = Access::Edca;
        r.aggregation = Aggregation::Switch(false);
        change(r);
    })
}

/// Voice with one exchange for each access.
fn without_txop(radio: &mut Radio) {
    radio.access_categories.voice.txop_us = Some(0);
}

fn of(id: u64, category: Category) -> Arc<Packet> {
    Arc::new(Packet { category, ..Packet::clone(&packet(id, PEER, false)) })
}

fn quiet(b: &Bench) -> Frame {
    b.frame(FrameKind::Ack, OTHER, Dest::Station(PEER), 0)
}

/// Packets of a category with these numbers come at once.
fn packets(b: &mut Bench, at: u64, ids: std::ops::RangeInclusive<u64>, category: Category) {
    ids.for_each(|id| {
        b.packet(at, of(id, category));
    });
}

/// Number of the packet, start, and backoff of each data frame.
fn data(b: &Bench) -> Vec<(u64, u64, u32)> {
    let of = |(at, frame): &(u64, Frame)| (frame.packet_id(), *at, frame.backoff_slots);
    b.sent.iter().filter(|(_, frame)| frame.kind == FrameKind::Data).map(of).collect()
}

//  100      300      300 + AIFS
//   | busy   |         | slots of 9 us ...
//      | packet at 200
#[test]
fn each_category_waits_for_its_own_aifs() {
    for (category, aifs) in [(Voice, 34), (Video, 34), (BestEffort, 43), (Background, 79)] {
        let mut b = edca(|_| ());
        b.until(100).dcf.medium_busy(us(100));
        b.packet(200, of(1, category));
        let good = quiet(&b);
        b.dcf.receive(us(300), &good, super::dcf::Decoded::ALL);
        b.dcf.medium_idle(us(300));
        b.until(20_000);
        assert_eq!(b.before_backoff(0).0, 300 + aifs, "{category:?}");
    }
}

//  | undecodable | EIFS: SIFS 16 + ACK at 6 Mbit/s 44 + AIFS |
#[test]
fn eifs_ends_with_the_aifs_of_the_category() {
    for (category, aifs) in [(Voice, 34), (BestEffort, 43), (Background, 79)] {
        let mut b = edca(|_| ());
        b.noise(100, 300, false);
        b.packet(310, of(1, category)).until(20_000);
        assert_eq!(b.before_backoff(0).0, 300 + 16 + 44 + aifs, "{category:?}");
    }
}

//  0  34          1000   1006
//  |  | 9 | 9 | 9 | packet | the next boundary (10.23.2.4)
#[test]
fn a_packet_that_finds_the_medium_idle_is_sent_at_the_next_slot_boundary() {
    let mut b = edca(|_| ());
    b.packet(1000, of(1, Voice)).until(1200);
    assert_eq!(data(&b), [(1, 1006, 0)]);
}

//  |AIFS|s0|s1|s2 begun| busy |AIFS|...  a slot counts at its beginning: three are over, by the DCF two
#[test]
fn a_slot_that_has_begun_is_over() {
    for (access, over) in [(Access::Edca, 3), (Access::Dcf, 2)] {
        let mut b = Bench::new("dot11n-ht20", |r| {
            (r.access, r.aggregation, r.cw_min) = (access, Aggregation::Switch(false), 1023);
        });
        b.until(100).dcf.medium_busy(us(100));
        b.packet(200, of(1, BestEffort));
        let good = quiet(&b);
        b.dcf.receive(us(300), &good, super::dcf::Decoded::ALL);
        b.dcf.medium_idle(us(300));
        let start = 300 + 43;
        b.hears(start + 2 * 9 + 4, 1000, &good);
        b.until(20_000);
        let drawn = u64::from(b.sent[0].1.backoff_slots);
        assert!(drawn > 3, "seed 4 draws more than three slots");
        assert_eq!(b.sent[0].0, 1000 + 43 + (drawn - over) * 9, "{access:?}");
    }
}

//  | busy  |AIFS of voice|      |  background has counted nothing: its AIFS is not over
//                      | busy | AIFS | slots
#[test]
fn before_the_end_of_its_aifs_no_slot_is_counted() {
    let mut b = edca(|_| ());
    b.until(100).dcf.medium_busy(us(100));
    b.packet(200, of(1, Background));
    let good = quiet(&b);
    b.dcf.receive(us(300), &good, super::dcf::Decoded::ALL);
    b.dcf.medium_idle(us(300));
    b.hears(300 + 34, 1000, &good);
    b.until(20_000);
    assert_eq!(b.before_backoff(0).0, 1000 + 79);
}

//  1000         1006                              ACK end      + 43
//  | 1 and 2    | 1 (voice) | SIFS | ACK | | AIFS | backoff of 2 from the doubled window
//               | 2 (best effort): internal collision
#[test]
fn of_two_whose_backoff_ends_together_the_higher_sends_and_the_other_backs_off() {
    let mut b = edca(without_txop);
    b.packet(1000, of(2, BestEffort)).packet(1000, of(1, Voice)).until(1006);
    assert_eq!(data(&b), [(1, 1006, 0)]);
    assert_eq!(b.dcf.counters.internal_collision, 1);
    b.answer(FrameKind::Ack);
    let ack_end = 1006 + DATA + SIFS + ACK;
    assert_eq!(b.now, ack_end);
    b.until(ack_end + 2000);
    let (at, frame) = &b.sent[1];
    assert_eq!(frame.packet_id(), 2);
    assert_eq!(at - u64::from(frame.backoff_slots) * 9, ack_end + 43);
    // nothing of it has been on the air: no Retry bit, first attempt
    assert!(!frame.retry && frame.attempt == 1);
}

#[test]
fn an_internal_collision_doubles_the_window_and_its_success_brings_it_back() {
    let (mut collided, mut after) = (0, 0);
    for seed in 0..300 {
        let mut b = seeded(seed, without_txop);
        b.packet(1000, of(2, BestEffort)).packet(1000, of(3, BestEffort)).packet(1000, of(1, Voice)).until(1006);
        b.answer(FrameKind::Ack);
        collided = collided.max(b.next().1.backoff_slots);
        b.answer(FrameKind::Ack);
        after = after.max(b.next().1.backoff_slots);
    }
    assert!((28..=31).contains(&collided), "{collided}: the maximum of 300 draws from 0 to 31");
    assert!((13..=15).contains(&after), "{after}: the maximum of 300 draws from 0 to 15");
}

//  a packet whose retry limit is 1: given up at the internal collision, never sent (10.23.2.12.1)
#[test]
fn internal_collisions_count_towards_the_retry_limit() {
    let mut b = edca(|r| {
        without_txop(r);
        r.short_retry_limit = 1;
    });
    b.packet(1000, of(2, BestEffort)).packet(1000, of(1, Voice)).until(1006);
    assert_eq!(b.failed, [(2, FailReason::ShortRetryLimit)]);
    b.answer(FrameKind::Ack);
    b.until(20_000);
    assert_eq!(data(&b).len(), 1);
}

//  busy | AIFS 34 | slots of voice | ...   best effort with the smaller backoff sends first, and voice goes on with what is left
#[test]
fn the_function_whose_backoff_ends_first_sends_whatever_its_category() {
    let mut first = [0, 0];
    for seed in 0..60 {
        let mut b = seeded(seed, without_txop);
        b.until(100).dcf.medium_busy(us(100));
        b.packet(200, of(1, Voice)).packet(200, of(2, BestEffort));
        let good = quiet(&b);
        b.dcf.receive(us(300), &good, super::dcf::Decoded::ALL);
        b.dcf.medium_idle(us(300));
        b.until(300 + 34 + 15 * 9);
        let (id, at, slots) = data(&b)[0];
        let aifs = if id == 1 { 34 } else { 43 };
        assert_eq!(at, 300 + aifs + u64::from(slots) * 9);
        first[usize::from(id == 2)] += 1;
    }
    assert!(first[0] > first[1] && first[1] > 0, "{first:?}");
}

//  | 1 | SIFS | ACK | SIFS | 2 | SIFS | ACK | SIFS | 3 | SIFS | ACK | AIFS, post-backoff
#[test]
fn a_txop_holds_several_exchanges_sifs_apart() {
    let mut b = edca(|_| ());
    packets(&mut b, 1000, 1..=3, Voice);
    b.until(1006);
    let exchange = DATA + SIFS + ACK;
    for n in 0..3 {
        assert_eq!(data(&b).last(), Some(&(n + 1, 1006 + n * (exchange + SIFS), 0)));
        // single protection (9.2.5.2): its own answer, and if another MPDU follows that and its answer
        let following = if n < 2 { SIFS + DATA + SIFS + ACK } else { 0 };
        assert_eq!(b.sent.last().unwrap().1.reserves, Duration::from_micros(SIFS + ACK + following));
        b.answer(FrameKind::Ack);
        let next = b.now + SIFS;
        b.until(next);
    }
    let end = 1006 + 3 * exchange + 2 * SIFS;
    b.packet(end + 17, of(4, Voice)).until(end + 2000);
    assert_eq!(b.before_backoff(3).0, end + 34, "post-backoff from the end of the TXOP");
}

//  an exchange takes 272 us, two of them with SIFS between 560, three 848
#[test]
fn a_txop_does_not_exceed_its_limit() {
    for (limit, in_txop) in [(271, 1), (559, 1), (560, 2), (847, 2), (848, 3)] {
        let mut b = edca(|r| r.access_categories.voice.txop_us = Some(limit));
        packets(&mut b, 1000, 1..=4, Voice);
        b.until(1006);
        for n in 1..=in_txop {
            assert_eq!(b.sent.len(), n, "limit {limit}");
            b.answer(FrameKind::Ack);
            let next = b.now + SIFS;
            b.until(next);
        }
        assert_eq!(b.sent.len(), in_txop, "limit {limit}");
        let end = b.now - SIFS;
        b.until(end + 2000);
        assert_eq!(b.before_backoff(in_txop).0, end + 34, "limit {limit}");
    }
}

#[test]
fn with_limit_0_each_exchange_has_its_own_backoff() {
    let mut b = edca(|_| ());
    packets(&mut b, 1000, 1..=2, BestEffort);
    b.until(1006);
    assert_eq!(b.sent[0].1.reserves, Duration::from_micros(SIFS + ACK));
    b.answer(FrameKind::Ack);
    let end = b.now;
    b.until(end + 2000);
    assert_eq!(b.before_backoff(1).0, end + 43);
}

//  | 1 | SIFS | ACK | SIFS | 2 | no ACK: SIFS + slot + start delay = 58 | AIFS 34 | backoff | 2 again
#[test]
fn a_failure_ends_the_txop() {
    let mut b = edca(|_| ());
    packets(&mut b, 1000, 1..=3, Voice);
    b.until(1006);
    b.answer(FrameKind::Ack);
    let second = b.now + SIFS;
    b.until(second + DATA + 58);
    assert_eq!(b.dcf.counters.ack_timeout, 1);
    b.until(second + 3000);
    assert_eq!(b.before_backoff(2).0, second + DATA + 58 + 34);
    assert!(b.sent[2].1.retry && b.sent[2].1.packet_id() == 2);
}

//  | broadcast | SIFS | 2 | SIFS | ACK
#[test]
fn a_broadcast_in_a_txop_is_followed_after_sifs() {
    let mut b = edca(|_| ());
    let bcast = Arc::new(Packet { dest: Dest::Broadcast, ip_bytes: 100, ..Packet::clone(&of(1, Voice)) });
    b.packet(1000, bcast).packet(1000, of(2, Voice)).until(1006);
    let (at, frame) = b.sent[0].clone();
    assert_eq!(frame.kind, FrameKind::Bcast);
    let airtime = frame.airtime.as_nanos() / 1000;
    b.until(at + airtime + SIFS);
    assert_eq!(data(&b), [(2, at + airtime + SIFS, 0)]);
    // the next one is reserved: SIFS, data, SIFS, ACK
    assert_eq!(frame.reserves, Duration::from_micros(SIFS + DATA + SIFS + ACK));
}

//  | data, Duration 44 + 300 | SIFS | ACK, Duration 300 |
#[test]
fn an_ack_passes_on_what_the_txop_reserves() {
    let mut b = edca(|_| ());
    let data = Frame { reserves: Duration::from_micros(SIFS + ACK + 300), ..b.data(5, false) };
    b.hears(100, 400, &data);
    b.until(400 + SIFS);
    assert_eq!((b.sent[0].1.kind, b.sent[0].1.reserves), (FrameKind::Ack, Duration::from_micros(300)));
}

//  | data to another, NAV ... | RTS of the same holder: answered | RTS of another: not
#[test]
fn the_holder_of_the_txop_is_answered_despite_the_nav_that_it_has_set() {
    for (from, answers) in [(OTHER, 1), (PEER, 0)] {
        let mut b = edca(|_| ());
        let data =
            Frame { reserves: Duration::from_micros(3000), ..b.frame(FrameKind::Data, OTHER, Dest::Station(7), 0) };
        b.hears(100, 400, &data);
        let rts = b.frame(FrameKind::Rts, from, Dest::Station(ME), 2000);
        assert_eq!(b.hears(500, 552, &rts), answers == 1);
        b.until(1000);
        assert_eq!(b.sent.len(), answers);
    }
}

//  voice of the same sequence number between a packet and its repetition
#[test]
fn a_duplicate_is_known_again_beside_frames_of_another_category() {
    let mut b = edca(|_| ());
    for (n, (category, retry)) in
        [(BestEffort, false), (Voice, false), (BestEffort, true), (Voice, true)].iter().enumerate()
    {
        let at = 1000 * (n as u64 + 1);
        let sequence = if *category == Voice { 6 } else { 5 };
        let data = Frame { category: *category, ..b.data(sequence, *retry) };
        b.hears(at, at + 300, &data);
        b.until(at + 500);
    }
    assert_eq!((b.delivered.len(), b.dcf.counters.rx_duplicate), (2, 2));
}

#[test]
fn a_full_queue_of_one_category_leaves_the_others_their_room() {
    let mut b = edca(|_| ());
    b.dcf.medium_busy(us(100));
    packets(&mut b, 100, 1..=60, BestEffort);
    packets(&mut b, 100, 61..=63, Voice);
    assert_eq!(b.dropped, (52..=60).collect::<Vec<u64>>());
    assert_eq!((b.dcf.backlog(), b.dcf.backlog_of(Voice), b.dcf.backlog_of(BestEffort)), (54, 3, 51));
}
