//! Link hysteresis (RFC 3626, section 14): a link is used when its quality is high, and no longer when it is low. Losses
//! are counted by gaps in the packet sequence number and by missing HELLOs.

use crate::wire::Span;
use manet_engine::{Duration, Instant};

/// HYST_THRESHOLD_HIGH; this and the next two are from 18.7.
const THRESHOLD_HIGH: f64 = 0.8;
const THRESHOLD_LOW: f64 = 0.3;
const SCALING: f64 = 0.5;
/// A larger gap in the sequence numbers is a restart of the neighbour, not loss.
const MAX_GAP: u16 = 32;

/// The quality of a link.
#[derive(Clone, Debug)]
pub struct Quality {
    value: f64,
    /// L_link_pending: the link is not established.
    pub pending: bool,
    expected: Option<u16>,
    interval: Duration,
    /// Time at which a missing HELLO counts as a lost packet.
    pub due: Instant,
}

impl Quality {
    /// The quality of a new link (14.1). `sequence`: of its first packet; `htime`: HELLO interval.
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

    /// Counts a received packet. True: the link was established and is pending now.
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

    /// Handles a HELLO, which states the time to the next one; half an interval more allows for queueing.
    pub fn hello(&mut self, now: Instant, htime: Span) {
        self.interval = Duration::from_nanos(htime.duration().as_nanos() / 2 * 3);
        self.due = now + self.interval;
    }

    /// Counts a missing HELLO. True: the link was established and is pending now.
    pub fn silence(&mut self, now: Instant) -> bool {
        let was = self.pending;
        self.lower();
        // the sequence number shows the same loss again: count it once
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
        // 0.875 / 2 / 2 = 0.21875 < 0.3, and the packet that shows the gap raises it only to 0.609375
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
