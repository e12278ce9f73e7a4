//! The DCF alone against drawn timelines: no other stations, no air. A test states what is sensed and decoded when,
//! and at which microsecond the station must send. Profile `dot11b-11m` (the standard's rules): slot 20, SIFS 10, DIFS 50,
//! RTS 272, CTS and ACK 248, EIFS 10 + 50 + 304 = 364 us; `ns2-dsss-2m` for ns-2's departures.

use super::action::{Action, FailReason};
use super::dcf::{Dcf, Decoded};
use super::packet::tests::packet;
use super::{Category, Dest, Frame, InterfaceQueue, Packet};
use crate::phy::radio::tests::profile;
use crate::phy::{FrameKind, Mode, Radio};
use manet_engine::random::Purpose;
use manet_engine::{Duration, Instant, Stream};
use std::sync::Arc;

pub(super) const ME: u16 = 0;
pub(super) const PEER: u16 = 1;
pub(super) const OTHER: u16 = 2;

pub(super) fn us(t: u64) -> Instant {
    Instant::from_nanos(t * 1000)
}

pub(super) struct Bench {
    pub dcf: Dcf,
    pub radio: Arc<Radio>,
    pub sent: Vec<(u64, Frame)>,
    pub delivered: Vec<u64>,
    pub failed: Vec<(u64, FailReason)>,
    pub dropped: Vec<u64>,
    pub now: u64,
}

impl Bench {
    pub fn new(name: &str, change: impl FnOnce(&mut Radio)) -> Self {
        Self::seeded(4, name, change)
    }

    /// With another stream of backoffs.
    pub fn seeded(seed: u64, name: &str, change: impl FnOnce(&mut Radio)) -> Self {
        let mut radio = profile(name);
        change(&mut radio);
        let radio = Arc::new(radio);
        let random = Stream::new(seed, 0, Purpose::Backoff);
        let samples = Stream::new(seed, 0, Purpose::RateControl);
        let dcf = Dcf::new(ME, radio.clone(), InterfaceQueue::drop_tail(50, true), random, samples);
        Self { dcf, radio, sent: vec![], delivered: vec![], failed: vec![], dropped: vec![], now: 0 }
    }

    /// The standard's rules, RTS only if a test enables it.
    fn standard() -> Self {
        Self::new("dot11b-11m", |r| r.rts_threshold_bytes = 3000)
    }

    /// Runs the station's own timers, ends its transmissions, up to `t` microseconds.
    pub fn until(&mut self, t: u64) -> &mut Self {
        loop {
            let own_end = self.sent.last().map(|(at, f)| at + f.airtime.as_nanos().div_ceil(1000));
            let ends = own_end.filter(|_| self.dcf.is_transmitting());
            let timer = self.dcf.next_timeout().map(|i| i.as_nanos() / 1000);
            let Some(next) = ends.into_iter().chain(timer).min().filter(|n| *n <= t) else { break };
            if ends == Some(next) {
                self.dcf.transmit_end(us(next), &self.sent.last().unwrap().1);
            } else {
                self.dcf.handle_timeout(us(next));
            }
            self.collect(next);
        }
        self.now = t;
        self
    }

    fn collect(&mut self, now: u64) {
        let mut actions = vec![];
        self.dcf.take_actions(&mut actions);
        for action in actions {
            match action {
                Action::Transmit(frame) => self.sent.push((now, frame)),
                Action::Deliver { packet, .. } => self.delivered.push(packet.id),
                Action::Failed { packet, reason, .. } => self.failed.push((packet.id, reason)),
                Action::Dropped { packet, .. } => self.dropped.push(packet.id),
                Action::Sent { .. } => {}
            }
        }
    }

    pub fn packet(&mut self, t: u64, p: Arc<Packet>) -> &mut Self {
        self.until(t);
        self.dcf.enqueue(us(t), p);
        self.collect(t);
        self
    }

    /// Something undecodable occupies the medium.
    pub fn noise(&mut self, from: u64, to: u64, weak: bool) -> &mut Self {
        self.until(from);
        self.dcf.medium_busy(us(from));
        self.until(to);
        self.dcf.receive_failed(us(to), weak);
        self.dcf.medium_idle(us(to));
        self.collect(to);
        self
    }

    /// A frame that is decoded.
    pub fn hears(&mut self, from: u64, to: u64, frame: &Frame) -> bool {
        self.until(from);
        self.dcf.medium_busy(us(from));
        self.until(to);
        let answered = self.dcf.receive(us(to), frame, Decoded::ALL);
        self.dcf.medium_idle(us(to));
        self.collect(to);
        answered
    }

    pub fn frame(&self, kind: FrameKind, from: u16, dest: Dest, reserves_us: u64) -> Frame {
        Frame {
            kind,
            from,
            dest,
            reserves: Duration::from_micros(reserves_us),
            bytes: 14,
            mode: self.radio.control_mode(),
            airtime: if kind == FrameKind::Rts { self.radio.rts_airtime() } else { self.radio.cts_airtime() },
            ack_airtime: self.radio.answer_airtime(self.radio.data_mode()),
            category: Category::default(),
            sequence: 0,
            retry: false,
            attempt: 1,
            backoff_slots: 0,
            packet: matches!(kind, FrameKind::Data | FrameKind::Bcast).then(|| packet(77, ME, false)),
            block: None,
            snr_db: None,
        }
    }

    pub fn data(&self, sequence: u16, retry: bool) -> Frame {
        Frame { sequence, retry, ..self.frame(FrameKind::Data, PEER, Dest::Station(ME), 0) }
    }

    /// The next frame that it sends, and its start.
    pub fn next(&mut self) -> (u64, Frame) {
        let sent = self.sent.len();
        while self.sent.len() == sent {
            let later = self.now + 1;
            self.until(later);
        }
        self.sent.last().unwrap().clone()
    }

    /// The last frame sent is answered by `kind` after SIFS.
    pub fn answer(&mut self, kind: FrameKind) {
        let reserves = if kind == FrameKind::Cts { 5000 } else { 0 };
        let answer = self.frame(kind, PEER, Dest::Station(ME), reserves);
        self.answer_by(&answer);
    }

    /// The last frame sent is answered by this one after SIFS.
    pub fn answer_by(&mut self, answer: &Frame) {
        let (at, frame) = self.sent.last().unwrap();
        let start = at + frame.airtime.as_nanos().div_ceil(1000) + u64::from(self.radio.sifs_us);
        self.hears(start, start + answer.airtime.as_nanos() / 1000, answer);
    }

    fn last(&self) -> (u64, FrameKind) {
        self.sent.last().map(|(t, f)| (*t, f.kind)).expect("something was sent")
    }

    /// Start of transmission `n` without the backoff drawn for it, and that backoff in slots.
    pub fn before_backoff(&self, n: usize) -> (u64, u32) {
        let (at, frame) = &self.sent[n];
        (at - u64::from(frame.backoff_slots) * u64::from(self.radio.slot_us), frame.backoff_slots)
    }
}

//  0                    1000
//  |  idle longer than DIFS | packet, sent at once
#[test]
fn idle_longer_than_difs_is_sent_on_at_once() {
    let mut b = Bench::standard();
    b.packet(1000, packet(1, PEER, false)).until(1000);
    assert_eq!(b.last(), (1000, FrameKind::Data));
    assert_eq!(b.sent[0].1.backoff_slots, 0);
}

//  0    30        50
//  |    | packet  | DIFS over: sent, no backoff (9.3.4.2: the medium was idle when the packet came)
#[test]
fn idle_shorter_than_difs_waits_for_its_end() {
    let mut b = Bench::standard();
    b.packet(30, packet(1, PEER, false)).until(2000);
    assert_eq!(b.last().0, 50);
}

//  ns-2 drops one earlier: with its ifqLen of 2 the third
#[test]
fn as_many_wait_as_the_queue_holds_beside_the_packet_in_service() {
    let mut b = Bench::standard();
    b.dcf.own.queue = InterfaceQueue::drop_tail(2, true);
    (1..=4).for_each(|id| b.dcf.enqueue(us(0), packet(id, PEER, false)));
    b.collect(0);
    assert_eq!((b.dropped, b.dcf.backlog()), (vec![4], 3));
}

//  100      300       350
//   | busy   | DIFS    | slots ...
//      | packet at 200
#[test]
fn busy_at_arrival_means_difs_and_a_drawn_backoff() {
    let mut b = Bench::standard();
    b.until(100).dcf.medium_busy(us(100));
    b.packet(200, packet(1, PEER, false));
    let good = b.frame(FrameKind::Ack, OTHER, Dest::Station(PEER), 0);
    b.dcf.receive(us(300), &good, Decoded::ALL);
    b.dcf.medium_idle(us(300));
    b.until(5000);
    let (start, slots) = b.before_backoff(0);
    assert!(slots > 0, "seed 4 draws a backoff above 0");
    assert_eq!(start, 300 + 50);
}

//  ns-2: the packet finds the medium idle and still waits DIFS and a backoff, both from its arrival
#[test]
fn ns2_backs_off_even_when_the_medium_was_idle() {
    let mut b = Bench::new("ns2-dsss-2m", |_| ());
    b.packet(1000, packet(1, PEER, false)).until(9000);
    assert_eq!(b.sent[0].0, 1000 + 50 + u64::from(b.sent[0].1.backoff_slots) * 20);
}

//  |DIFS|s0|s1|s| busy |DIFS|s2|...    the third slot was begun, not over: it does not count
#[test]
fn busy_in_mid_slot_does_not_count() {
    let mut b = Bench::new("ns2-dsss-2m", |r| r.rules.eifs_as_nav = false);
    b.packet(1000, packet(1, PEER, false));
    // two and a half slots into the countdown that began at 1050
    let quiet = b.frame(FrameKind::Ack, OTHER, Dest::Station(PEER), 0);
    b.hears(1100, 1500, &quiet);
    b.until(9000);
    let drawn = u64::from(b.sent[0].1.backoff_slots);
    assert!(drawn > 2, "seed 4 draws more than two slots");
    assert_eq!(b.sent[0].0, 1500 + 50 + (drawn - 2) * 20);
}

//  a slot that ends in the very instant the medium becomes busy is over
#[test]
fn a_slot_that_ends_as_the_medium_becomes_busy_counts() {
    let mut b = Bench::new("ns2-dsss-2m", |_| ());
    b.packet(1000, packet(1, PEER, false));
    let quiet = b.frame(FrameKind::Ack, OTHER, Dest::Station(PEER), 0);
    b.hears(1090, 1500, &quiet);
    b.until(9000);
    assert_eq!(b.sent[0].0, 1500 + 50 + (u64::from(b.sent[0].1.backoff_slots) - 2) * 20);
}

//  busy again before DIFS is over: nothing is counted down
#[test]
fn two_receptions_back_to_back_leave_no_slot_between() {
    let mut b = Bench::new("ns2-dsss-2m", |_| ());
    b.packet(1000, packet(1, PEER, false));
    let quiet = b.frame(FrameKind::Ack, OTHER, Dest::Station(PEER), 0);
    b.hears(1010, 1300, &quiet);
    b.hears(1340, 1600, &quiet);
    b.until(9000);
    assert_eq!(b.sent[0].0, 1600 + 50 + u64::from(b.sent[0].1.backoff_slots) * 20);
}

//  | undecodable | EIFS 364 |  instead of DIFS (9.3.2.3.7)
#[test]
fn eifs_follows_an_undecodable_frame() {
    let mut b = Bench::standard();
    b.noise(100, 300, false);
    b.packet(310, packet(1, PEER, false)).until(9000);
    assert_eq!(b.before_backoff(0).0, 300 + 364);
}

//  | undecodable |
//           | interferer      | EIFS 364 |    from when the medium is idle
#[test]
fn eifs_begins_when_the_medium_is_idle_again() {
    let mut b = Bench::standard();
    b.dcf.medium_busy(us(100));
    b.dcf.receive_failed(us(300), false);
    b.dcf.medium_idle(us(500));
    b.packet(510, packet(1, PEER, false)).until(9000);
    assert_eq!(b.before_backoff(0).0, 500 + 364);
}

//  | undecodable | EIFS ... | decoded | DIFS |   a correct frame ends EIFS
#[test]
fn a_decoded_frame_ends_eifs() {
    let mut b = Bench::standard();
    b.noise(100, 300, false);
    let good = b.frame(FrameKind::Ack, OTHER, Dest::Station(PEER), 0);
    b.hears(320, 400, &good);
    b.packet(1000, packet(1, PEER, false)).until(1000);
    assert_eq!(b.last().0, 1000, "600 us of idle medium are longer than DIFS");
}

#[test]
fn a_frame_only_sensed_causes_difs_in_the_standard_and_a_nav_of_eifs_in_ns2() {
    let mut b = Bench::standard();
    b.noise(100, 300, true);
    b.packet(400, packet(1, PEER, false)).until(400);
    assert_eq!(b.last().0, 400);
    let mut b = Bench::new("ns2-dsss-2m", |_| ());
    b.noise(100, 300, true);
    b.packet(400, packet(1, PEER, false)).until(9000);
    assert_eq!(b.sent[0].0, 300 + 364 + 50 + u64::from(b.sent[0].1.backoff_slots) * 20);
}

//  | RTS for another, NAV 3000 ... | DIFS | backoff
#[test]
fn the_nav_holds_the_station_as_a_busy_medium_does() {
    let mut b = Bench::standard();
    let rts = b.frame(FrameKind::Rts, OTHER, Dest::Station(PEER), 3000);
    b.hears(100, 372, &rts);
    b.packet(500, packet(1, PEER, false)).until(9000);
    assert_eq!(b.before_backoff(0).0, 372 + 3000 + 50);
}

#[test]
fn a_shorter_reservation_never_shortens_the_nav() {
    let mut b = Bench::standard();
    b.hears(100, 372, &b.frame(FrameKind::Rts, OTHER, Dest::Station(PEER), 3000));
    b.hears(400, 648, &b.frame(FrameKind::Cts, PEER, Dest::Station(OTHER), 10));
    assert_eq!(b.dcf.nav_until(), us(3372));
}

#[test]
fn an_rts_is_answered_after_sifs_and_not_under_a_nav() {
    let mut b = Bench::standard();
    let rts = b.frame(FrameKind::Rts, PEER, Dest::Station(ME), 3000);
    assert!(b.hears(100, 372, &rts));
    b.until(382);
    assert_eq!(b.last(), (382, FrameKind::Cts));
    // the CTS reserves what the RTS did, less SIFS and its own 248 us
    assert_eq!(b.sent[0].1.reserves, Duration::from_micros(3000 - 10 - 248));

    let mut b = Bench::standard();
    b.hears(100, 372, &b.frame(FrameKind::Rts, OTHER, Dest::Station(PEER), 5000));
    let rts = b.frame(FrameKind::Rts, PEER, Dest::Station(ME), 3000);
    assert!(!b.hears(1000, 1272, &rts));
    b.until(4000);
    assert!(b.sent.is_empty());
}

#[test]
fn data_is_acknowledged_after_sifs_even_if_the_medium_is_busy() {
    let mut b = Bench::standard();
    let data = b.data(5, false);
    b.hears(100, 1000, &data);
    b.dcf.medium_busy(us(1005));
    b.until(1010);
    assert_eq!(b.last(), (1010, FrameKind::Ack));
    assert_eq!(b.delivered, [77]);
}

//  802.11-2016 10.6.6.5.2: data at 9 Mbit/s, basic rates 6, 12 and 24: an ACK at 6 (44 us) and no answer faster than its question
//  | data | SIFS | own ACK | DIFS | backoff |   the packet to be forwarded arrives with the data, before the ACK (9.3.2.1, 9.3.4.2)
#[test]
fn a_relays_own_ack_makes_the_medium_busy_for_the_packet_that_it_forwards() {
    let mut b = Bench::standard();
    let data = b.data(5, false);
    b.hears(100, 1000, &data);
    b.packet(1000, packet(1, OTHER, false)).until(9000);
    assert_eq!((b.sent[0].0, b.sent[0].1.kind), (1010, FrameKind::Ack));
    let ack_ends = 1010 + b.sent[0].1.airtime.as_nanos().div_ceil(1000);
    assert_eq!(b.before_backoff(1).0, ack_ends + 50);
    assert!(b.sent[1].1.backoff_slots > 0, "drawn, not access at once");
}

#[test]
fn data_is_acknowledged_at_the_fastest_basic_rate_not_above_its_own() {
    let mut b = Bench::new("dot11a-54m", |_| ());
    let data = Frame { mode: Mode::Ofdm(9_000_000), ..b.data(5, false) };
    b.hears(100, 1000, &data);
    b.until(1016);
    let (at, ack) = b.sent.last().unwrap().clone();
    assert_eq!((at, ack.kind, ack.mode), (1016, FrameKind::Ack, Mode::Ofdm(6_000_000)));
    assert_eq!(ack.airtime, Duration::from_micros(20 + 6 * 4)); // (16 + 112 + 6) bits in 6 symbols of 24
}

//  and the frames before it reserve as much: data at 6 Mbit/s holds SIFS 16 + ACK 44, its RTS 3 SIFS + CTS at 24 (28) + data + ACK
#[test]
fn reservations_hold_an_ack_at_the_rate_it_will_have() {
    for threshold in [0, 3000] {
        let mut b = Bench::new("dot11a-54m", |r| {
            r.data_rate_bps = 6_000_000;
            r.rts_threshold_bytes = threshold;
        });
        b.packet(1000, packet(1, PEER, false)).until(1000);
        let frame = b.sent[0].1.clone();
        let data = b.radio.airtime(1536, Mode::Ofdm(6_000_000));
        let rts = Duration::from_micros(3 * 16 + 28 + 44) + data;
        let wanted = if frame.kind == FrameKind::Rts { rts } else { Duration::from_micros(16 + 44) };
        assert_eq!(frame.reserves, wanted, "{:?}", frame.kind);
    }
}

//  ns-2's timeout: SIFS + the whole answer + 4 us; with basic rates 1 and 2 the ACK to 2 Mbit/s lasts 192 + 56 us
#[test]
fn the_full_timeout_is_that_of_the_answer_to_this_frame() {
    let mut b = Bench::new("ns2-dsss-2m", |r| {
        r.rts_threshold_bytes = 3000;
        r.basic_rates_bps = vec![1_000_000, 2_000_000];
    });
    b.packet(1000, packet(1, PEER, false)).until(2000);
    let end = b.sent[0].0 + b.sent[0].1.airtime.as_nanos() / 1000;
    b.until(end + 10 + 248 + 3);
    assert_eq!(b.dcf.counters.ack_timeout, 0);
    b.until(end + 10 + 248 + 4);
    assert_eq!(b.dcf.counters.ack_timeout, 1);
}

#[test]
fn a_duplicate_is_acknowledged_and_not_delivered() {
    let mut b = Bench::standard();
    b.hears(100, 1000, &b.data(5, false));
    b.until(3000);
    b.hears(4000, 5000, &b.data(5, true));
    b.until(7000);
    b.hears(8000, 9000, &b.data(6, true));
    b.until(12_000);
    assert_eq!(b.sent.iter().filter(|(_, f)| f.kind == FrameKind::Ack).count(), 3);
    assert_eq!((b.delivered.len(), b.dcf.counters.rx_duplicate), (2, 1));
}

//  RTS 272 | SIFS 10 | CTS 248 | SIFS 10 | data | SIFS | ACK | DIFS + post-backoff
#[test]
fn a_full_exchange_keeps_its_spaces() {
    let mut b = Bench::new("dot11b-11m", |_| ());
    b.packet(1000, packet(1, PEER, false));
    b.packet(1000, packet(2, PEER, false)).until(1000);
    assert_eq!(b.last(), (1000, FrameKind::Rts));
    b.answer(FrameKind::Cts);
    b.until(1000 + 272 + 10 + 248 + 10);
    assert_eq!(b.last(), (1540, FrameKind::Data));
    b.answer(FrameKind::Ack);
    let ack_end = b.now;
    b.until(ack_end + 2000);
    assert_eq!(b.before_backoff(2).0, ack_end + 50);
    assert_eq!((b.sent[2].1.kind, b.sent[2].1.packet_id()), (FrameKind::Rts, 2));
}

#[test]
fn after_a_success_a_backoff_runs_though_nothing_is_queued() {
    let mut b = Bench::standard();
    b.packet(1000, packet(1, PEER, false)).until(1000);
    b.answer(FrameKind::Ack);
    let ack_end = b.now;
    b.packet(ack_end + 1, packet(2, PEER, false)).until(ack_end + 9000);
    let (start, slots) = b.before_backoff(1);
    assert!(slots > 0);
    assert_eq!(start, ack_end + 50, "the post-backoff, begun at the ACK's end");
}

//  data | SIFS + slot + PHY start delay = 10 + 20 + 192 | no ACK: backoff of the doubled window
#[test]
fn a_missing_ack_is_noticed_after_the_standards_timeout_and_doubles_the_window() {
    let mut b = Bench::standard();
    b.packet(1000, packet(1, PEER, false)).until(1000);
    let data_us = b.sent[0].1.airtime.as_nanos().div_ceil(1000);
    b.until(1000 + data_us + 221);
    assert_eq!(b.dcf.counters.ack_timeout, 0);
    b.until(1000 + data_us + 222);
    assert_eq!(b.dcf.counters.ack_timeout, 1);
    b.until(50_000);
    // the medium has been idle longer than DIFS: the slots begin at once
    let (at, frame) = &b.sent[1];
    assert_eq!(*at, 1000 + data_us + 222 + u64::from(frame.backoff_slots) * 20);
    assert!(frame.retry && frame.attempt == 2 && frame.sequence == b.sent[0].1.sequence);
}

#[test]
fn another_frame_in_place_of_the_ack_ends_the_wait_by_the_standard_only() {
    for (name, given_up) in [("dot11b-11m", 1), ("ns2-dsss-2m", 0)] {
        let mut b = Bench::new(name, |r| r.rts_threshold_bytes = 3000);
        b.packet(1000, packet(1, PEER, false)).until(1000);
        let start = b.dcf.next_timeout().map_or(1000, |t| t.as_nanos() / 1000);
        let end = start + b.radio.airtime(1500 + b.radio.overhead_bytes, b.radio.data_mode()).as_nanos().div_ceil(1000);
        let cts = b.frame(FrameKind::Cts, OTHER, Dest::Station(PEER), 500);
        b.until(end).hears(end + 20, end + 200, &cts);
        assert_eq!(b.dcf.counters.ack_timeout, given_up, "{name}");
    }
}

#[test]
fn a_success_brings_the_window_back_to_its_minimum() {
    let mut b = Bench::standard();
    let mut max = 0;
    for id in 1..=200 {
        // two attempts fail (the window is 127 then), the third is acknowledged
        let t = b.now + 50_000;
        let first = b.sent.len();
        b.packet(t, packet(2 * id, PEER, false));
        b.packet(t, packet(2 * id + 1, PEER, false));
        while b.sent.len() < first + 3 {
            let next = b.now + 10;
            b.until(next);
        }
        b.answer(FrameKind::Ack);
        let next = b.now + 1000;
        b.until(next);
        let after = &b.sent[first + 3].1;
        assert_eq!(after.packet_id(), 2 * id + 1);
        max = max.max(after.backoff_slots);
        b.answer(FrameKind::Ack);
    }
    assert!((26..=31).contains(&max), "{max}: the maximum of 200 draws from 0 to 31");
}

#[test]
fn the_window_doubles_to_its_maximum_and_the_packet_fails_at_the_retry_limit() {
    let mut b = Bench::standard();
    let mut max = [0u32; 8];
    for id in 1..=400 {
        b.sent.clear();
        let t = b.now + 100_000;
        b.packet(t, packet(id, PEER, false)).until(t + 90_000);
        assert_eq!(b.sent.len(), 7, "short retry limit 7");
        for (i, (_, frame)) in b.sent.iter().enumerate() {
            max[i + 1] = max[i + 1].max(frame.backoff_slots);
        }
    }
    assert_eq!(b.failed.len(), 400);
    assert!(b.failed.iter().all(|(_, r)| *r == FailReason::ShortRetryLimit));
    assert_eq!(max[1], 0, "the first attempt finds the medium idle and the last backoff over");
    for (attempt, cw) in [(2, 63), (3, 127), (4, 255), (5, 511), (6, 1023), (7, 1023)] {
        let m = max[attempt];
        assert!(m <= cw && m > cw * 8 / 10, "attempt {attempt}: {m} of {cw}");
    }
}

#[test]
fn with_rts_the_data_frame_fails_at_the_long_retry_limit() {
    let mut b = Bench::new("ns2-dsss-2m", |_| ());
    b.packet(1000, packet(1, PEER, false));
    let mut answered = 0;
    while b.failed.is_empty() && b.now < 1_000_000 {
        let next = b.now + 10;
        b.until(next);
        if b.sent.len() > answered && b.last().1 == FrameKind::Rts {
            b.answer(FrameKind::Cts); // the ACK never comes
            answered = b.sent.len();
        }
    }
    assert_eq!(b.failed, [(1, FailReason::LongRetryLimit)]);
    assert_eq!(b.sent.iter().filter(|(_, f)| f.kind == FrameKind::Data).count(), 4);
}

#[test]
fn only_in_ns2_a_packet_that_failed_at_one_limit_leaves_the_other_counter_to_the_next() {
    // packet 1: CTS, no ACK (long 1), then never a CTS (short limit); packet 2: always CTS, never an ACK
    for (carry, tries) in [(true, 3), (false, 4)] {
        let mut b = Bench::new("ns2-dsss-2m", |r| r.rules.retries_carry_over = carry);
        b.packet(1000, packet(1, PEER, false)).packet(1000, packet(2, PEER, false));
        let (mut seen, mut answered) = (0, false);
        while b.failed.len() < 2 && b.now < 3_000_000 {
            let next = b.now + 10;
            b.until(next);
            if b.sent.len() > seen && b.last().1 == FrameKind::Rts && !(b.failed.is_empty() && answered) {
                b.answer(FrameKind::Cts);
                answered = true;
            }
            seen = b.sent.len();
        }
        assert_eq!(b.failed, [(1, FailReason::ShortRetryLimit), (2, FailReason::LongRetryLimit)]);
        let of_second = |f: &Frame| f.kind == FrameKind::Data && f.packet_id() == 2;
        assert_eq!(b.sent.iter().filter(|(_, f)| of_second(f)).count(), tries);
    }
}

#[test]
fn data_received_while_the_station_waits_for_an_ack_is_not_accepted() {
    // ns-2's rules: the wait continues; by the standard's it would end here
    let mut b = Bench::new("ns2-dsss-2m", |r| r.rts_threshold_bytes = 3000);
    b.packet(1000, packet(1, PEER, false)).until(1000);
    let start = b.dcf.next_timeout().unwrap().as_nanos() / 1000;
    let end = start + b.radio.airtime(1534, Mode::Dsss(2_000_000)).as_nanos() / 1000;
    b.until(end);
    let data = b.data(5, false);
    assert!(!b.hears(end + 10, end + 300, &data));
    assert!(b.delivered.is_empty());
}

#[test]
fn an_exchange_whose_packets_are_purged_leaves_its_place_to_the_next_that_contends() {
    let mut b = Bench::new("dot11n-ht20", |_| ());
    b.dcf.medium_busy(us(100));
    let gone = packet(1, PEER, false);
    b.packet(150, gone.clone()).packet(150, packet(2, OTHER, false));
    assert_eq!(b.dcf.purge(gone.dest_mac, Some(PEER)).len(), 1);
    b.dcf.medium_idle(us(200));
    b.until(3000);
    let (at, frame) = &b.sent[0];
    assert_eq!((frame.dest, frame.packet.as_ref().map(|p| p.id)), (Dest::Station(OTHER), Some(2)));
    // AIFS of 43 us and the slots of 9 us of the station's backoff, whichever packet it serves (802.11-2016, 10.22.2.4)
    assert!(*at > 200 + 43 && (at - 200 - 43) % 9 == 0, "{at}");
}

#[test]
fn a_broadcast_is_sent_once_at_the_basic_rate_without_rts() {
    let mut b = Bench::new("ns2-dsss-2m", |_| ());
    let mut p = (*packet(1, PEER, false)).clone();
    p.dest = Dest::Broadcast;
    b.packet(1000, Arc::new(p)).until(100_000);
    assert_eq!(b.sent.len(), 1);
    let frame = &b.sent[0].1;
    assert_eq!((frame.kind, frame.mode, frame.reserves), (FrameKind::Bcast, Mode::Dsss(1_000_000), Duration::ZERO));
}

#[test]
fn ns2_does_not_answer_an_rts_while_it_senses_something() {
    for (needs_idle, answers) in [(true, 0), (false, 1)] {
        let mut b = Bench::new("ns2-dsss-2m", |r| r.rules.response_needs_idle = needs_idle);
        let rts = b.frame(FrameKind::Rts, PEER, Dest::Station(ME), 3000);
        b.hears(100, 452, &rts);
        b.dcf.medium_busy(us(455));
        b.until(1000);
        assert_eq!(b.sent.len(), answers);
    }
}

#[test]
fn after_its_cts_ns2_waits_for_the_data_and_the_standard_does_not() {
    for (holds, first) in [(true, 462 + 304 + 6000), (false, 462 + 304 + 50)] {
        let mut b = Bench::new("ns2-dsss-2m", |r| r.rules.cts_holds = holds);
        let data_ack = 10 + 304 + 6000 + 10 + 304;
        let rts = b.frame(FrameKind::Rts, PEER, Dest::Station(ME), data_ack);
        b.hears(100, 452, &rts);
        b.packet(500, packet(1, PEER, false)).until(20_000);
        assert_eq!(b.sent[0].1.kind, FrameKind::Cts);
        let (at, frame) = &b.sent[1];
        let wait = at - u64::from(frame.backoff_slots) * 20;
        assert!((first..first + 100).contains(&wait), "{wait}");
    }
}
