//! The originator of an agreement: sequence numbers, A-MPDUs, retries, Block Ack Requests.
//!
//! A sequence number ends in one of two ways: acknowledged or given up. The window begins at the first that has not ended
//! (WinStartO, 10.24.7.7). Given-up numbers leave a gap at the recipient, which waits; so a Block Ack Request that moves its window
//! is the next exchange, and no data are sent until it is answered. Both windows are then the same, and old and new numbers cannot be
//! confused, however many packets are given up on a dead link (an unanswered request spends no sequence number).
//!
//! Each exchange has three calls: [`Originator::next_exchange`] says what to send, [`Originator::handle_answer`] what came back,
//! [`Originator::take_resolved`] what became of the packets.

use super::room::Length;
use super::{steps, Bitmap, Room, SEQUENCES, WINDOW};
use std::collections::VecDeque;

/// Limits of an originator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Transmissions of an MPDU, and of a Block Ack Request.
    pub retry_limit: u32,
    /// RTS without CTS before an MPDU.
    pub rts_retry_limit: u32,
    /// After an A-MPDU without a Block Ack: request one (as ns-3 does) instead of a retransmission (as ath9k does). The standard
    /// allows both (10.24.7.8).
    pub request_after_silence: bool,
}

/// A packet that waits for an originator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting<P> {
    /// The packet.
    pub packet: P,
    /// Length of its MPDU with header and FCS.
    pub mpdu_bytes: u32,
}

/// An MPDU with a sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpdu<P> {
    /// The packet and its length.
    pub waiting: Waiting<P>,
    /// Sequence number.
    pub sequence: u16,
    /// Transmissions so far; in an [`Exchange`] that one included.
    pub attempts: u32,
    /// RTS before it that were not answered.
    pub rts_failures: u32,
}

/// The next frame of an originator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchange<P> {
    /// One MPDU, to be answered by an ACK, or an A-MPDU of several in ascending order, to be answered by a Block Ack.
    Data {
        /// The MPDUs.
        mpdus: Vec<Mpdu<P>>,
        /// Length of the PSDU with delimiters and padding.
        psdu_bytes: u32,
    },
    /// A Block Ack Request, to be answered by a Block Ack.
    Request {
        /// Starting sequence number.
        start: u16,
    },
}

/// The answer to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// ACK.
    Ack,
    /// Block Ack of this peer and TID.
    BlockAck(Bitmap),
    /// Nothing that could be decoded.
    Nothing,
    /// No CTS after the RTS: the exchange itself was not sent.
    NoCts,
}

/// The fate of an MPDU after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The peer has it.
    Acknowledged,
    /// It is sent again.
    Retried,
    /// Given up after [`Options::retry_limit`] transmissions, or as many requests.
    RetryLimit,
    /// Given up after [`Options::rts_retry_limit`] RTS.
    RtsRetryLimit,
}

impl Fate {
    /// Whether the packet leaves the originator.
    pub const fn is_final(self) -> bool {
        !matches!(self, Fate::Retried)
    }
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved<P> {
    /// The packet.
    pub packet: P,
    /// Its sequence number; `None`: it never had one.
    pub sequence: Option<u16>,
    /// Its transmissions.
    pub attempts: u32,
    /// Its fate.
    pub fate: Fate,
}

#[derive(Clone, Debug)]
enum Slot<P> {
    Acknowledged,
    GivenUp,
    Pending(Mpdu<P>),
}

/// Whether the recipient's window must be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    NotNeeded,
    Due {
        failures: u32,
    },
    /// Not answered within the retry limit: due again when there is a packet to send.
    Deferred,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFlight {
    Nothing,
    /// The first pending MPDUs, so many.
    Data {
        mpdus: usize,
    },
    Request,
}

/// The originator for one peer and TID, with packets of type `P`.
#[derive(Clone, Debug)]
pub struct Originator<P> {
    options: Options,
    /// WinStartO.
    start: u16,
    /// The numbers from `start` on; the first is pending.
    window: VecDeque<Slot<P>>,
    /// A packet taken from the queue for which there was no room.
    held: Option<Waiting<P>>,
    request: Request,
    in_flight: InFlight,
    resolved: Vec<Resolved<P>>,
}

impl<P: Clone> Originator<P> {
    /// `start`: the first sequence number.
    pub fn new(options: Options, start: u16) -> Self {
        Self {
            options,
            start: start % SEQUENCES,
            window: VecDeque::new(),
            held: None,
            request: Request::NotNeeded,
            in_flight: InFlight::Nothing,
            resolved: Vec::new(),
        }
    }

    /// WinStartO: the first sequence number that is neither acknowledged nor given up.
    pub fn window_start(&self) -> u16 {
        self.start
    }

    /// The sequence number of the next new packet.
    pub fn next_sequence(&self) -> u16 {
        (self.start + self.window.len() as u16) % SEQUENCES
    }

    /// Number of packets that it has taken and that have no final fate.
    pub fn backlog(&self) -> usize {
        self.pending().count() + usize::from(self.held.is_some())
    }

    /// The first packet that it has taken and that has no final fate.
    pub fn first(&self) -> Option<&Waiting<P>> {
        self.pending().next().map(|mpdu| &mpdu.waiting).or(self.held.as_ref())
    }

    /// The packets that it has taken and that have no final fate, in order.
    pub fn unresolved(&self) -> impl Iterator<Item = &P> {
        self.pending().map(|mpdu| &mpdu.waiting).chain(&self.held).map(|waiting| &waiting.packet)
    }

    /// Whether it has something to send without a new packet.
    pub fn wants_access(&self) -> bool {
        self.backlog() > 0 || matches!(self.request, Request::Due { .. })
    }

    /// Moves the fates since the last call to `into`, in order.
    pub fn take_resolved(&mut self, into: &mut Vec<Resolved<P>>) {
        into.append(&mut self.resolved);
    }

    /// Whether the next exchange is a request: how many before it were not answered.
    pub fn request_failures(&self) -> Option<u32> {
        match self.request {
            Request::NotNeeded => None,
            Request::Due { failures } => Some(failures),
            Request::Deferred => Some(0),
        }
    }

    /// What to send now; `next` takes the next packet for this peer and TID from the queue. `None`: nothing. A packet that `next`
    /// gave belongs to the originator, sent or not.
    ///
    /// # Panics
    /// If the last exchange has no answer yet.
    pub fn next_exchange(&mut self, room: &Room, mut next: impl FnMut() -> Option<Waiting<P>>) -> Option<Exchange<P>> {
        assert!(self.in_flight == InFlight::Nothing, "the last exchange has no answer yet");
        if self.request == Request::Deferred {
            self.hold_next(&mut next);
            if self.held.is_some() {
                self.request = Request::Due { failures: 0 };
            }
        }
        match self.request {
            Request::Due { .. } => {
                self.in_flight = InFlight::Request;
                Some(Exchange::Request { start: self.start })
            }
            Request::Deferred => None,
            Request::NotNeeded => self.next_data(room, &mut next),
        }
    }

    fn next_data(&mut self, room: &Room, next: &mut impl FnMut() -> Option<Waiting<P>>) -> Option<Exchange<P>> {
        let mut length = Length::default();
        let again = self.pending().take_while(|mpdu| length.add(room, mpdu.waiting.mpdu_bytes)).count();
        if again == self.pending().count() {
            while self.window.len() < WINDOW && length.mpdus < room.max_mpdus {
                self.hold_next(next);
                let Some(waiting) = self.held.take_if(|held| length.add(room, held.mpdu_bytes)) else { break };
                let sequence = self.next_sequence();
                self.window.push_back(Slot::Pending(Mpdu { waiting, sequence, attempts: 0, rts_failures: 0 }));
            }
        }
        let mpdus: Vec<Mpdu<P>> = self.pending().take(length.mpdus).cloned().map(with_this_attempt).collect();
        if mpdus.is_empty() {
            return None;
        }
        self.in_flight = InFlight::Data { mpdus: mpdus.len() };
        Some(Exchange::Data { mpdus, psdu_bytes: length.psdu_bytes })
    }

    /// The answer to the last exchange, or its absence. Returns false for an answer that does not belong to it (another kind, an old
    /// or foreign Block Ack): that is no answer, and the MAC continues to wait.
    pub fn handle_answer(&mut self, answer: Answer) -> bool {
        match (self.in_flight, answer) {
            (InFlight::Data { mpdus }, Answer::Nothing) => {
                self.settle(mpdus, |_, _| false);
                if self.options.request_after_silence && mpdus > 1 && self.request == Request::NotNeeded {
                    self.request = Request::Due { failures: 0 };
                }
            }
            (InFlight::Data { mpdus }, Answer::NoCts) => self.rts_failed(mpdus),
            (InFlight::Data { mpdus: 1 }, Answer::Ack) => self.settle(1, |_, sent| sent),
            (InFlight::Data { mpdus }, Answer::BlockAck(bitmap)) if mpdus > 1 && self.may_be_answer(bitmap) => {
                self.settle(mpdus, |sequence, _| bitmap.contains(sequence));
            }
            (InFlight::Request, Answer::BlockAck(bitmap)) if bitmap.start == self.start => {
                self.request = Request::NotNeeded;
                self.settle(0, |sequence, _| bitmap.contains(sequence));
            }
            (InFlight::Request, Answer::Nothing | Answer::NoCts) => self.request_failed(),
            _ => return false,
        }
        self.in_flight = InFlight::Nothing;
        true
    }

    /// Removes all packets without a final fate, in order: the routing protocol purges the neighbour, or the run ends. An exchange
    /// in flight has no answer any more.
    pub fn purge(&mut self) -> Vec<P> {
        self.in_flight = InFlight::Nothing;
        let mut out = Vec::new();
        for slot in &mut self.window {
            if let Slot::Pending(mpdu) = slot {
                out.push(mpdu.waiting.packet.clone());
                *slot = Slot::GivenUp;
            }
        }
        out.extend(self.held.take().map(|held| held.packet));
        self.advance();
        if self.request != Request::NotNeeded {
            self.request = Request::Deferred;
        }
        out
    }

    fn pending(&self) -> impl Iterator<Item = &Mpdu<P>> {
        self.window.iter().filter_map(|slot| match slot {
            Slot::Pending(mpdu) => Some(mpdu),
            _ => None,
        })
    }

    /// Takes the next packet from the queue if none is held.
    fn hold_next(&mut self, next: &mut impl FnMut() -> Option<Waiting<P>>) {
        if self.held.is_none() {
            self.held = next();
        }
    }

    fn give_up_held(&mut self, fate: Fate) {
        let packet = self.held.take().map(|held| held.packet);
        self.resolved.extend(packet.map(|packet| Resolved { packet, sequence: None, attempts: 0, fate }));
    }

    /// A Block Ack after data begins at most a window before ours: the recipient has decoded one of our MPDUs, and its scoreboard
    /// ends there or later (10.24.7.3), but never beyond what we sent.
    fn may_be_answer(&self, bitmap: Bitmap) -> bool {
        usize::from(steps(bitmap.start, self.start)) < WINDOW
    }

    /// The first `in_flight` pending MPDUs were sent. `acknowledged`: of a sequence number, and whether it was sent now; a bitmap also
    /// acknowledges MPDUs of earlier exchanges.
    fn settle(&mut self, in_flight: usize, acknowledged: impl Fn(u16, bool) -> bool) {
        let mut pending = 0;
        for at in 0..self.window.len() {
            let Slot::Pending(mpdu) = &mut self.window[at] else { continue };
            let sent = pending < in_flight;
            pending += 1;
            mpdu.attempts += u32::from(sent);
            let (sequence, attempts) = (mpdu.sequence, mpdu.attempts);
            if attempts > 0 && acknowledged(sequence, sent) {
                self.resolve(at, Fate::Acknowledged);
            } else if sent {
                let fate = if attempts >= self.options.retry_limit { Fate::RetryLimit } else { Fate::Retried };
                self.resolve(at, fate);
            }
        }
        self.advance();
    }

    fn rts_failed(&mut self, in_flight: usize) {
        let mut pending = 0;
        for at in 0..self.window.len() {
            let Slot::Pending(mpdu) = &mut self.window[at] else { continue };
            if pending < in_flight {
                mpdu.rts_failures += 1;
                let given_up = mpdu.rts_failures >= self.options.rts_retry_limit;
                let fate = if given_up { Fate::RtsRetryLimit } else { Fate::Retried };
                self.resolve(at, fate);
            }
            pending += 1;
        }
        self.advance();
    }

    /// The peer does not answer: all packets are given up, and those that come later wait for the answer to a request.
    fn request_failed(&mut self) {
        let Request::Due { failures } = self.request else { unreachable!("a request was sent") };
        if failures + 1 < self.options.retry_limit {
            self.request = Request::Due { failures: failures + 1 };
            return;
        }
        for at in 0..self.window.len() {
            if matches!(self.window[at], Slot::Pending(_)) {
                self.resolve(at, Fate::RetryLimit);
            }
        }
        self.give_up_held(Fate::RetryLimit);
        self.advance();
        self.request = Request::Deferred;
    }

    /// Reports the fate of the MPDU in slot `at`, which is pending.
    fn resolve(&mut self, at: usize, fate: Fate) {
        let Slot::Pending(mpdu) = &self.window[at] else { unreachable!("callers have checked the slot") };
        let packet = mpdu.waiting.packet.clone();
        self.resolved.push(Resolved { packet, sequence: Some(mpdu.sequence), attempts: mpdu.attempts, fate });
        match fate {
            Fate::Retried => {}
            Fate::Acknowledged => self.window[at] = Slot::Acknowledged,
            _ => self.window[at] = Slot::GivenUp,
        }
    }

    /// Moves the window to the first pending number. A given-up one on the way is a gap at the recipient.
    fn advance(&mut self) {
        while !matches!(self.window.front(), None | Some(Slot::Pending(_))) {
            let ended = self.window.pop_front();
            self.start = (self.start + 1) % SEQUENCES;
            if matches!(ended, Some(Slot::GivenUp)) && self.request == Request::NotNeeded {
                self.request = Request::Due { failures: 0 };
            }
        }
    }
}

fn with_this_attempt<P>(mpdu: Mpdu<P>) -> Mpdu<P> {
    Mpdu { attempts: mpdu.attempts + 1, ..mpdu }
}
