//! EDCA: the contention functions of a station beside each other, and the TXOP that one of them has won (IEEE Std 802.11-2020 clauses
//! 10.23.2.2 to 10.23.2.9).
//!
//! One function at a time is [`Dcf::own`], on which the DCF acts: the one of the exchange under way, or of the event that is handled. A
//! station of the DCF has no other.
//!
//! Departures: a failure within a TXOP ends it (no PIFS recovery, 10.23.2.8), a TXOP that ends early is not announced (no CF-End), and a
//! single MPDU may be longer than the limit in the first exchange, as fragments are not modelled (10.23.2.9 allows it of a
//! retransmission, and under an agreement).

use super::{Contention, Dcf, Outgoing, Response, State};
use crate::mac::block_ack::room::MAX_VHT_BYTES;
use crate::mac::blocks::TxopRoom;
use crate::mac::{Category, Dest, Packet};
use crate::phy::radio::FrameKind;
use crate::phy::Mode;
use manet_engine::{Duration, Instant};
use std::sync::Arc;

impl Dcf {
    /// All contention functions.
    pub(super) fn all(&self) -> impl Iterator<Item = &Contention> {
        std::iter::once(&self.own).chain(&self.others)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Contention> {
        std::iter::once(&mut self.own).chain(&mut self.others)
    }

    /// The function of a category; by the DCF the only one.
    pub(super) fn of_mut(&mut self, category: Category) -> &mut Contention {
        match self.others.iter().position(|other| other.category == category) {
            Some(at) => &mut self.others[at],
            None => &mut self.own,
        }
    }

    /// Does something for the function of a category, in which it is `own`.
    pub(super) fn acting_for<R>(&mut self, category: Category, act: impl FnOnce(&mut Self) -> R) -> R {
        let at = self.others.iter().position(|other| other.category == category);
        self.swap(at);
        let result = act(self);
        self.swap(at);
        result
    }

    fn swap(&mut self, at: Option<usize>) {
        if let Some(at) = at {
            std::mem::swap(&mut self.own, &mut self.others[at]);
        }
    }

    /// Takes a packet of EDCA into the queue of its category.
    pub(super) fn enqueue_by_category(&mut self, now: Instant, packet: Arc<Packet>) {
        self.acting_for(packet.category, |dcf| dcf.enqueue_own(now, packet));
    }

    /// The instant at which the backoff of a function is over, as long as the medium is idle.
    #[inline]
    pub(super) fn access_at(&self, contention: &Contention) -> Option<Instant> {
        let slots = contention.slots?;
        Some(self.countdown_start(contention) + self.slot * u64::from(slots))
    }

    #[cold] // to the compiler: the DCF has no use for it
    pub(super) fn another_is_engaged(&self) -> bool {
        self.others.iter().any(Contention::is_engaged)
    }

    #[cold]
    pub(super) fn freeze_others(&mut self, now: Instant) {
        for at in 0..self.others.len() {
            let passed = self.passed_slots(&self.others[at], now);
            self.others[at].freeze(passed, &self.radio, &mut self.random);
        }
    }

    /// The earliest of them.
    #[cold]
    pub(super) fn first_access(&self) -> Option<Instant> {
        self.all().filter_map(|each| self.access_at(each)).min()
    }

    /// Slots of the countdown that have passed, of a function that contends. By the DCF the slot under way does not count; by EDCA a
    /// slot counts at its beginning (10.23.2.4), so that the one under way does.
    pub(super) fn passed_slots(&self, contention: &Contention, now: Instant) -> u64 {
        let start = self.countdown_start(contention);
        let begun = u64::from(!self.others.is_empty() && start <= now);
        now.since(start).as_nanos() / self.slot.as_nanos() + begun
    }

    /// The first slot boundary at `ready_at` or later, after an idle medium at `from`.
    #[cold]
    pub(super) fn slot_boundary(&self, from: Instant, ready_at: Instant) -> Instant {
        from + self.slot * ready_at.since(from).as_nanos().div_ceil(self.slot.as_nanos())
    }

    /// A slot boundary at which the backoff of one or more functions is over: of those with something to send the highest sends, and the
    /// others collide internally (10.23.2.4).
    pub(super) fn access_by_priority(&mut self, now: Instant) {
        let sends = |dcf: &mut Self, category: Category| {
            let at = dcf.others.iter().position(|other| other.category == category);
            dcf.swap(at);
            dcf.is_due(&dcf.own, now) && dcf.access_own(now)
        };
        if !Category::BY_PRIORITY.into_iter().any(|category| sends(self, category)) {
            return;
        }
        for at in 0..self.others.len() {
            let other = &self.others[at];
            if self.is_due(other, now) && other.service.is_some() {
                self.swap(Some(at));
                self.collide_internally(now);
                self.swap(Some(at));
            } else {
                let passed = self.passed_slots(other, now);
                self.others[at].freeze(passed, &self.radio, &mut self.random);
            }
        }
    }

    fn is_due(&self, contention: &Contention, now: Instant) -> bool {
        self.access_at(contention).is_some_and(|at| at <= now)
    }

    /// The backoff of this function was over together with that of a higher one: as after a collision on the air, but nothing was sent,
    /// so that no Retry bit follows (10.23.2.2; retry counters: 10.23.2.12.1, under an agreement those of the function only).
    fn collide_internally(&mut self, now: Instant) {
        self.counters.internal_collision += 1;
        let (exhausted, reason) = self.count_failure(true);
        if exhausted && !self.own.serves_block() {
            self.give_up(now, reason);
        }
        self.own.draw(&self.radio, &mut self.random);
        if self.own.service.is_none() {
            self.serve_next(now);
        }
    }

    /// What is left of the TXOP for a PPDU that begins at `start`, or whose RTS does.
    pub(super) fn txop_room(&self, start: Instant, is_initial: bool) -> Option<TxopRoom> {
        if self.own.txop == Duration::ZERO {
            return None;
        }
        let radio = &self.radio;
        let may_have_rts = radio.rts_threshold_bytes < MAX_VHT_BYTES;
        let rts = if may_have_rts { radio.rts_airtime() + self.cts_airtime + radio.sifs() * 2 } else { Duration::ZERO };
        let available = self.own.txop_until.since(start + rts);
        Some(TxopRoom { available, is_initial })
    }

    /// After a success: the next exchange of the TXOP follows after SIFS, if there is one that fits (10.23.2.8, 10.23.2.9).
    pub(super) fn continues_txop(&mut self, now: Instant) -> bool {
        let start = now + self.radio.sifs();
        if start >= self.own.txop_until || self.own.txop == Duration::ZERO {
            return false;
        }
        self.serve_next(now);
        let room = self.txop_room(start, false);
        if self.own.service.is_none() || !self.prepare(now, room) || !self.fits(room) {
            return false;
        }
        self.own.drawn = 0;
        self.state = State::Sifs { at: start, then: Response::NextOfTxop };
        true
    }

    /// Whether the exchange in service fits; one under an agreement has been made to.
    fn fits(&self, room: Option<TxopRoom>) -> bool {
        let Some(room) = room.filter(|_| !self.own.serves_block()) else { return true };
        let Outgoing { kind, airtime, answer_airtime, .. } = self.outgoing(1);
        let answered = if kind == FrameKind::Bcast { Duration::ZERO } else { self.radio.sifs() + answer_airtime };
        airtime + answered <= room.available
    }

    /// The part of a Duration field beyond the exchange that ends at `end`: of a TXOP that goes on, the next MPDU and its answer
    /// (9.2.5.2, single protection). Of an A-MPDU that follows it is the first MPDU, in the `mode` of this frame if that holds data.
    pub(super) fn following(&self, end: Instant, kind: FrameKind, mode: Mode) -> Duration {
        if self.own.txop == Duration::ZERO {
            return Duration::ZERO;
        }
        let radio = &self.radio;
        let Some(next) = self.own.queue.front() else { return Duration::ZERO };
        let (bytes, mode) = (next.mpdu_bytes(radio), if kind == FrameKind::Data { mode } else { radio.data_mode() });
        let takes = match next.dest {
            Dest::Broadcast => radio.sifs() + radio.airtime(bytes, radio.mode_of(FrameKind::Bcast)),
            _ => radio.sifs() * 2 + radio.airtime(bytes, mode) + radio.answer_airtime(mode),
        };
        if end + takes <= self.own.txop_until {
            takes
        } else {
            Duration::ZERO
        }
    }
}
