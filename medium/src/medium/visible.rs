//! The earliest externally visible event of the air.
//!
//! A DCF exchange is a dozen events, of which the hosts see two: the end of the data frame (a packet is delivered, others overhear
//! it) and the end of the ACK (or of the sender's attempts). The bound is the minimum over the frames on the air and over the next
//! visible event of each station ([`crate::mac::dcf::visible`]); everything else that needs no packet from a host follows from these.

use super::Medium;
use crate::mac::dcf::visible::{after_cts, after_reservation, after_rts};
use crate::phy::FrameKind;
use manet_engine::{Duration, Instant};

/// The stations whose MAC has a packet or is in an exchange, one bit each. Only they can have a visible event without a packet from
/// a host or a frame of another station; a wake would ask all the others in vain.
pub(super) struct Engaged(Vec<u64>);

impl Engaged {
    pub(super) fn new(stations: usize) -> Self {
        Self(vec![0; stations.div_ceil(64)])
    }

    pub(super) fn set(&mut self, station: u16, engaged: bool) {
        let (word, bit) = (&mut self.0[usize::from(station / 64)], 1 << (station % 64));
        *word = if engaged { *word | bit } else { *word & !bit };
    }

    fn stations(&self) -> impl Iterator<Item = usize> + '_ {
        let bits_of = |word: u64| {
            std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1))).take_while(|left| *left != 0)
        };
        let all = (0..).step_by(64).zip(&self.0);
        all.flat_map(move |(first, word)| bits_of(*word).map(move |left| first + left.trailing_zeros() as usize))
    }
}

impl Medium {
    /// Lower bound on the next visible event, not before `event`, the next instant at which anything happens.
    pub(super) fn visible_from(&self, event: Instant) -> Option<Instant> {
        let frames = self.airborne.iter().flatten().flat_map(|airborne| {
            let frame = &airborne.frame;
            let end = airborne.began + frame.airtime;
            let by_frame = match frame.kind {
                FrameKind::Data | FrameKind::Bcast | FrameKind::Ack | FrameKind::Ba | FrameKind::Bar => end,
                FrameKind::Cts => end + after_cts(&self.radio, frame.reserves, frame.ack_airtime),
                FrameKind::Rts if self.stations[frame.from as usize].dcf.adapts() => {
                    end + after_reservation(&self.radio, frame)
                }
                FrameKind::Rts => {
                    let data = frame.packet.as_ref().map(|p| p.shortest_airtime(&self.radio, FrameKind::Data));
                    end + after_rts(&self.radio, data.unwrap_or(Duration::ZERO))
                }
            };
            let by_sender = self.stations[frame.from as usize].dcf.visible_after_sending(end);
            [Some(by_frame), by_sender]
        });
        let stations = self.engaged.stations().map(|s| self.stations[s].dcf.visible_from(event));
        frames.chain(stations).flatten().min().map(|at| at.max(event))
    }
}
