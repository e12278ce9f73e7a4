//! Chains in memory: discovery, forwarding, what the source routes look like.

mod net;
use manet_dsr::Options;
use net::{at, ip, Net};

#[test]
fn a_chain_of_three_delivers() {
    let mut net = Net::chain(3, &Options::default());
    net.send(1, 3, 7);
    net.run(at(1000));
    assert_eq!(net.delivered(3), [7]);
    assert_eq!(net.path(1, 3), Some(vec![ip(2), ip(3)]));
}
