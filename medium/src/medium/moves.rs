//! Stations moved while the run lasts: at once, along ways that are given ahead of their time, or halted.
//!
//! What is given becomes legs of the stations' trajectories, so that a position stays an exact function of time, and the
//! trajectories stay the whole truth of where everybody was: `moved.csv` is written from them (formats/results.md).

use super::Medium;
use crate::message::{StationId, Way};
use crate::trace::Trajectory;
use manet_engine::Instant;

impl Medium {
    /// A leg that should have begun already begins now.
    pub(super) fn follow(&mut self, now: Instant, legs: &[Way]) {
        for leg in legs {
            let way = &mut self.stations[leg.station.0 as usize].trajectory;
            way.move_to(leg.at.max(now), leg.to, leg.speed_mps);
        }
        self.places_changed(now);
    }

    /// All stations, at `at` or at once if that has passed.
    pub(super) fn halt(&mut self, now: Instant, at: Instant) {
        for station in &mut self.stations {
            station.trajectory.halt(at.max(now));
        }
        self.places_changed(now);
    }

    fn places_changed(&mut self, now: Instant) {
        self.moved = true;
        self.still_from = self.stations.iter().map(|s| s.trajectory.moving_until()).max().unwrap_or(now).max(now);
        self.neighbourhoods.fill(None);
    }

    /// Was any station moved otherwise than by the trace?
    pub fn moved(&self) -> bool {
        self.moved
    }

    pub fn trajectory(&self, station: StationId) -> &Trajectory {
        &self.stations[station.0 as usize].trajectory
    }
}
