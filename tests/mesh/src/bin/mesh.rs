//! Runs a protocol on mobile nodes; prints the row of the table and all counters:
//!
//!     cargo run --release -p manet-mesh --bin mesh -- aodv --nodes 50 --seconds 900 --seed 1
//!
//! `--link hello` (DSR: any word but `feedback`) runs it without link feedback, `--options '{"key":value}'` with other options,
//! `--area 1500x300`, `--speed 20` (maximum, m/s; 0: no movement), `--pause S`, `--rest GO,REST`, `--flows 10`, `--gap-ms 250`.

use manet_engine::Duration;
use manet_mesh::scenario::{Scenario, Waypoints};
use manet_mesh::summary::{self, Run};
use manet_mesh::{addresses, protocols};
use serde_json::Value;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("mesh: {e}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let (name, rest) = arguments.split_first().ok_or("which protocol? one of aodv, dsdv, olsr, dsr, adv, tora")?;
    let get = |key: &str| rest.chunks(2).find(|c| c[0] == key).and_then(|c| c.get(1)).map(String::as_str);
    const KEYS: [&str; 12] = [
        "--nodes",
        "--seconds",
        "--seed",
        "--link",
        "--options",
        "--area",
        "--speed",
        "--pause",
        "--rest",
        "--flows",
        "--gap-ms",
        "--bytes",
    ];
    if let Some(wrong) = rest.chunks(2).find(|c| !KEYS.contains(&c[0].as_str()) || c.len() < 2) {
        return Err(format!("{}: no such option, or no value; there are {}", wrong[0], KEYS.join(", ")));
    }
    let number = |key: &str, default: f64| match get(key) {
        None => Ok(default),
        Some(text) => text.parse::<f64>().ok().filter(|n| *n >= 0.0).ok_or(format!("{key} {text}: not a number")),
    };
    let pair = |text: &str, by: char| -> Option<[f64; 2]> {
        let (a, b) = text.split_once(by)?;
        Some([a.parse().ok()?, b.parse().ok()?])
    };
    let area_m = pair(get("--area").unwrap_or("1500x300"), 'x').ok_or("--area: as in 1500x300")?;
    let go_and_rest_s = match get("--rest") {
        None => None,
        Some(text) => Some(pair(text, ',').ok_or("--rest: seconds to go and to rest, as in 60,60")?),
    };
    let speed = number("--speed", 20.0)?;
    let how = Waypoints { area_m, speed_mps: [speed.min(1.0), speed], pause_s: number("--pause", 0.0)?, go_and_rest_s };
    let length = Duration::from_secs_f64(number("--seconds", 900.0)?);
    let (seed, nodes) = (number("--seed", 1.0)? as u64, number("--nodes", 50.0)? as usize);
    let gap = Duration::from_secs_f64(number("--gap-ms", 250.0)? * 1e-3);
    let mut scenario = Scenario::waypoints(seed, length, nodes, how).with_flows(
        number("--flows", 10.0)? as usize,
        number("--bytes", 512.0)? as u16,
        gap,
        [10.0, 20.0],
    );
    if speed == 0.0 {
        scenario.moves.clear();
    }
    let (scenario, mut options) =
        protocols::with_link(name, get("--link").unwrap_or("feedback") == "feedback", &scenario);
    let more: Value = serde_json::from_str(get("--options").unwrap_or("{}")).map_err(|e| format!("--options: {e}"))?;
    for (key, value) in more.as_object().ok_or("--options: a JSON object")? {
        options[key] = value.clone();
    }
    let begun = std::time::Instant::now();
    let run = protocols::with(name, scenario, &options, Run).map_err(|e| e.to_string())?;
    println!("{}\n{}", summary::LEGEND, summary::table(std::slice::from_ref(&run)));
    print!("{}", summary::counts(std::slice::from_ref(&run)));
    let s = &run.seen;
    println!(
        "connected pairs {} %, offered between connected {} %, fingerprint {:016x}, {:.1} s of computing",
        summary::percent(s.links.connected, s.links.pairs),
        summary::percent(s.links.offered_connected, s.packets_offered()),
        s.fingerprint.value(),
        begun.elapsed().as_secs_f64()
    );
    for l in s.loops.iter().chain(&s.late_loops) {
        let nodes: Vec<String> = l.nodes.iter().map(|n| addresses::ip(*n).to_string()).collect();
        let to = addresses::ip(l.destination);
        println!(
            "loop at {:?}, {} s after a link changed, to {to}: {}",
            l.at,
            l.quiet.as_secs_f64(),
            nodes.join(" > ")
        );
    }
    Ok(())
}
