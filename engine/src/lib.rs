//! The engine under every machine of the testbed: integer time, timers, seeded random
//! streams, the machine interface, an event log and the two drivers.
//!
//! It knows no protocol. A *machine* ([`Machine`]) reads no clock, opens no socket and owns no
//! thread; a *driver* ([`virtual_time`], [`real_time`]) gives it inputs and time. The same inputs at the
//! same instants give the same outputs under both drivers.

#![warn(missing_docs)]

pub mod event_log;
pub mod formula;
pub mod hex;
pub mod keys;
pub mod lateness;
pub mod line_client;
pub mod mac_text;
pub mod machine;
pub mod misfit;
pub mod packet_filter;
pub mod queue;
pub mod random;
pub mod real_time;
pub mod schema;
pub mod time;
pub mod timers;
pub mod virtual_time;

pub use lateness::Lateness;
pub use machine::Machine;
pub use queue::EventQueue;
pub use random::Stream;
pub use time::{Duration, Instant};
pub use virtual_time::{Outside, Timeline};
