//! The time of each radio in its states, for its energy: rows of `radio-time.csv` (formats/air.md).
//!
//! The air log has every frame, but not which of the other radios locked on to it or sensed it: that depends on the powers at each. So the
//! receivers are asked at each change. Frames and interference alone change a state, so that the times are exact; they are kept for each
//! period of [`PERIOD`], since a measurement is over a part of a run.

use manet_engine::{Duration, Instant};

/// Length of a row.
pub const PERIOD: Duration = Duration::from_secs(1);

/// Head of `radio-time.csv`.
pub const CSV_HEADER: &str = "t_ns,station,transmit_ns,receive_ns,sense_ns,idle_ns,off_ns";

/// State of a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioState {
    /// It sends.
    Transmit,
    /// It is locked on to a frame, whether or not it is the receiver, and whether or not the frame is lost later.
    Receive,
    /// It senses the medium busy and is locked on to no frame. NAV is no state of a radio.
    Sense,
    /// None of these.
    Idle,
    /// It has no power.
    Off,
}

/// Number of states.
const STATES: usize = 5;

/// One radio.
#[derive(Clone, Debug)]
struct Clock {
    state: RadioState,
    since: Instant,
    /// Of each period up to now, ns in each state: a period has fewer than 2^32.
    periods: Vec<[u32; STATES]>,
}

/// All radios of a run; each is idle at first.
#[derive(Clone, Debug)]
pub struct RadioTimes(Vec<Clock>);

impl RadioTimes {
    /// So many radios at model time 0.
    pub fn new(stations: usize) -> Self {
        Self(vec![Clock { state: RadioState::Idle, since: Instant::ZERO, periods: Vec::new() }; stations])
    }

    /// The radio of a station is in `state` from now on.
    pub fn enter(&mut self, now: Instant, station: u16, state: RadioState) {
        let clock = &mut self.0[usize::from(station)];
        if clock.state != state {
            clock.count(now);
            clock.state = state;
        }
    }

    /// The lines of the file up to `end`, head included: of each period one for each station, in the order of `names`.
    pub fn csv(mut self, end: Instant, names: &[&str]) -> String {
        use std::fmt::Write;
        self.0.iter_mut().for_each(|clock| clock.count(end));
        let mut text = format!("{CSV_HEADER}\n");
        let periods = self.0.iter().map(|clock| clock.periods.len()).max().unwrap_or(0);
        for period in 0..periods {
            let until_ns = ((period as u64 + 1) * PERIOD.as_nanos()).min(end.as_nanos());
            for (clock, name) in self.0.iter().zip(names) {
                let [transmit, receive, sense, idle, off] = clock.periods[period];
                // writing to a String cannot fail
                let _ = writeln!(text, "{until_ns},{name},{transmit},{receive},{sense},{idle},{off}");
            }
        }
        text
    }
}

impl Clock {
    /// Adds the time since the last call to the present state.
    fn count(&mut self, now: Instant) {
        let (mut from_ns, now_ns) = (self.since.as_nanos(), now.as_nanos());
        while from_ns < now_ns {
            let period = from_ns / PERIOD.as_nanos();
            let until_ns = now_ns.min((period + 1) * PERIOD.as_nanos());
            if self.periods.len() as u64 == period {
                self.periods.push([0; STATES]);
            }
            self.periods[period as usize][self.state as usize] += (until_ns - from_ns) as u32;
            from_ns = until_ns;
        }
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_lasts_over_periods_counts_in_each() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut times = RadioTimes::new(2);
        times.enter(at(100), 1, RadioState::Receive);
        times.enter(at(400), 1, RadioState::Transmit);
        times.enter(at(400), 1, RadioState::Sense);
        times.enter(at(2300), 1, RadioState::Off);
        let expected = "\
            1000000000,sta1,0,0,0,1000000000,0\n\
            1000000000,sta2,0,300000000,600000000,100000000,0\n\
            2000000000,sta1,0,0,0,1000000000,0\n\
            2000000000,sta2,0,0,1000000000,0,0\n\
            2500000000,sta1,0,0,0,500000000,0\n\
            2500000000,sta2,0,0,300000000,0,200000000\n";
        assert_eq!(times.csv(at(2500), &["sta1", "sta2"]), format!("{CSV_HEADER}\n{expected}"));
    }
}
