// The map: ranges, links, routes, stations, and the frames on the air about now.

import { act } from "./api.js";
import { isAsked } from "./menu.js";
import { calm } from "./settings.js";
import { brokenLinks, change, conditionOf, firstAt, isOff, linkName, notice, placeOf, placeOfFlow, speak, state, windowOf } from "./state.js";
import { BROADCAST, colour, drawIcon, HOST, kindOf, lookOf, mark, scaleOfMap, scaleOfText, sized, UNKNOWN } from "./words.js";

const canvas = document.getElementById("map");
const pen = canvas.getContext("2d");
const MAX_SHRUNK = 3; // ranges may shrink the stations to a third when all is shown; larger ones are cut
const MAX_RINGED = 6, WIRE = 42; // stations, whose ranges are all drawn; length of a wire, px
const SHOWN_MS = 90; // a frame stays visible for this time of the page, or it could not be seen at 1x
let view = null; // centre in m and pixels per m
let middle = [0, 0]; // of the canvas, px, as of the last picture: asking the element again would lay out the page again
let drag = null;
let hovered = null; // its name is written first
let labels = []; // boxes of the names that were written: [x0, y0, x1, y1, name]

export function fit() {
  view = null;
  change({});
}

// As fit, if the whole map is shown: what is on it has changed.
export function fitAgain() {
  if (view?.fits) fit(); else change({});
}

// Least and greatest x and y of what the map shows, with `ranges` also of the ranges that are drawn.
function bounds(ranges) {
  const xs = [], ys = [];
  for (const { name } of state.about.stations) {
    for (const [, x, y] of state.movement.stations[name] ?? []) xs.push(x), ys.push(y);
    const [x, y] = placeOf(name, state.now);
    xs.push(x), ys.push(y);
  }
  for (const { at } of state.about.jammers ?? []) if (at) xs.push(at[0]), ys.push(at[1]);
  if (state.about.area) xs.push(0, state.about.area[0]), ys.push(0, state.about.area[1]);
  for (const [x0, y0, x1, y1] of state.about.walls ?? []) xs.push(x0, x1), ys.push(y0, y1);
  const far = Math.max(state.about.range_m ?? 0, state.about.sense_m ?? 0);
  for (const name of ranges ? ringed() : []) {
    const [x, y] = placeOf(name, state.now);
    xs.push(x - far, x + far), ys.push(y - far, y + far);
  }
  return [xs, ys].map((values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]));
}

// The whole map, again when the canvas changes its size, until somebody pans or zooms.
function scale(width, height) {
  if (view && (!view.fits || view.fits === `${width}x${height}`)) return;
  const scaleOf = ([[x0, x1], [y0, y1]]) => Math.min((width - 90) / Math.max(x1 - x0, 50), (height - 80) / Math.max(y1 - y0, 50));
  const [bare, whole] = [bounds(false), bounds(true)];
  const least = scaleOf(bare) / MAX_SHRUNK, [[x0, x1], [y0, y1]] = scaleOf(whole) < least ? bare : whole;
  const perMetre = Math.max(scaleOf(whole), least);
  view = { x: (x0 + x1) / 2, y: (y0 + y1) / 2, perMetre, fits: `${width}x${height}` };
}

// What a link says of the view: centre and shown width in m; null while the whole map is shown.
export function shown() {
  return view && !view.fits ? [view.x, view.y, canvas.clientWidth / view.perMetre] : null;
}

export function drawn() {
  return view !== null;
}

export function widthOfMap() {
  return canvas.clientWidth / view.perMetre;
}

export function show([x, y, width]) {
  view = { x, y, perMetre: Math.max(1, canvas.clientWidth) / width, fits: null };
}

export function namesWritten() {
  return labels;
}

export function toScreen([x, y]) {
  return [middle[0] + (x - view.x) * view.perMetre, middle[1] - (y - view.y) * view.perMetre];
}

function toMetres(sx, sy) {
  return [view.x + (sx - middle[0]) / view.perMetre, view.y - (sy - middle[1]) / view.perMetre];
}

function checked(id) {
  return document.getElementById(id).checked;
}

export function draw() {
  if (!state.about || !state.movement) return;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width || !height) return;
  sized(canvas, pen, width, height);
  middle = [width / 2, height / 2];
  scale(width, height);
  const names = state.about.stations.map((station) => station.name);
  const places = new Map(names.map((name) => [name, placeOf(name, state.now)]));
  drawArea();
  drawWalls();
  if (checked("show-trails")) drawTrails(names);
  drawRanges(places);
  if (checked("show-links")) drawLinks(names, places);
  if (checked("show-routes")) drawRoutes(places);
  drawFrames(names, places);
  drawLobes(places);
  drawHosts(places);
  drawStations(names, places);
  drawJammers(places);
  drawScale(width, height);
}

function drawArea() {
  if (!state.about.area) return;
  const [x0, y0] = toScreen([0, 0]), [x1, y1] = toScreen(state.about.area);
  pen.strokeStyle = colour("line");
  pen.setLineDash([]);
  pen.strokeRect(x0, y1, x1 - x0, y0 - y1);
}

function drawWalls() {
  pen.strokeStyle = colour("quiet");
  pen.lineWidth = 4;
  pen.beginPath();
  for (const [x0, y0, x1, y1] of state.about.walls ?? []) {
    pen.moveTo(...toScreen([x0, y0]));
    pen.lineTo(...toScreen([x1, y1]));
  }
  pen.stroke();
  pen.lineWidth = 1;
}

function drawTrails(names) {
  pen.strokeStyle = colour("quiet");
  pen.globalAlpha = 0.6;
  pen.lineWidth = 1.5;
  for (const name of names) {
    pen.beginPath();
    for (let step = 0; step <= 40; step += 1) {
      const [x, y] = toScreen(placeOf(name, Math.max(0, state.now - ((40 - step) * 20e9) / 40)));
      if (step) pen.lineTo(x, y); else pen.moveTo(x, y);
    }
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

// The stations whose ranges are drawn.
function ringed() {
  if (!checked("show-ranges")) return [];
  return state.station ? [state.station] : state.about.stations.length <= MAX_RINGED ? state.about.stations.map(({ name }) => name) : [];
}

function drawRanges(places) {
  for (const name of ringed()) {
    const [x, y] = toScreen(places.get(name) ?? [0, 0]);
    for (const [metres, dash] of [[state.about.range_m, []], [state.about.sense_m, [5, 5]]]) {
      if (!metres) continue;
      pen.beginPath();
      pen.setLineDash(dash);
      pen.lineWidth = 1;
      pen.globalAlpha = name === state.station ? 0.9 : 0.35;
      pen.strokeStyle = colour("accent");
      pen.arc(x, y, metres * view.perMetre, 0, 7);
      pen.stroke();
    }
  }
  pen.globalAlpha = 1;
  pen.setLineDash([]);
}

function drawLinks(names, places) {
  const range = state.about.range_m;
  if (!range) return;
  const severed = brokenLinks(), crosses = [];
  pen.strokeStyle = colour("line");
  pen.lineWidth = 1;
  pen.beginPath();
  for (let a = 0; a < names.length; a += 1) {
    for (let b = a + 1; b < names.length; b += 1) {
      const here = places.get(names[a]), there = places.get(names[b]);
      if (Math.hypot(here[0] - there[0], here[1] - there[1]) > range) continue;
      if (isOff(names[a], state.now) || isOff(names[b], state.now)) continue;
      if (severed.has(linkName(names[a], names[b]))) {
        crosses.push([toScreen(here), toScreen(there)]);
        continue;
      }
      pen.moveTo(...toScreen(here));
      pen.lineTo(...toScreen(there));
    }
  }
  pen.stroke();
  for (const ends of crosses) brokenLine(pen, ...ends);
}

// A dotted line with a cross in its middle: in range, but no frame comes through.
export function brokenLine(ink, [x, y], [u, v]) {
  ink.strokeStyle = colour("bad");
  ink.lineWidth = 1.5;
  ink.setLineDash([1.5, 4]);
  ink.beginPath();
  ink.moveTo(x, y);
  ink.lineTo(u, v);
  ink.stroke();
  ink.setLineDash([]);
  mark(ink, "collision", (x + u) / 2, (y + v) / 2, 4);
}

function drawRoutes(places) {
  const paths = state.paths.filter((path) => state.flows.has(path.flow));
  paths.forEach((path, number) => {
    const points = path.nodes.filter((name) => places.has(name)).map((name) => toScreen(places.get(name)));
    if (points.length < 2) return;
    const look = lookOf(placeOfFlow(path.flow)), aside = (number - (paths.length - 1) / 2) * 6; // side by side where they share a link
    pen.strokeStyle = colour(look.tone);
    pen.globalAlpha = 0.7;
    pen.lineWidth = 4;
    pen.setLineDash(look.dash);
    pen.beginPath();
    for (let at = 1; at < points.length; at += 1) {
      const [[x, y], [u, v]] = [points[at - 1], points[at]], length = Math.hypot(u - x, v - y) || 1;
      const forward = path.nodes[at - 1] < path.nodes[at] ? 1 : -1; // the same side for both directions
      const [dx, dy] = [((v - y) / length) * aside * forward, ((x - u) / length) * aside * forward];
      pen.moveTo(x + dx, y + dy);
      pen.lineTo(u + dx, v + dy);
    }
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  });
}

// How far back frames are shown, in ns: exact when the time stands still.
function lookBack() {
  if (state.live) return SHOWN_MS * 1e6 * 2;
  return state.playing ? SHOWN_MS * 1e6 * state.speed : 0;
}

export function framesNow() {
  const back = lookBack();
  const frames = windowOf(state.now - Math.max(state.span / 2, back), state.now + state.span / 2);
  if (!frames) return [];
  const visible = [];
  for (let at = firstAt(frames, state.now - back - 2e7); at < frames.count && frames.t[at] <= state.now; at += 1) {
    if (frames.end[at] >= state.now - back) visible.push([frames, at]);
  }
  return visible;
}

function drawFrames(names, places) {
  const back = lookBack();
  for (const [frames, at] of framesNow()) {
    const kind = kindOf(frames, at), from = places.get(names[frames.station[at]]);
    const tone = colour(kind === "unfinished" ? "weak" : kind), age = Math.max(0, state.now - frames.end[at]);
    pen.globalAlpha = back && !calm() ? Math.max(0.15, 1 - age / back) : 1;
    pen.strokeStyle = tone;
    pen.fillStyle = tone;
    pen.lineWidth = frames.row[at] === state.row ? 5 : frames.frame[at] === 2 ? 3 : 1.8;
    pen.setLineDash(frames.attempt[at] > 1 ? [6, 4] : []);
    const [x, y] = toScreen(from);
    if (frames.peer[at] === BROADCAST || frames.peer[at] === UNKNOWN) {
      const shown = calm() ? 1 : Math.min(1, (state.now - frames.t[at]) / Math.max(1, frames.air[at]));
      pen.beginPath();
      pen.arc(x, y, 12 + 14 * shown, 0, 7);
      pen.stroke();
    } else {
      const [u, v] = toScreen(places.get(names[frames.peer[at]]));
      const length = Math.hypot(u - x, v - y) || 1, bend = Math.min(18, length / 8);
      const [mx, my] = [(x + u) / 2 + ((y - v) / length) * bend, (y + v) / 2 + ((u - x) / length) * bend];
      pen.beginPath();
      pen.moveTo(x, y);
      pen.quadraticCurveTo(mx, my, u, v);
      pen.stroke();
      pen.setLineDash([]);
      const near = 14 / length, ex = u + (mx - u) * near * 2, ey = v + (my - v) * near * 2;
      mark(pen, kind, ex, ey, 5);
      if (frames.flags[at] & 1) {
        pen.beginPath();
        pen.arc(ex, ey, 9, 0, 7);
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    pen.setLineDash([]);
  }
}

// The radius of a station: smaller among many, larger where the text is.
function radius() {
  return (state.about.stations.length > 20 ? 4 : 7) * scaleOfText();
}

// What a station is beside a relay: a gateway to wired hosts, an access point.
export function rolesOf({ access_points: points, wires }) {
  return new Map([...(points ?? []).map((name) => [name, "access-point"]), ...(wires ?? []).map(([station]) => [station, "gateway"])]);
}

// Wired hosts have no place: each is below its first gateway.
function drawHosts(places) {
  const r = radius(), drawn = new Map();
  pen.font = `${12 * scaleOfText()}px system-ui, "DejaVu Sans", sans-serif`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.lineWidth = 1.5;
  for (const [station, host] of state.about.wires ?? []) {
    if (!places.has(station)) continue;
    const [x, y] = toScreen(places.get(station));
    if (!drawn.has(host)) drawn.set(host, [x, y + WIRE * scaleOfText()]);
    pen.strokeStyle = colour("quiet");
    pen.setLineDash([6, 2, 2, 2]);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(...drawn.get(host));
    pen.stroke();
  }
  pen.setLineDash([]);
  for (const [host, [x, y]] of drawn) {
    pen.fillStyle = colour("panel");
    pen.strokeStyle = colour("ink");
    drawIcon(pen, HOST, x, y, r);
    pen.fillStyle = colour("ink");
    pen.fillText(host, x + 2 * r, y);
  }
  pen.textBaseline = "alphabetic";
}

function drawStations(names, places) {
  const limit = state.about.queue_packets || 50, r = radius(), roles = rolesOf(state.about);
  for (const name of names) {
    const [x, y] = toScreen(places.get(name)), condition = conditionOf(name), off = condition === "off";
    pen.fillStyle = condition && condition !== "wire stalled" ? colour("panel") : colour("ink");
    pen.lineWidth = name === state.station ? r / 2 + 0.5 : 1.5;
    pen.strokeStyle = name === state.station ? colour("accent") : colour(condition ? "bad" : "ink");
    if (condition === "stalled" || !roles.has(name)) {
      pen.beginPath();
      if (condition === "stalled") pen.rect(x - r, y - r, 2 * r, 2 * r); else pen.arc(x, y, r, 0, 7);
      pen.fill();
      pen.stroke();
    } else drawIcon(pen, roles.get(name), x, y, r);
    pen.fillStyle = pen.strokeStyle = colour("bad");
    if (off) mark(pen, "collision", x, y, r / 2 + 0.5);
    if (condition === "stalled") pen.fillRect(x - 0.57 * r, y - r / 2, 0.43 * r, r), pen.fillRect(x + 0.14 * r, y - r / 2, 0.43 * r, r);
    drawQueue(x - r - 8, y + r + 2, state.queues[name]?.packets ?? 0, limit);
  }
  drawNames(names, places);
}

// A line from each station whose antenna has a main lobe, in its direction.
function drawLobes(places) {
  const r = radius();
  pen.strokeStyle = colour("ink");
  pen.lineWidth = 3;
  for (const { name, azimuth_deg: azimuth } of state.about.stations) {
    if (azimuth === undefined) continue;
    const [x, y] = toScreen(places.get(name)), angle = (azimuth * Math.PI) / 180;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + 2.6 * r * Math.cos(angle), y - 2.6 * r * Math.sin(angle));
    pen.stroke();
  }
}

// Triangles, filled while the jammer sends; one that follows a station is above it.
function drawJammers(places) {
  const r = radius();
  pen.strokeStyle = pen.fillStyle = colour("bad");
  pen.lineWidth = 2;
  pen.font = `${11 * scaleOfText()}px system-ui, "DejaVu Sans", sans-serif`;
  pen.textAlign = "center";
  for (const { name, at, follows } of state.about.jammers ?? []) {
    const [x, foot] = toScreen(follows ? places.get(follows) : at), y = foot - (follows ? 2.5 * r : 0);
    pen.beginPath();
    pen.moveTo(x, y - r);
    pen.lineTo(x + r, y + r);
    pen.lineTo(x - r, y + r);
    pen.closePath();
    pen.stroke();
    if (state.jamming.includes(name)) pen.fill();
    pen.fillText(name, x, y - r - 4);
  }
}

// A bar beside the station: full is a full queue. The scale is a square root, so that one packet is seen.
function drawQueue(x, foot, packets, limit) {
  if (!packets) return;
  const tall = 22, filled = Math.max(3, tall * Math.sqrt(Math.min(1, packets / limit)));
  pen.fillStyle = colour("panel");
  pen.fillRect(x - 3, foot - tall, 6, tall);
  pen.fillStyle = colour("ink");
  pen.fillRect(x - 3, foot - filled, 6, filled);
  pen.lineWidth = 1;
  pen.strokeStyle = colour("ink");
  pen.strokeRect(x - 3, foot - tall, 6, tall);
}

// Names below, above or beside their stations; where there is no room, the name is left to the list and to the pointer.
function drawNames(names, places) {
  const rank = (name) => (name === state.station ? 0 : name === hovered ? 1 : conditionOf(name) ? 2 : 3);
  const unit = scaleOfText(), r = radius(), tall = 7 * unit;
  pen.font = `${12 * unit}px system-ui, "DejaVu Sans", sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  labels = [];
  for (const name of [...names].sort((a, b) => rank(a) - rank(b))) {
    const [x, y] = toScreen(places.get(name)), condition = conditionOf(name), packets = state.queues[name]?.packets;
    const text = `${name}${packets ? ` ${packets}` : ""}${condition ? ` (${condition})` : ""}`, half = pen.measureText(text).width / 2 + 2;
    for (const [u, v] of [[x, y + r + 5 + tall], [x, y - r - 5 - tall], [x + half + r + 4, y], [x - half - r - 15, y]]) {
      const box = [u - half, v - tall, u + half, v + tall, name];
      const free = (other) => box[0] >= other[2] || box[2] <= other[0] || box[1] >= other[3] || box[3] <= other[1];
      if (rank(name) > 0 && !(labels.every(free) && names.every((other) => other === name || free(around(toScreen(places.get(other))))))) continue;
      labels.push(box);
      pen.lineWidth = 3;
      pen.strokeStyle = colour("panel");
      pen.strokeText(text, u, v);
      pen.fillStyle = colour("ink");
      pen.fillText(text, u, v);
      break;
    }
  }
  pen.textBaseline = "alphabetic";
}

function around([x, y]) {
  const r = radius() + 1;
  return [x - r, y - r, x + r, y + r];
}

function drawScale(width, height) {
  const { metres, text } = scaleOfMap(view.perMetre);
  pen.strokeStyle = colour("quiet");
  pen.fillStyle = colour("quiet");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(14, height - 14);
  pen.lineTo(14 + metres * view.perMetre, height - 14);
  pen.stroke();
  pen.textAlign = "left";
  pen.fillText(text, 14, height - 20);
}

// --- pointer and keys ---------------------------------------------------------------------------------------------------------

function stationAt(x, y) {
  let best = null, nearest = 18;
  for (const { name } of state.about.stations) {
    const [sx, sy] = toScreen(placeOf(name, state.now)), distance = Math.hypot(sx - x, sy - y);
    if (distance < nearest) best = name, nearest = distance;
  }
  return best;
}

// The frame whose line passes nearest to a point, within 12 pixels.
function frameAt(x, y) {
  let best = null, nearest = 12;
  const names = state.about.stations.map((station) => station.name);
  for (const [frames, at] of framesNow()) {
    const [ax, ay] = toScreen(placeOf(names[frames.station[at]], state.now));
    const to = frames.peer[at];
    if (to >= names.length) {
      const distance = Math.abs(Math.hypot(ax - x, ay - y) - 18);
      if (distance < nearest) best = frames.row[at], nearest = distance;
      continue;
    }
    const [bx, by] = toScreen(placeOf(names[to], state.now));
    const length = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
    const share = Math.min(1, Math.max(0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length));
    const distance = Math.hypot(ax + share * (bx - ax) - x, ay + share * (by - ay) - y);
    if (distance < nearest) best = frames.row[at], nearest = distance;
  }
  return best;
}

export function zoomBy(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  if (!view) return;
  view.fits = null;
  const [mx, my] = toMetres(x, y);
  view.perMetre = Math.min(Math.max(view.perMetre * factor, 1e-4), 500);
  const [nx, ny] = toMetres(x, y);
  view.x += mx - nx;
  view.y += my - ny;
  change({});
}

function hover(name) {
  if (name === hovered) return;
  hovered = name;
  change({});
}

// `onMenu(event, name)`: the menu of a station is asked for.
export function listen(onFrame, onMenu) {
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("contextmenu", (event) => {
    const name = state.about ? stationAt(event.offsetX, event.offsetY) ?? (event.button === 2 ? null : state.station) : null; // a key has no place
    if (name) onMenu(event, name);
  });
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button === 2) return; // the menu's
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    const name = stationAt(event.offsetX, event.offsetY);
    drag = { x: event.offsetX, y: event.offsetY, moved: false, station: state.about.control && state.live ? name : null };
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return void hover(stationAt(event.offsetX, event.offsetY));
    const [dx, dy] = [event.offsetX - before[0], event.offsetY - before[1]];
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const was = Math.hypot(before[0] - other[0], before[1] - other[1]), is = Math.hypot(event.offsetX - other[0], event.offsetY - other[1]);
      if (was > 0) zoomBy(is / was, (other[0] + event.offsetX) / 2, (other[1] + event.offsetY) / 2);
    } else if (drag) {
      drag.moved ||= Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) > 4;
      if (drag.station && drag.moved) {
        state.live.positions[drag.station] = toMetres(event.offsetX, event.offsetY);
        state.live.held = drag.station;
        change({});
      } else if (drag.moved) {
        view.fits = null;
        view.x -= dx / view.perMetre;
        view.y += dy / view.perMetre;
        change({});
      }
    }
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
  });
  const release = (event) => {
    pointers.delete(event.pointerId);
    if (!drag || event.type === "pointercancel") return void (drag = null);
    if (drag.station && drag.moved) {
      const name = drag.station, [x, y] = toMetres(event.offsetX, event.offsetY);
      act({ op: "move", station: name, position: [Math.max(0, x), Math.max(0, y)] })
        .then(() => {
          notice("");
          speak(`${name} moved to ${x.toFixed(0)}, ${y.toFixed(0)} m`);
        })
        .catch((problem) => notice(problem.message))
        .finally(() => (state.live.held = null));
    } else if (!drag.moved) {
      const name = stationAt(event.offsetX, event.offsetY), row = name ? null : frameAt(event.offsetX, event.offsetY);
      if (name) change({ station: name });
      else if (row !== null) onFrame(row);
      else change({ station: null });
    }
    drag = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (isAsked(event) && state.station) return void onMenu(event, state.station);
    const step = view ? 40 / view.perMetre : 0;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (moves[event.key] && view) view.fits = null, view.x += moves[event.key][0], view.y += moves[event.key][1], change({});
    else if (event.key === "+" || event.key === "=") zoomBy(1.25);
    else if (event.key === "-") zoomBy(0.8);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
