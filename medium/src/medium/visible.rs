//! The earliest externally visible event of the air.
//!
//! A DCF exchange is a dozen events, of which the hosts see two: the end of the data frame (a packet is delivered, others overhear
//! it) and the end of the ACK (or of the sender's attempts). The bound is the minimum over the frames on the air and over the next
//! visible event of each station ([`crate::mac::dcf::visible`]); everything else that needs no packet from a host follows from these.

use super::Medium;
use crate::mac::dcf::visible::{after_cts, after_rts};
use crate::phy::FrameKind;
use manet_engine::{Duration, Instant};

impl Medium {
    /// Lower bound on the next visible event, not before `event`, the next instant at which anything happens.
    pub(super) fn visible_from(&self, event: Instant) -> Option<Instant> {
        let frames = self.airborne.iter().flatten().flat_map(|airborne| {
            let frame = &airborne.frame;
            let end = airborne.began + frame.airtime;
            let by_frame = match frame.kind {
                FrameKind::Data | FrameKind::Bcast | FrameKind::Ack => end,
                FrameKind::Cts => end + after_cts(&self.radio, frame.reserves, frame.ack_airtime),
                FrameKind::Rts => {
                    let data = frame.packet.as_ref().map(|p| p.shortest_airtime(&self.radio, FrameKind::Data));
                    end + after_rts(&self.radio, data.unwrap_or(Duration::ZERO))
                }
            };
            let by_sender = self.stations[frame.from as usize].dcf.visible_after_sending(end);
            [Some(by_frame), by_sender]
        });
        let stations = self.stations.iter().map(|s| s.dcf.visible_from(event));
        frames.chain(stations).flatten().min().map(|at| at.max(event))
    }
}
