// The menu of a station: what the page can do with it, by pointer and by keyboard. What cannot be done now says why.

import { act } from "./api.js";
import { notice, speak, state } from "./state.js";
import { element } from "./words.js";

const by = (id) => document.getElementById(id);
const EDGE = 6; // px to the window's edge
let shown = null, back = null; // the menu, and what has the focus after it

// `x`, `y`: px in the window; `parts`: what the entries call, by name.
export function open(station, x, y, parts) {
  close(false);
  back = document.activeElement;
  const items = entriesOf(station, parts).map(([words, why, run]) => element("button", {
    type: "button", role: "menuitem", tabindex: "-1", "aria-disabled": why ? "true" : null,
    onclick: () => {
      if (why) return;
      close();
      run();
    },
  }, words, why ? element("small", {}, why) : ""));
  shown = element("div", { id: "menu", role: "menu", "aria-label": `Actions on ${station}`, onkeydown: keys, oncontextmenu: (event) => event.preventDefault() }, element("strong", { "aria-hidden": "true" }, station), ...items);
  by("main").append(shown);
  shown.style.left = `${Math.max(EDGE, Math.min(x, window.innerWidth - shown.offsetWidth - EDGE))}px`;
  shown.style.top = `${Math.max(EDGE, Math.min(y, window.innerHeight - shown.offsetHeight - EDGE))}px`;
  items[0].focus();
  document.addEventListener("pointerdown", outside, true);
}

function outside(event) {
  if (!shown.contains(event.target)) close(false);
}

export function close(returns = true) {
  if (!shown) return;
  document.removeEventListener("pointerdown", outside, true);
  shown.remove();
  shown = null;
  if (returns) (back?.isConnected ? back : by(back?.id ?? ""))?.focus(); // the details may have been made again
}

function keys(event) {
  const items = [...shown.querySelectorAll("button")], at = items.indexOf(document.activeElement);
  const to = { ArrowDown: (at + 1) % items.length, ArrowUp: (at - 1 + items.length) % items.length, Home: 0, End: items.length - 1 }[event.key];
  event.stopPropagation(); // no key of the player
  if (to !== undefined) items[to].focus();
  else if (event.key === "Escape" || event.key === "Tab") close();
  else return;
  event.preventDefault();
}

function entriesOf(station, { power, isOff, move, terminal, centre }) {
  const why = !state.live ? "only in a run under way" : state.about.control ? "" : "read-only: start the view with --control";
  const noDaemon = why || (["static", "none"].includes(state.about.routing) ? `${state.about.routing} routing has no daemon` : "");
  const daemon = (action, done) => () => act({ op: "daemon", station, action }).then(() => (notice(""), speak(`the routing daemon of ${station} ${done}`)), (problem) => notice(problem.message));
  return [
    ["Centre the map on it", "", centre],
    [isOff ? "Switch on" : "Switch off", why, power],
    ["Move", why, move],
    ["Terminal", why, () => terminal("")],
    ["Capture its packets", why, () => terminal("tcpdump -lni any")],
    ["Restart its routing daemon", noDaemon, daemon("restart", "is started again")],
    ["Stop its routing daemon", noDaemon, daemon("stop", "is stopped")],
  ];
}

// Whether a key asks for the menu of what has the focus.
export function isAsked(event) {
  return event.key === "ContextMenu" || (event.shiftKey && event.key === "F10");
}
