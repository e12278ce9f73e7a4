//! Channels and nodes of several radios.
//!
//! Radios of different channels neither receive nor sense each other; interference between adjacent channels is not modelled. A
//! radio is on the channel of the frame that it sent last: mac80211 names the frequency of each frame. So a radio that only listens
//! on another channel (a passive scan) hears nothing there. Frames of one radio for different channels are sent in the order in
//! which the kernel handed them over, as if it had waited for the earlier ones before it left their channel.
//!
//! A further radio of a node is a station of its own here, with its own MAC, queue and address; it moves with the node and has power
//! when the node has.

use super::Medium;
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
    pub(super) fn tune(&mut self, station: u16, freq_mhz: u32) {
        let s = &mut self.stations[station as usize];
        if s.freq_mhz == freq_mhz {
            return;
        }
        s.freq_mhz = freq_mhz;
        s.receiver.retune();
        self.neighbours.forget();
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
