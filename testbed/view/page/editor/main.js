// The editor of scenarios: the map, the forms and the text show one document, which the server has; each change goes there first.

import { token } from "../api.js";
import * as settings from "../settings.js";
import { element, hopsOf, HOST, iconOf, ROLES, shape } from "../words.js";
import * as events from "./events.js";
import * as forms from "./forms.js";
import * as map from "./map.js";
import { ask, fileUrl, post, Refused } from "./server.js";
import * as text from "./text.js";
import * as tools from "./tools.js";

const by = (id) => document.getElementById(id);
const POLL_MS = 1500;
const state = { version: 0, values: {}, picture: null, problem: null, pictures: [], background: null };
let queue = Promise.resolve(), checked = 0, lost = false, waiting = 0;

function notice(line, good = false) {
  by("notice").textContent = line;
  by("notice").hidden = !line;
  by("notice").classList.toggle("good", good);
}

// What there is to say when a request went well: what is not safe yet stays.
function settled() {
  lost = false;
  notice(state.draft_error ? `Not safe yet: ${state.draft_error}` : "");
}

function speak(line) {
  by("speech").textContent = line;
}

// --- the document ---------------------------------------------------------------------------------------------------------------

// One change after the other, each on the version that the one before has left, and behind what was typed before it. Whether the
// server has taken it. Without an operation: what was typed.
function change(operation) {
  waiting += 1;
  showSaved();
  const done = queue.then(async () => {
    const taken = await sendText();
    return operation ? carryOut(operation) : taken;
  }).finally(() => ((waiting -= 1), showSaved()));
  queue = done.catch(() => {}); // a fault of the page must not stop what comes after it
  return done;
}

async function carryOut(operation) {
  try {
    adopt(await answeredAtLast(() => post("change", { operation, version: state.version })), true);
    settled();
    return true;
  } catch (problem) {
    refused(problem, operation);
    return false;
  }
}

// Another tab was faster, and something was typed here: neither is dropped without a question.
async function sendText() {
  for (let joins = text.joins(); text.isPending(); ) {
    if (!text.isBasedOn(state.text)) {
      if (await question("Another tab, or the map, has changed the scenario while you typed here. Keep the text of this tab? “No” shows the other text; Undo leads to it as well.")) (joins = false), text.rebase(state.text);
      else text.reset(state.text);
      continue;
    }
    const mine = text.now();
    try {
      const now = await answeredAtLast(() => post("change", { operation: { op: "text", text: mine, joins }, version: state.version }));
      text.sent(now.text);
      adopt(now);
      settled();
    } catch (problem) {
      if (!problem.body?.state) return refused(problem), false;
      if (problem.body.state.text === mine) text.sent(mine); // its first answer was lost on the way
      adopt(problem.body.state);
    }
  }
  return true;
}

// While no server answers, a change waits here, and what is drawn and typed after it behind it: the tab asks before it closes.
async function answeredAtLast(request) {
  for (;;) {
    try {
      return await request();
    } catch (problem) {
      if (!problem.isLost) throw problem;
      refused(problem);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

function refused(problem, operation) {
  if (!(problem instanceof Refused)) throw problem;
  lost = problem.isLost;
  if (problem.body.state) adopt(problem.body.state);
  notice(lost && state.draft_error ? `${problem.message} The draft could not be written: copy the text from here.` : problem.message);
  if (!problem.body.state && !lost && operation) check(); // the map may show what was refused
}

// `isOurs`: the state after a change made here, of the one before it.
function adopt(now, isOurs = false) {
  const fresh = now.version !== state.version, merges = isOurs && text.isBasedOn(state.text ?? "");
  Object.assign(state, now);
  text.show(now.text, merges);
  forms.show(now.values);
  events.show(now.values, state.picture);
  by("title").textContent = `Edit ${now.name}`;
  document.title = `${now.saved ? "" : "* "}${now.name} - manet view`;
  by("file").textContent = `${now.folder}/${now.name}${now.base ? `, based on ${now.base}` : ""}`;
  by("undo").disabled = !now.can_undo;
  by("redo").disabled = !now.can_redo;
  if (document.activeElement !== by("save-name")) by("save-name").value = now.name;
  showSaved();
  if (now.draft !== null) return void askAboutDraft(now);
  if (fresh) check();
  loadBackground(now.background);
}

function showSaved() {
  const clean = state.saved && !text.isPending() && !waiting;
  by("saved").textContent = clean ? (state.exists ? "saved" : "new") : state.draft_error ? "not safe" : "not saved";
  by("saved").className = `badge ${clean ? "valid" : "suspect"}`;
}

// `safe`: the answer that has the focus, as a hand on the keyboard may be typing.
let answered = Promise.resolve();
function question(line, safe = "yes") {
  answered = answered.then(() => new Promise((resolve) => {
    by("question-text").textContent = line;
    by("question").hidden = false;
    const end = (yes) => () => {
      by("question").hidden = true;
      by("yes").onclick = by("no").onclick = null;
      resolve(yes);
    };
    [by("yes").onclick, by("no").onclick] = [end(true), end(false)];
    by(safe).focus();
  }));
  return answered;
}

let asking = false;
async function askAboutDraft(now) {
  if (asking) return;
  asking = true;
  const take = await question(`A draft of ${now.name} holds work that was never saved (${now.draft.split("\n").length} lines). Take it? “No” removes it.`);
  asking = false;
  try {
    adopt(await post("draft", { take }));
  } catch (problem) {
    refused(problem);
    adopt(await ask("state"));
  }
}

// --- what the check says --------------------------------------------------------------------------------------------------------

let checking = 0;
async function check() {
  const mine = (checked += 1);
  checking += 1;
  await new Promise((resolve) => setTimeout(resolve, 60));
  try {
    if (mine !== checked) return;
    const found = await ask("check");
    if (mine !== checked) return;
    if (found.version !== state.version) return void poll();
    Object.assign(state, { picture: found.picture ?? state.picture, problem: found.problem });
    redraw();
  } catch (problem) {
    refused(problem);
  } finally {
    checking -= 1;
  }
}

// Whether nothing is set: what `manet run` would refuse then is no mistake of the user's.
function isBlank() {
  return (state.text ?? "").split("\n").every((line) => /^\s*(#|$)/.test(line));
}

// Stations whose drawn walk ends after the traffic: nobody sees the rest of it.
function lateWalks() {
  const { picture, values } = state;
  if (values.mobility?.model !== "schedule" || !picture?.movement) return [];
  const ends = Object.entries(picture.movement).map(([name, rows]) => [name, rows.at(-1)[0] / 1e9 - (picture.traffic_s ?? 0)]);
  return ends.filter(([, end]) => end > picture.seconds).slice(0, 3).map(([name, end]) => `${name} arrives at ${Math.round(end)} s, after the ${picture.seconds} s of traffic: walk faster, or raise duration`);
}

function redraw() {
  map.show(state.picture, state.background && pictureOf(state.background));
  tools.renew();
  events.show(state.values, state.picture);
  by("nodes").replaceChildren(...map.nodes().map((name) => element("option", { value: name })));
  const { problem, picture } = state, line = by("verdict-line");
  line.className = !problem ? "good" : isBlank() ? "" : "bad";
  if (problem && isBlank()) line.textContent = "Nothing is drawn yet: click on the map where stations stand, or take Chain, Grid or Random for many at once.";
  else if (problem) {
    const key = problem.path.length ? problem.path.join(".") : "", where = [problem.line ? `line ${problem.line}` : "", key].filter(Boolean).join(", ");
    line.replaceChildren(`${where ? `${where}: ` : ""}${problem.text}`, ...(key ? [element("button", { type: "button", onclick: () => revealKey(problem.path) }, "show the key")] : []), ...(problem.line ? [element("button", { type: "button", onclick: () => (showPane("text"), text.goTo(problem.line)) }, "show the line")] : []));
  } else line.textContent = "The check of manet run takes this scenario.";
  forms.mark(isBlank() ? null : problem);
  text.mark(isBlank() ? null : problem);
  const links = picture?.links, parts = [`${picture?.stations?.length ?? 0} stations`];
  if (links) parts.push(`${links.length} links`);
  if (picture?.range_m) parts.push(`range ${Math.round(picture.range_m)} m (solid)`);
  if (picture?.sense_m) parts.push(`carrier sense ${Math.round(picture.sense_m)} m (dashed)`);
  for (const flow of picture?.flows?.slice(0, 6) ?? []) parts.push(`${flow.name} ${flow.source} → ${flow.target}: ${hopsOf(flow.hops)}`);
  parts.push(...lateWalks());
  if (picture?.note) parts.push(picture.note);
  const samples = picture?.wires?.length ? ["gateway", HOST].flatMap((role) => [" · ", shape("svg", { viewBox: "0 0 15 15", "aria-hidden": "true" }, iconOf(role, 7.5, 7.5, 4.5)), ROLES[role]]) : [];
  by("legend-line").replaceChildren(parts.join(" · "), ...samples);
}

const pictures = new Map();
async function loadBackground(background) {
  if (!background || pictures.has(background.file)) return;
  pictures.set(background.file, null);
  try {
    const image = new Image(), url = await fileUrl("background");
    image.src = url;
    await image.decode();
    pictures.set(background.file, { url, ratio: image.naturalHeight / image.naturalWidth });
    redraw();
  } catch (problem) {
    pictures.delete(background.file);
    notice(problem.message);
  }
}

function pictureOf(background) {
  const loaded = pictures.get(background.file);
  return loaded ? { ...background, url: loaded.url, height: background.width * loaded.ratio } : null;
}

// --- files and runs -------------------------------------------------------------------------------------------------------------

// What is typed in a field counts as entered.
function enter() {
  const field = document.activeElement;
  if (field?.closest?.("#forms")) field.blur(), field.focus();
}

// All that was drawn, typed and entered is with the server.
async function arrived() {
  enter();
  await text.flush();
  await queue;
}

async function save(name = null, overwrite = false) {
  await arrived();
  try {
    adopt(await post("save", { name, version: state.version, overwrite }));
    settled();
    speak(`${state.name} is saved`);
    return true;
  } catch (problem) {
    if (problem.body?.question && (await question(problem.message, "no"))) return save(name, true);
    if (!problem.body?.question) refused(problem);
    return false;
  }
}

async function start(event) {
  event.preventDefault();
  await arrived();
  if ((!state.saved || !state.exists || text.isPending()) && !(await save())) return;
  showPane("text"); // the list of runs is below it
  try {
    showRuns(await post("start", { seeds: Number(by("seeds").value) }));
  } catch (problem) {
    refused(problem);
  }
}

let wasRunning = false, shownRuns = "";
function showRuns(now) {
  by("start").disabled = !now.control || now.running;
  by("start-why").textContent = now.control ? "" : "read-only: start with --control";
  by("stop").hidden = !now.running;
  by("runs-section").hidden = !now.folder;
  if (!now.folder) return;
  by("runs-folder").textContent = now.folder;
  const rows = JSON.stringify([now.runs, now.figures]);
  if (rows !== shownRuns) { // else what has the focus stays
    shownRuns = rows;
    by("runs").replaceChildren(...now.runs.map((run) => element("li", {}, element("a", { href: `./#run=${encodeURIComponent(run.path)}`, "data-view": "" }, run.path), ` ${run.status ?? ""}${run.verdict ? `, ${run.verdict}` : ""}${run.error ? `, ${run.error}` : ""} `, run.status === "complete" ? element("button", { type: "button", onclick: () => openFigure(`plot?run=${encodeURIComponent(run.path)}`, `flow 1 of ${run.path}`) }, "figure") : "")));
    by("figures").replaceChildren(...now.figures.flatMap((name) => [element("button", { type: "button", onclick: () => openFigure(`figure/${encodeURIComponent(name)}`, name) }, name), " "]));
  }
  if (by("printed").textContent !== now.printed) by("printed").textContent = now.printed;
  if (now.failure) notice(now.failure);
  if (wasRunning && !now.running) speak(now.failure ? "the runs have failed" : "the runs have ended");
  wasRunning = now.running;
}

let figureUrl = null; // of the figure that is shown: the browser keeps a picture until its address is given back
async function openFigure(path, name) {
  try {
    const url = await fileUrl(path);
    if (figureUrl) URL.revokeObjectURL(figureUrl);
    figureUrl = url;
    by("figure").replaceChildren(element("img", { src: url, alt: `figure of ${name}` }));
    by("figure").firstChild.scrollIntoView?.({ block: "nearest" });
  } catch (problem) {
    refused(problem);
  }
}

// The view of the same server needs the token, which a new tab does not have.
function openView(event) {
  const link = event.target.closest("a[data-view], #open-view");
  if (!link) return;
  event.preventDefault();
  const hash = link.getAttribute("href").split("#")[1];
  window.open(`./?token=${encodeURIComponent(token)}${hash ? `#${hash}` : ""}`, "_blank");
}

async function poll() {
  try {
    const unsafe = state.draft_error, now = await ask(`state?after=${unsafe ? 0 : state.version}`);
    if (lost) settled();
    if (now.text !== undefined && !waiting) {
      const elsewhere = now.version !== state.version;
      if (elsewhere && text.isPending()) await text.flush();
      else adopt(now), elsewhere && speak("another tab has changed the scenario");
      if (unsafe !== state.draft_error) settled();
    }
    showRuns(await ask("runs"));
  } catch (problem) {
    refused(problem);
  }
}

// --- panes ----------------------------------------------------------------------------------------------------------------------

function showPane(name, isShown = true) {
  by("desk").classList.toggle(`without-${name}`, !isShown);
  for (const button of by("panes").children) if (button.dataset.pane === name) button.setAttribute("aria-pressed", isShown);
}

function switchPane(event) {
  const button = event.target.closest("[data-pane]");
  if (!button) return;
  showPane(button.dataset.pane, button.getAttribute("aria-pressed") !== "true");
  settings.keepClosedPanes([...by("panes").children].filter((one) => one.getAttribute("aria-pressed") !== "true").map((one) => one.dataset.pane));
}

function revealKey(path) {
  showPane("keys");
  return forms.reveal(path);
}

// --- start ----------------------------------------------------------------------------------------------------------------------

// One step back or forth, unless there is none.
function step(op) {
  if (by(op).disabled && !waiting && !text.isPending()) return speak(`there is nothing to ${op}`);
  return change({ op });
}

function setUpPage() {
  const theme = () => (document.documentElement.dataset.theme = settings.theme());
  theme();
  settings.onSystemTheme(theme);
  for (const name of settings.closedPanes()) showPane(name, false);
  by("panes").addEventListener("click", switchPane);
  by("theme").addEventListener("click", () => settings.switchTheme());
  by("undo").addEventListener("click", () => change({ op: "undo" }));
  by("redo").addEventListener("click", () => change({ op: "redo" }));
  by("save").addEventListener("click", () => save());
  by("save-as").addEventListener("submit", (event) => (event.preventDefault(), save(by("save-name").value.trim())));
  by("start-form").addEventListener("submit", start);
  by("stop").addEventListener("click", () => post("stop", {}).then(showRuns, refused));
  by("runs-section").addEventListener("click", openView);
  by("find").addEventListener("input", () => forms.filter(by("find").value, by("only-set").checked));
  by("only-set").addEventListener("change", () => forms.filter(by("find").value, by("only-set").checked));
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase(), inField = event.target.matches?.("input[type=text], input[type=search], input:not([type])") && event.target.value !== event.target.defaultValue;
    if (key === "s") event.preventDefault(), save();
    else if (inField) return;
    else if (key === "z" || key === "y") event.preventDefault(), step(key === "y" || event.shiftKey ? "redo" : "undo");
  });
  window.addEventListener("beforeunload", (event) => {
    enter();
    if (state.saved && !text.isPending() && !waiting) return;
    event.preventDefault();
    event.returnValue = true; // for browsers before 2024
  });
}

async function begin() {
  setUpPage();
  try {
    const [{ groups }, files, now] = await Promise.all([ask("form"), ask("files"), ask("state")]);
    state.pictures = files.pictures;
    const fields = groups.flatMap((group) => group.fields), flow = fields.find((field) => field.key === "flows");
    const kinds = flow?.item.fields.find((field) => field.key === "traffic")?.names ?? ["bulk"];
    text.setUp(by("text"), () => change(null));
    forms.setUp(by("forms"), groups, change, map.stations);
    tools.setUp(change, () => state, speak, kinds, fields.find((field) => field.key === "nodes").maximum);
    events.setUp(change, revealKey);
    adopt(now);
    if (isBlank()) tools.take("station");
    setInterval(poll, POLL_MS);
    poll();
    window.manetEditor = { state, map, change, text, busy: () => waiting > 0 || text.isPending() || checking > 0 };
  } catch (problem) {
    notice(problem.message);
  }
}

begin();
