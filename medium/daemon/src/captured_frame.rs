//! A frame as one packet of a capture (air.pcapng, monitor.pcapng).
//!
//! A captured frame is radiotap, 802.11 header, LLC/SNAP, the first [`SNAP_BODY`] bytes of the packet, and the FCS if that is all. The capture
//! has every frame that was on the air, also those that no station decoded; their fate is the comment of the packet. The monitor's
//! capture has a frame once for each station that decoded it, on an interface of that station, as a radio in monitor mode has it.

use manet_engine::{Duration, Instant};
use manet_medium::config::Loaded;
use manet_medium::fate::Fate;
use manet_medium::mac::{self, Dest, Frame, Packet};
use manet_medium::phy::radio::{Modulation, Reception};
use manet_medium::phy::{dbm, FrameKind, Radio};
use manet_medium::wire::pcapng::Block;
use manet_medium::wire::{block_ack, dot11, ethernet, radiotap, MacAddress, BROADCAST};

/// Bytes of a packet that the capture keeps: IP and TCP headers with all options, and some data.
pub const SNAP_BODY: usize = 128;
/// Maximum length of the fields of a mac80211 frame between address 3 and the packet: fourth address, QoS and mesh control, LLC/SNAP.
const MPDU_EXTRA: usize = 6 + 2 + 18 + dot11::SNAP_LEN;
/// BSSID of the independent BSS of all stations.
pub const BSSID: MacAddress = [0x02, 0, 0, 0, 0, 0];

/// Names, addresses and radiotap fields for the files.
#[derive(Clone, Debug)]
pub struct Names {
    /// Name of each station.
    pub stations: Vec<String>,
    /// Name of each jammer; their numbers follow those of the stations.
    pub jammers: Vec<String>,
    /// MAC address of each station.
    pub macs: Vec<MacAddress>,
    /// Radiotap channel (MHz, flags); `None` outside the Wi-Fi bands.
    pub channel: Option<(u16, u16)>,
    /// Radiotap's short preamble flag.
    pub short_preamble: bool,
    /// Silence that the time on the air of a frame includes, after its last symbol.
    pub signal_extension: Duration,
    /// Whether the air log has the column of the powers at the receivers.
    pub heard: bool,
    /// Whether unicast data are QoS data frames.
    pub qos: bool,
    /// Whether unicast data are sent at an MCS: the air log has its column.
    pub mcs: bool,
    /// Whether stations contend by EDCA: the air log has the column of the category.
    pub edca: bool,
    /// Whether unicast data are aggregated.
    pub aggregates: bool,
    /// Whether reception is by SINR: the air log has its column.
    pub sinr: bool,
}

impl Names {
    /// The names of a configuration.
    pub fn of(loaded: &Loaded) -> Self {
        let radio: &Radio = &loaded.radio;
        Self {
            stations: loaded.config.stations.iter().map(|s| s.name.clone()).collect(),
            jammers: loaded.config.jammers.iter().map(|j| j.name.clone()).collect(),
            macs: loaded.config.stations.iter().map(|s| s.mac).collect(),
            channel: radiotap::channel(radio.frequency_hz, radio.modulation != Modulation::Dsss),
            short_preamble: false,
            signal_extension: match radio.modulation {
                Modulation::Dsss => Duration::ZERO,
                _ => Duration::from_micros(radio.signal_extension_us.into()),
            },
            heard: loaded.config.outputs.monitor.is_some(),
            qos: radio.is_qos(),
            mcs: radio.has_mcs(),
            edca: radio.is_edca(),
            aggregates: radio.aggregation_limits().is_some(),
            sinr: radio.reception == Reception::Sinr,
        }
    }
}

impl Names {
    /// The name of a station or jammer.
    pub fn sender(&self, number: u16) -> &str {
        let number = usize::from(number);
        self.stations.get(number).unwrap_or_else(|| &self.jammers[number - self.stations.len()])
    }
}

fn receiver(frame: &Frame, names: &Names) -> MacAddress {
    match (frame.dest, &frame.packet) {
        (Dest::Station(s), _) => names.macs[usize::from(s)],
        (_, Some(packet)) => packet.dest_mac,
        _ => BROADCAST,
    }
}

/// Header of a frame without the body; a Block Ack and its request are whole. `true`: a data frame.
fn header(frame: &Frame, names: &Names) -> (Vec<u8>, bool) {
    // the Duration field is in whole microseconds, rounded up (IEEE 802.11-2016 clause 9.2.5), and below 32768
    let duration_us = frame.reserves.as_nanos().div_ceil(1000).min(32_767) as u16;
    let (receiver, transmitter) = (receiver(frame, names), names.macs[usize::from(frame.from)]);
    let dot11 = match frame.kind {
        FrameKind::Ba | FrameKind::Bar => return (agreement(frame, duration_us, receiver, transmitter), false),
        FrameKind::Rts => dot11::Repr::Rts { retry: frame.retry, duration_us, receiver, transmitter },
        FrameKind::Cts => dot11::Repr::Cts { duration_us, receiver },
        FrameKind::Ack => dot11::Repr::Ack { duration_us, receiver },
        FrameKind::Data | FrameKind::Bcast => dot11::Repr::Data {
            retry: frame.retry,
            duration_us,
            receiver,
            transmitter,
            bssid: BSSID,
            sequence: frame.sequence & 0xfff,
            fragment: 0,
        },
    };
    let mut bytes = vec![0; dot11.buffer_len()];
    dot11.emit(&mut bytes);
    (bytes, dot11.kind() == dot11::Kind::Data)
}

fn agreement(frame: &Frame, duration_us: u16, receiver: MacAddress, transmitter: MacAddress) -> Vec<u8> {
    let tid = frame.category.tid();
    let repr = match frame.block.as_deref() {
        Some(mac::Block::Request { start }) => {
            block_ack::Repr::Request { duration_us, receiver, transmitter, tid, start: *start }
        }
        Some(mac::Block::Answer(bitmap)) => {
            block_ack::Repr::BlockAck { duration_us, receiver, transmitter, tid, bitmap: *bitmap }
        }
        _ => return Vec::new(),
    };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

/// A frame as one packet of a capture.
pub struct Seen {
    /// Number of the capture's interface.
    pub interface: u32,
    /// Fate at the station that it is for, once decided.
    pub fate: Option<Fate>,
    /// Received power, W.
    pub power_w: Option<f64>,
    /// Lowest SINR over the frame at the station that it is for, if that received it.
    pub sinr_db: Option<f64>,
    /// Place in an A-MPDU.
    pub ampdu: Option<radiotap::Ampdu>,
}

/// Appends one enhanced packet block to `out`. Its original length is that on the air, so that readers compute the frame's duration.
pub fn capture(out: &mut Vec<u8>, names: &Names, epoch_ns: u64, at: Instant, frame: &Frame, seen: Seen) {
    let Seen { interface, fate, power_w, sinr_db, ampdu } = seen;
    let (mut mpdu, is_data) = header(frame, names);
    if names.qos && frame.kind == FrameKind::Data {
        dot11::make_qos(&mut mpdu, frame.category.tid());
    }
    let len = match &frame.packet {
        Some(packet) if is_data => complete(&mut mpdu, packet),
        _ => mpdu.len(),
    };
    // ns-2's data frames are two bytes shorter than header, LLC/SNAP, packet and FCS
    let has_fcs = frame.bytes as usize == len + dot11::FCS_LEN;
    if has_fcs && mpdu.len() == len {
        mpdu.extend(dot11::fcs(&mpdu));
    }
    // the stretch of an MPDU in an A-MPDU has no silence after it
    let silence = if ampdu.is_some() { Duration::ZERO } else { names.signal_extension };
    let power_dbm = power_w.and_then(dbm);
    let tap = radiotap::Repr {
        tsft_us: (at + (frame.airtime - silence)).as_nanos() / 1000,
        short_preamble: names.short_preamble,
        fcs: has_fcs,
        rate: radiotap::Rate::of(frame.mode),
        channel: names.channel,
        signal_dbm: power_dbm.map(radiotap::signal_dbm),
        noise_dbm: power_dbm.zip(sinr_db).map(|(power_dbm, sinr_db)| radiotap::signal_dbm(power_dbm - sinr_db)),
        ampdu,
    };
    let mut data = vec![0; tap.buffer_len()];
    tap.emit(&mut data);
    data.extend(&mpdu);
    let original_len = (tap.buffer_len() + mpdu.len().max(frame.bytes as usize)) as u32;
    let (at_ns, comment) = (epoch_ns + at.as_nanos(), comment_of(fate));
    Block::Packet { interface, at_ns, original_len, data: &data, comment }.emit(out);
}

/// Completes the header of a data frame in `mpdu` by the captured part of the body; returns the length of the whole frame without FCS.
/// Of a frame of mac80211 only the fields of each attempt remain: Duration and the Retry bit.
fn complete(mpdu: &mut Vec<u8>, packet: &Packet) -> usize {
    if let Some(kernels) = &packet.mpdu {
        let (retry, duration) = (mpdu[1], [mpdu[2], mpdu[3]]);
        let kept = kernels.bytes.len().min(dot11::DATA_HEADER_LEN + MPDU_EXTRA + SNAP_BODY);
        mpdu.clear();
        mpdu.extend(&kernels.bytes[..kept]);
        mpdu[1] |= retry;
        mpdu[2..4].copy_from_slice(&duration);
        return kernels.bytes.len();
    }
    let len = mpdu.len() + dot11::SNAP_LEN + packet.ip_bytes as usize;
    if let Ok(ethernet) = ethernet::Frame::new_checked(&packet.ethernet[..]) {
        let body = ethernet.payload();
        mpdu.extend(dot11::snap(ethernet.ethertype()));
        mpdu.extend(&body[..body.len().min(SNAP_BODY)]);
    }
    len
}

fn comment_of(fate: Option<Fate>) -> &'static str {
    match fate {
        Some(fate) if fate != Fate::Delivered => fate.name(),
        _ => "",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use manet_medium::mac::Category;
    use std::sync::Arc;

    pub(crate) fn names() -> Names {
        Names {
            stations: vec!["sta1".into(), "sta2".into()],
            jammers: Vec::new(),
            macs: vec![[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            channel: None,
            short_preamble: false,
            signal_extension: Duration::ZERO,
            heard: false,
            qos: false,
            mcs: false,
            edca: false,
            aggregates: false,
            sinr: false,
        }
    }

    pub(crate) fn frame(kind: FrameKind, body: usize) -> Frame {
        let mut ethernet = vec![0; 14 + body];
        ethernet[12] = 8;
        let packet = Packet {
            id: 5,
            dest: Dest::Station(1),
            dest_mac: [2, 0, 0, 0, 0, 2],
            ip_bytes: body as u32,
            control: false,
            category: Category::default(),
            ethernet: ethernet.into(),
            tag: 0,
            mpdu: None,
        };
        Frame {
            kind,
            from: 0,
            dest: Dest::Station(1),
            reserves: Duration::from_nanos(10_500),
            bytes: match kind {
                FrameKind::Rts => 20,
                _ => (24 + 8 + body + 4) as u32,
            },
            mode: manet_medium::phy::Mode::Dsss(2_000_000),
            airtime: Duration::from_millis(1),
            ack_airtime: Duration::ZERO,
            category: Category::default(),
            sequence: 77,
            retry: true,
            attempt: 2,
            backoff_slots: 3,
            packet: Some(Arc::new(packet)),
            block: None,
            snr_db: None,
        }
    }

    #[test]
    fn a_captured_frame_reads_back() {
        let mut out = Vec::new();
        let at = Instant::from_nanos(3_000);
        let seen =
            Seen { interface: 0, fate: Some(Fate::Hidden), power_w: Some(1e-9), sinr_db: Some(31.4), ampdu: None };
        capture(&mut out, &names(), 1_000_000, at, &frame(FrameKind::Data, 1000), seen);
        let (block, rest) = Block::parse(&out).unwrap();
        assert!(rest.is_empty());
        let Block::Packet { at_ns, original_len, data, comment, .. } = block else { panic!("{block:?}") };
        assert_eq!((at_ns, comment), (1_003_000, "hidden"));
        let (tap, mac) = radiotap::Repr::parse(data).unwrap();
        // the end of the frame, 1 ms after its start at 3 us
        assert_eq!(
            (tap.tsft_us, tap.rate, tap.signal_dbm, tap.noise_dbm, tap.fcs),
            (1003, radiotap::Rate::Legacy(4), Some(-60), Some(-91), true)
        );
        let dot11::Repr::Data { retry, duration_us, sequence, .. } = dot11::Repr::parse(mac).unwrap() else { panic!() };
        assert_eq!((retry, duration_us, sequence), (true, 11, 77));
        let (ethertype, body) = dot11::parse_snap(&mac[dot11::DATA_HEADER_LEN..]).unwrap();
        assert_eq!((ethertype, body.len()), (0x0800, SNAP_BODY));
        // radiotap 20, MAC 24, SNAP 8, packet 1000, FCS 4
        assert_eq!(original_len, 1056);
    }

    #[test]
    fn control_frames_have_no_body() {
        let mut out = Vec::new();
        let seen = Seen { interface: 0, fate: None, power_w: None, sinr_db: None, ampdu: None };
        capture(&mut out, &names(), 0, Instant::ZERO, &frame(FrameKind::Rts, 1000), seen);
        let (Block::Packet { data, original_len, .. }, _) = Block::parse(&out).unwrap() else { panic!() };
        assert_eq!((original_len as usize, data.len()), (18 + 20, 18 + 20));
        let (mac, fcs) = data[18..].split_at(dot11::RTS_LEN);
        assert!(matches!(dot11::Repr::parse(mac), Ok(dot11::Repr::Rts { .. })));
        assert_eq!(fcs, dot11::fcs(mac));
    }
}
