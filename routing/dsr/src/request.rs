//! Route Requests and Route Replies of others (RFC 4728, sections 8.2.2 to 8.2.6).

use crate::cache::Route;
use crate::datagram::{Datagram, Walk};
use crate::delayed::Delayed;
use crate::machine::Dsr;
use crate::wire::{Opt, Reply, Request};
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
        let mut way: Vec<Ipv4Addr> = request.addresses.iter().rev().copied().collect();
        way.push(initiator);
        self.learn(now, &way, false);
        let outside = !self.node.in_network(request.target);
        if request.target == self.own() || (outside && self.is_gateway()) {
            // every copy is answered: each came another way (8.2.2)
            return self.answer_as_target(now, &request, way, outside);
        }
        if !self.duplicates.remember(initiator, request.identification, request.target) {
            return self.count("request-seen");
        }
        if self.options.cache_replies && self.answer_from_cache(now, initiator, &request, &way) {
            return;
        }
        self.pass_on(now, packet);
    }

    /// Nobody twice among initiator and list, and the target not in it.
    fn is_sound(&self, initiator: Ipv4Addr, request: &Request) -> bool {
        let list = &request.addresses;
        let repeats = (1..list.len()).any(|i| list[..i].contains(&list[i]));
        let knows = |node: Ipv4Addr| node == initiator || list.contains(&node);
        let inside = list.iter().chain([&initiator]).all(|n| self.node.in_network(*n));
        inside && !repeats && !list.contains(&initiator) && !knows(request.target)
    }

    fn answer_as_target(&mut self, now: Instant, request: &Request, way: Vec<Ipv4Addr>, outside: bool) {
        let mut addresses = request.addresses.clone();
        addresses.push(self.own());
        if outside {
            addresses.push(request.target);
        }
        if addresses.len() > self.options.max_hops {
            return self.count("too-long");
        }
        self.count("replies-sent");
        self.send_control(now, vec![Opt::Reply(Reply { last_external: outside, addresses })], way);
    }

    /// 8.2.3: the request's list, we, and our route, if nobody is in it twice and it stays inside (6.3: an external hop
    /// is not passed on by who has it from others). True: answered.
    fn answer_from_cache(&mut self, now: Instant, initiator: Ipv4Addr, request: &Request, way: &[Ipv4Addr]) -> bool {
        let Some(Route { hops, external: false }) = self.cache.look(now, request.target) else { return false };
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
        self.put_route(&mut reply, way);
        let at = now + self.reply_delay(hops);
        let target = request.target;
        if self.delayed.push(at, Delayed::Reply { initiator, target, hops, packet: reply }) {
            self.count("cached-replies");
        } else {
            self.count("delayed-full");
        }
        true
    }

    fn put_route(&self, packet: &mut Datagram, way: &[Ipv4Addr]) {
        let between = &way[..way.len().saturating_sub(1)];
        if !between.is_empty() {
            let route = crate::wire::SourceRoute {
                first_external: false,
                last_external: false,
                salvage: 0,
                segments_left: between.len() as u8,
                addresses: between.to_vec(),
            };
            packet.options.insert(0, Opt::SourceRoute(route));
        }
    }

    /// 8.2.5: H x (h - 1 + r). H is such that a reply of the longest route still comes before the non-propagating
    /// request gives up: 30 ms / 15 hops = 2 ms, more than a reply's airtime, so that who knows a shorter route is
    /// heard first.
    fn reply_delay(&mut self, hops: usize) -> Duration {
        let longest =
            Duration::from_secs_f64(self.options.nonprop_timeout.as_secs_f64() / self.options.max_hops as f64);
        let r = self.rng.unit();
        Duration::from_secs_f64(longest.as_secs_f64() * (hops as f64 - 1.0 + r))
    }

    fn pass_on(&mut self, now: Instant, mut packet: Datagram) {
        if packet.ttl() <= 1 {
            return self.count("request-ttl");
        }
        packet.set_ttl(packet.ttl() - 1);
        let (own, longest) = (self.own(), self.options.max_hops);
        let Some(Opt::Request(request)) = packet.options.iter_mut().find(|o| matches!(o, Opt::Request(_))) else {
            return;
        };
        request.addresses.push(own);
        // the target is one hop more
        if request.addresses.len() + 1 > longest {
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

    /// 8.2.5: who overhears a reply that is no longer, or the initiator using such a route, keeps his own.
    pub(crate) fn cancel_replies(&mut self, packet: &Datagram, walk: &Walk) {
        let mut cancelled = 0;
        for reply in packet.replies() {
            let Some(target) = reply.addresses.last() else { continue };
            cancelled += self.delayed.cancel(packet.destination(), *target, reply.addresses.len());
        }
        // what we passed on ourselves was sent before the request: it shows no answer
        let from_us = walk.nodes[..walk.transmitter].contains(&self.own());
        if !packet.is_control() && packet.salvage() == 0 && !from_us {
            cancelled += self.delayed.cancel(packet.source(), packet.destination(), walk.nodes.len() - 1);
        }
        self.counters.add("replies-cancelled", cancelled as u64);
    }
}
