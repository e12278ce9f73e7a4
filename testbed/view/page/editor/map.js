// The map of the editor: SVG, so that each station is an element with a name, a place and the focus.

import { hopsOf, HOST, iconOf, scaleOfMap, shape as make } from "../words.js";

const svg = document.getElementById("map");
const MAX_RANGES = 6; // with more stations only those of the selected one are drawn
const MAX_NAMED = 120; // with more stations names are drawn of the selected ones alone
const FLOWS = 6; // colours
let picture = null, background = null, view = null, chosen = [], act = {}, drag = null, focused = null, atNs = 0, size = [0, 0], seen = null, kept = [];

// `act`: { tool(), place(point, event), station(name, event), move(places), choose(names), copy(names), remove(names), drawn(from, to) }
export function setUp(actions) {
  act = actions;
  svg.addEventListener("pointerdown", down);
  svg.addEventListener("pointermove", moved);
  svg.addEventListener("pointerup", up);
  svg.addEventListener("pointercancel", () => ((drag = null), draw()));
  svg.addEventListener("wheel", wheel, { passive: false });
  svg.addEventListener("keydown", keys);
  document.getElementById("map-fit").addEventListener("click", fit);
  document.getElementById("map-in").addEventListener("click", () => zoom(1.4));
  document.getElementById("map-out").addEventListener("click", () => zoom(1 / 1.4));
  new ResizeObserver(() => draw()).observe(svg);
}

export function show(newPicture, newBackground) {
  const first = !picture?.stations?.length;
  [picture, background] = [newPicture ?? picture, newBackground];
  if (first && picture?.stations?.length > 1) view = null; // of a file that was opened; a map that is drawn on stays where it is
  chosen = chosen.filter((name) => places().has(name));
  draw();
}

export function choose(names) {
  chosen = names;
  draw();
}

export function selected() {
  return chosen;
}

// Show the places of a time of the traffic, ns.
export function goTo(ns) {
  atNs = ns;
  draw();
}

export function fit() {
  view = null;
  draw();
}

// Pixels in metres, to ten of them if that is not too coarse.
export function metresOf(pixels) {
  const metres = pixels / (view?.perMetre ?? 1);
  return metres > 20 ? Math.round(metres / 10) * 10 : Math.round(metres * 10) / 10;
}

// Bring a station to the middle.
export function centre(name) {
  const [x, y] = places().get(name);
  view = { ...view, x, y, fits: null };
  draw();
}

export function stations() {
  return (picture?.stations ?? []).map(({ name }) => name);
}

// Stations, and hosts behind gateways: what may be the end of a flow.
export function nodes() {
  return [...stations(), ...(picture?.hosts ?? [])];
}

export function places() {
  return new Map((picture?.stations ?? []).map(({ name, x, y }) => [name, placeAt(name, [x, y])]));
}

function placeAt(name, start) {
  if (drag?.places?.has(name)) return drag.places.get(name);
  if (!atNs) return start;
  const rows = picture.movement?.[name] ?? [], now = atNs + (picture.traffic_s ?? 0) * 1e9;
  let row = null;
  for (const one of rows) if (one[0] <= now) row = one; else break;
  return row ? [row[1] + (row[3] * (now - row[0])) / 1e9, row[2] + (row[4] * (now - row[0])) / 1e9] : start;
}

function bounds() {
  const xs = [], ys = [], at = places();
  for (const [x, y] of at.values()) xs.push(x), ys.push(y);
  if (picture?.area) xs.push(0, picture.area[0]), ys.push(0, picture.area[1]);
  for (const [x0, y0, x1, y1] of picture?.walls ?? []) xs.push(x0, x1), ys.push(y0, y1);
  if (background) xs.push(background.x, background.x + background.width), ys.push(background.y, background.y + background.height);
  if (!xs.length) return [0, 1000, 0, 600];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const room = Math.max(60, (Math.max(x1 - x0, y1 - y0) || 400) * 0.18);
  const far = Math.max(picture?.range_m ?? 0, picture?.sense_m ?? 0), rings = ringed().map((name) => at.get(name));
  const out = (axis, way, edge) => rings.reduce((most, place) => (way < 0 ? Math.min : Math.max)(most, place[axis] + way * far * 1.03), edge + way * room);
  return [out(0, -1, x0), out(0, 1, x1), out(1, -1, y0), out(1, 1, y1)];
}

// The stations whose ranges are drawn.
function ringed() {
  const names = stations();
  return names.length <= MAX_RANGES && !chosen.length ? names : chosen.slice(0, MAX_RANGES);
}

// The map's height follows the lines around it, which wrap. The ground stays where it is in the window meanwhile: a hand aims at it.
function settle() {
  size = [svg.clientWidth, svg.clientHeight];
  if (!size[0] || !size[1]) return;
  const { left, top } = svg.getBoundingClientRect(), last = seen;
  seen = { window: `${innerWidth} ${innerHeight}`, x: left + scrollX + size[0] / 2, y: top + scrollY + size[1] / 2 };
  if (last?.window === seen.window && view && !view.fits) {
    for (const one of [view, drag?.view]) if (one) (one.x += (seen.x - last.x) / one.perMetre), (one.y -= (seen.y - last.y) / one.perMetre);
  }
  if (view && (!view.fits || view.fits === size.join())) return;
  const [x0, x1, y0, y1] = bounds();
  view = { x: (x0 + x1) / 2, y: (y0 + y1) / 2, perMetre: Math.min(size[0] / (x1 - x0), size[1] / (y1 - y0)), fits: size.join() };
}

export function toScreen([x, y]) {
  return [size[0] / 2 + (x - view.x) * view.perMetre, size[1] / 2 - (y - view.y) * view.perMetre];
}

function toMetres(sx, sy) {
  const round = (value) => Math.round(value * 10) / 10, step = view.perMetre > 8 ? 1 : 10; // a pixel is a tenth of a metre, or a metre
  return [round(Math.round((view.x + (sx - size[0] / 2) / view.perMetre) * 10 / step) * step / 10), round(Math.round((view.y - (sy - size[1] / 2) / view.perMetre) * 10 / step) * step / 10)];
}

const path = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

function draw() {
  settle();
  if (!size[0] || !size[1]) return;
  const focus = document.activeElement?.closest?.("#map .station")?.dataset.name ?? null, at = places(), nodes = [];
  if (background?.url) {
    const [x, y] = toScreen([background.x, background.y + background.height]);
    nodes.push(make("image", { href: background.url, x, y, width: background.width * view.perMetre, height: background.height * view.perMetre, preserveAspectRatio: "none", opacity: 0.75 }));
  }
  if (picture?.area) {
    const [x0, y0] = toScreen([0, 0]), [x1, y1] = toScreen(picture.area);
    nodes.push(make("rect", { class: "area", x: x0, y: y1, width: x1 - x0, height: y0 - y1 }));
  }
  for (const name of ringed()) {
    const [cx, cy] = toScreen(at.get(name) ?? [0, 0]);
    for (const [metres, kind] of [[picture.range_m, "range"], [picture.sense_m, "sense"]]) if (metres) nodes.push(make("circle", { class: kind, cx, cy, r: metres * view.perMetre }));
  }
  const line = (kind, pairs) => pairs?.length && nodes.push(make("path", { class: kind, d: pairs.filter(([a, b]) => at.has(a) && at.has(b)).map(([a, b]) => path([toScreen(at.get(a)), toScreen(at.get(b))])).join("") }));
  if (!atNs) line("one-way", picture?.one_way), line("links", picture?.links);
  for (const [x0, y0, x1, y1] of picture?.walls ?? []) {
    const [a, b] = [toScreen([x0, y0]), toScreen([x1, y1])];
    nodes.push(make("line", { class: "wall", x1: a[0], y1: a[1], x2: b[0], y2: b[1] }));
  }
  for (const [name, rows] of Object.entries(picture?.movement ?? {})) {
    if (rows.length < 2 || (chosen.length ? !chosen.includes(name) : at.size > MAX_RANGES)) continue;
    nodes.push(make("path", { class: "trail", d: path(rows.slice(0, 400).map((row) => toScreen([row[1], row[2]]))) }));
  }
  drawHosts(nodes, at);
  drawFlows(nodes, at);
  for (const [name, place] of at) nodes.push(stationOf(name, place, at.size));
  if (drag?.from && drag.to) nodes.push(rubber());
  nodes.push(...scaleBar());
  if (!at.size) nodes.push(make("text", { class: "hint", x: size[0] / 2, y: size[1] / 2, "text-anchor": "middle" }, "No stations yet: Station places one by a click."));
  svg.replaceChildren(...nodes);
  if (focus) svg.querySelector(`[data-name="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
}

function stationOf(name, place, count) {
  const [x, y] = toScreen(place), pressed = chosen.includes(name), first = focused && places().has(focused) ? focused === name : picture.stations[0].name === name;
  const label = `${name}, ${place.map((value) => Number(value.toFixed(1))).join(", ")} m`;
  const isGateway = picture.wires?.some(([station]) => station === name);
  const node = make("g", { class: "station", role: "button", tabindex: first ? 0 : -1, "aria-pressed": pressed, "aria-label": isGateway ? `${label}, gateway` : label, "data-name": name }, iconOf(isGateway ? "gateway" : "station", x, y, 8));
  if (count <= MAX_NAMED || pressed) node.append(make("text", { x: x + 11, y: y - 9, "aria-hidden": "true" }, name));
  return node;
}

function drawHosts(nodes, at) {
  const seen = new Map();
  for (const [station, host] of picture?.wires ?? []) {
    if (!at.has(station)) continue;
    const [x, y] = toScreen(at.get(station));
    if (!seen.has(host)) seen.set(host, [x, y + 46]);
    const [hx, hy] = seen.get(host);
    nodes.push(make("line", { class: "wire", x1: x, y1: y, x2: hx, y2: hy }));
  }
  for (const [host, [x, y]] of seen) nodes.push(iconOf(HOST, x, y, 8), make("text", { x: x + 12, y: y + 4 }, host));
  hostPlaces = seen;
}
let hostPlaces = new Map();

function drawFlows(nodes, at) {
  (picture?.flows ?? []).forEach(({ source, target, hops, name }, place) => {
    const [a, b] = [source, target].map((end) => (at.has(end) ? toScreen(at.get(end)) : hostPlaces.get(end)));
    if (!a || !b) return;
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], length = Math.hypot(dx, dy) || 1, bow = Math.min(40, 14 + length / 12) + 7 * Math.floor(place / 2);
    const middle = [(a[0] + b[0]) / 2 - (dy / length) * bow, (a[1] + b[1]) / 2 + (dx / length) * bow];
    const tone = `var(--flow${(place % FLOWS) + 1})`, node = make("path", { class: `flow${hops === null ? " none" : ""}`, d: `M${a} Q${middle} ${b}` });
    node.style.stroke = tone;
    const angle = Math.atan2(b[1] - middle[1], b[0] - middle[0]), tip = [b[0] - Math.cos(angle) * 9, b[1] - Math.sin(angle) * 9];
    const head = make("path", { d: `M${tip} l${-9 * Math.cos(angle - 0.45)} ${-9 * Math.sin(angle - 0.45)} L${tip[0] - 9 * Math.cos(angle + 0.45)} ${tip[1] - 9 * Math.sin(angle + 0.45)} Z` });
    head.style.fill = tone;
    nodes.push(node, head, make("text", { x: (a[0] + b[0]) / 4 + middle[0] / 2 - (dy / length) * 13, y: (a[1] + b[1]) / 4 + middle[1] / 2 + (dx / length) * 13 + 4, "text-anchor": "middle" }, `${name}: ${hopsOf(hops)}`));
  });
}

function rubber() {
  const [a, b] = [toScreen(drag.from), toScreen(drag.to)];
  if (drag.kind === "rectangle" || ["random", "grid"].includes(act.tool())) return make("rect", { class: "rubber", x: Math.min(a[0], b[0]), y: Math.min(a[1], b[1]), width: Math.abs(a[0] - b[0]), height: Math.abs(a[1] - b[1]) });
  return make("line", { class: "rubber", x1: a[0], y1: a[1], x2: b[0], y2: b[1] });
}

function scaleBar() {
  const { metres, text } = scaleOfMap(view.perMetre);
  return [make("path", { class: "scale", d: `M14 ${size[1] - 18}v6h${metres * view.perMetre}v-6` }), make("text", { x: 18, y: size[1] - 20 }, text)];
}

// --- pointer --------------------------------------------------------------------------------------------------------------------

function pointOf(event) {
  settle();
  const box = svg.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function down(event) {
  if (event.button !== 0) return;
  const name = event.target.closest?.(".station")?.dataset.name ?? null, point = pointOf(event), tool = act.tool();
  svg.setPointerCapture(event.pointerId);
  view.fits = null; // from now on nothing moves below the pointer
  if (name && tool === "select") {
    const names = chosen.includes(name) ? chosen : event.shiftKey ? [...chosen, name] : [name];
    act.choose(names);
    drag = { kind: "stations", name, starts: new Map(names.map((one) => [one, places().get(one)])), places: null };
  } else if (name) drag = { kind: "station", name };
  else if (tool === "select" && event.shiftKey) drag = { kind: "rectangle", from: toMetres(...point), to: null };
  else if (["chain", "grid", "random", "wall"].includes(tool)) drag = { kind: "draw", from: toMetres(...point), to: null };
  else drag = { kind: "pan", view: { ...view }, moved: false };
  drag.client = [event.clientX, event.clientY]; // the form above may change its height meanwhile
  focused = name ?? focused;
}

function moved(event) {
  if (!drag) return;
  const point = pointOf(event), dx = event.clientX - drag.client[0], dy = event.clientY - drag.client[1];
  if (!drag.moved && Math.hypot(dx, dy) < 4) return;
  drag.moved = true;
  if (drag.kind === "pan") view = { ...drag.view, x: drag.view.x - dx / view.perMetre, y: drag.view.y + dy / view.perMetre, fits: null };
  else if (["draw", "rectangle"].includes(drag.kind)) drag.to = toMetres(...point);
  else if (drag.kind === "stations") {
    const by = toMetres(...toScreen(drag.starts.get(drag.name)).map((value, axis) => value + [dx, dy][axis])).map((value, axis) => value - drag.starts.get(drag.name)[axis]);
    drag.places = new Map([...drag.starts].map(([name, place]) => [name, place.map((value, axis) => Math.round((value + by[axis]) * 10) / 10)]));
  }
  draw();
}

function up(event) {
  if (!drag) return;
  const done = drag, point = toMetres(...pointOf(event));
  drag = null;
  if (done.kind === "stations" && done.places) {
    for (const station of picture.stations) if (done.places.has(station.name)) [station.x, station.y] = done.places.get(station.name); // until the server has answered
    act.move(Object.fromEntries(done.places));
  } else if (done.kind === "draw" && done.to) act.drawn(done.from, done.to);
  else if (done.kind === "rectangle" && done.to) act.choose([...new Set([...chosen, ...within(done.from, done.to)])]);
  else if (done.kind === "station" || (done.kind === "stations" && !done.moved)) act.station(done.name, event);
  else if (!done.moved) act.place(point, event);
  draw();
}

function within(from, to) {
  const isBetween = (value, axis) => value >= Math.min(from[axis], to[axis]) && value <= Math.max(from[axis], to[axis]);
  return [...places()].filter(([, place]) => place.every(isBetween)).map(([name]) => name);
}

function wheel(event) {
  event.preventDefault();
  zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, pointOf(event));
}

function zoom(factor, [sx, sy] = [size[0] / 2, size[1] / 2]) {
  const fixed = [view.x + (sx - size[0] / 2) / view.perMetre, view.y - (sy - size[1] / 2) / view.perMetre];
  const perMetre = Math.min(200, Math.max(1e-5, view.perMetre * factor));
  view = { x: fixed[0] - (sx - size[0] / 2) / perMetre, y: fixed[1] + (sy - size[1] / 2) / perMetre, perMetre, fits: null };
  draw();
}

// --- keys -----------------------------------------------------------------------------------------------------------------------

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function keys(event) {
  const command = (event.ctrlKey || event.metaKey) && !event.altKey && { a: () => act.choose(stations()), c: () => (kept = chosen), d: () => chosen.length && act.copy(chosen), v: () => kept.length && act.copy(kept) }[event.key.toLowerCase()];
  if (command) return event.preventDefault(), command();
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const name = event.target.closest?.(".station")?.dataset.name ?? null, arrow = ARROWS[event.key];
  if (event.key === "+" || event.key === "=") zoom(1.2);
  else if (event.key === "-") zoom(1 / 1.2);
  else if (event.key === "0") fit();
  else if (name && (event.key === "," || event.key === ".")) step(name, event.key === "." ? 1 : -1);
  else if (name && (event.key === "Enter" || event.key === " ")) act.tool() === "select" ? act.choose(event.shiftKey ? [...new Set([...chosen, name])] : [name]) : act.station(name, event);
  else if (name && (event.key === "Delete" || event.key === "Backspace")) act.remove(chosen.includes(name) ? chosen : [name]);
  else if (name && arrow) {
    const metres = event.shiftKey ? 1 : 10, names = chosen.includes(name) ? chosen : [name], at = places();
    const moved = Object.fromEntries(names.map((one) => [one, at.get(one).map((value, axis) => Math.round((value + arrow[axis] * metres) * 10) / 10)]));
    for (const station of picture.stations) if (moved[station.name]) [station.x, station.y] = moved[station.name];
    draw();
    act.move(moved);
  } else if (arrow) {
    view = { ...view, x: view.x + (arrow[0] * 60) / view.perMetre, y: view.y + (arrow[1] * 60) / view.perMetre, fits: null };
    draw();
  } else return undefined;
  return event.preventDefault();
}

// The map as it is drawn, without the picture behind it, as the text of a file of its own: its styles are written into it.
export function asFile() {
  const copy = svg.cloneNode(true), [all, copies] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  all.forEach((node, place) => {
    const style = getComputedStyle(node), isText = node.tagName === "text";
    const wanted = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "paint-order", ...(isText ? ["font-family", "font-size", "text-anchor"] : [])];
    for (const name of wanted) copies[place].style.setProperty(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-pressed", "aria-roledescription"]) copies[place].removeAttribute(name);
  });
  copy.querySelector("image")?.remove();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
  copy.style.background = getComputedStyle(svg).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}

function step(name, by) {
  const names = stations(), next = names[(names.indexOf(name) + by + names.length) % names.length];
  focused = next;
  for (const node of svg.querySelectorAll(".station")) node.setAttribute("tabindex", node.dataset.name === next ? 0 : -1);
  svg.querySelector(`[data-name="${CSS.escape(next)}"]`)?.focus();
}

