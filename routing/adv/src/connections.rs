//! The peers with which this node exchanges packets. As long as there is one, the node is an active receiver: of data, or of
//! the answers to its own data.

use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A further peer is not recorded: the node is a receiver in any case.
pub const MAX_CONNECTIONS: usize = 1024;
/// The pause between floods is doubled so many times at most.
const MAX_DOUBLINGS: u32 = 5;

/// A connection with one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Time of the last packet or flood.
    pub used_at: Instant,
    /// Whether this node sends data to the peer.
    pub outgoing: bool,
    /// Whether the peer is advertised as a receiver, as after an init-connection: a broken route may return by updates.
    pub opened: bool,
    /// Time of the next init-connection.
    pub flood_at: Option<Instant>,
    /// Floods since the last answer.
    pub floods: u32,
}

/// All connections of a node.
#[derive(Clone, Debug)]
pub struct Connections {
    all: BTreeMap<Ipv4Addr, Connection>,
    idle: Duration,
    init_interval: Duration,
}

impl Connections {
    /// `idle`: time after which an unused connection ends; `init_interval`: pause after the first flood.
    pub fn new(idle: Duration, init_interval: Duration) -> Self {
        Self { all: BTreeMap::new(), idle, init_interval }
    }

    /// Records a packet to (`outgoing`) or from `peer`. `None`: [`MAX_CONNECTIONS`] is reached.
    pub fn used(&mut self, now: Instant, peer: Ipv4Addr, outgoing: bool) -> Option<&mut Connection> {
        if self.all.len() >= MAX_CONNECTIONS && !self.all.contains_key(&peer) {
            return None;
        }
        let new = Connection { used_at: now, outgoing: false, opened: false, flood_at: None, floods: 0 };
        let connection = self.all.entry(peer).or_insert(new);
        connection.used_at = now;
        connection.outgoing |= outgoing;
        Some(connection)
    }

    /// Continues a connection that [`Self::expire`] removed, as if it had been used now.
    pub fn renew(&mut self, now: Instant, peer: Ipv4Addr, connection: Connection) {
        self.all.insert(peer, Connection { used_at: now, ..connection });
    }

    /// The connection with `peer`.
    pub fn get(&self, peer: Ipv4Addr) -> Option<&Connection> {
        self.all.get(&peer)
    }

    /// The connection with `peer`.
    pub fn get_mut(&mut self, peer: Ipv4Addr) -> Option<&mut Connection> {
        self.all.get_mut(&peer)
    }

    /// Plans the next flood after one that is sent now.
    pub fn flooded(&mut self, now: Instant, peer: Ipv4Addr) {
        if let Some(connection) = self.all.get_mut(&peer) {
            connection.opened = true;
            connection.flood_at = Some(now + self.init_interval * (1 << connection.floods.min(MAX_DOUBLINGS)));
            connection.floods += 1;
        }
    }

    /// A route to `peer` was found: no further flood.
    pub fn answered(&mut self, peer: Ipv4Addr) {
        if let Some(connection) = self.all.get_mut(&peer) {
            (connection.flood_at, connection.floods) = (None, 0);
        }
    }

    /// Ends the connection. True: there was one.
    pub fn end(&mut self, peer: Ipv4Addr) -> bool {
        self.all.remove(&peer).is_some()
    }

    /// Peers whose next flood is due.
    pub fn floods_due(&self, now: Instant) -> Vec<Ipv4Addr> {
        self.all.iter().filter(|(_, c)| c.flood_at.is_some_and(|at| at <= now)).map(|(peer, _)| *peer).collect()
    }

    /// The earliest flood.
    pub fn next_flood(&self) -> Option<Instant> {
        self.all.values().filter_map(|c| c.flood_at).min()
    }

    /// Time at which a connection ends unless it is used. The peer ends its own first: `End` may have been lost.
    fn ends_at(&self, connection: &Connection) -> Instant {
        connection.used_at + self.idle * if connection.outgoing { 1 } else { 2 }
    }

    /// Removes and returns the idle connections.
    pub fn expire(&mut self, now: Instant) -> Vec<(Ipv4Addr, Connection)> {
        let idle: Vec<Ipv4Addr> = self.all.iter().filter(|(_, c)| self.ends_at(c) <= now).map(|(p, _)| *p).collect();
        idle.into_iter().filter_map(|peer| self.all.remove(&peer).map(|c| (peer, c))).collect()
    }

    /// The earliest end of a connection.
    pub fn next_end(&self) -> Option<Instant> {
        self.all.values().map(|c| self.ends_at(c)).min()
    }

    /// Peers, sorted by address.
    pub fn peers(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.all.keys().copied()
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the node has no connection: it is no receiver.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    const P: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn connections() -> Connections {
        Connections::new(Duration::from_secs(30), Duration::from_secs(1))
    }

    #[test]
    fn a_sender_ends_after_the_idle_time_and_a_receiver_after_twice_that() {
        for (outgoing, ends) in [(true, 40), (false, 70)] {
            let mut connections = connections();
            connections.used(at(10), P, outgoing);
            assert_eq!(connections.next_end(), Some(at(ends)));
            assert!(connections.expire(at(ends - 1)).is_empty() && !connections.is_empty());
            assert_eq!(connections.expire(at(ends)).len(), 1);
            assert!(connections.is_empty());
        }
    }

    #[test]
    fn pauses_between_floods_double_until_an_answer() {
        let mut connections = connections();
        connections.used(at(0), P, true);
        let mut times = vec![0];
        for _ in 0..7 {
            let now = *times.last().unwrap();
            connections.flooded(at(now as f64), P);
            times.push(connections.next_flood().unwrap().as_nanos() / 1_000_000_000);
        }
        assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 95]);
        connections.answered(P);
        assert_eq!(connections.next_flood(), None);
        connections.flooded(at(100), P);
        assert_eq!(connections.next_flood(), Some(at(101)));
    }

    #[test]
    fn forged_peers_do_not_exceed_the_limit() {
        let mut connections = connections();
        for i in 0..10_000u32 {
            connections.used(at(0), Ipv4Addr::from(0x0a00_0000 + i), false);
        }
        assert_eq!(connections.len(), MAX_CONNECTIONS);
    }
}
