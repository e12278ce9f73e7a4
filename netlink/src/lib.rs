//! Netlink, the protocol between a program and the Linux kernel (netlink(7); include/uapi/linux/netlink.h, genetlink.h).
//!
//! - [`message`]: messages are built and read; [`attribute`]: so are their attributes. Pure functions, without I/O;
//! - `socket` (feature `socket`): requests, each answered before the next.
//!
//! The families' own numbers (rtnetlink, nl80211, mac80211_hwsim) stand where they are used. All fields are in the host's
//! byte order: nothing of it leaves the machine. Not supported: extended acknowledgements (NETLINK_EXT_ACK), strict checks of dumps.

pub mod attribute;
pub mod message;
#[cfg(feature = "socket")]
pub mod socket;

pub use attribute::Attributes;
pub use message::{Builder, Message, Messages};
#[cfg(feature = "socket")]
pub use socket::Socket;
