//! The cases of tests/conformance (manet_routing_host::conformance); UPDATE=1 rewrites their outputs.

use manet_adv::wire::{Advert, Body, Message, Response};
use manet_adv::Adv;
use manet_routing::Output;
use manet_routing_host::conformance;
use std::path::Path;

/// A message in words. Entries: destination, hops, number, signer if another node broke the route, receiver, response.
fn means(output: &Output) -> Option<String> {
    let Output::Control { bytes, .. } = output else { return None };
    let message = Message::parse(bytes).ok()?;
    Some(match message.body {
        Body::Update { full, restarted, adverts } => {
            let kind = if full { "full" } else { "partial" };
            let after = if restarted { " after a restart" } else { "" };
            format!("{kind}{after}: {}", adverts.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Body::Init(i) => {
            let known = i.known.map_or("unknown".to_owned(), |(n, hops)| format!("#{} {hops} hops", n.0));
            let only = if i.destination_only { ", destination only" } else { "" };
            format!("init {} of {} #{} {} hops: {} ({known}){only}", i.id, i.source, i.sequence.0, i.hops, i.wanted)
        }
        Body::Alert { receiver, destination, sequence, hops } => {
            let what = if receiver { "receiver" } else { "non-receiver" };
            format!("{what} {destination} #{} {hops} hops", sequence.0)
        }
        Body::End { source, id, destination } => format!("end {id} of {source}: {destination}"),
    })
}

fn entry(a: &Advert) -> String {
    let signer = if a.signer == a.destination { String::new() } else { format!(" by {}", a.signer) };
    let receiver = if a.receiver { " receiver" } else { "" };
    let response = match a.response {
        Response::None => String::new(),
        other => format!(" {other:?}").to_lowercase(),
    };
    format!("{} {} #{}{signer}{receiver}{response}", a.destination, a.hops, a.sequence.0)
}

#[test]
fn cases() {
    conformance::check::<Adv>(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance"), means);
}
