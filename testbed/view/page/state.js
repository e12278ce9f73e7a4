// What the page shows now. Every change is announced once, before the next picture.

import { ask, frames as fetchFrames } from "./api.js";

export const state = {
  about: null, movement: null, now: 0, span: 1e9, playing: false, speed: 1, station: null, row: null, flow: null, segment: null,
  flows: new Set(), paths: [], queues: {}, jamming: [], live: null,
};
const listeners = new Set();
let announced = false;

export function onChange(listener) {
  listeners.add(listener);
}

export function change(values) {
  Object.assign(state, values);
  if (announced) return;
  announced = true;
  requestAnimationFrame(() => {
    announced = false;
    for (const listener of listeners) listener(state);
  });
}

export function zero() {
  return state.about?.traffic_ns ? Number(state.about.traffic_ns) : 0;
}

export function goTo(ns) {
  const begin = Number(state.about.begin_ns), end = Number(state.about.end_ns);
  change({ now: Math.min(Math.max(ns, begin), end) });
}

// Positions in m at a time: a row of the movement holds until the next one.
export function placeOf(name, ns) {
  if (state.live?.positions[name]) return state.live.positions[name];
  const rows = state.movement?.stations[name];
  if (!rows) return [0, 0];
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (rows[middle][0] <= ns) low = middle; else high = middle - 1;
  }
  const [t, x, y, vx, vy] = rows[low];
  const elapsed = Math.max(0, ns - t) / 1e9;
  return [x + vx * elapsed, y + vy * elapsed];
}

export function isOff(name, ns) {
  if (state.live) return state.live.off.has(name);
  let off = false;
  for (const [t, who, on] of state.movement?.power ?? []) if (t <= ns && who === name) off = !on;
  return off;
}

// --- frames: windows of the air log, of power-of-two lengths, the most recently used kept -----------------------------------

const KEPT = 24;
const LIMIT = 20000;
const windows = new Map();
const asked = new Set();

export function windowOf(begin, end) {
  if (state.live) return state.live.frames;
  const level = Math.ceil(Math.log2(Math.max(end - begin, 2 ** 20)));
  const length = 2 ** level, first = Math.floor(begin / length) * length, key = `${level}/${first}`;
  const kept = windows.get(key);
  if (kept) {
    windows.delete(key);
    windows.set(key, kept);
  } else if (!asked.has(key)) {
    asked.add(key);
    fetchFrames(first, first + 2 * length, LIMIT)
      .then((frames) => {
        windows.set(key, frames);
        while (windows.size > KEPT) windows.delete(windows.keys().next().value);
        change({});
      })
      .catch((problem) => notice(problem.message))
      .finally(() => asked.delete(key));
  }
  return kept ?? null;
}

export function forgetWindows() {
  windows.clear();
  dropped.clear();
}

// Dropped packets, in the same windows; empty until they are here. (A run under way has only their numbers.)
const dropped = new Map();
export function dropsIn(begin, end) {
  if (state.live) return [];
  const length = 2 ** Math.ceil(Math.log2(Math.max(end - begin, 2 ** 20))), first = Math.floor(begin / length) * length, key = `${length}/${first}`;
  if (!dropped.has(key)) {
    dropped.set(key, []);
    while (dropped.size > KEPT) dropped.delete(dropped.keys().next().value);
    ask("drops", { from: first, to: first + 2 * length })
      .then(({ drops }) => {
        dropped.set(key, drops.map((row) => ({ ...row, t: Number(row.t_ns) })));
        change({});
      })
      .catch((problem) => {
        dropped.delete(key);
        notice(problem.message);
      });
  }
  return (dropped.get(key) ?? []).filter((row) => row.t >= begin && row.t < end);
}

export function framesKept() {
  return [...windows.values()].reduce((sum, frames) => sum + frames.count, 0);
}

// The first place with t >= ns.
export function firstAt(frames, ns) {
  let low = 0, high = frames.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames.t[middle] < ns) low = middle + 1; else high = middle;
  }
  return low;
}

// --- paths of the flows, asked when the time has changed enough -------------------------------------------------------------

let pathsAt = null, pathsBusy = false;
export async function refreshPaths() {
  if (state.live || pathsBusy || !state.about?.flows.length) return;
  const step = Math.max(state.span / 20, 1e8), at = Math.round(state.now / step) * step;
  if (at === pathsAt) return;
  pathsBusy = true;
  try {
    const { paths } = await ask("routes", { t: Math.round(state.now) });
    pathsAt = at;
    change({ paths });
  } catch (problem) {
    notice(problem.message);
  } finally {
    pathsBusy = false;
  }
}

// --- packets at the stations, as they are now ------------------------------------------------------------------------------

const QUEUES_EVERY_MS = 100; // while playing: more often nobody could read them
let queuesAt = null, queuesBusy = false, queuesAsked = -Infinity;
export async function refreshQueues() {
  if (state.live || queuesBusy || queuesAt === state.now) return;
  if (state.playing && performance.now() - queuesAsked < QUEUES_EVERY_MS) return;
  queuesBusy = true;
  queuesAsked = performance.now();
  const at = state.now;
  try {
    const { queues, jamming } = await ask("queues", { t: Math.round(at) });
    queuesAt = at;
    change({ queues, jamming });
  } catch (problem) {
    queuesAt = at;
    notice(problem.message);
  } finally {
    queuesBusy = false;
  }
}

// What a station's circle, list entry and details say of it beside its name.
export function conditionOf(name) {
  if (isOff(name, state.now)) return "off";
  if (state.queues[name]?.stalled) return "stalled";
  return stalledWires().has(name) ? "wire stalled" : "";
}

// The ends of wires that an event has stalled.
function stalledWires() {
  const stalled = new Set();
  for (const { t_s, event, station, detail } of state.about.events ?? []) {
    if (event !== "wire" || Number(t_s) * 1e9 > state.now) continue;
    for (const end of station.split(" ")) stalled[detail === "stalled" ? "add" : "delete"](end);
  }
  return stalled;
}

// The links that events have broken by now (error rate 1), as linkName has them.
export function brokenLinks() {
  const broken = new Set();
  for (const { t_s, event, station, detail } of state.about.events ?? []) {
    if (event !== "link" || Number(t_s) * 1e9 > state.now) continue;
    broken[Number(detail.split(" ")[1]) >= 1 ? "add" : "delete"](linkName(...station.split(" ")));
  }
  return broken;
}

export function linkName(one, other) {
  return one < other ? `${one} ${other}` : `${other} ${one}`;
}

export function placeOfFlow(name) {
  return state.about.flows.findIndex((flow) => flow.name === name);
}

export function notice(text) {
  const place = document.getElementById("notice");
  place.textContent = text ?? "";
  place.hidden = !text;
}

export function speak(text) {
  document.getElementById("speech").textContent = text;
}
