//! `manet-P run`: one thread that serves packets, deadlines and requests until it is stopped.

use crate::capture::HeldCapture;
use crate::config::{is_host, Config, FeedbackSource, Loaded};
use crate::error::{failed, HostError, Result};
use crate::feedback::Feedback;
use crate::frames::{self, Frames};
use crate::kernel::Kernel;
use crate::notes::{append_to, Notes};
use crate::outlet::{LoggedProtocol, Outlet};
use crate::raw::{Listener, Sender};
use crate::replay::Started;
use crate::rtnetlink::LinkEvents;
use crate::status::{self, Request, StatusSocket};
use crate::sys;
use crate::tun::Received;
use crate::udp::Udp;
use crate::usage::Usage;
use manet_engine::event_log::Logged;
use manet_engine::real_time::{Clock, RealTime};
use manet_engine::Duration;
use manet_routing::packet::{arp, ipv4};
use manet_routing::{Bytes, Carrier, Counters, Held, Input, Output, Protocol};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::Path;

/// An idle daemon wakes once a minute.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// Interval at which nl80211 is polled.
const POLL: Duration = Duration::from_millis(100);
/// Packets read from one socket before the other sockets are served.
const PACKETS_AT_ONCE: usize = 64;
/// Upper bound of a packet or feedback message, in bytes.
const BUFFER: usize = 65_536 + 64;
/// Upper bound of a control message, in bytes; those of OLSR (RFC 3626) are the longest, at most one MTU.
const MAX_CONTROL: usize = 16 * 1024;

const SIGNAL: u64 = 0;
const UDP: u64 = 1;
const TUN: u64 = 2;
const USAGE: u64 = 3;
const FEEDBACK: u64 = 4;
const STATUS: u64 = 5;
const FRAMES: u64 = 6;
const LINK: u64 = 7;
const ARP: u64 = 8;
const FIRST_TUNNEL: u64 = 16;

struct Daemon<P: Protocol> {
    driver: RealTime<LoggedProtocol<P>>,
    outlet: Outlet,
    usage: Option<Usage>,
    tunnels: Vec<Listener>,
    link: LinkEvents,
    held: HeldCapture,
    /// Version of the present filter of overheard frames.
    overheard_version: u64,
    buffer: Vec<u8>,
    stop: bool,
    error: Option<HostError>,
}

/// Runs the daemon until a signal or a status client stops it. Fails if the host refuses what the daemon needs, or if notes
/// or events were lost.
pub fn run<P: Protocol>(loaded: Loaded<P>) -> Result<()> {
    let Loaded { mut config, options } = loaded;
    let signals = stop_signals()?;
    // fails if another daemon is running, before any of its state is touched
    let status = StatusSocket::open(config.status.as_deref())?;
    let kernel = Kernel::take_over(&config, P::CARRIER, P::tun_mtu(&config.node, &options))?;
    config.node.restarted |= kernel.restarted;
    let restarted = config.node.restarted;
    let started = Started { restarted, clock_ns: Clock::starting_now().epoch_ns() };
    let log = config.events.as_deref().map(|path| event_log(path, &started)).transpose()?;
    let (deliveries, resolves) = (P::wants_deliveries(&options), P::resolves_addresses(&options));
    let mut machine = P::new(config.node.clone(), options)?;
    machine.synchronise(started.clock_ns);
    if config.held.is_some() {
        machine.held().into_iter().for_each(Held::keep_journal);
    }
    let sockets = Sockets::open::<P>(&config, &kernel, deliveries, resolves)?;
    let driver = RealTime::start(Logged::new(machine, log), |output| !matches!(output, Output::Note(_)))?;
    let offset_ns = i128::from(driver.clock().epoch_ns()) - i128::from(config.epoch_ns);
    let notes = Notes::open(config.notes.as_deref(), i64::try_from(offset_ns).unwrap_or(i64::MAX))?;
    let held = HeldCapture::open(config.held.as_deref(), &config.tun, driver.clock().epoch_ns())?;
    let Sockets { udp, frames, arp, sender, feedback, usage, tunnels, link } = sockets;
    let (address, tcp_unreachable) = (config.node.address, config.tcp_unreachable);
    let counters = Counters::default();
    let outlet =
        Outlet { address, kernel, udp, frames, arp, sender, tcp_unreachable, feedback, notes, status, counters };
    let (overheard_version, buffer) = (0, vec![0; BUFFER]);
    let mut daemon =
        Daemon { driver, outlet, usage, tunnels, link, held, overheard_version, buffer, stop: false, error: None };
    daemon.watch(&signals)?;
    let now = daemon.driver.timeline().now();
    daemon.outlet.note(now, "started", address, u64::from(restarted), &[]);
    println!("ready");
    std::io::stdout().flush()?;
    daemon.work(&signals)?;
    daemon.finish()
}

struct Sockets {
    udp: Option<Udp>,
    frames: Option<Frames>,
    arp: Option<Frames>,
    sender: Sender,
    feedback: Feedback,
    usage: Option<Usage>,
    tunnels: Vec<Listener>,
    link: LinkEvents,
}

impl Sockets {
    fn open<P: Protocol>(config: &Config, kernel: &Kernel, deliveries: bool, resolves: bool) -> Result<Self> {
        let node = &config.node;
        let (mut udp, mut usage, mut frames, mut arp) = (None, None, None, None);
        match P::CARRIER {
            Carrier::Udp(port) => {
                udp = Some(Udp::open(&config.interface, port, node.address)?);
                usage = Some(Usage::open(kernel.radio, node, port)?);
            }
            Carrier::Frames => {
                let overhear = !matches!(config.feedback, FeedbackSource::Medium(_));
                let open = |ethertype, overhear| Frames::open(kernel.radio, node.mac, ethertype, overhear);
                frames = Some(open(frames::IPV4, overhear)?);
                arp = resolves.then(|| open(arp::ETHERTYPE, false)).transpose()?;
            }
        }
        let tunnels: Result<_> = P::TUNNELS.iter().map(|p| Listener::open(*p, &config.interface)).collect();
        Ok(Self {
            udp,
            frames,
            arp,
            sender: Sender::open()?,
            feedback: Feedback::open(config, P::CARRIER, kernel.radio, deliveries)?,
            usage,
            tunnels: tunnels?,
            link: LinkEvents::of(kernel.radio)?,
        })
    }
}

impl<P: Protocol> Daemon<P> {
    fn watch(&mut self, signals: &SignalFd) -> Result<()> {
        let watcher = self.driver.watcher();
        watcher.watch(signals, SIGNAL, false)?;
        watcher.watch(&self.link, LINK, false)?;
        if let Some(tun) = self.outlet.kernel.tun() {
            watcher.watch(tun, TUN, false)?;
        }
        if let Some(udp) = &self.outlet.udp {
            watcher.watch(udp, UDP, false)?;
        }
        if let Some(usage) = &self.usage {
            watcher.watch(usage, USAGE, false)?;
        }
        if let Some(frames) = &self.outlet.frames {
            watcher.watch(frames, FRAMES, false)?;
        }
        if let Some(arp) = &self.outlet.arp {
            watcher.watch(arp, ARP, false)?;
        }
        for (i, tunnel) in self.tunnels.iter().enumerate() {
            watcher.watch(tunnel, FIRST_TUNNEL + i as u64, false)?;
        }
        self.outlet.feedback.watch(&watcher, FEEDBACK)?;
        self.outlet.status.watch(watcher, STATUS)?;
        self.driver.set_heartbeat(if self.outlet.feedback.is_polled() { POLL } else { HEARTBEAT });
        Ok(())
    }

    fn work(&mut self, signals: &SignalFd) -> Result<()> {
        while !self.stop {
            let ready = self.driver.turn(&mut self.outlet)?;
            self.record_held();
            self.outlet.status.resume();
            for token in ready {
                self.serve(token, signals);
            }
            if self.outlet.feedback.is_polled() {
                let Outlet { feedback, kernel, counters, .. } = &mut self.outlet;
                let inputs = feedback.poll(kernel, counters);
                self.input_all(inputs);
            }
            self.update_overheard_filter();
        }
        Ok(())
    }

    /// Updates the medium's filter of overheard frames if the machine changed it.
    fn update_overheard_filter(&mut self) {
        let machine = &self.driver.timeline().machine().machine;
        let version = machine.overheard_version();
        if version != self.overheard_version {
            let Outlet { feedback, counters, .. } = &mut self.outlet;
            if feedback.set_overheard_filter(&machine.overheard_filter(), counters) {
                self.overheard_version = version;
            }
        }
    }

    fn serve(&mut self, token: u64, signals: &SignalFd) {
        match token {
            SIGNAL => self.stop |= matches!(signals.read_signal(), Ok(Some(_))),
            UDP => self.read_udp(),
            TUN => self.read_tun(),
            USAGE => self.read_usage(),
            FEEDBACK => {
                let Outlet { feedback, kernel, counters, .. } = &mut self.outlet;
                let inputs = feedback.ready(kernel, counters, &mut self.buffer);
                self.input_all(inputs);
            }
            STATUS => self.outlet.status.accept(),
            FRAMES => self.read_frames(),
            ARP => self.read_arp(),
            LINK => {
                if self.link.came_up() {
                    let refused = self.outlet.kernel.restore_routes();
                    self.outlet.counters.add("routes-refused", refused);
                }
            }
            status::FIRST_TOKEN.. => self.answer(token),
            tunnel => self.read_tunnel((tunnel - FIRST_TUNNEL) as usize),
        }
    }

    fn input(&mut self, input: Input) {
        self.driver.input(input, &mut self.outlet);
        self.record_held();
    }

    fn record_held(&mut self) {
        if self.held.is_open() {
            let now = self.driver.clock().now();
            let journal = self.driver.machine_mut().machine.held().map(Held::take_journal);
            journal.into_iter().flatten().for_each(|change| self.held.record(now, &change));
        }
    }

    fn input_all(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            self.input(input);
        }
    }

    fn count(&mut self, what: &'static str) {
        self.outlet.counters.count(what);
    }

    fn read_udp(&mut self) {
        for _ in 0..PACKETS_AT_ONCE {
            let Some(udp) = &self.outlet.udp else { return };
            let datagram = match udp.receive(&mut self.buffer[..MAX_CONTROL]) {
                Ok(Some(datagram)) => datagram,
                Ok(None) => return,
                // an error of the interface is reported once
                Err(_) => {
                    self.count("receive-failed");
                    continue;
                }
            };
            // broadcasts return to their sender
            if datagram.from == self.outlet.address {
                continue;
            }
            if datagram.length > MAX_CONTROL {
                self.count("truncated");
            } else if !is_host(datagram.from) {
                self.count("no-host-source");
            } else {
                let bytes = Bytes(self.buffer[..datagram.length].to_vec());
                self.count("control-received");
                self.input(Input::Control { from: datagram.from, to: datagram.to, ttl: datagram.ttl, bytes });
            }
        }
    }

    fn read_tun(&mut self) {
        for _ in 0..PACKETS_AT_ONCE {
            let Some(tun) = self.outlet.kernel.tun() else { return };
            match tun.read(&mut self.buffer) {
                Received::Packet(length) => self.miss(length),
                Received::Nothing => return,
                Received::Deleted => {
                    let what = "the TUN device was deleted while the daemon ran; leave it to the daemon";
                    self.error = Some(HostError(what.to_owned()));
                    self.stop = true;
                    return;
                }
            }
        }
    }

    /// Passes on a packet of the TUN device, which is at the start of the buffer.
    fn miss(&mut self, length: usize) {
        let Some(packet) = ipv4::Packet::parse(&self.buffer[..length]) else { return self.count("not-ipv4") };
        let (destination, bytes) = (packet.destination(), Bytes(packet.bytes().to_vec()));
        // design A routes to single hosts; in design B the machine gets all packets
        if P::CARRIER != Carrier::Frames && !is_unicast(destination) {
            return self.count("not-unicast");
        }
        self.input(Input::Packet { bytes });
    }

    fn read_usage(&mut self) {
        let Some(usage) = &mut self.usage else { return };
        let flows = usage.flows();
        if flows.is_empty() {
            // woken by an error of the interface, which this query clears
            let lost = usage.lost();
            return self.outlet.counters.add("usage-lost", lost);
        }
        self.input(Input::Used { flows });
    }

    fn read_frames(&mut self) {
        for _ in 0..PACKETS_AT_ONCE {
            let Some((length, header)) = self.outlet.frames.as_ref().and_then(|f| f.receive(&mut self.buffer)) else {
                return;
            };
            let Some(packet) = ipv4::Packet::parse(&self.buffer[frames::HEADER_LEN..length]) else {
                self.count("not-ipv4");
                continue;
            };
            let (bytes, frames::Header { from, to }) = (Bytes(packet.bytes().to_vec()), header);
            let for_us = to == self.outlet.frames.as_ref().map_or([0; 6], Frames::own) || to[0] & 1 == 1;
            self.input(if for_us { Input::Frame { from, to, bytes } } else { Input::Overheard { from, to, bytes } });
        }
    }

    fn read_arp(&mut self) {
        for _ in 0..PACKETS_AT_ONCE {
            let Some(socket) = &self.outlet.arp else { return };
            let Some((length, frames::Header { from, to })) = socket.receive(&mut self.buffer) else { return };
            // a radio that overhears delivers messages for other stations, too
            if to == socket.own() || to[0] & 1 == 1 {
                let message = &self.buffer[frames::HEADER_LEN..length.min(frames::HEADER_LEN + arp::LEN)];
                let bytes = Bytes(message.to_vec());
                self.input(Input::Arp { from, bytes });
            }
        }
    }

    fn read_tunnel(&mut self, index: usize) {
        for _ in 0..PACKETS_AT_ONCE {
            let Some(length) = self.tunnels.get(index).and_then(|t| t.receive(&mut self.buffer)) else { return };
            match ipv4::Packet::parse(&self.buffer[..length]) {
                Some(packet) => {
                    let bytes = Bytes(packet.bytes().to_vec());
                    self.input(Input::Tunnelled { bytes });
                }
                None => self.count("not-ipv4"),
            }
        }
    }

    fn answer(&mut self, token: u64) {
        for request in self.outlet.status.ready(token) {
            let answer = match request {
                Request::Status => self.status(),
                Request::Follow | Request::Stop => json!({"ok": true}),
                Request::Unknown => json!({"ok": false, "error": status::REMEDY}),
            };
            self.outlet.status.answer(token, &answer);
            match request {
                Request::Follow => self.outlet.status.follow(token),
                Request::Stop => self.stop = true,
                _ => {}
            }
        }
    }

    fn status(&mut self) -> serde_json::Value {
        if let Some(usage) = &self.usage {
            self.outlet.counters.add("usage-lost", usage.lost());
        }
        let now = self.driver.clock().now();
        let mut host = self.outlet.counters.clone();
        let health = self.driver.health();
        host.add("stalls", health.stalls);
        host.add("late-p99-us", health.lateness.quantile(0.99).as_nanos() / 1000);
        host.add("notes-lost", self.outlet.notes.lost);
        host.add("held-capture-lost", self.held.lost);
        let Outlet { udp, frames, arp, .. } = &self.outlet;
        let sockets = frames.iter().chain(arp).map(sys::overrun);
        let overruns = udp.iter().map(sys::overrun).chain(sockets);
        host.add("overrun", overruns.sum());
        let status = self.driver.timeline().machine().machine.status(now);
        status::answer(P::NAME, self.outlet.address, self.outlet.notes.time(now), &status, &host)
    }

    /// Lets the machine send its farewell; dropping the rest restores the kernel's state.
    fn finish(mut self) -> Result<()> {
        self.input(Input::Stop);
        let logged = self.driver.machine_mut().finish().map_err(|e| HostError(format!("key \"events\": {e}")));
        if self.outlet.notes.lost > 0 {
            let lost = self.outlet.notes.lost;
            return Err(HostError(format!("key \"notes\": {lost} lines could not be written; free some space")));
        }
        self.error.map_or(logged, Err)
    }
}

fn is_unicast(a: Ipv4Addr) -> bool {
    !(a.is_multicast() || a.is_broadcast())
}

fn event_log(path: &Path, started: &Started) -> Result<BufWriter<File>> {
    let mut file = append_to("events", path)?;
    let fail = |e: std::io::Error| HostError(format!("key \"events\": {}: {e}", path.display()));
    // the last line of a killed daemon may lack its end; readers skip the empty line
    let start = json!({"at": 0, "started": started});
    let before = if file.metadata().map_err(fail)?.len() > 0 { "\n" } else { "" };
    file.write_all(format!("{before}{start}\n").as_bytes()).map_err(fail)?;
    Ok(BufWriter::new(file))
}

/// A descriptor that reads SIGTERM and SIGINT, which no longer end the process by themselves.
fn stop_signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set.thread_block()
        .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC))
        .map_err(|e| failed("signals cannot be taken over", e))
}
