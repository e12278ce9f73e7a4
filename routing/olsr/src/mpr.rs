//! Multipoint relays: the selection among the neighbours (RFC 3626, section 8.3.1, with the coverage of section 16), and
//! our selectors (section 8.4).

use crate::options::{WILL_ALWAYS, WILL_NEVER};
use manet_engine::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The covering problem. Neighbours and 2-hop neighbours are numbered in the order of their addresses.
struct Cover {
    coverage: usize,
    /// The symmetric neighbours that may be chosen, with their willingness.
    neighbours: Vec<(Ipv4Addr, u8)>,
    /// The strict 2-hop neighbours of each neighbour; D(y) is their number.
    reaches: Vec<Vec<usize>>,
    /// The neighbours that reach each strict 2-hop neighbour.
    reached_by: Vec<Vec<usize>>,
}

/// For each neighbour whether it is an MPR.
type Chosen = Vec<bool>;

/// Chooses MPRs so that each strict 2-hop neighbour is reached by `coverage` of them, or by all that reach it.
/// `symmetric`: neighbours with their willingness; `two_hop`: pairs of neighbour and 2-hop neighbour.
pub fn select(
    own: Ipv4Addr,
    symmetric: impl Iterator<Item = (Ipv4Addr, u8)>,
    two_hop: impl Iterator<Item = (Ipv4Addr, Ipv4Addr)>,
    coverage: u8,
) -> BTreeSet<Ipv4Addr> {
    let symmetric: BTreeMap<Ipv4Addr, u8> = symmetric.collect();
    let neighbours: Vec<_> = symmetric.iter().filter(|(_, w)| **w != WILL_NEVER).map(|(n, w)| (*n, *w)).collect();
    // 8.3.1: N2 excludes the node itself, its symmetric neighbours, and nodes reached only by unwilling neighbours
    let mut closer: Vec<Ipv4Addr> = symmetric.keys().copied().chain([own]).collect();
    closer.sort_unstable();
    // numbers instead of addresses, because sorting dominates the cost
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    let (mut last, mut number) = (None, None);
    for (n, far) in two_hop {
        if last.replace(n) != Some(n) {
            number = neighbours.binary_search_by_key(&n, |(n, _)| *n).ok();
        }
        let strict = number.filter(|_| closer.binary_search(&far).is_err());
        pairs.extend(strict.map(|number| (far.to_bits(), number as u32)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut reaches = vec![Vec::new(); neighbours.len()];
    let mut reached_by: Vec<Vec<usize>> = Vec::new();
    for group in pairs.chunk_by(|a, b| a.0 == b.0) {
        let by: Vec<usize> = group.iter().map(|(_, n)| *n as usize).collect();
        by.iter().for_each(|n| reaches[*n].push(reached_by.len()));
        reached_by.push(by);
    }
    let cover = Cover { coverage: usize::from(coverage.max(1)), neighbours, reaches, reached_by };
    let mut chosen = cover.unavoidable();
    cover.fill(&mut chosen);
    cover.thin(&mut chosen);
    cover.neighbours.iter().zip(chosen).filter(|(_, is)| *is).map(|((n, _), _)| *n).collect()
}

impl Cover {
    /// Whether enough of the neighbours `by` of a 2-hop neighbour are chosen: the required coverage, or all of them.
    fn is_covered(&self, by: &[usize], chosen: &Chosen) -> bool {
        by.iter().filter(|n| chosen[**n]).count() >= self.coverage.min(by.len())
    }

    /// Steps 1 and 3: the always willing neighbours, and all neighbours of a poorly covered 2-hop neighbour (16.2).
    fn unavoidable(&self) -> Chosen {
        let mut chosen: Chosen = self.neighbours.iter().map(|(_, w)| *w == WILL_ALWAYS).collect();
        for by in self.reached_by.iter().filter(|by| by.len() <= self.coverage) {
            by.iter().for_each(|n| chosen[*n] = true);
        }
        chosen
    }

    /// Step 4: adds the neighbour with the highest willingness, then the most uncovered nodes, then the highest degree.
    fn fill(&self, chosen: &mut Chosen) {
        let mut reach = vec![0; self.neighbours.len()];
        for by in self.reached_by.iter().filter(|by| !self.is_covered(by, chosen)) {
            by.iter().filter(|n| !chosen[**n]).for_each(|n| reach[*n] += 1);
        }
        let rank = |n: &usize, reach: &[usize]| (self.neighbours[*n].1, reach[*n], self.reaches[*n].len(), Reverse(*n));
        while let Some(best) = (0..reach.len()).filter(|n| reach[*n] > 0).max_by_key(|n| rank(n, &reach)) {
            let open: Vec<_> = self.reached_by(best).filter(|by| !self.is_covered(by, chosen)).collect();
            chosen[best] = true;
            reach[best] = 0;
            for by in open.into_iter().filter(|by| self.is_covered(by, chosen)) {
                by.iter().filter(|n| !chosen[**n]).for_each(|n| reach[*n] -= 1);
            }
        }
    }

    /// Step 5: removes superfluous MPRs in increasing order of willingness.
    fn thin(&self, chosen: &mut Chosen) {
        let mut order: Vec<usize> =
            (0..chosen.len()).filter(|n| chosen[*n] && self.neighbours[*n].1 < WILL_ALWAYS).collect();
        order.sort_by_key(|n| (self.neighbours[*n].1, self.reaches[*n].len(), *n));
        for candidate in order {
            chosen[candidate] = false;
            if self.reached_by(candidate).any(|by| !self.is_covered(by, chosen)) {
                chosen[candidate] = true;
            }
        }
    }

    /// For each 2-hop neighbour of `neighbour`, all neighbours that reach it.
    fn reached_by(&self, neighbour: usize) -> impl Iterator<Item = &Vec<usize>> {
        self.reaches[neighbour].iter().map(|far| &self.reached_by[*far])
    }
}

/// MPR selector set (4.3.4): neighbours that chose us, by main address. The link set limits its size.
#[derive(Clone, Debug, Default)]
pub struct Selectors(BTreeMap<Ipv4Addr, Instant>);

impl Selectors {
    /// Adds or refreshes a selector (8.4.1).
    pub fn chose_us(&mut self, main: Ipv4Addr, until: Instant) {
        self.0.insert(main, until);
    }

    /// Removes a lost neighbour (8.5).
    pub fn lost(&mut self, main: Ipv4Addr) {
        self.0.remove(&main);
    }

    /// Whether the neighbour chose us.
    pub fn contains(&self, main: Ipv4Addr) -> bool {
        self.0.contains_key(&main)
    }

    /// All selectors, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.0.keys().copied()
    }

    /// Removes expired selectors.
    pub fn expire(&mut self, now: Instant) {
        self.0.retain(|_, until| *until > now);
    }

    /// The earliest expiry.
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
    fn without_two_hop_neighbours_there_is_no_mpr() {
        assert_eq!(choose(&[(2, 3), (3, 3)], &[(2, 1), (2, 3), (3, 2)], 1), [] as [u8; 0]);
    }

    #[test]
    fn an_only_relay_is_always_chosen_and_makes_others_superfluous() {
        // 20 is reached only by 3, which reaches 21 as well
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
    fn coverage_two_adds_a_second_relay_if_there_is_one() {
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
