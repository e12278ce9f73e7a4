// The whole run in one strip: throughput, lost frames, events and broken links, with the window of the lanes. A click sets the time, a
// drag the window. The slider over it has the same for keyboards and screen readers.

import { ask } from "./api.js";
import { windowNow } from "./lanes.js";
import { change, goTo, notice, state, zero } from "./state.js";
import { colour, scaleOfText, seconds } from "./words.js";

const canvas = document.getElementById("overview"), pen = canvas.getContext("2d");
const BINS = 300, LOST = ["collision", "hidden", "weak", "error", "busy"], BREAKS = new Set(["link", "power", "cut", "wire"]);
const AIR_SHARE = 0.45, MARKS = 10; // of the height: lost frames from above; px at the foot: events
const MIN_DRAG = 6, MIN_SPAN_NS = 1e6;
let lost = null, rates = null, dragging = null;

export function forget() {
  lost = rates = dragging = null;
}

// Asks once for what the strip shows; it is drawn as the answers come.
export async function load() {
  const { about } = state;
  if (about.running || about.kind === "planned") return;
  const words = { from: about.begin_ns, to: about.end_ns };
  try {
    const air = await ask("overview", { ...words, bins: BINS });
    if (state.about !== about) return;
    lost = Array.from({ length: air.bins }, (_, at) => LOST.reduce((sum, fate) => sum + (air.fates[fate]?.[at] ?? 0), 0));
    change({});
    const tcp = about.flows.slice(0, 6);
    const series = await Promise.all(tcp.map((flow) => ask("series", { flow: flow.name, ...words, points: BINS })));
    if (state.about !== about) return;
    rates = series.map(({ throughput }) => throughput).filter((line) => line?.t?.length);
    change({});
  } catch (problem) {
    notice(problem.message);
  }
}

// The middle of the part in which most frames were lost, in ns; null if none was, or nothing is known yet.
export function busiest() {
  const most = Math.max(0, ...(lost ?? []));
  if (!most) return null;
  const begin = Number(state.about.begin_ns), end = Number(state.about.end_ns);
  return begin + ((lost.indexOf(most) + 0.5) * (end - begin)) / lost.length;
}

export function draw() {
  if (!state.about?.stations) return;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const begin = Number(state.about.begin_ns), end = Math.max(Number(state.about.end_ns), begin + 1), x = (ns) => ((ns - begin) / (end - begin)) * width;
  const foot = height - MARKS * scaleOfText();
  drawRates(x, foot);
  if (lost) drawLost(width, foot);
  const [from, to] = dragging?.moved ? spanOf(dragging, width) : windowNow();
  pen.fillStyle = pen.strokeStyle = colour("accent");
  pen.globalAlpha = 0.15;
  pen.fillRect(x(from), 0, Math.max(2, x(to) - x(from)), height);
  pen.globalAlpha = 1;
  pen.lineWidth = 1;
  pen.strokeRect(x(from) + 0.5, 0.5, Math.max(2, x(to) - x(from)) - 1, height - 1);
  drawEvents(x, foot, height);
  pen.fillStyle = colour("accent");
  pen.fillRect(x(state.now) - 1, 0, 2, height);
}

// The acknowledged rates of all flows on top of each other, from the foot, against their largest sum.
function drawRates(x, foot) {
  if (!rates?.length) return;
  const times = rates[0].t, sums = times.map((_, at) => rates.reduce((sum, { v }) => sum + (v[at] ?? 0), 0)), most = Math.max(1, ...sums);
  pen.fillStyle = colour("flow1");
  pen.globalAlpha = 0.55;
  pen.beginPath();
  pen.moveTo(x(times[0] * 1e9), foot);
  times.forEach((t, at) => pen.lineTo(x(t * 1e9), foot - (1 - AIR_SHARE) * foot * (sums[at] / most)));
  pen.lineTo(x(times.at(-1) * 1e9), foot);
  pen.closePath();
  pen.fill();
  pen.globalAlpha = 1;
}

function drawLost(width, foot) {
  const most = Math.max(1, ...lost), part = width / lost.length;
  pen.fillStyle = colour("collision");
  lost.forEach((count, at) => count && pen.fillRect(at * part, 0, Math.max(1, part), Math.max(2, AIR_SHARE * foot * (count / most))));
}

function drawEvents(x, foot, height) {
  for (const { t_s, event } of state.about.events ?? []) {
    const at = x(Number(t_s) * 1e9), middle = (foot + height) / 2, half = (height - foot) / 2 - 1;
    pen.fillStyle = colour(BREAKS.has(event) ? "bad" : "ink");
    pen.beginPath();
    pen.moveTo(at, middle - half);
    pen.lineTo(at + half, middle);
    pen.lineTo(at, middle + half);
    pen.lineTo(at - half, middle);
    pen.closePath();
    pen.fill();
  }
}

function nsAt(px, width) {
  const begin = Number(state.about.begin_ns), end = Number(state.about.end_ns);
  return begin + (Math.min(Math.max(px, 0), width) / width) * (end - begin);
}

function spanOf({ from, to }, width) {
  return [nsAt(Math.min(from, to), width), nsAt(Math.max(from, to), width)];
}

export function listen(onSpan) {
  canvas.addEventListener("pointerdown", (event) => {
    if (state.live) return;
    dragging = { from: event.offsetX, to: event.offsetX, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    canvas.title = titleAt(event.offsetX);
    if (!dragging) return;
    dragging.to = event.offsetX;
    dragging.moved ||= Math.abs(dragging.to - dragging.from) > MIN_DRAG;
    change({});
  });
  canvas.addEventListener("pointerup", () => {
    const was = dragging;
    dragging = null;
    if (!was) return;
    if (!was.moved) return void goTo(nsAt(was.to, canvas.clientWidth));
    const [from, to] = spanOf(was, canvas.clientWidth);
    change({ span: Math.max(MIN_SPAN_NS, to - from), now: (from + to) / 2 });
    onSpan();
  });
  canvas.addEventListener("pointercancel", () => (dragging = null));
}

// The events about a place, and its time.
function titleAt(px) {
  const width = canvas.clientWidth, ns = nsAt(px, width), near = ((nsAt(px + 6, width) || ns) - ns) || 1;
  const events = (state.about?.events ?? []).filter(({ t_s }) => Math.abs(Number(t_s) * 1e9 - ns) <= near);
  return [seconds(ns - zero(), 2), ...events.map(({ event, station, detail }) => [event, station, detail].filter(Boolean).join(" "))].join("\n");
}
