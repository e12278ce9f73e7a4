// The times that exchanges of others reserve at a station, by distance: what its NAV covers. The air log does not record NAV.

import { firstAt, placeOf, state } from "./state.js";
import { BROADCAST } from "./words.js";

const GAP_NS = 1e5; // longer than SIFS, shorter than a DIFS and a few slots: the exchange is over
const LONGEST_NS = 2e7;

// For each unicast frame in the window that begins an exchange or goes on with it: what others know from it.
function exchanges(frames, begin, end) {
  const found = [];
  for (let at = firstAt(frames, begin - LONGEST_NS); at < frames.count && frames.t[at] <= end; at += 1) {
    if (frames.peer[at] === BROADCAST || frames.frame[at] > 2) continue;
    let until = frames.end[at];
    for (let next = at + 1; next < frames.count && frames.t[next] - until < GAP_NS; next += 1) {
      if (frames.station[next] === frames.peer[at] || frames.station[next] === frames.station[at]) until = Math.max(until, frames.end[next]);
    }
    if (until > frames.end[at] && until >= begin) found.push({ at, from: frames.end[at], until });
  }
  return found;
}

// For each station, by its place, the reserved times [from, until] in the window.
export function reservations(frames, begin, end) {
  const range = state.about.range_m, places = state.about.stations.map(({ name }) => placeOf(name, state.now));
  const found = places.map(() => []);
  if (!range) return found;
  for (const { at, from, until } of exchanges(frames, begin, end)) {
    const [x, y] = places[frames.station[at]];
    places.forEach(([u, v], number) => {
      if (number === frames.station[at] || number === frames.peer[at] || Math.hypot(u - x, v - y) > range) return;
      found[number].push([from, until]);
    });
  }
  return found;
}

// Until when the station's medium is reserved now; null if it is not.
export function reservedUntil(name, frames) {
  const own = state.about.stations.findIndex((one) => one.name === name);
  const here = reservations(frames, state.now, state.now)[own].filter(([from, until]) => from <= state.now && state.now < until);
  return here.length ? Math.max(...here.map(([, until]) => until)) : null;
}
