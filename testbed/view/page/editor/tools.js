// The tools of the map. What a click or a drag gives, the numbers in the form give too, so that the keyboard does all.

import { element } from "../words.js";
import * as map from "./map.js";

const by = (id) => document.getElementById(id);
const DEFAULT_SPACING_M = 200;
const NUMBERS = { count: 5, spacing: DEFAULT_SPACING_M, rows: 3, columns: 3, loss: 10, speed: 2, x: 0, y: 0, x1: 100, y1: 100 };
let tool = "select", change = () => {}, state = () => ({}), say = () => {}, first = null, kinds = [], most = 1, inputs = {};
let copies = null;

const TOOLS = {
  select: ["Select", "Click or drag a station; Shift-click adds one, Shift-drag a rectangle. Drag the ground to pan.", []],
  station: ["Station", "Click where a station stands.", ["x", "y"]],
  chain: ["Chain", "Drag from the first station towards the last, or give numbers.", ["count", "spacing", "x", "y"]],
  grid: ["Grid", "Click or drag from the lower left station, or give numbers.", ["rows", "columns", "spacing", "x", "y"]],
  random: ["Random", "Drag a rectangle, or give its corners.", ["count", "x", "y", "x1", "y1"]],
  flow: ["Flow", "Click the sender, then the receiver.", ["from", "to", "kind"]],
  waypoint: ["Walk", "Click a station, then the places that it walks to.", ["from", "x", "y", "speed"]],
  wall: ["Wall", "Drag from end to end.", ["x", "y", "x1", "y1", "loss"]],
  gateway: ["Gateway", "Click a station: it gets a wire to a host.", ["from", "host"]],
  picture: ["Picture", "Of the scenario's folder, behind the map; x, y: its lower left corner.", ["file", "width", "x", "y"]],
};
const LABELS = { count: "stations", spacing: "spacing, m", rows: "rows", columns: "columns", x: "x, m", y: "y, m", x1: "to x, m", y1: "to y, m", loss: "loss, dB", speed: "speed, m/s", from: "from", to: "to", kind: "kind", host: "host", file: "file", width: "width, m" };
const VERBS = { station: "Place", chain: "Place", grid: "Place", random: "Place", flow: "Add flow", waypoint: "Add move", wall: "Add wall", gateway: "Add gateway", picture: "Show it" };

export function setUp(onChange, currentState, speak, trafficKinds, mostStations) {
  [change, state, say, kinds, most] = [onChange, currentState, speak, trafficKinds, mostStations];
  by("tools").append(...Object.entries(TOOLS).map(([name, [label]]) => element("button", { type: "button", "data-tool": name, "aria-pressed": name === tool, onclick: () => take(name) }, label)));
  by("tool-form").addEventListener("submit", (event) => (event.preventDefault(), submit()));
  map.setUp({
    tool: () => tool, place, station, drawn, choose, copy, remove,
    move: (places) => change({ op: "move_stations", places }),
  });
  form();
}

export function take(name) {
  [tool, first] = [name, null];
  for (const button of by("tools").children) button.setAttribute("aria-pressed", button.dataset.tool === name);
  form();
}

function choose(names) {
  map.choose(names);
  if (tool === "select") form();
}

// Lists of stations, and the numbers of the selected one. Copies are selected once they are there, to be dragged.
export function renew() {
  if (copies && map.stations().length === copies.all) {
    map.choose(map.stations().slice(-copies.count));
    copies = null;
  }
  if (tool === "select") {
    const [name] = map.selected(), place = map.places().get(name);
    if (inputs.go && !name) return;
    if (!inputs.name || !place) return form();
    if (by("tool-form").contains(document.activeElement)) return;
    form();
  } else for (const name of ["from", "to"]) if (inputs[name]) choices(name);
}

// The stations of a select; the one that is chosen stays while it exists, and so do focus and the other fields.
function choices(name, kept = inputs[name].value) {
  const all = tool === "flow" ? map.nodes() : map.stations(), node = inputs[name];
  if (all.join() !== [...node.options].map((one) => one.value).join()) node.replaceChildren(...all.map((one) => element("option", {}, one)));
  node.value = kept && all.includes(kept) ? kept : name === "to" ? all.at(-1) ?? "" : all[0] ?? "";
}

function number(name, value = NUMBERS[name]) {
  return element("input", { type: "number", step: "any", value, required: "" });
}

function form() {
  const [, hint, names] = TOOLS[tool], kept = Object.fromEntries(Object.entries(inputs).map(([name, node]) => [name, node.value]));
  inputs = {};
  if (tool === "select") return selected();
  const made = names.map((name) => {
    if (["from", "to"].includes(name)) {
      inputs[name] = element("select");
      choices(name, kept[name]);
    } else if (name === "kind") inputs[name] = element("select", {}, ...kinds.map((one) => element("option", {}, one)));
    else if (name === "host") inputs[name] = element("input", { type: "text", value: kept.host ?? "host1", required: "", pattern: "[a-z0-9\\-]{1,10}" });
    else if (name === "file") {
      inputs[name] = element("select", {}, element("option", { value: "" }, "none"), ...(state().pictures ?? []).map((one) => element("option", {}, one)));
      inputs[name].value = state().background?.file ?? "";
    } else inputs[name] = number(name, tool === "picture" ? state().background?.[name] ?? (name === "width" ? 500 : 0) : kept[name] ?? NUMBERS[name]);
    return element("label", {}, `${tool === "waypoint" && name === "from" ? "station" : tool === "gateway" && name === "from" ? "station" : LABELS[name]} `, inputs[name]);
  });
  by("tool-form").replaceChildren(...made, element("button", { type: "submit" }, VERBS[tool]), element("p", {}, hint));
}

function selected() {
  const names = map.selected(), at = map.places();
  if (!names.length) return nothingSelected();
  const again = element("button", { type: "button", title: "Ctrl-D", onclick: () => copy(names) }, "Copy");
  const gone = element("button", { type: "button", onclick: () => remove(names) }, names.length > 1 ? `Remove ${names.length} stations` : "Remove");
  if (names.length > 1) return by("tool-form").replaceChildren(element("p", {}, names.length > 8 ? `${names.slice(0, 7).join(", ")} and ${names.length - 7} more` : names.join(", ")), again, gone);
  const [x, y] = at.get(names[0]) ?? [0, 0];
  inputs = { name: element("input", { type: "text", value: names[0], pattern: "[a-z][a-z0-9\\-]{0,9}", required: "" }), x: number("x", x), y: number("y", y) };
  by("tool-form").replaceChildren(...Object.entries(inputs).map(([name, node]) => element("label", {}, `${LABELS[name] ?? name} `, node)), element("button", { type: "submit" }, "Apply"), again, gone);
}

function nothingSelected() {
  inputs = { go: element("input", { type: "text", list: "nodes", spellcheck: "false", autocomplete: "off", oninput: (event) => event.target.setCustomValidity("") }) };
  by("tool-form").replaceChildren(element("label", {}, "station ", inputs.go), element("button", { type: "submit" }, "Find"), element("button", { type: "button", onclick: saveMap }, "Save the map as SVG"), element("p", {}, TOOLS.select[1]));
}

function find(name) {
  if (!map.stations().includes(name)) {
    inputs.go.setCustomValidity(`there is no station ${name}`);
    inputs.go.reportValidity();
    return say(inputs.go.validationMessage);
  }
  map.choose([name]);
  map.centre(name);
  form();
  return say(`${name} is selected`);
}

function saveMap() {
  const url = URL.createObjectURL(new Blob([map.asFile()], { type: "image/svg+xml" }));
  element("a", { href: url, download: `${state().name.replace(/\.toml$/, "")}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function value(name) {
  return Number(inputs[name].value);
}

// The numbers of the form.
function submit() {
  const at = inputs.x ? [value("x"), value("y")] : null;
  if (tool === "select" && inputs.name) {
    const [name] = map.selected(), [x, y] = map.places().get(name);
    if (at[0] !== x || at[1] !== y) change({ op: "move_stations", places: { [name]: at } });
    if (inputs.name.value !== name) {
      map.choose([inputs.name.value]);
      change({ op: "rename_station", station: name, name: inputs.name.value });
    }
  } else if (tool === "select") find(inputs.go.value.trim());
  else if (tool === "station") add([at]);
  else if (tool === "chain") chain(at, [1, 0], value("count"));
  else if (tool === "grid") grid(at);
  else if (tool === "random") random(at, [value("x1"), value("y1")]);
  else if (tool === "flow") flow(inputs.from.value, inputs.to.value);
  else if (tool === "waypoint") walk(inputs.from.value, at);
  else if (tool === "wall") wall(at, [value("x1"), value("y1")]);
  else if (tool === "gateway") gateway(inputs.from.value);
  else if (tool === "picture") change({ op: "background", file: inputs.file.value || null, width: value("width"), x: at[0], y: at[1] });
}

function place(point, event) {
  if (tool === "select") return choose(event.shiftKey ? map.selected() : []);
  if (tool === "station") return add([point]);
  if (tool === "chain") return chain(point, [1, 0], value("count"));
  if (tool === "grid") return grid(point);
  if (tool === "waypoint" && inputs.from.value) return walk(inputs.from.value, point);
  return undefined;
}

function station(name) {
  if (tool === "flow") {
    if (first === null || first === name) {
      first = name;
      inputs.from.value = name;
      map.choose([name]);
      return say(`${name} sends; now the receiver`);
    }
    flow(first, name);
    first = null;
    map.choose([]);
  } else if (tool === "waypoint") {
    inputs.from.value = name;
    map.choose([name]);
    say(`${name} walks; now the places`);
  } else if (tool === "gateway") gateway(name);
  return undefined;
}

function drawn(from, to) {
  if (tool === "chain") {
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]), spacing = value("spacing");
    if (!length) return chain(from, [1, 0], value("count")); // a drag that came back has no direction
    chain(from, [(to[0] - from[0]) / length, (to[1] - from[1]) / length], Math.max(2, Math.round(length / spacing) + 1));
  } else if (tool === "grid") grid([Math.min(from[0], to[0]), Math.min(from[1], to[1])]);
  else if (tool === "random") random(from, to);
  else if (tool === "wall") wall(from, to);
  return undefined;
}

function add(places) {
  change({ op: "add_stations", at: places });
}

function chain([x, y], [dx, dy], count) {
  add(Array.from({ length: Math.min(most, Math.max(1, count)) }, (_, place) => [x + dx * place * value("spacing"), y + dy * place * value("spacing")]));
}

function grid([x, y]) {
  const [rows, columns] = [value("rows"), value("columns")], spacing = value("spacing");
  add(Array.from({ length: Math.min(most, rows * columns) }, (_, place) => [x + (place % columns) * spacing, y + Math.floor(place / columns) * spacing]));
}

function random(from, to) {
  const between = (axis) => Math.round((Math.min(from[axis], to[axis]) + Math.random() * Math.abs(to[axis] - from[axis])) * 10) / 10;
  add(Array.from({ length: Math.min(most, Math.max(1, value("count"))) }, () => [between(0), between(1)]));
}

function flow(from, to) {
  const kind = inputs.kind.value, more = { cbr: { rate: "100 kbit/s", bytes: 512 }, transfer: { size: 1000000 }, command: { command: ["ping", "-c", "10", "{target}"] } }[kind];
  change({ op: "append", path: ["flows"], value: { from, to, ...(kind === "bulk" ? {} : { traffic: kind }), ...more } });
}

function walk(name, to) {
  change({ op: "waypoint", station: name, to, speed: value("speed") });
}

function wall(from, to) {
  change({ op: "append", path: ["walls"], value: { from, to, loss_db: value("loss") } });
}

function gateway(name) {
  change({ op: "append", path: ["wires"], value: { station: name, host: inputs.host.value } });
}

// A copy of each beside it, with what is between them.
async function copy(names) {
  const metres = map.metresOf(50);
  copies = { count: names.length, all: map.stations().length + names.length };
  if (await change({ op: "copy_stations", stations: names, by: [metres, -metres] })) say(names.length > 1 ? `${names.length} stations are copied` : `${names[0]} is copied`);
  else copies = null;
}

function remove(names) {
  map.choose([]);
  change({ op: "remove_stations", stations: names });
}
