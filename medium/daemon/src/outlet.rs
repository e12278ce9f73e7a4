//! Outputs of the machine to hosts and clients, and the immediate answers of the hosts.
//!
//! A frame written to a TAP is processed by the kernel inside our `write`: it is forwarded, acknowledged, answered with
//! the next segments, before the call returns. Such answers are read back at once and enter the medium at the
//! model instant of their cause ([`Outside::react`]), so that our own lateness is not added to every hop.

use crate::feedback::Feedback;
use crate::hwsim::{Hwsim, RadioInterface};
use crate::input::Input;
use crate::recorder::Recorder;
use crate::tap::{Handed, Taken, Tap, MAX_FRAME};
use crate::world::{Output, World};
use manet_engine::{Instant, Outside};
use manet_medium::mac::Packet;
use manet_medium::message::{self, StationId};
use manet_medium::wire::ethernet;
use manet_medium::wire::feedback::Repr;
use manet_medium::wired::{EndId, Sent};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of frames read from one TAP in a turn, so that a host that floods cannot starve the others.
pub const FRAMES_AT_ONCE: u32 = 64;
/// Threads that close ports at the end.
const CLOSERS: usize = 64;

/// The station or wire that a port belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// The radio of a station.
    Station(StationId),
    /// The end of a wire.
    Wire(EndId),
}

/// The interface of a port.
pub enum Device {
    /// A TAP device.
    Tap(Tap),
    /// A radio of hwsim; its frames pass through [`Outlet::hwsim`].
    Radio(RadioInterface),
}

impl Device {
    /// Number of frames from the host that the kernel dropped before they were read.
    fn dropped(&self) -> Option<u64> {
        match self {
            Device::Tap(tap) => tap.dropped(),
            Device::Radio(radio) => radio.dropped(),
        }
    }
}

/// One interface of a host.
pub struct Port {
    /// Name of the station or host.
    pub name: String,
    /// Station or wire.
    pub kind: PortKind,
    /// The interface.
    pub device: Device,
    /// Frames to the host that the kernel refused.
    pub write_drops: u64,
    /// Frames to the host while it had set the interface down.
    pub while_down: u64,
    /// Frames from the host lost before its interface first lost its carrier; `None`: it never did.
    pub lost_before_off: Option<u64>,
    /// Whether the interface was deleted during the run.
    pub deleted: bool,
}

impl Port {
    /// A port without losses.
    pub fn new(name: &str, kind: PortKind, device: Device) -> Self {
        let name = name.to_owned();
        Self { name, kind, device, write_drops: 0, while_down: 0, lost_before_off: None, deleted: false }
    }

    /// Number of frames from the host that the kernel dropped before they were read. The kernel's counter includes frames dropped
    /// for lack of a carrier, which are no loss of the medium; so it is not read again after the first loss of the carrier.
    pub fn lost_from_host(&self) -> u64 {
        self.lost_before_off.or_else(|| self.device.dropped()).unwrap_or(0)
    }

    /// [`Self::lost_from_host`] at the end of the run. The kernel reports no removal of a radio in another namespace: a radio without
    /// statistics counts as deleted.
    pub fn lost_in_all(&mut self) -> u64 {
        let dropped = self.device.dropped();
        self.deleted |= matches!(self.device, Device::Radio(_)) && dropped.is_none();
        self.lost_before_off.or(dropped).unwrap_or(0)
    }
}

/// Closes ports, many at once: to remove one interface the kernel waits 18 ms for its other processors (`rcu_barrier` of
/// `netdev_run_todo`), and these waits overlap.
pub fn close_all<P: Send>(ports: Vec<P>) {
    let closers = CLOSERS.min(ports.len());
    let left = Mutex::new(ports);
    // a function of its own, so that the lock is released before the port is closed
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let close = || while next().is_some() {};
    std::thread::scope(|scope| {
        for _ in 1..closers {
            // without a further thread the others close its share
            let _ = std::thread::Builder::new().spawn_scoped(scope, close);
        }
        close();
    });
}

/// All ports, sockets and logs: the surroundings of the machine.
pub struct Outlet {
    /// Stations first, in their order, then the ends of the wires.
    pub ports: Vec<Port>,
    /// Number of stations.
    pub stations: usize,
    /// The radios of mac80211_hwsim, if the stations have them.
    pub hwsim: Option<Hwsim>,
    /// The link-feedback sockets.
    pub feedback: Feedback,
    /// Writer of the logs.
    pub recorder: Recorder,
    /// Ports just written to, whose hosts may have answered.
    answering: VecDeque<(usize, u32)>,
    buffer: Vec<u8>,
}

impl Outlet {
    /// `ports`: stations first, in their order, then the ends of the wires; `stations`: number of stations.
    pub fn new(
        ports: Vec<Port>,
        stations: usize,
        hwsim: Option<Hwsim>,
        feedback: Feedback,
        recorder: Recorder,
    ) -> Self {
        Self { ports, stations, hwsim, feedback, recorder, answering: VecDeque::new(), buffer: vec![0; MAX_FRAME] }
    }

    /// The next frame from the host of a port, as an input.
    pub fn read(&mut self, port: usize) -> Option<Input> {
        let port = self.ports.get_mut(port)?;
        let Device::Tap(tap) = &port.device else { return None };
        let frame = match tap.read(&mut self.buffer) {
            Taken::Frame(frame) => frame.to_vec(),
            Taken::Nothing => return None,
            Taken::Deleted => {
                port.deleted = true;
                return None;
            }
        };
        Some(match port.kind {
            PortKind::Station(station) => Input::Air(message::Input::Packet { station, frame }),
            PortKind::Wire(end) => Input::Wire(Sent { end, frame }),
        })
    }

    /// The next frame from the kernel's radios, as an input.
    pub fn read_radios(&mut self) -> Option<Input> {
        self.hwsim.as_mut()?.read().map(Input::Air)
    }

    /// Sets the carriers of all ports by the power of their stations.
    pub fn set_carriers(&mut self, world: &World) {
        for port in &mut self.ports {
            let on = match port.kind {
                PortKind::Station(station) => world.medium.is_on(station),
                PortKind::Wire(end) => world.wire_is_up(end),
            };
            if !on {
                port.lost_before_off = Some(port.lost_from_host());
            }
            // a radio of hwsim has no carrier to set; without power it is silent
            if let Device::Tap(tap) = &port.device {
                tap.set_carrier(on);
            }
        }
    }

    fn write(&mut self, port: usize, frame: &[u8]) {
        let p = &mut self.ports[port];
        let Device::Tap(tap) = &p.device else { return };
        match tap.write(frame) {
            Handed::Taken => self.answering.push_back((port, FRAMES_AT_ONCE)),
            Handed::Down => p.while_down += 1,
            Handed::Lost => p.write_drops += 1,
            Handed::Deleted => p.deleted = true,
        }
    }

    fn report(&mut self, station: StationId, packet: &Packet, tries: u32, acked: bool) {
        if let Some(hwsim) = &mut self.hwsim {
            hwsim.report(station, packet, tries, acked);
        }
    }

    fn put_air(&mut self, at: Instant, output: message::Output) {
        let at_ns = at.as_nanos();
        match output {
            message::Output::Deliver { station, packet, heard } => match &self.hwsim {
                Some(hwsim) => {
                    let taken = hwsim.deliver(station, &packet, heard);
                    self.ports[usize::from(station.0)].write_drops += u64::from(!taken);
                }
                None => self.write(usize::from(station.0), &packet.ethernet),
            },
            message::Output::Failed { station, neighbour, reason, packet, tries } => {
                self.report(station, &packet, tries, false);
                let message = Repr::Failed { at_ns, neighbour, reason: reason as u16, frame: &packet.ethernet };
                self.feedback.publish(station, &message);
            }
            message::Output::Acked { station, neighbour, retries, packet, tries } => {
                self.report(station, &packet, tries, true);
                let retries = u16::try_from(retries).unwrap_or(u16::MAX);
                self.feedback.publish(station, &Repr::Delivered { at_ns, neighbour, retries });
            }
            // routing daemons need no report of a broadcast
            message::Output::Broadcast { station, packet } => self.report(station, &packet, 1, false),
            message::Output::Dropped { station, packet } => self.report(station, &packet, 0, false),
            message::Output::Overheard { station, packet, .. } => {
                let Ok(header) = ethernet::Frame::new_checked(&packet.ethernet[..]) else { return };
                let (transmitter, receiver) = (header.source(), header.destination());
                let message = Repr::Overheard { at_ns, transmitter, receiver, frame: &packet.ethernet };
                self.feedback.publish(station, &message);
            }
            message::Output::Purged { neighbour, token, packets, .. } => {
                self.feedback.purged(token, neighbour, packets.iter().map(|p| &p.ethernet[..]));
            }
            message::Output::Nav { .. } => {} // only a replay asks for it
            message::Output::Air(row) => self.recorder.push(row),
        }
    }
}

impl Outside<World> for Outlet {
    fn put(&mut self, at: Instant, output: Output) {
        match output {
            Output::Air(output) => self.put_air(at, output),
            Output::Wire(arrived) => self.write(self.stations + usize::from(arrived.end.0), &arrived.frame),
        }
    }

    fn react(&mut self) -> Option<Input> {
        while let Some((port, budget)) = self.answering.front_mut() {
            let port = *port;
            if *budget > 0 {
                *budget -= 1;
                if let Some(input) = self.read(port) {
                    return Some(input);
                }
            }
            self.answering.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    /// Its end waits until all of `at_once` end.
    struct Slow {
        at_once: Arc<Barrier>,
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            self.at_once.wait();
        }
    }

    #[test]
    fn ports_are_closed_at_the_same_time() {
        // one after the other the first would wait for ever
        let at_once = Arc::new(Barrier::new(CLOSERS));
        close_all((0..CLOSERS).map(|_| Slow { at_once: at_once.clone() }).collect());
        assert_eq!(Arc::strong_count(&at_once), 1);
    }

    #[test]
    fn more_ports_than_threads_and_none_at_all_are_closed() {
        let port = Arc::new(());
        close_all(vec![port.clone(); 3 * CLOSERS + 1]);
        assert_eq!(Arc::strong_count(&port), 1);
        close_all(Vec::<Port>::new());
    }
}
