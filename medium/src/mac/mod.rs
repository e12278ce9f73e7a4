//! The MAC of one station: interface queue and DCF, and the two ends of a Block Ack agreement, without I/O.

pub mod action;
pub mod block_ack;
pub mod dcf;
pub mod packet;
pub mod queue;

pub use action::{Action, FailReason};
pub use dcf::Dcf;
pub use packet::{Dest, Frame, Mpdu, Packet, Stage};
pub use queue::InterfaceQueue;

#[cfg(test)]
mod dcf_timelines;
