//! Block Ack: an A-MPDU is answered by one frame that says which of its MPDUs arrived.
//!
//! IEEE Std 802.11-2016 clause 10.24.7 (HT-immediate agreement, full-state operation) and 9.7.1 (A-MPDU). Two machines for each
//! direction of a pair of stations and traffic identifier (TID): the [`Originator`] numbers packets, builds A-MPDUs and retries what
//! was not acknowledged; the [`Recipient`] keeps the scoreboard and delivers in order. Neither sends or times a frame: the MAC around
//! them does, and hands answers and their absence in.
//!
//! ```text
//!  packets --> Originator --A-MPDU, Block Ack Request--> Recipient --> packets in order
//!                       <------- ACK, Block Ack --------
//! ```
//!
//! The agreement itself (ADDBA, 10.24.2) is not an exchange of frames here: a recipient is created with the originator's
//! [`Originator::window_start`] when it hears the originator for the first time. Not modelled: delayed agreements, partial-state
//! operation, fragments, A-MSDU, more than 64 MPDUs, the spacing of MPDUs, lifetimes, and a timeout of stored MPDUs (the standard has none,
//! 10.24.7.6; mac80211's is 100 ms).

pub mod originator;
pub mod recipient;
pub mod room;

pub use originator::{Answer, Exchange, Fate, Mpdu, Options, Originator, Resolved, Waiting};
pub use recipient::Recipient;
pub use room::Room;

pub use crate::wire::block_ack::{steps, Bitmap, SEQUENCES};

/// MPDUs of a window: those that a compressed bitmap covers, also the largest buffer that ADDBA can agree on (9.4.1.14).
pub const WINDOW: usize = 64;

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod timelines;
