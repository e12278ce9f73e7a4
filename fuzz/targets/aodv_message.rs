//! AODV's messages (RFC 3561, 5.1 to 5.4) with their extensions, and minimal encapsulation (RFC 2004).
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_aodv::wire::{minimal, Message};
use manet_routing::packet::ipv4;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Message::parse(data) {
        assert_eq!(Message::parse(&message.emit()), Ok(message.clone()));
        let _ = message.to_string();
        match message {
            Message::Rreq(request) => drop(request.wanted_sequence()),
            Message::Rrep(reply) => {
                let _ = (reply.internet_destination(), reply.hello_interval());
                reply.extensions.iter().for_each(|e| drop(e.as_neighbours()));
            }
            Message::Rerr(_) | Message::RrepAck(_) => {}
        }
    }
    if let Some(packet) = ipv4::Packet::parse(data) {
        if let Ok(inner) = minimal::decapsulate(&packet) {
            // the decapsulated packet can be encapsulated again
            let inner = ipv4::Packet::parse(&inner).expect("a packet comes out");
            let _ = minimal::encapsulate(&inner, packet.source(), packet.destination());
        }
    }
});
