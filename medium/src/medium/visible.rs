//! The earliest instant at which the air could let anything be seen outside.
//!
//! A DCF exchange is a dozen events, of which the hosts see two: the end of the data (a packet is delivered, others overhear it) and
//! the end of the ACK (or the sender's giving up). The bound is the least over the frames on the air and over what each station is
//! about ([`crate::mac::dcf::visible`]); everything that happens without a packet from a host follows from these.

use super::Medium;
use crate::mac::dcf::visible::{after_cts, after_rts};
use crate::phy::FrameKind;
use manet_engine::{Duration, Instant};

impl Medium {
    /// `event`: the next instant at which anything happens. Never before it.
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
