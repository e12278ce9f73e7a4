//! Frames of stations whose MAC is the kernel's mac80211: queue, DCF and air are those of the Ethernet frames of TAPs, but the air
//! carries the kernel's frame, with its header and its choice of rates.
//!
//! **Beacons of an access point** are frames like any other, at the basic rate: each is the next frame for transmission at its target
//! time (IEEE Std 802.11-2012 clause 10.1.3.2), contends for the medium, and may collide.
//!
//! **Beacons of IBSS and mesh stations** take no airtime: every station sends all of its own, while a real cell sends about one in
//! each interval (clause 10.1.3.3); airtime for all of them would be less realistic than none. They are delivered at once to all
//! stations in range.

use super::Medium;
use crate::mac::{Category, Dest, Mpdu, Packet};
use crate::message::{Output, Reception, StationId};
use crate::wire::mac80211::{Header, Kind};
use manet_engine::Instant;
use std::sync::Arc;

impl Medium {
    pub(super) fn mpdu_from_host(&mut self, now: Instant, station: StationId, mut mpdu: Mpdu) {
        let packet = |dest, dest_mac, ip_bytes, control, ethernet| Packet {
            id: 0,
            dest,
            dest_mac,
            ip_bytes,
            control,
            category: Category::default(),
            ethernet,
            tag: 0,
            mpdu: None,
        };
        let Ok(header) = Header::parse(&mpdu.bytes) else {
            let packet = Packet { mpdu: Some(Arc::new(mpdu)), ..packet(Dest::Unknown, [0; 6], 0, false, [].into()) };
            self.outputs.push_back(Output::Dropped { station, packet: Arc::new(packet) });
            return;
        };
        mpdu.kind = header.kind;
        // an interface more on the radio (a second BSS, a link of four addresses) has an address of its own
        self.by_mac.insert(header.transmitter, station.0);
        let leaves = self.leaves_channel(station, mpdu.freq_mhz);
        let beacon_of_ap = header.is_beacon_of_ap(&mpdu.bytes);
        let dest = self.dest_of(header.receiver);
        let ethernet = header.to_ethernet(&mpdu.bytes);
        let ip_bytes = (mpdu.bytes.len() - header.body_at(&mpdu.bytes)) as u32;
        let control = !leaves && (header.kind != Kind::Data || ethernet.as_ref().is_some_and(|e| e.control));
        let bytes = ethernet.map_or([].into(), |e| e.frame.into());
        let packet = Packet { mpdu: Some(Arc::new(mpdu)), ..packet(dest, header.receiver, ip_bytes, control, bytes) };
        if header.kind == Kind::Beacon && !beacon_of_ap {
            self.beacon(now, station, Arc::new(packet));
        } else {
            self.enqueue(now, station.0, packet);
        }
    }

    fn beacon(&mut self, now: Instant, station: StationId, packet: Arc<Packet>) {
        let from = station.0;
        if let Some(mpdu) = &packet.mpdu {
            self.tune(now, from, mpdu.freq_mhz);
        }
        if self.is_on(station) {
            let radio = &self.radio;
            let rate_bps = radio.broadcast_rate_bps;
            let threshold_w = radio.threshold(radio.mode_of_rate(rate_bps)).power_w;
            for (to, power_w) in self.neighbourhood(from, now).iter().copied().filter(|(_, p)| *p >= threshold_w) {
                let heard = Some(Reception { power_w, rate_bps });
                self.outputs.push_back(Output::Deliver { station: StationId(to), packet: packet.clone(), heard });
            }
        }
        self.outputs.push_back(Output::Broadcast { station, packet });
    }
}
