//! The trigger meter and its adaptive threshold: the events since the last update decide on the next one.

use crate::options::Options;
use crate::wire::Response;
use manet_engine::{Duration, Instant};

/// Kind of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The own entry, changed entries and broken ones.
    Partial,
    /// All receivers.
    Full,
}

/// The meter of a node.
#[derive(Clone, Debug)]
pub struct Meter {
    high: f64,
    medium: f64,
    low: f64,
    full: f64,
    min_interval: Duration,
    value: f64,
    threshold: f64,
    /// Partial updates since the last full one, and the sum of the meter at each.
    partials: u64,
    partials_sum: f64,
    last_full_at: Instant,
}

impl Meter {
    /// The threshold starts at `trigger_high`.
    pub fn new(options: &Options) -> Self {
        Self {
            high: options.trigger_high,
            medium: options.trigger_medium,
            low: options.trigger_low,
            full: options.trigger_full,
            min_interval: options.min_interval,
            value: 0.0,
            threshold: options.trigger_high,
            partials: 0,
            partials_sum: 0.0,
            last_full_at: Instant::ZERO,
        }
    }

    /// A neighbour expects this response.
    pub fn expected(&mut self, response: Response) {
        self.value += match response {
            Response::None => 0.0,
            Response::Low => self.low,
            Response::Medium => self.medium,
            Response::High => self.high,
        };
    }

    /// A packet waits for a route, or came back.
    pub fn packet(&mut self) {
        self.value += self.medium;
    }

    /// A request that must be answered, whatever the threshold.
    pub fn demand(&mut self) {
        self.value = self.value.max(self.threshold);
    }

    /// The update that is due, if any.
    pub fn due(&self) -> Option<Kind> {
        if self.value > self.full {
            Some(Kind::Full)
        } else {
            (self.value > 0.0 && self.value >= self.threshold).then_some(Kind::Partial)
        }
    }

    /// Records an update. `active`: the node is a receiver or forwards packets to one.
    pub fn sent(&mut self, now: Instant, kind: Kind, active: bool) {
        match kind {
            Kind::Partial => {
                self.partials += 1;
                self.partials_sum += self.value;
            }
            Kind::Full => {
                self.threshold = self.adapted(now, active).max(self.low);
                (self.partials, self.partials_sum, self.last_full_at) = (0, 0.0, now);
            }
        }
        self.value = 0.0;
    }

    fn adapted(&self, now: Instant, active: bool) -> f64 {
        let possible = now.since(self.last_full_at).as_secs_f64() / self.min_interval.as_secs_f64();
        if !active || self.partials == 0 {
            self.high
        } else if (self.partials as f64) < possible / 4.0 {
            self.threshold / 2.0
        } else {
            (self.threshold + self.partials_sum / self.partials as f64) / 2.0
        }
    }

    /// Present value.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Present threshold of a partial update.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    fn meter() -> Meter {
        Meter::new(&Options::default())
    }

    fn after(mut meter: Meter, packets: usize) -> Option<Kind> {
        (0..packets).for_each(|_| meter.packet());
        meter.due()
    }

    #[test]
    fn events_add_up_to_a_partial_and_then_to_a_full_update() {
        // 2 x 8 < 20 <= 3 x 8; 6 x 8 <= 50 < 7 x 8
        assert_eq!(
            [2, 3, 6, 7].map(|n| after(meter(), n)),
            [None, Some(Kind::Partial), Some(Kind::Partial), Some(Kind::Full)]
        );
        let mut meter = meter();
        for response in [Response::Low, Response::Medium, Response::None] {
            meter.expected(response);
        }
        assert_eq!((meter.value(), meter.due()), (13.0, None));
        meter.expected(Response::High);
        assert_eq!((meter.value(), meter.due()), (33.0, Some(Kind::Partial)));
        meter.sent(at(1.0), Kind::Partial, true);
        assert_eq!((meter.value(), meter.due()), (0.0, None));
    }

    #[test]
    fn one_request_alone_is_answered() {
        let mut meter = meter();
        meter.expected(Response::High);
        assert_eq!(meter.due(), Some(Kind::Partial));
    }

    #[test]
    fn few_partial_updates_halve_the_threshold_down_to_low() {
        let mut meter = meter();
        let mut thresholds = Vec::new();
        for i in 1..=4 {
            // one partial update in 10 s, 20 were possible
            meter.demand();
            meter.sent(at(10.0 * f64::from(i) - 5.0), Kind::Partial, true);
            meter.sent(at(10.0 * f64::from(i)), Kind::Full, true);
            thresholds.push(meter.threshold());
        }
        assert_eq!(thresholds, [10.0, 5.0, 5.0, 5.0]);
    }

    #[test]
    fn many_partial_updates_move_the_threshold_to_their_average() {
        let mut meter = meter();
        for packets in [3, 5] {
            (0..packets).for_each(|_| meter.packet());
            meter.sent(at(1.0), Kind::Partial, true);
        }
        // 2 of 4 possible; (24 + 40) / 2 = 32; (20 + 32) / 2
        meter.sent(at(2.0), Kind::Full, true);
        assert_eq!(meter.threshold(), 26.0);
        // none since then
        meter.sent(at(4.0), Kind::Full, true);
        assert_eq!(meter.threshold(), 20.0);
    }

    #[test]
    fn an_inactive_node_keeps_the_high_threshold() {
        let mut meter = meter();
        meter.demand();
        meter.sent(at(5.0), Kind::Partial, false);
        meter.sent(at(10.0), Kind::Full, false);
        assert_eq!(meter.threshold(), 20.0);
    }
}
