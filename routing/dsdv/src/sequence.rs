//! A destination's sequence number (Perkins and Bhagwat, SIGCOMM 1994, section 3): even numbers are the destination's own,
//! an odd one means that another node lost the route.
//!
//! Numbers are compared as serial numbers (RFC 1982); in ns-2 and ns-3 routing ends when they wrap at 2^32.

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

    /// Whether the number is odd: the route is lost.
    pub fn is_broken(self) -> bool {
        self.0 % 2 == 1
    }

    /// The number with which a node advertises the loss of the route.
    pub fn broken(self) -> Self {
        Self(self.0 | 1)
    }

    /// The destination's next number: the even one after this.
    pub fn next(self) -> Self {
        Self((self.0 | 1).wrapping_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_holds_across_the_wrap() {
        assert!(Sequence(2).newer_than(Sequence(0)) && !Sequence(0).newer_than(Sequence(2)));
        assert!(Sequence(0).newer_than(Sequence(u32::MAX)) && !Sequence(u32::MAX).newer_than(Sequence(0)));
        assert!(Sequence(3).newer_than(Sequence(u32::MAX - 1)));
        assert!(!Sequence(7).newer_than(Sequence(7)));
    }

    #[test]
    fn of_numbers_two_to_the_31_apart_neither_is_newer() {
        let (a, b) = (Sequence(4), Sequence(4 + (1 << 31)));
        assert!(!a.newer_than(b) && !b.newer_than(a));
        assert!(Sequence(3 + (1 << 31)).newer_than(a));
    }

    #[test]
    fn a_lost_route_is_odd_and_the_destinations_answer_is_even_and_newer() {
        assert_eq!((Sequence(6).broken(), Sequence(7).broken()), (Sequence(7), Sequence(7)));
        assert_eq!((Sequence(6).next(), Sequence(7).next()), (Sequence(8), Sequence(8)));
        assert_eq!((Sequence(u32::MAX - 1).broken(), Sequence(u32::MAX).next()), (Sequence(u32::MAX), Sequence(0)));
    }
}
