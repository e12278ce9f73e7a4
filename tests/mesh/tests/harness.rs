//! The harness itself, with protocols so small that the result is known: a distance vector without sequence numbers,
//! which must count to infinity, and flooding, in which every packet takes all paths.

use manet_engine::{Duration, Instant, Machine};
use manet_mesh::scenario::{Flow, Scenario, Waypoints, AWAY};
use manet_mesh::Mesh;
use manet_routing::packet::ipv4;
use manet_routing::{
    Bytes, Carrier, Input, Node, OptionError, Output, Protocol, Route, Status, BROADCAST, BROADCAST_MAC,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Bellman-Ford without loop prevention: every second the whole table, hop counts up to 15.
struct Naive {
    node: Node,
    /// Destination: next hop, hops.
    table: BTreeMap<Ipv4Addr, (Ipv4Addr, u8)>,
    next: Instant,
    used: u32,
    outputs: VecDeque<Output>,
}

const INFINITY: u8 = 15;

impl Naive {
    fn set(&mut self, destination: Ipv4Addr, via: Ipv4Addr, hops: u8) {
        if hops >= INFINITY {
            self.table.remove(&destination);
            self.outputs.push_back(Output::ClearRoute { destination, prefix: 32 });
        } else if self.table.insert(destination, (via, hops)) != Some((via, hops)) {
            self.outputs.push_back(Output::SetRoute(Route::host(destination, via, hops)));
        }
    }
}

impl Machine for Naive {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input) {
        match input {
            Input::Control { from, bytes, .. } => {
                self.set(from, from, 1);
                for entry in bytes.chunks_exact(5) {
                    let destination = Ipv4Addr::new(entry[0], entry[1], entry[2], entry[3]);
                    let hops = entry[4] + 1;
                    let better = self.table.get(&destination).is_none_or(|(via, old)| *via == from || hops < *old);
                    if destination != self.node.address && better {
                        self.set(destination, from, hops);
                    }
                }
            }
            Input::LinkFailed { neighbour, .. } => {
                let lost: Vec<Ipv4Addr> =
                    self.table.iter().filter(|(_, (via, _))| *via == neighbour).map(|(d, _)| *d).collect();
                lost.into_iter().for_each(|d| self.set(d, neighbour, INFINITY));
            }
            Input::Packet { bytes } => self.outputs.push_back(Output::Unreachable { bytes }),
            Input::Used { flows } => self.used += flows.iter().map(|f| f.packets).sum::<u32>(),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        self.next = now + Duration::from_secs(1);
        let entry = |(d, (_, hops)): (&Ipv4Addr, &(Ipv4Addr, u8))| [&d.octets()[..], &[*hops]].concat();
        let bytes: Vec<u8> = self.table.iter().flat_map(entry).collect();
        self.outputs.push_back(Output::Control { to: BROADCAST, ttl: 1, bytes: Bytes(bytes) });
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
}

impl Protocol for Naive {
    const NAME: &'static str = "naive";
    const CARRIER: Carrier = Carrier::Udp(520);
    type Options = ();

    fn new(node: Node, (): ()) -> Result<Self, OptionError> {
        // not all at the same instant: their broadcasts would collide for ever
        let next = Instant::ZERO + Duration::from_millis(37 * node.number);
        Ok(Self { node, table: BTreeMap::new(), next, used: 0, outputs: VecDeque::new() })
    }

    fn status(&self, _: Instant) -> Status {
        Status::default()
    }
}

/// Each data packet in a broadcast frame, repeated once by every node.
struct Flooding {
    node: Node,
    seen: BTreeSet<(Ipv4Addr, u16)>,
    overheard: u32,
    outputs: VecDeque<Output>,
}

impl Flooding {
    fn flood(&mut self, mut bytes: Bytes, own: bool) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return };
        if !self.seen.insert((packet.source(), packet.identification())) {
            return;
        }
        if packet.destination() == self.node.address {
            return self.outputs.push_back(Output::Deliver { bytes });
        }
        if !own {
            bytes.0[8] -= 1;
            ipv4::repair(&mut bytes.0);
        }
        self.outputs.push_back(Output::Frame { to: BROADCAST_MAC, bytes, control: false });
    }
}

impl Machine for Flooding {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input) {
        match input {
            Input::Packet { bytes } => self.flood(bytes, true),
            Input::Frame { bytes, .. } => self.flood(bytes, false),
            Input::Overheard { .. } => self.overheard += 1,
            _ => {}
        }
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Protocol for Flooding {
    const NAME: &'static str = "flooding";
    const CARRIER: Carrier = Carrier::Frames;
    type Options = ();
    fn new(node: Node, (): ()) -> Result<Self, OptionError> {
        Ok(Self { node, seen: BTreeSet::new(), overheard: 0, outputs: VecDeque::new() })
    }
    fn status(&self, _: Instant) -> Status {
        Status::default()
    }
}

fn s(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// A chain of `nodes` with a flow from end to end from 20 s to 30 s, ten packets a second.
fn chain(nodes: usize) -> Scenario {
    let mut scenario = Scenario::chain(1, Duration::from_secs(40), nodes);
    let (from, to) = (0, nodes - 1);
    scenario.flows.push(Flow { from, to, bytes: 512, gap: Duration::from_millis(100), start: s(20), stop: s(30) });
    scenario
}

#[test]
fn a_chain_routes_forwards_and_reports_use() {
    let mut mesh = Mesh::<Naive>::new(chain(4), ());
    mesh.run();
    let seen = &mesh.seen;
    assert_eq!((seen.flows[0].offered.len(), seen.flows[0].deliveries.len()), (100, 100));
    assert!(seen.flows[0].deliveries.iter().all(|d| d.hops == 3 && d.last_hop == Some(2)));
    // 512 bytes at 2 Mbit/s take 2 ms a hop, with RTS, CTS, ACK and preambles under 6 ms
    let delay = seen.flows[0].deliveries[0].at - seen.flows[0].offered[0];
    assert!(delay > Duration::from_millis(6) && delay < Duration::from_millis(18), "{delay:?}");
    assert_eq!(seen.data.frames, 300);
    // each packet is sent or received once at each of the four nodes
    assert!(
        (0..4).all(|i| mesh.machine(i).used == 100),
        "{:?}",
        (0..4).map(|i| mesh.machine(i).used).collect::<Vec<_>>()
    );
    // four nodes, each at 37 ms * its number and every second from there to 40 s
    assert_eq!((seen.control_packets, seen.control.frames), (160, 160));
    assert_eq!((seen.loop_count, seen.links.convergences.len()), (0, 1));
    // an update travels one hop a second, or at once from node to node in the order of their turns
    assert!(seen.links.convergences[0] <= Duration::from_secs(3), "{:?}", seen.links.convergences);
}

#[test]
fn counting_to_infinity_is_seen_as_loops_and_expired_packets() {
    let mut mesh = Mesh::<Naive>::new(chain(4), ());
    mesh.run_until(s(25));
    assert_eq!(mesh.seen.loop_count, 0);
    mesh.jump(3, AWAY);
    mesh.run();
    let seen = &mesh.seen;
    assert!(seen.loop_count > 0, "2 loses 3 and takes the route that 1 had learnt from 2");
    assert!(seen.loops.iter().all(|l| l.destination == 3 && l.at > s(25)), "{:?}", seen.loops);
    assert_eq!(seen.loops[0].nodes.len(), 2);
    assert!(seen.events.get("ttl-expired") > 0, "{:?}", seen.events);
    assert!(mesh.loops_now().is_empty(), "it has counted to the end");
}

#[test]
fn a_packet_without_route_is_answered_by_icmp() {
    let mut scenario = chain(3);
    scenario.positions[2] = AWAY;
    let mut mesh = Mesh::<Naive>::new(scenario, ());
    mesh.run();
    let events = &mesh.seen.events;
    assert_eq!((events.get("unreachable"), events.get("icmp-received")), (100, 100));
    assert!(mesh.seen.flows[0].deliveries.is_empty());
}

#[test]
fn without_feedback_no_machine_learns_of_failed_links() {
    let run = |feedback| {
        let mut mesh = Mesh::<Naive>::new(Scenario { feedback, ..chain(3) }, ());
        mesh.run_until(s(25));
        mesh.jump(2, AWAY);
        mesh.run();
        mesh.seen.events.get("retry-short")
    };
    // with feedback it stops sending to node 3 until it believes node 2's old update; without, never
    let (with, without) = (run(true), run(false));
    assert!(with > 0 && without > with, "{with} {without}");
}

#[test]
fn frames_of_design_b_reach_their_machine_and_bystanders() {
    let mut mesh = Mesh::<Flooding>::new(chain(4), ());
    mesh.run();
    let flow = &mesh.seen.flows[0];
    assert!(flow.deliveries.len() > 60, "{} of 100; broadcasts are not repeated", flow.deliveries.len());
    assert!(flow.deliveries.iter().all(|d| d.hops == 3 && d.last_hop == Some(2)));
    assert_eq!(mesh.machine(1).overheard, 0, "broadcasts are for all, not overheard");
}

#[test]
fn the_same_seed_does_the_same_and_another_does_not() {
    let how =
        Waypoints { area_m: [800.0, 300.0], speed_mps: [1.0, 20.0], pause_s: 0.0, go_and_rest_s: Some([20.0, 10.0]) };
    let run = |seed| {
        let scenario = Scenario::waypoints(seed, Duration::from_secs(60), 12, how);
        let mut mesh = Mesh::<Naive>::new(scenario.with_flows(4, 256, Duration::from_millis(200), [5.0, 8.0]), ());
        mesh.run();
        let delivered: usize = mesh.seen.flows.iter().map(|f| f.deliveries.len()).sum();
        assert!(delivered > 200 && mesh.seen.links.changes > 20, "{delivered} {}", mesh.seen.links.changes);
        (mesh.seen.fingerprint.value(), delivered, mesh.seen.loop_count)
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first.0, run(2).0);
}
