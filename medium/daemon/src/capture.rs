//! Captures of many interfaces by one process, in the files that tcpdump(8) writes (pcap-savefile(5)).
//!
//! Each interface has a packet socket (packet(7)), opened in its network namespace, and a file `NAME.pcap` with the first bytes of
//! each packet; with a UDP port also `NAME.routing.pcap` with that port's packets whole. Times are the kernel's, in nanoseconds.
//! The process sleeps between two rounds over the sockets, in which packets wait in the kernel: it wakes once for many packets,
//! and passes whole records to the files.
//! A VLAN tag that the kernel has taken from a frame is put back, as tcpdump does.

use crate::recorder::Written;
use crate::tap::Namespace;
use crate::DaemonError;
use nix::errno::Errno;
use nix::libc;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{setsockopt, socket, sockopt, AddressFamily, SockFlag, SockType};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Magic number of a file with times in nanoseconds, version 2.4, and Ethernet's link type (pcap-savefile(5)).
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
const LINKTYPE_ETHERNET: u32 = 1;
/// Snap length of whole packets; no packet of an interface is longer (MAXIMUM_SNAPLEN of libpcap).
pub const WHOLE: u32 = 262_144;
/// Default of the packets that wait for the next round, bytes of each socket, as much as tcpdump has. The kernel doubles it for its
/// own records: 1,800 packets of 1,500 bytes, twice as much as 802.11b's 11 Mbit/s bring in a second.
pub const RECEIVE_BUFFER: u32 = 2 << 20;
/// Sleep between two rounds.
const PAUSE: Duration = Duration::from_millis(20);
const _: () = assert!(PAUSE.as_millis() < 1000, "a packet is in its file within a second");
/// A VLAN tag in a frame: protocol and tag control (IEEE 802.1Q), between the addresses and the frame's own type.
const TAG: usize = 4;
const ADDRESSES: usize = 12;
/// Maximum number of packets from one socket in a round, so that a flood leaves the others their turn: more than can wait, since the shortest packet takes
/// 768 bytes of the buffer (SKB_TRUESIZE of the kernel).
const PACKETS_AT_ONCE: usize = 8192;
/// A file's records are passed on when they are so many bytes, and at the end of each round.
const BLOCK: usize = 1 << 16;

/// An interface to capture: `NAME:NETNS:IFNAME`, or `NAME:NETNS:IFNAME:PORT` with the packets of a UDP port in a file of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of its files.
    pub name: String,
    /// Network namespace.
    pub netns: PathBuf,
    /// The interface in it.
    pub ifname: String,
    /// UDP port whose packets are captured whole.
    pub udp_port: Option<u16>,
}

impl FromStr for Interface {
    type Err = NotAnInterface;

    fn from_str(text: &str) -> Result<Self, NotAnInterface> {
        let parts: Vec<&str> = text.split(':').collect();
        let (place, port) = match parts[..] {
            [name, netns, ifname] => ([name, netns, ifname], None),
            [name, netns, ifname, port] => ([name, netns, ifname], Some(port.parse().map_err(|_| NotAnInterface)?)),
            _ => return Err(NotAnInterface),
        };
        if place.contains(&"") || place[0].contains('/') {
            return Err(NotAnInterface);
        }
        let [name, netns, ifname] = place;
        Ok(Self { name: name.to_owned(), netns: netns.into(), ifname: ifname.to_owned(), udp_port: port })
    }
}

/// The text is not `NAME:NETNS:IFNAME[:PORT]`.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAnInterface;

impl fmt::Display for NotAnInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("give NAME:NETNS:IFNAME or NAME:NETNS:IFNAME:PORT, e.g. sta1:/run/netns/sta1:wlan0:698")
    }
}
impl std::error::Error for NotAnInterface {}

/// Of all captures.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of each packet that `NAME.pcap` keeps.
    pub snap: u32,
    /// Bytes of packets of an interface that wait in the kernel.
    pub buffer: u32,
}

/// Captures until a signal; returns one line for each interface that lost packets, and `wrote NAME BYTES CRC32` for each file.
///
/// # Errors
/// An interface or file that cannot be opened; a file that cannot be written; an interface that disappeared. The files hold all
/// packets of earlier rounds; that of the interface with the error also those that it had received since.
pub fn run(
    interfaces: &[Interface],
    folder: &Path,
    limits: Limits,
    signals: &SignalFd,
) -> Result<Vec<String>, DaemonError> {
    let mut captures =
        interfaces.iter().map(|i| Capture::open(i, folder, limits)).collect::<Result<Vec<_>, DaemonError>>()?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(no_epoll)?;
    let sockets = captures.iter().map(|capture| capture.socket.as_fd()).chain([signals.as_fd()]);
    for (number, socket) in sockets.enumerate() {
        epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, number as u64)).map_err(no_epoll)?;
    }
    println!("listening on {} interfaces", captures.len());
    std::io::stdout().flush()?;

    let mut room = vec![0; TAG + WHOLE as usize];
    let mut events = vec![EpollEvent::empty(); captures.len() + 1];
    loop {
        let ready = match epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(ready) => &events[..ready],
            Err(Errno::EINTR) => continue,
            Err(e) => return Err(no_epoll(e)),
        };
        let (mut stop, mut drained) = (false, true);
        for event in ready {
            match captures.get_mut(event.data() as usize) {
                Some(capture) => drained &= capture.round(&mut room)?,
                None => stop = true,
            }
        }
        if stop {
            break;
        }
        if drained {
            std::thread::sleep(PAUSE);
        }
    }
    let mut lines = Vec::new();
    for mut capture in captures {
        capture.round(&mut room)?;
        lines.extend(capture.end());
    }
    Ok(lines)
}

/// One interface: its socket and its files.
struct Capture {
    name: String,
    ifname: String,
    socket: OwnedFd,
    packets: Output,
    /// The packets of a UDP port.
    routing: Option<(u16, Output)>,
}

impl Capture {
    fn open(interface: &Interface, folder: &Path, Limits { snap, buffer }: Limits) -> Result<Self, DaemonError> {
        let name = &interface.name;
        let socket = Namespace::open(&interface.netns)?
            .inside(|| packet_socket(&interface.ifname, buffer as usize))
            .map_err(|e| DaemonError(format!("{name}: {e}")))?;
        let packets = Output::create(folder.join(format!("{name}.pcap")), snap)?;
        let routing = interface
            .udp_port
            .map(|port| {
                Ok::<_, DaemonError>((port, Output::create(folder.join(format!("{name}.routing.pcap")), WHOLE)?))
            })
            .transpose()?;
        Ok(Self { name: name.clone(), ifname: interface.ifname.clone(), socket, packets, routing })
    }

    /// Moves the waiting packets to the files, also before an error; returns whether none are left. `room`: for one packet.
    fn round(&mut self, room: &mut [u8]) -> Result<bool, DaemonError> {
        let drained = self.drain(room);
        self.flush()?;
        drained
    }

    fn drain(&mut self, room: &mut [u8]) -> Result<bool, DaemonError> {
        let most = if self.routing.is_some() { WHOLE } else { self.packets.snap } as usize;
        for _ in 0..PACKETS_AT_ONCE {
            let Some(packet) = self.receive(&mut room[TAG..TAG + most])? else { return Ok(true) };
            let end = TAG + packet.length.min(most);
            // of a tagged frame, too: the kernel filters it without its tag
            let of_routing = self.routing.as_mut().filter(|(port, _)| is_udp_of(&room[TAG..end], *port));
            let (packet, bytes) = match packet.tag {
                None => (packet, &room[TAG..end]),
                Some(tag) => (Packet { length: packet.length + TAG, ..packet }, tagged(&mut room[..end], tag)),
            };
            self.packets.add(&packet, bytes)?;
            if let Some((_, routing)) = of_routing {
                routing.add(&packet, bytes)?;
            }
        }
        Ok(false)
    }

    fn flush(&mut self) -> Result<(), DaemonError> {
        self.packets.flush()?;
        self.routing.as_mut().map_or(Ok(()), |(_, routing)| routing.flush())
    }

    /// The next waiting packet, its first bytes in `buffer`.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<Packet>, DaemonError> {
        loop {
            match receive(&self.socket, buffer) {
                Ok(packet) => return Ok(Some(packet)),
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                // set down, which passes, or removed, which does not
                Err(Errno::ENETDOWN) if bound_to(&self.socket) > 0 => {}
                Err(Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO) => {
                    return Err(DaemonError(format!("{}: interface {} disappeared", self.name, self.ifname)));
                }
                Err(e) => return Err(DaemonError(format!("{}: {}: {}", self.name, self.ifname, e.desc()))),
            }
        }
    }

    /// The lines about it: lost packets, then its files.
    fn end(self) -> impl Iterator<Item = String> {
        let drops = dropped(&self.socket);
        let lost = (drops > 0).then(|| format!("{}: {drops} packets dropped by kernel", self.name));
        let files = [Some(self.packets), self.routing.map(|(_, output)| output)];
        lost.into_iter().chain(files.into_iter().flatten().map(|output| output.written().to_string()))
    }
}

/// Time since 1970, length of a packet on its interface, and the VLAN tag that the kernel took from it.
#[derive(Default)]
struct Packet {
    time: Duration,
    length: usize,
    tag: Option<[u8; TAG]>,
}

/// A frame with a tag; `room` has TAG bytes before it.
fn tagged(room: &mut [u8], tag: [u8; TAG]) -> &[u8] {
    let addresses = ADDRESSES.min(room.len() - TAG);
    room.copy_within(TAG..TAG + addresses, 0);
    room[addresses..addresses + TAG].copy_from_slice(&tag);
    room
}

/// A capture file.
struct Output {
    file: File,
    path: PathBuf,
    snap: u32,
    waiting: Vec<u8>,
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl Output {
    fn create(path: PathBuf, snap: u32) -> Result<Self, DaemonError> {
        let file =
            File::create(&path).map_err(|e| DaemonError(format!("{}: {e}; does the folder exist?", path.display())))?;
        let mut waiting = Vec::new();
        waiting.extend(MAGIC.to_le_bytes());
        waiting.extend(VERSION.iter().flat_map(|v| v.to_le_bytes()));
        waiting.extend([0; 8]); // times are UTC
        waiting.extend(snap.to_le_bytes());
        waiting.extend(LINKTYPE_ETHERNET.to_le_bytes());
        let mut output = Self { file, path, snap, waiting, bytes: 0, sum: crc32fast::Hasher::new() };
        output.flush()?;
        Ok(output)
    }

    /// Adds a packet, of which `bytes` were received.
    fn add(&mut self, packet: &Packet, bytes: &[u8]) -> Result<(), DaemonError> {
        let kept = &bytes[..bytes.len().min(self.snap as usize)];
        let time = packet.time;
        for field in [time.as_secs() as u32, time.subsec_nanos(), kept.len() as u32, packet.length as u32] {
            self.waiting.extend(field.to_le_bytes());
        }
        self.waiting.extend(kept);
        if self.waiting.len() >= BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    /// Passes the waiting records to the file: whole ones, so that it can be read while it grows.
    fn flush(&mut self) -> Result<(), DaemonError> {
        if !self.waiting.is_empty() {
            self.file.write_all(&self.waiting).map_err(|e| DaemonError(format!("{}: {e}", self.path.display())))?;
            self.sum.update(&self.waiting);
            self.bytes += self.waiting.len() as u64;
            self.waiting.clear();
        }
        Ok(())
    }

    /// The line about a file that is complete (formats/results.md, "Written files"), by its place in the folder of the run.
    fn written(self) -> Written {
        let part = |path: Option<&std::ffi::OsStr>| path.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let (folder, name) = (part(self.path.parent().and_then(Path::file_name)), part(self.path.file_name()));
        Written::new(format!("{folder}/{name}"), self.bytes, self.sum.finalize())
    }
}

/// Whether an Ethernet frame is a UDP packet to or from a port, as tcpdump's `udp port`: of a fragmented packet the first part.
fn is_udp_of(frame: &[u8], port: u16) -> bool {
    const UDP: u8 = 17;
    let number = |at: usize| frame.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let ports_at = match number(12) {
        Some(0x0800) if frame.get(23) == Some(&UDP) && number(20).is_some_and(|offset| offset & 0x1fff == 0) => {
            14 + 4 * usize::from(frame[14] & 0x0f)
        }
        Some(0x86dd) if frame.get(20) == Some(&UDP) => 14 + 40,
        _ => return false,
    };
    [number(ports_at), number(ports_at + 2)].contains(&Some(port))
}

fn no_epoll(e: Errno) -> DaemonError {
    DaemonError(format!("epoll: {}", e.desc()))
}

/// A socket that receives every packet of an interface of the current namespace, in both directions, with its time.
fn packet_socket(ifname: &str, buffer: usize) -> Result<OwnedFd, DaemonError> {
    let failed = |step: &str, e: Errno| DaemonError(format!("interface {ifname}: {step}: {}; run as root", e.desc()));
    // without a protocol it receives nothing before it is bound to its interface
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket =
        socket(AddressFamily::Packet, SockType::Raw, flags, None).map_err(|e| failed("no packet socket", e))?;
    let index = nix::net::if_::if_nametoindex(ifname)
        .map_err(|e| DaemonError(format!("interface {ifname}: {}", e.desc())))? as libc::c_int;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(|e| failed("no times of packets", e))?;
    set_packet_option(&socket, libc::PACKET_AUXDATA, &1).map_err(|e| failed("no VLAN tags", e))?;
    // beyond the host's limit if it lets us
    setsockopt(&socket, sockopt::RcvBufForce, &buffer)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &buffer))
        .map_err(|e| failed("no room for packets", e))?;
    // as tcpdump: a radio of the kernel then hands over what it overhears
    let member = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_packet_option(&socket, libc::PACKET_ADD_MEMBERSHIP, &member).map_err(|e| failed("no promiscuous mode", e))?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: a sockaddr_ll is an address of a packet socket; the descriptor is open
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::addr_of!(address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    Errno::result(bound).map_err(|e| failed("cannot be captured", e))?;
    Ok(socket)
}

/// Sets an option of a packet socket; `value` is of the type that packet(7) names for it.
fn set_packet_option<T: Copy>(socket: &OwnedFd, option: libc::c_int, value: &T) -> Result<(), Errno> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of the value; the descriptor is open
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    Errno::result(set).map(drop)
}

/// Room for the control messages of a packet: its time, and a tpacket_auxdata. Aligned as their headers.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// The next waiting packet of a socket, its first bytes in `buffer`.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Packet, Errno> {
    let mut control = Control([0; 128]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: msghdr is plain data for which all zeroes is a value
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // MSG_TRUNC: the length on the interface
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the kernel writes at most their lengths to buffer and control, which live until its return; the descriptor is open
    let length = Errno::result(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, flags) })?;
    let mut packet = Packet { length: length as usize, ..Packet::default() };
    // SAFETY: the kernel has filled in the message; the headers that the macros find lie within its control
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&message) };
    // SAFETY: a header that is not null lies within the control
    while let Some(one) = unsafe { header.as_ref() } {
        // SAFETY: the data behind a header of this level and type is of this type, unaligned or not
        match (one.cmsg_level, one.cmsg_type) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => {
                let at: libc::timespec = unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(one).cast()) };
                packet.time = Duration::new(at.tv_sec as u64, at.tv_nsec as u32);
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                let about: libc::tpacket_auxdata = unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(one).cast()) };
                packet.tag = tag_of(&about);
            }
            _ => {}
        }
        // SAFETY: as of the first header
        header = unsafe { libc::CMSG_NXTHDR(&message, header) };
    }
    Ok(packet)
}

/// The VLAN tag that the kernel took from a frame.
fn tag_of(about: &libc::tpacket_auxdata) -> Option<[u8; TAG]> {
    (about.tp_status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let [p, q] = about.tp_vlan_tpid.to_be_bytes();
        let [c, d] = about.tp_vlan_tci.to_be_bytes();
        [p, q, c, d]
    })
}

/// Index of the interface of a packet socket; the kernel makes it -1 when it removes the interface.
fn bound_to(socket: &OwnedFd) -> libc::c_int {
    // SAFETY: sockaddr_ll is plain data for which all zeroes is a value
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the address; the descriptor is open
    let got = unsafe { libc::getsockname(socket.as_raw_fd(), std::ptr::addr_of_mut!(address).cast(), &mut length) };
    if got == 0 {
        address.sll_ifindex
    } else {
        -1
    }
}

/// Number of packets for which a packet socket had no room since the last call.
fn dropped(socket: &OwnedFd) -> u32 {
    let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: PACKET_STATISTICS writes at most `length` bytes to the counts; the descriptor is open
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            std::ptr::addr_of_mut!(counts).cast(),
            &mut length,
        )
    };
    if got == 0 {
        counts.tp_drops
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_read_with_and_without_a_port() {
        let plain: Interface = "sta1:/proc/7/fd/3:wlan0".parse().unwrap();
        assert_eq!((plain.name.as_str(), plain.ifname.as_str(), plain.udp_port), ("sta1", "wlan0", None));
        assert_eq!("h1.eth1:/run/netns/h1:eth1:698".parse::<Interface>().unwrap().udp_port, Some(698));
        for wrong in
            ["", "sta1", "sta1:/a", "sta1::wlan0", "../sta1:/a:wlan0", "sta1:/a:wlan0:x", "sta1:/a:wlan0:70000"]
        {
            assert_eq!(wrong.parse::<Interface>(), Err(NotAnInterface), "{wrong}");
        }
    }

    fn ipv4(protocol: u8, words: u8, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut frame = [[0; 12].as_slice(), &[8, 0, 0x40 | words]].concat();
        frame.resize(14 + 4 * usize::from(words), 0);
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        frame[23] = protocol;
        frame.extend(ports.iter().flat_map(|p| p.to_be_bytes()));
        frame
    }

    #[test]
    fn packets_of_a_udp_port_are_found_by_either_end() {
        assert!(is_udp_of(&ipv4(17, 5, 0, [698, 9]), 698) && is_udp_of(&ipv4(17, 5, 0, [9, 698]), 698));
        assert!(is_udp_of(&ipv4(17, 6, 0x2000, [9, 698]), 698), "with options, the first of several fragments");
        assert!(!is_udp_of(&ipv4(17, 5, 1, [698, 698]), 698), "a later fragment has no ports");
        assert!(!is_udp_of(&ipv4(6, 5, 0, [698, 698]), 698) && !is_udp_of(&ipv4(17, 5, 0, [9, 10]), 698));
        let mut ipv6 = [0; 58];
        (ipv6[12], ipv6[13], ipv6[20]) = (0x86, 0xdd, 17);
        ipv6[56..].copy_from_slice(&698u16.to_be_bytes());
        assert!(is_udp_of(&ipv6, 698));
        assert!((0..58).all(|length| !is_udp_of(&ipv6[..length], 698)), "a frame that is cut off");
    }

    #[test]
    fn a_tag_stands_between_addresses_and_type_also_of_a_frame_that_is_cut_off() {
        let room = |frame: &[u8]| [&[0; TAG], frame].concat();
        let frame: Vec<u8> = (1..=20).collect();
        let tag = [0x81, 0, 0, 5];
        assert_eq!(tagged(&mut room(&frame), tag), [&frame[..12], &tag, &frame[12..]].concat());
        assert_eq!(tagged(&mut room(&frame[..7]), tag), [&frame[..7], &tag].concat());
    }

    #[test]
    fn a_file_is_readable_after_each_round_and_its_sum_is_that_of_its_bytes() {
        let folder = std::env::temp_dir().join(format!("manet-capture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("sta1.pcap");
        let mut output = Output::create(path.clone(), 4).unwrap();
        let header = std::fs::read(&path).unwrap();
        assert_eq!(header, [&[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 8], &[4, 0, 0, 0, 1, 0, 0, 0]].concat());
        let packet = Packet { time: Duration::new(1, 2), length: 1500, tag: None };
        output.add(&packet, &[7; 60]).unwrap();
        output.flush().unwrap();
        // seconds, nanoseconds, 4 bytes kept of 1500 (0x5dc)
        let record = [1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0xdc, 5, 0, 0, 7, 7, 7, 7];
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole, [&header[..], &record].concat());
        let name = folder.file_name().unwrap().to_string_lossy();
        assert_eq!(output.written().to_string(), format!("wrote {name}/sta1.pcap 44 {:08x}", crc32fast::hash(&whole)));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
