//! The MAC of one station: interface queue (drop-tail or FQ-CoDel), DCF or EDCA, its rates, and the two ends of a Block Ack agreement,
//! without I/O.

pub mod action;
pub mod block_ack;
pub mod blocks;
pub mod category;
pub mod codel;
pub mod dcf;
pub mod fq_codel;
pub mod packet;
pub mod queue;
pub mod rates;

pub use action::{Action, FailReason};
pub use category::Category;
pub use dcf::Dcf;
pub use packet::{Block, Dest, Frame, HtRate, Mpdu, Packet, Part, Stage};
pub use queue::InterfaceQueue;

#[cfg(test)]
mod ampdu_timelines;
#[cfg(test)]
mod dcf_timelines;
#[cfg(test)]
mod edca_timelines;
