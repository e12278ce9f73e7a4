//! Rate limits over a sliding second (RREQ_RATELIMIT and RERR_RATELIMIT, RFC 3561, 6.3 and 6.11).

use manet_engine::{Duration, Instant};
use std::collections::VecDeque;

/// The times of the messages of the last second.
#[derive(Clone, Debug)]
pub struct Limit {
    per_second: usize,
    sent: VecDeque<Instant>,
}

impl Limit {
    /// `per_second`: maximum number of messages in any second, at least 1.
    pub fn new(per_second: u32) -> Self {
        Self { per_second: per_second as usize, sent: VecDeque::new() }
    }

    /// Counts a message at `now`, or returns the time at which the next one is allowed.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let second = Duration::from_secs(1);
        while self.sent.front().is_some_and(|at| *at + second <= now) {
            self.sent.pop_front();
        }
        if self.sent.len() >= self.per_second {
            return Err(self.sent.front().map_or(now + second, |at| *at + second));
        }
        self.sent.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_any_second() {
        let mut limit = Limit::new(10);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        for i in 0..10 {
            assert_eq!(limit.take(at(i * 50)), Ok(()));
        }
        assert_eq!(limit.take(at(999)), Err(at(1000)));
        assert_eq!(limit.take(at(1000)), Ok(()));
        assert_eq!(limit.take(at(1001)), Err(at(1050)));
    }
}
