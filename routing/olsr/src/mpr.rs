//! Multipoint relays: the choice among the neighbours (RFC 3626, section 8.3.1, with the coverage of section 16), and
//! those who chose us (section 8.4).

use crate::options::{WILL_ALWAYS, WILL_NEVER};
use manet_engine::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The problem: who can reach whom.
struct Cover {
    coverage: usize,
    /// Each symmetric neighbour that may be chosen, with its willingness.
    willingness: BTreeMap<Ipv4Addr, u8>,
    /// What each reaches; D(y) is how many.
    reaches: BTreeMap<Ipv4Addr, Vec<Ipv4Addr>>,
    /// Each strict 2-hop neighbour, and the neighbours that reach it.
    reached_by: BTreeMap<Ipv4Addr, BTreeSet<Ipv4Addr>>,
}

/// Chooses MPRs so that each strict 2-hop neighbour is reached by `coverage` of them, or by all that reach it.
/// `symmetric`: neighbours with their willingness; `two_hop`: pairs of neighbour and 2-hop neighbour.
pub fn select(
    own: Ipv4Addr,
    symmetric: impl Iterator<Item = (Ipv4Addr, u8)>,
    two_hop: impl Iterator<Item = (Ipv4Addr, Ipv4Addr)>,
    coverage: u8,
) -> BTreeSet<Ipv4Addr> {
    let neighbours: BTreeMap<Ipv4Addr, u8> = symmetric.collect();
    let mut cover = Cover {
        coverage: usize::from(coverage.max(1)),
        willingness: neighbours.iter().filter(|(_, w)| **w != WILL_NEVER).map(|(n, w)| (*n, *w)).collect(),
        reaches: BTreeMap::new(),
        reached_by: BTreeMap::new(),
    };
    // 8.3.1: N2 leaves out the node itself, its symmetric neighbours, and what only unwilling neighbours reach
    for (neighbour, far) in two_hop {
        if far != own && !neighbours.contains_key(&far) && cover.willingness.contains_key(&neighbour) {
            cover.reached_by.entry(far).or_default().insert(neighbour);
            cover.reaches.entry(neighbour).or_default().push(far);
        }
    }
    let mut chosen = cover.unavoidable();
    cover.fill(&mut chosen);
    cover.thin(&mut chosen);
    chosen
}

impl Cover {
    /// How many of `chosen` it takes at most for one: the coverage asked for, or all there are.
    fn wanted(&self, by: &BTreeSet<Ipv4Addr>) -> usize {
        self.coverage.min(by.len())
    }

    fn is_covered(&self, by: &BTreeSet<Ipv4Addr>, chosen: &BTreeSet<Ipv4Addr>) -> bool {
        by.intersection(chosen).count() >= self.wanted(by)
    }

    /// Steps 1 and 3: those always willing, and those that a poorly covered 2-hop neighbour (16.2) cannot do without.
    fn unavoidable(&self) -> BTreeSet<Ipv4Addr> {
        let always = self.willingness.iter().filter(|(_, w)| **w == WILL_ALWAYS).map(|(n, _)| *n);
        let poor = self.reached_by.values().filter(|by| by.len() <= self.coverage).flatten().copied();
        always.chain(poor).collect()
    }

    /// Step 4: the most willing first, then the one that covers most, then the one of highest degree.
    fn fill(&self, chosen: &mut BTreeSet<Ipv4Addr>) {
        let mut reach: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
        for by in self.reached_by.values().filter(|by| !self.is_covered(by, chosen)) {
            by.difference(chosen).for_each(|n| *reach.entry(*n).or_default() += 1);
        }
        let rank =
            |(n, reach): &(&Ipv4Addr, &usize)| (self.willingness.get(n), **reach, self.degree(**n), Reverse(**n));
        while let Some((best, _)) = reach.iter().filter(|(_, reach)| **reach > 0).max_by_key(rank) {
            let best = *best;
            reach.remove(&best);
            let open: Vec<_> = self.reached_by(best).filter(|by| !self.is_covered(by, chosen)).collect();
            chosen.insert(best);
            for by in open.into_iter().filter(|by| self.is_covered(by, chosen)) {
                for n in by {
                    reach.entry(*n).and_modify(|reach| *reach -= 1);
                }
            }
        }
    }

    /// Step 5: in increasing order of willingness, those without whom all is still covered go.
    fn thin(&self, chosen: &mut BTreeSet<Ipv4Addr>) {
        let mut order: Vec<(u8, Ipv4Addr)> =
            chosen.iter().filter_map(|n| self.willingness.get(n).map(|w| (*w, *n))).collect();
        order.retain(|(willingness, _)| *willingness < WILL_ALWAYS);
        order.sort_by_key(|(willingness, n)| (*willingness, self.degree(*n), *n));
        for (_, candidate) in order {
            chosen.remove(&candidate);
            if self.reached_by(candidate).any(|by| !self.is_covered(by, chosen)) {
                chosen.insert(candidate);
            }
        }
    }

    fn degree(&self, neighbour: Ipv4Addr) -> usize {
        self.reaches.get(&neighbour).map_or(0, Vec::len)
    }

    /// Of each 2-hop neighbour that `neighbour` reaches, all that reach it.
    fn reached_by(&self, neighbour: Ipv4Addr) -> impl Iterator<Item = &BTreeSet<Ipv4Addr>> {
        self.reaches.get(&neighbour).into_iter().flatten().filter_map(|far| self.reached_by.get(far))
    }
}

/// MPR selector set (4.3.4): neighbours that chose us, by main address. It is bounded by the link set.
#[derive(Clone, Debug, Default)]
pub struct Selectors(BTreeMap<Ipv4Addr, Instant>);

impl Selectors {
    /// 8.4.1.
    pub fn chose_us(&mut self, main: Ipv4Addr, until: Instant) {
        self.0.insert(main, until);
    }

    /// 8.5: a lost neighbour selects nobody.
    pub fn lost(&mut self, main: Ipv4Addr) {
        self.0.remove(&main);
    }

    pub fn contains(&self, main: Ipv4Addr) -> bool {
        self.0.contains_key(&main)
    }

    pub fn iter(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.0.keys().copied()
    }

    pub fn expire(&mut self, now: Instant) {
        self.0.retain(|_, until| *until > now);
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: Ipv4Addr = ip(1);

    const fn ip(d: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, d)
    }

    fn choose(symmetric: &[(u8, u8)], two_hop: &[(u8, u8)], coverage: u8) -> Vec<u8> {
        let symmetric = symmetric.iter().map(|(n, w)| (ip(*n), *w));
        let pairs = two_hop.iter().map(|(n, f)| (ip(*n), ip(*f)));
        select(OWN, symmetric, pairs, coverage).into_iter().map(|a| a.octets()[3]).collect()
    }

    #[test]
    fn without_two_hop_neighbours_nobody_is_chosen() {
        assert_eq!(choose(&[(2, 3), (3, 3)], &[(2, 1), (2, 3), (3, 2)], 1), [] as [u8; 0]);
    }

    #[test]
    fn the_only_way_is_always_chosen_and_makes_others_superfluous() {
        // 20 only by 3, who reaches 21 as well
        assert_eq!(choose(&[(2, 3), (3, 3)], &[(2, 21), (3, 20), (3, 21)], 1), [3]);
    }

    #[test]
    fn the_more_willing_wins_over_the_better_connected() {
        let two_hop = [(2, 20), (2, 21), (3, 20), (4, 21)];
        assert_eq!(choose(&[(2, 3), (3, 6), (4, 6)], &two_hop, 1), [3, 4]);
        assert_eq!(choose(&[(2, 3), (3, 3), (4, 3)], &two_hop, 1), [2]);
    }

    #[test]
    fn never_means_never_and_always_means_always() {
        assert_eq!(choose(&[(2, 0), (3, 3)], &[(2, 20), (3, 20), (2, 21)], 1), [3]);
        assert_eq!(choose(&[(2, 7), (3, 3)], &[(3, 20)], 1), [2, 3]);
    }

    #[test]
    fn coverage_two_takes_a_second_relay_where_there_is_one() {
        let two_hop = [(2, 20), (3, 20), (4, 20), (2, 21)];
        assert_eq!(choose(&[(2, 3), (3, 3), (4, 3)], &two_hop, 1), [2]);
        assert_eq!(choose(&[(2, 3), (3, 3), (4, 3)], &two_hop, 2), [2, 3]);
    }

    proptest! {
        /// 8.3: a message relayed by the MPRs reaches every strict 2-hop neighbour; and no MPR is superfluous.
        #[test]
        fn every_strict_two_hop_neighbour_is_covered(
            symmetric in proptest::collection::btree_map(2u8..12, 0u8..8, 0..10),
            two_hop in proptest::collection::btree_set((2u8..12, 1u8..30), 0..60),
            coverage in 1u8..4,
        ) {
            let list: Vec<(u8, u8)> = symmetric.iter().map(|(n, w)| (*n, *w)).collect();
            let pairs: Vec<(u8, u8)> = two_hop.iter().copied().collect();
            let chosen = choose(&list, &pairs, coverage);
            let able = |n: &u8| symmetric.get(n).is_some_and(|w| *w != WILL_NEVER);
            let uncovered = |chosen: &[u8]| (1u8..30).any(|far| {
                let by: Vec<u8> = pairs.iter().filter(|(n, f)| *f == far && able(n)).map(|(n, _)| *n).collect();
                let strict = far != 1 && !symmetric.contains_key(&far);
                strict && by.iter().filter(|n| chosen.contains(n)).count() < by.len().min(usize::from(coverage))
            });
            prop_assert!(!uncovered(&chosen), "{:?}", chosen);
            for n in &chosen {
                prop_assert!(able(n));
                let others: Vec<u8> = chosen.iter().copied().filter(|o| o != n).collect();
                prop_assert!(symmetric[n] == WILL_ALWAYS || uncovered(&others), "{} is superfluous", n);
            }
        }
    }
}
