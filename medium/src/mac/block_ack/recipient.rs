//! The recipient of an agreement: scoreboard and reorder buffer.

use super::{steps, Bitmap, SEQUENCES, WINDOW};
use std::collections::VecDeque;

/// Sequence numbers that are not more than half of all ahead are new, the others old (10.24.7.3, 10.24.7.6.2: 2^11).
const HALF: u16 = 2048;

/// MPDUs received that were not delivered, and sequence numbers that never were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// MPDUs received again.
    pub duplicates: u64,
    /// MPDUs that arrived for the first time after the window had passed them.
    pub late: u64,
    /// Sequence numbers that the window passed without an MPDU.
    pub skipped: u64,
}

/// The recipient of one originator and TID, with packets of type `P`.
#[derive(Clone, Debug)]
pub struct Recipient<P> {
    scoreboard: Bitmap,
    /// WinStartB: the sequence number to be delivered next.
    start: u16,
    /// MPDUs from `start` on. The first is never present: it would have been delivered.
    buffer: VecDeque<Option<P>>,
    /// Counters of this agreement.
    pub counters: Counters,
}

impl<P> Recipient<P> {
    /// `start`: the originator's [`super::Originator::window_start`].
    pub fn new(start: u16) -> Self {
        let scoreboard = Bitmap { start, bits: 0 };
        Self { scoreboard, start, buffer: VecDeque::new(), counters: Counters::default() }
    }

    /// WinStartB: the sequence number to be delivered next.
    pub fn window_start(&self) -> u16 {
        self.start
    }

    /// Number of MPDUs that wait for one before them.
    pub fn stored(&self) -> usize {
        self.buffer.iter().flatten().count()
    }

    /// The Block Ack for what was received.
    pub fn block_ack(&self) -> Bitmap {
        self.scoreboard
    }

    /// An MPDU was decoded, alone or in an A-MPDU. Appends to `delivered` what can be delivered now, in order.
    pub fn receive(&mut self, sequence: u16, packet: P, delivered: &mut Vec<P>) {
        let seen = self.scoreboard.contains(sequence);
        self.record(sequence);
        let ahead = steps(self.start, sequence);
        if ahead >= HALF {
            *if seen { &mut self.counters.duplicates } else { &mut self.counters.late } += 1;
            return;
        }
        if usize::from(ahead) >= WINDOW {
            // 10.24.7.6.2 b: the window ends with this MPDU, whatever is missing before it
            self.pass(ahead - (WINDOW as u16 - 1), delivered);
        }
        let at = usize::from(steps(self.start, sequence));
        if at >= self.buffer.len() {
            self.buffer.resize_with(at + 1, || None);
        }
        match &mut self.buffer[at] {
            Some(_) => self.counters.duplicates += 1,
            free => *free = Some(packet),
        }
        self.deliver_in_order(delivered);
    }

    /// A Block Ack Request: the originator will not send anything before `start` again (10.24.7.6.3, 10.24.7.3 c). Returns the answer.
    pub fn handle_request(&mut self, start: u16, delivered: &mut Vec<P>) -> Bitmap {
        let ahead = steps(self.scoreboard.start, start);
        if ahead < HALF {
            self.move_scoreboard(ahead);
        }
        let ahead = steps(self.start, start);
        if ahead < HALF {
            self.pass(ahead, delivered);
            self.deliver_in_order(delivered);
        }
        self.scoreboard
    }

    /// The agreement ends: delivers all that is stored.
    pub fn flush(mut self, delivered: &mut Vec<P>) {
        self.pass(self.buffer.len() as u16, delivered);
    }

    /// 10.24.7.3 b.
    fn record(&mut self, sequence: u16) {
        let ahead = steps(self.scoreboard.start, sequence);
        if ahead >= HALF {
            return;
        }
        self.move_scoreboard(ahead.saturating_sub(WINDOW as u16 - 1));
        self.scoreboard.bits |= 1 << steps(self.scoreboard.start, sequence);
    }

    fn move_scoreboard(&mut self, by: u16) {
        self.scoreboard.start = (self.scoreboard.start + by) % SEQUENCES;
        self.scoreboard.bits = self.scoreboard.bits.checked_shr(by.into()).unwrap_or(0);
    }

    /// Moves the window by `count` sequence numbers; delivers those that are present.
    fn pass(&mut self, count: u16, delivered: &mut Vec<P>) {
        let taken = self.buffer.drain(..usize::from(count).min(self.buffer.len())).flatten();
        let before = delivered.len();
        delivered.extend(taken);
        self.counters.skipped += u64::from(count) - (delivered.len() - before) as u64;
        self.start = (self.start + count) % SEQUENCES;
    }

    fn deliver_in_order(&mut self, delivered: &mut Vec<P>) {
        let present = self.buffer.iter().take_while(|stored| stored.is_some()).count();
        self.pass(present as u16, delivered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives these sequence numbers; each packet is its number.
    fn receive(recipient: &mut Recipient<u16>, sequences: impl IntoIterator<Item = u16>) -> Vec<u16> {
        let mut out = vec![];
        sequences.into_iter().for_each(|s| recipient.receive(s, s, &mut out));
        out
    }

    #[test]
    fn what_follows_a_gap_waits_until_it_is_closed() {
        let mut r = Recipient::new(4094);
        assert_eq!(receive(&mut r, [4094, 0, 1]), [4094]);
        assert_eq!((r.window_start(), r.stored()), (4095, 2));
        assert_eq!(receive(&mut r, [4095]), [4095, 0, 1]);
        assert_eq!(r.block_ack(), Bitmap { start: 4094, bits: 0b1111 });
    }

    #[test]
    fn a_number_beyond_the_window_moves_it_and_delivers_what_it_passes() {
        let mut r = Recipient::new(0);
        assert!(receive(&mut r, [2, 5, 63]).is_empty());
        // window 3..=66: 2 is passed, 0 and 1 are skipped
        assert_eq!(receive(&mut r, [66]), [2]);
        assert_eq!(receive(&mut r, [3, 4]), [3, 4, 5]);
        assert_eq!((r.window_start(), r.counters.skipped, r.block_ack().start), (6, 2, 3));
        // far beyond: everything stored is delivered
        assert_eq!(receive(&mut r, [500]), [63, 66]);
        assert_eq!((r.window_start(), r.block_ack()), (437, Bitmap { start: 437, bits: 1 << 63 }));
    }

    #[test]
    fn duplicates_are_acknowledged_again_counted_and_dropped() {
        let mut r = Recipient::new(0);
        assert_eq!(receive(&mut r, [0, 0, 2, 2]), [0]);
        assert_eq!(r.counters, Counters { duplicates: 2, ..Counters::default() });
        assert_eq!(r.block_ack(), Bitmap { start: 0, bits: 0b101 });
    }

    #[test]
    fn a_request_delivers_what_it_passes_and_what_follows_in_order() {
        let mut r = Recipient::new(0);
        receive(&mut r, [1, 3, 4, 6]);
        let mut out = vec![];
        assert_eq!(r.handle_request(3, &mut out), Bitmap { start: 3, bits: 0b1011 });
        assert_eq!((out, r.window_start(), r.counters.skipped), (vec![1, 3, 4], 5, 2));
    }

    #[test]
    fn an_old_request_and_an_old_mpdu_move_nothing() {
        let mut r = Recipient::new(100);
        receive(&mut r, [100, 101, 103]);
        let before = r.block_ack();
        assert_eq!(r.handle_request(99, &mut vec![]), before);
        assert_eq!(r.handle_request(102 + HALF, &mut vec![]), before);
        assert!(receive(&mut r, [90]).is_empty());
        assert_eq!((r.block_ack(), r.window_start(), r.counters.late), (before, 102, 1));
    }

    #[test]
    fn the_end_of_an_agreement_delivers_what_is_stored() {
        let mut r = Recipient::new(0);
        receive(&mut r, [1, 5]);
        let mut out = vec![];
        r.flush(&mut out);
        assert_eq!(out, [1, 5]);
    }
}
