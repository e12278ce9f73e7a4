//! A client of a socket that carries lines, without blocking: what it has sent, and what still waits for it.
//!
//! Reads and writes go to the stream that it is given; the owner of the socket decides when, and drops clients.

use std::io::{ErrorKind, Read, Write};

/// A connection with bytes of an unfinished line, and bytes that the stream did not take yet.
#[derive(Debug)]
pub struct LineClient<S> {
    /// The connection, in non-blocking mode.
    pub stream: S,
    received: Vec<u8>,
    unsent: Vec<u8>,
}

impl<S: Read + Write> LineClient<S> {
    /// A client that has neither sent nor received.
    pub fn new(stream: S) -> Self {
        Self { stream, received: Vec::new(), unsent: Vec::new() }
    }

    /// Reads once, at most as many bytes as `chunk` holds. False: the connection is closed or broken.
    pub fn read(&mut self, chunk: &mut [u8]) -> bool {
        match self.stream.read(chunk) {
            Ok(0) => false,
            Ok(n) => {
                self.received.extend_from_slice(&chunk[..n]);
                true
            }
            Err(e) => can_wait(&e),
        }
    }

    /// Takes the complete lines, without their ends.
    pub fn take_lines(&mut self) -> Vec<Vec<u8>> {
        let Some(last) = self.received.iter().rposition(|b| *b == b'\n') else { return Vec::new() };
        let rest = self.received.split_off(last + 1);
        let lines = std::mem::replace(&mut self.received, rest);
        lines[..last].split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
    }

    /// Bytes of the line that has no end yet.
    pub fn unfinished(&self) -> usize {
        self.received.len()
    }

    /// Adds bytes to those that wait for [`flush`](Self::flush).
    pub fn queue(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Bytes that wait until the stream is writable.
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Writes once, as much as the stream takes. False: the connection is broken.
    pub fn flush(&mut self) -> bool {
        if self.unsent.is_empty() {
            return true;
        }
        match self.stream.write(&self.unsent) {
            Ok(n) => {
                self.unsent.drain(..n);
                true
            }
            Err(e) => can_wait(&e),
        }
    }
}

fn can_wait(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// A peer with bytes to read that takes four bytes a write.
    struct Peer(Vec<u8>, Vec<u8>);

    impl Read for Peer {
        fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(chunk.len());
            chunk[..n].copy_from_slice(&self.0.drain(..n).collect::<Vec<u8>>());
            Ok(n)
        }
    }

    impl Write for Peer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1.len() >= 8 {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.1.extend_from_slice(&bytes[..bytes.len().min(4)]);
            Ok(bytes.len().min(4))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whole_lines_are_taken_and_the_rest_waits() {
        let mut client = LineClient::new(Peer(b"one\ntwo\nthr".to_vec(), Vec::new()));
        assert!(client.read(&mut [0; 64]));
        assert_eq!(client.take_lines(), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(client.unfinished(), 3);
        assert!(client.take_lines().is_empty());
        assert!(!client.read(&mut [0; 64]), "no more bytes: the peer has closed");
    }

    #[test]
    fn bytes_that_the_stream_does_not_take_wait_in_order() {
        let mut client = LineClient::new(Peer(Vec::new(), Vec::new()));
        client.queue(b"one\ntwo\nthree\n");
        for left in [10, 6, 6] {
            assert!(client.flush());
            assert_eq!(client.unsent(), left);
        }
        assert_eq!(client.stream.1, b"one\ntwo\n");
    }
}
