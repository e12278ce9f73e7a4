//! The DCF of one station: access to the medium, responses, retries.
//!
//! IEEE Std 802.11-2012 clause 9.3 (the basic access of 802.11-1997 unchanged): carrier sense, physical and virtual
//! (9.3.2.1), inter-frame spaces (9.3.2.3), random backoff (9.3.3), access procedure (9.3.4), RTS/CTS (9.3.2.6), ACK
//! (9.3.2.8), duplicates (9.3.2.10), retry counters (9.3.4.4). ns-2.35's departures are switches of the radio profile
//! ([`crate::phy::radio::Rules`]). Not modelled: fragmentation, PCF, power save, EDCA, the optional NAV reset after an
//! RTS that no data follows (9.3.2.4), rate adaptation.
//!
//! The radio reports carrier sense ([`Dcf::medium_busy`], [`Dcf::medium_idle`]) and receptions
//! ([`Dcf::receive`], [`Dcf::receive_failed`]); the machine answers with [`Action`]s. Each call carries the time. There is one
//! deadline ([`Dcf::next_timeout`]): the end of the wait of its state, or of its backoff.

use super::action::{Action, DcfCounters, FailReason};
use super::{Dest, Frame, InterfaceQueue, Packet};
use crate::phy::radio::{BackoffDraw, Timeouts, CTS_BYTES, RTS_BYTES};
use crate::phy::{FrameKind, Mode, Radio};
use manet_engine::{Duration, Instant, Stream};
use std::collections::HashMap;
use std::sync::Arc;

mod receptions;
pub mod visible;

#[derive(Clone, Debug)]
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

#[derive(Clone, Debug)]
enum Response {
    Cts {
        to: Dest,
        reserves: Duration,
        ack_airtime: Duration,
    },
    /// The answer to a frame in `mode`.
    Ack {
        to: Dest,
        mode: Mode,
    },
    Data,
}

/// The packet in service.
#[derive(Clone, Debug)]
struct Service {
    packet: Arc<Packet>,
    sequence: u16,
    rts_attempts: u32,
    data_attempts: u32,
}

impl Service {
    /// Attempts: RTS before each data frame, or no RTS at all.
    fn tries(&self) -> u32 {
        self.rts_attempts.max(self.data_attempts)
    }
}

/// The distributed coordination function of one station.
#[derive(Clone, Debug)]
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
    actions: Vec<Action>,
    /// Counters of this station.
    pub counters: DcfCounters,
}

impl Dcf {
    /// `station`: own number; `random`: stream of the backoff.
    pub fn new(station: u16, radio: Arc<Radio>, queue: InterfaceQueue, random: Stream) -> Self {
        let (cw, eifs, cts_airtime) = (radio.cw_min, radio.eifs(), radio.cts_airtime());
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
        self.backlog() > 0 || !matches!(self.state, State::Idle)
    }

    /// Number of packets that wait, the one in service included.
    pub fn backlog(&self) -> usize {
        self.queue.len() + usize::from(self.service.is_some())
    }

    /// End of the NAV (9.3.2.4).
    pub fn nav_until(&self) -> Instant {
        self.nav_until
    }

    // ----- from the host

    /// Takes a packet; returns the packet that a full queue drops.
    pub fn enqueue(&mut self, now: Instant, packet: Arc<Packet>) -> Option<Arc<Packet>> {
        if self.service.is_none() && self.queue.is_empty() {
            self.serve(packet);
            self.begin_access(now);
            return None;
        }
        if packet.is_beacon() {
            self.queue.push_beacon(packet)
        } else {
            self.queue.push(packet)
        }
    }

    /// Removes all packets not yet acknowledged, at the end of a run.
    pub fn remaining(&mut self) -> Vec<Arc<Packet>> {
        let service = self.service.take().map(|s| s.packet);
        service.into_iter().chain(self.queue.drain()).collect()
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
        self.actions.clear();
        lost
    }

    fn serve(&mut self, packet: Arc<Packet>) {
        let sequence = self.next_sequence;
        self.next_sequence = (sequence + 1) % 4096;
        self.service = Some(Service { packet, sequence, rts_attempts: 0, data_attempts: 0 });
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
            State::Idle => self.access(),
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
    fn access(&mut self) {
        self.slots = None;
        self.undrawn = false;
        let Some(service) = &mut self.service else { return };
        if needs_rts(&self.radio, &service.packet) {
            service.rts_attempts += 1;
            self.transmit_rts();
        } else {
            service.data_attempts += 1;
            self.transmit_data();
        }
    }

    // ----- transmissions

    fn transmit(&mut self, frame: Frame) {
        self.state = State::Transmitting(frame.kind);
        self.actions.push(Action::Transmit(frame));
    }

    fn transmit_rts(&mut self) {
        let radio = self.radio.clone();
        let service = self.service.as_ref().expect("RTS only with a packet in service");
        let mode = service.packet.mode(&radio, FrameKind::Data, service.data_attempts + 1);
        let data = radio.airtime(service.packet.mpdu_bytes(&radio), mode);
        let ack_airtime = radio.answer_airtime(mode);
        let frame = Frame {
            kind: FrameKind::Rts,
            from: self.station,
            dest: service.packet.dest,
            reserves: radio.sifs() * 3 + self.cts_airtime + data + ack_airtime,
            bytes: RTS_BYTES,
            mode: radio.control_mode(),
            airtime: radio.rts_airtime(),
            ack_airtime,
            sequence: 0,
            retry: service.rts_attempts > 1,
            attempt: service.rts_attempts,
            backoff_slots: self.drawn,
            packet: Some(service.packet.clone()),
        };
        self.transmit(frame);
    }

    fn transmit_data(&mut self) {
        let radio = self.radio.clone();
        let service = self.service.as_ref().expect("data only with a packet in service");
        let kind = if service.packet.dest == Dest::Broadcast { FrameKind::Bcast } else { FrameKind::Data };
        let bytes = service.packet.mpdu_bytes(&radio);
        let mode = service.packet.mode(&radio, kind, service.data_attempts);
        let frame = Frame {
            kind,
            from: self.station,
            dest: service.packet.dest,
            reserves: match kind {
                FrameKind::Bcast => Duration::ZERO,
                _ => radio.sifs() + radio.answer_airtime(mode),
            },
            bytes,
            mode,
            airtime: radio.airtime(bytes, mode),
            ack_airtime: Duration::ZERO,
            sequence: service.sequence,
            retry: service.data_attempts > 1,
            attempt: service.data_attempts,
            backoff_slots: if needs_rts(&radio, &service.packet) { 0 } else { self.drawn },
            packet: Some(service.packet.clone()),
        };
        self.transmit(frame);
    }

    fn respond(&mut self, now: Instant, response: Response) {
        let medium_free = !self.busy && self.nav_until <= now;
        let held_back = self.radio.rules.response_needs_idle && !medium_free;
        match response {
            Response::Ack { to, mode } => {
                self.transmit_answer(FrameKind::Ack, to, mode, Duration::ZERO, Duration::ZERO);
            }
            Response::Cts { .. } if held_back => self.resume(now),
            Response::Cts { to, reserves, ack_airtime } => {
                let mode = self.radio.control_mode();
                self.transmit_answer(FrameKind::Cts, to, mode, reserves, ack_airtime);
            }
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

    /// Sends the CTS or ACK that answers a frame in `mode`.
    fn transmit_answer(&mut self, kind: FrameKind, to: Dest, mode: Mode, reserves: Duration, ack_airtime: Duration) {
        let mode = self.radio.answer_mode(mode);
        let frame = Frame {
            kind,
            from: self.station,
            dest: to,
            reserves,
            bytes: CTS_BYTES,
            mode,
            airtime: self.radio.airtime(CTS_BYTES, mode),
            ack_airtime,
            sequence: 0,
            retry: false,
            attempt: 1,
            backoff_slots: 0,
            packet: None,
        };
        self.transmit(frame);
    }

    /// The station's own frame has ended.
    pub fn transmit_end(&mut self, now: Instant, frame: &Frame) {
        let State::Transmitting(kind) = self.state else { return };
        // nothing was sensed through the station's own transmission
        self.idle_since = self.idle_since.max(now);
        let radio = &self.radio;
        let overdue = || now + radio.answer_timeout(frame.mode);
        match kind {
            FrameKind::Rts => self.state = State::AwaitCts { until: overdue() },
            FrameKind::Data => self.state = State::AwaitAck { until: overdue() },
            FrameKind::Cts if radio.rules.cts_holds => {
                // ns-2 check_pktCTRL: until the data frame should have ended
                let ack = radio.sifs() + frame.ack_airtime;
                self.state = State::AwaitData { until: now + (frame.reserves - ack) + Duration::from_micros(4) };
            }
            FrameKind::Cts | FrameKind::Ack => self.resume(now),
            FrameKind::Bcast => self.sent(now),
        }
    }

    // ----- outcomes

    fn attempt_failed(&mut self, now: Instant, sent: FrameKind) {
        let radio = self.radio.clone();
        let service = self.service.as_ref().expect("an attempt has a packet");
        let short = sent == FrameKind::Rts || !needs_rts(&radio, &service.packet);
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
        if *count >= limit {
            *count = 0;
            if !radio.rules.retries_carry_over {
                (self.short_retries, self.long_retries) = (0, 0);
            }
            self.cw = radio.cw_min;
            let service = self.service.take().expect("checked above");
            let tries = service.tries();
            self.actions.push(Action::Failed { packet: service.packet, reason, tries });
        } else {
            self.grow_window();
        }
        self.draw();
        self.resume(now);
    }

    fn sent(&mut self, now: Instant) {
        let service = self.service.take().expect("something was sent");
        if needs_rts(&self.radio, &service.packet) {
            self.long_retries = 0;
        } else {
            self.short_retries = 0;
        }
        self.cw = self.radio.cw_min;
        let attempts = service.rts_attempts + service.data_attempts;
        let first = 1 + u32::from(needs_rts(&self.radio, &service.packet));
        let (retries, tries) = (attempts.saturating_sub(first), service.tries());
        self.actions.push(Action::Sent { packet: service.packet, retries, tries });
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
            if let Some(packet) = self.queue.pop() {
                self.serve(packet);
            }
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
