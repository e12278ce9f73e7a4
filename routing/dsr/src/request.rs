//! Route Requests and Route Replies of other nodes (RFC 4728, sections 8.2.2 to 8.2.6).

use crate::cache::Route;
use crate::datagram::{Datagram, Walk};
use crate::delayed::Delayed;
use crate::machine::Dsr;
use crate::wire::{Opt, Reply, Request, SourceRoute};
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

impl Dsr {
    pub(crate) fn receive_request(&mut self, now: Instant, packet: Datagram) {
        let Some(request) = packet.request().cloned() else { return };
        let initiator = packet.source();
        if request.addresses.contains(&self.own()) {
            return self.count("request-returned");
        }
        if !self.is_sound(initiator, &request) {
            return self.count("request-loop");
        }
        let mut back: Vec<Ipv4Addr> = request.addresses.iter().rev().copied().collect();
        back.push(initiator);
        self.learn(now, &back, false);
        let outside = !self.node.in_network(request.target);
        if request.target == self.own() || (outside && self.is_gateway()) {
            // every copy is answered: each came over another path (8.2.2)
            return self.answer_as_target(now, &request, back, outside);
        }
        if !self.duplicates.remember(initiator, request.identification, request.target) {
            return self.count("request-seen");
        }
        if self.options.cache_replies && self.answer_from_cache(now, initiator, &request, &back) {
            return;
        }
        self.forward_request(now, packet);
    }

    /// Whether initiator, addresses and target are all different, and the former in the network.
    fn is_sound(&self, initiator: Ipv4Addr, request: &Request) -> bool {
        let list = &request.addresses;
        let repeats = (1..list.len()).any(|i| list[..i].contains(&list[i]));
        let contains = |node: Ipv4Addr| node == initiator || list.contains(&node);
        let inside = list.iter().chain([&initiator]).all(|n| self.node.in_network(*n));
        inside && !repeats && !list.contains(&initiator) && !contains(request.target)
    }

    fn answer_as_target(&mut self, now: Instant, request: &Request, back: Vec<Ipv4Addr>, outside: bool) {
        let mut addresses = request.addresses.clone();
        addresses.push(self.own());
        if outside {
            addresses.push(request.target);
        }
        if addresses.len() > self.options.max_hops {
            return self.count("too-long");
        }
        self.count("replies-sent");
        self.send_control(now, vec![Opt::Reply(Reply { last_external: outside, addresses })], back);
    }

    /// Replies with the request's addresses, this node and its cached route (8.2.3) if no node is repeated and the route
    /// stays inside (6.3: only the node that found an external hop may report it). True: a reply is planned.
    fn answer_from_cache(&mut self, now: Instant, initiator: Ipv4Addr, request: &Request, back: &[Ipv4Addr]) -> bool {
        let Some(Route { hops, external: false }) = self.cache.peek(now, request.target) else { return false };
        let twice = hops.iter().any(|h| *h == initiator || request.addresses.contains(h));
        let mut addresses = request.addresses.clone();
        addresses.push(self.own());
        addresses.extend(&hops);
        if twice || addresses.len() > self.options.max_hops {
            return false;
        }
        let hops = addresses.len();
        let mut reply = Datagram::control(
            self.own(),
            initiator,
            self.next_ip_id(),
            vec![Opt::Reply(Reply { last_external: false, addresses })],
        );
        self.put_route(&mut reply, back);
        let at = now + self.reply_delay(hops);
        let target = request.target;
        if self.delayed.push(at, Delayed::Reply { initiator, target, hops, packet: reply }) {
            self.count("cached-replies");
        } else {
            self.count("delayed-full");
        }
        true
    }

    fn put_route(&self, packet: &mut Datagram, hops: &[Ipv4Addr]) {
        let between = &hops[..hops.len().saturating_sub(1)];
        if !between.is_empty() {
            let route = SourceRoute::internal(0, between.len() as u8, between.to_vec());
            packet.options.insert(0, Opt::SourceRoute(route));
        }
    }

    /// Delay of a cached reply: H x (h - 1 + r) (8.2.5). H lets a reply of the longest route arrive before the timeout of
    /// the non-propagating request: 30 ms / 15 hops = 2 ms, more than a reply's airtime, so that a shorter route is sent
    /// first.
    fn reply_delay(&mut self, hops: usize) -> Duration {
        let per_hop =
            Duration::from_secs_f64(self.options.nonprop_timeout.as_secs_f64() / self.options.max_hops as f64);
        let r = self.rng.unit();
        Duration::from_secs_f64(per_hop.as_secs_f64() * (hops as f64 - 1.0 + r))
    }

    fn forward_request(&mut self, now: Instant, mut packet: Datagram) {
        if packet.ttl() <= 1 {
            return self.count("request-ttl");
        }
        packet.set_ttl(packet.ttl() - 1);
        let (own, max_hops) = (self.own(), self.options.max_hops);
        let Some(Opt::Request(request)) = packet.options.iter_mut().find(|o| matches!(o, Opt::Request(_))) else {
            return;
        };
        request.addresses.push(own);
        // the target is one hop more
        if request.addresses.len() + 1 > max_hops {
            return self.count("too-long");
        }
        let jitter = Duration::from_secs_f64(self.options.broadcast_jitter.as_secs_f64() * self.rng.unit());
        if !self.delayed.push(now + jitter, Delayed::Broadcast(packet)) {
            self.count("delayed-full");
        }
    }

    pub(crate) fn send_delayed(&mut self, now: Instant) {
        while let Some(delayed) = self.delayed.due(now) {
            match delayed {
                Delayed::Broadcast(packet) => {
                    self.count("requests-passed-on");
                    self.broadcast(&packet);
                }
                Delayed::Reply { packet, .. } => {
                    let Some(next) = packet.next_hop() else { continue };
                    self.count("replies-sent");
                    self.transmit(now, packet, next);
                }
            }
        }
    }

    /// Cancels our delayed replies after an overheard reply, or data of the initiator, with a route no longer (8.2.5).
    pub(crate) fn cancel_replies(&mut self, packet: &Datagram, walk: &Walk) {
        let mut cancelled = 0;
        for reply in packet.replies() {
            let Some(target) = reply.addresses.last() else { continue };
            cancelled += self.delayed.cancel(packet.destination(), *target, reply.addresses.len());
        }
        // a packet that this node forwarded was sent before the request: it is no sign of a reply
        let from_us = walk.nodes[..walk.transmitter].contains(&self.own());
        if !packet.is_control() && packet.salvage() == 0 && !from_us {
            cancelled += self.delayed.cancel(packet.source(), packet.destination(), walk.nodes.len() - 1);
        }
        self.counters.add("replies-cancelled", cancelled as u64);
    }
}
