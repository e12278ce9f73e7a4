//! The requests of the control socket and their answers (formats/sockets.md).

use crate::host::{self, Scheduling};
use crate::input::Input;
use crate::outlet::{Outlet, Port};
use crate::recorder::ROWS_KEPT;
use crate::setup::Setup;
use crate::world::World;
use manet_engine::real_time::RealTime;
use manet_engine::Instant;
use manet_medium::air_log::AirRow;
use manet_medium::config::{WireConfig, ERROR_RATE, MAX_COORDINATE_M};
use manet_medium::message::{self, StationId};
use manet_medium::phy::antenna::Change;
use manet_medium::phy::dbm;
use manet_medium::phy::propagation::Model;
use manet_medium::phy::radio::{ANTENNA_HEIGHT, GAIN, TX_POWER};
use manet_medium::run_verdict::{judge, Evidence};
use manet_medium::trace;
use manet_medium::wired::EndId;
use serde::Deserialize;
use serde_json::{json, Map, Value};
use std::fmt;

/// A request: one line of the control socket.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// State of the run.
    Status {},
    /// State of every link.
    Links {},
    /// Counters of stations and wires, and the lengths of queues.
    Counters {},
    /// Drops by reason.
    Drops {},
    /// The last rows of the air log.
    Air {
        /// Number of rows, by default 20.
        #[serde(default = "twenty")]
        last: usize,
    },
    /// Moves a station from now on.
    Move {
        /// Name of the station.
        station: String,
        /// Destination x, y, z, m.
        position: [f64; 3],
        /// Speed, m/s; absent: a jump.
        #[serde(default)]
        speed_mps: Option<f64>,
    },
    /// Movements to come.
    Follow {
        /// In order of time for each station.
        legs: Vec<LegRequest>,
    },
    /// Stops all stations.
    Halt {
        /// Model time, ns; absent: now.
        #[serde(default)]
        at_ns: Option<u64>,
    },
    /// Sets the error rate of a link.
    Link {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
        /// 0 to 1.
        error_rate: f64,
    },
    /// Switches a station's radio on or off.
    Power {
        /// Name of the station or jammer.
        station: String,
        /// Whether it has power.
        on: bool,
    },
    /// Changes a station's transmit power or antenna; without a value only asks for them.
    Radio {
        /// Name of the station.
        station: String,
        /// Transmit power, W.
        #[serde(default)]
        tx_power_w: Option<f64>,
        /// Antenna gain, dB.
        #[serde(default)]
        antenna_gain_db: Option<f64>,
        /// Height of the antenna, m.
        #[serde(default)]
        antenna_height_m: Option<f64>,
    },
    /// Transmit powers and antennas of all stations now.
    Radios {},
    /// Stalls a wire, or lets it go on.
    Wire {
        /// Name of one end.
        from: String,
        /// Name of the other end.
        to: String,
        /// Whether it sends nothing.
        stalled: bool,
    },
    /// Positions of all stations now.
    Positions {},
    /// End of the NAV of all stations now.
    Nav {},
    /// Ends the run.
    Stop {},
}

/// A leg of a movement at a future model time, like a row of a trace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegRequest {
    at_ns: u64,
    station: String,
    position: [f64; 3],
    /// Speed, m/s; absent: a jump.
    #[serde(default)]
    speed_mps: Option<f64>,
}

fn twenty() -> usize {
    20
}

/// The reason why a request is refused: one line with the remedy, the `error` of the answer.
#[derive(Debug)]
pub enum RequestError {
    /// The line is not UTF-8.
    NotUtf8,
    /// Not an object with the keys and types of a request; the message is serde's.
    Json(serde_json::Error),
    /// A coordinate is out of range.
    Position,
    /// A negative speed.
    Speed(f64),
    /// An error rate outside 0 to 1.
    ErrorRate(f64),
    /// A power or an antenna out of its limits.
    Radio {
        /// Name of the value.
        key: &'static str,
        /// The value.
        value: f64,
        /// The limit that it misses.
        missed: String,
    },
    /// The propagation model ignores power and antennas.
    OwnRanges,
    /// No station has this name.
    NoStation(String),
    /// No wire has these ends.
    NoWire(String, String),
    /// A leg begins before the present model time.
    PastLeg {
        /// Name of the station.
        station: String,
        /// Start of the leg.
        at: Instant,
        /// Present model time.
        now: Instant,
    },
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => f.write_str("not UTF-8; send one JSON object a line"),
            Self::Json(e) => write!(f, "{}; see formats/sockets.md", e.to_string().replace('\n', " ")),
            Self::Position => {
                write!(f, "position: coordinates are metres from -{MAX_COORDINATE_M:e} to {MAX_COORDINATE_M:e}")
            }
            Self::Speed(v) => write!(f, "speed_mps: {v} is below 0; leave it out for a jump"),
            Self::ErrorRate(rate) => write!(f, "error_rate: {rate} {}", ERROR_RATE.missed()),
            Self::Radio { key, value, missed } => write!(f, "{key}: {value} {missed}"),
            Self::OwnRanges => f.write_str(Model::OWN_RANGES),
            Self::NoStation(name) => write!(f, "there is no station `{name}`"),
            Self::NoWire(from, to) => write!(f, "there is no wire between `{from}` and `{to}`"),
            Self::PastLeg { station, at, now } => write!(
                f,
                "a leg of {station} begins at {:.3} s, and it is {:.3} s; send legs ahead of their time",
                at.as_secs_f64(),
                now.as_secs_f64()
            ),
        }
    }
}
impl std::error::Error for RequestError {}

/// Parses one line, without line end.
///
/// # Errors
/// A line that is no request, or a value out of range.
pub fn parse(line: &[u8]) -> Result<Request, RequestError> {
    let text = std::str::from_utf8(line).map_err(|_| RequestError::NotUtf8)?;
    let request: Request = serde_json::from_str(text).map_err(RequestError::Json)?;
    match &request {
        Request::Move { position, speed_mps, .. } => check_move(position, *speed_mps)?,
        Request::Follow { legs } => legs.iter().try_for_each(|leg| check_move(&leg.position, leg.speed_mps))?,
        Request::Link { error_rate, .. } if !ERROR_RATE.allow(*error_rate) => {
            return Err(RequestError::ErrorRate(*error_rate));
        }
        Request::Radio { tx_power_w, antenna_gain_db, antenna_height_m, .. } => {
            let values = [
                ("tx_power_w", tx_power_w, TX_POWER),
                ("antenna_gain_db", antenna_gain_db, GAIN),
                ("antenna_height_m", antenna_height_m, ANTENNA_HEIGHT),
            ];
            for (key, value, limits) in values {
                if let Some(value) = value.filter(|value| !limits.allow(*value)) {
                    return Err(RequestError::Radio { key, value, missed: limits.missed() });
                }
            }
        }
        _ => {}
    }
    Ok(request)
}

fn check_move(position: &[f64; 3], speed_mps: Option<f64>) -> Result<(), RequestError> {
    if position.iter().any(|v| v.abs() > MAX_COORDINATE_M) {
        return Err(RequestError::Position);
    }
    match speed_mps {
        Some(v) if v < 0.0 => Err(RequestError::Speed(v)),
        _ => Ok(()),
    }
}

/// Answers requests. Holds the state that answers need, apart from the driver and the ports.
pub struct Responder<'a> {
    /// The run's configuration.
    pub setup: &'a Setup,
    /// CLOCK_REALTIME at model time 0, ns since 1970.
    pub epoch_ns: u64,
    /// Scheduling that the host granted.
    pub scheduling: Scheduling,
    /// Number of times that a client of a socket had to wait for a descriptor.
    pub accepts_failed: u64,
}

impl Responder<'_> {
    /// Carries out the request in `line`; returns the answer, and whether the run is to stop.
    pub fn answer(&self, line: &[u8], driver: &mut RealTime<World>, outlet: &mut Outlet) -> (Value, bool) {
        let result = parse(line).and_then(|request| {
            let stop = request == Request::Stop {};
            self.carry_out(request, driver, outlet).map(|value| (value, stop))
        });
        match result {
            Ok((mut value, stop)) => {
                value["ok"] = true.into();
                (value, stop)
            }
            Err(error) => (json!({"ok": false, "error": error.to_string()}), false),
        }
    }

    fn carry_out(
        &self,
        request: Request,
        driver: &mut RealTime<World>,
        outlet: &mut Outlet,
    ) -> Result<Value, RequestError> {
        Ok(match request {
            Request::Status {} => self.status(driver, outlet),
            Request::Links {} => json!({"links": self.links(driver)}),
            Request::Counters {} => json!({
                "stations": self.counters(driver),
                "wires": self.wires(driver),
                "queues": self.queues(driver),
            }),
            Request::Drops {} => json!({"drops": self.drops(driver), "hosts": self.host_drops(outlet)}),
            Request::Air { last } => json!({
                "header": AirRow::CSV_HEADER,
                "rows": self.rows(outlet, last),
            }),
            Request::Move { station, position, speed_mps } => {
                let station = self.station(&station)?;
                let speed_mps = speed_mps.unwrap_or(f64::INFINITY);
                driver.input(Input::Air(message::Input::Move { station, to: position, speed_mps }), outlet);
                json!({})
            }
            Request::Follow { legs } => {
                let legs = self.legs(legs, driver.clock().now())?;
                driver.input(Input::Air(message::Input::Follow { legs }), outlet);
                json!({})
            }
            Request::Halt { at_ns } => {
                let at = at_ns.map_or_else(|| driver.clock().now(), Instant::from_nanos);
                driver.input(Input::Air(message::Input::Halt { at }), outlet);
                json!({})
            }
            Request::Link { from, to, error_rate: rate } => {
                let (from, to) = (self.station(&from)?, self.station(&to)?);
                driver.input(Input::Air(message::Input::SetErrorRate { from, to, rate }), outlet);
                json!({})
            }
            Request::Power { station, on } => {
                let station = self.sender(&station)?;
                driver.input(Input::Air(message::Input::Power { station, on }), outlet);
                outlet.set_carriers(world(driver));
                json!({})
            }
            Request::Radio { station, tx_power_w, antenna_gain_db, antenna_height_m } => {
                let station = self.station(&station)?;
                let change = Change { tx_power_w, antenna_gain_db, antenna_height_m };
                if !change.is_empty() {
                    if self.setup.loaded.config.propagation.has_own_ranges() {
                        return Err(RequestError::OwnRanges);
                    }
                    driver.input(Input::Air(message::Input::Antenna { station, change }), outlet);
                }
                json!(world(driver).medium.antenna(station))
            }
            Request::Radios {} => {
                let medium = &world(driver).medium;
                let radio = |(i, name)| (name, json!(medium.antenna(StationId(i))));
                json!({"radios": self.names().map(radio).collect::<Map<_, _>>()})
            }
            Request::Wire { from, to, stalled } => {
                let end = self.wire(&from, &to)?;
                driver.input(Input::Stall { end, stalled }, outlet);
                json!({})
            }
            Request::Positions {} => {
                let (machine, now) = (world(driver), driver.clock().now());
                let place = |(i, name)| (name, json!(machine.medium.position(StationId(i), now)));
                json!({"positions": self.names().map(place).collect::<Map<_, _>>()})
            }
            Request::Nav {} => {
                let now = driver.catch_up(outlet);
                let medium = &world(driver).medium;
                let until = |(i, name)| (name, json!(medium.nav_until(StationId(i)).as_nanos()));
                json!({"model_ns": now.as_nanos(), "nav_until_ns": self.names().map(until).collect::<Map<_, _>>()})
            }
            Request::Stop {} => json!({}),
        })
    }

    /// The first end of the wire between these two.
    fn wire(&self, from: &str, to: &str) -> Result<EndId, RequestError> {
        let joins = |w: &WireConfig| (w.a.name == from && w.b.name == to) || (w.a.name == to && w.b.name == from);
        let wire = self.setup.loaded.config.wires.iter().position(joins);
        wire.map(|i| EndId(2 * i as u16)).ok_or_else(|| RequestError::NoWire(from.to_owned(), to.to_owned()))
    }

    /// Refuses all legs if one is wrong: a part of a movement is another movement.
    fn legs(&self, legs: Vec<LegRequest>, now: Instant) -> Result<Vec<message::Leg>, RequestError> {
        let checked = |leg: LegRequest| {
            let at = Instant::from_nanos(leg.at_ns);
            if at < now {
                return Err(RequestError::PastLeg { station: leg.station, at, now });
            }
            let station = self.station(&leg.station)?;
            Ok(message::Leg { at, station, to: leg.position, speed_mps: leg.speed_mps.unwrap_or(f64::INFINITY) })
        };
        legs.into_iter().map(checked).collect()
    }

    fn station(&self, name: &str) -> Result<StationId, RequestError> {
        let index = self.setup.loaded.config.stations.iter().position(|s| s.name == name);
        index.map(|i| StationId(i as u16)).ok_or_else(|| RequestError::NoStation(name.to_owned()))
    }

    /// A station or a jammer.
    fn sender(&self, name: &str) -> Result<StationId, RequestError> {
        let number = self.setup.loaded.sender_names().iter().position(|known| *known == name);
        number.map(|i| StationId(i as u16)).ok_or_else(|| RequestError::NoStation(name.to_owned()))
    }

    fn names(&self) -> impl Iterator<Item = (u16, String)> + '_ {
        self.setup.loaded.config.stations.iter().enumerate().map(|(i, s)| (i as u16, s.name.clone()))
    }

    fn status(&self, driver: &RealTime<World>, outlet: &Outlet) -> Value {
        let evidence = evidence_so_far(driver, outlet);
        let late = |q| evidence.lateness.quantile(q).as_nanos() as f64 / 1e3;
        json!({
            "model_ns": driver.clock().now().as_nanos(),
            "epoch_ns": self.epoch_ns,
            "stations": self.setup.loaded.config.stations.len(),
            "verdict": judge(&evidence, &self.setup.thresholds).verdict,
            "lateness": {
                "count": evidence.lateness.count(),
                "p50_us": late(0.5),
                "p99_us": late(0.99),
                "max_us": evidence.lateness.max().as_nanos() as f64 / 1e3,
            },
            "stalls": evidence.stalls,
            "events": world(driver).medium.events(),
            "scheduling": self.scheduling.name(),
            "accepts_failed": self.accepts_failed,
        })
    }

    fn links(&self, driver: &RealTime<World>) -> Vec<Value> {
        let name = |s: StationId| &self.setup.loaded.config.stations[usize::from(s.0)].name;
        let links = world(driver).medium.links(driver.clock().now());
        let link = |l: message::LinkState| {
            json!({
                "from": name(l.from),
                "to": name(l.to),
                // no power at all has no level
                "power_dbm": dbm(l.power_w),
                "range": l.in_range,
                "sensed": l.sensed,
                "error_rate": l.error_rate,
            })
        };
        links.into_iter().map(link).collect()
    }

    /// Counters by station name, as in `counters.json`.
    pub fn counters(&self, driver: &RealTime<World>) -> Map<String, Value> {
        let medium = &world(driver).medium;
        self.names().map(|(i, name)| (name, json!(medium.counters(StationId(i))))).collect()
    }

    /// Packets of each station that wait, the one in service included.
    fn queues(&self, driver: &RealTime<World>) -> Map<String, Value> {
        let medium = &world(driver).medium;
        self.names().map(|(i, name)| (name, json!(medium.backlog(StationId(i))))).collect()
    }

    /// What each jammer has sent, by its name, as in `counters.json`.
    pub fn jammers(&self, driver: &RealTime<World>) -> Map<String, Value> {
        let (medium, now) = (&world(driver).medium, driver.timeline().now());
        let jammers = self.setup.loaded.config.jammers.iter().enumerate();
        jammers.map(|(i, jammer)| (jammer.name.clone(), json!(medium.jammer(i, now).1))).collect()
    }

    /// The trajectories of all stations as the text of a trace file, if a request moved any of them.
    pub fn moved(&self, driver: &RealTime<World>) -> Option<String> {
        let medium = &world(driver).medium;
        let stations = self.setup.loaded.config.stations.iter().enumerate().filter(|(_, s)| s.node.is_none());
        let paths = stations.map(|(i, s)| (s.name.as_str(), medium.trajectory(StationId(i as u16))));
        medium.moved().then(|| trace::write(paths))
    }

    /// Counters of both directions of each wired link.
    pub fn wires(&self, driver: &RealTime<World>) -> Vec<Value> {
        let wires = &world(driver).wires;
        let direction = |from: &str, to: &str, end: usize| {
            let c = wires.counters(EndId(end as u16));
            json!({"from": from, "to": to, "delivered": c.delivered, "queue_full": c.queue_full, "off": c.off})
        };
        let links = self.setup.loaded.config.wires.iter().enumerate();
        links
            .flat_map(|(i, w)| [direction(&w.a.name, &w.b.name, 2 * i), direction(&w.b.name, &w.a.name, 2 * i + 1)])
            .collect()
    }

    /// Drops of each station by the reasons of the air log, without zeros.
    fn drops(&self, driver: &RealTime<World>) -> Map<String, Value> {
        let medium = &world(driver).medium;
        let drops = |(i, name)| {
            let c = medium.counters(StationId(i));
            let reasons = [
                ("queue-full", c.queue_full),
                ("retry-short", c.retry_short),
                ("retry-long", c.retry_long),
                ("purged", c.purged),
                ("no-peer", c.no_peer),
                ("too-long", c.too_long),
                ("off", c.off),
            ];
            (name, happened(&reasons))
        };
        self.names().map(drops).collect()
    }

    /// Frames lost between the medium and the hosts, stations and ends of wires.
    fn host_drops(&self, outlet: &Outlet) -> Map<String, Value> {
        let drops = |(i, port): (usize, &Port)| {
            // a gateway has two interfaces under one name
            let name = if i < outlet.stations { port.name.clone() } else { format!("{} wire", port.name) };
            let from_host = port.lost_from_host();
            let reasons = [("to-host", port.write_drops), ("host-down", port.while_down), ("from-host", from_host)];
            (name, happened(&reasons))
        };
        outlet.ports.iter().enumerate().map(drops).collect()
    }

    fn rows(&self, outlet: &Outlet, last: usize) -> Vec<String> {
        let names = self.setup.loaded.sender_names();
        let text = |row: &AirRow| {
            let mut line = String::new();
            row.write_csv(&mut line, |s| names[usize::from(s)]);
            line
        };
        let mut rows: Vec<String> = outlet.recorder.last_rows().take(last.min(ROWS_KEPT)).map(text).collect();
        rows.reverse();
        rows
    }
}

fn world(driver: &RealTime<World>) -> &World {
    driver.timeline().machine()
}

fn happened(counts: &[(&str, u64)]) -> Value {
    let some = counts.iter().filter(|(_, n)| *n > 0);
    Value::Object(some.map(|(what, n)| ((*what).to_owned(), json!(n))).collect())
}

/// Measurements so far, without those that need the end of the run.
pub fn evidence_so_far(driver: &RealTime<World>, outlet: &Outlet) -> Evidence {
    let health = driver.health();
    let medium = &world(driver).medium;
    Evidence {
        lateness: health.lateness.clone(),
        stalls: health.stalls,
        stalled: health.stalled,
        longest_stall: health.longest_stall,
        tap_write_drops: outlet.ports.iter().map(|p| p.write_drops).sum(),
        too_long: (0..outlet.stations as u16).map(|i| medium.counters(StationId(i)).too_long).sum(),
        log_drops: outlet.recorder.drops(),
        model: driver.timeline().now() - Instant::ZERO,
        cpu_s: host::cpu_s(),
        ..Evidence::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_requests_of_the_format_page_are_understood() {
        assert_eq!(parse(br#"{"op":"status"}"#).unwrap(), Request::Status {});
        assert_eq!(parse(br#"{"op":"air"}"#).unwrap(), Request::Air { last: 20 });
        let jump = parse(br#"{"op":"move","station":"sta1","position":[1,2,3]}"#).unwrap();
        assert_eq!(jump, Request::Move { station: "sta1".into(), position: [1.0, 2.0, 3.0], speed_mps: None });
    }

    #[test]
    fn mistakes_are_answered_in_one_line() {
        let lines: [&[u8]; 16] = [
            b"",
            b"{",
            b"\xff",
            br#"{"op":"explode"}"#,
            br#"{"op":"status","extra":1}"#,
            br#"{"op":"move","station":"sta1","position":[1,2]}"#,
            br#"{"op":"move","station":"sta1","position":[1,2,1e300]}"#,
            br#"{"op":"move","station":"sta1","position":[1,2,3],"speed_mps":-1}"#,
            br#"{"op":"follow","legs":[{"at_ns":1,"station":"sta1","position":[1,2,1e300]}]}"#,
            br#"{"op":"follow","legs":[{"at_ns":-1,"station":"sta1","position":[1,2,3]}]}"#,
            br#"{"op":"halt","at_ns":1.5}"#,
            br#"{"op":"link","from":"a","to":"b","error_rate":1.5}"#,
            br#"{"op":"power","station":"sta1"}"#,
            br#"{"op":"radio","station":"sta1","tx_power_w":0}"#,
            br#"{"op":"radio","station":"sta1","antenna_gain_db":101}"#,
            br#"{"op":"radio","station":"sta1","gain":1}"#,
        ];
        for line in lines {
            let error = parse(line).unwrap_err().to_string();
            assert!(!error.is_empty() && !error.contains('\n'), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line: Vec<u8>, text in "[{}\\[\\]\",:a-z0-9.e+-]{0,80}") {
            let _ = parse(&line);
            let _ = parse(text.as_bytes());
        }
    }
}
