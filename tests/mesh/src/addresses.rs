//! Addresses of the nodes, as in the testbed (topologies/addresses.py). Node indices here begin at 0, node
//! numbers and addresses at 1.

use manet_routing::Mac;
use std::net::Ipv4Addr;

/// The network of all nodes: address and prefix length.
pub const NETWORK: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 8);

/// IPv4 address of a node.
pub fn ip(node: usize) -> Ipv4Addr {
    let number = node + 1;
    Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8)
}

/// MAC address of a node.
pub fn mac(node: usize) -> Mac {
    let number = node + 1;
    [2, 0, 0, 0, (number >> 8) as u8, number as u8]
}

/// The node with this IPv4 address; `None`: no node's address. The caller checks the number of nodes.
pub fn node_of_ip(address: Ipv4Addr) -> Option<usize> {
    let [a, b, c, d] = address.octets();
    let number = usize::from(c) << 8 | usize::from(d);
    (a == 10 && b == 0 && number > 0).then(|| number - 1)
}

/// The node with this MAC address; `None`: no node's address. The caller checks the number of nodes.
pub fn node_of_mac(mac: &Mac) -> Option<usize> {
    let number = usize::from(mac[4]) << 8 | usize::from(mac[5]);
    (mac[..4] == [2, 0, 0, 0] && number > 0).then(|| number - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_the_node() {
        for node in [0, 254, 255, 1999] {
            assert_eq!((node_of_ip(ip(node)), node_of_mac(&mac(node))), (Some(node), Some(node)));
        }
        assert_eq!(ip(255), Ipv4Addr::new(10, 0, 1, 0));
        assert_eq!((node_of_ip(Ipv4Addr::BROADCAST), node_of_mac(&[0xff; 6])), (None, None));
    }
}
