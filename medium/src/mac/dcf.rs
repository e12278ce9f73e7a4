//! The DCF of one station: access to the medium, responses, retries.
//!
//! IEEE Std 802.11-2012 clause 9.3 (the basic access of 802.11-1997 unchanged): carrier sense, physical and virtual
//! (9.3.2.1), inter-frame spaces (9.3.2.3), random backoff (9.3.3), access procedure (9.3.4), RTS/CTS (9.3.2.6), ACK
//! (9.3.2.8), duplicates (9.3.2.10), retry counters (9.3.4.4). ns-2.35's departures are switches of the radio profile
//! ([`crate::phy::radio::Rules`]). EDCA is the same machine with four contention functions in place of one (`edca.rs`). Not modelled:
//! fragmentation, PCF, power save, the optional NAV reset after an RTS that no data follows (9.3.2.4). Rates: [`super::rates`]; A-MPDUs:
//! [`super::blocks`].
//!
//! The radio reports carrier sense ([`Dcf::medium_busy`], [`Dcf::medium_idle`]) and receptions
//! ([`Dcf::receive`], [`Dcf::receive_failed`]); the machine answers with [`Action`]s. Each call carries the time. There is one
//! deadline ([`Dcf::next_timeout`]): the end of the wait of its state, or of its backoff.

use super::action::{Action, DcfCounters, FailReason};
use super::block_ack::{Answer, Bitmap, Fate, Resolved};
use super::blocks::{Blocks, Offer, TxopRoom};
use super::rates::{Progress, Rates};
use super::{Block, Category, Dest, Frame, InterfaceQueue, Packet};
use crate::fate::DropReason;
use crate::phy::radio::{RateControl, Timeouts, BA_BYTES, CTS_BYTES, RTS_BYTES};
use crate::phy::{FrameKind, Mode, Radio};
use crate::rate_control::Row;
use manet_engine::{Duration, Instant, Stream};
use std::collections::HashMap;
use std::sync::Arc;

mod contention;
mod edca;
mod receptions;
pub mod visible;

use contention::Contention;

#[derive(Debug)]
enum State {
    /// Contending, or without a packet.
    Idle,
    Transmitting(FrameKind),
    AwaitCts {
        until: Instant,
    },
    AwaitAck {
        until: Instant,
    },
    /// CTS sent; the data frame should have ended by `until` (ns-2 only).
    AwaitData {
        until: Instant,
    },
    /// A response is sent after SIFS.
    Sifs {
        at: Instant,
        then: Response,
    },
}

#[derive(Debug)]
enum Response {
    Cts {
        to: Dest,
        /// That of the RTS.
        mode: Mode,
        reserves: Duration,
        ack_airtime: Duration,
    },
    /// The answer to a frame in `mode`: with a bitmap a Block Ack. `reserved`: the Duration of that frame.
    Ack {
        to: Dest,
        mode: Mode,
        bitmap: Option<Bitmap>,
        snr_db: Option<f64>,
        reserved: Duration,
        category: Category,
    },
    Data,
    /// No response but the next exchange of a TXOP.
    NextOfTxop,
}

/// What the station contends for.
struct Service {
    content: Content,
    rts_attempts: u32,
    data_attempts: u32,
}

enum Content {
    /// One packet, until it is acknowledged or given up.
    Packet { packet: Arc<Packet>, sequence: u16, progress: Option<Progress> },
    /// An exchange with a peer of a Block Ack agreement, made when the backoff is over of what waits then.
    Block { peer: u16, offer: Option<Offer> },
}

impl Service {
    fn new(content: Content) -> Self {
        Self { content, rts_attempts: 0, data_attempts: 0 }
    }

    /// Attempts: RTS before each data frame, or no RTS at all. An RTS without CTS is an attempt at the rate of its data.
    fn tries(&self) -> u32 {
        self.rts_attempts.max(self.data_attempts)
    }

    fn needs_rts(&self, radio: &Radio) -> bool {
        match &self.content {
            Content::Packet { packet, .. } => needs_rts(radio, packet),
            Content::Block { offer, .. } => offer.as_ref().is_some_and(|offer| offer.bytes > radio.rts_threshold_bytes),
        }
    }
}

/// The frame of the exchange in service, sent after an RTS or at once.
struct Outgoing {
    kind: FrameKind,
    dest: Dest,
    bytes: u32,
    mode: Mode,
    airtime: Duration,
    answer_airtime: Duration,
    sequence: u16,
    /// Transmissions of its first packet, this one included.
    attempt: u32,
    packet: Option<Arc<Packet>>,
    block: Option<Arc<Block>>,
}

/// What a station decoded of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// Bit *n*: MPDU *n* of an A-MPDU.
    pub mpdus: u64,
    /// Signal to noise ratio, dB.
    pub snr_db: Option<f64>,
}

impl Decoded {
    /// All of it.
    pub const ALL: Self = Self { mpdus: u64::MAX, snr_db: None };
}

/// The distributed coordination function of one station.
pub struct Dcf {
    station: u16,
    radio: Arc<Radio>,
    /// The radio's, which take long to compute for each frame.
    eifs: Duration,
    cts_airtime: Duration,
    slot: Duration,
    random: Stream,
    /// The contention function of the exchange under way, or of what is handled now.
    pub(in crate::mac) own: Contention,
    /// The others of EDCA.
    others: Vec<Contention>,
    state: State,
    next_sequence: u16,

    busy: bool,
    idle_since: Instant,
    nav_until: Instant,
    eifs_until: Instant,
    /// A frame was not decoded: EIFS begins when the medium is idle again.
    eifs_due: bool,

    /// The station whose TXOP the NAV is for; by EDCA only.
    txop_holder: Option<u16>,

    /// Last sequence number received from each station, of each category (9.3.2.10).
    heard: HashMap<(u16, Category), u16>,
    /// Rate control, if the profile has one or aggregates. Otherwise data are sent at the profile's rate or at those of the kernel.
    rates: Option<Box<Rates>>,
    actions: Vec<Action>,
    /// Counters of this station.
    pub counters: DcfCounters,
}

impl Dcf {
    /// `station`: own number; `random`: stream of the backoff; `samples`: that of the rate control.
    pub fn new(station: u16, radio: Arc<Radio>, queue: InterfaceQueue, random: Stream, samples: Stream) -> Self {
        let adapts = radio.aggregation_limits().is_some() || radio.rate_control != RateControl::Fixed;
        let rates = adapts.then(|| Box::new(Rates::new(&radio, samples)));
        let categories = Category::BY_PRIORITY.into_iter().filter(|category| *category != Category::BestEffort);
        let others = categories.filter(|_| radio.is_edca());
        let others: Vec<_> = others.map(|category| Contention::new(category, &radio, queue.clone())).collect();
        let own = Contention::new(Category::BestEffort, &radio, queue);
        Self {
            station,
            // EIFS with the shortest AIFS in place of DIFS (9.3.7)
            eifs: radio.eifs() - radio.difs() + (own.aifs - own.behind),
            cts_airtime: radio.cts_airtime(),
            slot: radio.slot(),
            radio,
            random,
            own,
            others,
            state: State::Idle,
            next_sequence: 0,
            busy: false,
            idle_since: Instant::ZERO,
            nav_until: Instant::ZERO,
            eifs_until: Instant::ZERO,
            eifs_due: false,
            txop_holder: None,
            heard: HashMap::new(),
            rates,
            actions: Vec::new(),
            counters: DcfCounters::default(),
        }
    }

    /// Whether the last calls led to actions.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Moves the actions of the last call to `into`, in order.
    pub fn take_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.actions);
    }

    /// Whether a frame of this station is on the air.
    pub fn is_transmitting(&self) -> bool {
        matches!(self.state, State::Transmitting(_))
    }

    /// Whether it has a packet or is in an exchange.
    pub fn is_engaged(&self) -> bool {
        self.own.is_engaged()
            || !matches!(self.state, State::Idle)
            || !self.others.is_empty() && self.another_is_engaged()
    }

    /// Number of packets that wait, those in service included.
    pub fn backlog(&self) -> usize {
        self.all().map(Contention::backlog).sum()
    }

    /// The same of the packets that wait with those of `category`: without EDCA all.
    pub fn backlog_of(&self, category: Category) -> usize {
        let of_it = self.others.iter().find(|other| other.category == category);
        of_it.unwrap_or(&self.own).backlog()
    }

    /// Packets marked Congestion Experienced so far.
    pub fn marked(&self) -> u64 {
        self.all().map(|each| each.queue.marked()).sum()
    }

    /// What its rate control knows of each peer.
    pub fn rate_tables(&self) -> Vec<(u16, Vec<(Mode, Row)>)> {
        self.rates.as_ref().map_or_else(Vec::new, |rates| rates.tables())
    }

    /// Numbers and lengths of the packets that the last call delivers.
    pub fn deliveries(&self) -> impl Iterator<Item = &Arc<Packet>> {
        self.actions.iter().filter_map(|action| match action {
            Action::Deliver { packet, .. } => Some(packet),
            _ => None,
        })
    }

    /// End of the NAV (9.3.2.4).
    pub fn nav_until(&self) -> Instant {
        self.nav_until
    }

    // ----- from the host

    /// Takes a packet. Those that a full queue drops are [`Action::Dropped`].
    pub fn enqueue(&mut self, now: Instant, packet: Arc<Packet>) {
        if self.others.is_empty() {
            self.enqueue_own(now, packet);
        } else {
            self.enqueue_by_category(now, packet);
        }
    }

    fn enqueue_own(&mut self, now: Instant, packet: Arc<Packet>) {
        if packet.is_beacon() && self.own.is_waiting() {
            let outdated = self.own.queue.push_beacon(packet);
            self.actions.extend(outdated.map(|packet| Action::Dropped { packet, reason: DropReason::QueueFull }));
        } else if self.own.is_waiting() {
            self.own.queue.push(now, packet);
            self.report_drops();
        } else {
            self.own.queue.push(now, packet);
            self.serve_next(now);
            self.begin_access(now);
        }
    }

    fn report_drops(&mut self) {
        self.actions.extend(self.own.queue.take_dropped().map(|(packet, reason)| Action::Dropped { packet, reason }));
    }

    /// Removes all packets not yet acknowledged, at the end of a run.
    pub fn remaining(&mut self) -> Vec<Arc<Packet>> {
        self.all_mut().flat_map(Contention::remaining).collect()
    }

    /// Removes the packets for a neighbour that are not in service, in order.
    pub fn purge(&mut self, mac: [u8; 6], neighbour: Option<u16>) -> Vec<Arc<Packet>> {
        self.all_mut().flat_map(|each| each.purge(mac, neighbour)).collect()
    }

    /// Another station was switched off.
    pub fn peer_is_off(&mut self, peer: u16) {
        let mut delivered = Vec::new();
        for blocks in self.all_mut().filter_map(|each| each.blocks.as_mut()) {
            blocks.peer_is_off(peer, &mut delivered);
        }
        let rate_bps = self.radio.data_rate_bps;
        self.deliver_all(delivered, rate_bps);
    }

    /// Ends the agreements as a recipient: what waits there for an earlier MPDU, with the station that each packet is from.
    pub fn take_stored(&mut self) -> Vec<(u16, Arc<Packet>)> {
        self.all_mut().filter_map(|each| each.blocks.as_mut()).flat_map(|blocks| blocks.take_stored()).collect()
    }

    /// Whether a packet for another station waits for its acknowledgement under an agreement.
    pub fn holds(&self, peer: u16, packet: u64) -> bool {
        self.all().filter_map(|each| each.blocks.as_ref()).any(|blocks| blocks.holds(peer, packet))
    }

    /// The radio loses its power: the state of a new station, except for the sequence numbers; others would take its next
    /// frames for duplicates. Returns all packets not yet acknowledged.
    pub fn switch_off(&mut self, now: Instant) -> Vec<Arc<Packet>> {
        let lost = self.remaining();
        self.state = State::Idle;
        self.all_mut().for_each(|each| each.restart(now));
        (self.busy, self.idle_since) = (false, now);
        (self.nav_until, self.eifs_until, self.eifs_due) = (Instant::ZERO, Instant::ZERO, false);
        self.txop_holder = None;
        self.heard.clear();
        if let Some(rates) = &mut self.rates {
            rates.forget();
        }
        self.actions.clear();
        lost
    }

    fn serve(&mut self, packet: Arc<Packet>) {
        let sequence = self.next_sequence;
        self.next_sequence = (sequence + 1) % 4096;
        self.own.service = Some(Service::new(Content::Packet { packet, sequence, progress: None }));
    }

    /// The next packet comes into service, or an exchange with its peer.
    fn serve_next(&mut self, now: Instant) {
        let Contention { blocks, queue, service, .. } = &mut self.own;
        let next = match blocks {
            None => queue.pop(now),
            Some(blocks) => {
                let Some(dest) = queue.next_dest(blocks.waiting()) else { return };
                let takes = queue.front_for(dest).is_none_or(|packet| Blocks::takes(packet));
                if let (Some(peer), true) = (dest.station(), takes) {
                    *service = Some(Service::new(Content::Block { peer, offer: None }));
                    return;
                }
                queue.pop_for(now, dest)
            }
        };
        self.report_drops();
        if let Some(packet) = next {
            self.serve(packet);
        }
    }

    fn begin_access(&mut self, now: Instant) {
        if !matches!(self.state, State::Idle) || self.own.slots.is_some() {
            return;
        }
        self.own.ready_at = now;
        let found_idle = !self.busy && self.nav_until <= now && self.eifs_until <= now;
        if self.radio.rules.backoff_when_idle || !found_idle {
            self.draw();
        } else {
            self.own.slots = Some(0);
            self.own.undrawn = true;
            self.own.drawn = 0;
        }
    }

    fn draw(&mut self) {
        self.own.draw(&self.radio, &mut self.random);
    }

    // ----- carrier sense

    /// The radio senses the medium busy from now on. Returns whether it was idle.
    #[inline] // once for each start of a frame at a station
    pub fn medium_busy(&mut self, now: Instant) -> bool {
        let was_idle = !self.busy;
        if was_idle {
            self.freeze(now);
            self.busy = true;
        }
        was_idle
    }

    /// The radio senses nothing from now on. Returns whether it was busy.
    pub fn medium_idle(&mut self, now: Instant) -> bool {
        let was_busy = self.busy;
        if was_busy {
            self.busy = false;
            self.idle_since = now;
            if std::mem::take(&mut self.eifs_due) {
                self.eifs_until = self.eifs_until.max(now + self.eifs);
            }
            self.fail_if_overdue(now);
        }
        was_busy
    }

    /// ns-2's capture: the ignored frame, of remaining length `ignored`, reserves the medium until its end plus EIFS.
    pub fn captured(&mut self, now: Instant, ignored: Duration) {
        self.nav_until = self.nav_until.max(now + self.eifs + ignored);
    }

    /// Start of the first backoff slot of a function; only valid while idle. By EDCA it is a slot boundary of the idle medium (10.23.2.4).
    #[inline]
    fn countdown_start(&self, contention: &Contention) -> Instant {
        let Contention { aifs, behind, ready_at, .. } = *contention;
        let after_medium = (self.idle_since.max(self.nav_until) + aifs).max(self.eifs_until + behind);
        let after_own = if self.radio.rules.backoff_when_idle { ready_at + aifs } else { ready_at };
        if !self.others.is_empty() && after_own > after_medium {
            return self.slot_boundary(after_medium, after_own);
        }
        after_medium.max(after_own)
    }

    /// Stops the countdown.
    fn freeze(&mut self, now: Instant) {
        if !matches!(self.state, State::Idle) || self.busy {
            return;
        }
        if self.own.slots.is_some() {
            let passed = self.passed_slots(&self.own, now);
            self.own.freeze(passed, &self.radio, &mut self.random);
        }
        if !self.others.is_empty() {
            self.freeze_others(now);
        }
    }

    // ----- time

    /// The instant at which [`Self::handle_timeout`] must be called.
    #[inline] // after each event of a station
    pub fn next_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Idle if self.busy => None,
            State::Idle if self.others.is_empty() => self.access_at(&self.own),
            State::Idle => self.first_access(),
            State::Transmitting(_) => None,
            State::AwaitCts { until } | State::AwaitAck { until } | State::AwaitData { until } => {
                (*until < Instant::MAX).then_some(*until)
            }
            State::Sifs { at, .. } => Some(*at),
        }
    }

    /// Does what is due at `now`; an early call has no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_none_or(|t| t > now) {
            return;
        }
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => self.access(now),
            State::AwaitCts { .. } => self.response_overdue(now, FrameKind::Rts),
            State::AwaitAck { .. } => self.response_overdue(now, FrameKind::Data),
            State::AwaitData { .. } => self.resume(now),
            State::Sifs { then, .. } => self.respond(now, then),
            State::Transmitting(_) => unreachable!("a transmission has no deadline here"),
        }
    }

    fn response_overdue(&mut self, now: Instant, sent: FrameKind) {
        // 9.3.2.8: a reception that began within the timeout is waited for; its end decides (receive, receive_failed)
        if self.radio.rules.timeouts == Timeouts::Standard && self.busy {
            let until = Instant::MAX;
            self.state = if sent == FrameKind::Rts { State::AwaitCts { until } } else { State::AwaitAck { until } };
            return;
        }
        self.attempt_failed(now, sent);
    }

    /// The backoff is over.
    fn access(&mut self, now: Instant) {
        if self.others.is_empty() {
            self.access_own(now);
        } else {
            self.access_by_priority(now);
        }
    }

    /// The backoff of this function is over. False: it has nothing to send.
    fn access_own(&mut self, now: Instant) -> bool {
        self.own.slots = None;
        self.own.undrawn = false;
        self.own.txop_until = now + self.own.txop;
        let room = self.txop_room(now, true);
        if !self.prepare(now, room) {
            // its packets are gone: it leaves its place to the next, which contends by itself
            self.own.service = None;
            self.contend(now);
            return false;
        }
        self.begin_exchange(now)
    }

    /// Sends the first frame of the exchange in service. False: there is none.
    fn begin_exchange(&mut self, now: Instant) -> bool {
        let Some(service) = &mut self.own.service else { return false };
        if service.needs_rts(&self.radio) {
            service.rts_attempts += 1;
            self.transmit_rts();
        } else {
            service.data_attempts += 1;
            self.transmit_data(now);
        }
        true
    }

    /// Chooses rate and contents of the exchange, of a TXOP within `room`. False: there are none.
    fn prepare(&mut self, now: Instant, room: Option<TxopRoom>) -> bool {
        let radio = &self.radio;
        let Contention { service, blocks, queue, .. } = &mut self.own;
        match service.as_mut().map(|service| &mut service.content) {
            Some(Content::Packet { packet, progress: progress @ None, .. }) => {
                if let (Some(rates), Dest::Station(peer), false) = (&mut self.rates, packet.dest, packet.has_own_mode())
                {
                    *progress = Some(rates.begin(now, peer, packet.mpdu_bytes(radio)));
                }
            }
            Some(Content::Block { peer, offer }) => {
                let (Some(blocks), Some(rates)) = (blocks, &mut self.rates) else { return false };
                *offer = blocks.next(now, *peer, (radio, room), rates, queue);
                let is_made = offer.is_some();
                self.report_drops();
                return is_made;
            }
            _ => {}
        }
        true
    }

    // ----- transmissions

    fn transmit(&mut self, frame: Frame) {
        self.state = State::Transmitting(frame.kind);
        self.actions.push(Action::Transmit(frame));
    }

    /// The frame of the exchange in service, in the `attempt`th transmission of this service.
    fn outgoing(&self, attempt: u32) -> Outgoing {
        let (radio, service) =
            (&self.radio, self.own.service.as_ref().expect("a frame only with something in service"));
        match &service.content {
            Content::Packet { packet, sequence, progress } => {
                let kind = if packet.dest == Dest::Broadcast { FrameKind::Bcast } else { FrameKind::Data };
                let mode = match (progress, &self.rates) {
                    (Some(progress), Some(rates)) => rates.mode(progress),
                    _ => packet.mode(radio, kind, attempt.max(service.tries())),
                };
                let bytes = packet.mpdu_bytes(radio);
                Outgoing {
                    kind,
                    dest: packet.dest,
                    bytes,
                    mode,
                    airtime: radio.airtime(bytes, mode),
                    answer_airtime: if kind == FrameKind::Bcast { Duration::ZERO } else { radio.answer_airtime(mode) },
                    sequence: *sequence,
                    attempt,
                    packet: Some(packet.clone()),
                    block: None,
                }
            }
            Content::Block { peer, offer } => {
                let offer = offer.as_ref().expect("made before the first frame");
                let (mode, first) = (offer.mode, offer.parts().first());
                let answer_airtime =
                    if offer.is_block_acked() { radio.block_ack_airtime(mode) } else { radio.answer_airtime(mode) };
                Outgoing {
                    kind: offer.kind,
                    dest: Dest::Station(*peer),
                    bytes: offer.bytes,
                    mode,
                    airtime: radio.airtime(offer.bytes, mode),
                    answer_airtime,
                    sequence: first.map_or(0, |part| part.sequence),
                    attempt: first.map_or(attempt, |part| part.attempt),
                    packet: first.map(|part| part.packet.clone()),
                    block: Some(offer.block.clone()),
                }
            }
        }
    }

    fn transmit_rts(&mut self) {
        let radio = self.radio.clone();
        let service = self.own.service.as_ref().expect("RTS only with something in service");
        let attempt = service.rts_attempts;
        let Outgoing { dest, mode, airtime, answer_airtime, packet, .. } = self.outgoing(service.data_attempts + 1);
        let is_chosen =
            radio.rate_control != RateControl::Fixed || packet.as_ref().is_some_and(|packet| packet.has_own_rates());
        let mode = if is_chosen { radio.rts_mode(mode) } else { radio.control_mode() };
        let frame = Frame {
            kind: FrameKind::Rts,
            from: self.station,
            dest,
            reserves: radio.sifs() * 3 + self.cts_airtime(mode) + airtime + answer_airtime,
            bytes: RTS_BYTES,
            mode,
            airtime: radio.airtime(RTS_BYTES, mode),
            ack_airtime: answer_airtime,
            category: self.own.category,
            sequence: 0,
            retry: attempt > 1,
            attempt,
            backoff_slots: self.own.drawn,
            packet,
            block: None,
            snr_db: None,
        };
        self.transmit(frame);
    }

    /// Time on the air of the CTS that answers an RTS in `rts`.
    fn cts_airtime(&self, rts: Mode) -> Duration {
        if rts == self.radio.control_mode() {
            self.cts_airtime
        } else {
            self.radio.answer_airtime(rts)
        }
    }

    fn transmit_data(&mut self, now: Instant) {
        let service = self.own.service.as_ref().expect("data only with something in service");
        let follows_rts = service.needs_rts(&self.radio);
        let Outgoing { kind, dest, bytes, mode, airtime, answer_airtime, sequence, attempt, packet, block } =
            self.outgoing(service.data_attempts);
        self.own.queue.charge(dest, airtime);
        let answered = match kind {
            FrameKind::Bcast => Duration::ZERO,
            _ => self.radio.sifs() + answer_airtime,
        };
        let frame = Frame {
            kind,
            from: self.station,
            dest,
            reserves: answered + self.following(now + airtime + answered, kind, mode),
            bytes,
            mode,
            airtime,
            ack_airtime: Duration::ZERO,
            category: self.own.category,
            sequence,
            retry: attempt > 1,
            attempt,
            backoff_slots: if follows_rts { 0 } else { self.own.drawn },
            packet,
            block,
            snr_db: None,
        };
        self.transmit(frame);
    }

    fn respond(&mut self, now: Instant, response: Response) {
        let medium_free = !self.busy && self.nav_until <= now;
        let held_back = self.radio.rules.response_needs_idle && !medium_free;
        match response {
            Response::Ack { to, mode, bitmap, snr_db, reserved, category } => {
                let answer = self.answer(FrameKind::Ack, to, mode);
                let answer = match bitmap {
                    None => Frame { snr_db, category, ..answer },
                    Some(bitmap) => Frame {
                        kind: FrameKind::Ba,
                        bytes: BA_BYTES,
                        airtime: self.radio.block_ack_airtime(mode),
                        block: Some(Arc::new(Block::Answer(bitmap))),
                        snr_db,
                        category,
                        ..answer
                    },
                };
                // nothing is left unless the frame is one of a TXOP that goes on (802.11-2020 9.2.5.7)
                let reserves = reserved - (self.radio.sifs() + answer.airtime);
                self.transmit(Frame { reserves, ..answer });
            }
            Response::Cts { .. } if held_back => self.resume(now),
            Response::Cts { to, mode, reserves, ack_airtime } => {
                self.transmit(Frame { reserves, ack_airtime, ..self.answer(FrameKind::Cts, to, mode) });
            }
            Response::Data if held_back && self.own.serves_block() => self.attempt_failed(now, FrameKind::Rts),
            Response::Data if held_back => {
                // ns-2 check_pktTx: the RTS is rebuilt and the window grows
                self.own.grow_window();
                self.draw();
                self.resume(now);
            }
            Response::Data => {
                self.own.service.as_mut().expect("data after CTS").data_attempts += 1;
                self.transmit_data(now);
            }
            Response::NextOfTxop => {
                self.begin_exchange(now);
            }
        }
    }

    /// The CTS or ACK that answers a frame in `mode`.
    fn answer(&self, kind: FrameKind, to: Dest, mode: Mode) -> Frame {
        let mode = self.radio.answer_mode(mode);
        Frame {
            kind,
            from: self.station,
            dest: to,
            reserves: Duration::ZERO,
            bytes: CTS_BYTES,
            mode,
            airtime: self.radio.airtime(CTS_BYTES, mode),
            ack_airtime: Duration::ZERO,
            category: Category::default(),
            sequence: 0,
            retry: false,
            attempt: 1,
            backoff_slots: 0,
            packet: None,
            block: None,
            snr_db: None,
        }
    }

    /// The station's own frame has ended.
    pub fn transmit_end(&mut self, now: Instant, frame: &Frame) {
        let State::Transmitting(kind) = self.state else { return };
        // nothing was sensed through the station's own transmission
        self.idle_since = self.idle_since.max(now);
        let radio = &self.radio;
        let overdue = || {
            let block_acked = kind == FrameKind::Bar || !frame.aggregate().is_empty();
            let longer = if radio.rules.timeouts == Timeouts::Full && block_acked {
                radio.block_ack_airtime(frame.mode) - radio.answer_airtime(frame.mode)
            } else {
                Duration::ZERO
            };
            now + radio.answer_timeout(frame.mode) + longer
        };
        match kind {
            FrameKind::Rts => self.state = State::AwaitCts { until: overdue() },
            FrameKind::Data | FrameKind::Bar => self.state = State::AwaitAck { until: overdue() },
            FrameKind::Cts if radio.rules.cts_holds => {
                // ns-2 check_pktCTRL: until the data frame should have ended
                let ack = radio.sifs() + frame.ack_airtime;
                self.state = State::AwaitData { until: now + (frame.reserves - ack) + Duration::from_micros(4) };
            }
            FrameKind::Cts | FrameKind::Ack | FrameKind::Ba => self.resume(now),
            FrameKind::Bcast => self.sent(now, None),
        }
    }

    // ----- outcomes

    fn attempt_failed(&mut self, now: Instant, sent: FrameKind) {
        let radio = self.radio.clone();
        let service = self.own.service.as_mut().expect("an attempt has something in service");
        let short = sent == FrameKind::Rts || !service.needs_rts(&radio);
        match sent {
            FrameKind::Rts => self.counters.cts_timeout += 1,
            _ => self.counters.ack_timeout += 1,
        }
        let (exhausted, reason) = self.count_failure(short);
        if !self.others.is_empty() {
            // AIFS follows the end of the wait (802.11-2020 10.23.2.4)
            self.idle_since = self.idle_since.max(now);
        }
        let service = self.own.service.as_mut().expect("checked above");
        match &mut service.content {
            Content::Block { .. } => {
                let answer = if sent == FrameKind::Rts { Answer::NoCts } else { Answer::Nothing };
                let taken = self.end_block(now, answer, None);
                debug_assert!(taken, "the absence of an answer belongs to every exchange");
                self.own.service = None;
            }
            Content::Packet { progress, .. } => {
                match progress {
                    Some(progress) if sent == FrameKind::Rts => progress.count_lost_rts(1),
                    Some(progress) => progress.count(1, 0, false),
                    None => {}
                }
                if exhausted {
                    self.give_up(now, reason);
                }
            }
        }
        self.draw();
        self.resume(now);
    }

    /// Counts a failed attempt, which is `short` or not, and sets the contention window. Returns whether the limit is reached, and which.
    fn count_failure(&mut self, short: bool) -> (bool, FailReason) {
        let radio = &self.radio;
        let (count, limit, reason) = if short {
            (&mut self.own.short_retries, radio.short_retry_limit, FailReason::ShortRetryLimit)
        } else {
            (&mut self.own.long_retries, radio.long_retry_limit, FailReason::LongRetryLimit)
        };
        *count += 1;
        let exhausted = *count >= limit;
        if exhausted {
            *count = 0;
            if !radio.rules.retries_carry_over {
                (self.own.short_retries, self.own.long_retries) = (0, 0);
            }
            self.own.reset_window();
        } else {
            self.own.grow_window();
        }
        (exhausted, reason)
    }

    /// The packet in service has reached a retry limit.
    fn give_up(&mut self, now: Instant, reason: FailReason) {
        let service = self.own.service.take().expect("callers have checked it");
        let tries = service.tries();
        if let Content::Packet { packet, progress, .. } = service.content {
            self.end_chain(now, packet.dest, progress, None);
            self.actions.push(Action::Failed { packet, reason, tries });
        }
    }

    fn end_chain(&mut self, now: Instant, dest: Dest, progress: Option<Progress>, snr_db: Option<f64>) {
        if let (Some(rates), Some(progress), Dest::Station(peer)) = (&mut self.rates, progress, dest) {
            rates.end(now, peer, &progress, snr_db);
        }
    }

    /// An ACK or Block Ack for this station, while it waits for one.
    fn answered(&mut self, now: Instant, frame: &Frame) {
        let answer = match frame.block.as_deref() {
            Some(Block::Answer(bitmap)) => Answer::BlockAck(*bitmap),
            _ => Answer::Ack,
        };
        if !self.own.serves_block() {
            if answer == Answer::Ack {
                self.sent(now, frame.snr_db);
            }
        } else if self.end_block(now, answer, frame.snr_db) {
            self.succeed(now);
        }
    }

    /// The end of an exchange of a Block Ack agreement; false: `answer` does not belong to it.
    fn end_block(&mut self, now: Instant, answer: Answer, snr_db: Option<f64>) -> bool {
        let (Some(blocks), Some(rates), Some(Service { content: Content::Block { peer, offer: Some(offer) }, .. })) =
            (&mut self.own.blocks, &mut self.rates, &self.own.service)
        else {
            return false;
        };
        let mut resolved = Vec::new();
        if !blocks.answered(now, *peer, offer, answer, snr_db, rates, &mut resolved) {
            return false;
        }
        for Resolved { packet, attempts, fate, .. } in resolved {
            let reason = match fate {
                Fate::Retried => continue,
                Fate::Acknowledged => {
                    let retries = attempts.saturating_sub(1);
                    self.actions.push(Action::Sent { packet, retries, tries: attempts });
                    continue;
                }
                Fate::RetryLimit | Fate::RtsRetryLimit => FailReason::ShortRetryLimit,
            };
            self.actions.push(Action::Failed { packet, reason, tries: attempts });
        }
        true
    }

    fn sent(&mut self, now: Instant, snr_db: Option<f64>) {
        let service = self.own.service.as_mut().expect("something was sent");
        let attempts = service.rts_attempts + service.data_attempts;
        let first = 1 + u32::from(service.needs_rts(&self.radio));
        let (retries, tries) = (attempts.saturating_sub(first), service.tries());
        let Content::Packet { packet, progress, .. } = &mut service.content else { unreachable!("a packet was sent") };
        let (packet, mut progress) = (packet.clone(), progress.take());
        progress.iter_mut().for_each(|progress| progress.count(1, 1, true));
        self.end_chain(now, packet.dest, progress, snr_db);
        self.actions.push(Action::Sent { packet, retries, tries });
        self.succeed(now);
    }

    /// The exchange in service has succeeded.
    fn succeed(&mut self, now: Instant) {
        let service = self.own.service.take().expect("something was sent");
        if service.needs_rts(&self.radio) {
            self.own.long_retries = 0;
        } else {
            self.own.short_retries = 0;
        }
        self.own.reset_window();
        if self.continues_txop(now) {
            return;
        }
        self.draw(); // post-backoff, whether or not something is queued (9.3.4.2)
        self.resume(now);
    }

    /// Returns to contention.
    fn resume(&mut self, now: Instant) {
        self.state = State::Idle;
        self.contend(now);
        // packets that came during the exchange have no backoff yet
        for other in self.others.iter_mut().filter(|other| other.service.is_some() && other.slots.is_none()) {
            other.draw(&self.radio, &mut self.random);
        }
    }

    /// The next packet comes into service, a backoff is drawn if none is pending.
    fn contend(&mut self, now: Instant) {
        self.own.ready_at = now;
        if self.own.service.is_none() {
            self.serve_next(now);
        }
        if self.own.service.is_some() && self.own.slots.is_none() {
            self.draw();
        }
    }
}

/// RTS/CTS precedes unicast MPDUs longer than the threshold (9.3.2.6).
fn needs_rts(radio: &Radio, packet: &Packet) -> bool {
    packet.dest != Dest::Broadcast && packet.mpdu_bytes(radio) > radio.rts_threshold_bytes
}
