//! Everything the daemon drives, as one machine: the air and the wires.

use crate::wired::{Arrived, Sent, Wires};
use crate::{medium, Medium};
use manet_engine::{Instant, Machine};

pub struct World {
    pub medium: Medium,
    pub wires: Wires,
}

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
