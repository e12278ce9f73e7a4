//! Wired links: full duplex, each direction a drop-tail queue, a rate and a delay. One machine for all of them, without I/O.
//!
//! A frame counts as the TAP carries it (14-byte header and payload; no preamble, FCS or gap), the queue holds the frames
//! that wait behind the one being sent, and a frame arrives `delay` after its last bit was sent. This is ns-2's duplex link.
//! A link with a station that is switched off carries nothing: frames queued or in flight are lost. A stalled link sends
//! nothing, as an uplink whose modem retrains: its frames wait in the queues, and its carrier stays.
//! Not modelled: errors, autonegotiation, pause frames.

use manet_engine::{Duration, Instant, Machine};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// An end of a link: link `i` has the ends `2 i` and `2 i + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EndId(pub u16);

impl EndId {
    /// The other end of the same link.
    pub fn other(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// Settings of both directions of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// Rate, bit/s, above 0.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Duration,
    /// Frames that may wait behind the one being sent.
    pub queue_packets: usize,
}

/// A frame from the host at `end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// The end that sends.
    pub end: EndId,
    /// Ethernet frame without FCS.
    #[serde(with = "crate::logged_frame")]
    pub frame: Vec<u8>,
}

/// A frame for the host at `end`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrived {
    /// The end that receives.
    pub end: EndId,
    /// Ethernet frame without FCS.
    pub frame: Vec<u8>,
}

/// Counters of one direction, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Delivered to the host at the other end.
    pub delivered: u64,
    /// Dropped by a full queue.
    pub queue_full: u64,
    /// Lost because an end was switched off.
    pub off: u64,
}

#[derive(Clone, Debug)]
struct Direction {
    settings: LinkSettings,
    to: EndId,
    queue: VecDeque<Vec<u8>>,
    sending: Option<(Instant, Vec<u8>)>,
    in_flight: VecDeque<(Instant, Vec<u8>)>,
    up: bool,
    stalled: bool,
    counters: Counters,
}

impl Direction {
    fn next_timeout(&self) -> Option<Instant> {
        let sent = self.sending.as_ref().map(|(at, _)| *at);
        let arrives = self.in_flight.front().map(|(at, _)| *at);
        [sent, arrives].into_iter().flatten().min()
    }

    fn accept(&mut self, now: Instant, frame: Vec<u8>) {
        if !self.up {
            self.counters.off += 1;
        } else if self.sending.is_none() && !self.stalled {
            self.send(now, frame);
        } else if self.queue.len() < self.settings.queue_packets {
            self.queue.push_back(frame);
        } else {
            self.counters.queue_full += 1;
        }
    }

    fn send(&mut self, now: Instant, frame: Vec<u8>) {
        let airtime = Duration::of_bits(frame.len() as u64 * 8, self.settings.rate_bps);
        // even an empty frame takes a nanosecond, or the deadline would remain
        self.sending = Some((now + airtime.max(Duration::from_nanos(1)), frame));
    }

    /// A frame that was being sent is sent anew after the stall.
    fn stall(&mut self, now: Instant, stalled: bool) {
        if let Some((_, frame)) = self.sending.take_if(|_| stalled) {
            self.queue.push_front(frame);
        }
        self.stalled = stalled;
        if self.sending.is_none() && !stalled {
            if let Some(next) = self.queue.pop_front() {
                self.send(now, next);
            }
        }
    }

    fn advance(&mut self, now: Instant, out: &mut VecDeque<Arrived>) {
        while let Some((done, frame)) = self.sending.take_if(|(done, _)| *done <= now) {
            self.in_flight.push_back((done + self.settings.delay, frame));
            if let Some(next) = self.queue.pop_front() {
                self.send(done, next);
            }
        }
        while self.in_flight.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, frame)) = self.in_flight.pop_front() {
                self.counters.delivered += 1;
                out.push_back(Arrived { end: self.to, frame });
            }
        }
    }
}

/// All wired links.
#[derive(Clone, Debug, Default)]
pub struct Wires {
    /// Indexed by the end that sends.
    directions: Vec<Direction>,
    out: VecDeque<Arrived>,
}

impl Wires {
    /// Links with these settings; link `i` has the ends `2 i` and `2 i + 1`.
    pub fn new(links: &[LinkSettings]) -> Self {
        let direction = |i: usize, settings: LinkSettings| Direction {
            settings,
            to: EndId(i as u16).other(),
            queue: VecDeque::new(),
            sending: None,
            in_flight: VecDeque::new(),
            up: true,
            stalled: false,
            counters: Counters::default(),
        };
        let ends = links.iter().flat_map(|l| [*l, *l]).enumerate();
        Self { directions: ends.map(|(i, l)| direction(i, l)).collect(), out: VecDeque::new() }
    }

    /// Switches both directions of the link of `end` on or off; off, they drop all frames.
    pub fn set_up(&mut self, now: Instant, end: EndId, up: bool) {
        self.handle_timeout(now);
        for end in [end, end.other()] {
            let direction = &mut self.directions[usize::from(end.0)];
            direction.up = up;
            if !up {
                let lost = direction.queue.len() + direction.in_flight.len() + usize::from(direction.sending.is_some());
                direction.counters.off += lost as u64;
                direction.queue.clear();
                direction.in_flight.clear();
                direction.sending = None;
            }
        }
    }

    /// Stalls both directions of the link of `end`, or lets them go on.
    pub fn set_stalled(&mut self, now: Instant, end: EndId, stalled: bool) {
        self.handle_timeout(now);
        for end in [end, end.other()] {
            self.directions[usize::from(end.0)].stall(now, stalled);
        }
    }

    /// Counters of the direction that leaves `end`.
    pub fn counters(&self, end: EndId) -> Counters {
        self.directions[usize::from(end.0)].counters
    }
}

impl Machine for Wires {
    type Input = Sent;
    type Output = Arrived;

    fn handle(&mut self, now: Instant, input: Sent) {
        self.directions[usize::from(input.end.0)].accept(now, input.frame);
    }
    fn handle_timeout(&mut self, now: Instant) {
        for direction in &mut self.directions {
            direction.advance(now, &mut self.out);
        }
    }
    fn poll_output(&mut self) -> Option<Arrived> {
        self.out.pop_front()
    }
    fn next_timeout(&self) -> Option<Instant> {
        self.directions.iter().filter_map(Direction::next_timeout).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_engine::Timeline;

    const SETTINGS: LinkSettings =
        LinkSettings { rate_bps: 1_000_000, delay: Duration::from_millis(2), queue_packets: 2 };

    fn line() -> Timeline<Wires> {
        Timeline::new(Wires::new(&[SETTINGS, SETTINGS]))
    }

    fn run(line: &mut Timeline<Wires>, sent: &[(u64, u16, usize)]) -> Vec<(u64, u16, usize)> {
        let mut heard = Vec::new();
        let mut sink = |at: Instant, a: Arrived| heard.push((at.as_nanos() / 1000, a.end.0, a.frame.len()));
        for &(at_us, end, bytes) in sent {
            let input = Sent { end: EndId(end), frame: vec![0; bytes] };
            line.input(Instant::from_nanos(at_us * 1000), input, &mut sink);
        }
        line.run_until(Instant::from_nanos(1_000_000_000), &mut sink);
        heard
    }

    #[test]
    fn a_frame_takes_its_bits_and_the_delay() {
        // 125 bytes = 1000 bits at 1 Mbit/s = 1000 us; with 2000 us of delay
        assert_eq!(run(&mut line(), &[(0, 0, 125)]), [(3000, 1, 125)]);
    }

    #[test]
    fn frames_queue_behind_each_other_and_the_last_is_dropped() {
        let mut line = line();
        let heard = run(&mut line, &[(0, 2, 125), (0, 2, 250), (0, 2, 125), (0, 2, 999)]);
        assert_eq!(heard, [(3000, 3, 125), (5000, 3, 250), (6000, 3, 125)]);
        assert_eq!(line.machine().counters(EndId(2)), Counters { delivered: 3, queue_full: 1, off: 0 });
    }

    #[test]
    fn a_link_that_is_down_carries_nothing_and_loses_its_frames() {
        let mut line = line();
        let mut heard = Vec::new();
        let mut sink = |_: Instant, a: Arrived| heard.push(a.frame.len());
        let at = |us: u64| Instant::from_nanos(us * 1000);
        // sent at 0 and 1000 us and waiting: at 1500 us one is in flight, one is being sent
        line.input(at(0), Sent { end: EndId(0), frame: vec![0; 125] }, &mut sink);
        line.input(at(0), Sent { end: EndId(0), frame: vec![0; 125] }, &mut sink);
        line.run_until(at(1500), &mut sink);
        line.machine_mut().set_up(at(1500), EndId(1), false);
        line.input(at(1600), Sent { end: EndId(0), frame: vec![0; 125] }, &mut sink);
        line.input(at(1600), Sent { end: EndId(2), frame: vec![0; 60] }, &mut sink);
        line.run_until(at(20_000), &mut sink);
        line.machine_mut().set_up(at(20_000), EndId(0), true);
        line.input(at(21_000), Sent { end: EndId(1), frame: vec![0; 70] }, &mut sink);
        line.run_until(at(40_000), &mut sink);
        assert_eq!(heard, [60, 70], "the other link is not touched, and this one works again");
        assert_eq!(line.machine().counters(EndId(0)), Counters { delivered: 0, queue_full: 0, off: 3 });
    }

    #[test]
    fn the_frames_of_a_stalled_link_wait_and_those_beyond_its_queue_are_dropped() {
        let mut line = line();
        let mut heard = Vec::new();
        let mut sink = |at: Instant, a: Arrived| heard.push((at.as_nanos() / 1000, a.frame.len()));
        let at = |us: u64| Instant::from_nanos(us * 1000);
        let frame = |bytes| Sent { end: EndId(0), frame: vec![0; bytes] };
        // 1000 us each: at 1500 us the first is in flight and arrives, the second is half sent and waits with the third; the
        // fourth and fifth find the queue of two full
        for bytes in [125, 125, 125] {
            line.input(at(0), frame(bytes), &mut sink);
        }
        line.run_until(at(1500), &mut sink);
        line.machine_mut().set_stalled(at(1500), EndId(1), true);
        for bytes in [60, 61] {
            line.input(at(2000), frame(bytes), &mut sink);
        }
        line.run_until(at(10_000), &mut sink);
        line.machine_mut().set_stalled(at(10_000), EndId(0), false);
        line.run_until(at(20_000), &mut sink);
        assert_eq!(heard, [(3000, 125), (13_000, 125), (14_000, 125)]);
        assert_eq!(line.machine().counters(EndId(0)), Counters { delivered: 3, queue_full: 2, off: 0 });
    }

    #[test]
    fn the_directions_do_not_disturb_each_other() {
        let heard = run(&mut line(), &[(0, 0, 125), (0, 1, 125), (0, 3, 125)]);
        assert_eq!(heard.iter().map(|h| (h.0, h.1)).collect::<Vec<_>>(), [(3000, 1), (3000, 0), (3000, 2)]);
    }

    #[test]
    fn without_delay_and_length_time_still_goes_on() {
        let settings = LinkSettings { rate_bps: u64::MAX, delay: Duration::ZERO, queue_packets: 1 };
        let mut line = Timeline::new(Wires::new(&[settings]));
        assert_eq!(run(&mut line, &[(0, 0, 0), (1, 1, 60)]).len(), 2);
    }
}
