//! Properties of an originator and a recipient over a channel with random losses: of single MPDUs, of whole PPDUs, of answers,
//! of requests, of RTS. Packets are numbered from 0 in the order of the queue.

use super::room::MAX_PPDU_TIME;
use super::{steps, Answer, Exchange, Fate, Options, Originator, Recipient, Room, Waiting, SEQUENCES, WINDOW};
use manet_engine::random::Purpose;
use manet_engine::{Duration, Stream};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Losses {
    mpdu: f64,
    ppdu: f64,
    answer: f64,
    rts: f64,
}

struct Link {
    originator: Originator<u32>,
    recipient: Recipient<u32>,
    random: Stream,
    queued: u32,
    delivered: Vec<u32>,
    /// Final fate of each packet, as the originator reported it.
    fates: Vec<Option<Fate>>,
}

impl Link {
    fn new(seed: u64, start: u16, options: Options) -> Self {
        Self {
            originator: Originator::new(options, start),
            recipient: Recipient::new(start),
            random: Stream::new(seed, 0, Purpose::Error),
            queued: 0,
            delivered: vec![],
            fates: vec![],
        }
    }

    /// One exchange, with up to `packets` new packets in the queue. Returns whether there was one.
    fn exchange(&mut self, losses: Losses, packets: u32) -> bool {
        let last = self.queued + packets;
        let airtime = |bytes: u32| Duration::of_bits(u64::from(bytes) * 8, 65_000_000);
        let room = Room {
            max_mpdus: 1 + self.random.below(64) as usize,
            max_bytes: 1 + self.random.below(65_535) as u32,
            max_airtime: MAX_PPDU_TIME,
            airtime: &airtime,
        };
        let (queued, random) = (&mut self.queued, &mut self.random);
        let next = || {
            (*queued < last).then(|| {
                *queued += 1;
                Waiting { packet: *queued - 1, mpdu_bytes: 30 + random.below(1500) as u32 }
            })
        };
        let exchange = self.originator.next_exchange(&room, next);
        self.fates.resize(self.queued as usize, None);
        self.resolve();
        let Some(exchange) = exchange else { return false };
        let answer = self.carry(exchange, losses);
        assert!(self.originator.handle_answer(answer));
        self.resolve();
        self.check();
        true
    }

    fn carry(&mut self, exchange: Exchange<u32>, losses: Losses) -> Answer {
        let (mut arrived, mut single) = (false, false);
        match exchange {
            Exchange::Request { start } => {
                if !self.random.chance(losses.ppdu) {
                    arrived = true;
                    self.recipient.handle_request(start, &mut self.delivered);
                }
            }
            Exchange::Data { mpdus, psdu_bytes } => {
                single = mpdus.len() == 1;
                assert!(mpdus.iter().map(|m| m.waiting.mpdu_bytes).sum::<u32>() <= psdu_bytes);
                assert!(mpdus.windows(2).all(|w| steps(w[0].sequence, w[1].sequence) < WINDOW as u16));
                if self.random.chance(losses.rts) {
                    return Answer::NoCts;
                }
                if !self.random.chance(losses.ppdu) {
                    for m in mpdus {
                        if !self.random.chance(losses.mpdu) {
                            arrived = true;
                            self.recipient.receive(m.sequence, m.waiting.packet, &mut self.delivered);
                        }
                    }
                }
            }
        }
        match arrived && !self.random.chance(losses.answer) {
            false => Answer::Nothing,
            true if single => Answer::Ack,
            true => Answer::BlockAck(self.recipient.block_ack()),
        }
    }

    fn resolve(&mut self) {
        let mut resolved = vec![];
        self.originator.take_resolved(&mut resolved);
        for r in resolved.into_iter().filter(|r| r.fate.is_final()) {
            let fate = &mut self.fates[r.packet as usize];
            assert_eq!(*fate, None, "packet {} ends twice", r.packet);
            *fate = Some(r.fate);
        }
    }

    /// What holds after every exchange.
    fn check(&self) {
        assert!(self.delivered.windows(2).all(|w| w[0] < w[1]), "out of order or twice: {:?}", self.delivered);
        let (first, next) = (self.originator.window_start(), self.originator.next_sequence());
        assert!(usize::from(steps(first, next)) <= WINDOW);
        assert!(self.recipient.stored() < WINDOW);
        let open = self.fates.iter().filter(|fate| fate.is_none()).count();
        assert_eq!(open, self.originator.backlog(), "each packet has a fate or is in the originator");
    }

    /// Without losses until there is nothing left to send.
    fn settle(&mut self) {
        let none = Losses { mpdu: 0.0, ppdu: 0.0, answer: 0.0, rts: 0.0 };
        // each exchange brings at least one MPDU across; a request, and a packet if one is deferred until there is a packet
        for _ in 0..3 * WINDOW {
            if !self.originator.wants_access() {
                break;
            }
            self.exchange(none, 0);
        }
        self.exchange(none, 1);
        while self.originator.wants_access() {
            self.exchange(none, 0);
        }
    }

    fn check_agreement(&self) {
        assert_eq!(self.originator.window_start(), self.recipient.window_start());
        assert_eq!((self.originator.backlog(), self.recipient.stored()), (0, 0));
    }
}

fn options() -> impl Strategy<Value = Options> {
    (1..8u32, 1..8u32, any::<bool>()).prop_map(|(retry_limit, rts_retry_limit, request_after_silence)| Options {
        retry_limit,
        rts_retry_limit,
        request_after_silence,
    })
}

fn losses() -> impl Strategy<Value = Losses> {
    let share = prop::sample::select(vec![0.0, 0.05, 0.3, 0.9, 1.0]);
    [share.clone(), share.clone(), share.clone(), share].prop_map(|[mpdu, ppdu, answer, rts]| Losses {
        mpdu,
        ppdu,
        answer,
        rts,
    })
}

proptest! {
    #[test]
    fn packets_arrive_once_in_order_and_none_is_lost_that_was_not_given_up(
        seed: u64, start in 0..SEQUENCES, options in options(), phases in prop::collection::vec(losses(), 1..6)
    ) {
        let mut link = Link::new(seed, start, options);
        for losses in phases {
            for _ in 0..80 {
                let packets = link.random.below(20) as u32;
                link.exchange(losses, packets);
            }
        }
        link.settle();
        link.check_agreement();
        for (packet, fate) in link.fates.iter().enumerate() {
            let arrived = link.delivered.binary_search(&(packet as u32)).is_ok();
            prop_assert!(arrived || *fate != Some(Fate::Acknowledged), "packet {} was acknowledged, not delivered", packet);
            prop_assert!(fate.is_some());
        }
    }
}

#[test]
fn sequence_numbers_wrap_many_times_without_a_loss() {
    let options = Options { retry_limit: 50, rts_retry_limit: 50, request_after_silence: false };
    let mut link = Link::new(1, 4090, options);
    let losses = Losses { mpdu: 0.2, ppdu: 0.1, answer: 0.1, rts: 0.0 };
    while link.queued < 3 * u32::from(SEQUENCES) {
        link.exchange(losses, 40);
    }
    link.settle();
    link.check_agreement();
    assert_eq!(link.delivered.len(), link.queued as usize);
    assert!(link.recipient.counters.duplicates > 100, "{:?}", link.recipient.counters);
}

/// Requests, not data, move the windows on a link that loses nearly everything.
#[test]
fn windows_never_part_however_many_packets_are_given_up() {
    let options = Options { retry_limit: 1, rts_retry_limit: 1, request_after_silence: false };
    let mut link = Link::new(7, 0, options);
    let losses = Losses { mpdu: 0.95, ppdu: 0.9, answer: 0.5, rts: 0.0 };
    for _ in 0..30_000 {
        link.exchange(losses, 1);
        let apart = steps(link.recipient.window_start(), link.originator.next_sequence());
        assert!(usize::from(apart) <= 2 * WINDOW, "{apart}");
    }
    link.settle();
    link.check_agreement();
    assert!(link.queued > 4 * u32::from(SEQUENCES), "{}", link.queued);
}
