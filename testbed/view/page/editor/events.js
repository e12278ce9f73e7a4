// Events on a time line of the traffic: a button each, which left and right move by a second, and a drag to any time.

import { element } from "../words.js";
import * as map from "./map.js";

const by = (id) => document.getElementById(id);
const KINDS = ["power", "link", "move", "cut", "wire", "daemon", "command"];
const MAX_SHOWN = 60;
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
}

export function show(values, newPicture) {
  picture = newPicture ?? picture;
  seconds = picture?.seconds ?? seconds;
  const every = Array.isArray(values.events) ? values.events : [], events = every.slice(0, MAX_SHOWN), focus = document.activeElement?.dataset?.event;
  count = every.length;
  by("line").replaceChildren(...ticks(), ...events.map((event, place) => marker(event, place)), ...(events.length ? [] : [element("span", {}, `No events in ${seconds} s of traffic.`)]));
  if (focus !== undefined) by("line").querySelector(`[data-event="${focus}"]`)?.focus();
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

function marker(event, place) {
  const at = secondsOf(event?.at), kind = kindOf(event), who = [event?.power, event?.move, event?.station, event?.link, event?.wire, event?.from].find((one) => one !== undefined) ?? "";
  const node = element("button", { type: "button", "data-event": place, class: place % 2 ? "high" : null, title: JSON.stringify(event) }, `${at} s ${kind} ${Array.isArray(who) ? who.join("-") : who}`);
  node.style.left = `${Math.min(100, Math.max(0, (at / seconds) * 100))}%`;
  const move = (to) => change({ op: "set", path: ["events", place, "at"], value: Math.round(Math.min(seconds, Math.max(0, to)) * 10) / 10 });
  let begin = null, moved = false;
  node.addEventListener("pointerdown", (one) => ((begin = one.clientX), (moved = false), node.setPointerCapture(one.pointerId)));
  node.addEventListener("pointermove", (one) => {
    if (begin === null || Math.abs(one.clientX - begin) < 4) return;
    moved = true;
    node.style.left = `${(at / seconds) * 100 + ((one.clientX - begin) / by("line").clientWidth) * 100}%`;
  });
  node.addEventListener("pointerup", (one) => {
    if (moved) move(at + ((one.clientX - begin) / by("line").clientWidth) * seconds);
    begin = null;
  });
  node.addEventListener("click", () => !moved && open(["events", place]));
  node.addEventListener("keydown", (one) => {
    if (one.key === "ArrowLeft" || one.key === "ArrowRight") move(at + (one.key === "ArrowLeft" ? -1 : 1));
    else if (one.key === "Delete") change({ op: "remove", path: ["events", place] });
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
