//! Reported changes of NAV are the medium's own state, and end with the exchange that reserves the medium (IEEE 802.11-2020, 9.2.5
//! and 10.3.2.4).

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::phy::FrameKind;
use manet_medium::{Input, Medium, Output, StationId};

/// When, station, end of its NAV from then on.
type Change = (u64, u16, u64);

/// Every change of NAV, and the frames on the air (kind, end), of packets from `from` to `to`. At each
/// step the NAV of all stations must be the last one reported.
fn run(stations: usize, packets: &[(u64, u16, u16)], off_at: Option<u64>) -> (Vec<Change>, Vec<(FrameKind, u64)>) {
    let loaded = loaded(&chain(stations, 200.0), |_| ());
    let mut medium = Medium::new(&loaded, standing(&loaded));
    medium.set_recording(true);
    medium.set_reporting_nav();
    let mut inputs: Vec<(u64, Input)> = packets
        .iter()
        .map(|&(at, from, to)| {
            (at, Input::Synthetic { station: StationId(from), to: Some(StationId(to)), ip_bytes: 1000, tag: 0 })
        })
        .collect();
    inputs.extend(off_at.map(|at| (at, Input::Power { station: StationId(2), on: false })));
    inputs.sort_by_key(|input| input.0);
    let mut inputs = inputs.into_iter().peekable();
    let (mut changes, mut frames) = (Vec::new(), Vec::new());
    let mut known = vec![0; stations];
    loop {
        let arrives = inputs.peek().map(|input| Instant::from_nanos(input.0));
        let Some(now) = [arrives, medium.next_timeout()].into_iter().flatten().min() else { return (changes, frames) };
        if arrives == Some(now) {
            let (_, input) = inputs.next().expect("it has arrived");
            medium.handle(now, input);
        } else {
            medium.handle_timeout(now);
        }
        while let Some(output) = medium.poll_output() {
            match output {
                Output::Nav { at, station, until } => {
                    assert_eq!(at, now);
                    known[usize::from(station.0)] = until.as_nanos();
                    changes.push((at.as_nanos(), station.0, until.as_nanos()));
                }
                Output::Air(AirRow::Tx { at, frame, .. }) => frames.push((frame.kind, (at + frame.airtime).as_nanos())),
                _ => {}
            }
        }
        for (station, until) in known.iter().enumerate() {
            assert_eq!(medium.nav_until(StationId(station as u16)).as_nanos(), *until, "station {station} at {now:?}");
        }
    }
}

#[test]
fn a_station_that_hears_the_cts_alone_is_silent_to_the_end_of_the_ack() {
    let (changes, frames) = run(3, &[(0, 0, 1)], None);
    let end_of = |wanted| frames.iter().find(|(kind, _)| *kind == wanted).expect("the exchange has all four frames").1;
    // it senses the RTS, too far to decode it: the rule of ns-2 makes EIFS (364 us with this radio) a NAV
    let rts_end = end_of(FrameKind::Rts);
    assert_eq!(changes[0], (rts_end, 2, rts_end + 364_000));
    assert_eq!(changes[1], (end_of(FrameKind::Cts), 2, end_of(FrameKind::Ack)));
    assert!(changes.iter().all(|change| change.1 == 2), "the ends of the exchange reserve nothing for themselves");
}

#[test]
fn changes_are_the_state_of_the_medium_with_contention_and_a_switch() {
    let packets: Vec<_> = (0..40).map(|i| (i * 1_500_000, (i % 5) as u16, ((i + 1) % 5) as u16)).collect();
    let (changes, _) = run(5, &packets, Some(30_000_000));
    assert!(changes.len() > 50);
    let forgotten = changes.iter().any(|&(at, station, until)| station == 2 && until == 0 && at == 30_000_000);
    assert!(forgotten, "a station that is switched off while it defers forgets its NAV: {changes:?}");
}
