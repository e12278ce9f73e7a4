//! Channels and nodes of several radios.
//!
//! Radios of different channels never receive each other. With `adjacent_channels` each takes in the share of the other's power that
//! the masks let through ([`Spectrum`](crate::phy::spectrum::Spectrum)): it is interference, and carrier sense where it is above the energy
//! detection threshold; without it they do not notice each other. A radio is on the channel of the frame that it sent last: mac80211 names the frequency of each frame. So a radio that only listens
//! on another channel (a passive scan) hears nothing there. Frames of one radio for different channels are sent in the order in
//! which the kernel handed them over, as if it had waited for the earlier ones before it left their channel.
//!
//! A further radio of a node is a station of its own here, with its own MAC, queue and address; it moves with the node and has power
//! when the node has.

use super::Medium;
use crate::air::FrameId;
use crate::config::Loaded;
use crate::message::StationId;
use manet_engine::Instant;

/// The further radios of each station, by number.
pub(super) fn further_radios(loaded: &Loaded) -> Vec<Vec<u16>> {
    let nodes = loaded.nodes();
    let of = |station| (0..).zip(&nodes).filter(move |(_, node)| **node == Some(station)).map(|(radio, _)| radio);
    (0..nodes.len()).map(|station| of(station).collect()).collect()
}

impl Medium {
    /// Puts the radio of a station on a channel, before it sends there.
    pub(super) fn tune(&mut self, now: Instant, station: u16, freq_mhz: u32) {
        let s = &mut self.stations[station as usize];
        if s.freq_mhz == freq_mhz {
            return;
        }
        s.freq_mhz = freq_mhz;
        s.receiver.retune();
        self.neighbours.forget();
        self.jam_anew(now, station);
    }

    /// The factor on the power of a frame between two channels: 1 within one, 0 if they have nothing of each other.
    pub(super) fn share(&self, from_mhz: u32, to_mhz: u32) -> f64 {
        if from_mhz == to_mhz {
            return 1.0;
        }
        self.spectrum.as_ref().map_or(0.0, |spectrum| spectrum.share(from_mhz.abs_diff(to_mhz)))
    }

    /// Something that no radio of its channel decodes there, as of [`Receiver::interfere`](crate::air::Receiver::interfere), at a station.
    pub(super) fn interfere(&mut self, now: Instant, station: u16, id: FrameId, from: u16, power_w: f64) {
        let s = &mut self.stations[usize::from(station)];
        if let Some(spoilt) = s.receiver.interfere(now.as_nanos(), id, from, power_w) {
            self.spoil_by(spoilt, station, |medium| medium.interference_fate(spoilt, id));
        }
        let s = &mut self.stations[usize::from(station)];
        let touched = if s.receiver.senses() { s.dcf.medium_busy(now) } else { s.dcf.medium_idle(now) };
        self.note_state(now, station);
        if touched {
            self.after(now, station);
        }
    }

    /// Whether a frame for this channel follows one for another.
    pub(super) fn leaves_channel(&mut self, station: StationId, freq_mhz: u32) -> bool {
        let last = &mut self.stations[usize::from(station.0)].last_freq_mhz;
        std::mem::replace(last, freq_mhz) != freq_mhz
    }

    /// Switches all radios of a node.
    pub(super) fn set_power_of_node(&mut self, now: Instant, station: StationId, on: bool) {
        self.set_power(now, station, on);
        for radio in self.further[usize::from(station.0)].clone() {
            self.set_power(now, StationId(radio), on);
        }
    }
}
