//! The DCF of one station: access to the medium, responses, retries.
//!
//! IEEE Std 802.11-2012 clause 9.3 (the basic access of 802.11-1997 unchanged): carrier sense, physical and virtual
//! (9.3.2.1), inter-frame spaces (9.3.2.3), random backoff (9.3.3), access procedure (9.3.4), RTS/CTS (9.3.2.6), ACK
//! (9.3.2.8), duplicates (9.3.2.10), retry counters (9.3.4.4). ns-2.35's departures are switches of the radio profile
//! ([`crate::phy::radio::Rules`]). Not modelled: fragmentation, PCF, power save, EDCA's access categories and TXOPs (the AIFS is the
//! profile's), the optional NAV reset after an RTS that no data follows (9.3.2.4). Rates: [`super::rates`]; A-MPDUs: [`super::blocks`].
//!
//! The radio reports carrier sense ([`Dcf::medium_busy`], [`Dcf::medium_idle`]) and receptions
//! ([`Dcf::receive`], [`Dcf::receive_failed`]); the machine answers with [`Action`]s. Each call carries the time. There is one
//! deadline ([`Dcf::next_timeout`]): the end of the wait of its state, or of its backoff.

use super::action::{Action, DcfCounters, FailReason};
use super::block_ack::{Answer, Bitmap, Fate, Resolved};
use super::blocks::{Blocks, Offer};
use super::rates::{Progress, Rates};
use super::{Block, Dest, Frame, InterfaceQueue, Packet};
use crate::fate::DropReason;
use crate::phy::radio::{BackoffDraw, RateControl, Timeouts, BA_BYTES, CTS_BYTES, RTS_BYTES};
use crate::phy::{FrameKind, Mode, Radio};
use crate::rate_control::Row;
use manet_engine::{Duration, Instant, Stream};
use std::collections::HashMap;
use std::sync::Arc;

mod receptions;
pub mod visible;

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
    /// The answer to a frame in `mode`: with a bitmap a Block Ack.
    Ack {
        to: Dest,
        mode: Mode,
        bitmap: Option<Bitmap>,
        snr_db: Option<f64>,
    },
    Data,
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

    /// Attempts: RTS before each data frame, or no RTS at all.
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
    random: Stream,
    /// Packets that wait behind the one in service.
    pub queue: InterfaceQueue,
    service: Option<Service>,
    state: State,

    cw: u32,
    short_retries: u32,
    long_retries: u32,
    next_sequence: u16,

    /// Remaining backoff slots; `None`: no backoff pending.
    slots: Option<u32>,
    /// Access without backoff, as the medium was idle (9.3.4.2); if it becomes busy first, a backoff is drawn.
    undrawn: bool,
    drawn: u32,
    /// Earliest start of the countdown, apart from the state of the medium.
    ready_at: Instant,

    busy: bool,
    idle_since: Instant,
    nav_until: Instant,
    eifs_until: Instant,
    /// A frame was not decoded: EIFS begins when the medium is idle again.
    eifs_due: bool,

    /// Last sequence number received from each station (9.3.2.10).
    heard: HashMap<u16, u16>,
    /// Block Ack agreements, if the profile aggregates.
    blocks: Option<Box<Blocks>>,
    /// Rate control, if the profile has one or aggregates. Otherwise data are sent at the profile's rate or at those of the kernel.
    rates: Option<Box<Rates>>,
    actions: Vec<Action>,
    /// Counters of this station.
    pub counters: DcfCounters,
}

impl Dcf {
    /// `station`: own number; `random`: stream of the backoff; `samples`: that of the rate control.
    pub fn new(station: u16, radio: Arc<Radio>, queue: InterfaceQueue, random: Stream, samples: Stream) -> Self {
        let (cw, eifs, cts_airtime) = (radio.cw_min, radio.eifs(), radio.cts_airtime());
        let blocks = Blocks::new(&radio).map(Box::new);
        let adapts = blocks.is_some() || radio.rate_control != RateControl::Fixed;
        let rates = adapts.then(|| Box::new(Rates::new(&radio, samples)));
        Self {
            station,
            radio,
            eifs,
            cts_airtime,
            random,
            queue,
            service: None,
            state: State::Idle,
            cw,
            short_retries: 0,
            long_retries: 0,
            next_sequence: 0,
            slots: None,
            undrawn: false,
            drawn: 0,
            ready_at: Instant::ZERO,
            busy: false,
            idle_since: Instant::ZERO,
            nav_until: Instant::ZERO,
            eifs_until: Instant::ZERO,
            eifs_due: false,
            heard: HashMap::new(),
            blocks,
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
        self.service.is_some() || self.backlog() > 0 || !matches!(self.state, State::Idle)
    }

    /// Number of packets that wait, the one in service included.
    pub fn backlog(&self) -> usize {
        let in_service = matches!(&self.service, Some(Service { content: Content::Packet { .. }, .. }));
        self.queue.len() + usize::from(in_service) + self.blocks.as_ref().map_or(0, |blocks| blocks.backlog())
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
        if packet.is_beacon() && self.is_waiting() {
            let outdated = self.queue.push_beacon(packet);
            self.actions.extend(outdated.map(|packet| Action::Dropped { packet, reason: DropReason::QueueFull }));
        } else if self.is_waiting() {
            self.queue.push(now, packet);
            self.report_drops();
        } else {
            self.queue.push(now, packet);
            self.serve_next(now);
            self.begin_access(now);
        }
    }

    /// Whether something is in service or waits.
    fn is_waiting(&self) -> bool {
        self.service.is_some() || !self.queue.is_empty()
    }

    fn report_drops(&mut self) {
        self.actions.extend(self.queue.take_dropped().map(|(packet, reason)| Action::Dropped { packet, reason }));
    }

    /// Removes all packets not yet acknowledged, at the end of a run.
    pub fn remaining(&mut self) -> Vec<Arc<Packet>> {
        let service = self.service.take().and_then(|service| match service.content {
            Content::Packet { packet, .. } => Some(packet),
            Content::Block { .. } => None,
        });
        let blocks = self.blocks.as_mut().map_or_else(Vec::new, |blocks| blocks.switch_off());
        service.into_iter().chain(blocks).chain(self.queue.drain()).collect()
    }

    /// Removes the packets for a neighbour that are not in service, in order.
    pub fn purge(&mut self, mac: [u8; 6], neighbour: Option<u16>) -> Vec<Arc<Packet>> {
        let in_service = |peer| match &self.service {
            Some(Service { content: Content::Block { peer: served, offer: Some(_) }, .. }) => *served == peer,
            _ => false,
        };
        let mut out = match (&mut self.blocks, neighbour) {
            (Some(blocks), Some(peer)) if !in_service(peer) => blocks.purge(peer),
            _ => Vec::new(),
        };
        out.extend(self.queue.purge(mac));
        out
    }

    /// Another station was switched off.
    pub fn peer_is_off(&mut self, peer: u16) {
        let mut delivered = Vec::new();
        if let Some(blocks) = &mut self.blocks {
            blocks.peer_is_off(peer, &mut delivered);
        }
        let rate_bps = self.radio.data_rate_bps;
        self.deliver_all(delivered, rate_bps);
    }

    /// Ends the agreements as a recipient: what waits there for an earlier MPDU, with the station that each packet is from.
    pub fn take_stored(&mut self) -> Vec<(u16, Arc<Packet>)> {
        self.blocks.as_mut().map_or_else(Vec::new, |blocks| blocks.take_stored())
    }

    /// Whether a packet for another station waits for its acknowledgement under an agreement.
    pub fn holds(&self, peer: u16, packet: u64) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| blocks.holds(peer, packet))
    }

    /// The radio loses its power: the state of a new station, except for the sequence numbers; others would take its next
    /// frames for duplicates. Returns all packets not yet acknowledged.
    pub fn switch_off(&mut self, now: Instant) -> Vec<Arc<Packet>> {
        let lost = self.remaining();
        self.state = State::Idle;
        self.cw = self.radio.cw_min;
        (self.short_retries, self.long_retries) = (0, 0);
        (self.slots, self.undrawn, self.drawn) = (None, false, 0);
        (self.busy, self.idle_since, self.ready_at) = (false, now, now);
        (self.nav_until, self.eifs_until, self.eifs_due) = (Instant::ZERO, Instant::ZERO, false);
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
        self.service = Some(Service::new(Content::Packet { packet, sequence, progress: None }));
    }

    /// The next packet comes into service, or an exchange with its peer.
    fn serve_next(&mut self, now: Instant) {
        let next = match &self.blocks {
            None => self.queue.pop(now),
            Some(blocks) => {
                let Some(dest) = self.queue.next_dest(blocks.waiting()) else { return };
                let takes = self.queue.front_for(dest).is_none_or(|packet| Blocks::takes(packet));
                if let (Some(peer), true) = (dest.station(), takes) {
                    self.service = Some(Service::new(Content::Block { peer, offer: None }));
                    return;
                }
                self.queue.pop_for(now, dest)
            }
        };
        self.report_drops();
        if let Some(packet) = next {
            self.serve(packet);
        }
    }

    fn begin_access(&mut self, now: Instant) {
        if !matches!(self.state, State::Idle) || self.slots.is_some() {
            return;
        }
        self.ready_at = now;
        let found_idle = !self.busy && self.nav_until <= now && self.eifs_until <= now;
        if self.radio.rules.backoff_when_idle || !found_idle {
            self.draw();
        } else {
            self.slots = Some(0);
            self.undrawn = true;
            self.drawn = 0;
        }
    }

    fn draw(&mut self) {
        let values = match self.radio.rules.backoff_draw {
            BackoffDraw::Cw => self.cw + 1,
            BackoffDraw::CwMinusOne => self.cw,
        };
        self.drawn = self.random.below(values.into()) as u32;
        self.slots = Some(self.drawn);
        self.undrawn = false;
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

    /// Start of the first backoff slot; only valid while idle.
    fn countdown_start(&self) -> Instant {
        let difs = self.radio.difs();
        let after_medium = (self.idle_since.max(self.nav_until) + difs).max(self.eifs_until);
        let after_own = if self.radio.rules.backoff_when_idle { self.ready_at + difs } else { self.ready_at };
        after_medium.max(after_own)
    }

    fn counts_down(&self) -> bool {
        matches!(self.state, State::Idle) && !self.busy && self.slots.is_some()
    }

    /// Stops the countdown; complete slots count, a partial slot does not.
    fn freeze(&mut self, now: Instant) {
        if !self.counts_down() {
            return;
        }
        if self.undrawn {
            self.draw();
            return;
        }
        let elapsed = now.since(self.countdown_start()).as_nanos() / self.radio.slot().as_nanos();
        self.slots = self.slots.map(|s| s - s.min(elapsed as u32));
    }

    // ----- time

    /// The instant at which [`Self::handle_timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Idle if self.counts_down() => {
                Some(self.countdown_start() + self.radio.slot() * u64::from(self.slots?))
            }
            State::Idle | State::Transmitting(_) => None,
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
        self.slots = None;
        self.undrawn = false;
        if !self.prepare(now) {
            return;
        }
        let Some(service) = &mut self.service else { return };
        if service.needs_rts(&self.radio) {
            service.rts_attempts += 1;
            self.transmit_rts();
        } else {
            service.data_attempts += 1;
            self.transmit_data();
        }
    }

    /// Chooses rate and contents of the exchange. False: its packets are gone, and it has left its place to the next, which contends
    /// by itself.
    fn prepare(&mut self, now: Instant) -> bool {
        let (radio, queue) = (&self.radio, &mut self.queue);
        match self.service.as_mut().map(|service| &mut service.content) {
            Some(Content::Packet { packet, progress: progress @ None, .. }) => {
                if let (Some(rates), Dest::Station(peer), false) = (&mut self.rates, packet.dest, packet.has_own_mode())
                {
                    *progress = Some(rates.begin(now, peer, packet.mpdu_bytes(radio)));
                }
            }
            Some(Content::Block { peer, offer }) => {
                let (Some(blocks), Some(rates)) = (&mut self.blocks, &mut self.rates) else { return false };
                *offer = blocks.next(now, *peer, radio, rates, queue);
                let is_gone = offer.is_none();
                self.report_drops();
                if is_gone {
                    self.service = None;
                    self.resume(now);
                    return false;
                }
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
        let (radio, service) = (&self.radio, self.service.as_ref().expect("a frame only with something in service"));
        match &service.content {
            Content::Packet { packet, sequence, progress } => {
                let kind = if packet.dest == Dest::Broadcast { FrameKind::Bcast } else { FrameKind::Data };
                let mode = match (progress, &self.rates) {
                    (Some(progress), Some(rates)) => rates.mode(progress),
                    _ => packet.mode(radio, kind, attempt),
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
        let service = self.service.as_ref().expect("RTS only with something in service");
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
            sequence: 0,
            retry: attempt > 1,
            attempt,
            backoff_slots: self.drawn,
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

    fn transmit_data(&mut self) {
        let service = self.service.as_ref().expect("data only with something in service");
        let follows_rts = service.needs_rts(&self.radio);
        let Outgoing { kind, dest, bytes, mode, airtime, answer_airtime, sequence, attempt, packet, block } =
            self.outgoing(service.data_attempts);
        self.queue.charge(dest, airtime);
        let frame = Frame {
            kind,
            from: self.station,
            dest,
            reserves: match kind {
                FrameKind::Bcast => Duration::ZERO,
                _ => self.radio.sifs() + answer_airtime,
            },
            bytes,
            mode,
            airtime,
            ack_airtime: Duration::ZERO,
            sequence,
            retry: attempt > 1,
            attempt,
            backoff_slots: if follows_rts { 0 } else { self.drawn },
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
            Response::Ack { to, mode, bitmap, snr_db } => {
                let answer = self.answer(FrameKind::Ack, to, mode);
                self.transmit(match bitmap {
                    None => Frame { snr_db, ..answer },
                    Some(bitmap) => Frame {
                        kind: FrameKind::Ba,
                        bytes: BA_BYTES,
                        airtime: self.radio.block_ack_airtime(mode),
                        block: Some(Arc::new(Block::Answer(bitmap))),
                        snr_db,
                        ..answer
                    },
                });
            }
            Response::Cts { .. } if held_back => self.resume(now),
            Response::Cts { to, mode, reserves, ack_airtime } => {
                self.transmit(Frame { reserves, ack_airtime, ..self.answer(FrameKind::Cts, to, mode) });
            }
            Response::Data if held_back && self.serves_block() => self.attempt_failed(now, FrameKind::Rts),
            Response::Data if held_back => {
                // ns-2 check_pktTx: the RTS is rebuilt and the window grows
                self.grow_window();
                self.draw();
                self.resume(now);
            }
            Response::Data => {
                self.service.as_mut().expect("data after CTS").data_attempts += 1;
                self.transmit_data();
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
            sequence: 0,
            retry: false,
            attempt: 1,
            backoff_slots: 0,
            packet: None,
            block: None,
            snr_db: None,
        }
    }

    fn serves_block(&self) -> bool {
        matches!(&self.service, Some(Service { content: Content::Block { .. }, .. }))
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
        let service = self.service.as_mut().expect("an attempt has something in service");
        let short = sent == FrameKind::Rts || !service.needs_rts(&radio);
        match sent {
            FrameKind::Rts => self.counters.cts_timeout += 1,
            _ => self.counters.ack_timeout += 1,
        }
        let (count, limit, reason) = if short {
            (&mut self.short_retries, radio.short_retry_limit, FailReason::ShortRetryLimit)
        } else {
            (&mut self.long_retries, radio.long_retry_limit, FailReason::LongRetryLimit)
        };
        *count += 1;
        let exhausted = *count >= limit;
        if exhausted {
            *count = 0;
            if !radio.rules.retries_carry_over {
                (self.short_retries, self.long_retries) = (0, 0);
            }
            self.cw = radio.cw_min;
        } else {
            self.grow_window();
        }
        let service = self.service.as_mut().expect("checked above");
        match &mut service.content {
            Content::Block { .. } => {
                let answer = if sent == FrameKind::Rts { Answer::NoCts } else { Answer::Nothing };
                let taken = self.end_block(now, answer, None);
                debug_assert!(taken, "the absence of an answer belongs to every exchange");
                self.service = None;
            }
            Content::Packet { progress, .. } => {
                if let (Some(progress), true) = (progress, sent != FrameKind::Rts) {
                    progress.count(1, 0, false);
                }
                if exhausted {
                    self.give_up(now, reason);
                }
            }
        }
        self.draw();
        self.resume(now);
    }

    /// The packet in service has reached a retry limit.
    fn give_up(&mut self, now: Instant, reason: FailReason) {
        let service = self.service.take().expect("callers have checked it");
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
        if !self.serves_block() {
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
            (&mut self.blocks, &mut self.rates, &self.service)
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
        let service = self.service.as_mut().expect("something was sent");
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
        let service = self.service.take().expect("something was sent");
        if service.needs_rts(&self.radio) {
            self.long_retries = 0;
        } else {
            self.short_retries = 0;
        }
        self.cw = self.radio.cw_min;
        self.draw(); // post-backoff, whether or not something is queued (9.3.4.2)
        self.resume(now);
    }

    fn grow_window(&mut self) {
        self.cw = (self.cw * 2 + 1).min(self.radio.cw_max);
    }

    /// Returns to contention: the next packet comes into service, a backoff is drawn if none is pending.
    fn resume(&mut self, now: Instant) {
        self.state = State::Idle;
        self.ready_at = now;
        if self.service.is_none() {
            self.serve_next(now);
        }
        if self.service.is_some() && self.slots.is_none() {
            self.draw();
        }
    }
}

/// RTS/CTS precedes unicast MPDUs longer than the threshold (9.3.2.6).
fn needs_rts(radio: &Radio, packet: &Packet) -> bool {
    packet.dest != Dest::Broadcast && packet.mpdu_bytes(radio) > radio.rts_threshold_bytes
}
