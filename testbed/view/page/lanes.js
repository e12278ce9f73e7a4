// One lane for each chosen station: its frames in the window around now, down to single slots, with backoff and reserved times.

import { KEPT_NS } from "./live.js";
import { reservations } from "./nav.js";
import { change, dropsIn, firstAt, goTo, placeOf, state, windowOf, zero } from "./state.js";
import { BROADCAST, colour, diamond, eventWords, fillOf, FRAMES, kindOf, mark, scaleOfText, seconds, sized } from "./words.js";

const canvas = document.getElementById("lanes"), scroller = document.getElementById("lanes-scroll"), chooser = document.getElementById("lanes-of");
const pen = canvas.getContext("2d");
export let LEFT = 58; // px, with the size of the text; the axes of the charts below begin there too
let AXIS = 18;
const TOP = 4, MIN_LANE = 13, GRIP = 18;
const FINE_NS = 5e7; // backoff and reserved times are drawn in windows up to this one
const NO_BACKOFF = 65535;
let events = []; // drawn events: [x, y, text]
let boxes = []; // drawn frames, for clicks: [x0, x1, y0, y1, row]

// The places of the stations that have a lane.
function chosen() {
  const every = state.about.stations.map((_, number) => number), name = ({ name }) => name;
  if (chooser.value === "routes") {
    const nodes = new Set(state.paths.filter((path) => state.flows.has(path.flow)).flatMap((path) => path.nodes));
    const members = every.filter((number) => nodes.has(name(state.about.stations[number])));
    return members.length ? members : every;
  }
  if (chooser.value === "near" && state.station !== null) {
    const [x, y] = placeOf(state.station, state.now), range = state.about.sense_m ?? state.about.range_m ?? Infinity;
    return every.filter((number) => {
      const [u, v] = placeOf(name(state.about.stations[number]), state.now);
      return Math.hypot(u - x, v - y) <= range;
    });
  }
  return every;
}

export function windowNow() {
  const first = Number(state.about.begin_ns), last = Math.max(Number(state.about.end_ns), first + state.span);
  const begin = Math.min(Math.max(state.now - state.span / 2, first), last - state.span);
  return [begin, begin + state.span];
}

export function draw() {
  if (!state.about?.stations) return;
  const shown = chosen(), width = scroller.clientWidth;
  if (!width) return;
  const unit = scaleOfText();
  [LEFT, AXIS] = [58 * unit, 18 * unit];
  const tall = Math.max(scroller.clientHeight, TOP + shown.length * MIN_LANE * unit + AXIS);
  if (canvas.clientHeight !== tall) canvas.style.height = `${tall}px`;
  const height = canvas.clientHeight;
  sized(canvas, pen, width, height);
  const [begin, end] = windowNow(), perNs = (width - LEFT) / (end - begin);
  const lane = (height - TOP - AXIS) / shown.length;
  const ticks = axisTicks(begin, end, perNs);
  drawGrid(ticks, height);
  pen.font = `${Math.min(12 * unit, Math.max(8, lane - 1))}px system-ui, "DejaVu Sans", sans-serif`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  shown.forEach((number, place) => {
    const y = TOP + place * lane, { name } = state.about.stations[number];
    pen.fillStyle = colour("line");
    pen.fillRect(LEFT, y + lane - 0.5, width - LEFT, 0.5);
    pen.fillStyle = name === state.station ? colour("accent") : colour("quiet");
    pen.fillText(name, 4, y + lane / 2, LEFT - 6);
  });
  const frames = windowOf(begin, end);
  boxes = [];
  if (frames) {
    const laneOf = new Map(shown.map((number, place) => [number, place]));
    if (end - begin <= FINE_NS) drawReserved(frames, begin, end, perNs, lane, laneOf);
    drawFrames(frames, begin, end, perNs, lane, laneOf);
    drawDrops(dropsIn(begin, end), begin, perNs, lane, laneOf);
  }
  pen.strokeStyle = colour("accent");
  pen.lineWidth = 1.5;
  const x = LEFT + (state.now - begin) * perNs;
  pen.beginPath();
  pen.moveTo(x, 0);
  pen.lineTo(x, height);
  pen.stroke();
  drawAxis(ticks, width);
  drawEvents(begin, end, perNs);
}

// A mark on the axis for each event of the run, with its words for the pointer. (All of them are listed under Run.)
function drawEvents(begin, end, perNs) {
  const foot = scroller.scrollTop + scroller.clientHeight - AXIS;
  events = [];
  pen.fillStyle = colour("ink");
  for (const event of state.about.events ?? []) {
    const t = Number(event.t_s) * 1e9;
    if (t < begin || t > end) continue;
    const x = LEFT + (t - begin) * perNs;
    diamond(pen, x, foot, 5);
    events.push([x, foot, `${seconds(t - zero(), 2)}: ${eventWords(event)}`]);
  }
}

// The words of the events at a point of the canvas.
function eventsAt(x, y) {
  return events.filter(([u, v]) => Math.abs(u - x) <= 6 && Math.abs(v - y) <= 7).map(([, , text]) => text).join("\n");
}

export function eventsDrawn() {
  return events;
}

// A line at the foot of a lane: exchanges of others that the station can decode.
function drawReserved(frames, begin, end, perNs, lane, laneOf) {
  pen.fillStyle = colour("nav");
  reservations(frames, begin, end).forEach((times, number) => {
    if (!laneOf.has(number)) return;
    for (const [from, until] of times) {
      const x = Math.max(LEFT, LEFT + (from - begin) * perNs);
      pen.fillRect(x, TOP + (laneOf.get(number) + 1) * lane - 3, Math.max(1, LEFT + (until - begin) * perNs - x), 2);
    }
  });
}

// The slots that were drawn before a frame, as an empty box in front of it. (They pass while the medium is idle: the box is their
// number, not their place.)
function drawBackoff(frames, at, x, y, tall, perNs) {
  const slots = frames.backoff[at], width = slots * (state.about.slot_us ?? 0) * 1e3 * perNs;
  if (slots === NO_BACKOFF || width < 3) return;
  const left = Math.max(LEFT, x - width);
  pen.strokeStyle = colour("quiet");
  pen.lineWidth = 1;
  pen.setLineDash([2, 2]);
  pen.strokeRect(left + 0.5, y + 0.5, x - left, tall - 1);
  pen.setLineDash([]);
  if (x - left < 16 || tall < 9) return;
  pen.fillStyle = colour("quiet");
  pen.fillText(x - left > 50 ? `${slots} slots` : String(slots), left + 3, y + tall / 2 + 1);
}

// A mark below the lane's frames. It is the first to be clicked.
function drawDrops(drops, begin, perNs, lane, laneOf) {
  const places = new Map(state.about.stations.map(({ name }, number) => [name, number]));
  for (const { row, t, station } of drops) {
    const place = laneOf.get(places.get(station));
    if (place === undefined) continue;
    const x = LEFT + (t - begin) * perNs, foot = TOP + (place + 1) * lane - 1;
    pen.fillStyle = colour("bad");
    pen.strokeStyle = row === state.row ? colour("ink") : colour("panel");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x - 4.5, foot - 6);
    pen.lineTo(x + 4.5, foot - 6);
    pen.lineTo(x, foot);
    pen.closePath();
    pen.fill();
    pen.stroke();
    boxes.unshift([x - 4, x + 4, foot - 7, foot, row]);
  }
}

export function boxesDrawn() {
  return boxes;
}

function drawFrames(frames, begin, end, perNs, lane, laneOf) {
  for (let at = firstAt(frames, begin - 2e7); at < frames.count && frames.t[at] < end; at += 1) {
    if (frames.end[at] < begin || !laneOf.has(frames.station[at])) continue;
    const kind = kindOf(frames, at), x = Math.max(LEFT, LEFT + (frames.t[at] - begin) * perNs);
    const width = Math.max(1, LEFT + (frames.end[at] - begin) * perNs - x), full = Math.max(2, lane - 3);
    // what was lost is as tall as the lane, so that one pixel tells it from what was not
    const share = { delivered: 0.72, broadcast: 0.45 }[kind] ?? 1, tall = full * share, y = TOP + laneOf.get(frames.station[at]) * lane + 1 + full - tall;
    if (end - begin <= FINE_NS && frames.t[at] > begin) drawBackoff(frames, at, x, y, tall, perNs);
    pen.fillStyle = width > 5 ? fillOf(pen, kind) : colour(kind === "unfinished" ? "weak" : kind);
    pen.fillRect(x, y, width, tall);
    if (frames.row[at] === state.row) {
      pen.strokeStyle = colour("ink");
      pen.lineWidth = 2;
      pen.strokeRect(x, y, width, tall);
    }
    if (width > 26 && tall > 9) {
      pen.fillStyle = colour(kind === "unfinished" ? "weak" : kind);
      pen.fillRect(x + 1, y + 1, Math.min(width - 14, width > 80 ? 76 : 30), tall - 2); // no pattern below the words
      pen.fillStyle = colour("panel");
      const to = frames.peer[at] === BROADCAST ? "" : `→${state.about.stations[frames.peer[at]]?.name ?? "?"}`;
      pen.fillText(width > 80 ? `${FRAMES[frames.frame[at]]} ${to}` : FRAMES[frames.frame[at]], x + 3, y + tall / 2 + 1);
    }
    if (width > 12 && tall > 7 && kind !== "delivered" && kind !== "broadcast") {
      pen.strokeStyle = pen.fillStyle = colour("panel");
      mark(pen, kind, x + width - 7, y + tall / 2, 3);
    }
    boxes.push([x, x + width, y + tall - full, y + tall, frames.row[at]]);
  }
}

function axisTicks(begin, end, perNs) {
  const start = zero();
  const target = (110 * scaleOfText()) / perNs, power = 10 ** Math.floor(Math.log10(target));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= target);
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(step)))), ticks = [];
  for (let t = Math.ceil((begin - start) / step) * step; t <= end - start; t += step) ticks.push([LEFT + (t + start - begin) * perNs, seconds(t, digits)]);
  return ticks;
}

function drawGrid(ticks, height) {
  pen.strokeStyle = colour("line");
  for (const [x] of ticks) {
    pen.beginPath();
    pen.moveTo(x, TOP);
    pen.lineTo(x, height - AXIS);
    pen.stroke();
  }
}

// At the foot of what can be seen, over the lanes below it.
function drawAxis(ticks, width) {
  const foot = scroller.scrollTop + scroller.clientHeight;
  pen.fillStyle = colour("panel");
  pen.fillRect(0, foot - AXIS, width, AXIS);
  pen.fillStyle = colour("quiet");
  pen.font = `${11 * scaleOfText()}px system-ui, "DejaVu Sans", sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  for (const [x, text] of ticks) {
    const half = pen.measureText(text).width / 2; // whole, also beside the grip that changes the height
    pen.fillText(text, Math.max(half, Math.min(x, width - GRIP - half)), foot - 5);
  }
}

const SPANS = [1e6, 5e6, 2e7, 1e8, 5e8, 2e9, 1e10, 6e10, 3e11];
export function zoom(direction) {
  const choices = spans();
  let place = choices.findIndex((span) => span >= state.span);
  if (place < 0) place = choices.length - 1;
  change({ span: choices[Math.min(Math.max(place + direction, 0), choices.length - 1)] });
}

// The windows to choose from: of a record up to the whole run, of a run under way up to the frames that are kept.
export function spans() {
  if (state.live) return SPANS.filter((span) => span <= KEPT_NS);
  const whole = Number(state.about.end_ns) - Number(state.about.begin_ns);
  return [...SPANS.filter((span) => span < whole), whole];
}

export function listen(onFrame) {
  let dragging = null;
  scroller.addEventListener("scroll", () => change({}));
  chooser.addEventListener("change", () => change({}));
  canvas.addEventListener("pointerdown", (event) => {
    dragging = { x: event.offsetX, now: state.now, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragging) return void (canvas.title = eventsAt(event.offsetX, event.offsetY));
    dragging.moved ||= Math.abs(event.offsetX - dragging.x) > 4;
    if (dragging.moved && !state.live) goTo(dragging.now - ((event.offsetX - dragging.x) * state.span) / (canvas.clientWidth - LEFT));
  });
  canvas.addEventListener("pointerup", (event) => {
    const was = dragging;
    dragging = null;
    if (!was || was.moved) return;
    const hit = boxes.find(([x0, x1, y0, y1]) => event.offsetX >= x0 - 1 && event.offsetX <= x1 + 1 && event.offsetY >= y0 && event.offsetY <= y1);
    if (hit) onFrame(hit[4]);
    else if (!state.live) goTo(windowNow()[0] + ((event.offsetX - LEFT) * state.span) / (canvas.clientWidth - LEFT));
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? -1 : 1);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(-1);
    else if (event.key === "-") zoom(1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
