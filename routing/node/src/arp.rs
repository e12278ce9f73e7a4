//! Address resolution by the daemons that write frames themselves, as the stations of 1999 did it: BSD's ARP in CMU's
//! extension of ns. The reference in behaviour is ns-2.35, mac/arp.cc; the messages are those of RFC 826 ([`crate::packet::arp`]).
//!
//! - Each packet for a next hop without known link address broadcasts a request. The packet waits; one that waited before
//!   is dropped without a report ([`Sent::Waits`]). There are no timers: without a further packet nothing is requested again.
//! - With [`Resolution::Cmu`] the packet after [`MAX_REQUESTS`] requests fails together with the one that waits, and
//!   counting starts anew. [`Resolution::Silent`] never reports a failure.
//! - A node learns the sender of each request and reply that it receives (RFC 826 creates an entry at the target only).
//!   Entries do not expire: a neighbour that moved away is known, and the radio's retries tell.
//!
//! Departures: the table holds [`MAX_ENTRIES`], and a sender outside the network or with a group address is refused, since
//! the messages are not authenticated.

use crate::packet::arp::{Message, Operation};
use crate::{Mac, Node};
use manet_engine::choices;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

choices! {
    /// Address resolution of a daemon that writes frames.
    pub enum Resolution {
        /// None: link addresses are learnt from any frame of a neighbour.
        None = "none",
        /// ARP that reports failures to the protocol (ns-2.35).
        Cmu = "cmu",
        /// ARP without reports of failures (Holland and Vaidya, section 8).
        Silent = "silent",
    }
}

/// ARP_MAX_REQUEST_COUNT of ns-2.35, mac/arp.h.
pub const MAX_REQUESTS: u32 = 3;
/// Maximum number of known or requested addresses; the least recently used one is given up. No scenario has more stations.
pub const MAX_ENTRIES: usize = 1024;

#[derive(Clone, Debug)]
struct Entry<T> {
    mac: Option<Mac>,
    /// Requests since the last failure.
    requests: u32,
    waiting: Option<T>,
    /// Order of use.
    used: u64,
}

/// The table of a node. `T` is a packet.
#[derive(Clone, Debug)]
pub struct Resolver<T> {
    node: Node,
    reports: bool,
    entries: BTreeMap<Ipv4Addr, Entry<T>>,
    uses: u64,
}

/// The answer to a packet for a next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent<T> {
    /// Send the packet to this link address.
    Known(Mac, T),
    /// The packet waits.
    Waits {
        /// To be broadcast.
        request: Message,
        /// Dropped: it waited for this next hop; or the next hop that it waited for had to leave a full table.
        displaced: Vec<T>,
    },
    /// The next hop did not answer: the packet that waited, if any, and the new one.
    Failed(Vec<T>),
}

/// The effect of a received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learnt<T> {
    /// The packet that waited for the sender; send it first.
    pub released: Option<T>,
    /// To be sent to the sender, which requested our address.
    pub reply: Option<Message>,
    /// Dropped: the next hop that it waited for had to leave a full table.
    pub displaced: Vec<T>,
}

impl<T> Resolver<T> {
    /// An empty table. `None`: link addresses are not resolved.
    pub fn new(node: &Node, resolution: Resolution) -> Option<Self> {
        let reports = resolution == Resolution::Cmu;
        let table = Self { node: node.clone(), reports, entries: BTreeMap::new(), uses: 0 };
        (resolution != Resolution::None).then_some(table)
    }

    /// Resolves the link address of `next` for a packet.
    pub fn send(&mut self, next: Ipv4Addr, packet: T) -> Sent<T> {
        let mut displaced = self.make_room(next);
        let (own, mac, reports) = (self.node.address, self.node.mac, self.reports);
        let entry = self.entry(next);
        if let Some(mac) = entry.mac {
            return Sent::Known(mac, packet);
        }
        if reports && entry.requests >= MAX_REQUESTS {
            entry.requests = 0;
            return Sent::Failed(entry.waiting.take().into_iter().chain([packet]).collect());
        }
        entry.requests = entry.requests.saturating_add(1);
        displaced.extend(entry.waiting.replace(packet));
        let (operation, target_mac) = (Operation::Request, [0; 6]);
        let request = Message { operation, sender_mac: mac, sender: own, target_mac, target: next };
        Sent::Waits { request, displaced }
    }

    /// Handles a message for this node or all. Fails with the name of a counter if its sender cannot be a neighbour.
    pub fn receive(&mut self, message: &Message) -> Result<Learnt<T>, &'static str> {
        let Message { operation, sender_mac, sender, target, .. } = *message;
        if sender == self.node.address {
            return Err("arp-own-address");
        }
        if !self.node.in_network(sender) || sender.is_unspecified() || sender_mac[0] & 1 == 1 {
            return Err("arp-foreign-sender");
        }
        let displaced = self.make_room(sender);
        let entry = self.entry(sender);
        entry.mac = Some(sender_mac);
        let released = entry.waiting.take();
        let asked = operation == Operation::Request && target == self.node.address;
        let reply = asked.then_some(Message {
            operation: Operation::Reply,
            sender_mac: self.node.mac,
            sender: self.node.address,
            target_mac: sender_mac,
            target: sender,
        });
        Ok(Learnt { released, reply, displaced })
    }

    /// Number of packets that wait.
    pub fn waiting(&self) -> usize {
        self.entries.values().filter(|e| e.waiting.is_some()).count()
    }

    /// Number of known link addresses.
    pub fn known(&self) -> usize {
        self.entries.values().filter(|e| e.mac.is_some()).count()
    }

    fn entry(&mut self, address: Ipv4Addr) -> &mut Entry<T> {
        self.uses += 1;
        let entry =
            self.entries.entry(address).or_insert(Entry { mac: None, requests: 0, waiting: None, used: self.uses });
        entry.used = self.uses;
        entry
    }

    /// Gives up the least recently used entry if the table has no room for `address`. Returns the packet that waited there.
    fn make_room(&mut self, address: Ipv4Addr) -> Vec<T> {
        if self.entries.contains_key(&address) || self.entries.len() < MAX_ENTRIES {
            return Vec::new();
        }
        let oldest = self.entries.iter().min_by_key(|(_, e)| e.used).map(|(address, _)| *address);
        oldest.and_then(|address| self.entries.remove(&address)?.waiting).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ip(n: u32) -> Ipv4Addr {
        Ipv4Addr::from(0x0a00_0000 + n)
    }

    fn mac(n: u32) -> Mac {
        [2, 0, 0, 0, (n >> 8) as u8, n as u8]
    }

    fn node() -> Node {
        Node::new(1, ip(1), (ip(0), 8), mac(1))
    }

    fn table(resolution: Resolution) -> Resolver<u32> {
        Resolver::new(&node(), resolution).unwrap()
    }

    fn message(operation: Operation, from: u32, to: u32) -> Message {
        Message { operation, sender_mac: mac(from), sender: ip(from), target_mac: mac(to), target: ip(to) }
    }

    fn waits(next: u32, displaced: &[u32]) -> Sent<u32> {
        let request = Message { target_mac: [0; 6], ..message(Operation::Request, 1, next) };
        Sent::Waits { request, displaced: displaced.to_vec() }
    }

    #[test]
    fn each_packet_asks_and_takes_the_place_of_the_one_before() {
        let mut table = table(Resolution::Cmu);
        assert_eq!(table.send(ip(2), 10), waits(2, &[]));
        assert_eq!(table.send(ip(2), 11), waits(2, &[10]));
        assert_eq!(table.send(ip(3), 12), waits(3, &[]));
        let learnt = table.receive(&message(Operation::Reply, 2, 1)).unwrap();
        assert_eq!(learnt, Learnt { released: Some(11), reply: None, displaced: vec![] });
        assert_eq!(table.send(ip(2), 13), Sent::Known(mac(2), 13));
        assert_eq!((table.waiting(), table.known()), (1, 1));
    }

    #[test]
    fn the_packet_after_three_requests_fails_with_the_one_that_waits_and_counting_starts_anew() {
        // mac/arp.cc, arpresolve: count_ reaches 3, the next packet reports both and sets it to 0
        let mut table = table(Resolution::Cmu);
        (10..13).for_each(|n| drop(table.send(ip(2), n)));
        assert_eq!(table.send(ip(2), 13), Sent::Failed(vec![12, 13]));
        assert_eq!(table.waiting(), 0);
        assert_eq!(table.send(ip(2), 14), waits(2, &[]));
    }

    #[test]
    fn a_silent_table_never_fails() {
        let mut table = table(Resolution::Silent);
        assert_eq!(table.send(ip(2), 0), waits(2, &[]));
        for n in 1..20 {
            assert_eq!(table.send(ip(2), n), waits(2, &[n - 1]));
        }
    }

    #[test]
    fn any_request_teaches_its_sender_and_only_the_target_replies() {
        let mut table = table(Resolution::Cmu);
        table.send(ip(2), 10);
        let learnt = table.receive(&message(Operation::Request, 2, 9)).unwrap();
        assert_eq!((learnt.released, learnt.reply), (Some(10), None));
        let learnt = table.receive(&message(Operation::Request, 3, 1)).unwrap();
        assert_eq!(learnt.reply, Some(message(Operation::Reply, 1, 3)));
        assert_eq!(table.send(ip(3), 11), Sent::Known(mac(3), 11));
    }

    #[test]
    fn a_new_link_address_replaces_the_old_one() {
        let mut table = table(Resolution::Silent);
        table.receive(&message(Operation::Reply, 2, 1)).unwrap();
        table.receive(&Message { sender_mac: mac(7), ..message(Operation::Request, 2, 9) }).unwrap();
        assert_eq!(table.send(ip(2), 1), Sent::Known(mac(7), 1));
    }

    #[test]
    fn senders_that_cannot_be_neighbours_teach_nothing() {
        let mut table = table(Resolution::Cmu);
        let from = |sender, sender_mac| Message { sender, sender_mac, ..message(Operation::Request, 2, 1) };
        assert_eq!(table.receive(&from(ip(1), mac(2))), Err("arp-own-address"));
        for wrong in [from(Ipv4Addr::new(192, 168, 0, 2), mac(2)), from(ip(2), [0xff; 6])] {
            assert_eq!(table.receive(&wrong), Err("arp-foreign-sender"));
        }
        assert_eq!(table.known(), 0);
    }

    #[test]
    fn a_full_table_gives_up_the_least_recently_used_entry_and_the_packet_that_waits_there() {
        let mut table = table(Resolution::Silent);
        table.send(ip(2), 77);
        (3..=MAX_ENTRIES as u32 + 1).for_each(|n| drop(table.receive(&message(Operation::Request, n, 9))));
        assert_eq!((table.known(), table.waiting()), (MAX_ENTRIES - 1, 1));
        let learnt = table.receive(&message(Operation::Request, 5000, 9)).unwrap();
        assert_eq!((learnt.displaced, table.waiting(), table.known()), (vec![77], 0, MAX_ENTRIES));
        assert_eq!(table.send(ip(5001), 78), waits(5001, &[]));
        assert_eq!(table.send(ip(3), 79), waits(3, &[]));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send(u32),
        Receive(bool, u32, u32),
    }

    fn steps(neighbours: u32) -> impl Strategy<Value = Vec<Step>> {
        let address = 2..2 + neighbours;
        let step = prop_oneof![
            3 => address.clone().prop_map(Step::Send),
            1 => (any::<bool>(), address, 1..3u32).prop_map(|(reply, from, to)| Step::Receive(reply, from, to)),
        ];
        proptest::collection::vec(step, 0..200)
    }

    /// The ends of packets, checked against those that waited.
    #[derive(Default)]
    struct Ends {
        waiting: BTreeMap<Ipv4Addr, u32>,
        ended: BTreeSet<u32>,
    }

    impl Ends {
        fn end(&mut self, packet: u32) {
            assert!(self.ended.insert(packet), "packet {packet} ends twice");
        }
    }

    proptest! {
        #[test]
        fn one_packet_waits_per_next_hop_and_each_packet_ends_once(steps in steps(5), silent: bool) {
            let mut table = table(if silent { Resolution::Silent } else { Resolution::Cmu });
            let (mut ends, mut known, mut requests) = (Ends::default(), BTreeSet::new(), BTreeMap::new());
            for (packet, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Send(next) => match table.send(ip(next), packet as u32) {
                        Sent::Known(to, sent) => {
                            prop_assert!(known.contains(&next) && to == mac(next) && sent == packet as u32);
                            ends.end(sent);
                        }
                        Sent::Waits { request, displaced } => {
                            prop_assert!(!known.contains(&next) && request.target == ip(next));
                            *requests.entry(next).or_insert(0) += 1;
                            prop_assert!(silent || requests[&next] <= MAX_REQUESTS);
                            // the one that waited for the same next hop, and no other
                            prop_assert_eq!(displaced.first().copied(), ends.waiting.insert(ip(next), packet as u32));
                            prop_assert!(displaced.len() <= 1);
                            displaced.into_iter().for_each(|p| ends.end(p));
                        }
                        Sent::Failed(packets) => {
                            prop_assert!(!silent && requests.remove(&next) == Some(MAX_REQUESTS));
                            let waited = ends.waiting.remove(&ip(next));
                            prop_assert_eq!(&packets, &waited.into_iter().chain([packet as u32]).collect::<Vec<_>>());
                            packets.into_iter().for_each(|p| ends.end(p));
                        }
                    },
                    Step::Receive(reply, from, to) => {
                        let operation = if reply { Operation::Reply } else { Operation::Request };
                        let learnt = table.receive(&message(operation, from, to)).unwrap();
                        known.insert(from);
                        prop_assert_eq!(learnt.released, ends.waiting.remove(&ip(from)));
                        learnt.released.into_iter().for_each(|p| ends.end(p));
                        prop_assert_eq!(learnt.reply.is_some(), !reply && to == 1);
                    }
                }
                prop_assert_eq!(table.waiting(), ends.waiting.len());
            }
            // each packet has ended or waits
            prop_assert!(ends.waiting.values().all(|p| !ends.ended.contains(p)));
        }
    }
}
