//! Everything the daemon drives, as one machine: the air and the wires.

use crate::config::{Loaded, WireConfig};
use crate::trace::Trajectory;
use crate::wired::{Arrived, LinkSettings, Sent, Wires};
use crate::{medium, Medium};
use manet_engine::event_log::Logged;
use manet_engine::{Duration, Instant, Machine};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufWriter;

pub struct World {
    pub medium: Medium,
    pub wires: Wires,
}

/// What the real-time driver drives.
pub type LoggedWorld = Logged<World, BufWriter<File>>;

impl World {
    pub fn new(loaded: &Loaded, trajectories: Vec<Trajectory>) -> Self {
        let mut medium = Medium::new(loaded, trajectories);
        medium.set_recording(true);
        let link = |w: &WireConfig| LinkSettings {
            rate_bps: w.rate_bps,
            delay: Duration::from_micros(w.delay_us),
            queue_packets: w.queue_packets,
        };
        let links: Vec<_> = loaded.config.wires.iter().map(link).collect();
        Self { medium, wires: Wires::new(&links) }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Input {
    Air(medium::Input),
    Wire(Sent),
}

pub enum Output {
    Air(medium::Output),
    Wire(Arrived),
}

impl Output {
    /// Does it act on a host, so that its being late matters?
    pub fn is_release(&self) -> bool {
        matches!(self, Output::Air(medium::Output::Deliver { .. }) | Output::Wire(_))
    }
}

impl Machine for World {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Air(input) => self.medium.handle(now, input),
            Input::Wire(input) => self.wires.handle(now, input),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        if self.medium.next_timeout().is_some_and(|at| at <= now) {
            self.medium.handle_timeout(now);
        }
        if self.wires.next_timeout().is_some_and(|at| at <= now) {
            self.wires.handle_timeout(now);
        }
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.medium.poll_output().map(Output::Air).or_else(|| self.wires.poll_output().map(Output::Wire))
    }
    fn next_timeout(&self) -> Option<Instant> {
        [self.medium.next_timeout(), self.wires.next_timeout()].into_iter().flatten().min()
    }
}
