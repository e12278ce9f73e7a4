//! Movements requested during the run: now, as legs in the future, or a halt.
//!
//! Requests become legs of the stations' trajectories, so that a position stays an exact function of time and the
//! trajectories stay the complete record of the movement: `moved.csv` is written from them (formats/results.md).

use super::neighbours::Neighbours;
use super::Medium;
use crate::message::{Leg, StationId};
use crate::trace::Trajectory;
use manet_engine::Instant;

impl Medium {
    /// Adds legs; a leg in the past begins now.
    pub(super) fn follow(&mut self, now: Instant, legs: &[Leg]) {
        for leg in legs {
            let node = leg.station.0;
            for radio in std::iter::once(&node).chain(&self.further[usize::from(node)]) {
                let trajectory = &mut self.stations[usize::from(*radio)].trajectory;
                trajectory.move_to(leg.at.max(now), leg.to, leg.speed_mps);
            }
        }
        self.places_changed(now);
    }

    /// Stops all stations at `at`, or now if that is in the past.
    pub(super) fn halt(&mut self, now: Instant, at: Instant) {
        for station in &mut self.stations {
            station.trajectory.halt(at.max(now));
        }
        self.places_changed(now);
    }

    fn places_changed(&mut self, now: Instant) {
        self.moved = true;
        let still_from = self.stations.iter().map(|s| s.trajectory.moving_until()).max().unwrap_or(now);
        self.neighbours = Neighbours::new(self.stations.len(), still_from.max(now));
    }

    /// Whether a request moved any station.
    pub fn moved(&self) -> bool {
        self.moved
    }

    /// The movement of a station: trace and requests.
    pub fn trajectory(&self, station: StationId) -> &Trajectory {
        &self.stations[station.0 as usize].trajectory
    }
}
