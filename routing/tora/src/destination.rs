//! The rules for one destination (draft-ietf-manet-tora-spec-04, section 4): creation of routes by QRY and UPD, the five cases of
//! maintenance, erasure by CLR. Each event changes the heights and returns the message that follows from it.
//!
//! Departures: a node that becomes null without a CLR says so in an UPD without height, so that no neighbour keeps its old one;
//! a CLR also erases the height of its sender, and keeps those of other levels, which it erases in the draft: their nodes would
//! not tell them again.

use crate::height::{Height, Level};
use manet_engine::Instant;
use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The message that an event requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// None.
    Nothing,
    /// QRY.
    Query,
    /// UPD with the present height.
    Update,
    /// CLR of the reflected level (tau, oid, 1).
    Clear(Level),
}

/// The case of route maintenance (draft, 4.2) that changed the height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// 1: the last downstream link failed: a new reference level, or a null height if there is no upstream link either.
    Failure,
    /// 2: the neighbours have different levels: their highest level spreads.
    Propagate,
    /// 3: all neighbours have the same level, which is not reflected: it is reflected.
    Reflect,
    /// 4: the own level came back reflected from all neighbours: the network is partitioned.
    Partition,
    /// 5: another node's reflected level: a new reference level.
    Generate,
}

/// The moment and the node at which a rule is applied.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// This node.
    pub id: Ipv4Addr,
    /// Local time.
    pub now: Instant,
    /// The same instant on the clock that all nodes share, ns.
    pub tau: u64,
}

/// The state for one destination.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// H: the own height; `None`: null.
    pub height: Option<Height>,
    /// HN: the heights of neighbours with a link, without those that are null.
    pub heights: BTreeMap<Ipv4Addr, Height>,
    /// Heights of neighbours whose link is suspended: known, and not used.
    pub parked: BTreeMap<Ipv4Addr, Height>,
    /// The route-required flag, with the time at which it was set.
    pub required: Option<Instant>,
    /// Whether the last change raised the height: neighbours may use this node until they know.
    pub raised: bool,
    /// Time of the last UPD.
    pub updated_at: Option<Instant>,
    /// The last case of maintenance, until it is taken for the counters.
    pub case: Option<Case>,
}

impl Destination {
    /// The lowest downstream neighbour.
    pub fn next_hop(&self) -> Option<Ipv4Addr> {
        self.next_hop_of(|_| true)
    }

    /// The lowest downstream neighbour of those that `may` forward packets.
    pub fn next_hop_of(&self, may: impl Fn(Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
        let lowest = self.heights.values().filter(|h| may(h.id)).min()?;
        (*lowest < self.height?).then_some(lowest.id)
    }

    /// Whether nothing is stored that a later event needs.
    pub fn is_blank(&self) -> bool {
        self.height.is_none() && self.heights.is_empty() && self.parked.is_empty() && self.required.is_none()
    }

    /// A packet needs a route, or a request has had no answer.
    pub fn require(&mut self, here: Here) -> Reply {
        if self.next_hop().is_some() {
            return Reply::Nothing;
        }
        if self.adopt(here) {
            return Reply::Update;
        }
        if self.required.is_some() {
            return Reply::Nothing;
        }
        self.required = Some(here.now);
        Reply::Query
    }

    /// QRY (4.1) over a link that came up at `up_since`.
    pub fn query(&mut self, here: Here, up_since: Instant) -> Reply {
        if self.required.is_some() {
            return Reply::Nothing;
        }
        if self.height.is_some_and(|h| !h.level.reflected) {
            let told = self.updated_at.is_some_and(|at| at > up_since);
            self.updated_at = if told { self.updated_at } else { Some(here.now) };
            return if told { Reply::Nothing } else { Reply::Update };
        }
        if self.adopt(here) {
            return Reply::Update;
        }
        self.required = Some(here.now);
        Reply::Query
    }

    /// UPD (4.1, 4.2) of the neighbour `from`; `None`: it has become null.
    pub fn update(&mut self, here: Here, from: Ipv4Addr, height: Option<Height>) -> Reply {
        if let Entry::Occupied(mut parked) = self.parked.entry(from) {
            match height {
                Some(height) => *parked.get_mut() = height,
                None => {
                    parked.remove();
                }
            }
            return Reply::Nothing;
        }
        let Some(height) = height else {
            self.heights.remove(&from);
            return if self.is_stuck() { self.fail(here) } else { Reply::Nothing };
        };
        self.heights.insert(from, height);
        if self.required.is_some() && !height.level.reflected {
            if self.height.is_none_or(|h| h.level.reflected) && self.adopt(here) {
                return Reply::Update;
            }
            self.required = None;
        }
        if self.is_stuck() {
            return self.reverse(here);
        }
        Reply::Nothing
    }

    /// CLR (4.3) of the neighbour `from` about the reflected level of (tau, oid).
    pub fn clear(&mut self, here: Here, from: Ipv4Addr, level: Level) -> Reply {
        self.erase(level, Some(from));
        if self.height.is_some_and(|h| h.level == level) {
            self.height = None;
            return Reply::Clear(level);
        }
        if self.is_stuck() {
            return self.fail(here);
        }
        Reply::Nothing
    }

    /// The link to `neighbour` came up; `destination`: it leads to the destination itself.
    pub fn link_up(&mut self, here: Here, neighbour: Ipv4Addr, destination: bool) -> Reply {
        if destination {
            self.heights.insert(neighbour, Height::zero(neighbour));
        }
        self.resume(here, neighbour)
    }

    /// The suspended link to `neighbour` is used again.
    pub fn resume(&mut self, here: Here, neighbour: Ipv4Addr) -> Reply {
        if let Some(height) = self.parked.remove(&neighbour) {
            self.heights.insert(neighbour, height);
        }
        if self.required.is_none() {
            return Reply::Nothing;
        }
        if self.adopt(here) {
            return Reply::Update;
        }
        Reply::Query
    }

    /// The link to `neighbour` is not used until it is heard again: as if it went down, but its height is not forgotten.
    pub fn suspend(&mut self, here: Here, neighbour: Ipv4Addr) -> Reply {
        let height = self.heights.remove(&neighbour);
        let reply = self.link_down(here, neighbour);
        self.parked.extend(height.map(|height| (neighbour, height)));
        reply
    }

    /// The link to `neighbour` went down.
    pub fn link_down(&mut self, here: Here, neighbour: Ipv4Addr) -> Reply {
        self.heights.remove(&neighbour);
        self.parked.remove(&neighbour);
        if self.is_stuck() {
            return self.fail(here);
        }
        Reply::Nothing
    }

    /// Forgets the heights of a level, and that of the sender of a CLR.
    fn erase(&mut self, level: Level, from: Option<Ipv4Addr>) {
        let stays =
            |neighbour: Ipv4Addr, h: &Height| is_destination(h) || (from != Some(neighbour) && h.level != level);
        self.heights.retain(|neighbour, h| stays(*neighbour, h));
        self.parked.retain(|neighbour, h| stays(*neighbour, h));
    }

    /// Takes the height directly above the lowest neighbour whose level is not reflected. False: there is none.
    fn adopt(&mut self, here: Here) -> bool {
        let lowest = self.heights.values().filter(|h| !h.level.reflected).min();
        let Some(height) = lowest.map(|h| h.above(here.id)) else { return false };
        self.required = None;
        self.set(here, height);
        true
    }

    /// Whether the node has a height and no downstream link.
    fn is_stuck(&self) -> bool {
        self.height.is_some() && self.next_hop().is_none()
    }

    /// Case 1: no downstream link is left after a failure.
    fn fail(&mut self, here: Here) -> Reply {
        self.case = Some(Case::Failure);
        if self.heights.is_empty() {
            self.height = None;
            self.updated_at = Some(here.now);
            return Reply::Update;
        }
        self.generate(here)
    }

    /// Cases 2 to 5: no downstream link is left because a neighbour rose.
    fn reverse(&mut self, here: Here) -> Reply {
        let levels = || self.heights.values().map(|h| h.level);
        let (Some(highest), Some(lowest)) = (levels().max(), levels().min()) else { return Reply::Nothing };
        if highest != lowest {
            self.case = Some(Case::Propagate);
            let deltas = self.heights.values().filter(|h| h.level == highest).map(|h| h.delta);
            let delta = deltas.min().unwrap_or(0).saturating_sub(1);
            return self.set(here, Height { level: highest, delta, id: here.id });
        }
        if !highest.reflected {
            self.case = Some(Case::Reflect);
            let level = Level { reflected: true, ..highest };
            return self.set(here, Height { level, delta: 0, id: here.id });
        }
        if highest.oid == here.id {
            self.case = Some(Case::Partition);
            self.height = None;
            self.erase(highest, None);
            return Reply::Clear(highest);
        }
        self.case = Some(Case::Generate);
        self.generate(here)
    }

    fn generate(&mut self, here: Here) -> Reply {
        let level = Level { tau: here.tau, oid: here.id, reflected: false };
        self.set(here, Height { level, delta: 0, id: here.id })
    }

    fn set(&mut self, here: Here, height: Height) -> Reply {
        self.raised = self.height.is_some_and(|old| old < height);
        self.height = Some(height);
        self.updated_at = Some(here.now);
        Reply::Update
    }
}

/// Whether the height is that of the destination itself, which no message changes.
fn is_destination(height: &Height) -> bool {
    *height == Height::zero(height.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_engine::Duration;
    use manet_routing::trial::ip;

    fn here(s: u64) -> Here {
        Here { id: ip(1), now: Instant::ZERO + Duration::from_secs(s), tau: s * 1_000_000_000 }
    }

    fn height(tau: u64, oid: usize, reflected: bool, delta: i32, id: usize) -> Height {
        let oid = if oid == 0 { Ipv4Addr::UNSPECIFIED } else { ip(oid) };
        Height { level: Level { tau, oid, reflected }, delta, id: ip(id) }
    }

    /// Node 1 with delta 3 over the neighbours 2 (downstream) and 3 (upstream).
    fn routed() -> Destination {
        let mut destination = Destination::default();
        assert_eq!(destination.require(here(1)), Reply::Query);
        assert_eq!(destination.update(here(2), ip(2), Some(height(0, 0, false, 2, 2))), Reply::Update);
        assert_eq!(destination.update(here(3), ip(3), Some(height(0, 0, false, 4, 3))), Reply::Nothing);
        assert_eq!((destination.height, destination.next_hop()), (Some(height(0, 0, false, 3, 1)), Some(ip(2))));
        destination
    }

    #[test]
    fn a_query_without_height_is_forwarded_once_and_the_update_ends_the_request() {
        let mut destination = Destination::default();
        assert_eq!(destination.query(here(1), Instant::ZERO), Reply::Query);
        assert_eq!(destination.query(here(1), Instant::ZERO), Reply::Nothing);
        assert_eq!(destination.update(here(2), ip(2), Some(height(5, 7, true, 0, 2))), Reply::Nothing);
        assert_eq!(destination.update(here(2), ip(3), Some(height(5, 7, false, 0, 3))), Reply::Update);
        assert_eq!(destination.height, Some(height(5, 7, false, 1, 1)));
        assert_eq!(destination.required, None);
    }

    #[test]
    fn a_query_is_answered_if_the_link_is_newer_than_the_last_update() {
        let mut destination = routed();
        assert_eq!(destination.query(here(4), here(1).now), Reply::Nothing);
        assert_eq!(destination.query(here(4), here(3).now), Reply::Update);
        assert_eq!(destination.query(here(5), here(3).now), Reply::Nothing);
    }

    #[test]
    fn a_node_without_height_that_knows_a_neighbours_answers_a_query() {
        let mut destination = Destination::default();
        destination.update(here(1), ip(2), Some(height(0, 0, false, 2, 2)));
        destination.update(here(1), ip(3), Some(height(0, 0, false, 1, 3)));
        assert_eq!(destination.query(here(2), Instant::ZERO), Reply::Update);
        assert_eq!(destination.height, Some(height(0, 0, false, 2, 1)));
    }

    #[test]
    fn a_node_with_a_reflected_level_asks_further_and_takes_a_level_that_is_not() {
        let mut destination = Destination { height: Some(height(5, 7, true, 2, 1)), ..Destination::default() };
        destination.update(here(1), ip(2), Some(height(5, 7, true, 1, 2)));
        assert_eq!(destination.query(here(2), Instant::ZERO), Reply::Query);
        assert_eq!(destination.update(here(3), ip(2), Some(height(0, 0, false, 1, 2))), Reply::Update);
        assert_eq!(destination.height, Some(height(0, 0, false, 2, 1)));
    }

    #[test]
    fn case_1_a_failure_defines_a_level_or_erases_the_height() {
        let mut destination = routed();
        assert_eq!(destination.link_down(here(9), ip(2)), Reply::Update);
        assert_eq!(destination.height, Some(height(9_000_000_000, 1, false, 0, 1)));
        assert_eq!(destination.next_hop(), Some(ip(3)));
        assert_eq!(destination.link_down(here(10), ip(3)), Reply::Update);
        assert_eq!(destination.height, None);
        assert!(destination.is_blank());
    }

    #[test]
    fn a_suspended_neighbour_is_not_used_until_it_is_heard_and_its_height_is_kept() {
        let mut destination = routed();
        assert_eq!(destination.suspend(here(9), ip(2)), Reply::Update);
        assert_eq!(destination.next_hop(), Some(ip(3)));
        assert_eq!(destination.update(here(10), ip(2), Some(height(0, 0, false, 1, 2))), Reply::Nothing);
        assert_eq!(destination.resume(here(11), ip(2)), Reply::Nothing);
        assert_eq!(destination.next_hop(), Some(ip(2)));
        destination.suspend(here(12), ip(2));
        destination.link_down(here(12), ip(2));
        assert_eq!(destination.resume(here(13), ip(2)), Reply::Nothing);
        assert_eq!(destination.next_hop(), Some(ip(3)));
    }

    #[test]
    fn a_failure_beside_another_downstream_link_changes_nothing() {
        let mut destination = routed();
        destination.update(here(4), ip(4), Some(height(0, 0, false, 2, 4)));
        assert_eq!(destination.link_down(here(5), ip(2)), Reply::Nothing);
        assert_eq!((destination.height, destination.next_hop()), (Some(height(0, 0, false, 3, 1)), Some(ip(4))));
    }

    #[test]
    fn case_2_the_highest_level_spreads_below_its_lowest_node() {
        let mut destination = routed();
        assert_eq!(destination.update(here(9), ip(2), Some(height(8, 2, false, 0, 2))), Reply::Update);
        assert_eq!(destination.height, Some(height(8, 2, false, -1, 1)));
        assert_eq!(destination.next_hop(), Some(ip(3)));
        assert_eq!(destination.case, Some(Case::Propagate));
    }

    #[test]
    fn case_3_a_level_that_all_neighbours_have_is_reflected() {
        let mut destination = routed();
        destination.link_down(here(4), ip(3));
        assert_eq!(destination.update(here(9), ip(2), Some(height(8, 2, false, 0, 2))), Reply::Update);
        assert_eq!(destination.height, Some(height(8, 2, true, 0, 1)));
    }

    #[test]
    fn case_4_the_own_reflected_level_is_a_partition() {
        let mut destination = routed();
        destination.link_down(here(9), ip(2));
        let reflected = height(9_000_000_000, 1, true, 0, 3);
        assert_eq!(destination.update(here(10), ip(3), Some(reflected)), Reply::Clear(reflected.level));
        assert!(destination.is_blank());
    }

    #[test]
    fn case_5_another_nodes_reflected_level_gives_way_to_a_new_one() {
        let mut destination = routed();
        destination.link_down(here(4), ip(3));
        assert_eq!(destination.update(here(9), ip(2), Some(height(8, 7, true, 0, 2))), Reply::Update);
        assert_eq!(destination.height, Some(height(9_000_000_000, 1, false, 0, 1)));
        assert_eq!(destination.case, Some(Case::Generate));
    }

    #[test]
    fn a_clear_erases_its_level_and_is_forwarded_once() {
        let level = Level { tau: 8, oid: ip(7), reflected: true };
        let mut destination = Destination { height: Some(height(8, 7, true, 0, 1)), ..Destination::default() };
        destination.update(here(1), ip(2), Some(height(8, 7, true, -1, 2)));
        assert_eq!(destination.clear(here(2), ip(2), level), Reply::Clear(level));
        assert_eq!(destination.clear(here(2), ip(2), level), Reply::Nothing);
        assert!(destination.is_blank());
    }

    #[test]
    fn a_partition_keeps_the_heights_of_suspended_links_and_of_other_levels() {
        let mut destination = routed();
        destination.suspend(here(9), ip(2));
        let reflected = height(9_000_000_000, 1, true, 0, 3);
        assert_eq!(destination.update(here(10), ip(3), Some(reflected)), Reply::Clear(reflected.level));
        assert_eq!(destination.require(here(11)), Reply::Query);
        assert_eq!(destination.resume(here(12), ip(2)), Reply::Update);
        assert_eq!(destination.next_hop(), Some(ip(2)));
        let mut other = Destination { height: Some(height(8, 7, true, 0, 1)), ..Destination::default() };
        other.update(here(1), ip(2), Some(height(8, 7, true, -1, 2)));
        other.update(here(1), ip(3), Some(height(4, 7, false, -1, 3)));
        assert!(matches!(other.clear(here(2), ip(2), height(8, 7, true, 0, 1).level), Reply::Clear(_)));
        assert_eq!(other.require(here(3)), Reply::Update);
        assert_eq!(other.next_hop(), Some(ip(3)));
    }

    #[test]
    fn a_clear_of_another_level_erases_the_neighbours_and_may_be_a_failure() {
        let level = Level { tau: 8, oid: ip(7), reflected: true };
        let mut destination = routed();
        assert_eq!(destination.clear(here(4), ip(3), level), Reply::Nothing);
        destination.update(here(5), ip(3), Some(height(0, 0, false, 4, 3)));
        assert_eq!(destination.clear(here(9), ip(2), level), Reply::Update);
        assert_eq!(destination.height, Some(height(9_000_000_000, 1, false, 0, 1)));
    }

    #[test]
    fn a_link_to_the_destination_answers_a_request_at_once() {
        let mut destination = Destination::default();
        assert_eq!(destination.require(here(1)), Reply::Query);
        assert_eq!(destination.link_up(here(2), ip(3), false), Reply::Query);
        assert_eq!(destination.link_up(here(2), ip(9), true), Reply::Update);
        assert_eq!((destination.height, destination.next_hop()), (Some(height(0, 0, false, 1, 1)), Some(ip(9))));
    }
}
