//! Several machines on an ideal air: discovering, forwarding, breaking, repairing, leaving by gateways.

mod air;

use air::{at, ip, Air, INTERNET};
use manet_aodv::Options;

#[test]
fn three_nodes_discover_and_forward() {
    let mut air = Air::chain(3, &Options::default());
    air.data(1, ip(3), 7);
    air.run_until(at(1000));
    assert_eq!(air.tags(3), [7]);
    // TTL 1 reaches node 2 only; after 240 ms TTL 3
    let when = air.stations[3].delivered[0].0;
    assert!(when > at(240) && when < at(265), "{when:?}");
    air.data(3, ip(1), 8);
    air.run_until(at(1010));
    assert_eq!((air.tags(1), air.counter(3, "rreq-sent")), (vec![8], 0));
}
