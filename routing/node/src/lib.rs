//! Types that the routing machines share. No I/O: a protocol's library depends on this crate, its program on
//! `manet-routing-host`.
//!
//! A protocol is a [`Protocol`]: a machine without clock, socket or thread that gets events ([`Input`]) and requests
//! actions ([`Output`]). The same machine runs in three surroundings:
//! - `routing/host`: a daemon in a network namespace, the kernel forwarding (design A) or not (design B);
//! - `tests/mesh`: many machines joined by the medium library, in virtual time;
//! - tests that play inputs and compare outputs.
//!
//! Design A (AODV, DSDV, OLSR, ADV, TORA): the kernel forwards by its own table; a packet without a route falls into a TUN
//! device and reaches the machine as [`Input::Packet`]. Design B (DSR): every packet passes the machine, as
//! [`Input::Packet`] from the own stack and as [`Input::Frame`] from the air.
//!
//! Contracts with other programs: `formats/routing.md` (configuration, status, notes, event log).

#![warn(missing_docs)]

pub mod arp;
pub mod base;
pub mod bytes;
pub mod counters;
pub mod duplicates;
pub mod held;
pub mod message;
pub mod notices;
pub mod packet;
pub mod protocol;
pub mod routes;
pub mod seconds;
pub mod status;
pub mod trial;

pub use base::Base;
pub use bytes::Bytes;
pub use counters::Counters;
pub use duplicates::Duplicates;
pub use held::Held;
pub use message::{Flow, Input, Note, Output};
pub use notices::Notices;
pub use protocol::{Carrier, Node, OptionError, Protocol, MIN_MTU};
pub use routes::{Device, Route, Routes};
pub use status::Status;

use std::net::Ipv4Addr;

/// IEEE 802 address.
pub type Mac = [u8; 6];
/// The IEEE 802 broadcast address.
pub const BROADCAST_MAC: Mac = [0xff; 6];
/// Limited broadcast (RFC 919, section 7): no router forwards it.
pub const BROADCAST: Ipv4Addr = Ipv4Addr::BROADCAST;
