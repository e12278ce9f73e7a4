//! Sequence numbers (RFC 3626, section 19): 16 bits that wrap around.

/// Whether `a` is newer than `b`: at most MAXVALUE / 2 ahead.
pub fn newer(a: u16, b: u16) -> bool {
    a != b && a.wrapping_sub(b) <= u16::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        // MAXVALUE / 2 = 32767 steps ahead is newer, one more is older
        assert!(newer(32_767, 0) && !newer(32_768, 0) && newer(0, 32_769));
    }
}
