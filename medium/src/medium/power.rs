//! A station's radio switched off and on again.
//!
//! Off, it neither sends nor answers nor hears: who sends to it finds it out of range, retries and gives up, which is link
//! feedback as ever. What was queued is dropped (`off`), and so is what its host still hands over. A frame it was
//! sending is cut short: nobody decodes it, though its power stays on the air until its planned end. On again, it has forgotten NAV,
//! backoff, retry counters and neighbours' sequence numbers, goes on counting its own, and hears what begins from then on.

use super::Medium;
use crate::air::Receiver;
use crate::mac::Dest;
use crate::message::StationId;
use crate::record::{DropReason, Fate};
use manet_engine::Instant;

impl Medium {
    pub fn is_on(&self, station: StationId) -> bool {
        self.stations[station.0 as usize].on
    }

    pub(super) fn set_power(&mut self, now: Instant, station: StationId, on: bool) {
        let s = &mut self.stations[station.0 as usize];
        if s.on == on {
            return;
        }
        s.on = on;
        self.neighbourhoods.fill(None);
        if on {
            return;
        }
        self.wakes.set(station.0, None);
        let s = &mut self.stations[station.0 as usize];
        s.receiver = Receiver::new(s.receiver.rule(), &self.radio);
        for packet in s.dcf.switch_off(now) {
            self.drop_packet(now, station.0, &packet, DropReason::Off);
        }
        for airborne in self.airborne.iter_mut().flatten().filter(|a| a.frame.from == station.0) {
            airborne.cut = true;
            if airborne.frame.dest != Dest::Broadcast {
                airborne.fate.get_or_insert(Fate::Weak);
            }
        }
    }
}
