// Deep links: #t=12.345&span=0.01&speed=0.1&map=300,100,800&flows=flow1,flow2&segment=12&flow=flow1&frame=3000&station=sta3&run=PATH.
// Times are seconds of the traffic; `map` is the centre and the shown width in m.

import { shown } from "./map.js";
import { state, zero } from "./state.js";

export function read() {
  const words = new URLSearchParams(location.hash.slice(1)), number = (name) => (words.has(name) && Number.isFinite(Number(words.get(name))) ? Number(words.get(name)) : null);
  const view = (words.get("map") ?? "").split(",").map(Number);
  const wrong = ["t", "span", "speed", "segment", "frame"].filter((name) => words.has(name) && number(name) === null);
  return {
    wrong: wrong.map((name) => `${name}=${words.get(name)}`), map: view.length === 3 && view.every(Number.isFinite) && view[2] > 0 ? view : null, flows: words.has("flows") ? words.get("flows").split(",") : null, speed: number("speed"), t: number("t"), segment: number("segment"), frame: number("frame"), span: number("span"), flow: words.get("flow"), station: words.get("station"), run: words.get("run"),
  };
}

let last = "";
export function write() {
  if (!state.about?.stations || state.live || state.playing) return;
  const words = new URLSearchParams();
  if (state.run) words.set("run", state.run);
  words.set("t", ((state.now - zero()) / 1e9).toFixed(9).replace(/0+$/, "").replace(/\.$/, ""));
  words.set("span", String(state.span / 1e9));
  if (state.speed !== 1) words.set("speed", state.speed);
  const view = shown();
  if (view) words.set("map", view.map((value) => +value.toFixed(1)).join());
  if (state.flows.size < state.about.flows.length) words.set("flows", [...state.flows].join());
  if (state.segment !== null) words.set("flow", state.flow), words.set("segment", state.segment);
  if (state.row !== null) words.set("frame", state.row);
  if (state.station !== null) words.set("station", state.station);
  const hash = `#${words.toString().replaceAll("%2C", ",")}`;
  if (hash === last) return;
  last = hash;
  history.replaceState(null, "", hash);
}
