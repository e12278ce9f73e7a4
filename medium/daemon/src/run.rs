//! `manet-medium run`: from a configuration to a finished run.

use crate::captured_frame::Names;
use crate::commands::{evidence_so_far, Responder};
use crate::control::Control;
use crate::feedback::Feedback;
use crate::hwsim::Hwsim;
use crate::incomplete::Incomplete;
use crate::input::Input;
use crate::input_log::InputLog;
use crate::lateness_log::LatenessLog;
use crate::outlet::{close_all, Device, Outlet, Port, PortKind, FRAMES_AT_ONCE};
use crate::recorder::{Ended, Files, Recorder, Written};
use crate::setup::Setup;
use crate::tap::{no_netns, Tap};
use crate::token::Token;
use crate::world::{Output, World};
use crate::{host, DaemonError};
use manet_engine::real_time::RealTime;
use manet_engine::{Duration, Instant};
use manet_medium::config::{Loaded, StationConfig};
use manet_medium::message::{self, StationId};
use manet_medium::rate_tables::{self, rate_tables};
use manet_medium::run_verdict;
use manet_medium::wired::EndId;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Longest time that rows wait before they are passed to the writer.
const HAND_OVER_EVERY: Duration = Duration::from_millis(100);

/// Options of the process; the configuration holds everything that determines the results.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Stop when the parent process has ended.
    pub die_with_parent: bool,
    /// Do not request real-time priority.
    pub ordinary_priority: bool,
    /// File for every input of the run as JSON lines, for `replay`.
    pub input_log: Option<PathBuf>,
    /// Maximum size of air log, capture and log of inputs, bytes each; when one reaches it, all three end.
    pub log_limit: Option<u64>,
    /// Debug, to calibrate the verdict: delays every release by this much.
    pub inject_lateness: Duration,
    /// Debug: stop for the first duration, once in each period of the second duration.
    pub inject_stall: Option<(Duration, Duration)>,
}

struct Daemon<'a> {
    driver: RealTime<World>,
    outlet: Outlet,
    control: Control,
    responder: Responder<'a>,
    lateness: LatenessLog,
    stop: bool,
}

/// Runs until a signal, a client or the configuration stops it; returns the reasons why results are incomplete.
///
/// # Errors
/// An interface, socket or file that cannot be created, or a failure of the driver.
pub fn run(mut setup: Setup, options: &Options) -> Result<Vec<Incomplete>, DaemonError> {
    let trajectories = std::mem::take(&mut setup.trajectories);
    let loaded = &setup.loaded;
    host::raise_descriptor_limit();
    let signals = host::stop_signals()?;
    let parent = options.die_with_parent.then(host::parent).transpose()?;
    let outputs = &loaded.config.outputs;
    let (csv, pcapng) = (setup.in_folder(&outputs.air_log), setup.in_folder(&outputs.air_pcapng));
    let mut files = Files::create(csv.as_deref(), pcapng.as_deref(), Names::of(loaded))?;
    files.limit(options.log_limit);
    if let Some(path) = setup.in_folder(&outputs.monitor) {
        files.monitor(&path)?;
    }
    let inputs = options.input_log.as_ref().map(|_| InputLog::default());
    if let Some(path) = &options.input_log {
        files.log_inputs(path)?;
    }
    let (hwsim, ports) = open_ports(loaded)?;

    let mut world = World::new(loaded, trajectories);
    world.inputs = inputs.clone();
    let mut driver = RealTime::start(world, Output::is_release)?;
    driver.inject_lateness(options.inject_lateness);
    let watcher = driver.watcher();
    watcher.watch(&signals, Token::Signal.pack(), false)?;
    if let Some(parent) = &parent {
        watcher.watch(parent, Token::Parent.pack(), false)?;
    }
    for (i, port) in ports.iter().enumerate() {
        if let Device::Tap(tap) = &port.device {
            watcher.watch(tap, Token::Port(i as u32).pack(), false)?;
        }
    }
    if let Some(hwsim) = &hwsim {
        watcher.watch(hwsim, Token::Hwsim.pack(), false)?;
    }
    let names = loaded.station_names();
    let feedback = Feedback::open(setup.in_folder(&loaded.config.feedback_dir).as_deref(), &names, watcher.clone())?;
    let control = Control::open(setup.in_folder(&loaded.config.control_socket).as_deref(), watcher)?;
    let epoch_ns = driver.clock().epoch_ns();
    files.set_epoch(epoch_ns);
    // before the request for priority: the writer keeps the ordinary one
    let recorder = Recorder::start(files, inputs)?;
    let scheduling = if options.ordinary_priority { host::Scheduling::Ordinary } else { host::request_priority() };
    host::settle_in_memory();

    let outlet = Outlet::new(ports, names.len(), hwsim, feedback, recorder);
    let responder = Responder { setup: &setup, epoch_ns, scheduling, accepts_failed: 0 };
    let mut daemon = Daemon { driver, outlet, control, responder, lateness: LatenessLog::default(), stop: false };
    println!("ready");
    std::io::stdout().flush()?;
    daemon.work(options)?;
    daemon.finish()
}

/// The interfaces of stations and wires.
fn open_ports(loaded: &Loaded) -> Result<(Option<Hwsim>, Vec<Port>), DaemonError> {
    let tap = |name: &str, key: String, netns: Option<&Path>, ifname: &str, mac| {
        let netns = netns.ok_or_else(|| no_netns(&key))?;
        Tap::create(netns, ifname, mac).map(Device::Tap).map_err(|e| DaemonError(format!("{name}: {e}")))
    };
    let stations = &loaded.config.stations;
    let (hwsim, devices) = match &loaded.config.hwsim {
        Some(config) => {
            let (hwsim, interfaces) = Hwsim::start(loaded, config)?;
            (Some(hwsim), interfaces.into_iter().map(Device::Radio).collect())
        }
        None => {
            let device = |(i, s): (usize, &StationConfig)| {
                tap(&s.name, format!("stations[{i}]"), s.netns.as_deref(), &s.ifname, s.mac)
            };
            (None, stations.iter().enumerate().map(device).collect::<Result<Vec<_>, _>>()?)
        }
    };
    let station = |(i, (s, device)): (usize, (&StationConfig, Device))| {
        Ok(Port::new(&s.name, PortKind::Station(StationId(i as u16)), device))
    };
    let ends = loaded.config.wires.iter().enumerate().flat_map(|(i, w)| [(i, "a", &w.a), (i, "b", &w.b)]);
    let wires = ends.enumerate().map(|(end, (i, side, e))| {
        let device = tap(&e.name, format!("wires[{i}].{side}"), e.netns.as_deref(), &e.ifname, e.mac)?;
        Ok(Port::new(&e.name, PortKind::Wire(EndId(end as u16)), device))
    });
    let ports: Result<Vec<Port>, DaemonError> =
        stations.iter().zip(devices).enumerate().map(station).chain(wires).collect();
    Ok((hwsim, ports?))
}

impl Daemon<'_> {
    fn work(&mut self, options: &Options) -> Result<(), DaemonError> {
        let config = &self.responder.setup.loaded.config;
        let end = config.duration_s.map(|s| Instant::ZERO + Duration::from_secs_f64(s + config.warmup_s));
        let mut hand_over = Instant::ZERO;
        let mut stall = options.inject_stall.map(|(_, period)| Instant::ZERO + period);
        while !self.stop {
            for token in self.driver.turn(&mut self.outlet)? {
                self.serve(token);
            }
            let now = self.driver.timeline().now();
            if now >= hand_over {
                self.outlet.recorder.hand_over();
                self.wake_listeners();
                hand_over = now + HAND_OVER_EVERY;
            }
            if self.lateness.is_due(now) {
                self.lateness.note(&evidence_so_far(&self.driver, &self.outlet), &self.responder.setup.thresholds);
            }
            if let (Some(at), Some((length, period))) = (stall, options.inject_stall) {
                if now >= at {
                    std::thread::sleep(std::time::Duration::from_nanos(length.as_nanos()));
                    stall = Some(now + period);
                }
            }
            self.stop |= end.is_some_and(|end| now >= end);
        }
        Ok(())
    }

    /// Accepts clients that had to wait for a free descriptor; the first such wait is reported.
    fn wake_listeners(&mut self) {
        let watcher = self.driver.watcher();
        let mut failed = 0;
        for listener in self.control.listeners().chain(self.outlet.feedback.listeners()) {
            listener.wake(&watcher);
            failed += listener.failed();
        }
        if self.responder.accepts_failed == 0 && failed > 0 {
            eprintln!(
                "manet-medium: no open files are left for a client of a socket; it waits; raise the limit (ulimit -Hn)"
            );
        }
        self.responder.accepts_failed = failed;
    }

    fn serve(&mut self, token: u64) {
        match Token::unpack(token) {
            Some(Token::Port(port)) => {
                for _ in 0..FRAMES_AT_ONCE {
                    let Some(input) = self.outlet.read(port as usize) else { break };
                    self.driver.input(input, &mut self.outlet);
                }
                // a descriptor without a device is readable for ever
                if let Some(Device::Tap(tap)) =
                    self.outlet.ports.get(port as usize).filter(|p| p.deleted).map(|p| &p.device)
                {
                    let _ = self.driver.watcher().unwatch(tap);
                }
            }
            Some(Token::Hwsim) => {
                for _ in 0..FRAMES_AT_ONCE {
                    let Some(input) = self.outlet.read_radios() else { break };
                    self.driver.input(input, &mut self.outlet);
                }
            }
            Some(Token::FeedbackListener(station)) => self.outlet.feedback.accept(station),
            Some(Token::FeedbackClient(client)) => self.serve_feedback(client),
            Some(Token::ControlListener) => self.control.accept(),
            Some(Token::ControlClient(client)) => {
                for line in self.control.ready(client) {
                    let (answer, stop) = self.responder.answer(&line, &mut self.driver, &mut self.outlet);
                    self.control.answer(client, &answer);
                    self.stop |= stop;
                }
            }
            Some(Token::Signal | Token::Parent) => self.stop = true,
            None => {}
        }
    }

    fn serve_feedback(&mut self, client: u32) {
        let (station, purges) = self.outlet.feedback.ready(client);
        for p in purges {
            let input = message::Input::Purge { station: p.station, neighbour: p.neighbour, token: p.token };
            self.driver.input(Input::Air(input), &mut self.outlet);
        }
        if let Some(station) = station {
            self.overhear(station);
        }
    }

    /// The station reports overheard frames while a client of its socket subscribes to them.
    fn overhear(&mut self, station: StationId) {
        let on = self.outlet.feedback.wants_overheard(station);
        if on != self.driver.timeline().machine().medium.overhears(station) {
            self.driver.input(Input::Air(message::Input::Overhear { station, on }), &mut self.outlet);
        }
    }

    /// Completes the outputs, then closes the interfaces: whoever ends the process in a hurry still has the results.
    fn finish(mut self) -> Result<Vec<Incomplete>, DaemonError> {
        self.driver.input(Input::Air(message::Input::Stop), &mut self.outlet);
        let mut evidence = evidence_so_far(&self.driver, &self.outlet);
        let lost_datagrams = self.outlet.hwsim.as_ref().map_or(0, |h| h.lost);
        evidence.tap_read_drops = self.outlet.ports.iter_mut().map(Port::lost_in_all).sum::<u64>() + lost_datagrams;
        let deleted = |p: &Port| p.deleted.then(|| Incomplete::InterfaceDeleted { of: p.name.clone() });
        let deleted: Vec<Incomplete> = self.outlet.ports.iter().filter_map(deleted).collect();
        let mut counters = serde_json::json!({
            "format": "manet-counters/1",
            "stations": self.responder.counters(&self.driver),
            "wires": self.responder.wires(&self.driver),
        });
        let jammers = self.responder.jammers(&self.driver);
        if !jammers.is_empty() {
            counters["jammers"] = jammers.into();
        }
        self.lateness.note(&evidence, &self.responder.setup.thresholds);
        let moved = self.responder.moved(&self.driver);
        let loaded = &self.responder.setup.loaded;
        let (ended_at, medium) = (self.driver.timeline().now(), &self.driver.timeline().machine().medium);
        let radio_time = medium.radio_time_csv(ended_at, &loaded.station_names());
        let rates = rate_tables(&self.driver.timeline().machine().medium, &loaded.station_names());
        let setup = self.responder.setup;
        let Outlet { ports, feedback, recorder, .. } = self.outlet;
        drop((self.control, feedback));
        let mut ended;
        (evidence.log_drops, ended) = recorder.finish();
        ended.lacking.extend(deleted);
        let outputs = &setup.loaded.config.outputs;
        if let Some(path) = setup.in_folder(&outputs.counters) {
            write_whole(path, &json_text(&counters), &mut ended);
        }
        if let Some(path) = setup.in_folder(&outputs.rates).filter(|_| !rates.is_empty()) {
            let report = rate_tables::report(setup.loaded.radio.rate_control.name(), &rates);
            write_whole(path, &json_text(&report), &mut ended);
        }
        if let Some(path) = setup.in_folder(&outputs.lateness) {
            write_whole(path, &self.lateness.text(), &mut ended);
        }
        for (output, text) in [(&outputs.radio_time, radio_time), (&outputs.moved, moved)] {
            if let (Some(path), Some(text)) = (setup.in_folder(output), text) {
                write_whole(path, &text, &mut ended);
            }
        }
        evidence.write_errors = ended.lacking.iter().map(Incomplete::to_string).collect();
        if let Some(path) = setup.in_folder(&outputs.verdict) {
            write_whole(path, &json_text(&run_verdict::report(&evidence, &setup.thresholds)), &mut ended);
        }
        for written in &ended.written {
            println!("{written}");
        }
        close_all(ports);
        Ok(ended.lacking)
    }
}

fn json_text(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// Writes a file completely or not at all: under another name, then renamed.
fn write_whole(path: PathBuf, text: &str, ended: &mut Ended) {
    let partial = path.with_extension("part");
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &path));
    match written {
        Ok(()) => ended.written.push(Written::whole(&path, text.as_bytes())),
        Err(error) => {
            let _ = std::fs::remove_file(&partial);
            ended.lacking.push(Incomplete::NotWritten { path, error });
        }
    }
}
