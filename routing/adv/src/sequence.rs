//! A destination's sequence number: even numbers are the destination's own, and a node that breaks the route advertises
//! the next odd one. Numbers are compared as serial numbers (RFC 1982).

use serde::Serialize;

/// A sequence number; compare with [`Sequence::newer_than`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Sequence(pub u32);

impl Sequence {
    /// Whether this number is newer. Of two numbers that are 2^31 apart neither is.
    pub fn newer_than(self, other: Self) -> bool {
        (1..1 << 31).contains(&self.0.wrapping_sub(other.0))
    }

    /// The destination's next number.
    pub fn next(self) -> Self {
        Self((self.0 | 1).wrapping_add(1))
    }

    /// The number with which a break of a route with this number is advertised.
    pub fn broken(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Inverse of [`Self::broken`].
    pub fn unbroken(self) -> Self {
        Self(self.0.wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_holds_across_the_wrap() {
        assert!(Sequence(2).newer_than(Sequence(0)) && !Sequence(0).newer_than(Sequence(2)));
        assert!(Sequence(0).newer_than(Sequence(u32::MAX)) && !Sequence(u32::MAX).newer_than(Sequence(0)));
        assert!(!Sequence(7).newer_than(Sequence(7)));
        assert!(!Sequence(4).newer_than(Sequence(4 + (1 << 31))) && !Sequence(4 + (1 << 31)).newer_than(Sequence(4)));
    }

    #[test]
    fn a_break_is_newer_than_its_route_and_older_than_the_destinations_next_number() {
        for own in [Sequence(6), Sequence(u32::MAX - 1)] {
            assert!(own.broken().newer_than(own) && own.next().newer_than(own.broken()));
            assert_eq!((own.broken().unbroken(), own.next().0 % 2), (own, 0));
        }
        assert_eq!(Sequence(7).next(), Sequence(8));
    }
}
