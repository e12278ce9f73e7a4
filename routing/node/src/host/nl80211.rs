//! Failed links as mac80211 counts them: a station's `tx_failed` is a frame given up after its retries
//! (linux/nl80211.h).
//!
//! nl80211 tells of no single frame, so the stations are asked again and again, and what has grown has failed. Which
//! packet it was is not known.

use super::netlink::{attribute, attributes, Described, Netlink};
use super::{HostError, Result};
use crate::Mac;
use nix::sys::socket::SockProtocol;
use std::collections::BTreeMap;

// linux/genetlink.h
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// genlmsghdr: command, version, two reserved bytes.
const HEADER_LEN: usize = 4;
// linux/nl80211.h
const GET_STATION: u8 = 17;
const IFINDEX: u16 = 3;
const MAC: u16 = 6;
const STA_INFO: u16 = 21;
const TX_FAILED: u16 = 12;

pub struct Nl80211 {
    netlink: Netlink,
    family: u16,
    interface: u32,
    /// Frames given up, by station, when last asked.
    failed: BTreeMap<Mac, u32>,
}

impl Nl80211 {
    pub fn open(interface: u32) -> Result<Self> {
        let remedy = "use {\"medium\":PATH}, or \"none\" with hello messages";
        let mut netlink = Netlink::open(SockProtocol::NetlinkGeneric)?;
        let families = netlink.dump(CONTROL, CONTROL, &[GET_FAMILY, 1, 0, 0])?;
        let family = families.iter().find_map(family_id).ok_or_else(|| {
            HostError(format!("key \"feedback\": this kernel has no nl80211 (no 802.11 stack); {remedy}"))
        })?;
        let mut stations = Self { netlink, family, interface, failed: BTreeMap::new() };
        stations.poll().map_err(|e| {
            HostError(format!("key \"feedback\": the interface tells nothing by nl80211 ({e}); {remedy}"))
        })?;
        Ok(stations)
    }

    /// The stations to which frames have failed since the last question.
    pub fn poll(&mut self) -> Result<Vec<Mac>> {
        let mut request = vec![GET_STATION, 0, 0, 0];
        attribute(&mut request, IFINDEX, &self.interface.to_ne_bytes());
        let stations = self.netlink.dump(self.family, self.family, &request)?;
        let now: BTreeMap<Mac, u32> = stations.iter().filter_map(failures).collect();
        let grown = grown(&self.failed, &now);
        self.failed = now;
        Ok(grown)
    }
}

/// Who has more than before. Fewer, or nothing before: the station is a new acquaintance.
fn grown(before: &BTreeMap<Mac, u32>, now: &BTreeMap<Mac, u32>) -> Vec<Mac> {
    let has_grown = |(mac, count): &(&Mac, &u32)| before.get(*mac).is_some_and(|b| *count > b);
    now.iter().filter(has_grown).map(|(mac, _)| *mac).collect()
}

/// The number of the family, if this is nl80211's description.
fn family_id(message: &Described) -> Option<u16> {
    let name = message.get(HEADER_LEN, FAMILY_NAME)?;
    let id = message.get(HEADER_LEN, FAMILY_ID)?;
    (name == b"nl80211\0").then_some(u16::from_ne_bytes(id.try_into().ok()?))
}

/// A station and the frames to it that were given up.
fn failures(message: &Described) -> Option<(Mac, u32)> {
    let mac = message.get(HEADER_LEN, MAC)?.try_into().ok()?;
    let (_, count) = attributes(message.get(HEADER_LEN, STA_INFO)?).find(|(kind, _)| *kind == TX_FAILED)?;
    Some((mac, u32::from_ne_bytes(count.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];

    /// NL80211_CMD_NEW_STATION as mac80211 writes it, by hand (little-endian): IFINDEX 3, MAC, GENERATION, STA_INFO
    /// (nested) with inactive time (1), tx retries (11), tx failed (12).
    fn station(mac: Mac, failed: u8) -> Described {
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
        Described(parts.concat())
    }

    #[test]
    fn a_stations_failures_are_read() {
        assert_eq!(failures(&station(A, 7)), Some((A, 263))); // 0x0107
        let whole = station(A, 7);
        for length in 0..whole.0.len() {
            assert_eq!(failures(&Described(whole.0[..length].to_vec())), None, "cut to {length}");
        }
    }

    #[test]
    fn the_family_is_known_by_its_name() {
        let family = |name: &[u8]| {
            let mut m = vec![1, 2, 0, 0];
            attribute(&mut m, FAMILY_NAME, name);
            attribute(&mut m, FAMILY_ID, &28u16.to_ne_bytes());
            Described(m)
        };
        assert_eq!(family_id(&family(b"nl80211\0")), Some(28));
        assert_eq!(family_id(&family(b"nlctrl\0")), None);
        assert_eq!(family_id(&Described(vec![1])), None);
    }

    #[test]
    fn only_what_has_grown_has_failed() {
        let before = BTreeMap::from([(A, 5), (B, 5)]);
        assert_eq!(grown(&before, &BTreeMap::from([(A, 6), (B, 5)])), [A]);
        // a station that came anew counts from 0
        assert_eq!(grown(&before, &BTreeMap::from([(A, 2), ([2, 0, 0, 0, 0, 3], 9)])), Vec::<Mac>::new());
    }
}
