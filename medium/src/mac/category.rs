//! Access categories of EDCA (IEEE Std 802.11-2020 clause 10.2.3.2), and the category of a packet by its DSCP (RFC 8325).
//!
//! All packets of a category are sent under one traffic identifier, as they share queue and parameters; the standard gives each of the
//! two user priorities of a category one of its own (table 10-1).

/// An access category, in the order of priority, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// AC_BK.
    Background,
    /// AC_BE; all packets of a station without EDCA.
    #[default]
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

impl Category {
    /// All of them, the highest first.
    pub const BY_PRIORITY: [Self; 4] = [Self::Voice, Self::Video, Self::BestEffort, Self::Background];

    /// The category of a packet with this DSCP (RFC 8325, section 4.3, figure 1; LE: RFC 8622, section 10).
    pub const fn of_dscp(dscp: u8) -> Self {
        match dscp {
            // CS7, CS6 (network control), EF, VOICE-ADMIT
            56 | 48 | 46 | 44 => Self::Voice,
            // CS5 (signalling), AF41 to AF43, CS4, AF31 to AF33, CS3
            40 | 34 | 36 | 38 | 32 | 26 | 28 | 30 | 24 => Self::Video,
            // CS1, LE
            8 | 1 => Self::Background,
            // AF21 to AF23, CS2, AF11 to AF13, default, and all that are not recommended
            _ => Self::BestEffort,
        }
    }

    /// Its traffic identifier: one of the user priorities that table 10-1 gives the category.
    pub const fn tid(self) -> u8 {
        match self {
            Self::Background => 1,
            Self::BestEffort => 0,
            Self::Video => 4,
            Self::Voice => 6,
        }
    }

    /// Name in the air log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::BestEffort => "best-effort",
            Self::Video => "video",
            Self::Voice => "voice",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8325, figure 1, top down: DSCP and user priority; then LE of RFC 8622
    const RECOMMENDED: [(u8, u8); 24] = [
        (56, 7),
        (48, 7),
        (46, 6),
        (44, 6),
        (40, 5),
        (34, 4),
        (36, 4),
        (38, 4),
        (32, 4),
        (26, 4),
        (28, 4),
        (30, 4),
        (24, 4),
        (18, 3),
        (20, 3),
        (22, 3),
        (16, 0),
        (10, 0),
        (12, 0),
        (14, 0),
        (0, 0),
        (8, 1),
        (1, 1),
        (63, 0),
    ];

    /// Table 10-1.
    fn of_user_priority(priority: u8) -> Category {
        match priority {
            1 | 2 => Category::Background,
            0 | 3 => Category::BestEffort,
            4 | 5 => Category::Video,
            _ => Category::Voice,
        }
    }

    #[test]
    fn a_dscp_has_the_category_that_rfc_8325_recommends_and_any_other_is_best_effort() {
        for (dscp, priority) in RECOMMENDED {
            assert_eq!(Category::of_dscp(dscp), of_user_priority(priority), "DSCP {dscp}");
        }
        let named: Vec<u8> = RECOMMENDED.iter().map(|(dscp, _)| *dscp).collect();
        assert!((0..64).filter(|dscp| !named.contains(dscp)).all(|d| Category::of_dscp(d) == Category::BestEffort));
    }

    #[test]
    fn the_traffic_identifier_of_a_category_is_one_of_its_user_priorities() {
        assert!(Category::BY_PRIORITY.iter().all(|category| of_user_priority(category.tid()) == *category));
        assert!(Category::BY_PRIORITY.windows(2).all(|two| two[0] > two[1]));
    }
}
