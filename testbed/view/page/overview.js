// The whole run in one strip: throughput, lost frames, events and broken links, with the window of the lanes. A click sets the time, a
// drag the window. The slider over it has the same for keyboards and screen readers.

import { ask } from "./api.js";
import { windowNow } from "./lanes.js";
import { change, goTo, notice, state, zero } from "./state.js";
import { colour, diamond, eventWords, LOST, MAX_CHARTED, scaleOfText, seconds, sized } from "./words.js";

const canvas = document.getElementById("overview"), pen = canvas.getContext("2d");
const BINS = 300, BREAKS = new Set(["link", "power", "cut", "wire"]);
const AIR_SHARE = 0.45, MARKS = 10; // of the height: lost frames from above; px at the foot: events
const MIN_DRAG = 6, NEAR = 6, MIN_SPAN_NS = 1e6;
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
    const flows = about.flows.slice(0, MAX_CHARTED);
    const series = await Promise.all(flows.map((flow) => ask("series", { flow: flow.name, ...words, points: BINS })));
    if (state.about !== about) return;
    const lines = series.map(({ throughput }) => throughput).filter((line) => line?.t?.length);
    rates = (lines[0]?.t ?? []).map((t, at) => [t * 1e9, lines.reduce((sum, { v }) => sum + (v[at] ?? 0), 0)]);
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
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  sized(canvas, pen, width, height);
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

// The rates of all flows on top of each other, from the foot, against their largest sum.
function drawRates(x, foot) {
  if (!rates?.length) return;
  const most = Math.max(1, ...rates.map(([, sum]) => sum));
  pen.fillStyle = colour("flow1");
  pen.globalAlpha = 0.55;
  pen.beginPath();
  pen.moveTo(x(rates[0][0]), foot);
  for (const [ns, sum] of rates) pen.lineTo(x(ns), foot - (1 - AIR_SHARE) * foot * (sum / most));
  pen.lineTo(x(rates.at(-1)[0]), foot);
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
    pen.fillStyle = colour(BREAKS.has(event) ? "bad" : "ink");
    diamond(pen, x(Number(t_s) * 1e9), (foot + height) / 2, (height - foot) / 2 - 1);
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
  const width = canvas.clientWidth, ns = nsAt(px, width), near = (NEAR / width) * (Number(state.about?.end_ns) - Number(state.about?.begin_ns));
  const events = (state.about?.events ?? []).filter(({ t_s }) => Math.abs(Number(t_s) * 1e9 - ns) <= near);
  return [seconds(ns - zero(), 2), ...events.map(eventWords)].join("\n");
}
