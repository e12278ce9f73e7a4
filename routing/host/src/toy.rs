//! A protocol for the tests of the host: it takes its routes from its options and sends hellos.

use manet_engine::keys::{Declared, Key};
use manet_engine::{Duration, Instant, Machine};
use manet_routing::{Bytes, Carrier, Counters, Input, Node, OptionError, Output, Protocol, Route, Status, BROADCAST};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Options of the toy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// As in the real protocols.
    pub link: String,
    /// Time between hellos.
    #[serde(with = "manet_routing::seconds")]
    pub hello_interval: Duration,
    /// Destinations and next hops.
    pub routes: Vec<(Ipv4Addr, Ipv4Addr)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { link: "feedback".to_owned(), hello_interval: Duration::from_secs(1), routes: Vec::new() }
    }
}

impl Declared for Options {
    const KEYS: &'static [Key] = &[Key::new::<Duration>("hello_interval", "Time between hellos.")];
}

/// The machine.
pub struct Toy {
    options: Options,
    restarted: bool,
    next_hello: Instant,
    out: VecDeque<Output>,
    counters: Counters,
}

impl Machine for Toy {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input) {
        match input {
            Input::Packet { bytes } => {
                let to = manet_routing::packet::ipv4::Packet::parse(&bytes).map(|p| p.destination());
                match self.options.routes.iter().find(|(destination, _)| Some(*destination) == to) {
                    Some((destination, via)) => {
                        self.out.push_back(Output::SetRoute(Route::host(*destination, *via, 2)));
                        self.out.push_back(Output::Send { bytes });
                    }
                    None => self.out.push_back(Output::Unreachable { bytes }),
                }
            }
            Input::Control { .. } => self.counters.count("hello-received"),
            Input::LinkFailed { neighbour, .. } => self.out.push_back(Output::note("link-broken", neighbour, 1)),
            Input::Stop => {
                let goodbye = Bytes(b"goodbye".to_vec());
                self.out.push_back(Output::Control { to: BROADCAST, ttl: 1, bytes: goodbye });
            }
            _ => {}
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        while self.next_hello <= now {
            self.next_hello += self.options.hello_interval;
            let hello = if self.restarted { "again" } else { "hello" };
            self.out.push_back(Output::Control { to: BROADCAST, ttl: 1, bytes: Bytes(hello.into()) });
        }
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn next_timeout(&self) -> Option<Instant> {
        Some(self.next_hello)
    }
}

impl Protocol for Toy {
    const NAME: &'static str = "toy";
    const CARRIER: Carrier = Carrier::Udp(9999);
    type Options = Options;

    fn new(node: Node, options: Options) -> Result<Self, OptionError> {
        if options.hello_interval == Duration::ZERO {
            return Err("hello_interval: give more than 0 s".to_owned().into());
        }
        let next_hello = Instant::ZERO + options.hello_interval;
        let (out, counters) = (VecDeque::new(), Counters::default());
        Ok(Self { options, restarted: node.restarted, next_hello, out, counters })
    }
    fn status(&self, _: Instant) -> Status {
        Status { counters: self.counters.clone(), ..Status::default() }
    }
}
