//! Stations switched off and on, in small networks in virtual time.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::config::Loaded;
use manet_medium::fate::{DropReason, Fate};
use manet_medium::phy::FrameKind;
use manet_medium::{Input, Medium, Output, StationId};

const A: StationId = StationId(0);
const B: StationId = StationId(1);

/// A medium with its outputs so far.
struct Bench {
    medium: Medium,
    now: Instant,
    tx: Vec<(u16, FrameKind, Option<Fate>, u32)>,
    drops: Vec<(u16, DropReason)>,
    delivered: Vec<(StationId, u64)>,
    failed: Vec<StationId>,
}

impl Bench {
    fn new(loaded: &Loaded) -> Self {
        let mut medium = Medium::new(loaded, standing(loaded));
        medium.set_recording(true);
        let (tx, drops, delivered, failed) = Default::default();
        Self { medium, now: Instant::ZERO, tx, drops, delivered, failed }
    }

    fn chain(n: usize) -> Self {
        Self::new(&loaded(&chain(n, 200.0), |_| ()))
    }

    fn input(&mut self, input: Input) {
        self.medium.handle(self.now, input);
        self.drain();
    }

    fn send(&mut self, from: StationId, to: Option<StationId>, tag: u64) {
        self.input(Input::Synthetic { station: from, to, ip_bytes: 1500, tag });
    }

    fn power(&mut self, station: StationId, on: bool) {
        self.input(Input::Power { station, on });
    }

    fn run_for(&mut self, us: u64) {
        let until = self.now + Duration::from_micros(us);
        while let Some(t) = self.medium.next_timeout().filter(|t| *t <= until) {
            self.medium.handle_timeout(t);
            self.drain();
        }
        self.now = until;
    }

    fn drain(&mut self) {
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Air(AirRow::Tx { frame, fate, receivers, .. }) => {
                    self.tx.push((frame.from, frame.kind, fate, receivers))
                }
                Output::Air(AirRow::Drop { station, reason, .. }) => self.drops.push((station, reason)),
                Output::Deliver { station, packet, .. } => self.delivered.push((station, packet.tag)),
                Output::Failed { station, .. } => self.failed.push(station),
                _ => {}
            }
        }
    }
}

#[test]
fn who_sends_to_a_station_that_is_off_finds_it_out_of_range() {
    let mut bench = Bench::chain(2);
    bench.power(B, false);
    assert!(bench.medium.links(bench.now).iter().all(|l| !l.in_range && !l.sensed && l.power_w == 0.0));
    bench.send(A, Some(B), 1);
    bench.run_for(1_000_000);
    // seven RTS: the short retry limit
    assert_eq!(bench.tx, [(0, FrameKind::Rts, Some(Fate::Weak), 0); 7]);
    assert_eq!((&bench.failed[..], &bench.drops[..]), (&[A][..], &[(0, DropReason::RetryShort)][..]));

    bench.power(B, true);
    bench.send(A, Some(B), 2);
    bench.run_for(1_000_000);
    assert_eq!(bench.delivered, [(B, 2)]);
}

#[test]
fn switching_a_station_off_drops_its_queue_and_later_packets_of_its_host() {
    let mut bench = Bench::chain(2);
    for tag in 0..4 {
        bench.send(A, Some(B), tag);
    }
    bench.power(A, false);
    bench.send(A, Some(B), 9);
    bench.run_for(1_000_000);
    assert_eq!(bench.drops, [(0, DropReason::Off); 5]);
    assert_eq!((bench.medium.counters(A).off, bench.medium.counters(A).enqueued), (5, 5));
    assert!(bench.tx.is_empty() && bench.delivered.is_empty() && bench.failed.is_empty());
    assert_eq!(bench.medium.backlog(A), 0);
}

/// Runs until `from` sends a frame of this kind: the frame is not logged yet, and the sender is sending.
fn until_in_the_midst_of(bench: &mut Bench, from: StationId, kind: FrameKind) {
    let count = |b: &Bench| match kind {
        FrameKind::Bcast => b.medium.counters(from).tx_bcast,
        _ => b.medium.counters(from).tx_data,
    };
    while count(bench) == 0 {
        bench.run_for(10);
    }
    bench.run_for(500);
}

#[test]
fn a_frame_whose_sender_is_switched_off_is_decoded_by_no_station() {
    let mut bench = Bench::chain(3);
    bench.send(B, None, 1);
    until_in_the_midst_of(&mut bench, B, FrameKind::Bcast);
    bench.power(B, false);
    bench.run_for(100_000);
    assert_eq!(bench.tx, [(1, FrameKind::Bcast, None, 0)]);
    assert!(bench.delivered.is_empty());

    bench.power(B, true);
    bench.send(A, Some(B), 2);
    until_in_the_midst_of(&mut bench, A, FrameKind::Data);
    bench.power(A, false);
    bench.run_for(100_000);
    assert!(bench.tx.contains(&(0, FrameKind::Data, Some(Fate::Weak), 0)), "{:?}", bench.tx);
    assert!(bench.delivered.is_empty());
}

#[test]
fn a_station_switched_off_while_it_receives_does_not_acknowledge() {
    let mut bench = Bench::chain(2);
    bench.send(A, Some(B), 1);
    until_in_the_midst_of(&mut bench, A, FrameKind::Data);
    bench.power(B, false);
    bench.run_for(1_000_000);
    assert!(bench.tx.contains(&(0, FrameKind::Data, Some(Fate::Weak), 0)), "{:?}", bench.tx);
    assert!(bench.tx.iter().all(|t| t.1 != FrameKind::Ack));
    assert_eq!((&bench.failed[..], bench.delivered.len()), (&[A][..], 0));
}

/// Off and on within one frame of 6 ms: the end of the old frame must not end the station's next frame.
#[test]
fn a_station_switched_off_and_on_in_the_midst_of_its_frame_sends_the_next_whole() {
    let mut bench = Bench::chain(2);
    bench.send(A, None, 1);
    until_in_the_midst_of(&mut bench, A, FrameKind::Bcast);
    bench.power(A, false);
    bench.power(A, true);
    for tag in 2..5 {
        bench.send(A, Some(B), tag);
    }
    bench.run_for(1_000_000);
    assert_eq!(bench.delivered, [(B, 2), (B, 3), (B, 4)]);
    assert!(bench.tx.contains(&(0, FrameKind::Bcast, None, 0)), "{:?}", bench.tx);
}

/// Sequence numbers distinguish retransmissions from new frames; a neighbour remembers them over the pause.
#[test]
fn after_the_pause_no_new_packet_is_taken_for_an_old_one() {
    let mut bench = Bench::chain(2);
    for round in 0..20 {
        bench.send(A, Some(B), round);
        bench.run_for(50_000);
        let off = if round % 2 == 0 { A } else { B };
        bench.power(off, false);
        bench.run_for(1_000);
        bench.power(off, true);
    }
    assert_eq!(bench.delivered, (0..20).map(|tag| (B, tag)).collect::<Vec<_>>());
}

#[test]
fn both_rules_of_interference_survive_switching_at_any_instant() {
    for rule in ["ns2", "sinr"] {
        let mut bench = Bench::new(&loaded(&chain(4, 150.0), |j| j["interference"] = rule.into()));
        for step in 0..3000u64 {
            let (from, to) = (StationId((step % 4) as u16), StationId(((step + 1) % 4) as u16));
            bench.send(from, Some(to), step);
            if step % 3 == 0 {
                // steps of 337 us against frames of 6 ms: every phase of an exchange is met
                bench.power(StationId((step / 3 % 4) as u16), step % 2 == 0);
            }
            bench.run_for(337);
        }
        for station in 0..4 {
            bench.power(StationId(station), true);
        }
        bench.run_for(60_000_000);
        let before = bench.delivered.len();
        for from in 0..3 {
            bench.send(StationId(from), Some(StationId(from + 1)), 9999);
        }
        bench.run_for(1_000_000);
        assert_eq!(bench.delivered.len(), before + 3, "{rule}: all is as it was");
        assert!(bench.medium.next_timeout().is_none(), "{rule}: and quiet");
    }
}

#[test]
fn power_is_an_input_that_can_be_written_down_and_read_back() {
    let text = serde_json::to_string(&Input::Power { station: B, on: false }).unwrap();
    assert_eq!(text, r#"{"Power":{"station":1,"on":false}}"#);
    assert!(matches!(serde_json::from_str(&text), Ok(Input::Power { station: B, on: false })));
}
