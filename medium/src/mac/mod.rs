//! One station's MAC: its interface queue and its DCF, each a machine without I/O.

pub mod action;
pub mod dcf;
pub mod packet;
pub mod queue;

pub use action::{Action, FailReason};
pub use dcf::Dcf;
pub use packet::{Dest, Frame, Mpdu, Packet, Stage};
pub use queue::InterfaceQueue;

#[cfg(test)]
mod dcf_timelines;
