//! The medium: all radios and the air between them as one machine without I/O.
//!
//! - [`config`]: `medium.json` (see `formats/medium.md`), parsed and checked;
//! - [`phy`]: radio profiles, durations, propagation, who hears whom how strongly (pure functions);
//! - [`mac`]: interface queue and the 802.11 DCF of one station;
//! - [`air`]: what is on the air, what each radio makes of it;
//! - [`medium`]: the machine that joins them ([`Medium`]); [`message`]: what goes in and comes out ([`logged_frame`]: in the log);
//! - [`wire`]: bytes: Ethernet, 802.11, radiotap, link-feedback messages;
//! - [`trace`]: where stations are; [`wired`]: links beside the air; [`record`]: rows of the air log; [`verdict`]: is a run to be believed;
//! - [`sim`]: synthetic traffic in virtual time.
//!
//! Texts come in and go out; the crate `manet-medium-daemon` has the files, sockets and interfaces.

#![forbid(unsafe_code)]

pub mod air;
pub mod config;
pub mod error_rate;
pub mod logged_frame;
pub mod mac;
pub mod medium;
pub mod message;
pub mod phy;
pub mod record;
pub mod sim;
pub mod trace;
pub mod verdict;
pub mod wire;
pub mod wired;

pub use medium::Medium;
pub use message::{Input, Output, StationId};
pub use record::AirRecord;
