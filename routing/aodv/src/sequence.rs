//! Sequence numbers (RFC 3561, 6.1): 32 bits that wrap around.
//!
//! Departure: 0 is never used. In AODV-UU it means "unknown", so no node could reply for a node whose number wrapped to 0.

/// Whether `a` is newer (RFC 3561: fresher) than `b`: their difference as a signed number is positive.
pub fn newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// The number after `a`.
pub fn next(a: u32) -> u32 {
    a.wrapping_add(1).max(1)
}

/// The newer of both.
pub fn newest(a: u32, b: u32) -> u32 {
    if newer(b, a) {
        b
    } else {
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_holds_across_the_wrap() {
        // RFC 3561, 6.1: signed 32-bit arithmetic, so 1 is fresher than 4294967295
        assert!(newer(1, u32::MAX) && !newer(u32::MAX, 1));
        assert!(newer(0x8000_0000, 1) && !newer(1, 0x8000_0000));
        assert!(newer(5, 4) && !newer(4, 4));
        assert_eq!((newest(u32::MAX, 2), newest(2, u32::MAX)), (2, 2));
    }

    #[test]
    fn zero_is_skipped() {
        assert_eq!((next(u32::MAX), next(0), next(1)), (1, 1, 2));
    }
}
