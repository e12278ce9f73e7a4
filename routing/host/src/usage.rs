//! Flows that used the routes: a packet socket that the kernel fills block by block (packet(7), TPACKET_V3).
//!
//! Design A keeps data packets in the kernel. A filter in the kernel selects them, and the ring gets their IPv4 headers.
//! The daemon wakes once per block at any packet rate: a block is handed over when it is full or [`BLOCK_MS`] after its
//! first packet.

use crate::attach::attach;
use crate::error::{failed, HostError, Result};
use crate::sys;
use manet_engine::packet_filter::{Step, To, ETHERTYPE, PACKET_TYPE};
use manet_routing::packet::ipv4::{protocol, HEADER_LEN};
use manet_routing::{Flow, Node};
use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

const BLOCK_MS: u32 = 40;
/// Bytes per block. A header takes 128 bytes: 1000 packets in all, more than a radio of 54 Mbit/s sends in 40 ms.
const BLOCK: usize = 32 * 1024;
const BLOCKS: usize = 4;

// linux/if_packet.h
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_VERSION: i32 = 10;
const TPACKET_V3: i32 = 2;
const STATUS_KERNEL: u32 = 0;
const STATUS_USER: u32 = 1;
/// Offsets in tpacket_block_desc.
const BLOCK_STATUS: usize = 8;
const BLOCK_PACKETS: usize = 12;
const BLOCK_FIRST: usize = 16;
/// Offsets in tpacket3_hdr.
const PACKET_NEXT: usize = 0;
const PACKET_LEN: usize = 12;
const PACKET_NET: usize = 26;
const PACKET_HOST: u32 = 0;
const PACKET_OUTGOING: u32 = 4;
const ETH_P_ALL: u16 = 3;
const ETH_P_IP: u32 = 0x800;

/// The packet socket and its ring.
pub struct Usage {
    socket: OwnedFd,
    ring: NonNull<c_void>,
    next_block: usize,
}

impl Usage {
    /// `interface`: index of the radio. The protocol's own datagrams on `port` do not count. Fails without root.
    pub fn open(interface: u32, node: &Node, port: u16) -> Result<Self> {
        let fail = |e| failed("the route-use socket", e);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // not yet bound to a protocol: no packet may arrive before filter and ring exist
        let fd = socket(AddressFamily::Packet, SockType::Datagram, flags, None).map_err(fail)?;
        attach(&fd, &data_packets(node, port), HEADER_LEN as u32).map_err(fail)?;
        sys::set(&fd, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V3).map_err(fail)?;
        let frame = 2048;
        let request: [u32; 7] = [BLOCK as u32, BLOCKS as u32, frame, (BLOCK * BLOCKS) as u32 / frame, BLOCK_MS, 0, 0];
        sys::set(&fd, libc::SOL_PACKET, PACKET_RX_RING, &request).map_err(fail)?;
        let length = NonZeroUsize::new(BLOCK * BLOCKS).ok_or_else(|| HostError("no ring".to_owned()))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; the ring has this length
        let ring = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, &fd, 0) }.map_err(fail)?;
        let usage = Self { socket: fd, ring, next_block: 0 };
        sys::bind_to_link(&usage.socket, interface, ETH_P_ALL).map_err(fail)?;
        Ok(usage)
    }

    /// The flows of all complete blocks, each pair of source and destination once.
    pub fn flows(&mut self) -> Vec<Flow> {
        let mut packets: BTreeMap<(Ipv4Addr, Ipv4Addr), u32> = BTreeMap::new();
        for _ in 0..BLOCKS {
            let start = self.next_block * BLOCK;
            let status = self.status(start);
            if status.load(Ordering::Acquire) & STATUS_USER == 0 {
                break;
            }
            self.read_block(start, &mut packets);
            status.store(STATUS_KERNEL, Ordering::Release);
            self.next_block = (self.next_block + 1) % BLOCKS;
        }
        let flow = |((source, destination), packets)| Flow { source, destination, packets };
        packets.into_iter().map(flow).collect()
    }

    fn read_block(&self, start: usize, packets: &mut BTreeMap<(Ipv4Addr, Ipv4Addr), u32>) {
        let word = |at: usize| u32::from_ne_bytes(self.bytes(start + at));
        let mut at = word(BLOCK_FIRST) as usize;
        for _ in 0..word(BLOCK_PACKETS) {
            let net = usize::from(u16::from_ne_bytes(self.bytes(start + at + PACKET_NET)));
            // no header is cut: the filter has read its last word
            if word(at + PACKET_LEN) as usize >= HEADER_LEN {
                let source: [u8; 4] = self.bytes(start + at + net + 12);
                let destination: [u8; 4] = self.bytes(start + at + net + 16);
                *packets.entry((source.into(), destination.into())).or_default() += 1;
            }
            match word(at + PACKET_NEXT) as usize {
                0 => break,
                next => at += next,
            }
        }
    }

    /// `N` bytes of the ring; zeroes beyond its end.
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        if at.checked_add(N).is_none_or(|end| end > BLOCK * BLOCKS) {
            return [0; N];
        }
        // SAFETY: within the mapping; the kernel does not write to a block until its status is returned
        unsafe { self.ring.as_ptr().cast::<u8>().add(at).cast::<[u8; N]>().read_unaligned() }
    }

    fn status(&self, block: usize) -> &AtomicU32 {
        debug_assert!(block + BLOCK_STATUS + 4 <= BLOCK * BLOCKS);
        // SAFETY: within the mapping, aligned as the kernel has it (blocks begin at pages), accessed atomically only
        unsafe { AtomicU32::from_ptr(self.ring.as_ptr().cast::<u8>().add(block + BLOCK_STATUS).cast()) }
    }

    /// Packets lost for lack of room since the last call. The call also clears the error of an interface that went down.
    pub fn lost(&self) -> u64 {
        let _: Result<i32, Errno> = sys::get(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR, 0);
        // tpacket_stats_v3: packets, drops, freezes
        sys::get(&self.socket, libc::SOL_PACKET, PACKET_STATISTICS, [0u32; 3]).map_or(0, |s| u64::from(s[1]))
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and no reference into it is left
        let _ = unsafe { munmap(self.ring, BLOCK * BLOCKS) };
    }
}

impl AsFd for Usage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A filter for IPv4 unicast packets that this node sends or forwards, and those that arrive for it (at a gateway: for the
/// wires as well), without the protocol's own datagrams. A packet of a SOCK_DGRAM socket begins at the IPv4 header.
fn data_packets(node: &Node, port: u16) -> Vec<Step> {
    use Step::{And, AnyBit, AtLeast, Equal, IndexHeader, LoadByte, LoadHalf, LoadHalfIndexed, LoadWord};
    let bits = u32::MAX.checked_shl(32 - u32::from(node.network.1)).unwrap_or(0);
    let network = u32::from(node.network.0) & bits;
    // a node without wires is no gateway: the filter drops all other arrivals
    let to_wires = if node.wires.is_empty() { To::Drop } else { To::Next };
    vec![
        LoadWord(ETHERTYPE),
        Equal(ETH_P_IP, To::Next, To::Drop),
        LoadWord(PACKET_TYPE),
        Equal(PACKET_OUTGOING, To::Skip(5), To::Next),
        Equal(PACKET_HOST, To::Next, To::Drop),
        LoadWord(16),
        Equal(u32::from(node.address), To::Skip(4), to_wires),
        And(bits),
        Equal(network, To::Drop, To::Next),
        // destination: no multicast or broadcast
        LoadByte(16),
        AtLeast(224, To::Drop, To::Next),
        LoadByte(9),
        Equal(u32::from(protocol::UDP), To::Next, To::Accept),
        LoadHalf(6),
        AnyBit(0x1fff, To::Accept, To::Next),
        IndexHeader,
        LoadHalfIndexed(2),
        Equal(u32::from(port), To::Drop, To::Accept),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_engine::packet_filter::{compile, Program};
    use manet_routing::packet::ipv4::Repr;

    const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);
    const INTERNET: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
    const BROADCAST_FRAME: u32 = 1;

    fn node(wires: Vec<(Ipv4Addr, u8)>) -> Node {
        let network = (Ipv4Addr::new(10, 0, 0, 0), 8);
        let mac = [2, 0, 0, 0, 0, 1];
        let (mtu, seed, feedback, restarted, notices) = (1500, 1, true, false, false);
        Node { wires, mtu, seed, feedback, restarted, notices, ..Node::new(1, US, network, mac) }
    }

    fn counted(node: &Node, packet: &[u8], packet_type: u32) -> bool {
        is_counted(node, packet, ETH_P_IP, packet_type)
    }

    fn is_counted(node: &Node, packet: &[u8], ethertype: u32, packet_type: u32) -> bool {
        let program = Program::new(compile(&data_packets(node, 654), HEADER_LEN as u32)).unwrap();
        let ancillary = |at| [(ETHERTYPE, ethertype), (PACKET_TYPE, packet_type)].into_iter().find(|(of, _)| *of == at);
        program.run(packet, |at| ancillary(at).map(|(_, value)| value)) == HEADER_LEN as u32
    }

    fn packet(kind: u8, destination: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
        let source = Ipv4Addr::new(10, 0, 0, 3);
        Repr { tos: 0, identification: 0, dont_fragment: false, ttl: 9, protocol: kind, source, destination }
            .packet(payload)
    }

    #[test]
    fn sent_forwarded_and_received_packets_count() {
        let tcp = |to| packet(protocol::TCP, to, &[0; 20]);
        assert!(counted(&node(vec![]), &tcp(FAR), PACKET_OUTGOING));
        assert!(counted(&node(vec![]), &tcp(US), PACKET_HOST));
        // a forwarded packet is seen a second time on departure
        assert!(!counted(&node(vec![]), &tcp(FAR), PACKET_HOST));
        assert!(!counted(&node(vec![]), &tcp(US), BROADCAST_FRAME));
        assert!(!counted(&node(vec![]), &tcp(Ipv4Addr::BROADCAST), PACKET_OUTGOING));
        assert!(!counted(&node(vec![]), &tcp(Ipv4Addr::new(224, 0, 0, 251)), PACKET_OUTGOING));
        assert!(!is_counted(&node(vec![]), &tcp(FAR), 0x806, PACKET_OUTGOING));
    }

    #[test]
    fn a_gateway_counts_packets_for_its_wires() {
        let gateway = node(vec![(Ipv4Addr::new(192, 168, 1, 0), 30)]);
        let tcp = packet(protocol::TCP, INTERNET, &[0; 20]);
        assert!(counted(&gateway, &tcp, PACKET_HOST) && !counted(&node(vec![]), &tcp, PACKET_HOST));
        assert!(!counted(&gateway, &packet(protocol::TCP, FAR, &[0; 20]), PACKET_HOST));
    }

    #[test]
    fn the_protocols_own_datagrams_do_not_count_but_later_fragments_of_others_do() {
        let udp =
            |port: u16| packet(protocol::UDP, FAR, &[[2, 0x8e].as_slice(), &port.to_be_bytes(), &[0; 4]].concat());
        assert!(!counted(&node(vec![]), &udp(654), PACKET_OUTGOING));
        assert!(counted(&node(vec![]), &udp(53), PACKET_OUTGOING));
        let mut fragment = udp(654);
        fragment[7] = 1;
        assert!(counted(&node(vec![]), &fragment, PACKET_OUTGOING));
    }
}
