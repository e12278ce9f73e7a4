//! The existing links: pairs of nodes in range of each other at an instant.

use manet_engine::Instant;
use manet_medium::Medium;

/// Directed links between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    nodes: usize,
    /// Row by row: from, to.
    linked: Vec<bool>,
}

impl Graph {
    /// The links of the medium at `now`.
    pub fn of(medium: &Medium, nodes: usize, now: Instant) -> Self {
        let mut linked = vec![false; nodes * nodes];
        for link in medium.links(now) {
            linked[usize::from(link.from.0) * nodes + usize::from(link.to.0)] = link.in_range;
        }
        Self { nodes, linked }
    }

    /// Whether `b` receives frames of `a`.
    pub fn linked(&self, a: usize, b: usize) -> bool {
        self.linked[a * self.nodes + b]
    }

    /// Ordered pairs of different nodes between which there is a path, with its length in hops.
    pub fn connected_pairs(&self) -> Vec<(usize, usize, u32)> {
        let linked = |a: usize| (0..self.nodes).filter(|b| self.linked(a, *b)).collect();
        let neighbours: Vec<Vec<usize>> = (0..self.nodes).map(linked).collect();
        let from = |a: usize| {
            let hops = hops_from(&neighbours, a);
            (0..self.nodes).filter(move |b| *b != a).filter_map(move |b| hops[b].map(|h| (a, b, h)))
        };
        (0..self.nodes).flat_map(from).collect()
    }
}

/// Hops from `from` to each node; `None`: no path.
fn hops_from(neighbours: &[Vec<usize>], from: usize) -> Vec<Option<u32>> {
    let mut hops = vec![None; neighbours.len()];
    hops[from] = Some(0);
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(&a) = reached.get(next) {
        next += 1;
        for &b in &neighbours[a] {
            if hops[b].is_none() {
                hops[b] = hops[a].map(|h| h + 1);
                reached.push(b);
            }
        }
    }
    hops
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn graph(nodes: usize, links: &[(usize, usize)]) -> Graph {
        let mut linked = vec![false; nodes * nodes];
        for (a, b) in links {
            linked[a * nodes + b] = true;
            linked[b * nodes + a] = true;
        }
        Graph { nodes, linked }
    }

    #[test]
    fn pairs_are_connected_over_the_shortest_path_or_not_at_all() {
        let graph = graph(5, &[(0, 1), (1, 2), (2, 3), (0, 3)]);
        let pairs = graph.connected_pairs();
        assert_eq!(pairs[..3], [(0, 1, 1), (0, 2, 2), (0, 3, 1)]);
        assert_eq!(pairs.len(), 4 * 3);
    }
}
