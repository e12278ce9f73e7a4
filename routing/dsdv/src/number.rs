//! A destination's sequence number (Perkins and Bhagwat, SIGCOMM 1994, section 3): even numbers are the destination's own,
//! an odd one says that somebody lost the route.
//!
//! Compared as serial numbers (RFC 1982), which ns-2 and ns-3 do not do: after 2^32 theirs end the network.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Number(pub u32);

impl Number {
    /// Two numbers half the circle apart: neither is newer.
    pub fn newer_than(self, other: Self) -> bool {
        (1..1 << 31).contains(&self.0.wrapping_sub(other.0))
    }

    pub fn is_broken(self) -> bool {
        self.0 % 2 == 1
    }

    /// What whoever loses the route says.
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
    fn the_circle_has_no_end() {
        assert!(Number(2).newer_than(Number(0)) && !Number(0).newer_than(Number(2)));
        assert!(Number(0).newer_than(Number(u32::MAX)) && !Number(u32::MAX).newer_than(Number(0)));
        assert!(Number(3).newer_than(Number(u32::MAX - 1)));
        assert!(!Number(7).newer_than(Number(7)));
    }

    #[test]
    fn half_the_circle_apart_neither_is_newer() {
        let (a, b) = (Number(4), Number(4 + (1 << 31)));
        assert!(!a.newer_than(b) && !b.newer_than(a));
        assert!(Number(3 + (1 << 31)).newer_than(a));
    }

    #[test]
    fn a_lost_route_is_odd_and_the_destinations_answer_is_even_and_newer() {
        assert_eq!((Number(6).broken(), Number(7).broken()), (Number(7), Number(7)));
        assert_eq!((Number(6).next(), Number(7).next()), (Number(8), Number(8)));
        assert_eq!((Number(u32::MAX - 1).broken(), Number(u32::MAX).next()), (Number(u32::MAX), Number(0)));
    }
}
