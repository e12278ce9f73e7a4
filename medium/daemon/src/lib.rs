//! The daemon around the library `manet-medium`: all files, sockets and network interfaces, and all `unsafe`.
//!
//! - [`setup`]: `medium.json` and the files that it names, read; [`run`]: from there to a finished run; [`replay`]: a run's inputs again;
//! - [`world`]: air and wires as one machine; [`outlet`]: what it does to the hosts and what they answer;
//! - [`hwsim`], [`wiphy`], [`ethtool`]: the kernel's own radios, in place of TAPs;
//! - [`tap`], [`feedback`], [`control`], [`commands`]: the ways in and out; [`listener`]: without a free descriptor, too;
//! - [`recorder`]: air log, capture and log of inputs ([`input_log`]), on a thread of their own; [`incomplete`]: what they lack;
//! - [`host`]: priority, memory, signals; [`token`]: which descriptor is ready.

pub mod commands;
pub mod control;
pub mod error;
pub mod ethtool;
pub mod feedback;
pub mod host;
pub mod hwsim;
pub mod incomplete;
pub mod input_log;
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
