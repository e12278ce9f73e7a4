//! DSR's address resolution over the medium (option `arp`): its frames contend and collide like all others.

use manet_engine::{Duration, Instant};
use manet_mesh::scenario::{Flow, Scenario, Waypoints};
use manet_mesh::Mesh;
use manet_routing::arp::Resolution;
use manet_routing::Protocol;

const ALL: [Resolution; 3] = [Resolution::None, Resolution::Cmu, Resolution::Silent];

fn run(scenario: Scenario, arp: Resolution) -> Mesh<manet_dsr::Dsr> {
    let mut mesh = Mesh::new(scenario, manet_dsr::Options { arp, ..Default::default() });
    mesh.run();
    mesh
}

fn total(mesh: &Mesh<manet_dsr::Dsr>, counter: &str) -> u64 {
    (0..mesh.nodes()).map(|i| mesh.machine(i).status(mesh.now()).counters.get(counter)).sum()
}

/// `nodes` 200 m apart, and a flow from the first to the last: 20 packets a second from 1 s on.
fn chain(nodes: usize, length: Duration) -> Scenario {
    let positions = (0..nodes).map(|i| [200.0 * i as f64, 0.0, 0.0]).collect();
    let mut scenario = Scenario::standing(1, length, positions);
    let start = Instant::ZERO + Duration::from_secs(1);
    let gap = Duration::from_millis(50);
    scenario.flows = vec![Flow { from: 0, to: nodes - 1, bytes: 512, gap, start, stop: Instant::ZERO + length }];
    scenario
}

#[test]
fn a_chain_resolves_each_link_once_and_then_delivers_all() {
    for arp in ALL {
        let mesh = run(chain(5, Duration::from_secs(10)), arp);
        let seen = &mesh.seen;
        // the Route Reply goes back over four links; each next hop learns its neighbour from the request
        let requests = if arp == Resolution::None { 0 } else { 4 };
        assert_eq!((total(&mesh, "arp-requests"), total(&mesh, "arp-replies")), (requests, requests), "{arp:?}");
        assert_eq!(seen.arp.frames > 0, requests > 0, "{arp:?}");
        // none lost but those under way at the end
        assert!(seen.packets_delivered() + 2 >= seen.packets_offered(), "{arp:?}: {}", seen.packets_delivered());
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation: cargo test --release")]
fn moving_nodes_lose_packets_to_arp_and_only_with_arp() {
    let how = Waypoints { area_m: [1500.0, 300.0], speed_mps: [20.0, 20.0], pause_s: 0.0, go_and_rest_s: None };
    let scenario = Scenario::waypoints(3, Duration::from_secs(60), 30, how).with_flows(
        5,
        512,
        Duration::from_millis(100),
        [1.0, 5.0],
    );
    let runs = ALL.map(|arp| run(scenario.clone(), arp));
    let counts = |name| runs.each_ref().map(|mesh| total(mesh, name));
    let [none, cmu, silent] = counts("arp-displaced");
    assert!(none == 0 && cmu > 0 && silent > 0, "displaced: {none}, {cmu}, {silent}");
    assert_eq!(counts("arp-failed")[2], 0);
    assert!(runs.iter().all(|mesh| mesh.seen.loop_count == 0));
    // each run is determined by its scenario and options, and `none` is the default
    let again = Mesh::<manet_dsr::Dsr>::new(scenario, Default::default());
    let again = {
        let mut mesh = again;
        mesh.run();
        mesh
    };
    assert_eq!(again.seen.fingerprint, runs[0].seen.fingerprint);
}
