// The first page: runs under way, the last runs, and scenarios to look at and to start, each with a small picture.

import { act, ask } from "./api.js";
import { notice } from "./state.js";
import { counted, element, HOST, iconOf, rate, shape, withCode } from "./words.js";

const by = (id) => document.getElementById(id);
const WIDTH = 248, HEIGHT = 118, RATES = 26, EDGE = 16; // of a picture, px; of its line of rates; around the stations
const MAX_LINKS_OF = 60; // stations: among more, links would be a grey field
const MAX_GOING = 12, AT_ONCE = 2; // runs under way that are shown; pictures that are asked for

export async function show() {
  const { control, editor, results, under_way, runs, more, scenarios } = await ask("home");
  document.title = "manet view";
  by("home").hidden = false;
  by("run").hidden = by("keys").hidden = by("folder").hidden = true;
  by("about").textContent = "Wireless multi-hop networks: run them, see every frame, compare.";
  by("home-first").replaceChildren(...(editor ? [element("a", { class: "button", href: "edit", id: "draw" }, "Draw a network"), element("p", {}, "or start a scenario below. Runs go into ", element("code", {}, results), ".")] : [element("p", {}, "This page only shows. ", element("code", {}, "./manet view --control"), " also starts scenarios and draws networks.")]));
  const wanted = []; // [path, place of the picture, place of the facts] of cards without a picture
  const fill = (id, entries, make) => {
    by(`${id}-section`).hidden = entries.length === 0 && id !== "recent";
    by(id).replaceChildren(...entries.map((entry) => {
      const picture = element("div", { class: "picture" }), card = element("li", { class: "card" }, picture, ...make(entry));
      wanted.push([entry.path, picture, card.querySelector(".facts")]);
      return card;
    }));
  };
  fill("going", under_way.slice(0, MAX_GOING), cardOfRun);
  by("going-title").textContent = under_way.length > MAX_GOING ? `Under way: ${under_way.length}, of them ${MAX_GOING}` : "Under way";
  fill("recent", runs, cardOfRun);
  by("recent-none").hidden = runs.length > 0;
  by("recent-more").hidden = more === 0;
  by("recent-more").textContent = `${counted(more, "older run")} in ${results}: ./manet view FOLDER lists those of a folder.`;
  fill("scenarios", scenarios, (scenario) => cardOfScenario(scenario, control));
  await Promise.all(Array.from({ length: AT_ONCE }, () => drawNext(wanted)));
}

function linkTo(path, ...words) {
  return element("h3", {}, element("a", { href: `#run=${encodeURIComponent(path)}` }, ...words));
}

function cardOfRun({ path, title, status, verdict, started, error }) {
  const word = verdict ?? status ?? "unreadable", when = started ? new Date(started).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "";
  return [linkTo(path, title ?? path), element("p", { class: "facts" }, element("span", { class: `badge ${verdict ?? ""}` }, word), when ? ` ${when}` : "", error ? ` ${error}` : "")];
}

function cardOfScenario({ path, name, text }, control) {
  const start = control ? element("button", { type: "button", "aria-label": `Start ${name}`, onclick: () => startIt(path) }, "Start") : null;
  return [linkTo(path, name), element("p", {}, ...withCode(text)), element("p", { class: "facts" }, start)];
}

async function startIt(path) {
  try {
    await act({ op: "start" }, path);
    location.hash = `run=${encodeURIComponent(path)}`; // the page loads again and follows it
  } catch (problem) {
    notice(problem.message);
  }
}

async function drawNext(wanted) {
  for (let next = wanted.shift(); next; next = wanted.shift()) {
    const [path, place, facts] = next;
    try {
      const picture = await ask("picture", { of: path });
      place.append(drawing(picture));
      facts.append(...factsOf(picture).map((fact) => element("span", { class: "fact" }, fact)));
    } catch (problem) {
      place.append(element("p", {}, problem.message));
    }
  }
}

function factsOf({ stations, seconds, bps, radio, routing }) {
  return [bps === null ? "" : rate(bps), counted(stations.length, "station"), seconds === null ? "" : `${+seconds.toFixed(1)} s`, seconds === null ? "" : routing ?? radio].filter(Boolean);
}

// Stations with their links and flows, below them the rates over time.
function drawing({ stations, hosts, flows, walls, range_m: range, by_second: rates }) {
  const foot = rates.length > 1 ? HEIGHT - RATES : HEIGHT, xs = stations.map(([x]) => x), ys = stations.map(([, y]) => y), more = hosts.length ? 14 : 0;
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const perMetre = Math.min((WIDTH - 2 * EDGE) / (x1 - x0 || 1), (foot - 2 * EDGE - more) / (y1 - y0 || 1));
  const at = ([x, y]) => [WIDTH / 2 + (x - (x0 + x1) / 2) * perMetre, (foot - more) / 2 - (y - (y0 + y1) / 2) * perMetre];
  const points = stations.map(at), r = stations.length > 20 ? 2.6 : 4.5, nodes = [];
  if (range && stations.length <= MAX_LINKS_OF) {
    const links = [];
    for (let a = 0; a < stations.length; a += 1) for (let b = a + 1; b < stations.length; b += 1) if (Math.hypot(xs[a] - xs[b], ys[a] - ys[b]) <= range) links.push(`M${points[a]}L${points[b]}`);
    nodes.push(shape("path", { class: "links", d: links.join("") }));
  }
  for (const [a, b, c, d] of walls) nodes.push(shape("path", { class: "wall", d: `M${at([a, b])}L${at([c, d])}` }));
  flows.slice(0, 6).forEach(([from, to], place) => {
    const [[x, y], [u, v]] = [points[from], points[to]], length = Math.hypot(u - x, v - y) || 1, bow = Math.min(16, length / 6) + 3 * place;
    const arc = shape("path", { class: "flow", d: `M${x} ${y}Q${(x + u) / 2 + ((v - y) / length) * bow} ${(y + v) / 2 - ((u - x) / length) * bow} ${u} ${v}` });
    arc.style.stroke = `var(--flow${place + 1})`;
    nodes.push(arc);
  });
  for (const place of hosts) {
    const [x, y] = points[place];
    nodes.push(shape("path", { class: "wire", d: `M${x} ${y}v${r + 10}` }), iconOf(HOST, x, y + r + 12, r));
  }
  stations.forEach(([, , role], place) => nodes.push(iconOf(role, ...points[place], r)));
  if (rates.length > 1) {
    const most = Math.max(1, ...rates), line = rates.map((value, second) => `L${((second * WIDTH) / (rates.length - 1)).toFixed(1)} ${(HEIGHT - (RATES - 4) * (value / most)).toFixed(1)}`);
    nodes.push(shape("path", { class: "rates", d: `M0 ${HEIGHT}${line.join("")}L${WIDTH} ${HEIGHT}Z` }));
  }
  const words = `${counted(stations.length, "station")}, ${counted(flows.length, "flow")}${rates.length > 1 ? ", throughput over time" : ""}`;
  return shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words }, ...nodes);
}
