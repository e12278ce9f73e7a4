// A run under way: states and frames over a WebSocket, shown a fraction of a second late so that motion is even.

import { decode, lost, socketAddress } from "./api.js";
import { change, firstAt, notice, state } from "./state.js";

export const KEPT_NS = 20e9; // of frames
const HISTORY_NS = 60e9, MIN_RATE_NS = 5e8, DELAY_NS = 4e8, AHEAD_NS = 3e8, SWITCH_KNOWN_MS = 1e4;
const EMPTY = { count: 0, t: new Float64Array(0), end: new Float64Array(0) };
let again = () => {}, eventsCame = () => {};

export function begin(onEnd, onEvents) {
  eventsCame = onEvents;
  state.live = { events: null, nav: {}, positions: {}, off: new Set(), switched: new Map(), frames: EMPTY, data: {}, verdict: "", lateness: null, stalls: 0, skipped: 0, totals: { sent: {}, drops: {} }, rates: {}, acked: {}, newest: 0, heard: 0, second: 0, held: null, history: new Map(), air: [], late: [] };
  again = () => connect(onEnd);
  again();
}

// After a lost connection.
export function goOn() {
  if (state.live) again();
}

function connect(onEnd) {
  const socket = new WebSocket(socketAddress("live"));
  socket.binaryType = "arraybuffer";
  let ended = false;
  socket.onopen = () => notice("");
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return void take(decode(data));
    const message = JSON.parse(data);
    if (message.type === "end") {
      ended = true;
      onEnd();
    } else hear(message);
  };
  socket.onclose = (event) => {
    if (ended) return;
    if (event.code === 1000) return void onEnd();
    lost();
  };
}

function hear(message) {
  const { live } = state, t = Number(message.t_ns);
  for (const [name, place] of Object.entries(message.positions)) if (live.held !== name) live.positions[name] = place;
  for (const group of ["sent", "drops"]) for (const [name, count] of Object.entries(message.counts[group])) live.totals[group][name] = (live.totals[group][name] ?? 0) + count;
  Object.assign(live, { verdict: message.verdict, lateness: message.lateness, stalls: message.stalls, skipped: message.skipped, newest: t, heard: performance.now(), second: Math.floor(t / 1e9) });
  live.nav = message.nav;
  if (message.off) live.off = offNow(message.off);
  if (state.live.events !== message.events) {
    if (state.live.events !== null || message.events) eventsCame();
    live.events = message.events;
  }
  rates(message.tcp, t);
  received(message.received ?? {}, t);
  live.air.push([t, message.counts]);
  while (live.air.length && live.air[0][0] < t - HISTORY_NS) live.air.shift();
  state.about.end_ns = String(t);
  if (message.lateness && t - (live.late.at(-1)?.[0] ?? 0) >= 1e9) live.late.push([t, message.lateness, message.verdict]);
  while (live.late.length && live.late[0][0] < t - HISTORY_NS) live.late.shift();
  Object.assign(state.live.data, message.data);
  change({ paths: message.paths, queues: message.queues ?? {}, jamming: message.jamming ?? [] });
}

// The stations that are off. Who is off is asked every 2 s: an answer may be older than a switch of this page, which holds until one agrees.
function offNow(names) {
  const off = new Set(names);
  for (const [name, { on, at }] of state.live.switched) {
    if (off.has(name) !== on || performance.now() - at > SWITCH_KNOWN_MS) state.live.switched.delete(name);
    else off[on ? "delete" : "add"](name);
  }
  return off;
}

// This page has switched a station.
export function switched(name, on) {
  state.live.switched.set(name, { on, at: performance.now() });
  state.live.off = new Set(state.live.off);
  state.live.off[on ? "delete" : "add"](name);
  change({});
}

// Acknowledged bit/s of each TCP flow over the last second, from the sequence numbers of states.
function rates(samples, t) {
  for (const flow of state.about.flows) {
    const mine = Object.values(samples).filter((one) => one.station === flow.source && one.dport === flow.port).sort((a, b) => Number(b.t_ns) - Number(a.t_ns))[0];
    if (mine) advance(flow.name, mine.acked, mine.sport, t, mine);
  }
}

// Received bit/s of each flow of datagrams over the last second.
function received(bytes, t) {
  for (const [name, count] of Object.entries(bytes)) advance(name, count, null, t, {});
}

// A flow has carried so many bytes by now, modulo 2^32, on the connection from `sport`.
function advance(name, bytes, sport, t, sample) {
  const before = (state.live.acked[name] ??= []);
  if (before.length && before.at(-1).sport !== sport) before.length = 0;
  before.push({ acked: bytes, sport, at: t });
  while (before.length > 2 && before[1].at <= t - 1e9) before.shift();
  const { acked, at } = before[0];
  if (t - at >= MIN_RATE_NS) state.live.rates[name] = (8e9 * ((bytes - acked + 2 ** 32) % 2 ** 32)) / (t - at);
  note(name, t, sample);
}

// What the charts draw of a flow.
function note(name, t, sample) {
  const { history, rates } = state.live;
  if (!history.has(name)) history.set(name, []);
  const rows = history.get(name);
  rows.push([t / 1e9, rates[name] ?? null, sample.cwnd, sample.rtt_ms, sample.rto_ms]);
  while (rows.length && rows[0][0] < (t - HISTORY_NS) / 1e9) rows.shift();
}

// The last minute, as the answers of `series` and `overview` have a recorded run.
export function seriesOf(name) {
  const rows = state.live.history.get(name) ?? [], t = rows.map((row) => row[0]);
  const line = (at) => ({ t, v: rows.map((row) => row[at]) });
  const isTcp = state.about.flows.some((flow) => flow.name === name && flow.transport === "tcp");
  return { throughput: line(1), ...(isTcp ? { cwnd: line(2), rtt: line(3), rto: line(4) } : {}) };
}

export function airOf(begin, end) {
  const bins = 60, fates = {}, drops = {};
  const add = (table, name, bin, count) => ((table[name] ??= new Array(bins).fill(0))[bin] += count);
  for (const [t, counts] of state.live.air) {
    const bin = Math.min(bins - 1, Math.max(0, Math.floor(((t - begin) * bins) / (end - begin))));
    for (const [name, count] of Object.entries(counts.sent)) add(fates, name, bin, count);
    for (const [name, count] of Object.entries(counts.drops)) add(drops, name, bin, count);
  }
  return { bins, fates, drops };
}

// Of the whole run until then, as the medium has it; a recorded run has each second for itself.
export function latenessSoFar() {
  const { late } = state.live, column = (name) => late.map(([, one]) => one[name] ?? null);
  return { t: late.map(([t]) => t / 1e9), p50_us: column("p50_us"), p99_us: column("p99_us"), max_us: column("max_us"), verdict: late.map(([, , verdict]) => verdict) };
}

export function historyWindow() {
  return [Math.max(0, state.live.newest - HISTORY_NS), Math.max(1e9, state.live.newest)];
}

// New frames behind the kept ones; both are in order of time, up to frames that ended late.
function take(fresh) {
  const old = state.live.frames, from = old.count ? firstAt(old, state.live.newest - KEPT_NS) : 0;
  const joined = { count: old.count - from + fresh.count, thinned: false };
  for (const name of Object.keys(fresh)) {
    if (!ArrayBuffer.isView(fresh[name])) continue;
    const Kind = fresh[name].constructor, column = new Kind(joined.count);
    if (old.count) column.set(old[name].subarray(from));
    column.set(fresh[name], old.count - from);
    joined[name] = column;
  }
  state.live.frames = joined;
}

// The shown time: behind the newest state, moving with the clock, but never on to times whose frames are not here yet.
export function tick() {
  const { live } = state;
  if (!live.newest) return;
  change({ now: Math.max(0, live.newest - DELAY_NS + Math.min(AHEAD_NS, (performance.now() - live.heard) * 1e6)) });
}
