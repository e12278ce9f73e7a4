// Flows and the air over one time axis, by uPlot: throughput, cwnd, RTT and RTO, lost frames and drops.

import { ask } from "./api.js";
import { airOf, historyWindow, seriesOf } from "./live.js";
import { goTo, notice, state, zero } from "./state.js";
import { colour, element } from "./words.js";
import uPlot from "./vendor/uPlot.esm.js";

const place = document.getElementById("charts");
const HEIGHT = 108, POINTS = 400, BINS = 240;
const COLOURS = ["accent", "collision", "delivered", "hidden"];
let charts = [], shown = "", busy = false, asked = null;

export function reset() {
  for (const chart of charts) chart.plot.destroy();
  charts = [];
  place.replaceChildren();
  shown = "";
}

// Charts follow the window; between windows only the line of now moves.
export async function update() {
  if (!state.about?.stations) return;
  if (state.live) return void updateLive();
  const [begin, end] = extent();
  const key = `${begin}/${end}/${[...state.flows].join()}/${document.documentElement.dataset.theme}/${state.segment}`;
  for (const chart of charts) chart.plot.redraw(false, false);
  if (key === shown) return;
  asked = key;
  if (busy) return;
  busy = true;
  try {
    const flows = state.about.flows.filter((flow) => state.flows.has(flow.name)).slice(0, 4);
    const series = await Promise.all(flows.map((flow) => ask("series", { flow: flow.name, from: begin, to: end, points: POINTS })));
    const air = await ask("overview", { from: begin, to: end, bins: BINS });
    draw(flows, series, air, begin, end, key);
  } catch (problem) {
    notice(problem.message);
    shown = key;
  } finally {
    busy = false;
    if (asked !== key) update();
  }
}

// Every two seconds of the run.
function updateLive() {
  const key = `live/${state.live.second >> 1}/${[...state.flows].join()}`;
  if (key === shown || !state.live.newest) return;
  shown = key;
  const flows = state.about.flows.filter((flow) => state.flows.has(flow.name)).slice(0, 4), [begin, end] = historyWindow();
  draw(flows, flows.map((flow) => seriesOf(flow.name)), airOf(begin, end), begin, end, key);
}

// The window, in steps of a quarter of it, so that playing does not ask at every picture; at least a tenth of a second.
function extent() {
  const whole = [Number(state.about.begin_ns), Number(state.about.end_ns)];
  const span = Math.max(state.span, 1e8);
  if (span >= whole[1] - whole[0]) return whole;
  const step = span / 4, middle = Math.round(state.now / step) * step;
  return [Math.max(whole[0], Math.floor(middle - span / 2)), Math.min(whole[1], Math.ceil(middle + span / 2))];
}

function draw(flows, series, air, begin, end, key) {
  const from = (begin - zero()) / 1e9, to = (end - zero()) / 1e9;
  const wanted = [];
  const ofFlows = (name) => flows.map((flow, at) => [flow.name, series[at]?.[name], at]).filter(([, line]) => line?.t?.length);
  const add = (title, unit, lines, stepped = false) => lines.length && wanted.push({ title, unit, lines, stepped });
  add("Throughput, kbit/s", 1e-3, ofFlows("throughput"));
  add("cwnd, segments", 1, ofFlows("cwnd"), true);
  add("RTT and RTO (dashed), ms", 1, [...ofFlows("rtt"), ...ofFlows("rto").map(([name, line, at]) => [`${name} RTO`, line, at, true])]);
  const seconds = Array.from({ length: air.bins }, (_, at) => (begin + ((at + 0.5) * (end - begin)) / air.bins) / 1e9);
  const perSecond = air.bins / ((end - begin) / 1e9);
  const lost = ["collision", "hidden", "weak", "error", "busy"].filter((fate) => air.fates[fate]?.some(Boolean));
  add("Lost frames, 1/s", perSecond, lost.map((fate) => [fate, { t: seconds, v: air.fates[fate] }, fate]));
  add("Drops, 1/s", perSecond, Object.entries(air.drops).map(([reason, v], at) => [reason, { t: seconds, v }, at]));
  reset();
  shown = key;
  const marks = { standby: series.flatMap((one) => one.standby ?? []), retransmissions: series.flatMap((one) => one.retransmissions ?? []), routes: series.flatMap((one) => one.routes ?? []) };
  const figures = wanted.map(figureOf); // all of them first: they share the width
  charts = wanted.map((one, at) => chart(one, figures[at], from, to, marks));
}

function figureOf({ title, lines }) {
  const names = lines.map(([name]) => name).filter((name) => !name.endsWith("RTO")).join(", ");
  const figure = element("figure", {}, element("figcaption", {}, `${title}: ${names}`));
  place.append(figure);
  return figure;
}

function chart({ unit, lines, stepped }, figure, from, to, marks) {
  const { data, series } = joined(lines, unit, stepped);
  const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 0.5 }, ticks: { stroke: colour("line") }, font: "11px system-ui, sans-serif" };
  const plot = new uPlot({
    width: Math.max(200, figure.clientWidth), height: HEIGHT, series: [{}, ...series], scales: { x: { time: false, range: [from, to] } },
    axes: [{ ...axis, size: 26 }, { ...axis, size: 48 }], cursor: { drag: { x: false, y: false }, points: { show: false } },
    hooks: { draw: [(one) => drawMarks(one, marks)] },
  }, data, figure);
  plot.over.addEventListener("click", (event) => goTo(plot.posToVal(event.offsetX, "x") * 1e9 + zero()));
  return { plot, figure };
}

// All lines over all their times; a line is drawn across the times of others.
function joined(lines, unit, stepped) {
  const tables = lines.map(([, line]) => [line.t.map((t) => t - zero() / 1e9), line.v.map((v) => (v === null ? null : v * unit))]);
  const data = uPlot.join(tables);
  const series = lines.map(([name, , tone, dashed]) => ({
    label: name, stroke: colour(typeof tone === "string" ? tone : COLOURS[tone % COLOURS.length]), width: 1.5, spanGaps: true, points: { show: false },
    dash: dashed ? [6, 4] : [], paths: stepped || dashed ? uPlot.paths.stepped({ align: 1 }) : undefined,
  }));
  return { data, series };
}

function drawMarks(plot, marks) {
  const { ctx } = plot, { left, top, width, height } = plot.bbox;
  const x = (ns) => plot.valToPos((ns - zero()) / 1e9, "x", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
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
  for (const { plot, figure } of charts) plot.setSize({ width: Math.max(200, figure.clientWidth), height: HEIGHT });
}
