//! Heights of TORA (draft-ietf-manet-tora-spec-04, section 4): (tau, oid, r, delta, id), compared in this order. Data flows from
//! higher to lower nodes; a null height (`None` in this crate) is higher than all others.

use std::fmt;
use std::net::Ipv4Addr;

/// A reference level (tau, oid, r): all nodes that reacted to one failure share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// Time of the failure, ns of the clock that all nodes share; 0 in the level of the destination.
    pub tau: u64,
    /// The node that defined the level; 0.0.0.0 in the level of the destination.
    pub oid: Ipv4Addr,
    /// r: the level came back from nodes without another path.
    pub reflected: bool,
}

/// A height that is not null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Height {
    /// The reference level.
    pub level: Level,
    /// Order of the nodes within a level.
    pub delta: i32,
    /// The node of the height.
    pub id: Ipv4Addr,
}

impl Level {
    /// The level of a destination.
    pub const ZERO: Self = Self { tau: 0, oid: Ipv4Addr::UNSPECIFIED, reflected: false };
}

impl Height {
    /// The height of a destination.
    pub const fn zero(destination: Ipv4Addr) -> Self {
        Self { level: Level::ZERO, delta: 0, id: destination }
    }

    /// The height of node `id` directly above this one.
    pub fn above(&self, id: Ipv4Addr) -> Self {
        Self { level: self.level, delta: self.delta.saturating_add(1), id }
    }
}

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Level { tau, oid, reflected } = self.level;
        write!(f, "({tau}, {oid}, {}, {}, {})", u8::from(reflected), self.delta, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_compare_by_tau_then_oid_then_r_then_delta_then_id() {
        let ip = |last| Ipv4Addr::new(10, 0, 0, last);
        let height = |tau, oid, reflected, delta, id| Height {
            level: Level { tau, oid: ip(oid), reflected },
            delta,
            id: ip(id),
        };
        let rising = [
            Height::zero(ip(9)),
            height(1, 1, false, -1, 9),
            height(1, 1, false, 0, 1),
            height(1, 1, false, 0, 2),
            height(1, 1, true, -5, 1),
            height(1, 2, false, -9, 1),
            height(2, 1, false, -9, 1),
        ];
        assert!(rising.is_sorted_by(|a, b| a < b));
        assert_eq!(height(7, 1, true, i32::MAX, 1).above(ip(2)).delta, i32::MAX);
    }
}
