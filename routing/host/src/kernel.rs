//! The kernel state of formats/routing.md: set at the start, kept equal to the machine's routes, restored at the end.

use crate::config::Config;
use crate::error::{failed, HostError, Result};
use crate::leftovers::{Before, Leftovers};
use crate::rtnetlink::{self, Described, KernelRoute, Rtnetlink, TcpMetrics, METRIC, MISS_METRIC};
use crate::sysctl;
use crate::tun::Tun;
use manet_routing::routes::network;
use manet_routing::{Carrier, Device, Node, Route, Routes};
use nix::errno::Errno;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The kernel state of one daemon. Dropping it restores the previous state.
pub struct Kernel {
    /// Socket for routes, addresses and links.
    pub netlink: Rtnetlink,
    /// Interface index of the radio.
    pub radio: u32,
    /// `None` once the device is removed.
    tun: Option<Tun>,
    tun_index: u32,
    source: Ipv4Addr,
    /// The radio's MTU in bytes.
    mtu: u16,
    quickack: bool,
    tcp: TcpMetrics,
    /// Held for the life of the daemon.
    _lock: UnixDatagram,
    /// Our routes in the kernel's table.
    pub routes: Routes,
    before: Before,
    leftovers: Leftovers,
    /// Whether a predecessor ended without cleaning up.
    pub restarted: bool,
}

impl Kernel {
    /// Restores the state that a killed predecessor changed, then takes the interface over. `tun_mtu` in bytes. Fails if
    /// another daemon runs on the interface, or the kernel refuses a step.
    pub fn take_over(config: &Config, carrier: Carrier, tun_mtu: u16) -> Result<Self> {
        let radio = rtnetlink::index(&config.interface)?;
        let mut netlink = Rtnetlink::open()?;
        let leftovers = Leftovers::beside(config.status.as_deref());
        let mut before = Before::here()?;
        // fails if another daemon is running, before any of its state is touched
        let lock = lock(&config.interface)?;
        let tun = Tun::create(&config.tun)?;
        let tun_index = rtnetlink::index(&config.tun)?;
        let old_routes = netlink.flush(&[radio, tun_index])?;
        let old = leftovers.recall(&before);
        if let Some(old) = &old {
            restore(&mut netlink, old);
        }
        let mut kernel = Self {
            netlink,
            radio,
            tun: Some(tun),
            tun_index,
            source: config.node.address,
            mtu: config.node.mtu,
            quickack: config.quickack,
            tcp: config.metrics,
            _lock: lock,
            routes: Routes::default(),
            before: before.clone(),
            leftovers,
            restarted: old.is_some() || old_routes > 0,
        };
        let wanted = settings(config, carrier);
        before.sysctls = sysctl::Before::of(&wanted);
        let (routes, addresses) = kernel.conflicting(config, carrier)?;
        before.will_remove(&routes, &addresses);
        kernel.leftovers.keep(&before)?;
        // from here on dropping `kernel` restores the state
        kernel.before = before;
        sysctl::apply(&wanted)?;
        kernel.remove(&routes, &addresses)?;
        kernel.route_misses_into_tun(&config.node, carrier, tun_mtu)?;
        Ok(kernel)
    }

    /// The TUN device, unless it was removed.
    pub fn tun(&self) -> Option<&Tun> {
        self.tun.as_ref()
    }

    /// Routes and addresses of the radio that conflict with the design.
    fn conflicting(&mut self, config: &Config, carrier: Carrier) -> Result<(Vec<Described>, Vec<Described>)> {
        let mut routes = self.netlink.routes_over(self.radio)?;
        let addresses = self.netlink.addresses(self.radio)?;
        let Node { address, network: (_, prefix), .. } = &config.node;
        if !addresses.iter().any(|a| a.address() == Some(*address)) {
            return Err(HostError(format!(
                "key \"node.address\": {0} has not the address {address}; give it: \
                 ip address add {address}/{prefix} dev {0} noprefixroute",
                config.interface
            )));
        }
        match carrier {
            Carrier::Udp(_) => {
                // a route to the whole network would make the kernel send ARP requests for stations out of range
                routes.retain(Described::is_connected);
                Ok((routes, Vec::new()))
            }
            Carrier::Frames => Ok((routes, addresses)),
        }
    }

    fn remove(&mut self, routes: &[Described], addresses: &[Described]) -> Result<()> {
        for route in routes {
            self.netlink.remove_route(route).map_err(|e| failed("a route of the radio cannot be removed", e))?;
        }
        for address in addresses {
            match self.netlink.remove_address(address) {
                // the kernel removes a secondary address with its primary one
                Ok(()) | Err(Errno::EADDRNOTAVAIL) => {}
                Err(e) => return Err(failed("the radio's address cannot be removed", e)),
            }
        }
        Ok(())
    }

    fn route_misses_into_tun(&mut self, node: &Node, carrier: Carrier, mtu: u16) -> Result<()> {
        let fail = |e| failed("the TUN device", e);
        self.netlink.set_up(self.tun_index, mtu).map_err(fail)?;
        if carrier == Carrier::Frames {
            self.netlink.add_address(self.tun_index, node.address, node.network.1).map_err(fail)?;
        }
        // the network has a route of its own: a gateway's default route leads elsewhere
        for (destination, prefix) in [node.network, (Ipv4Addr::UNSPECIFIED, 0)] {
            let route = KernelRoute {
                destination: network(destination, prefix),
                prefix,
                via: None,
                interface: self.tun_index,
                source: node.address,
                metric: MISS_METRIC,
                mtu: Some(mtu),
                quickack: self.quickack,
                tcp: self.tcp,
            };
            self.netlink.set_route(&route).map_err(|e| failed("no route into the TUN", e))?;
        }
        Ok(())
    }

    /// Sets a route in the kernel and in `routes`. True: `routes` changed. Fails if the kernel refuses it.
    pub fn set_route(&mut self, route: Route) -> Result<bool, Errno> {
        self.netlink.set_route(&self.as_kernel_has_it(&route))?;
        Ok(self.routes.set(route))
    }

    /// Removes a route from the kernel and from `routes`. True: it existed. Fails if the kernel refuses that.
    pub fn clear_route(&mut self, destination: Ipv4Addr, prefix: u8) -> Result<bool, Errno> {
        let was = self.routes.clear(destination, prefix).is_some();
        match self.netlink.clear_route(network(destination, prefix), prefix, METRIC) {
            Ok(()) => Ok(was),
            Err(Errno::ESRCH) if !was => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Sets all routes again after the radio was down, when the kernel has dropped them. Returns the number of refused
    /// ones.
    pub fn restore_routes(&mut self) -> u64 {
        let routes: Vec<Route> = self.routes.iter().copied().collect();
        routes.iter().filter(|r| self.netlink.set_route(&self.as_kernel_has_it(r)).is_err()).count() as u64
    }

    fn as_kernel_has_it(&self, route: &Route) -> KernelRoute {
        let (interface, via) = match route.device {
            Device::Radio if route.via == route.destination => (self.radio, None),
            Device::Radio => (self.radio, Some(route.via)),
            Device::Machine => (self.tun_index, None),
        };
        KernelRoute {
            destination: network(route.destination, route.prefix),
            prefix: route.prefix,
            via,
            interface,
            source: self.source,
            metric: METRIC,
            // always set: a TCP may still hold a cleared route, whose device the kernel has replaced by its
            // blackhole device with MTU 68 (net/core/dst.c, dst_dev_put), and would cut its next segments to 48 bytes
            mtu: Some(route.mtu.unwrap_or(self.mtu)),
            quickack: self.quickack,
            tcp: self.tcp,
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = self.netlink.flush(&[self.radio, self.tun_index]);
        // this removes the device's address, before the radio gets it back
        self.tun = None;
        restore(&mut self.netlink, &self.before);
        self.leftovers.forget();
    }
}

/// One daemon per radio: an abstract socket's name is unique in a network namespace and free when its process ends.
fn lock(interface: &str) -> Result<UnixDatagram> {
    SocketAddr::from_abstract_name(format!("manet-routing {interface}"))
        .and_then(|name| UnixDatagram::bind_addr(&name))
        .map_err(|_| HostError(format!("key \"interface\": another routing daemon runs on {interface}; stop it")))
}

/// Restores the previous state. Failures are ignored: the entry exists already, or its interface is gone.
fn restore(netlink: &mut Rtnetlink, before: &Before) {
    before.sysctls.restore();
    for address in before.removed_addresses() {
        let _ = netlink.restore_address(&address);
    }
    for route in before.removed_routes() {
        let _ = netlink.restore_route(&route);
    }
}

/// Sysctls under net/: forwarding by our routes alone, no redirects that bypass them, no reverse-path filter, which would
/// reject packets whose return route leads into the TUN device (RFC 3704, section 2.2). In design B that filter keeps the
/// kernel from accepting frames of the radio itself: no route leads there, so no source passes.
fn settings(config: &Config, carrier: Carrier) -> Vec<(String, &'static str)> {
    let (radio, tun) = (config.interface.as_str(), config.tun.as_str());
    let (radio_filter, radio_forwards) = match carrier {
        Carrier::Udp(_) => ("0", "1"),
        Carrier::Frames => ("1", "0"),
    };
    let conf = |interface: &str, key: &str| format!("ipv4/conf/{interface}/{key}");
    let mut wanted = vec![
        (conf("all", "rp_filter"), "0"),
        (conf("all", "send_redirects"), "0"),
        (conf(radio, "rp_filter"), radio_filter),
        (conf(radio, "forwarding"), radio_forwards),
        (conf(tun, "rp_filter"), "0"),
        (conf(tun, "forwarding"), "1"),
        (format!("ipv6/conf/{tun}/disable_ipv6"), "1"),
    ];
    for interface in [radio, tun] {
        wanted.push((conf(interface, "send_redirects"), "0"));
        wanted.push((conf(interface, "accept_redirects"), "0"));
    }
    wanted
}
