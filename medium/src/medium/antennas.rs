//! Power and antennas of the stations during a run. A change applies to the frames that begin from then on; the power of a frame on
//! the air stays that of its start.

use super::Medium;
use crate::message::StationId;
use crate::phy::antenna::{Antenna, Change};

impl Medium {
    /// The power and the antenna of a station.
    pub fn antenna(&self, station: StationId) -> Antenna {
        self.propagation.antenna(station.0.into())
    }

    pub(super) fn change_antenna(&mut self, station: StationId, change: &Change) {
        let changed = self.antenna(station).with(change);
        self.propagation.set_antenna(station.0.into(), changed);
        self.neighbours.forget();
    }
}
