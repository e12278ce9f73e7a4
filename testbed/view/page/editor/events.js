// Events on a time line of the traffic: a button each, which left and right move by a second, and a drag to any time.

import { element } from "../words.js";
import * as map from "./map.js";

const by = (id) => document.getElementById(id);
const KINDS = ["power", "link", "move", "cut", "wire", "daemon", "command"];
const MAX_SHOWN = 60, MAX_ROWS = 4, GAP_PX = 4, ROW_REM = 1.6; // with more rows the words of all are their seconds alone
let change = () => {}, open = () => {}, seconds = 35, count = 0, picture = null;

export function setUp(onChange, onOpen) {
  [change, open] = [onChange, onOpen];
  by("event-kind").append(...KINDS.map((kind) => element("option", {}, kind)));
  by("event-add").addEventListener("click", add);
  by("clock").addEventListener("input", () => {
    const at = (Number(by("clock").value) / 1000) * seconds;
    by("clock-now").textContent = `${at.toFixed(1)} s`;
    map.goTo(at * 1e9);
  });
  new ResizeObserver(() => by("line").clientWidth !== width && place()).observe(by("line"));
}

export function show(values, newPicture) {
  picture = newPicture ?? picture;
  seconds = picture?.seconds ?? seconds;
  const every = Array.isArray(values.events) ? values.events : [], events = every.slice(0, MAX_SHOWN), focus = document.activeElement?.dataset?.event;
  count = every.length;
  by("line").replaceChildren(...ticks(), ...events.flatMap((event, number) => [pin(event), marker(event, number)]), ...(events.length ? [] : [element("span", {}, `No events in ${seconds} s of traffic.`)]));
  place();
  if (focus !== undefined) by("line").querySelector(`[data-event="${focus}"]`)?.focus();
}

// No button covers another one, or leaves the line; the pin below it has its time.
let width = 0;
function place() {
  const line = by("line"), buttons = [...line.querySelectorAll("[data-event]")].sort((a, b) => a.seconds - b.seconds);
  width = line.clientWidth;
  const rowsOf = () => {
    const ends = []; // of the last button of each row
    for (const node of buttons) {
      const wide = node.offsetWidth, left = Math.max(0, Math.min(width - wide, partOf(node.seconds) * width - wide / 2));
      let row = ends.findIndex((end) => end + GAP_PX <= left);
      if (row < 0) row = ends.length;
      ends[row] = left + wide;
      node.style.left = `${left}px`;
      node.style.bottom = `${row * ROW_REM}rem`;
    }
    return ends.length;
  };
  for (const node of buttons) node.textContent = node.words;
  let rows = rowsOf();
  if (rows > MAX_ROWS) {
    for (const node of buttons) node.textContent = `${node.seconds} s`;
    rows = rowsOf();
  }
  line.style.height = `${Math.max(2, rows) * ROW_REM}rem`;
}

function partOf(at) {
  return Math.min(1, Math.max(0, at / seconds));
}

function pin(event) {
  const node = element("span", { class: "pin", "aria-hidden": "true" });
  node.style.left = `${100 * partOf(secondsOf(event?.at))}%`;
  return node;
}

// Seconds of the traffic below the line, eight at most.
function ticks() {
  const power = 10 ** Math.floor(Math.log10(seconds / 8)), step = [1, 2, 5, 10].map((one) => one * power).find((one) => seconds / one <= 8);
  return Array.from({ length: Math.floor(seconds / step + 1e-9) + 1 }, (_, place) => {
    const at = Number((place * step).toPrecision(12)), node = element("span", { class: "tick", "aria-hidden": "true" }, place ? String(at) : `${at} s`);
    node.style.left = `${(at / seconds) * 100}%`;
    return node;
  });
}

function kindOf(event) {
  return KINDS.find((kind) => event?.[kind] !== undefined) ?? "event";
}

function secondsOf(at) {
  const match = /^\s*([\d.eE+-]+)\s*(ms|us|min|s)?\s*$/.exec(String(at));
  return match ? Number(match[1]) * { ms: 1e-3, us: 1e-6, min: 60, s: 1 }[match[2] ?? "s"] : 0;
}

function marker(event, number) {
  const at = secondsOf(event?.at), kind = kindOf(event), who = [event?.power, event?.move, event?.station, event?.link, event?.wire, event?.from].find((one) => one !== undefined) ?? "";
  const words = `${at} s ${kind} ${Array.isArray(who) ? who.join("-") : who}`;
  const node = element("button", { type: "button", "data-event": number, title: JSON.stringify(event), "aria-label": words }, words);
  Object.assign(node, { seconds: at, words });
  const move = (to) => change({ op: "set", path: ["events", number, "at"], value: Math.round(Math.min(seconds, Math.max(0, to)) * 10) / 10 });
  let begin = null, left = 0, moved = false;
  node.addEventListener("pointerdown", (one) => ((begin = one.clientX), (left = parseFloat(node.style.left)), (moved = false), node.setPointerCapture(one.pointerId)));
  node.addEventListener("pointermove", (one) => {
    if (begin === null || Math.abs(one.clientX - begin) < 4) return;
    moved = true;
    node.style.left = `${left + one.clientX - begin}px`;
  });
  node.addEventListener("pointerup", (one) => {
    if (moved) move(at + ((one.clientX - begin) / by("line").clientWidth) * seconds);
    begin = null;
  });
  node.addEventListener("click", () => !moved && open(["events", number]));
  node.addEventListener("keydown", (one) => {
    if (one.key === "ArrowLeft" || one.key === "ArrowRight") move(at + (one.key === "ArrowLeft" ? -1 : 1));
    else if (one.key === "Delete") change({ op: "remove", path: ["events", number] });
    else return;
    one.preventDefault();
  });
  return node;
}

async function add() {
  const names = map.stations(), [station] = map.selected().length ? map.selected() : names, other = names.find((one) => one !== station) ?? station, at = Number(by("event-at").value);
  const [x, y] = map.places().get(station) ?? [0, 0];
  const [wire] = picture?.wires ?? [], kind = by("event-kind").value;
  const value = {
    power: { power: station, on: false }, link: { link: [station, other], error_rate: 1 }, move: { move: station, to: [Math.round(x * 10) / 10 + 100, Math.round(y * 10) / 10], speed: 5 },
    cut: { cut: "next-hop", from: station, to: other }, wire: { wire: wire ?? [station, "host1"], stalled: true }, daemon: { station, daemon: "kill" },
    command: { station, command: ["ping", "-c", "5", `{${other}}`] },
  }[kind];
  if (await change({ op: "append", path: ["events"], value: { at, ...value } })) open(["events", count - 1]);
}
