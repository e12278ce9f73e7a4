//! The Block Ack agreements of a station with all its peers: what the next exchange with a peer sends, and what became of it.
//!
//! One originator and one recipient for each peer; by EDCA each category has agreements of its own. Contention, RTS and the wait for an answer are the DCF's, as for a single
//! frame; this part says which MPDUs a frame holds and which of them are sent again.

use super::block_ack::room::{DELIMITER_BYTES, MAX_PPDU_TIME};
use super::block_ack::{
    Answer, Bitmap, Exchange, Fate, Mpdu, Options, Originator, Recipient, Resolved, Room, Waiting, WINDOW,
};
use super::rates::{Progress, Rates};
use super::{Block, Dest, InterfaceQueue, Packet, Part};
use crate::phy::radio::BAR_BYTES;
use crate::phy::{FrameKind, Mode, Radio};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A frame to be sent to a peer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// `Data` or `Bar`.
    pub kind: FrameKind,
    /// Length as [`Radio::airtime`] counts it.
    pub bytes: u32,
    /// Its mode.
    pub mode: Mode,
    /// Its contents.
    pub block: Arc<Block>,
}

impl Offer {
    /// Its MPDUs; a request has none.
    pub fn parts(&self) -> &[Part] {
        match &*self.block {
            Block::Data { parts, .. } => parts,
            _ => &[],
        }
    }

    /// Whether a Block Ack answers it.
    pub fn is_block_acked(&self) -> bool {
        self.parts().len() != 1
    }
}

/// What is left of a TXOP.
#[derive(Clone, Copy, Debug)]
pub struct TxopRoom {
    /// Time for the data frame, SIFS and the answer.
    pub available: Duration,
    /// Whether it is the first exchange, in which a single MPDU may take longer.
    pub is_initial: bool,
}

struct Link {
    originator: Originator<Arc<Packet>>,
    /// The chain of rates of the exchanges until one is answered.
    progress: Option<Progress>,
}

/// All agreements of a station.
pub struct Blocks {
    options: Options,
    max_mpdus: usize,
    max_bytes: u32,
    links: BTreeMap<u16, Link>,
    recipients: HashMap<u16, Recipient<Arc<Packet>>>,
}

impl Blocks {
    /// `None`: the profile does not aggregate.
    pub fn new(radio: &Radio) -> Option<Self> {
        let (max_mpdus, max_bytes) = radio.aggregation_limits()?;
        let options = Options {
            retry_limit: radio.short_retry_limit,
            rts_retry_limit: radio.short_retry_limit,
            request_after_silence: radio.requests_after_silence(),
        };
        Some(Self { options, max_mpdus, max_bytes, links: BTreeMap::new(), recipients: HashMap::new() })
    }

    /// Whether a packet is sent under an agreement.
    pub fn takes(packet: &Packet) -> bool {
        matches!(packet.dest, Dest::Station(_)) && packet.mpdu.is_none()
    }

    /// Number of packets of all originators.
    pub fn backlog(&self) -> usize {
        self.links.values().map(|link| link.originator.backlog()).sum()
    }

    /// The peers whose originators have something to send, each with the number of the oldest packet; 0: a request, which delays all
    /// behind it.
    pub fn waiting(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let those = self.links.iter().filter(|(_, link)| link.originator.wants_access());
        those.map(|(peer, link)| (*peer, link.originator.first().map_or(0, |first| first.packet.id)))
    }

    /// What to send to a peer now, of what its originator has and what waits in the queue; `None`: nothing, or nothing that the TXOP
    /// has room for.
    pub fn next(
        &mut self,
        now: Instant,
        peer: u16,
        (radio, txop): (&Radio, Option<TxopRoom>),
        rates: &mut Rates,
        queue: &mut InterfaceQueue,
    ) -> Option<Offer> {
        let options = self.options;
        let dest = Dest::Station(peer);
        let Link { originator, progress } =
            self.links.entry(peer).or_insert_with(|| Link { originator: Originator::new(options, 0), progress: None });
        let own = originator.first().map(|first| first.mpdu_bytes);
        let first = own.or_else(|| queue.front_for(dest).map(|packet| packet.mpdu_bytes(radio)));
        if let (None, Some(bytes)) = (&progress, first) {
            *progress = Some(rates.begin(now, peer, bytes));
        }
        let mode = progress.as_ref().map_or(radio.data_mode(), |progress| rates.mode(progress));
        let is_sample = progress.as_ref().is_some_and(Progress::is_sample);
        let request = originator.request_failures().map(|failures| radio.request_mode(mode, failures));
        let mut max_airtime = MAX_PPDU_TIME;
        if let Some(TxopRoom { available, is_initial }) = txop {
            let answered_after = |mode| radio.sifs() + radio.block_ack_airtime(mode);
            max_airtime = max_airtime.min(available - answered_after(mode));
            let shortest = match (request, first) {
                (Some(request), _) => radio.airtime(BAR_BYTES, request) + answered_after(request),
                (None, Some(bytes)) => radio.airtime(bytes, mode) + answered_after(mode),
                (None, None) => Duration::ZERO,
            };
            if !is_initial && shortest > available {
                return None;
            }
        }
        let room = Room {
            max_mpdus: if is_sample { 1 } else { self.max_mpdus },
            max_bytes: self.max_bytes,
            max_airtime,
            airtime: &|bytes| radio.airtime(radio.bytes_of_aggregate(bytes), mode),
        };
        let next = || {
            let packet = queue.pop_for(now, dest)?;
            Some(Waiting { mpdu_bytes: packet.mpdu_bytes(radio), packet })
        };
        let window_start = originator.window_start();
        Some(match originator.next_exchange(&room, next)? {
            Exchange::Request { start } => Offer {
                kind: FrameKind::Bar,
                bytes: BAR_BYTES,
                mode: request.expect("the originator announces its requests"),
                block: Arc::new(Block::Request { start }),
            },
            Exchange::Data { mpdus, psdu_bytes } => {
                let single = mpdus.len() == 1;
                let bytes = if single { psdu_bytes } else { radio.bytes_of_aggregate(psdu_bytes) };
                let block = Arc::new(Block::Data { window_start, parts: parts(mpdus) });
                Offer { kind: FrameKind::Data, bytes, mode, block }
            }
        })
    }

    /// The answer to an offer, or its absence; the fates of packets are appended to `resolved`. Returns false for an answer that does
    /// not belong to it.
    #[allow(clippy::too_many_arguments)]
    pub fn answered(
        &mut self,
        now: Instant,
        peer: u16,
        offer: &Offer,
        answer: Answer,
        snr_db: Option<f64>,
        rates: &mut Rates,
        resolved: &mut Vec<Resolved<Arc<Packet>>>,
    ) -> bool {
        let Link { originator, progress } = self.links.get_mut(&peer).expect("an offer has a link");
        let before = resolved.len();
        if !originator.handle_answer(answer) {
            return false;
        }
        originator.take_resolved(resolved);
        let fates = &resolved[before..];
        let Some(chain) = progress else { return true };
        let parts = offer.parts();
        let answered = matches!(answer, Answer::Ack | Answer::BlockAck(_));
        if answer == Answer::NoCts {
            chain.count_lost_rts(parts.len() as u32);
        } else if !parts.is_empty() {
            let sent_now = |r: &&Resolved<_>| parts.iter().any(|part| Some(part.sequence) == r.sequence);
            let acknowledged = fates.iter().filter(|r| r.fate == Fate::Acknowledged).filter(sent_now).count();
            chain.count(parts.len() as u32, acknowledged as u32, answered);
        } else if let (true, Answer::BlockAck(_)) = (parts.is_empty(), answer) {
            chain.acknowledge(fates.iter().filter(|r| r.fate == Fate::Acknowledged).count() as u32);
        }
        let over = !parts.is_empty() && answered || fates.iter().any(|r| r.fate.is_final());
        if over {
            rates.end(now, peer, chain, snr_db);
            *progress = None;
        }
        true
    }

    /// Data of a peer: MPDU *n* arrived if bit *n* of `arrived` is set. Appends to `delivered` what can be delivered; returns the Block Ack
    /// and the number of duplicates.
    pub fn receive(
        &mut self,
        from: u16,
        (window_start, parts): (u16, &[Part]),
        arrived: u64,
        delivered: &mut Vec<Arc<Packet>>,
    ) -> (Bitmap, u64) {
        let recipient = self.recipients.entry(from).or_insert_with(|| Recipient::new(window_start));
        let before = recipient.counters.duplicates;
        for (_, part) in parts.iter().enumerate().filter(|(n, _)| arrived >> n & 1 == 1) {
            recipient.receive(part.sequence, part.packet.clone(), delivered);
        }
        (recipient.block_ack(), recipient.counters.duplicates - before)
    }

    /// A Block Ack Request of a peer.
    pub fn handle_request(&mut self, from: u16, start: u16, delivered: &mut Vec<Arc<Packet>>) -> Bitmap {
        self.recipients.entry(from).or_insert_with(|| Recipient::new(start)).handle_request(start, delivered)
    }

    /// A peer was switched off: it will begin anew. Appends to `delivered` what was stored.
    pub fn peer_is_off(&mut self, peer: u16, delivered: &mut Vec<Arc<Packet>>) {
        if let Some(recipient) = self.recipients.remove(&peer) {
            recipient.flush(delivered);
        }
    }

    /// Removes what waits at the recipients for an earlier MPDU, with the peer that each packet is from.
    pub fn take_stored(&mut self) -> Vec<(u16, Arc<Packet>)> {
        let mut peers: Vec<_> = self.recipients.drain().collect();
        peers.sort_unstable_by_key(|(peer, _)| *peer);
        let mut stored = Vec::new();
        for (peer, recipient) in peers {
            let mut packets = Vec::new();
            recipient.flush(&mut packets);
            stored.extend(packets.into_iter().map(|packet| (peer, packet)));
        }
        stored
    }

    /// Whether a packet for a peer has no final fate here.
    pub fn holds(&self, peer: u16, packet: u64) -> bool {
        self.links.get(&peer).is_some_and(|link| link.originator.unresolved().any(|held| held.id == packet))
    }

    /// Removes all packets for a peer without a final fate, in order.
    pub fn purge(&mut self, peer: u16) -> Vec<Arc<Packet>> {
        self.links.get_mut(&peer).map_or_else(Vec::new, |link| link.originator.purge())
    }

    /// The station is switched off: it keeps its sequence numbers only, as others may have heard them. Returns all packets.
    pub fn switch_off(&mut self) -> Vec<Arc<Packet>> {
        self.recipients.clear();
        let options = self.options;
        let restart = |link: &mut Link| {
            let packets = link.originator.purge();
            *link = Link { originator: Originator::new(options, link.originator.next_sequence()), progress: None };
            packets
        };
        self.links.values_mut().flat_map(restart).collect()
    }
}

/// MPDUs with their places in the PSDU: each but the last is padded to whole words.
fn parts(mpdus: Vec<Mpdu<Arc<Packet>>>) -> Box<[Part]> {
    debug_assert!(mpdus.len() <= WINDOW);
    let mut offset = 0;
    let part = |mpdu: Mpdu<Arc<Packet>>| {
        let (bytes, at) = (mpdu.waiting.mpdu_bytes, offset);
        offset += (DELIMITER_BYTES + bytes).next_multiple_of(DELIMITER_BYTES);
        Part { packet: mpdu.waiting.packet, sequence: mpdu.sequence, attempt: mpdu.attempts, bytes, offset: at }
    };
    mpdus.into_iter().map(part).collect()
}
