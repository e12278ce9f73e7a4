//! Which descriptor became ready, as the 64 bits that epoll keeps for each.

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Signal,
    Parent,
    ControlListener,
    ControlClient(u32),
    FeedbackListener(u32),
    FeedbackClient(u32),
    Port(u32),
    Hwsim,
}

impl Token {
    pub fn pack(self) -> u64 {
        let (kind, index) = match self {
            Token::Signal => (0, 0),
            Token::Parent => (1, 0),
            Token::ControlListener => (2, 0),
            Token::ControlClient(i) => (3, i),
            Token::FeedbackListener(i) => (4, i),
            Token::FeedbackClient(i) => (5, i),
            Token::Port(i) => (6, i),
            Token::Hwsim => (7, 0),
        };
        kind << 32 | u64::from(index)
    }

    pub fn unpack(packed: u64) -> Option<Self> {
        let index = packed as u32;
        Some(match packed >> 32 {
            0 => Token::Signal,
            1 => Token::Parent,
            2 => Token::ControlListener,
            3 => Token::ControlClient(index),
            4 => Token::FeedbackListener(index),
            5 => Token::FeedbackClient(index),
            6 => Token::Port(index),
            7 => Token::Hwsim,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_packing() {
        for token in [
            Token::Signal,
            Token::Parent,
            Token::ControlListener,
            Token::ControlClient(7),
            Token::FeedbackListener(8),
            Token::FeedbackClient(u32::MAX),
            Token::Port(9),
            Token::Hwsim,
        ] {
            assert_eq!(Token::unpack(token.pack()), Some(token));
        }
        assert_eq!(Token::unpack(u64::MAX), None);
    }
}
