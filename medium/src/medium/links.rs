//! Links: the mean power between two stations, fading, and losses by measured delivery rates.
//!
//! The mean power follows from positions and antennas, under the propagation model trace from time. Fading multiplies it, by a factor
//! for each link, or one for each frame and station (`fading_db`). `links` of the control socket and ranges are without both.

use super::Medium;
use crate::config::Loaded;
use crate::mac::Frame;
use crate::phy::propagation::Model;
use crate::phy::Measured;
use crate::trace::Position;
use manet_engine::{Instant, Stream};
use std::sync::Arc;

/// The links of the propagation model trace; none without a file, for all others `None`.
pub(super) fn links_over_time(loaded: &Loaded) -> Option<Arc<Measured>> {
    let is_trace = matches!(loaded.config.propagation, Model::Trace { .. });
    let none = || Arc::new(Measured::none(loaded.config.stations.len()));
    is_trace.then(|| loaded.measured.clone().unwrap_or_else(none))
}

impl Medium {
    /// Power in W at `to` of a frame of `from`, without fading; each with its position.
    pub(super) fn power_between_w(&self, from: (u16, Position), to: (u16, Position), now: Instant) -> f64 {
        let power_w = self.propagation.power_w(from.0.into(), to.0.into(), from.1, to.1);
        self.measured.as_ref().map_or(power_w, |links| power_w * links.gain(from.0, to.0, now))
    }

    /// Draws the fading of a frame of `from` at every station: as in wmediumd (`get_fading_signal`), independent of earlier frames.
    pub(super) fn fade(&mut self, from: u16) {
        if self.fading_db > 0.0 {
            let (n, fading) = (self.stations.len(), &mut self.stations[from as usize].fading);
            self.fades.clear();
            self.fades.extend((0..n).map(|_| 10f64.powf(fading.normal() * self.fading_db / 10.0)));
        }
    }

    /// The factor on the power at station `to` of the frame of `from` that begins now.
    pub(super) fn faded(&self, from: u16, to: u16, now: Instant) -> f64 {
        if !self.fader.is_on() {
            return self.drawn(to);
        }
        let place = |station: u16| self.stations[usize::from(station)].trajectory.at(now);
        self.faded_between((from, place(from)), (to, place(to)), now)
    }

    /// The same, with the stations' positions.
    pub(super) fn faded_between(&self, from: (u16, Position), to: (u16, Position), now: Instant) -> f64 {
        if self.fader.is_on() {
            self.drawn(to.0) * self.fader.gain(from, to, now)
        } else {
            self.drawn(to.0)
        }
    }

    /// The factor of `fading_db` at station `to` on the frame that begins now.
    fn drawn(&self, to: u16) -> f64 {
        self.fades.get(usize::from(to)).copied().unwrap_or(1.0)
    }

    /// The probability that a data frame at the profile's rate is lost by an error of the link.
    pub(super) fn error_rate(&self, from: u16, to: u16, now: Instant) -> f64 {
        let rate = self.error_rates.rate(from, to);
        let delivery = |links: &Arc<Measured>| links.delivery(from, to, self.radio.data_rate_bps, now);
        self.measured.as_ref().map_or(rate, |links| 1.0 - (1.0 - rate) * delivery(links))
    }
}

/// Whether a frame that was received at `at`, or an MPDU of it, is delivered by the measured rate of its link. Draws only for a rate
/// between 0 and 1.
pub(super) fn delivers(
    links: &Option<Arc<Measured>>,
    frame: &Frame,
    at: u16,
    now: Instant,
    draws: &mut Stream,
) -> bool {
    links.as_ref().is_none_or(|links| draws.chance(links.delivery(frame.from, at, frame.mode.rate_bps(), now)))
}

/// Those of these MPDUs of an A-MPDU, a bit each, that are delivered so.
pub(super) fn delivered(
    links: &Option<Arc<Measured>>,
    frame: &Frame,
    mpdus: u64,
    at: u16,
    now: Instant,
    draws: &mut Stream,
) -> u64 {
    if links.is_none() {
        return mpdus;
    }
    let each = (0..frame.aggregate().len()).map(|n| 1 << n).filter(|mpdu| mpdus & mpdu != 0);
    each.filter(|_| delivers(links, frame, at, now, draws)).sum()
}
