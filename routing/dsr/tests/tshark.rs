//! Cross-check of our packets with Wireshark's dissector of DSR: the fields of each message, and no malformed or suspicious
//! packet. Skipped with a message if tshark is not installed.

mod net;
use manet_dsr::datagram::Datagram;
use manet_dsr::wire::{Ack, AckRequest, Opt, Reply, Request, RouteError, SourceRoute, What};
use manet_dsr::Options;
use manet_routing::trial::{ip, ms, udp};
use manet_routing::{Bytes, Output, BROADCAST};
use manet_routing_host::tshark;
use net::{chain, send};

fn route(salvage: u8, left: u8, first_external: bool, last_external: bool) -> Opt {
    let addresses = vec![ip(2), ip(3)];
    Opt::SourceRoute(SourceRoute { first_external, last_external, salvage, segments_left: left, addresses })
}

fn control(options: Vec<Opt>) -> Bytes {
    Datagram::control(ip(1), ip(4), 7, options).to_bytes()
}

fn error(what: What) -> Opt {
    Opt::Error(RouteError { salvage: 5, source: ip(2), destination: ip(1), what })
}

#[test]
fn tshark_agrees_on_every_message() {
    let request = Request { identification: 0x1234, target: ip(9), addresses: vec![ip(2), ip(3)] };
    let reply = Reply { last_external: true, addresses: vec![ip(2), ip(3), ip(4)] };
    let mut data = Datagram::parse(&udp(ip(1), ip(4), 8, b"payload")).unwrap();
    data.options = vec![route(9, 1, true, true), Opt::AckRequest(AckRequest { identification: 77 })];
    let broadcast = Datagram::control(ip(1), BROADCAST, 7, vec![Opt::Request(request)]).to_bytes();
    let cases: Vec<(Bytes, &[&str], &str)> = vec![
        (
            broadcast,
            &["dsr.option.rreq.id", "dsr.option.rreq.targetaddress", "dsr.option.rreq.address"],
            "4660|10.0.0.9|10.0.0.2,10.0.0.3",
        ),
        (
            control(vec![route(0, 2, false, false), Opt::Reply(reply)]),
            &["dsr.option.rrep.lasthopex", "dsr.option.rrep.address", "dsr.option.srcrt.segsleft"],
            "1|10.0.0.2,10.0.0.3,10.0.0.4|2",
        ),
        (
            control(vec![error(What::NodeUnreachable(ip(3)))]),
            &["dsr.option.err.type", "dsr.option.err.salvage", "dsr.option.err.src", "dsr.option.err.unreachablenode"],
            "1|5|10.0.0.2|10.0.0.3",
        ),
        (control(vec![error(What::FlowState)]), &["dsr.option.err.type", "dsr.option.err.dest"], "2|10.0.0.1"),
        (
            control(vec![error(What::OptionNotSupported(128))]),
            &["dsr.option.err.type", "dsr.option.err.unsupportedoption"],
            "3|128",
        ),
        (
            control(vec![Opt::Ack(Ack { identification: 77, source: ip(4), destination: ip(3) })]),
            &["dsr.option.ack.id", "dsr.option.ack.source", "dsr.option.ack.dest"],
            "77|10.0.0.4|10.0.0.3",
        ),
        (
            data.to_bytes(),
            &[
                "dsr.option.srcrt.firsthopext",
                "dsr.option.srcrt.lasthopext",
                "dsr.option.srcrt.salvage",
                "dsr.option.srcrt.segsleft",
                "dsr.option.ackreq.id",
                "udp.dstport",
            ],
            "1|1|9|1|77|2000",
        ),
    ];
    for (n, (packet, fields, expected)) in cases.into_iter().enumerate() {
        let all: Vec<&str> = fields.iter().copied().chain(["_ws.expert.message", "ip.checksum.status"]).collect();
        let Some(lines) = tshark::fields(&format!("dsr-message{n}"), &[packet], &all) else { return };
        // no expert message; checksum status 1 is "good"; inner headers have none
        assert_eq!(lines, [format!("{expected}||1")]);
    }
}

#[test]
fn tshark_finds_no_suspicious_frame_in_a_chain_with_a_break() {
    let mut net = chain(5, &Options::default());
    send(&mut net, 1, 5, 1);
    net.run(ms(1000));
    net.cut(3, 4);
    send(&mut net, 1, 5, 2);
    net.run(ms(2000));
    let frames: Vec<Bytes> = net
        .log
        .iter()
        .filter_map(|(.., output)| if let Output::Frame { bytes, .. } = output { Some(bytes.clone()) } else { None })
        .collect();
    let fields = ["frame.protocols", "_ws.expert.message", "ip.checksum.status"];
    let Some(lines) = tshark::fields("dsr-chain", &frames, &fields) else { return };
    assert_eq!(lines.len(), frames.len());
    for line in lines {
        // a request for neighbours has TTL 1 (RFC 4728, 3.3.3), for which tshark has a remark in any packet
        let line = line.replace("\"Time To Live\" only 1", "");
        let (protocols, rest) = line.split_once('|').unwrap();
        let read = ["ip:dsr", "ip:dsr:udp:data", "ip:udp:data", "ip:dsr:icmp:ip:udp", "ip:icmp:ip:udp"];
        assert!(read.iter().any(|r| protocols.starts_with(r)) && (rest == "|1" || rest == "|1,1"), "{line}");
    }
}
