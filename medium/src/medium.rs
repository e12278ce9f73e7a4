//! The machine that joins stations and air. **API sketch while being built.**

use manet_engine::{Instant, Machine};

/// Index into the configuration's list of stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StationId(pub u16);

pub type MacAddress = [u8; 6];

#[derive(Clone, Debug)]
pub enum Input {
    /// The station's host sends an Ethernet frame (14-byte header and payload, no FCS).
    Packet { station: StationId, frame: Vec<u8> },
    /// From now on the station moves towards `to` at `speed_mps` (infinite: a jump).
    Move { station: StationId, to: [f64; 3], speed_mps: f64 },
    /// Error rate of data frames on a directed link.
    SetErrorRate { from: StationId, to: StationId, rate: f64 },
    /// Take the queued frames for a neighbour out; answered by `Output::Purged`.
    Purge { station: StationId, neighbour: MacAddress, token: u32 },
}

#[derive(Clone, Debug)]
pub enum Output {
    /// Hand this Ethernet frame to the station's host.
    Deliver { station: StationId, frame: Vec<u8> },
    /// Retries exhausted: link feedback.
    Failed { station: StationId, neighbour: MacAddress, reason: FailReason, frame: Vec<u8> },
    Purged { station: StationId, neighbour: MacAddress, token: u32, frames: Vec<Vec<u8>> },
    /// ACK received for a unicast frame.
    Acked { station: StationId, neighbour: MacAddress, retries: u16 },
    /// A data frame decoded by a station it was not for (only if `Medium::set_overhear`).
    Overheard { station: StationId, transmitter: MacAddress, receiver: MacAddress, frame: Vec<u8> },
    /// One row of the air log.
    Air(AirRecord),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    ShortRetryLimit = 1,
    LongRetryLimit = 2,
}

/// One row of `air.csv` (formats/air.md), and for `Event::Tx` what `air.pcapng` needs besides.
#[derive(Clone, Debug)]
pub struct AirRecord {
    pub at: Instant,
    // event, frame kind, station, peer, packet, attempt, bytes, rate_bps, airtime, backoff_slots, fate, receivers
    // for tx: sequence number, duration field, retry bit, and the payload (Rc<[u8]>-like, shared) for pcapng
}

pub struct Medium {}

impl Machine for Medium {
    type Input = Input;
    type Output = Output;
    fn handle(&mut self, _now: Instant, _input: Input) {
        todo!()
    }
    fn handle_timeout(&mut self, _now: Instant) {
        todo!()
    }
    fn poll_output(&mut self) -> Option<Output> {
        todo!()
    }
    fn next_timeout(&self) -> Option<Instant> {
        todo!()
    }
}
