// Flows, the air and the host, by uPlot, below the lanes and on their time axis: throughput, cwnd, RTT and RTO, lost frames, drops,
// lateness. Each chart can be switched off and enlarged; the browser remembers both.

import { ask } from "./api.js";
import * as lanes from "./lanes.js";
import { airOf, historyWindow, latenessSoFar, seriesOf } from "./live.js";
import { goTo, notice, placeOfFlow, state, zero } from "./state.js";
import { colour, element, LOST, lookOf, MAX_CHARTED, sampleCanvas, scaleOfText } from "./words.js";
import uPlot from "./vendor/uPlot.esm.js";

const place = document.getElementById("charts");
const choices = document.getElementById("chart-choices"), scroller = document.getElementById("lanes-scroll");
const HEIGHT = 76, LARGE = 240, POINTS = 600, BINS = 360;
const KINDS = { throughput: "throughput", cwnd: "congestion window", rtt: "round-trip time", lost: "lost frames", drops: "dropped packets", lateness: "lateness" };
const KEY = "manet-view-charts", OFF_AT_FIRST = ["rtt", "drops"];
const VALUES_EVERY_MS = 200, FOLLOW_EVERY_MS = 100; // the latter of a run under way, which has the processors first
const MIN_RATE_S = 0.1; // of frames: in shorter parts their number says more than a rate
let charts = [], shown = "", busy = false, asked = null, lateness = null, valued = 0, followed = 0;
let along = [0, 1]; // the time axis, that of the lanes: s of the traffic
let chosen = { off: new Set(OFF_AT_FIRST), large: new Set() };
try {
  const { off, large } = JSON.parse(localStorage.getItem(KEY));
  chosen = { off: new Set(off), large: new Set(large) };
} catch {
  // nothing is remembered, or not in this form
}
const BAR_PX = 24; // a scroll bar that comes and goes is no other width
let kept = { width: 0, height: 0 }; // of the place of the charts

export function reset() {
  for (const chart of charts) chart.plot.destroy();
  charts = [];
  place.replaceChildren();
  shown = "";
}

export function forget() {
  reset();
  place.style.minHeight = "";
  kept = { width: 0, height: 0 };
  lateness = null;
  choices.replaceChildren();
  delete choices.dataset.names;
}

function charted() {
  return state.about.flows.filter((flow) => state.flows.has(flow.name)).slice(0, MAX_CHARTED);
}

// Charts follow the window; between windows only the line of now moves.
export async function update() {
  if (!state.about?.stations) return;
  if (state.live) return void updateLive();
  const [begin, end] = extent();
  const key = `${begin}/${end}/${[...state.flows].join()}/${document.documentElement.dataset.theme}/${state.segment}`;
  follow();
  if (key === shown) return;
  asked = key;
  if (busy) return;
  busy = true;
  try {
    const flows = charted();
    lateness ??= await ask("lateness");
    const series = await Promise.all(flows.map((flow) => ask("series", { flow: flow.name, from: begin, to: end, points: POINTS })));
    const air = await ask("overview", { from: begin, to: end, bins: BINS });
    draw(flows, series, air, within(lateness, begin, end), begin, end, key);
  } catch (problem) {
    notice(problem.message);
    shown = key;
  } finally {
    busy = false;
    if (asked !== key) update();
  }
}

// The axis moves with the lanes at once, the lines when they are here.
function follow() {
  if (state.live && performance.now() - followed < FOLLOW_EVERY_MS) return;
  followed = performance.now();
  const [from, to] = along = lanes.windowNow().map((t) => (t - zero()) / 1e9);
  for (const { plot } of charts) {
    if (plot.scales.x.min !== from || plot.scales.x.max !== to) plot.setScale("x", { min: from, max: to }); else plot.redraw(false, false);
  }
  showValues();
}

// Every two seconds of the run there are other lines.
function updateLive() {
  follow();
  const key = `live/${state.live.second >> 1}/${[...state.flows].join()}/${document.documentElement.dataset.theme}`;
  if (key === shown || !state.live.newest) return;
  shown = key;
  const flows = charted(), [begin, end] = historyWindow();
  draw(flows, flows.map((flow) => seriesOf(flow.name)), airOf(begin, end), latenessSoFar(), begin, end, key);
}

// The rows of a window, and one before and behind it, so that lines go to its edges.
function within(table, begin, end) {
  const first = Math.max(0, table.t.findIndex((t) => t * 1e9 >= begin) - 1), last = table.t.findIndex((t) => t * 1e9 > end);
  const cut = (list) => list.slice(first, last < 0 ? undefined : last + 1);
  return Object.fromEntries(Object.entries(table).map(([name, list]) => [name, cut(list)]));
}

// The times to ask about: the window and, on both sides, a quarter of it, in steps of a quarter, so that playing does not ask at every
// picture; at least a tenth of a second.
function extent() {
  const whole = [Number(state.about.begin_ns), Number(state.about.end_ns)];
  const span = Math.max(state.span, 1e8);
  if (span >= whole[1] - whole[0]) return whole;
  const [from, to] = lanes.windowNow(), step = span / 4, middle = Math.round((from + to) / 2 / step) * step;
  return [Math.max(whole[0], Math.floor(middle - 0.75 * span)), Math.min(whole[1], Math.ceil(middle + 0.75 * span))];
}

function draw(flows, series, air, late, begin, end, key) {
  const specs = [];
  const ofFlows = (name) => flows.map((flow, at) => ({ name: flow.name, line: series[at]?.[name], ...lookOf(placeOfFlow(flow.name)) })).filter(({ line }) => line?.t?.length);
  const add = (kind, title, unit, lines, stepped = false) => lines.length && specs.push({ kind, title, unit, lines, stepped });
  const rates = ofFlows("throughput"), fast = rates.some(({ line }) => line.v.some((value) => value > 2e6));
  add("throughput", fast ? "Throughput (Mbit/s)" : "Throughput (kbit/s)", fast ? 1e-6 : 1e-3, rates);
  add("cwnd", "Congestion window (segments)", 1, ofFlows("cwnd"), true);
  add("rtt", "Round-trip time, and RTO as a thin line (ms)", 1, [...ofFlows("rtt"), ...ofFlows("rto").map((one) => ({ ...one, thin: true }))]);
  const seconds = Array.from({ length: air.bins }, (_, at) => (begin + ((at + 0.5) * (end - begin)) / air.bins) / 1e9);
  const part = (end - begin) / 1e9 / air.bins, isShort = part < MIN_RATE_S;
  const perSecond = isShort ? 1 : 1 / part, of = isShort ? `frames in each ${+(1e3 * part).toPrecision(2)} ms` : "frames per second";
  const lost = LOST.filter((fate) => air.fates[fate]?.some(Boolean));
  add("lost", `Lost frames (${of})`, perSecond, lost.map((fate) => ({ name: fate, line: { t: seconds, v: air.fates[fate] }, tone: fate, dash: [] })));
  add("drops", `Dropped packets (${of.replace("frames", "packets")})`, perSecond, Object.entries(air.drops).filter(([, v]) => v.some(Boolean)).map(([reason, v], at) => ({ name: reason, line: { t: seconds, v }, ...lookOf(at) })));
  const lines = { median: ["p50_us", 1], "99 %": ["p99_us", 0], largest: ["max_us", 3] };
  if (late.t.length) add("lateness", "Lateness of the host (ms)", 1e-3, Object.entries(lines).map(([name, [column, at]]) => ({ name, line: { t: late.t, v: late[column] }, ...lookOf(at) })), true);
  if (late.t.length) Object.assign(specs.at(-1), { verdicts: late, before: !state.live }); // a row of lateness.csv is the second before it
  reset();
  shown = key;
  const marks = { standby: series.flatMap((one) => one.standby ?? []), retransmissions: series.flatMap((one) => one.retransmissions ?? []), routes: series.flatMap((one) => one.routes ?? []) };
  showChoices(specs);
  const shownOnes = specs.filter(({ kind }) => !chosen.off.has(kind));
  along = lanes.windowNow().map((t) => (t - zero()) / 1e9);
  charts = shownOnes.map((one) => chart(one, figureOf(one), marks));
  queueMicrotask(keepHeight); // behind uPlot's own, which gives the charts their size
  valued = 0;
  showValues();
}

// A box for each chart that this run has.
function showChoices(specs) {
  const names = specs.map(({ kind }) => kind).join();
  if (choices.dataset.names === names) return;
  choices.dataset.names = names;
  choices.replaceChildren(...specs.map(({ kind }) => {
    const box = element("input", { type: "checkbox", checked: chosen.off.has(kind) ? null : "", "data-chart": kind });
    box.addEventListener("change", () => choose("off", kind));
    return element("label", {}, box, ` ${KINDS[kind]}`);
  }));
}

// Switch a chart, or its size, and remember it.
function choose(what, kind) {
  const set = chosen[what];
  if (!set.delete(kind)) set.add(kind);
  try {
    localStorage.setItem(KEY, JSON.stringify({ off: [...chosen.off], large: [...chosen.large] }));
  } catch {
    // forbidden: it holds until the page closes
  }
  kept = { width: 0, height: 0 };
  shown = "";
  update();
}

function heightOfChart(kind) {
  return (chosen.large.has(kind) ? LARGE : HEIGHT) * scaleOfText();
}

// As high as it ever was at this width: a chart that comes and goes must not move the map.
function keepHeight() {
  if (Math.abs(kept.width - place.clientWidth) > BAR_PX) kept = { width: place.clientWidth, height: 0 };
  if (!kept.height) place.style.minHeight = "";
  kept.height = Math.max(kept.height, place.offsetHeight);
  place.style.minHeight = `${kept.height}px`;
}

// For tests: of each chart its title, the numbers on its axis and whether now is within it.
export function drawn() {
  return charts.map(({ plot, figure, ticks, times }) => ({ title: figure.querySelector("strong").textContent, ticks: ticks.length, times, axis: [plot.scales.x.min, plot.scales.x.max], left: plot.bbox.left / devicePixelRatio, right: (plot.bbox.left + plot.bbox.width) / devicePixelRatio, hasNow: plot.scales.x.min <= (state.now - zero()) / 1e9 && (state.now - zero()) / 1e9 <= plot.scales.x.max }));
}

// A title, and for each line a sample of it with its name and its value now; a flow's RTO stands behind its RTT.
function figureOf({ kind, title, lines, verdicts }) {
  const keys = new Map(), outputs = lines.map(() => element("output", { "aria-live": "off" }));
  lines.forEach(({ name, tone, dash, thin }, at) => {
    if (thin) keys.get(name)?.append(" / ", outputs[at]); else keys.set(name, element("span", { class: "key" }, sampleOf({ tone, dash }), ` ${name} `, outputs[at]));
  });
  if (verdicts) outputs.push(element("output", { "aria-live": "off" }));
  const size = element("button", { type: "button", "aria-pressed": chosen.large.has(kind), "aria-label": `Enlarge: ${KINDS[kind]}`, onclick: () => choose("large", kind) }, chosen.large.has(kind) ? "Smaller" : "Larger");
  const figure = element("figure", { "data-chart": kind }, element("figcaption", {}, element("strong", {}, title), ...keys.values(), verdicts ? element("span", { class: "key" }, "verdict so far ", outputs.at(-1)) : null, element("span", { class: "spring" }), size));
  place.append(figure);
  return { figure, outputs };
}

// The line of a flow as it is drawn on the map and in the charts.
export function sampleOf({ tone, dash }) {
  const [sample, pen] = sampleCanvas(22, 6);
  pen.strokeStyle = colour(tone);
  pen.lineWidth = 2.5;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(0, 3);
  pen.lineTo(22, 3);
  pen.stroke();
  return sample;
}

// What the lines are now, as text: a line's last value before now.
function showValues() {
  if (performance.now() - valued < VALUES_EVERY_MS && (state.playing || state.live)) return;
  valued = performance.now();
  const t = state.now / 1e9;
  for (const { outputs, lines, unit, verdicts, before } of charts) {
    lines.forEach(({ line }, at) => say(outputs[at], number(valueAt(line.t, line.v, t, before), unit)));
    if (verdicts) say(outputs[lines.length], valueAt(verdicts.t, verdicts.verdict, t) ?? verdicts.verdict[0]);
  }
}

function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function number(value, unit) {
  return value === null || value === undefined ? "-" : String(+(value * unit).toPrecision(3));
}

// The value at the last time up to t; with `before` at the first time from t on.
function valueAt(times, values, t, before = false) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before ? times[middle] < t : times[middle] <= t) low = middle + 1; else high = middle;
  }
  return (before ? values[low] : values[low - 1]) ?? null;
}

function chart({ kind, unit, lines, stepped, verdicts, before }, { figure, outputs }, marks) {
  const { data, series } = joined(lines, unit, stepped, before ? -1 : 1);
  const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 0.5 }, ticks: { stroke: colour("line") }, font: `${11 * scaleOfText()}px system-ui, sans-serif` };
  const ticks = []; // a scale needs two; half of the default distance gives them in every range
  const numbers = (_plot, values) => (ticks.splice(0, ticks.length, ...values), values.map(short)), times = [];
  const instants = (_plot, values) => times.splice(0, times.length, ...instantsOf(values)) && times;
  const plot = new uPlot({
    width: Math.max(200, scroller.clientWidth), height: heightOfChart(kind), padding: [6, 0, 0, 0], series: [{}, ...series], scales: { x: { time: false, range: () => along }, y: { range: heightOf(data) } },
    axes: [{ ...axis, size: 18 * scaleOfText(), gap: 3, space: 62 * scaleOfText(), ticks: { show: false }, values: instants }, { ...axis, size: lanes.LEFT, space: 16 * scaleOfText(), values: numbers }], cursor: { drag: { x: false, y: false }, points: { show: false } },
    hooks: { drawClear: [(one) => verdicts && drawVerdicts(one, verdicts)], draw: [(one) => drawMarks(one, marks)] },
  }, data, figure);
  plot.over.addEventListener("click", (event) => goTo(plot.posToVal(event.offsetX, "x") * 1e9 + zero()));
  return { kind, plot, ticks, times, figure, outputs, lines, unit, verdicts, before };
}

// From 0 to the largest. uPlot fits what lies within the window; a line that only crosses it has its points outside.
function heightOf([, ...columns]) {
  const values = columns.flat().filter((value) => value !== null && value !== undefined);
  return [0, 1.1 * values.reduce((a, b) => Math.max(a, b), 0) || 1];
}

// All lines over all their times; a line is drawn across the times of others.
function joined(lines, unit, stepped, align) {
  const tables = lines.map(({ line }) => [line.t.map((t) => t - zero() / 1e9), line.v.map((v) => (v === null ? null : v * unit))]);
  const data = uPlot.join(tables);
  const series = lines.map(({ name, tone, dash, thin }) => ({
    label: name, stroke: colour(tone), width: thin ? 0.8 : 1.8, spanGaps: true, points: { show: false },
    dash, paths: stepped || thin ? uPlot.paths.stepped({ align }) : undefined,
  }));
  return { data, series };
}

// With as many digits as the step between them needs: no two are the same text.
function instantsOf(values) {
  const step = values.length > 1 ? values[1] - values[0] : 1;
  let digits = 0;
  const rest = (scaled) => Math.abs(scaled - Math.round(scaled)) / scaled;
  while (digits < 9 && rest(step * 10 ** digits) > 1e-3) digits += 1;
  return values.map((value) => value.toFixed(digits));
}

function short(value) {
  return Math.abs(value) >= 1e6 ? `${value / 1e6}M` : Math.abs(value) >= 1e4 ? `${value / 1e3}k` : String(+value.toPrecision(6));
}

// The seconds after which the run was no longer valid, shaded; void ones twice as dark.
function drawVerdicts(plot, { t, verdict }) {
  const { ctx } = plot, { left, top, width, height } = plot.bbox;
  ctx.save();
  ctx.fillStyle = colour("bad");
  for (let at = 0; at < t.length; at += 1) {
    const alpha = { suspect: 0.15, void: 0.3 }[verdict[at]];
    if (!alpha) continue;
    const place = (seconds) => Math.min(left + width, Math.max(left, plot.valToPos(seconds - zero() / 1e9, "x", true)));
    ctx.globalAlpha = alpha;
    ctx.fillRect(place(t[at - 1] ?? t[at] - 1), top, place(t[at]) - place(t[at - 1] ?? t[at] - 1), height);
  }
  ctx.restore();
}

function drawMarks(plot, marks) {
  const { ctx } = plot, { left, top, width, height } = plot.bbox;
  const x = (ns) => plot.valToPos((ns - zero()) / 1e9, "x", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.setLineDash([]);
  ctx.globalAlpha = 0.18;
  ctx.fillStyle = colour("hidden");
  for (const [begin, end] of marks.standby) ctx.fillRect(x(begin * 1e9), top, x((end ?? begin + 1e6) * 1e9) - x(begin * 1e9), height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colour("collision");
  ctx.lineWidth = 1;
  for (const t of marks.retransmissions) tick(ctx, x(t * 1e9), top + height - 8, top + height);
  ctx.strokeStyle = colour("nav");
  for (const t of marks.routes) tick(ctx, x(t * 1e9), top, top + 10);
  ctx.strokeStyle = colour("accent");
  ctx.lineWidth = 2;
  tick(ctx, x(state.now), top, top + height);
  ctx.restore();
}

function tick(ctx, x, y0, y1) {
  ctx.beginPath();
  ctx.moveTo(x, y0);
  ctx.lineTo(x, y1);
  ctx.stroke();
}

export function resize() {
  for (const { plot, kind } of charts) plot.setSize({ width: Math.max(200, scroller.clientWidth), height: heightOfChart(kind) });
}
