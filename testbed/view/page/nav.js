// The times at which each station's NAV reserves the medium: of a record from the server, which asks the medium again; of a run under
// way the newest state.

import { ask } from "./api.js";
import { change, state } from "./state.js";

const LENGTH_NS = 1e8, MAX_PARTS = 12, KEPT = 64;
const parts = new Map(); // by the number of the tenth of a second; null while it is asked
let unknown = ""; // why there is no NAV

export function forget() {
  parts.clear();
  unknown = "";
}

export function whyUnknown() {
  return unknown;
}

function part(number) {
  if (!parts.has(number) && !unknown) {
    parts.set(number, null);
    while (parts.size > KEPT) parts.delete(parts.keys().next().value);
    ask("nav", { from: number * LENGTH_NS, to: (number + 1) * LENGTH_NS }).then(
      ({ stations }) => {
        parts.set(number, stations);
        change({});
      },
      (problem) => {
        unknown = problem.message;
        change({});
      },
    );
  }
  return parts.get(number) ?? null;
}

// For each station, by its place, the reserved times [from, until] that touch the window, as far as they are known; none in a window of
// more than a second.
export function reservations(_frames, begin, end) {
  const reserved = state.about.stations.map(() => []);
  const first = Math.floor(begin / LENGTH_NS), last = Math.floor(end / LENGTH_NS);
  if (state.live || last - first >= MAX_PARTS) return reserved;
  for (let number = first; number <= last; number += 1) {
    const stations = part(number);
    state.about.stations.forEach(({ name }, place) => {
      for (const [from, until] of stations?.[name] ?? []) if (from <= end && until >= begin && reserved[place].at(-1)?.[0] !== from) reserved[place].push([from, until]);
    });
  }
  return reserved;
}

// Until when the station's medium is reserved now; null if it is not, or if that is unknown.
export function reservedUntil(name, frames) {
  if (state.live) return state.live.nav[name] ? Number(state.live.nav[name]) : null;
  const place = state.about.stations.findIndex((one) => one.name === name);
  const here = reservations(frames, state.now, state.now)[place].filter(([from, until]) => from <= state.now && state.now < until);
  return here.length ? Math.max(...here.map(([, until]) => until)) : null;
}
