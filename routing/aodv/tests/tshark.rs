//! Cross-check of our messages with Wireshark's dissector of AODV: the fields of each message, and no malformed message in
//! a run with a break. Skipped with a message if tshark is not installed. It has no dissector of minimal encapsulation, and
//! shows extension 4 (AODV-UU's) as unknown.

mod air;

use air::{chain, data, sent};
use manet_aodv::wire::{rerr, rrep, rrep_ack, rreq, Extension, Message};
use manet_aodv::Options;
use manet_routing::packet::ipv4;
use manet_routing::trial::{ip, ms, packet_of};
use manet_routing_host::tshark;

/// The fields of messages (`tshark::fields`), each in a datagram of UDP and IPv4.
fn tshark(name: &str, messages: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    let datagram = |message: &Vec<u8>| {
        let words = [654, 654, 8 + message.len() as u16, 0].map(u16::to_be_bytes);
        packet_of(ipv4::protocol::UDP, ip(1), ip(2), 0, &[words.as_flattened(), message].concat())
    };
    tshark::fields(&format!("aodv-{name}"), &messages.iter().map(datagram).collect::<Vec<_>>(), fields)
}

fn request() -> Message {
    Message::Rreq(rreq::Repr { gratuitous: true, unknown: true, hops: 2, ..rreq::Repr::new(77, ip(4), ip(1), 258) })
}

fn reply(acknowledge: bool, extensions: Vec<Extension>) -> Message {
    Message::Rrep(rrep::Repr { acknowledge, hops: 3, extensions, ..rrep::Repr::new(ip(4), 7, ip(1), 3000) })
}

#[test]
fn tshark_agrees_on_every_message() {
    let error = rerr::Repr { no_delete: true, unreachable: vec![(ip(4), 9), (ip(5), 10)] };
    let cases: Vec<(Message, &[&str], &str)> = vec![
        (
            request(),
            &[
                "aodv.type",
                "aodv.flags.rreq_gratuitous",
                "aodv.flags.rreq_destinationonly",
                "aodv.flags.rreq_unknown",
                "aodv.hopcount",
                "aodv.rreq_id",
                "aodv.dest_ip",
                "aodv.orig_ip",
                "aodv.orig_seqno",
            ],
            "1|1|0|1|2|77|10.0.0.4|10.0.0.1|258",
        ),
        (
            reply(true, vec![Extension::internet_destination(ip(9))]),
            &[
                "aodv.type",
                "aodv.flags.rrep_ack",
                "aodv.hopcount",
                "aodv.dest_ip",
                "aodv.dest_seqno",
                "aodv.orig_ip",
                "aodv.lifetime",
                "aodv.ext_type",
                "aodv.ext_length",
            ],
            "2|1|3|10.0.0.4|7|10.0.0.1|3000|4|4",
        ),
        (
            Message::Rerr(error),
            &["aodv.type", "aodv.flags.rerr_nodelete", "aodv.destcount", "aodv.unreach_dest_ip", "aodv.dest_seqno"],
            "3|1|2|10.0.0.4,10.0.0.5|9,10",
        ),
        (Message::RrepAck(rrep_ack::Repr), &["aodv.type"], "4"),
    ];
    for (n, (message, fields, expected)) in cases.into_iter().enumerate() {
        let all: Vec<&str> = fields.iter().copied().chain(["_ws.malformed"]).collect();
        let Some(lines) = tshark(&format!("message{n}"), &[message.emit()], &all) else { return };
        assert_eq!(lines, [format!("{expected}|")]);
    }
}

#[test]
fn tshark_finds_no_malformed_message_in_a_chain_with_a_break() {
    let options: Options = serde_json::from_str(r#"{"link":"hello","unidirectional":true}"#).unwrap();
    let mut air = chain(5, &options);
    for i in 0..120 {
        if i == 80 {
            air.cut(3, 4);
        }
        data(&mut air, 1, ip(5), 1);
        air.run(ms(100 * (i + 1)));
    }
    let messages: Vec<Vec<u8>> = (1..=5).flat_map(|n| sent(&air, n)).map(|(.., bytes)| bytes.0).collect();
    let Some(lines) = tshark("chain", &messages, &["frame.protocols", "aodv.type", "_ws.expert.message"]) else {
        return;
    };
    assert_eq!(lines.len(), messages.len());
    for kind in 1..=4 {
        let of_kind = format!("ip:udp:aodv|{kind}|");
        assert!(lines.contains(&of_kind), "{of_kind}: {:?}", lines.first());
    }
    assert!(lines.iter().all(|l| l.starts_with("ip:udp:aodv|") && l.ends_with('|')), "{lines:?}");
}
