//! The routes of all nodes at once: the next hop for each node and destination. Loops and convergence are
//! properties of this table alone.

use crate::graph::Graph;

/// Next hop of each node for each destination.
#[derive(Clone, Debug)]
pub struct NextHops {
    nodes: usize,
    /// Row by row: node, destination.
    next: Vec<Option<u16>>,
}

/// The path along the next hops from a node to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// Reaches the destination in this number of hops.
    Arrives(u32),
    /// Ends at this node, which has no route.
    Ends(usize),
    /// Enters a loop of these nodes: each forwards to the next, the last to the first.
    Loops(Vec<usize>),
}

impl NextHops {
    /// A table without routes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes, next: vec![None; nodes * nodes] }
    }

    /// The next hop of `node` for `destination`.
    pub fn get(&self, node: usize, destination: usize) -> Option<usize> {
        self.next[node * self.nodes + destination].map(usize::from)
    }

    /// Sets the next hop of `node` for `destination`; returns whether that changed it.
    pub fn set(&mut self, node: usize, destination: usize, next: Option<usize>) -> bool {
        let entry = &mut self.next[node * self.nodes + destination];
        let next = next.map(|n| n as u16);
        std::mem::replace(entry, next) != next
    }

    /// Follows the next hops for `destination` from `node`.
    pub fn follow(&self, node: usize, destination: usize) -> Path {
        let mut at = node;
        for hops in 0..self.nodes as u32 {
            if at == destination {
                return Path::Arrives(hops);
            }
            match self.get(at, destination) {
                Some(next) => at = next,
                None => return Path::Ends(at),
            }
        }
        // after as many hops as nodes it can only be on the loop
        let mut ring = vec![at];
        while let Some(next) = self.get(ring[ring.len() - 1], destination).filter(|n| *n != at) {
            ring.push(next);
        }
        Path::Loops(ring)
    }

    /// Whether packets from `node` reach `destination` over existing links.
    pub fn leads(&self, graph: &Graph, node: usize, destination: usize) -> bool {
        let mut at = node;
        for _ in 0..self.nodes {
            if at == destination {
                return true;
            }
            match self.get(at, destination) {
                Some(next) if graph.linked(at, next) => at = next,
                _ => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tests::graph;

    #[test]
    fn a_path_arrives_ends_or_loops() {
        let mut hops = NextHops::new(6);
        for (node, next) in [(0, 1), (1, 2), (2, 5)] {
            hops.set(node, 5, Some(next));
        }
        assert_eq!(hops.follow(0, 5), Path::Arrives(3));
        hops.set(1, 5, None);
        assert_eq!(hops.follow(0, 5), Path::Ends(1));
        for (node, next) in [(1, 3), (3, 4), (4, 1)] {
            hops.set(node, 5, Some(next));
        }
        let Path::Loops(ring) = hops.follow(0, 5) else { panic!("it goes round") };
        assert_eq!(ring.len(), 3);
        assert!(ring.contains(&1) && ring.contains(&3) && ring.contains(&4), "0 only leads into it: {ring:?}");
    }

    #[test]
    fn a_route_over_a_missing_link_reaches_nothing() {
        let mut hops = NextHops::new(3);
        assert!(hops.set(0, 2, Some(1)) && hops.set(1, 2, Some(2)) && !hops.set(1, 2, Some(2)));
        assert!(hops.leads(&graph(3, &[(0, 1), (1, 2)]), 0, 2));
        assert!(!hops.leads(&graph(3, &[(0, 1)]), 0, 2));
    }
}
