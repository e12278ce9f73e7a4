//! The medium: all radios and the air between them as one machine without I/O.
//!
//! - [`config`]: `medium.json` (see `formats/medium.md`), parsed and checked;
//! - [`phy`]: radio profiles, durations, propagation, ranges (pure functions);
//! - [`mac`]: interface queue and the 802.11 DCF of one station;
//! - [`rate_control`]: at which rates a station sends;
//! - [`air`]: the receiver of one radio: sensing, locking on, capture, interference; [`error_rate`]: losses set on links;
//! - [`medium`]: the machine that joins them ([`Medium`]); [`message`]: its inputs and outputs ([`logged_frame`]: a frame in the log);
//! - [`wire`]: bytes: Ethernet, 802.11, radiotap, pcapng, mac80211_hwsim, link feedback;
//! - [`trace`]: positions over time; [`wired`]: wired links;
//! - [`air_log`]: rows of the air log; [`fate`]: outcomes of frames and reasons for drops; [`counters`]: both counted for each station;
//! - [`rate_tables`]: the tables of the rate controls; [`radio_time`]: the time of each radio in its states;
//! - [`run_verdict`]: validity of a run in real time;
//! - [`sim`]: synthetic traffic in virtual time.
//!
//! The library takes and returns values and texts; the crate `manet-medium-daemon` has the files, sockets and interfaces.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod air;
pub mod air_log;
pub mod config;
pub mod counters;
pub mod error_rate;
pub mod fate;
pub mod logged_frame;
pub mod mac;
pub mod medium;
pub mod message;
pub mod phy;
pub mod radio_time;
pub mod rate_control;
pub mod rate_tables;
pub mod run_verdict;
pub mod sim;
pub mod trace;
pub mod wire;
pub mod wired;

pub use air_log::AirRow;
pub use medium::Medium;
pub use message::{Input, Output, StationId};
