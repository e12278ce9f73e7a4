//! Netlink, the protocol between a program and the Linux kernel (netlink(7); include/uapi/linux/netlink.h, genetlink.h).
//!
//! - [`message`]: builds and reads messages; [`attribute`]: builds and reads their attributes. Pure functions, no I/O;
//! - `socket` (feature `socket`): requests, each answered before the next.
//!
//! The numbers of the families (rtnetlink, nl80211, mac80211_hwsim) stand in the crates that use them. All fields are in host
//! byte order, as the protocol is local. Not supported: extended acknowledgements (NETLINK_EXT_ACK), strict checks of dumps.

#![warn(missing_docs)]

pub mod attribute;
pub mod message;
#[cfg(feature = "socket")]
pub mod socket;

pub use attribute::Attributes;
pub use message::{Builder, Message, Messages};
#[cfg(feature = "socket")]
pub use socket::Socket;
