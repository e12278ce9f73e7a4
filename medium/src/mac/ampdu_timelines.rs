//! A-MPDUs and Block Ack Requests of the DCF and of EDCA against drawn timelines with their times; [`super::block_ack`] has the agreement's
//! own. Profile `dot11n-ht20`: slot 9, SIFS 16, AIFS 43, Block Ack at 24 Mbit/s 32 us, Block Ack Request at 24 Mbit/s 32 us.

use super::block_ack::Bitmap;
use super::dcf_timelines::{us, Bench, ME, PEER};
use super::packet::tests::packet;
use super::{Block, Category, Dest, Frame, Packet};
use crate::phy::radio::{Access, Aggregation, AggregationLimits, RateControl};
use crate::phy::{FrameKind, Radio};
use manet_engine::Duration;
use std::sync::Arc;

const SIFS: u64 = 16;
const BLOCK_ACK: u64 = 32;
/// No answer: SIFS + slot + start delay.
const TIMEOUT: u64 = 58;

fn aggregating(change: impl FnOnce(&mut Radio)) -> Bench {
    Bench::new("dot11n-ht20", |r| {
        r.aggregation = Aggregation::Mpdus(4);
        change(r);
    })
}

/// Packets with numbers from 1 come while the medium is busy, so that they wait together; it is idle from 300 on.
fn waiting(mut b: Bench, count: u64, category: Category) -> Bench {
    b.until(100).dcf.medium_busy(us(100));
    for id in 1..=count {
        b.packet(200, Arc::new(Packet { category, ..Packet::clone(&packet(id, PEER, false)) }));
    }
    b.until(300).dcf.receive_failed(us(300), true);
    b.dcf.medium_idle(us(300));
    b
}

/// The peer answers the last frame with the MPDUs in `bits` from `start` on.
fn block_ack(b: &mut Bench, start: u16, bits: u64) {
    let block = Some(Arc::new(Block::Answer(Bitmap { start, bits })));
    let airtime = Duration::from_micros(BLOCK_ACK);
    let category = b.sent.last().unwrap().1.category;
    let answer = Frame { block, airtime, category, ..b.frame(FrameKind::Ba, PEER, Dest::Station(ME), 0) };
    b.answer_by(&answer);
}

/// Sequence numbers, with `'` for each repetition.
fn mpdus(frame: &Frame) -> String {
    let Some(Block::Data { parts, .. }) = frame.block.as_deref() else { panic!("no data: {:?}", frame.kind) };
    let of = |part: &super::Part| format!("{}{}", part.sequence, "'".repeat(part.attempt as usize - 1));
    parts.iter().map(of).collect::<Vec<_>>().join(" ")
}

fn airtime(frame: &Frame) -> u64 {
    frame.airtime.as_nanos() / 1000
}

//  | AIFS, slots | 0 1x 2 3 | SIFS | BA 0,2,3 | AIFS, slots | 1' 4 5 6 |
#[test]
fn a_lost_mpdu_is_repeated_with_new_ones_after_a_backoff() {
    let mut b = waiting(aggregating(|_| ()), 7, Category::BestEffort);
    let (at, first) = b.next();
    assert_eq!(at - u64::from(first.backoff_slots) * 9, 300 + 43);
    assert_eq!(mpdus(&first), "0 1 2 3");
    assert_eq!(first.reserves, Duration::from_micros(SIFS + BLOCK_ACK));
    block_ack(&mut b, 0, 0b1101);
    let end = at + airtime(&first) + SIFS + BLOCK_ACK;
    assert_eq!(b.now, end);
    let (at, second) = b.next();
    assert_eq!(at - u64::from(second.backoff_slots) * 9, end + 43);
    assert_eq!(mpdus(&second), "1' 4 5 6");
}

//  | 0 1 2 3 | no BA: SIFS + slot + start delay 58 | slots of the doubled window | BAR 0 | SIFS | BA 0,2 | AIFS, slots | 1' 3' 4 5 |
//  by the DCF the medium has been idle longer than AIFS when the wait is over, so that slots count at once
#[test]
fn a_block_ack_that_is_missing_is_requested() {
    let limits = AggregationLimits { max_mpdus: Some(4), request_after_silence: true, ..Default::default() };
    let mut b = waiting(aggregating(|r| r.aggregation = Aggregation::Limits(limits)), 7, Category::BestEffort);
    let (at, first) = b.next();
    let silence = at + airtime(&first) + TIMEOUT;
    let (at, request) = b.next();
    assert_eq!((request.kind, airtime(&request)), (FrameKind::Bar, 32));
    assert_eq!(at - u64::from(request.backoff_slots) * 9, silence);
    assert!(matches!(request.block.as_deref(), Some(Block::Request { start: 0 })));
    block_ack(&mut b, 0, 0b0101);
    let end = at + 32 + SIFS + BLOCK_ACK;
    let (at, second) = b.next();
    assert_eq!(at - u64::from(second.backoff_slots) * 9, end + 43);
    assert_eq!(mpdus(&second), "1' 3' 4 5");
}

//  | 0 1 2 3 | no BA | slots | BAR 0 | at a basic rate not above that of the data: 24 before MCS 7, 12 before MCS 1 (13), 6 before MCS 0 (6.5)
//  24 bytes: 20 + 4 x ceil(214 bits / 96, 48, 24) us
#[test]
fn a_request_is_no_faster_than_the_data_whose_fate_it_asks() {
    let request = |change: fn(&mut Radio)| {
        let limits = AggregationLimits { max_mpdus: Some(4), request_after_silence: true, ..Default::default() };
        let mut b = waiting(
            aggregating(|r| {
                r.aggregation = Aggregation::Limits(limits);
                change(r);
            }),
            4,
            Category::BestEffort,
        );
        let (at, first) = b.next();
        let silence = at + airtime(&first) + b.radio.answer_timeout(first.mode).as_nanos() / 1000;
        let (at, request) = b.next();
        assert_eq!(request.kind, FrameKind::Bar);
        assert_eq!(at - u64::from(request.backoff_slots) * 9, silence);
        // SIFS and the Block Ack at its own rate
        assert_eq!(request.reserves, Duration::from_micros(SIFS) + b.radio.airtime(32, request.mode));
        (request.mode.rate_bps() / 1_000_000, airtime(&request))
    };
    assert_eq!(request(|r| r.mcs = Some(7)), (24, 32));
    assert_eq!(request(|r| r.mcs = Some(1)), (12, 40));
    assert_eq!(request(|r| r.mcs = Some(0)), (6, 56));
    // the rate control's choice, not the profile's MCS 7: without an SNR `ideal` takes the most robust
    assert_eq!(request(|r| r.rate_control = RateControl::Ideal), (6, 56));
    assert_eq!(request(|r| r.control_rate_bps = 12_000_000), (12, 40), "at most the profile's rate of control frames");
}

//  | 0 1 2 3 | no BA: 58 | slots | BAR 0 at 24: 32 | no BA: 58 | slots | BAR 0 at 6: 56 | no BA: 58 | slots | BAR 0 at 6 | SIFS | BA: 68 | AIFS, slots | 1' 3' |
#[test]
fn a_request_that_is_not_answered_is_repeated_at_the_slowest_basic_rate() {
    let limits = AggregationLimits { max_mpdus: Some(4), request_after_silence: true, ..Default::default() };
    let mut b = waiting(aggregating(|r| r.aggregation = Aggregation::Limits(limits)), 4, Category::BestEffort);
    let (at, first) = b.next();
    let mut silence = at + airtime(&first) + TIMEOUT;
    for (repetition, rate_bps, us) in [(0, 24_000_000, 32), (1, 6_000_000, 56), (2, 6_000_000, 56)] {
        let (at, request) = b.next();
        assert_eq!((request.kind, request.mode.rate_bps(), airtime(&request)), (FrameKind::Bar, rate_bps, us));
        assert_eq!(at - u64::from(request.backoff_slots) * 9, silence, "{repetition}");
        silence = at + us + TIMEOUT;
    }
    block_ack(&mut b, 0, 0b0101);
    let (_, again) = b.next();
    assert_eq!(mpdus(&again), "1' 3'");
}

//  voice at MCS 2 (19.5 Mbit/s), retry limit 1: | 0 1 | SIFS | BA 0: 44 | SIFS | BAR 2: 40 | SIFS | BA: 44 |, the last three only if the TXOP has room for them
#[test]
fn within_a_txop_a_request_needs_room_for_itself_and_its_block_ack() {
    let follows = |txop_us| {
        let edca = aggregating(|r| {
            (r.access, r.aggregation, r.mcs) = (Access::Edca, Aggregation::Mpdus(2), Some(2));
            r.short_retry_limit = 1;
            r.access_categories.voice.txop_us = Some(txop_us);
        });
        let mut b = waiting(edca, 4, Category::Voice);
        let (at, first) = b.next();
        assert_eq!(mpdus(&first), "0 1");
        let block = Some(Arc::new(Block::Answer(Bitmap { start: 0, bits: 0b01 })));
        let ba = Duration::from_micros(44);
        let ba = Frame {
            block,
            airtime: ba,
            category: Category::Voice,
            ..b.frame(FrameKind::Ba, PEER, Dest::Station(ME), 0)
        };
        b.answer_by(&ba);
        let end = at + airtime(&first) + SIFS + 44;
        let (sent, next) = b.next();
        assert_eq!((next.kind, airtime(&next)), (FrameKind::Bar, 40));
        (sent == end + SIFS, end - at)
    };
    let (_, used) = follows(5000);
    let needed = u32::try_from(used + SIFS + 40 + SIFS + 44).unwrap();
    assert!(follows(needed).0, "{needed} us");
    assert!(!follows(needed - 1).0, "{needed} us less 1");
}

//  voice, A-MPDUs of 2: | 0 1 | SIFS | BA 0 | SIFS | 1' 2 | SIFS | BA | SIFS | 3 | SIFS | ACK |
#[test]
fn within_a_txop_a_lost_mpdu_is_repeated_after_sifs() {
    let edca = aggregating(|r| (r.access, r.aggregation) = (Access::Edca, Aggregation::Mpdus(2)));
    let mut b = waiting(edca, 4, Category::Voice);
    let (at, first) = b.next();
    assert_eq!(mpdus(&first), "0 1");
    block_ack(&mut b, 0, 0b01);
    let end = at + airtime(&first) + SIFS + BLOCK_ACK;
    let (at, second) = b.next();
    assert_eq!((at, mpdus(&second), second.backoff_slots), (end + SIFS, "1' 2".into(), 0));
    block_ack(&mut b, 0, 0b111);
    let end = at + airtime(&second) + SIFS + BLOCK_ACK;
    let (at, third) = b.next();
    assert_eq!((at, mpdus(&third)), (end + SIFS, "3".into()));
}

//  an A-MPDU of a TXOP ends, with its Block Ack, before the limit; without a limit 28 MPDUs take 5.4 ms
#[test]
fn an_a_mpdu_is_no_longer_than_its_txop() {
    let length = |category, txop_us| {
        let bench = aggregating(|r| {
            (r.access, r.aggregation) = (Access::Edca, Aggregation::Switch(true));
            r.access_categories.voice.txop_us = txop_us;
        });
        let (_, frame) = waiting(bench, 40, category).next();
        (frame.aggregate().len(), airtime(&frame))
    };
    let (mpdus, us) = length(Category::Voice, None);
    assert!(us + SIFS + BLOCK_ACK <= 2080 && us > 2080 - 48 - 194, "{mpdus} MPDUs, {us} us");
    assert_eq!(length(Category::Voice, Some(0)).0, 28);
    assert_eq!(length(Category::BestEffort, None).0, 28);
    assert_eq!(length(Category::Video, None).0, 21);
    // shorter than a single MPDU: that is sent alone
    assert_eq!(length(Category::Voice, Some(100)).0, 0);
}

//  the agreements of two categories with one peer have numbers of their own
#[test]
fn each_category_has_its_own_agreement() {
    let edca = aggregating(|r| {
        r.access = Access::Edca;
        r.access_categories.voice.txop_us = Some(0);
    });
    let mut b = waiting(edca, 3, Category::Voice);
    let mut seen = Vec::new();
    let (_, first) = b.next();
    seen.push((first.category, mpdus(&first)));
    let now = b.now;
    for id in 4..=6 {
        b.packet(now, packet(id, PEER, false));
    }
    block_ack(&mut b, 0, 0b111);
    let (_, second) = b.next();
    seen.push((second.category, mpdus(&second)));
    assert_eq!(seen, [(Category::Voice, "0 1 2".to_owned()), (Category::BestEffort, "0 1 2".to_owned())]);
}
