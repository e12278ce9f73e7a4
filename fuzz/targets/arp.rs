//! Address resolution: messages from the air between packets for a few next hops. A parsed message is written with the same
//! bytes; one packet waits per next hop; each packet ends once.
//!
//! A step is: kind; for a packet its next hop, otherwise the bytes of a message.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_routing::arp::{Resolution, Resolver, Sent};
use manet_routing::packet::arp::{Message, LEN};
use manet_routing::Node;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

fuzz_target!(|data: &[u8]| {
    let Some((first, mut rest)) = data.split_first() else { return };
    let resolution = if first & 1 == 0 { Resolution::Cmu } else { Resolution::Silent };
    let mut table = Resolver::new(&node(), resolution).expect("it resolves");
    let mut open = BTreeSet::new();
    let end = |open: &mut BTreeSet<u32>, packet| assert!(open.remove(&packet), "packet {packet} ends twice");
    for packet in 0.. {
        let Some((kind, after)) = rest.split_first() else { break };
        if kind & 1 == 0 {
            open.insert(packet);
            match table.send(Ipv4Addr::new(10, 0, 0, kind >> 1), packet) {
                Sent::Known(_, sent) => end(&mut open, sent),
                Sent::Waits { displaced, .. } => displaced.into_iter().for_each(|p| end(&mut open, p)),
                Sent::Failed(packets) => {
                    assert!(resolution == Resolution::Cmu);
                    packets.into_iter().for_each(|p| end(&mut open, p));
                }
            }
            rest = after;
        } else {
            let (message, next) = after.split_at(LEN.min(after.len()));
            rest = next;
            let Some(parsed) = Message::parse(message) else { continue };
            assert_eq!(parsed.to_bytes(), message);
            let Ok(learnt) = table.receive(&parsed) else { continue };
            learnt.released.into_iter().chain(learnt.displaced).for_each(|p| end(&mut open, p));
        }
        assert_eq!(open.len(), table.waiting());
    }
});

fn node() -> Node {
    let address = Ipv4Addr::new(10, 0, 0, 1);
    Node::new(1, address, (Ipv4Addr::new(10, 0, 0, 0), 24), [2, 0, 0, 0, 0, 1])
}
