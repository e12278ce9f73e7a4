//! Link hysteresis (RFC 3626, section 14): a link must prove itself before it is used, and is given up when too much is
//! lost on it. Packets are counted lost by gaps in the packet sequence number, and by HELLOs that do not come.

use crate::wire::Span;
use manet_engine::{Duration, Instant};

/// 18.7.
const THRESHOLD_HIGH: f64 = 0.8;
const THRESHOLD_LOW: f64 = 0.3;
const SCALING: f64 = 0.5;
/// A larger gap in the sequence numbers is a restart of the neighbour, not loss.
const MAX_GAP: u16 = 32;

#[derive(Clone, Debug)]
pub struct Quality {
    value: f64,
    pub pending: bool,
    expected: Option<u16>,
    interval: Duration,
    /// When silence counts as a lost packet.
    pub due: Instant,
}

impl Quality {
    /// Of a link just heard for the first time (14.1).
    pub fn new(now: Instant, sequence: u16, htime: Span) -> Self {
        let mut quality = Self {
            value: SCALING,
            pending: true,
            expected: Some(sequence.wrapping_add(1)),
            interval: Duration::ZERO,
            due: now,
        };
        quality.hello(now, htime);
        quality
    }

    /// A packet came. True: the link was established and is pending now.
    pub fn packet(&mut self, sequence: u16) -> bool {
        let gap = self.expected.map_or(0, |expected| sequence.wrapping_sub(expected));
        let was = self.pending;
        for _ in 0..if gap <= MAX_GAP { gap } else { 0 } {
            self.lower();
        }
        self.value = (1.0 - SCALING) * self.value + SCALING;
        if self.value > THRESHOLD_HIGH {
            self.pending = false;
        }
        self.expected = Some(sequence.wrapping_add(1));
        self.pending && !was
    }

    /// A HELLO came, which says when the next one will; half an interval more is patience with queues.
    pub fn hello(&mut self, now: Instant, htime: Span) {
        self.interval = Duration::from_nanos(htime.duration().as_nanos() / 2 * 3);
        self.due = now + self.interval;
    }

    /// The HELLO did not come in time. True: the link was established and is pending now.
    pub fn silence(&mut self, now: Instant) -> bool {
        let was = self.pending;
        self.lower();
        // the sequence number will show the same loss: count it once
        self.expected = None;
        self.due = now + self.interval;
        self.pending && !was
    }

    fn lower(&mut self) {
        self.value *= 1.0 - SCALING;
        if self.value < THRESHOLD_LOW {
            self.pending = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quality() -> Quality {
        Quality::new(Instant::ZERO, 10, Span::of(Duration::from_secs(2)))
    }

    #[test]
    fn a_link_is_established_by_its_third_packet() {
        // 0.5, 0.75, 0.875 > 0.8
        let mut q = quality();
        q.packet(11);
        assert!(q.pending);
        q.packet(12);
        assert!(!q.pending);
    }

    #[test]
    fn two_lost_packets_in_a_row_make_it_pending() {
        // 0.875 / 2 / 2 = 0.21875 < 0.3, and the packet that shows the gap lifts it to 0.609375 only
        let mut q = quality();
        q.packet(11);
        q.packet(12);
        assert!(q.packet(15));
        assert!(q.pending);
    }

    #[test]
    fn one_lost_packet_does_not() {
        // 0.875 / 2 = 0.4375
        let mut q = quality();
        q.packet(11);
        q.packet(12);
        assert!(!q.packet(14) && !q.pending);
    }

    #[test]
    fn silence_counts_once_even_if_the_numbers_show_it_too() {
        let mut q = quality();
        q.packet(11);
        q.packet(12);
        assert_eq!(q.due, Instant::ZERO + Duration::from_secs(3));
        assert!(!q.silence(q.due));
        assert!(!q.packet(14) && !q.pending);
    }

    #[test]
    fn a_restarted_neighbour_is_no_loss_and_the_numbers_wrap() {
        let mut q = quality();
        q.packet(11);
        q.packet(60_000);
        assert!(!q.pending);
        q.packet(u16::MAX);
        assert!(!q.packet(0) && !q.pending);
    }
}
