// The page of `manet view`: asks what the run is, then draws it at each change.

import * as actions from "./actions.js";
import { ask, choose, frames as fetchFrames, watch } from "./api.js";
import * as charts from "./charts.js";
import * as home from "./home.js";
import * as lanes from "./lanes.js";
import * as link from "./link.js";
import * as live from "./live.js";
import * as map from "./map.js";
import * as nav from "./nav.js";
import * as overview from "./overview.js";
import * as panel from "./panel.js";
import * as plan from "./plan.js";
import * as settings from "./settings.js";
import * as terminal from "./terminal.js";
import { change, forgetWindows, framesKept, goTo, notice, onChange, placeOf, refreshPaths, refreshQueues, speak, state, windowOf, zero } from "./state.js";
import { colour, drawIcon, element, FATES, HOST, lookOf, MAX_CHARTED, MEANING, mark, repaint, ROLES, sampleCanvas, scaleOfText, seconds } from "./words.js";

const by = (id) => document.getElementById(id);
const SPEEDS = [0.00001, 0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 1, 2, 5, 10];
const MET = new Set(["collision", "hidden"].map((fate) => FATES.indexOf(fate))); // lost to another frame
const NO_FATE = "broadcast or unfinished";
const MAX_STEP_FRAMES = 100000;

// --- start ----------------------------------------------------------------------------------------------------------------------

async function start() {
  const requested = link.read();
  if (requested.run !== null) choose(requested.run);
  let about = await ask("run");
  if (about.kind === "home") return home.show();
  if (about.kind === "campaign") return showFolder(about);
  by("all-runs").hidden = requested.run === null;
  state.run = requested.run;
  await open(about, requested);
  const ignored = ignoredOf(about, requested);
  if (ignored.length) notice(`The address asks for what this run does not have, which is ignored: ${ignored.join(", ")}`);
}

// The words of a link that are no number, or name what the run does not have.
function ignoredOf({ stations, flows }, { wrong, station, flows: chosen, flow, speed }) {
  const isFlow = (name) => flows.some((one) => one.name === name), ignored = [...wrong];
  if (station !== null && !stations.some((one) => one.name === station)) ignored.push(`station=${station}`);
  for (const name of chosen ?? []) if (!isFlow(name)) ignored.push(`flows=${name}`);
  if (flow !== null && !isFlow(flow)) ignored.push(`flow=${flow}`);
  if (speed !== null && !SPEEDS.includes(speed)) ignored.push(`speed=${speed}`);
  return ignored;
}

async function showFolder(about) {
  by("title").textContent = about.title;
  const { runs } = await ask("campaign");
  by("folder").hidden = false;
  by("run").hidden = by("keys").hidden = true;
  by("folder-rows").replaceChildren(...runs.map((run) => element("tr", {}, element("th", { scope: "row" }, element("a", { href: `#run=${encodeURIComponent(run.path)}` }, run.path)), element("td", {}, run.status ?? ""), element("td", {}, run.verdict ? element("span", { class: `badge ${run.verdict}` }, run.verdict) : run.error ?? "none"))));
}

async function open(about, requested = {}) {
  settled = false;
  forgetWindows();
  nav.forget();
  charts.forget();
  overview.forget();
  if (about.running) Object.assign(state, { about, live: null }); // a run under way has no answers about its frames
  const movement = await ask("movement");
  by("folder").hidden = true;
  by("run").hidden = by("keys").hidden = false;
  const begin = Number(about.begin_ns), end = Number(about.end_ns);
  Object.assign(state, { about, movement, live: null, paths: [], queues: {}, jamming: [], row: null, segment: null, station: null, playing: false });
  const names = about.flows.map((flow) => flow.name), flows = requested.flows?.filter((name) => names.includes(name));
  state.flows = new Set(flows ?? names.slice(0, MAX_CHARTED));
  if (SPEEDS.includes(requested.speed)) state.speed = requested.speed;
  state.span = Math.min(requested.span ? requested.span * 1e9 : 2e9, about.running ? live.KEPT_NS : end - begin); // a run under way has only begun
  state.now = requested.t !== null && requested.t !== undefined ? Math.min(end, Math.max(begin, requested.t * 1e9 + zero())) : Math.min(end, Math.max(begin, zero()) + 1e9);
  if (requested.station && about.stations.some((one) => one.name === requested.station)) state.station = requested.station;
  if (about.running) live.begin(reopen, renew);
  by("title").textContent = about.title;
  document.title = `${about.title} - manet view`;
  by("about").textContent = `${about.stations.length} stations, ${about.radio}, ${about.routing}${about.flows.length ? `, ${about.flows.length} flow${about.flows.length > 1 ? "s" : ""}` : ""}`;
  badge("mode", about.running ? (about.control ? "live, with control" : "live") : about.kind);
  setUpTime(begin, end);
  panel.setUp();
  actions.setUp();
  plan.setUp();
  legend();
  if (requested.map) map.show(requested.map); else map.fit();
  if (about.kind === "planned") by("counts").textContent = "not started";
  else if (!about.running) {
    ask("counts").then(showCounts, (problem) => notice(problem.message));
    if (requested.segment !== null && requested.segment !== undefined) await panel.showStory(requested.flow ?? "flow1", requested.segment, { move: requested.t === null });
    if (requested.frame !== null && requested.frame !== undefined) await panel.showFrame(requested.frame, { move: requested.t === null });
  }
  change({});
  const first = state.now, isTold = requested.t !== undefined && requested.t !== null;
  overview.load().then(() => {
    const busiest = overview.busiest();
    // where something happens, unless a link or the user has said where
    if (busiest !== null && !isTold && state.about === about && state.now === first && !state.playing) goTo(busiest);
    settled = state.about === about;
  });
}
let settled = false; // the time from which a run is shown is final

// Events were carried out: flows may have come.
async function renew() {
  try {
    const { flows, events } = await ask("run");
    if (!state.live) return;
    for (const flow of flows) if (!state.about.flows.some((known) => known.name === flow.name)) state.flows.add(flow.name);
    Object.assign(state.about, { flows, events });
    showFlows();
    legend();
    change({});
  } catch (problem) {
    notice(problem.message);
  }
}

// The run has ended: its record is complete when its programs have gone.
async function reopen() {
  state.live = null;
  notice("The run has ended; its record is being completed.");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    try {
      const about = await ask("run");
      if (about.running) continue;
      await open(about);
      notice("");
      speak("The run has ended; its record is shown.");
      return;
    } catch {
      continue; // not yet
    }
  }
}

function badge(id, text, kind = "") {
  by(id).textContent = text ?? "";
  by(id).className = `badge ${kind}`;
  by(id).hidden = !text;
}

function showCounts(counts) {
  const totals = {};
  for (const table of Object.values(counts.sent)) for (const [fate, count] of Object.entries(table)) totals[fate || NO_FATE] = (totals[fate || NO_FATE] ?? 0) + count;
  by("counts").textContent = `frames in the run: ${Object.entries(totals).map(([fate, count]) => `${count} ${fate}`).join(", ")}`;
}

function showTotals({ sent, drops }) {
  const list = (table) => Object.entries(table).map(([name, count]) => `${count} ${name || NO_FATE}`).join(", ") || "none";
  by("counts").textContent = `frames since the page came: ${list(sent)}; packets dropped: ${list(drops)}`;
}

// --- time -----------------------------------------------------------------------------------------------------------------------

function setUpTime(begin, end) {
  by("speed").replaceChildren(...SPEEDS.map((speed) => element("option", { value: speed }, `${speed}x`)));
  by("speed").value = String(state.speed);
  showSpans(begin, end);
  for (const id of ["play", "speed", "back", "forth", "collision", "drop", "slider"]) by(id).disabled = Boolean(state.live);
  showFlows();
}

// The windows to choose from, and the one that is shown.
function showSpans(begin, end) {
  const choices = lanes.spans();
  if (!choices.includes(state.span)) choices.push(state.span);
  choices.sort((a, b) => a - b);
  by("window").replaceChildren(...choices.map((span) => element("option", { value: span }, !state.live && span === end - begin ? "whole run" : span >= 1e9 ? `${+(span / 1e9).toFixed(3)} s` : span >= 1e6 ? `${+(span / 1e6).toFixed(3)} ms` : `${span / 1e3} µs`)));
  by("window").value = String(state.span); // new options: the first is chosen
}

// The flows to choose from, each with the line that it has on the map and in the charts.
function showFlows() {
  by("flows").replaceChildren(...state.about.flows.map((flow, at) => element("label", {}, checkbox(flow.name), charts.sampleOf(lookOf(at)), ` ${flow.name}`)));
}

function checkbox(name) {
  const box = element("input", { type: "checkbox", checked: state.flows.has(name) ? "" : null, "data-flow": name });
  box.addEventListener("change", () => {
    const flows = new Set(state.flows);
    flows[box.checked ? "add" : "delete"](name);
    change({ flows });
  });
  return box;
}

const LIVE_EVERY_MS = 30; // some 30 pictures a second leave the processors to the run
const CALM_EVERY_MS = 500; // where the system asks for less motion
let before = null, pictured = 0;
function animate(now) {
  const every = settings.calm() ? CALM_EVERY_MS : state.live ? LIVE_EVERY_MS : 0;
  if ((state.live || state.playing) && now - pictured < every) return void requestAnimationFrame(animate);
  pictured = now;
  if (state.live) {
    live.tick();
  } else if (state.playing) {
    const next = state.now + (before === null ? 0 : (now - before) * 1e6 * state.speed), end = Number(state.about.end_ns);
    change({ now: Math.min(next, end), playing: next < end });
  }
  before = state.playing ? now : null;
  drawn += 1;
  requestAnimationFrame(animate);
}
let drawn = 0;

function play(on) {
  change({ playing: on });
  speak(on ? `playing at ${state.speed}x` : `stopped at ${seconds(state.now - zero(), 3)}`);
}

// The next frame (or the one before) that `fits`, over windows without gaps, each of which has every frame of its time.
async function step(direction, fits) {
  const begin = Number(state.about.begin_ns), end = Number(state.about.end_ns), { now, row } = state;
  let from = now, span = 1e9;
  while (direction > 0 ? from < end : from > begin) {
    const [low, high] = direction > 0 ? [from, Math.min(from + span, end)] : [Math.max(from - span, begin), from];
    const frames = await fetchFrames(low, high, MAX_STEP_FRAMES);
    if (frames.thinned) {
      span /= 8;
      continue;
    }
    const next = pick(frames, direction, (at) => frames.row[at] !== row && (frames.t[at] - now) * direction > 0 && fits(frames, at));
    if (next !== null) return void panel.showFrame(next);
    from = direction > 0 ? high : low;
    span = Math.min(span * 2, 6e10);
  }
  speak("there is none");
}

function pick(frames, direction, fits) {
  for (let at = direction > 0 ? 0 : frames.count - 1; at >= 0 && at < frames.count; at += direction) if (fits(at)) return frames.row[at];
  return null;
}

async function nextDrop() {
  const { drops } = await ask("drops", { from: Math.floor(state.now), to: Number(state.about.end_ns) + 1 });
  const next = drops[drops.findIndex((drop) => drop.row === state.row) + 1]; // several may have the same instant
  if (next) await panel.showFrame(next.row); else speak("there is no later drop");
}

// --- wiring ---------------------------------------------------------------------------------------------------------------------

function legend() {
  const kinds = ["delivered", "captured", "collision", "hidden", "weak", "error", "busy", "nav", "broadcast"];
  by("legend").replaceChildren(...kinds.map((kind) => {
    const [sample, pen] = sampleCanvas(26, 12), name = kind === "captured" ? "delivered" : kind;
    pen.strokeStyle = pen.fillStyle = colour(name);
    pen.lineWidth = 1.8;
    pen.beginPath();
    pen.moveTo(0, 6);
    pen.lineTo(14, 6);
    pen.stroke();
    mark(pen, name, 19, 6, 3.4);
    if (kind === "captured") pen.beginPath(), pen.arc(19, 6, 5.4, 0, 7), pen.stroke();
    return element("li", {}, sample, MEANING[kind]);
  }), element("li", {}, "dashed: a retry"), element("li", {}, "bar beside a station: its queue"), element("li", {}, "▾ in a lane: a drop"), element("li", {}, "◆ in the lanes: an event"), ...brokenSample(), ...roleSamples());
}

// Only what there is.
function roleSamples() {
  const present = new Set(map.rolesOf(state.about).values());
  if (state.about.wires?.length) present.add(HOST);
  return [...present].map((role) => {
    const [sample, pen] = sampleCanvas(26, 12);
    pen.strokeStyle = colour("ink");
    pen.fillStyle = colour(role === HOST ? "panel" : "ink");
    drawIcon(pen, role, 13, 6.5, 3.6);
    return element("li", {}, sample, ROLES[role]);
  });
}

// Only where an event may break a link.
function brokenSample() {
  if (!state.about.control && !state.about.events?.some(({ event }) => event === "link")) return [];
  const [sample, pen] = sampleCanvas(26, 12);
  map.brokenLine(pen, [0, 6], [26, 6]);
  return [element("li", {}, sample, "a broken link")];
}

const TYPED = "textarea, input:not([type=range]):not([type=checkbox])";
const OWN_SPACE = "button, a, summary, select, input[type=checkbox]"; // a space is theirs, if the keyboard has led there
let byPointer = true; // how the focus came to where it is
document.addEventListener("pointerdown", () => (byPointer = true), true);
document.addEventListener("keydown", (event) => event.key === "Tab" && (byPointer = false), true);
function keys(event) {
  if (event.target.closest(TYPED) || event.ctrlKey || event.metaKey || event.altKey || !state.about?.stations || state.live) return;
  if (event.key === " " && !byPointer && event.target.closest(OWN_SPACE)) return;
  if (event.key.startsWith("Arrow") && event.target.closest("select")) return;
  const actions = {
    " ": () => play(!state.playing), ArrowLeft: () => goTo(state.now - state.span / 20), ArrowRight: () => goTo(state.now + state.span / 20),
    ",": () => step(-1, () => true), ".": () => step(1, () => true), c: () => step(1, (frames, at) => MET.has(frames.fate[at])), d: nextDrop,
    "[": () => speedBy(-1), "]": () => speedBy(1), "+": () => lanes.zoom(-1), "=": () => lanes.zoom(-1), "-": () => lanes.zoom(1),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function speedBy(direction) {
  const at = SPEEDS.indexOf(state.speed) + direction;
  change({ speed: SPEEDS[Math.min(Math.max(at, 0), SPEEDS.length - 1)] });
}

function showTheme() {
  document.documentElement.dataset.theme = settings.theme();
  repaint();
  if (state.about?.stations) legend(), showFlows();
  change({});
}

onChange(() => {
  if (!state.about?.stations || (state.about.running && !state.live)) return;
  const begin = Number(state.about.begin_ns), end = Number(state.about.end_ns);
  by("now").textContent = seconds(state.now - zero(), state.span < 1e7 ? 9 : 6);
  by("slider").value = String(Math.round(((state.now - begin) / (end - begin)) * 1e6));
  by("slider").setAttribute("aria-valuetext", seconds(state.now - zero(), 3));
  by("play").textContent = state.playing ? "Stop" : "Play";
  by("play").setAttribute("aria-pressed", state.playing);
  by("speed").value = String(state.speed);
  by("window").value = String(state.span);
  const word = state.live?.verdict || state.about.verdict?.verdict;
  badge("verdict", word, word);
  if (state.live) showTotals(state.live.totals);
  map.draw();
  lanes.draw();
  overview.draw();
  charts.update();
  panel.update();
  refreshPaths();
  refreshQueues();
  link.write();
});

by("play").addEventListener("click", () => play(!state.playing));
by("speed").addEventListener("change", (event) => change({ speed: Number(event.target.value) }));
by("window").addEventListener("change", (event) => change({ span: Number(event.target.value) }));
by("slider").addEventListener("input", (event) => {
  const begin = Number(state.about.begin_ns), end = Number(state.about.end_ns);
  goTo(begin + ((end - begin) * Number(event.target.value)) / 1e6);
});
by("back").addEventListener("click", () => step(-1, () => true));
by("forth").addEventListener("click", () => step(1, () => true));
by("collision").addEventListener("click", () => step(1, (frames, at) => MET.has(frames.fate[at])));
by("drop").addEventListener("click", nextDrop);
by("map-in").addEventListener("click", () => map.zoomBy(1.25));
by("map-out").addEventListener("click", () => map.zoomBy(0.8));
by("map-fit").addEventListener("click", map.fit);
by("show-ranges").addEventListener("change", map.fitAgain);
for (const id of ["show-links", "show-routes", "show-trails"]) by(id).addEventListener("change", () => change({}));
by("theme").addEventListener("click", () => {
  settings.switchTheme();
  showTheme();
});
settings.onSystemTheme(showTheme);
watch(notice, () => {
  notice("");
  forgetWindows();
  live.goOn();
  if (state.about) change({}); else location.reload();
});
document.addEventListener("keydown", keys);
document.addEventListener("keyup", (event) => event.key === " " && byPointer && !state.live && event.target.closest("button") && event.preventDefault()); // Firefox presses a button when the key is released
window.addEventListener("hashchange", () => location.reload());
const sizes = new ResizeObserver(() => { charts.resize(); change({}); });
for (const id of ["main", "map", "lanes-scroll", "overview"]) sizes.observe(by(id));
map.listen((row) => panel.showFrame(row), panel.openMenu);
lanes.listen((row) => panel.showFrame(row));
overview.listen(() => showSpans(Number(state.about.begin_ns), Number(state.about.end_ns)));
panel.listen();
actions.listen();
plan.listen(open);
showTheme();
requestAnimationFrame(animate);
// for tests: what is shown, and how many pictures were drawn
window.manetView = { state, drawn: () => drawn, mapDrawn: map.drawn, settled: () => settled, toScreen: map.toScreen, placeOf: (name) => placeOf(name, state.now), goTo, namesWritten: map.namesWritten, framesOnMap: () => map.framesNow().map(([frames, at]) => frames.row[at]), boxes: lanes.boxesDrawn, events: lanes.eventsDrawn, charts: charts.drawn, terminals: terminal.texts, scaleOfText, framesKept, hasFrames: () => windowOf(state.now - state.span / 2, state.now + state.span / 2) !== null };
start().catch((problem) => notice(problem.message));
