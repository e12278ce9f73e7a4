//! Cross-check of our messages with Wireshark's dissector of AODV: the fields of each message, and no malformed message in
//! a run with a break. Skipped with a message if tshark is not installed. It has no dissector of minimal encapsulation, and
//! shows extension 4 (AODV-UU's) as unknown.

mod air;

use air::{chain, data, sent};
use manet_aodv::wire::{rerr, rrep, rrep_ack, rreq, Extension, Message};
use manet_aodv::Options;
use manet_routing::packet::ipv4;
use manet_routing::trial::{ip, ms};
use manet_routing::tshark::normalised;
use std::process::Command;

/// A capture in the libpcap format (version 2.4, microseconds), link type 228: IPv4 without a link layer.
fn pcap(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 228] {
        file.extend(word.to_le_bytes());
    }
    for (n, message) in messages.iter().enumerate() {
        let length = (8 + message.len()) as u16;
        let mut udp: Vec<u8> = [654u16, 654, length, 0].iter().flat_map(|w| w.to_be_bytes()).collect();
        udp.extend(message);
        let header = ipv4::Repr {
            tos: ipv4::TOS_CS6,
            identification: 0,
            dont_fragment: false,
            ttl: 64,
            protocol: ipv4::protocol::UDP,
            source: ip(1),
            destination: ip(2),
        };
        let packet = header.packet(&udp);
        for word in [n as u32, 0, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// The values of `fields` in each message, separated by `|`; `None`: tshark is not installed.
fn tshark(name: &str, messages: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    let file = std::env::temp_dir().join(format!("manet-aodv-{name}-{}.pcap", std::process::id()));
    std::fs::write(&file, pcap(messages)).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&file).args(["-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output();
    std::fs::remove_file(&file).unwrap();
    let Ok(output) = output else {
        eprintln!("SKIPPED: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(normalised).collect())
}

fn request() -> Message {
    Message::Rreq(rreq::Repr {
        join: false,
        repair: false,
        gratuitous: true,
        destination_only: false,
        unknown: true,
        hops: 2,
        id: 77,
        destination: ip(4),
        destination_sequence: 0,
        originator: ip(1),
        originator_sequence: 258,
        extensions: Vec::new(),
    })
}

fn reply(acknowledge: bool, extensions: Vec<Extension>) -> Message {
    Message::Rrep(rrep::Repr {
        repair: false,
        acknowledge,
        prefix: 0,
        hops: 3,
        destination: ip(4),
        destination_sequence: 7,
        originator: ip(1),
        lifetime_ms: 3000,
        extensions,
    })
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
