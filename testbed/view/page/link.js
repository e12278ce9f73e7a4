// Deep links: #t=12.345&segment=12&flow=flow1&frame=3000&station=sta3&span=0.01&run=PATH. Times are seconds of the traffic.

import { state, zero } from "./state.js";

export function read() {
  const words = new URLSearchParams(location.hash.slice(1)), number = (name) => (words.has(name) && Number.isFinite(Number(words.get(name))) ? Number(words.get(name)) : null);
  return { t: number("t"), segment: number("segment"), frame: number("frame"), span: number("span"), flow: words.get("flow"), station: words.get("station"), run: words.get("run") };
}

let last = "";
export function write() {
  if (!state.about?.stations || state.live || state.playing) return;
  const words = new URLSearchParams();
  if (state.run) words.set("run", state.run);
  words.set("t", ((state.now - zero()) / 1e9).toFixed(9).replace(/0+$/, "").replace(/\.$/, ""));
  words.set("span", String(state.span / 1e9));
  if (state.segment !== null) words.set("flow", state.flow), words.set("segment", state.segment);
  if (state.row !== null) words.set("frame", state.row);
  if (state.station !== null) words.set("station", state.station);
  const hash = `#${words}`;
  if (hash === last) return;
  last = hash;
  history.replaceState(null, "", hash);
}
