// Names, colours and shapes of what the page shows.

export const FRAMES = ["RTS", "CTS", "data", "ACK", "broadcast", "Block Ack", "Block Ack Request"];
export const FATES = ["unfinished", "delivered", "collision", "hidden", "weak", "error", "busy", "nav"];
export const MEANING = {
  delivered: "delivered", collision: "lost: collision", hidden: "lost: hidden terminal", weak: "lost: below the threshold",
  error: "lost: bit errors", busy: "lost: receiver busy", nav: "RTS not answered: NAV", broadcast: "broadcast", captured: "delivered by capture",
  unfinished: "cut by the end, or broadcast",
};
export const LOST = ["collision", "hidden", "weak", "error", "busy"]; // fates of frames that arrived nowhere
export const BROADCAST = 65535;
export const UNKNOWN = 65534;
const FLOW_DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3], [16, 4], [5, 2, 2, 2]];
export const MAX_CHARTED = FLOW_DASHES.length;

// The colour and the dashes of a flow, by its place in the run.
export function lookOf(place) {
  return { tone: `flow${(place % MAX_CHARTED) + 1}`, dash: FLOW_DASHES[place % MAX_CHARTED] };
}

const colours = new Map(); // of the theme: each picture asks for some hundred
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888");
  return colours.get(name);
}
export function repaint() {
  colours.clear();
}

// How large text and marks of the canvases are, as a multiple of their size on a usual screen: that of the page's text.
let unit = { width: 0, factor: 1 };
export function scaleOfText() {
  if (unit.width !== window.innerWidth) unit = { width: window.innerWidth, factor: Math.min(2, Math.max(1, Number.parseFloat(getComputedStyle(document.body).fontSize) / 14)) };
  return unit.factor;
}

export function kindOf(frames, at) {
  return frames.peer[at] === BROADCAST ? "broadcast" : FATES[frames.fate[at]];
}

// The mark at the end of a frame's line: a shape for each fate, beside its colour.
export function mark(pen, kind, x, y, size) {
  pen.beginPath();
  if (kind === "collision") { pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size); pen.moveTo(x + size, y - size); pen.lineTo(x - size, y + size); pen.stroke(); return; }
  if (kind === "hidden") { pen.moveTo(x, y - size * 1.3); pen.lineTo(x + size * 1.3, y); pen.lineTo(x, y + size * 1.3); pen.lineTo(x - size * 1.3, y); pen.closePath(); pen.fill(); return; }
  if (kind === "weak") { pen.moveTo(x - size, y - size); pen.lineTo(x + size, y - size); pen.lineTo(x, y + size); pen.closePath(); pen.stroke(); return; }
  if (kind === "error") { pen.rect(x - size, y - size, 2 * size, 2 * size); pen.stroke(); return; }
  if (kind === "busy") { pen.rect(x - size, y - size, 2 * size, 2 * size); pen.fill(); return; }
  if (kind === "nav") { pen.moveTo(x - size, y); pen.lineTo(x + size, y); pen.moveTo(x, y - size); pen.lineTo(x, y + size); pen.stroke(); return; }
  pen.arc(x, y, size, 0, 7);
  if (kind === "broadcast") pen.stroke(); else pen.fill();
}

// The mark of an event on a time axis.
export function diamond(pen, x, y, size) {
  pen.beginPath();
  pen.moveTo(x, y - size);
  pen.lineTo(x + size, y);
  pen.lineTo(x, y + size);
  pen.lineTo(x - size, y);
  pen.closePath();
  pen.fill();
}

export function eventWords({ event, station, detail }) {
  return [event, station, detail].filter(Boolean).join(" ");
}

// The shapes of nodes around (0, 0), of radius 1: what is filled, and lines beside it.
export const HOST = "host";
const ICONS = {
  station: ["M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z", ""],
  gateway: ["M0-1.35L1.35 0L0 1.35L-1.35 0Z", ""],
  "access-point": ["M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z", "M-1.15-1.15A1.6 1.6 0 0 1 1.15-1.15M-1.7-1.7A2.4 2.4 0 0 1 1.7-1.7"],
  [HOST]: ["M-1.3-1H1.3V.7H-1.3Z", "M0 .7V1.3M-.8 1.3H.8"],
};
export const ROLES = { gateway: "a gateway", "access-point": "an access point", [HOST]: "a wired host" };

// Fill and outline a node on a canvas, with the pen's colours.
const paths = new Map(); // of ICONS
export function drawIcon(pen, role, x, y, r) {
  if (!paths.has(role)) paths.set(role, ICONS[role].map((path) => new Path2D(path)));
  const place = new DOMMatrix([r, 0, 0, r, x, y]), [body, lines] = paths.get(role).map((path) => {
    const placed = new Path2D();
    placed.addPath(path, place);
    return placed;
  });
  pen.fill(body);
  pen.stroke(body);
  pen.stroke(lines);
}

// The same as a part of an SVG.
export function iconOf(role, x, y, r) {
  const [body, lines] = ICONS[role].map((d) => shape("path", { d, "vector-effect": "non-scaling-stroke" }));
  lines.setAttribute("class", "lines");
  return shape("g", { class: `icon of-${role}`, transform: `translate(${x} ${y}) scale(${r})` }, body, lines);
}

// A canvas in so many pixels of the page, for a new picture. Its size is set only when it has changed: that allocates it again.
export function sized(canvas, pen, width, height) {
  const ratio = window.devicePixelRatio || 1, wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
}

// A small canvas for a legend, and its pen.
export function sampleCanvas(width, height) {
  const canvas = element("canvas", { width: 2 * width, height: 2 * height, "aria-hidden": "true" }), pen = canvas.getContext("2d");
  pen.scale(2, 2);
  return [canvas, pen];
}

// The bar of a map's scale: its length, a round number of metres of some 110 pixels at most, and its words.
export function scaleOfMap(perMetre) {
  const wanted = 110 / perMetre, power = 10 ** Math.floor(Math.log10(wanted)), metres = [5, 2, 1].map((step) => step * power).find((step) => step <= wanted) ?? power;
  return { metres, text: metres >= 1000 ? `${metres / 1000} km` : `${metres >= 1 ? metres : metres.toPrecision(1)} m` };
}

export function hopsOf(hops) {
  return hops === null ? "no path" : counted(hops, "hop");
}

// The fill of a frame's lane: a pattern for each fate, beside its colour.
const PATTERNS = {
  collision: [[0, 0, 6, 6], [0, 6, 6, 0]], hidden: [[0, 6, 6, 0]], weak: [[3, 0, 3, 6]], error: [[0, 3, 6, 3]], busy: [[0, 0, 6, 6]], nav: [[3, 0, 3, 6], [0, 3, 6, 3]],
};
const patterns = new Map();
export function fillOf(pen, kind) {
  const tone = colour(kind), lines = PATTERNS[kind];
  if (!lines) return tone;
  const key = `${kind}/${tone}`;
  if (!patterns.has(key)) {
    const tile = document.createElement("canvas"), ink = tile.getContext("2d");
    tile.width = tile.height = 6;
    ink.fillStyle = tone;
    ink.fillRect(0, 0, 6, 6);
    ink.strokeStyle = colour("panel");
    ink.lineWidth = 1.2;
    for (const [x0, y0, x1, y1] of lines) ink.beginPath(), ink.moveTo(x0, y0), ink.lineTo(x1, y1), ink.stroke();
    patterns.set(key, pen.createPattern(tile, "repeat"));
  }
  return patterns.get(key);
}

// `1 packet`, `2 packets`.
export function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

// A text whose words between backquotes are code.
export function withCode(text) {
  return text.split("`").map((part, place) => (place % 2 ? element("code", {}, part) : part));
}

export function seconds(ns, digits = 6) {
  return `${(ns / 1e9).toFixed(digits)} s`;
}

// The PHY mode, where the radio has some, and the rate of a frame to four digits: most rates of 802.11ax have no end.
export function modeOf({ mode, rate_bps }) {
  return `${mode ? `${mode}, ` : ""}${Number((rate_bps / 1e6).toPrecision(4))} Mbit/s`;
}

export function rate(bps) {
  return bps >= 1e6 ? `${(bps / 1e6).toFixed(2)} Mbit/s` : `${(bps / 1e3).toFixed(0)} kbit/s`;
}

// An element of an SVG.
export function shape(name, words, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(words)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function element(name, words = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(words)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
