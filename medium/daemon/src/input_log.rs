//! The log of inputs before it reaches the recorder's thread: the inputs as they came, of each frame the bytes that the log keeps.
//!
//! The machine's thread copies these bytes into one buffer; the recorder's thread makes lines of them ([`Inputs::take_lines`]) and
//! gives the emptied buffers back, so that the bytes of a frame cost no allocation.

use crate::input::Input;
use manet_engine::{event_log, Instant};
use manet_medium::logged_frame::KEPT;
use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

/// Inputs that are no lines yet.
#[derive(Debug, Default)]
pub struct Inputs {
    entries: Vec<Entry>,
    /// The kept bytes of all frames, one after the other.
    kept: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    /// Without the bytes of its frame.
    input: Input,
    /// Length of the whole frame.
    frame_len: usize,
}

impl Inputs {
    fn note(&mut self, at: Instant, input: &mut Input) {
        let frame = input.frame_mut().map(mem::take);
        let frame_len = frame.as_ref().map_or(0, Vec::len);
        self.entries.push(Entry { at, input: input.clone(), frame_len });
        if let (Some(frame), Some(place)) = (frame, input.frame_mut()) {
            self.kept.extend_from_slice(&frame[..frame_len.min(KEPT)]);
            *place = frame;
        }
    }

    /// Number of inputs, each a line of the log.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Memory that they take, bytes.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>() + self.kept.len()
    }

    /// Appends a line for each input to `lines` and removes the inputs; the memory remains for the next ones.
    pub fn take_lines(&mut self, lines: &mut Vec<u8>) {
        let (mut kept, mut frame) = (&self.kept[..], Vec::new());
        for Entry { at, input, frame_len } in &mut self.entries {
            if let Some(place) = input.frame_mut() {
                let (head, others) = kept.split_at(KEPT.min(*frame_len));
                kept = others;
                frame.clear();
                frame.extend_from_slice(head);
                frame.resize(*frame_len, 0); // the log has only their number
                mem::swap(place, &mut frame);
            }
            event_log::write(lines, *at, input)
                .expect("an input has no map with keys that JSON lacks, and a Vec takes all");
            if let Some(place) = input.frame_mut() {
                mem::swap(place, &mut frame);
            }
        }
        self.entries.clear();
        self.kept.clear();
    }
}

/// The inputs since the last batch. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct InputLog(Rc<RefCell<Inputs>>);

impl InputLog {
    /// Adds an input; `input` is the same afterwards.
    pub fn note(&self, at: Instant, input: &mut Input) {
        self.0.borrow_mut().note(at, input);
    }

    /// Removes and returns the inputs since the last call; `emptied` takes the next ones.
    pub fn take(&self, emptied: Inputs) -> Inputs {
        self.0.replace(emptied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_medium::mac::Stage;
    use manet_medium::message::{self, StationId};
    use manet_medium::wired::{EndId, Sent};

    fn some_of_each_kind() -> Vec<Input> {
        let frame = |len: usize| (0..len).map(|i| (i * 37) as u8).collect::<Vec<u8>>();
        let station = StationId(7);
        let mpdu = |len, freq_mhz| message::Input::Mpdu {
            station,
            frame: frame(len),
            cookie: u64::MAX,
            rates: vec![Stage { rate_bps: 54_000_000, tries: 3, ht: None }],
            freq_mhz,
        };
        let packets = [0, 1, 14, KEPT - 1, KEPT, KEPT + 1, 1514, 65_536]
            .map(|len| Input::Air(message::Input::Packet { station, frame: frame(len) }));
        let others = [
            Input::Air(mpdu(1550, Some(2437))),
            Input::Wire(Sent { end: EndId(3), frame: frame(1514) }),
            Input::Air(message::Input::Move { station, to: [1.5, -2.0, 0.0], speed_mps: f64::INFINITY }),
            Input::Stall { end: EndId(0), stalled: true },
            Input::Air(mpdu(20, None)),
            Input::Wire(Sent { end: EndId(2), frame: frame(60) }),
            Input::Air(message::Input::Stop),
        ];
        packets.into_iter().chain(others).collect()
    }

    #[test]
    fn the_lines_are_those_of_the_whole_inputs_also_in_used_buffers() {
        let (log, mut emptied) = (InputLog::default(), Inputs::default());
        for _ in 0..2 {
            let (mut direct, mut lines) = (Vec::new(), Vec::new());
            for (i, mut input) in some_of_each_kind().into_iter().enumerate() {
                let at = Instant::from_nanos(1 << (4 * i));
                event_log::write(&mut direct, at, &input).unwrap();
                let before = format!("{input:?}");
                log.note(at, &mut input);
                assert_eq!(format!("{input:?}"), before, "the machine gets the whole input");
            }
            let mut inputs = log.take(emptied);
            assert_eq!(inputs.count(), some_of_each_kind().len());
            inputs.take_lines(&mut lines);
            assert_eq!(String::from_utf8(lines).unwrap(), String::from_utf8(direct).unwrap());
            assert_eq!((inputs.count(), inputs.bytes()), (0, 0));
            assert!(inputs.entries.capacity() > 0 && inputs.kept.capacity() > 0, "the memory is used again");
            emptied = inputs;
        }
    }

    #[test]
    fn of_a_frame_only_the_logged_bytes_wait() {
        let log = InputLog::default();
        let mut input = Input::Wire(Sent { end: EndId(0), frame: vec![1; 1514] });
        log.note(Instant::ZERO, &mut input);
        assert_eq!(log.take(Inputs::default()).bytes(), size_of::<Entry>() + KEPT);
    }
}
