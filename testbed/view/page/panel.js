// Details beside the map: stations, frames about now, the story of a segment, the run.

import { act, ask } from "./api.js";
import { switched } from "./live.js";
import { show as showMap, shown as mapShown, widthOfMap } from "./map.js";
import * as menu from "./menu.js";
import { reservedUntil, whyUnknown } from "./nav.js";
import * as terminal from "./terminal.js";
import { change, conditionOf, firstAt, goTo, isOff, notice, placeOf, speak, state, windowOf, zero } from "./state.js";
import { BROADCAST, counted, element, eventWords, FATES, FRAMES, kindOf, MEANING, modeOf, rate, seconds } from "./words.js";

const by = (id) => document.getElementById(id);
const TABS = ["stations", "frames", "story", "verdict"];
const LIST_EVERY_MS = 200;

export function open(name) {
  for (const tab of TABS) {
    const chosen = tab === name;
    by(`tab-${tab}`).setAttribute("aria-selected", chosen);
    by(`tab-${tab}`).tabIndex = chosen ? 0 : -1;
    by(`pane-${tab}`).hidden = !chosen;
  }
  change({});
}

function isOpen(name) {
  return !by(`pane-${name}`).hidden;
}

export function listen() {
  for (const tab of TABS) by(`tab-${tab}`).addEventListener("click", () => open(tab));
  document.querySelector(".tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = TABS.findIndex((tab) => isOpen(tab)), next = TABS[(at + step + TABS.length) % TABS.length];
    open(next);
    by(`tab-${next}`).focus();
    event.preventDefault();
    event.stopPropagation();
  });
  by("story-form").addEventListener("submit", (event) => {
    event.preventDefault();
    showStory(by("story-flow").value, Number(by("story-segment").value));
  });
  by("story-now").addEventListener("click", () => showSentNow(by("story-flow").value));
}

export function setUp() {
  by("stations").replaceChildren(
    ...state.about.stations.map(({ name }) =>
      element("li", {}, element("button", { type: "button", "data-station": name, "aria-pressed": "false", onclick: () => change({ station: state.station === name ? null : name }), oncontextmenu: (event) => openMenu(event, name), onkeydown: (event) => menu.isAsked(event) && openMenu(event, name) }, name)),
    ),
  );
  const tcp = state.about.flows.filter((flow) => flow.transport === "tcp");
  by("story-flow").replaceChildren(...tcp.map((flow) => element("option", { value: flow.name }, `${flow.name}: ${flow.source} to ${flow.target}`)));
  by("tab-story").hidden = tcp.length === 0 || Boolean(state.live);
  showRun();
}

let stationKey = "", radioShown = "", framesKey = "";
export function update() {
  if (!state.about?.stations) return;
  showList();
  if (isOpen("stations")) showStation();
  if (isOpen("frames")) showFrames();
  if (isOpen("verdict") && state.live) showRun();
}

// Beside each name: packets at the station, and whether it is off or stalled.
let listed = 0;
function showList() {
  if (performance.now() - listed < LIST_EVERY_MS && (state.playing || state.live)) return;
  listed = performance.now();
  for (const button of by("stations").querySelectorAll("button")) {
    const name = button.dataset.station, condition = conditionOf(name), packets = state.queues[name]?.packets ?? 0;
    button.setAttribute("aria-pressed", name === state.station);
    const key = `${packets}/${condition}`;
    if (button.dataset.shown === key) continue;
    button.dataset.shown = key;
    button.replaceChildren(name, packets ? element("small", {}, ` ${packets}`, element("span", { class: "sr" }, packets > 1 ? " packets" : " packet")) : "", condition ? element("small", { class: "bad" }, ` ${condition}`) : "");
  }
}

function pairs(rows) {
  return element("dl", {}, ...rows.filter(([, value]) => value !== null && value !== "").flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));
}

// Rate, SINR, attempt and place in its A-MPDU of a data frame, what the record has of them.
function radioOf(frame) {
  if (!frame) return [];
  const words = [`${modeOf(frame)} to ${frame.peer ?? "?"}`, frame.sinr_db == null ? "" : `SINR ${frame.sinr_db} dB`, frame.attempt > 1 ? `attempt ${frame.attempt}` : "", frame.aggregate ? `MPDU ${frame.aggregate}` : ""];
  return [["last data frame", words.filter((word) => word).join(", ")]];
}

function rateTable(rows) {
  const lines = rows.map((one) => element("tr", {}, element("td", {}, one.peer ?? "?"), element("td", {}, modeOf(one)), element("td", {}, String(one.frames)), element("td", {}, `${((100 * one.delivered) / one.frames).toFixed(0)} %`)));
  const head = element("tr", {}, ...["To", "Rate", "Data frames", "Arrived"].map((name) => element("th", { scope: "col" }, name)));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
}

// --- a station ------------------------------------------------------------------------------------------------------------------

async function showStation() {
  // live, its buttons and fields stay in place for a second: one that is replaced at each picture is hard to hit
  const moment = state.live ? `${state.live.second}/${state.station !== null && isOff(state.station, state.now)}` : Math.round(state.now / Math.max(state.span / 50, 1e5));
  const key = `${state.station}/${moment}/${state.station !== null && reservedUntil(state.station, null)}`;
  // what has the focus stays in place, but never beside a wrong word: the radio was switched
  const focused = by("station").contains(document.activeElement) ? document.activeElement.id : null, radio = `${state.station}/${state.live?.off.has(state.station)}`;
  if (key === stationKey || (focused !== null && !(state.live && radio !== radioShown))) return;
  [stationKey, radioShown] = [key, radio];
  const name = state.station;
  if (name === null) {
    by("station").replaceChildren(element("p", {}, "Choose a station here or on the map."));
    return;
  }
  const [x, y] = placeOf(name, state.now), off = isOff(name, state.now);
  const address = state.about.stations.find((one) => one.name === name)?.address ?? "";
  const rows = [["address", address], ["position", `${x.toFixed(1)}, ${y.toFixed(1)} m`], ["radio", off ? "off" : "on"]];
  if (conditionOf(name) === "stalled") rows.push(["stalled", "has packets and has sent no frame for 1 s"]);
  const children = [element("div", { class: "head" }, element("h3", {}, name), element("button", { type: "button", id: "station-menu", "aria-haspopup": "menu", onclick: (event) => openMenu(event, name) }, "Actions"))];
  if (state.live) {
    rows.push(["queued or sending", counted(state.queues[name]?.packets ?? 0, "packet")]);
    const nav = reservedUntil(name, null);
    rows.push(["NAV", nav === null ? "none" : `until ${seconds(nav - zero())}`], ...radioOf(state.live.data[name]));
    children.push(pairs(rows), ...(state.about.control ? controls(name, off, x, y) : []));
    by("station").replaceChildren(...children);
    if (focused) by(focused)?.focus();
    return;
  }
  try {
    const station = await ask(`station/${encodeURIComponent(name)}`, { t: Math.round(state.now) });
    if (state.station !== name) return;
    rows.push(["queued or sending", counted(station.queue.length, "packet")], ["sends now", station.sending ? `${station.sending.frame} to ${station.sending.peer}` : "nothing"]);
    const nav = reservedUntil(name, null);
    rows.push(["NAV", nav !== null ? `until ${seconds(nav - zero())}` : whyUnknown() || "none"], ...radioOf(station.data));
    const bar = element("meter", { min: 0, max: state.about.queue_packets ?? 50, value: station.queue.length, "aria-label": "packets queued" });
    children.push(pairs(rows), bar);
    if (station.queue.length) {
      children.push(element("h3", {}, "Queue"), element("ul", {}, ...station.queue.slice(0, 12).map((one) => element("li", {}, `packet ${one.packet}, ${one.bytes} bytes to ${one.peer}, since ${seconds(Number(one.since_ns) - zero(), 4)}`))));
    }
    if (station.rates.length) children.push(element("h3", {}, "Rates, whole run"), rateTable(station.rates));
    children.push(element("h3", {}, "Whole run"), pairs([...Object.entries(station.counts.sent).filter(([fate]) => fate).map(([fate, count]) => [`frames ${fate}`, count]), ...Object.entries(station.counts.drops).map(([why, count]) => [`drops ${why}`, count])]));
    by("station").replaceChildren(...children);
  } catch (problem) {
    notice(problem.message);
  }
}

function controls(name, off, x, y) {
  const done = (text) => () => { notice(""); speak(text); }, failed = (problem) => notice(problem.message);
  const at = (value) => element("input", { type: "number", step: "1", value: value.toFixed(0) });
  const [ax, ay] = [at(x), at(y)];
  ax.id = "move-x";
  const others = element("select", { "aria-label": "other end of the link" }, ...state.about.stations.filter((one) => one.name !== name).map((one) => element("option", {}, one.name)));
  const link = (rate, word) => () => act({ op: "link", from: name, to: others.value, error_rate: rate }).then(done(`link ${name} ${others.value} ${word}`), failed);
  return [
    element("h3", {}, "Act on the run"),
    element("p", {}, element("label", {}, "x, m ", ax), " ", element("label", {}, "y, m ", ay), " ", element("button", { type: "button", onclick: () => act({ op: "move", station: name, position: [Number(ax.value), Number(ay.value)] }).then(done(`${name} moved`), failed) }, "Move")),
    element("p", {}, element("button", { type: "button", id: "power", onclick: () => switchPower(name) }, off ? "Switch on" : "Switch off"), " ", element("button", { type: "button", id: "terminal", onclick: () => terminal.open(name) }, "Terminal")),
    element("p", {}, others, " ", element("button", { type: "button", onclick: link(1, "broken") }, "Break the link"), " ", element("button", { type: "button", onclick: link(0, "restored") }, "Restore it")),
  ];
}

// The menu of a station, at the pointer, or at what has the focus.
export function openMenu(event, name) {
  event.preventDefault();
  event.stopPropagation();
  const box = event.currentTarget.getBoundingClientRect(), byPointer = event.type === "contextmenu" && event.clientX > 0;
  const [x, y] = placeOf(name, state.now);
  menu.open(name, byPointer ? event.clientX : box.left, byPointer ? event.clientY : Math.min(box.bottom, window.innerHeight), {
    isOff: isOff(name, state.now), power: () => switchPower(name), terminal: (line) => terminal.open(name, line),
    centre: () => (showMap([x, y, mapShown()?.[2] ?? widthOfMap()]), change({ station: name })),
    move: async () => {
      change({ station: name });
      open("stations");
      await showStation();
      by("move-x")?.select();
    },
  });
}

function switchPower(name) {
  const on = state.live.off.has(name);
  act({ op: "power", station: name, on }).then(() => {
    if (!state.live) return;
    notice("");
    switched(name, on);
    listed = 0; // now, not with the next list
    speak(`${name} ${on ? "on" : "off"}`);
  }, (problem) => notice(problem.message));
}

// --- frames ---------------------------------------------------------------------------------------------------------------------

const LISTED = 24;
function showFrames() {
  const frames = windowOf(state.now - state.span / 2, state.now + state.span / 2);
  if (!frames || by("frames").contains(document.activeElement)) return;
  const middle = firstAt(frames, state.now), first = Math.max(0, middle - LISTED / 2), last = Math.min(frames.count, middle + LISTED / 2);
  const key = `${frames.row[first]}/${frames.row[last - 1]}/${state.row}/${frames.count}`;
  if (key === framesKey) return;
  framesKey = key;
  const rows = [];
  for (let at = first; at < last; at += 1) {
    const kind = kindOf(frames, at), row = frames.row[at], to = frames.peer[at] === BROADCAST ? "all" : state.about.stations[frames.peer[at]]?.name ?? "?";
    const lost = !["delivered", "broadcast", "unfinished"].includes(kind);
    rows.push(element("tr", { class: lost ? "lost" : null },
      element("td", {}, ((frames.t[at] - zero()) / 1e9).toFixed(6)),
      element("td", {}, element("button", { type: "button", "aria-label": `${FRAMES[frames.frame[at]]} of ${state.about.stations[frames.station[at]].name}`, onclick: () => showFrame(row) }, FRAMES[frames.frame[at]] + (frames.attempt[at] > 1 ? ` ${frames.attempt[at]}` : ""))),
      element("td", {}, `${state.about.stations[frames.station[at]].name} → ${to}`),
      element("td", {}, frames.flags[at] & 1 ? "delivered (capture)" : kind === "broadcast" ? `to ${frames.receivers[at]}` : FATES[frames.fate[at]])));
  }
  by("frames").tBodies[0].replaceChildren(...rows);
}

export async function showFrame(row, { move = true } = {}) {
  if (state.live) return;
  try {
    const frame = await ask(`frame/${row}`);
    if (move) goTo((Number(frame.t_ns) + Number(frame.end_ns)) / 2);
    change({ row });
    open("frames");
    const fate = frame.fate ? MEANING[frame.fate] ?? frame.fate : "";
    const parts = [
      element("h3", {}, `${frame.event === "drop" ? "Drop of " : ""}${frame.frame.toUpperCase()} ${frame.station} → ${frame.peer ?? "?"}`),
      pairs([
        ["fate", frame.event === "tx" ? fate || "none" : `${frame.event}${fate && `: ${fate}`}`], ["start", seconds(Number(frame.t_ns) - zero(), 9)],
        ["on the air", frame.airtime_ns ? `${(frame.airtime_ns / 1e3).toFixed(1)} µs` : null], ["attempt", frame.attempt], ["backoff", frame.backoff_slots === null ? null : `${frame.backoff_slots} slots`],
        ["bytes", frame.bytes], ["rate", frame.rate_bps ? modeOf(frame) : null], ["MPDU of an A-MPDU", frame.aggregate ?? null], ["access category", frame.category ?? null], ["SINR", frame.sinr_db == null ? null : `${frame.sinr_db} dB at ${frame.peer}`], ["power", frame.power_dbm === null ? null : `${frame.power_dbm} dBm at ${frame.peer}`], ["received by", frame.receivers === null ? null : counted(frame.receivers, "station")],
        ["packet", frame.packet || null], ["row of air.csv", frame.row], ["in the capture", frame.pcap ? `${frame.pcap.file}, packet ${frame.pcap.packet}` : null], ["comment", frame.pcap?.comment ?? null],
      ]),
    ];
    if (frame.overlaps.length) {
      parts.push(element("h3", {}, "On the air at the same time"), element("ul", {}, ...frame.overlaps.map((other) => element("li", {}, element("button", { type: "button", onclick: () => showFrame(other.row) }, `${other.frame} ${other.station} → ${other.peer ?? "?"}: ${other.fate ?? "broadcast"}`)))));
    }
    if (frame.packet) parts.push(element("p", {}, element("button", { type: "button", onclick: () => showPacket(frame.packet) }, `Story of packet ${frame.packet}`)));
    if (frame.pcap?.hex) parts.push(details("Bytes", dump(frame.pcap.hex)));
    if (frame.pcap?.fields.length) parts.push(details("Fields (tshark)", frame.pcap.fields.join("\n")));
    by("frame").replaceChildren(...parts);
    speak(`${frame.frame} from ${frame.station} to ${frame.peer}, ${fate}`);
  } catch (problem) {
    notice(problem.message);
  }
}

function details(title, text) {
  return element("details", {}, element("summary", {}, title), element("pre", { tabindex: "0" }, text));
}

function dump(hex) {
  const lines = [];
  for (let at = 0; at < hex.length; at += 32) {
    const bytes = hex.slice(at, at + 32).match(/../g);
    const text = bytes.map((byte) => Number.parseInt(byte, 16)).map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : ".")).join("");
    lines.push(`${(at / 2).toString(16).padStart(4, "0")}  ${bytes.join(" ").padEnd(48)} ${text}`);
  }
  return lines.join("\n");
}

async function showPacket(number) {
  try {
    const packet = await ask(`packet/${number}`);
    const rows = packet.rows.map((row) => element("li", {}, element("button", { type: "button", onclick: () => showFrame(row.row) }, `${seconds(Number(row.t_ns) - zero())} ${row.event} ${row.frame} ${row.station}${row.peer ? ` → ${row.peer}` : ""} ${row.fate ?? ""}`)));
    by("frame").append(element("h3", {}, `Packet ${number}`), element("ol", {}, ...rows));
    if (packet.segment) {
      const { flow, segment, ack } = packet.segment;
      by("frame").append(element("button", { type: "button", onclick: () => showStory(flow, segment) }, `${ack ? "ACK of segment" : "Segment"} ${segment} of ${flow}: its story`));
    }
  } catch (problem) {
    notice(problem.message);
  }
}

// --- the story ------------------------------------------------------------------------------------------------------------------

export async function showStory(flow, segment, { move = true } = {}) {
  await fill({ flow, segment });
  by("story-flow").value = flow;
  by("story-segment").value = segment;
  change({ flow, segment });
  const first = by("story-lines").querySelector("button[data-t]");
  if (first && move) goTo(Number(first.dataset.t));
}

async function showSentNow(flow) {
  change({ segment: null });
  await fill({ flow, t: (state.now - zero()) / 1e9, span: Math.min(2, Math.max(0.02, state.span / 1e9)) });
}

async function fill(words) {
  open("story");
  try {
    const story = await ask("story", words);
    by("story-title").textContent = story.title;
    const rows = story.lines.slice(1).map((line) => {
      const [, event, time, node, packet, words] = /^(\S+)\s+(-?[\d.]+)\s+(\S+)\s+(-|(?:\S+ \d+|SYN|FIN))\s*(.*)$/.exec(line) ?? [];
      if (!time) return element("tr", {}, element("td", { colspan: 5 }, line));
      const t = Number(time) * 1e9 + zero(), lost = event === "dropped" || /: (collision|hidden|weak|busy|error|nav)/.test(words);
      return element("tr", { class: lost ? "lost" : null }, element("td", {}, element("button", { type: "button", "data-t": t, onclick: () => goTo(t) }, time)), element("td", {}, event), element("td", {}, node), element("td", {}, packet), element("td", {}, words));
    });
    const head = element("tr", {}, ...["s", "Event", "Node", "Packet", "Details"].map((name) => element("th", { scope: "col" }, name)));
    by("story-lines").replaceChildren(element("table", { class: "story" }, element("thead", {}, head), element("tbody", {}, ...rows)));
  } catch (problem) {
    by("story-title").textContent = problem.message;
    by("story-lines").replaceChildren();
  }
}

// --- the run --------------------------------------------------------------------------------------------------------------------

function showRun() {
  const { about } = state, verdict = about.verdict ?? {}, late = (state.live?.lateness ?? verdict.lateness) || {};
  const rows = [
    ["verdict", `${state.live?.verdict ?? verdict.verdict ?? "none yet"}${verdict.reasons?.length ? `: ${verdict.reasons.join("; ")}` : ""}`],
    ["lateness", late.p50_us === undefined ? null : `median ${late.p50_us} µs, 99 % ${late.p99_us} µs, largest ${Math.round(late.max_us)} µs`],
    ["stalls", state.live?.stalls ?? verdict.stalls ?? null], ["radio", about.radio], ["routing", about.routing], ["status", about.status ?? null], ["error", about.error ?? null],
    ["frames not shown", state.live?.skipped || null], ["folder", about.directory],
  ];
  const flows = about.flows.map((flow) => {
    const path = state.paths.find((one) => one.flow === flow.name), live = state.live?.rates[flow.name];
    return element("li", {}, `${flow.name}: ${flow.source} to ${flow.target}, ${flow.transport === "tcp" ? flow.tcp ?? "TCP" : flow.traffic}${live !== undefined ? `, ${rate(live)} ${flow.transport === "tcp" ? "acknowledged" : "received"}` : ""}${path ? ` (${path.summary ?? ""})` : ""}`);
  });
  const events = (about.events ?? []).map((event) => element("li", {}, element("button", { type: "button", onclick: () => goTo(Number(event.t_s) * 1e9) }, seconds(Number(event.t_s) * 1e9 - zero(), 2)), ` ${eventWords(event)}${event.source === "view" ? " (by a view)" : ""}`));
  by("pane-verdict").replaceChildren(pairs(rows), element("h3", {}, "Flows"), element("ul", {}, ...flows), ...(events.length ? [element("h3", {}, "Events"), element("ul", {}, ...events)] : []));
}
