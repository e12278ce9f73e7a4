//! The daemon around the library `manet-medium`: all files, sockets and network interfaces, and all `unsafe`.
//!
//! - [`columns`]: the rows of an air log as columns of numbers;
//! - [`setup`]: reads `medium.json` and the files that it names; [`run`]: executes a run; [`replay`]: replays the inputs of a run;
//! - [`world`]: air and wires as one machine; [`outlet`]: its outputs to the hosts and their answers;
//! - [`hwsim`], [`wiphy`], [`ethtool`]: the kernel's own radios, in place of TAPs;
//! - [`tap`], [`feedback`], [`control`], [`commands`]: interfaces and sockets; [`listener`]: listening without a free descriptor;
//! - [`recorder`]: air log, capture and log of inputs ([`input`], [`input_log`]), in a thread of their own; [`incomplete`]: missing results; [`lateness_log`]: lateness
//!   of each second;
//! - [`capture`]: the captures of all stations, by another program, `manet-capture`;
//! - [`host`]: priority, memory, signals; [`token`]: identifies a ready descriptor;
//! - [`error`]: errors that end the daemon.

#![warn(missing_docs)]

pub mod capture;
pub mod captured_frame;
pub mod columns;
pub mod commands;
pub mod control;
pub mod error;
pub mod ethtool;
pub mod feedback;
pub mod host;
pub mod hwsim;
pub mod incomplete;
pub mod input;
pub mod input_log;
pub mod lateness_log;
pub mod listener;
pub mod outlet;
pub mod recorder;
pub mod replay;
pub mod run;
pub mod setup;
pub mod tap;
pub mod token;
pub mod wiphy;
pub mod world;

pub use error::DaemonError;
