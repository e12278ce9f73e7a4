//! Originator and recipient against drawn timelines. A line is an exchange: MPDUs by their sequence numbers, `x` after those that
//! are lost, then the answer. Each packet is its sequence number, as all begin at 0.

use super::room::{MAX_HT_BYTES, MAX_PPDU_TIME};
use super::{Answer, Bitmap, Exchange, Fate, Options, Originator, Recipient, Room, Waiting};
use manet_engine::Duration;
use std::collections::VecDeque;

struct Bench {
    originator: Originator<u16>,
    recipient: Recipient<u16>,
    queue: VecDeque<Waiting<u16>>,
    max_mpdus: usize,
    delivered: Vec<u16>,
    /// Final fates in order, without the acknowledged.
    given_up: Vec<(u16, u32, Fate)>,
    acknowledged: Vec<u16>,
}

const OPTIONS: Options = Options { retry_limit: 3, rts_retry_limit: 2, request_after_silence: false };

impl Bench {
    fn new(options: Options, packets: u16, max_mpdus: usize) -> Self {
        let packet = |packet| Waiting { packet, mpdu_bytes: 100 };
        Self {
            originator: Originator::new(options, 0),
            recipient: Recipient::new(0),
            queue: (0..packets).map(packet).collect(),
            max_mpdus,
            delivered: vec![],
            given_up: vec![],
            acknowledged: vec![],
        }
    }

    /// The next exchange: sequence numbers with attempts, or the start of a request.
    fn exchange(&mut self) -> Option<Exchange<u16>> {
        let room = Room {
            max_mpdus: self.max_mpdus,
            max_bytes: MAX_HT_BYTES,
            max_airtime: MAX_PPDU_TIME,
            airtime: &|_| Duration::ZERO,
        };
        let exchange = self.originator.next_exchange(&room, || self.queue.pop_front());
        self.collect();
        exchange
    }

    fn answer(&mut self, answer: Answer) -> bool {
        let taken = self.originator.handle_answer(answer);
        self.collect();
        taken
    }

    fn collect(&mut self) {
        let mut resolved = vec![];
        self.originator.take_resolved(&mut resolved);
        for r in resolved {
            match r.fate {
                Fate::Retried => {}
                Fate::Acknowledged => self.acknowledged.push(r.packet),
                fate => self.given_up.push((r.packet, r.attempts, fate)),
            }
        }
    }

    /// An exchange in which the recipient misses `lost`, and whose answer arrives or not. Returns what was sent.
    fn step(&mut self, lost: &[u16], answered: bool) -> String {
        match self.exchange() {
            None => "-".into(),
            Some(Exchange::Request { start }) => {
                let bitmap = self.recipient.handle_request(start, &mut self.delivered);
                assert!(self.answer(if answered { Answer::BlockAck(bitmap) } else { Answer::Nothing }));
                format!("BAR {start}")
            }
            Some(Exchange::Data { mpdus, .. }) => {
                let arrived: Vec<_> = mpdus.iter().filter(|m| !lost.contains(&m.sequence)).collect();
                for m in &arrived {
                    self.recipient.receive(m.sequence, m.waiting.packet, &mut self.delivered);
                }
                let answer = match (answered && !arrived.is_empty(), mpdus.len()) {
                    (false, _) => Answer::Nothing,
                    (true, 1) => Answer::Ack,
                    (true, _) => Answer::BlockAck(self.recipient.block_ack()),
                };
                assert!(self.answer(answer));
                let sent = |m: &super::Mpdu<u16>| format!("{}{}", m.sequence, "'".repeat(m.attempts as usize - 1));
                mpdus.iter().map(sent).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

//  0 1x 2 3   | BA 0,2,3 | 1' 4 5 6 | BA 0 to 6 |
#[test]
fn one_mpdu_of_an_a_mpdu_is_lost_and_retried_with_new_ones() {
    let mut b = Bench::new(OPTIONS, 7, 4);
    assert_eq!(b.step(&[1], true), "0 1 2 3");
    assert_eq!((&b.delivered[..], b.recipient.stored()), (&[0][..], 2));
    assert_eq!((&b.acknowledged[..], b.originator.window_start()), (&[0, 2, 3][..], 1));
    assert_eq!(b.step(&[], true), "1' 4 5 6");
    assert_eq!(b.delivered, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(b.step(&[], true), "-");
}

//  0 1 2 3   | BA lost | 0' 1' 2' 3' | BA 0 to 3 |
#[test]
fn after_a_lost_block_ack_the_whole_a_mpdu_is_repeated_and_its_duplicates_dropped() {
    let mut b = Bench::new(OPTIONS, 8, 4);
    assert_eq!(b.step(&[], false), "0 1 2 3");
    assert_eq!(b.step(&[], true), "0' 1' 2' 3'");
    assert_eq!((&b.delivered[..], b.recipient.counters.duplicates), (&[0, 1, 2, 3][..], 4));
    assert_eq!(b.step(&[], true), "4 5 6 7");
}

//  0 1 2 3   | BA lost | 0' 1' | BA 0 to 3 | 4 5
#[test]
fn a_block_ack_acknowledges_mpdus_of_earlier_exchanges() {
    let mut b = Bench::new(OPTIONS, 6, 4);
    b.step(&[], false);
    b.max_mpdus = 2;
    assert_eq!(b.step(&[], true), "0' 1'");
    assert_eq!(b.acknowledged, [0, 1, 2, 3]);
    assert_eq!(b.step(&[], true), "4 5");
}

//  0 1 2x 3   | BA lost | BAR 0 | BA 0,1,3 | 2' 4 5 6
#[test]
fn a_request_after_silence_repeats_only_what_was_lost() {
    let mut b = Bench::new(Options { request_after_silence: true, ..OPTIONS }, 7, 4);
    assert_eq!(b.step(&[2], false), "0 1 2 3");
    assert_eq!(b.step(&[], true), "BAR 0");
    assert_eq!(b.step(&[], true), "2' 4 5 6");
    assert_eq!((b.delivered.len(), b.recipient.counters.duplicates), (7, 0));
}

//  0x 1 | BA 1 | 0'x 2 | BA 1,2 | 0''x 3 | BA 1 to 3 | 0 given up | BAR 4 | BA | 4 5
#[test]
fn an_mpdu_given_up_is_passed_by_a_request_before_further_data() {
    let mut b = Bench::new(OPTIONS, 6, 2);
    assert_eq!(b.step(&[0], true), "0 1");
    assert_eq!(b.step(&[0], true), "0' 2");
    assert_eq!(b.step(&[0], true), "0'' 3");
    assert_eq!((&b.given_up[..], b.delivered.len()), (&[(0, 3, Fate::RetryLimit)][..], 0));
    assert_eq!(b.step(&[], true), "BAR 4");
    assert_eq!((&b.delivered[..], b.recipient.counters.skipped), (&[1, 2, 3][..], 1));
    assert_eq!(b.step(&[], true), "4 5");
}

//  64 MPDUs of which the first is lost: 0' alone, as the window of 64 allows nothing beyond 63
#[test]
fn a_lost_first_mpdu_stalls_the_window() {
    let mut b = Bench::new(Options { retry_limit: 7, ..OPTIONS }, 100, 32);
    b.step(&[0], true);
    assert_eq!(b.originator.window_start(), 0);
    let sent = b.step(&[0], true);
    assert!(sent.starts_with("0' 32 33") && sent.ends_with(" 62"), "{sent}");
    assert_eq!(b.step(&[0], true), "0'' 63");
    assert_eq!(b.step(&[0], true), "0'''");
    assert_eq!((b.recipient.stored(), b.delivered.len()), (63, 0));
    let sent = {
        assert_eq!(b.step(&[], true), "0''''");
        b.step(&[], true)
    };
    assert!(sent.starts_with("64 65"), "{sent}");
    assert_eq!(b.delivered.len(), 96);
}

//  0 | ACK | 1 | ACK lost | 1' | ACK |
#[test]
fn a_single_mpdu_has_an_ack_and_is_known_again_by_the_scoreboard() {
    let mut b = Bench::new(OPTIONS, 2, 1);
    assert_eq!(b.step(&[], true), "0");
    assert_eq!(b.step(&[], false), "1");
    assert_eq!(b.step(&[], true), "1'");
    assert_eq!((&b.delivered[..], b.recipient.counters.duplicates), (&[0, 1][..], 1));
}

//  0 1x 2x | BA 0 | 1' | ACK | 2' 3 | BA |
#[test]
fn an_ack_acknowledges_what_was_sent_alone_and_nothing_else() {
    let mut b = Bench::new(OPTIONS, 4, 3);
    b.step(&[1, 2], true);
    b.max_mpdus = 1;
    assert_eq!(b.step(&[], true), "1'");
    assert_eq!(b.acknowledged, [0, 1]);
    b.max_mpdus = 3;
    assert_eq!(b.step(&[], true), "2' 3");
    assert_eq!(b.delivered, [0, 1, 2, 3]);
}

//  RTS, no CTS | RTS, no CTS | 0 and 1 given up, never sent
#[test]
fn without_cts_the_rts_limit_counts_and_no_transmission() {
    let mut b = Bench::new(OPTIONS, 2, 2);
    for _ in 0..2 {
        let Some(Exchange::Data { mpdus, .. }) = b.exchange() else { panic!("data are pending") };
        assert_eq!(mpdus[0].attempts, 1);
        b.answer(Answer::NoCts);
    }
    assert_eq!(b.given_up, [(0, 0, Fate::RtsRetryLimit), (1, 0, Fate::RtsRetryLimit)]);
    assert_eq!(b.step(&[], true), "BAR 2");
}

//  0 x3 | BAR x3: nothing more is sent until there is a packet; each further packet costs requests, no sequence number
#[test]
fn on_a_dead_link_packets_are_given_up_without_spending_sequence_numbers() {
    let mut b = Bench::new(OPTIONS, 1, 1);
    (0..3).for_each(|_| assert!(b.step(&[0], true).starts_with('0')));
    (0..3).for_each(|_| assert_eq!(b.step(&[], false), "BAR 1"));
    assert_eq!((b.originator.wants_access(), b.step(&[], false)), (false, "-".into()));
    for packet in 1..100 {
        b.queue.push_back(Waiting { packet, mpdu_bytes: 100 });
        (0..3).for_each(|_| assert_eq!(b.step(&[], false), "BAR 1"));
        assert_eq!(b.given_up.last(), Some(&(packet, 0, Fate::RetryLimit)));
    }
    b.queue.push_back(Waiting { packet: 7, mpdu_bytes: 100 });
    assert_eq!(b.step(&[], true), "BAR 1");
    assert_eq!((b.step(&[], true), &b.delivered[..]), ("1".into(), &[7][..]));
}

#[test]
fn answers_of_another_exchange_are_ignored() {
    let mut b = Bench::new(OPTIONS, 200, 4);
    assert!(!b.answer(Answer::BlockAck(Bitmap { start: 0, bits: 1 })), "nothing is in flight");
    (0..20).for_each(|_| drop(b.step(&[], true))); // window from 80
    b.exchange();
    assert!(!b.answer(Answer::Ack), "an A-MPDU has no ACK");
    assert!(!b.answer(Answer::BlockAck(Bitmap { start: 16, bits: u64::MAX })), "older than a window");
    assert!(!b.answer(Answer::BlockAck(Bitmap { start: 81, bits: u64::MAX })), "beyond what was sent");
    assert_eq!(b.acknowledged.len(), 80);
    assert!(b.answer(Answer::BlockAck(Bitmap { start: 20, bits: 0xf << 60 })));
    assert_eq!((b.acknowledged.len(), b.originator.window_start()), (84, 84));
}

#[test]
fn a_packet_beyond_the_room_is_held_for_the_next_exchange() {
    let mut b = Bench::new(OPTIONS, 3, 64);
    b.queue[1].mpdu_bytes = MAX_HT_BYTES;
    assert_eq!(b.step(&[], true), "0");
    assert_eq!((b.originator.backlog(), b.originator.wants_access()), (1, true));
    assert_eq!(b.step(&[], true), "1");
    assert_eq!(b.step(&[], true), "2");
}

//  0 1 in flight, 2 and 3 in the queue: purged; the answer is foreign; the next packet waits for a request
#[test]
fn a_purge_returns_what_has_no_fate_and_leaves_the_request_for_the_next_packet() {
    let mut b = Bench::new(OPTIONS, 2, 2);
    b.exchange();
    assert_eq!(b.originator.purge(), [0, 1]);
    assert!(!b.answer(Answer::BlockAck(Bitmap { start: 0, bits: 3 })));
    assert!(!b.originator.wants_access());
    b.queue.push_back(Waiting { packet: 9, mpdu_bytes: 100 });
    assert_eq!((b.step(&[], true), b.step(&[], true)), ("BAR 2".into(), "2".into()));
    assert_eq!(b.delivered, [9]);
}
