//! Failed links from mac80211's counts: `tx_failed` of a station counts the frames dropped after their retries
//! (linux/nl80211.h).
//!
//! nl80211 reports no single frames, so the stations are polled: a count that has grown is a failure. The lost packet
//! is not known.

use crate::error::{failed, HostError, Result};
use manet_netlink::{Builder, Message, Socket};
use manet_routing::Mac;
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use std::collections::BTreeMap;

// linux/nl80211.h
const GET_STATION: u8 = 17;
const IFINDEX: u16 = 3;
const MAC: u16 = 6;
const STA_INFO: u16 = 21;
const TX_FAILED: u16 = 12;

/// Poller of one interface's stations.
pub struct Nl80211 {
    netlink: Socket,
    family: u16,
    interface: u32,
    /// Dropped frames by station, at the last poll.
    failed: BTreeMap<Mac, u32>,
}

impl Nl80211 {
    /// `interface`: index of the radio. Fails if the kernel has no nl80211 or the interface is not an 802.11 device.
    pub fn open(interface: u32) -> Result<Self> {
        let remedy = "use {\"medium\":PATH}, or \"none\" with hello messages";
        let mut netlink = Socket::open(SockProtocol::NetlinkGeneric).map_err(|e| failed("no netlink socket", e))?;
        let family = netlink.family("nl80211").map_err(|e| match e {
            Errno::ENOENT => {
                HostError(format!("key \"feedback\": this kernel has no nl80211 (no 802.11 stack); {remedy}"))
            }
            e => failed("the kernel does not list its netlink families", e),
        })?;
        let mut stations = Self { netlink, family, interface, failed: BTreeMap::new() };
        stations.poll().map_err(|e| {
            HostError(format!("key \"feedback\": the interface has no nl80211 statistics ({e}); {remedy}"))
        })?;
        Ok(stations)
    }

    /// The stations to which frames have failed since the last poll. Fails if the kernel does not answer.
    pub fn poll(&mut self) -> Result<Vec<Mac>> {
        let request = Builder::generic(self.family, GET_STATION, 0).put_u32(IFINDEX, self.interface);
        let mut now = BTreeMap::new();
        self.netlink
            .dump(request, |message| now.extend(failures(&message)))
            .map_err(|e| failed("the kernel does not list its netlink families", e))?;
        let grown = grown(&self.failed, &now);
        self.failed = now;
        Ok(grown)
    }
}

/// The stations whose count has grown. A station with a smaller count, or without an earlier one, is new.
fn grown(before: &BTreeMap<Mac, u32>, now: &BTreeMap<Mac, u32>) -> Vec<Mac> {
    let has_grown = |(mac, count): &(&Mac, &u32)| before.get(*mac).is_some_and(|b| *count > b);
    now.iter().filter(has_grown).map(|(mac, _)| *mac).collect()
}

/// A station and the number of dropped frames to it.
fn failures(message: &Message) -> Option<(Mac, u32)> {
    let (_, station) = message.generic()?;
    Some((station.array(MAC)?, station.nested(STA_INFO)?.u32(TX_FAILED)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];

    /// NL80211_CMD_NEW_STATION as mac80211 writes it, by hand (little-endian): IFINDEX 3, MAC, GENERATION, STA_INFO
    /// (nested) with inactive time (1), tx retries (11), tx failed (12).
    fn station(mac: Mac, failed: u8) -> Vec<u8> {
        let parts: [&[u8]; 8] = [
            &[19, 1, 0, 0],
            &[8, 0, 3, 0, 3, 0, 0, 0],
            &[10, 0, 6, 0],
            &mac,
            &[0, 0],
            &[8, 0, 46, 0, 5, 0, 0, 0],
            &[28, 0, 21, 0x80, 8, 0, 1, 0, 100, 0, 0, 0, 8, 0, 11, 0, 9, 0, 0, 0],
            &[8, 0, 12, 0, failed, 1, 0, 0],
        ];
        parts.concat()
    }

    #[test]
    fn a_stations_failures_are_read() {
        let failures = |payload: &[u8]| failures(&Message { kind: 28, sequence: 1, payload });
        let whole = station(A, 7);
        assert_eq!(failures(&whole), Some((A, 263))); // 0x0107
        for length in 0..whole.len() {
            assert_eq!(failures(&whole[..length]), None, "cut to {length}");
        }
    }

    #[test]
    fn only_a_grown_count_is_a_failure() {
        let before = BTreeMap::from([(A, 5), (B, 5)]);
        assert_eq!(grown(&before, &BTreeMap::from([(A, 6), (B, 5)])), [A]);
        // a station that came back counts from 0
        assert_eq!(grown(&before, &BTreeMap::from([(A, 2), ([2, 0, 0, 0, 0, 3], 9)])), Vec::<Mac>::new());
    }
}
