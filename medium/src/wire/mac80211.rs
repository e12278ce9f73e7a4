//! Headers of the frames from mac80211 (IEEE Std 802.11-2012 clauses 8.2.3, 8.2.4, 8.3.2, 8.3.3): addresses, kind, and the
//! Ethernet frame that a data frame carries.
//!
//! ```text
//!  0    2    4        10       16       22    24
//! +----+----+--------+--------+--------+-----+-- [addr 4: 6] [QoS control: 2] [HT control: 4] [mesh control: 6, 12 or 18] -- LLC
//! | fc | dur| addr 1 | addr 2 | addr 3 | seq |
//! +----+----+--------+--------+--------+-----+
//! ```

use super::dot11::{parse_snap, MAX_MSDU_BYTES, SNAP_LEN};
use super::{array, check_len, ethernet, MacAddress, Malformed, Result};

const HEADER_LEN: usize = 24;
/// Maximum length of an A-MSDU, bytes (IEEE 802.11-2020, 9.2.4.7.1; a peer may accept less).
const MAX_A_MSDU_BYTES: usize = 7935;
/// The most that encryption adds to a body, bytes: TKIP's IV and extended IV, MIC and ICV (IEEE 802.11-2020, 12.5.2.2).
const MAX_SECURITY_BYTES: usize = 8 + 8 + 4;

/// Category and actions of Block Ack (IEEE 802.11-2016 clause 9.6.5).
const BLOCK_ACK: u8 = 3;
const ADDBA_REQUEST: u8 = 0;
const ADDBA_RESPONSE: u8 = 1;
/// Status code of a declined request (802.11-2016 table 9-46).
const REQUEST_DECLINED: u16 = 37;
/// Subtype action.
const ACTION: u8 = 0xd0;

/// The ADDBA Response by which the receiver of the ADDBA Request `bytes` declines it; `None`: it is another frame.
///
/// ```text
///  24         25       26     27           29             31
/// +----------+--------+-------+------------+--------------+---------
/// | category | action | token | parameters | timeout      | start       request (802.11-2016 9.6.5.2)
/// | category | action | token | status     | parameters   | timeout     response (9.6.5.3)
/// +----------+--------+-------+------------+--------------+---------
/// ```
pub fn declined_block_ack(bytes: &[u8]) -> Option<Vec<u8>> {
    let body = bytes.get(HEADER_LEN..HEADER_LEN + 9)?;
    if bytes[0] != ACTION || bytes[1] & 0x40 != 0 || body[..2] != [BLOCK_ACK, ADDBA_REQUEST] {
        return None;
    }
    let mut response = bytes[..HEADER_LEN].to_vec();
    response[2..4].fill(0);
    response[4..10].copy_from_slice(&bytes[10..16]);
    response[10..16].copy_from_slice(&bytes[4..10]);
    response.extend([BLOCK_ACK, ADDBA_RESPONSE, body[2]]);
    response.extend(REQUEST_DECLINED.to_le_bytes());
    response.extend(&body[3..7]);
    Some(response)
}

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Management, subtype beacon.
    Beacon,
    /// Any other management frame.
    Management,
    /// Data of any subtype.
    Data,
}

/// Addresses of a frame on this hop, and the layout of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the frame.
    pub kind: Kind,
    /// Address 1.
    pub receiver: MacAddress,
    /// Address 2.
    pub transmitter: MacAddress,
    /// Header without mesh control.
    len: usize,
    four_addresses: bool,
    mesh_control: bool,
    no_data: bool,
    protected: bool,
    a_msdu: bool,
}

/// The Ethernet frame that a data frame carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Header of this hop and payload, without FCS.
    pub frame: Vec<u8>,
    /// Whether it is network control, which the interface queue serves first.
    pub control: bool,
}

impl Header {
    /// Parses the header of a management or data frame.
    ///
    /// # Errors
    /// A protocol version other than 0, another type, or too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        check_len(bytes, HEADER_LEN)?;
        let (control, flags) = (bytes[0], bytes[1]);
        if control & 0b11 != 0 {
            return Err(Malformed("protocol version is not 0"));
        }
        let (kind, subtype) = match (control >> 2 & 0b11, control >> 4) {
            (0, 8) => (Kind::Beacon, 8),
            (0, subtype) => (Kind::Management, subtype),
            (2, subtype) => (Kind::Data, subtype),
            _ => return Err(Malformed("neither management nor data")),
        };
        let data = kind == Kind::Data;
        let four_addresses = data && flags & 0b11 == 0b11;
        let qos = data && subtype & 8 != 0;
        let with_order = if data { qos } else { true } && flags & 0x80 != 0;
        let qos_at = HEADER_LEN + if four_addresses { 6 } else { 0 };
        let len = qos_at + if qos { 2 } else { 0 } + if with_order { 4 } else { 0 };
        check_len(bytes, len)?;
        Ok(Self {
            kind,
            receiver: array(bytes, 4..10),
            transmitter: array(bytes, 10..16),
            len,
            four_addresses,
            // clause 8.2.4.5.6: bit 8 of QoS control, set in a mesh BSS only
            mesh_control: qos && bytes[qos_at + 1] & 1 != 0,
            no_data: data && subtype & 4 != 0,
            protected: flags & 0x40 != 0,
            // clause 8.2.4.5.9: bit 7 of QoS control
            a_msdu: qos && bytes[qos_at] & 0x80 != 0,
        })
    }

    /// Whether it is a beacon of an access point: the ESS bit of the capability information, which follows timestamp (8 bytes) and
    /// beacon interval (2), is set by access points only (clauses 8.3.3.2, 8.4.1.4).
    pub fn is_beacon_of_ap(&self, bytes: &[u8]) -> bool {
        self.kind == Kind::Beacon && bytes.get(self.len + 10).is_some_and(|capability| capability & 1 != 0)
    }

    /// Offset of the body in `bytes`; in a data frame, after the LLC/SNAP header if there is one. Not beyond the end.
    pub fn body_at(&self, bytes: &[u8]) -> usize {
        let llc_at = self.llc_at(bytes);
        let snap = self.kind == Kind::Data && parse_snap(&bytes[llc_at..]).is_ok();
        llc_at + if snap { SNAP_LEN } else { 0 }
    }

    /// Whether the body, an MSDU (with LLC/SNAP), A-MSDU or MMPDU, is longer than the standard can send. Linux's own limit is looser:
    /// it counts the IP packet.
    pub fn body_is_too_long(&self, bytes: &[u8]) -> bool {
        let limit = if self.a_msdu { MAX_A_MSDU_BYTES } else { MAX_MSDU_BYTES };
        bytes.len() - self.llc_at(bytes) > limit + if self.protected { MAX_SECURITY_BYTES } else { 0 }
    }

    fn llc_at(&self, bytes: &[u8]) -> usize {
        let at = self.len.min(bytes.len());
        // Linux 6.1 forwards mesh frames without the bit that announces the mesh control field
        let unmarked = self.four_addresses && parse_snap(&bytes[at..]).is_err();
        // clause 8.2.4.7.3: flags, TTL, a sequence number of 4 bytes, and none, one or two addresses
        let mesh = match bytes.get(at) {
            Some(flags) if self.mesh_control || unmarked => 6 + 6 * usize::from((flags & 0b11).min(2)),
            _ => 0,
        };
        (at + mesh).min(bytes.len())
    }

    /// The Ethernet frame from the transmitter to the receiver of this hop; `None`: management, no data, or encrypted.
    pub fn to_ethernet(&self, bytes: &[u8]) -> Option<Ethernet> {
        if self.kind != Kind::Data || self.no_data || self.protected {
            return None;
        }
        let (ethertype, payload) = parse_snap(&bytes[self.llc_at(bytes)..]).ok()?;
        let header = ethernet::Repr { destination: self.receiver, source: self.transmitter, ethertype };
        let mut frame = vec![0; header.buffer_len() + payload.len()];
        header.emit(&mut frame);
        frame[header.buffer_len()..].copy_from_slice(payload);
        let control = ethernet::Frame::new_checked(&frame[..]).is_ok_and(|f| f.is_network_control());
        Some(Ethernet { frame, control })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: MacAddress = [2, 0, 0, 0, 0, 1];
    const B: MacAddress = [2, 0, 0, 0, 0, 2];

    fn frame(control: [u8; 2], rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![control[0], control[1], 0, 0];
        bytes.extend(B);
        bytes.extend(A);
        bytes.extend([0x02, 0xca, 0xff, 0xee, 0, 0, 0x10, 0]);
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn a_block_ack_agreement_is_declined_by_its_recipient_with_the_requests_token() {
        // token 9, parameters 0x1002 (immediate, TID 0, 64 MPDUs), timeout 5000 TU, start 0
        let request = frame([0xd0, 0], &[3, 0, 9, 0x02, 0x10, 0x88, 0x13, 0, 0]);
        let response = declined_block_ack(&request).unwrap();
        let header = Header::parse(&response).unwrap();
        assert_eq!((header.kind, header.receiver, header.transmitter), (Kind::Management, A, B));
        assert_eq!(response[24..], [3, 1, 9, 37, 0, 0x02, 0x10, 0x88, 0x13]);
        assert_eq!(declined_block_ack(&response), None);
        let other = frame([0xd0, 0], &[3, 2, 9, 0x02, 0x10, 0x88, 0x13, 0, 0]);
        assert_eq!(declined_block_ack(&other), None, "a DELBA");
        assert_eq!(declined_block_ack(&request[..30]), None);
    }

    const SNAP_IP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

    #[test]
    fn qos_data_of_an_ibss_is_its_ethernet_frame() {
        // an IP packet of DSCP CS6
        let bytes = frame([0x88, 0], &[&[0, 0][..], &SNAP_IP, &[0x45, 0xc0, 1, 2]].concat());
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.kind, header.receiver, header.transmitter), (Kind::Data, B, A));
        assert_eq!(header.body_at(&bytes), 24 + 2 + 8);
        let ethernet = header.to_ethernet(&bytes).unwrap();
        assert_eq!(ethernet.frame, [&B[..], &A, &[8, 0, 0x45, 0xc0, 1, 2]].concat());
        assert!(ethernet.control);
    }

    #[test]
    fn a_mesh_frame_is_read_after_its_mesh_control() {
        let mesh = [0x01, 31, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9];
        let four = [4, 4, 4, 4, 4, 4, 0, 1];
        let bytes = frame([0x88, 0x03], &[&four[..], &mesh, &SNAP_IP, &[0x45, 0]].concat());
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.to_ethernet(&bytes).unwrap().frame[12..], [8, 0, 0x45, 0]);
        // as a relay of Linux 6.1 sends it
        let unmarked =
            frame([0x88, 0x03], &[&[4, 4, 4, 4, 4, 4, 0, 0][..], &[0, 31, 0, 0, 0, 1], &SNAP_IP, &[0x45, 0]].concat());
        assert_eq!(Header::parse(&unmarked).unwrap().to_ethernet(&unmarked).unwrap().frame[12..], [8, 0, 0x45, 0]);
    }

    #[test]
    fn beacons_and_management_have_no_ethernet_frame() {
        let beacon = frame([0x80, 0], &[0; 12]);
        assert_eq!(Header::parse(&beacon).unwrap().kind, Kind::Beacon);
        let action = frame([0xd0, 0], &[3, 0]);
        let header = Header::parse(&action).unwrap();
        assert_eq!((header.kind, header.to_ethernet(&action)), (Kind::Management, None));
    }

    #[test]
    fn only_an_access_points_beacon_has_the_ess_bit() {
        for (capability, of_ap) in [(0x01, true), (0x11, true), (0x02, false), (0x00, false)] {
            let bytes = frame([0x80, 0], &[&[0; 8][..], &[100, 0, capability, 0, 0, 0]].concat());
            assert_eq!(Header::parse(&bytes).unwrap().is_beacon_of_ap(&bytes), of_ap, "{capability:#x}");
        }
        let cut = frame([0x80, 0], &[0; 10]);
        assert!(!Header::parse(&cut).unwrap().is_beacon_of_ap(&cut));
    }

    #[test]
    fn an_encrypted_frame_has_no_ethernet_frame() {
        let bytes = frame([0x88, 0x40], &[&[0, 0][..], &SNAP_IP].concat());
        assert_eq!(Header::parse(&bytes).unwrap().to_ethernet(&bytes), None);
    }

    #[test]
    fn control_frames_and_truncated_frames_are_refused() {
        assert!(Header::parse(&frame([0xb4, 0], &[])).is_err());
        assert!(Header::parse(&frame([0x88, 0], &[])).is_err(), "no room for QoS control");
        assert!(Header::parse(&[0x88; 10]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_from_the_air_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert!(header.body_at(&bytes) <= bytes.len());
                let _ = header.to_ethernet(&bytes);
            }
        }
    }
}
