//! All outputs of the machines, in order, as one number: FNV-1a, 64 bits (Fowler, Noll, Vo), as for the medium's air log.

use manet_engine::Instant;
use manet_routing::{Device, Output};
use std::net::Ipv4Addr;

/// The hash so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// The 64-bit hash.
    pub fn value(self) -> u64 {
        self.0
    }

    /// Adds an output. Lengths precede bytes of variable length, so that different series of outputs are different bytes.
    pub fn output(&mut self, at: Instant, node: usize, output: &Output) {
        self.number(at.as_nanos());
        self.number(node as u64);
        match output {
            Output::Control { to, ttl, bytes } => self.packet(1, *to, u64::from(*ttl), bytes),
            Output::SetRoute(r) => {
                self.head(2, r.destination);
                self.address(r.via);
                let device = if r.device == Device::Radio { 0 } else { 1 };
                self.bytes(&[r.prefix, r.hops, device]);
                self.number(r.mtu.map_or(0, u64::from));
            }
            Output::ClearRoute { destination, prefix } => {
                self.head(3, *destination);
                self.bytes(&[*prefix]);
            }
            Output::Send { bytes } => self.packet(4, Ipv4Addr::UNSPECIFIED, 0, bytes),
            Output::Unreachable { bytes } => self.packet(5, Ipv4Addr::UNSPECIFIED, 0, bytes),
            Output::Notice { kind, bytes } => {
                self.packet(8, Ipv4Addr::UNSPECIFIED, u16::from_be_bytes(kind.kind()).into(), bytes)
            }
            Output::Purge { neighbour } => self.head(6, *neighbour),
            Output::Frame { to, bytes, control } => {
                self.bytes(to);
                self.packet(7, Ipv4Addr::UNSPECIFIED, u64::from(*control), bytes);
            }
            Output::Arp { to, bytes } => {
                self.bytes(to);
                self.packet(11, Ipv4Addr::UNSPECIFIED, 0, bytes);
            }
            Output::PurgeFrames { to } => {
                self.head(8, Ipv4Addr::UNSPECIFIED);
                self.bytes(to);
            }
            Output::Deliver { bytes } => self.packet(9, Ipv4Addr::UNSPECIFIED, 0, bytes),
            Output::Note(note) => self.packet(10, note.about, note.value, note.event.as_bytes()),
        }
    }

    fn packet(&mut self, what: u8, about: Ipv4Addr, number: u64, bytes: &[u8]) {
        self.head(what, about);
        self.number(number);
        self.number(bytes.len() as u64);
        self.bytes(bytes);
    }

    fn head(&mut self, what: u8, about: Ipv4Addr) {
        self.bytes(&[what]);
        self.address(about);
    }

    fn address(&mut self, address: Ipv4Addr) {
        self.bytes(&address.octets());
    }

    fn number(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::{Bytes, Route};

    fn of(at: u64, output: Output) -> u64 {
        let mut print = Fingerprint::default();
        print.output(Instant::from_nanos(at), 0, &output);
        print.value()
    }

    #[test]
    fn time_kind_and_content_all_count() {
        let send = |b: u8| Output::Send { bytes: Bytes(vec![b]) };
        let route =
            |via: u8| Output::SetRoute(Route::host(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, via), 2));
        let all = [
            of(1, send(1)),
            of(2, send(1)),
            of(1, send(2)),
            of(1, Output::Unreachable { bytes: Bytes(vec![1]) }),
            of(1, route(2)),
            of(1, route(3)),
        ];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
