//! Power of a station's radio.
//!
//! A radio that is off neither sends nor receives nor answers. A station that sends to it finds it out of range, retries and gives
//! up, with the usual link feedback. Its queued packets are dropped (`off`), like the packets that its host still hands over and the
//! MPDUs that it has acknowledged and that wait for an earlier one. A frame that it was sending is cut short: no station decodes it,
//! although its power stays on the air until the planned end. A radio that is switched on has lost NAV, backoff, retry counters and
//! the neighbours' sequence numbers, continues its own numbers, and receives the frames that begin from then on.

use super::Medium;
use crate::air::Receiver;
use crate::fate::{DropReason, Fate};
use crate::mac::Dest;
use crate::message::StationId;
use crate::phy::FrameKind;
use manet_engine::Instant;

impl Medium {
    /// Whether the radio of a station has power.
    pub fn is_on(&self, station: StationId) -> bool {
        self.stations[station.0 as usize].on
    }

    pub(super) fn set_power(&mut self, now: Instant, station: StationId, on: bool) {
        let s = &mut self.stations[station.0 as usize];
        if s.on == on {
            return;
        }
        s.on = on;
        self.neighbours.forget();
        if on {
            self.jam_anew(now, station.0);
            let s = &mut self.stations[station.0 as usize];
            if s.receiver.senses() && s.dcf.medium_busy(now) {
                self.after(now, station.0);
            }
            self.note_state(now, station.0);
            return;
        }
        self.wakes.set(station.0, None);
        self.drop_stored(now, station.0, DropReason::Off);
        let s = &mut self.stations[station.0 as usize];
        s.receiver = Receiver::new(s.receiver.rule(), &self.radio);
        let left = s.dcf.switch_off(now);
        self.note_state(now, station.0);
        for packet in left {
            self.drop_packet(now, station.0, &packet, DropReason::Off);
        }
        for airborne in self.airborne.iter_mut().flatten().filter(|a| a.frame.from == station.0) {
            airborne.cut = true;
            if airborne.frame.dest != Dest::Broadcast {
                airborne.fate.get_or_insert(Fate::Weak);
            }
        }
        self.report_nav(now, station.0);
        // agreements with it end; what waited there for a lost MPDU is delivered
        if self.radio.aggregation_limits().is_some() {
            for other in (0..self.stations.len() as u16).filter(|other| *other != station.0) {
                self.stations[usize::from(other)].dcf.peer_is_off(station.0);
                self.log_deliveries(now, other, station.0, FrameKind::Data, 0.0);
                self.after(now, other);
            }
        }
    }
}
