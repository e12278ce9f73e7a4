//! The identity of a ready descriptor, packed into the 64 bits that epoll stores for each.

/// A descriptor of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// SIGTERM or SIGINT.
    Signal,
    /// End of the parent process.
    Parent,
    /// The control socket.
    ControlListener,
    /// A client of the control socket, by its number.
    ControlClient(u32),
    /// The link-feedback socket of a station.
    FeedbackListener(u32),
    /// A client of a link-feedback socket, by its number.
    FeedbackClient(u32),
    /// The TAP of a port.
    Port(u32),
    /// The netlink socket of hwsim.
    Hwsim,
}

impl Token {
    /// Kind in the upper, number in the lower 32 bits.
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

    /// The inverse of [`Self::pack`]; `None`: not a packed token.
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
