// One lane for each station: its frames in the window around now, down to single slots; density where there are too many.

import { change, firstAt, goTo, state, windowOf } from "./state.js";
import { BROADCAST, colour, FRAMES, kindOf, mark } from "./words.js";

const canvas = document.getElementById("lanes");
const pen = canvas.getContext("2d");
const LEFT = 58, TOP = 4, AXIS = 18;
let boxes = []; // drawn frames, for clicks: [x0, x1, y0, y1, row]

export function windowNow() {
  const first = Number(state.about.begin_ns), last = Math.max(Number(state.about.end_ns), first + state.span);
  const begin = Math.min(Math.max(state.now - state.span / 2, first), last - state.span);
  return [begin, begin + state.span];
}

export function draw() {
  if (!state.about?.stations) return;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const [begin, end] = windowNow(), perNs = (width - LEFT) / (end - begin);
  const names = state.about.stations.map((station) => station.name), lane = (height - TOP - AXIS) / names.length;
  drawAxis(begin, end, perNs, width, height);
  pen.font = `${Math.min(12, Math.max(8, lane - 1))}px system-ui, "DejaVu Sans", sans-serif`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  const every = Math.ceil(9 / lane);
  names.forEach((name, number) => {
    const y = TOP + number * lane;
    pen.fillStyle = colour("line");
    pen.fillRect(LEFT, y + lane - 0.5, width - LEFT, 0.5);
    pen.fillStyle = name === state.station ? colour("accent") : colour("quiet");
    if (number % every === 0) pen.fillText(name, 4, y + lane / 2);
  });
  const frames = windowOf(begin, end);
  boxes = [];
  if (frames) drawFrames(frames, begin, end, perNs, lane);
  pen.strokeStyle = colour("accent");
  pen.lineWidth = 1.5;
  const x = LEFT + (state.now - begin) * perNs;
  pen.beginPath();
  pen.moveTo(x, 0);
  pen.lineTo(x, height - AXIS);
  pen.stroke();
}

function drawFrames(frames, begin, end, perNs, lane) {
  for (let at = firstAt(frames, begin - 2e7); at < frames.count && frames.t[at] < end; at += 1) {
    if (frames.end[at] < begin) continue;
    const kind = kindOf(frames, at), x = Math.max(LEFT, LEFT + (frames.t[at] - begin) * perNs);
    const width = Math.max(1, LEFT + (frames.end[at] - begin) * perNs - x), y = TOP + frames.station[at] * lane + 1;
    const tone = colour(kind === "unfinished" ? "weak" : kind), tall = Math.max(2, lane - 3);
    pen.fillStyle = tone;
    pen.globalAlpha = kind === "delivered" || kind === "broadcast" ? 0.75 : 1;
    pen.fillRect(x, y, width, tall);
    pen.globalAlpha = 1;
    if (frames.row[at] === state.row) {
      pen.strokeStyle = colour("ink");
      pen.lineWidth = 2;
      pen.strokeRect(x, y, width, tall);
    }
    if (width > 26 && tall > 9) {
      pen.fillStyle = colour("panel");
      const to = frames.peer[at] === BROADCAST ? "" : `→${state.about.stations[frames.peer[at]]?.name ?? "?"}`;
      pen.fillText(width > 80 ? `${FRAMES[frames.frame[at]]} ${to}` : FRAMES[frames.frame[at]], x + 3, y + tall / 2 + 1);
    }
    if (width > 12 && tall > 7 && kind !== "delivered" && kind !== "broadcast") {
      pen.strokeStyle = pen.fillStyle = colour("panel");
      mark(pen, kind, x + width - 7, y + tall / 2, 3);
    }
    boxes.push([x, x + width, y, y + tall, frames.row[at]]);
  }
}

function drawAxis(begin, end, perNs, width, height) {
  const zero = state.about.traffic_ns ? Number(state.about.traffic_ns) : 0;
  const wanted = 110 / perNs, power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= wanted);
  pen.fillStyle = colour("quiet");
  pen.strokeStyle = colour("line");
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  const digits = Math.max(0, Math.ceil(9 - Math.log10(step)));
  for (let t = Math.ceil((begin - zero) / step) * step; t <= end - zero; t += step) {
    const x = LEFT + (t + zero - begin) * perNs;
    pen.beginPath();
    pen.moveTo(x, TOP);
    pen.lineTo(x, height - AXIS);
    pen.stroke();
    pen.fillText(`${(t / 1e9).toFixed(Math.min(9, digits))} s`, x, height - 5);
  }
}

const SPANS = [1e6, 5e6, 2e7, 1e8, 5e8, 2e9, 1e10, 6e10, 3e11];
export function zoom(direction) {
  const whole = Number(state.about.end_ns) - Number(state.about.begin_ns);
  const choices = [...SPANS.filter((span) => span < whole), whole];
  let place = choices.findIndex((span) => span >= state.span);
  if (place < 0) place = choices.length - 1;
  change({ span: choices[Math.min(Math.max(place + direction, 0), choices.length - 1)] });
}

export function spans(whole) {
  return [...SPANS.filter((span) => span < whole), whole];
}

export function listen(onFrame) {
  let dragging = null;
  canvas.addEventListener("pointerdown", (event) => {
    dragging = { x: event.offsetX, now: state.now, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragging) return;
    dragging.moved ||= Math.abs(event.offsetX - dragging.x) > 4;
    if (dragging.moved && !state.live) goTo(dragging.now - ((event.offsetX - dragging.x) * state.span) / (canvas.clientWidth - LEFT));
  });
  canvas.addEventListener("pointerup", (event) => {
    const was = dragging;
    dragging = null;
    if (!was || was.moved) return;
    const hit = boxes.find(([x0, x1, y0, y1]) => event.offsetX >= x0 - 2 && event.offsetX <= x1 + 2 && event.offsetY >= y0 && event.offsetY <= y1);
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
