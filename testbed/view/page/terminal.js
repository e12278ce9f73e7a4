// A terminal for each station (docs/view.md): each line is a command of its own, whose output xterm.js draws and which gets its keys.
//
// The line is typed in a field of the page, so that nothing that a program writes can be taken for a line. The page's policy forbids style
// elements with text (Content-Security-Policy); xterm.js gets a document that gives it style sheets of its own instead.

import { socketAddress } from "./api.js";
import { notice, speak } from "./state.js";
import { element } from "./words.js";

const by = (id) => document.getElementById(id);
const SCROLLBACK = 2000, MAX_HISTORY = 200, NARROWEST = 2;
// back to lines: no alternate screen, no mouse, no bracketed paste, no colour; the cursor is shown
const RESET = "\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[!p\x1b[0m";
const sessions = new Map(); // by station, in the order in which they were opened
let xterm = null, shown = null;

// `line`: what stands in the field, for the user to start.
export async function open(station, line = "") {
  try {
    await load();
  } catch {
    notice("The terminal could not be loaded; reload the page.");
    return;
  }
  by("terminals").hidden = false;
  if (!sessions.has(station)) sessions.set(station, new Session(station));
  show(station);
  if (line) by("terminal-line").value = line;
}

async function load() {
  if (xterm) return;
  const [{ Terminal }, { FitAddon }] = await Promise.all([import("./vendor/xterm/xterm.esm.js"), import("./vendor/xterm/addon-fit.esm.js")]);
  xterm = { Terminal, FitAddon };
  by("terminal-line").addEventListener("keydown", keys);
  by("terminal-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessions.get(shown)?.start(by("terminal-line").value);
  });
  by("terminal-close").addEventListener("click", () => sessions.get(shown)?.close());
  new ResizeObserver(() => sessions.get(shown)?.fit()).observe(by("terminal-screens"));
}

function show(station) {
  shown = station;
  for (const [name, session] of sessions) session.screen.hidden = name !== station;
  by("terminal-tabs").replaceChildren(...[...sessions.keys()].map((name) => element("button", { type: "button", "aria-pressed": name === station, onclick: () => show(name) }, name)));
  by("terminals").hidden = sessions.size === 0;
  const session = sessions.get(station);
  if (!session) return;
  session.fit();
  session.tell();
}

// Lines before, and what a terminal does with these keys; the field does the rest.
function keys(event) {
  const session = sessions.get(shown), field = event.target;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    event.preventDefault();
    session.recall(event.key === "ArrowUp" ? -1 : 1);
  } else if (event.ctrlKey && event.key === "l") {
    event.preventDefault();
    session.terminal.clear();
  } else if (event.ctrlKey && event.key === "c" && field.selectionStart === field.selectionEnd) {
    event.preventDefault();
    field.value = "";
  }
}

class Session {
  constructor(station) {
    this.station = station;
    this.running = false;
    this.history = [];
    this.place = 0; // in the history
    this.sheets = [];
    this.screen = element("div", { class: "screen" });
    by("terminal-screens").append(this.screen);
    this.terminal = new xterm.Terminal({
      documentOverride: documentWith(this.sheets), scrollback: SCROLLBACK, fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace', fontSize: 13,
      linkHandler: { activate: () => {} }, // a link of a program's output (OSC 8) leads nowhere
      windowOptions: {}, screenReaderMode: true, cursorBlink: false, theme: { background: "#101317", foreground: "#e8eaed" },
    });
    this.fitter = new xterm.FitAddon();
    this.terminal.loadAddon(this.fitter);
    this.terminal.attachCustomKeyEventHandler((event) => this.copiesOrPastes(event));
    document.createElement = (name, ...rest) => (name === "style" ? sheetElement(this.sheets) : Document.prototype.createElement.call(document, name, ...rest));
    try {
      this.terminal.open(this.screen); // a part of it takes no other document
    } finally {
      delete document.createElement;
    }
    this.terminal.onData((keys) => this.running && this.socket?.readyState === WebSocket.OPEN && this.socket.send(new TextEncoder().encode(keys)));
    this.terminal.onResize(() => this.running && this.send({}));
    this.connect();
  }

  connect() {
    this.socket = new WebSocket(socketAddress("terminal", { station: this.station }));
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => (typeof data === "string" ? this.hear(JSON.parse(data)) : this.terminal.write(new Uint8Array(data)));
    this.socket.onclose = ({ reason }) => {
      if (!sessions.has(this.station)) return;
      this.say(reason || "The connection is lost.");
      this.end();
    };
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ ...message, columns: Math.max(NARROWEST, this.terminal.cols), lines: this.terminal.rows }));
  }

  start(line) {
    if (this.running || !line.trim()) return;
    if (this.socket.readyState === WebSocket.CLOSED) this.connect(); // the next line works
    if (this.socket.readyState !== WebSocket.OPEN) return;
    if (this.history.at(-1) !== line) this.history.push(line);
    if (this.history.length > MAX_HISTORY) this.history.shift();
    this.place = this.history.length;
    this.terminal.writeln(`\x1b[1m${this.station}$ ${printable(line)}\x1b[0m`);
    by("terminal-line").value = "";
    this.running = true;
    this.send({ line });
    this.tell();
  }

  hear({ error, exited }) {
    if (error !== undefined) this.say(error);
    if (exited !== undefined && exited !== 0) this.say(exited < 0 ? `ended by signal ${-exited}` : `status ${exited}`);
    if (error !== undefined || exited !== undefined) this.end();
  }

  // A line of the page's own, on a line of its own.
  say(text) {
    this.terminal.write(RESET);
    if (this.terminal.buffer.active.cursorX) this.terminal.write("\r\n");
    this.terminal.writeln(`\x1b[2m[${printable(text)}]\x1b[0m`);
    speak(`${this.station}: ${text}`);
  }

  end() {
    this.running = false;
    this.terminal.write(RESET);
    if (this.station === shown) this.tell();
  }

  // Who has the keys: the command, or the line.
  tell() {
    by("terminal-line").disabled = by("terminal-run").disabled = this.running;
    by("terminal-prompt").textContent = `${this.station}$`;
    if (this.running) this.terminal.focus(); else by("terminal-line").focus();
  }

  recall(step) {
    this.place = Math.min(Math.max(this.place + step, 0), this.history.length);
    by("terminal-line").value = this.history[this.place] ?? "";
  }

  // Ctrl-Shift-C and Ctrl-Shift-V are the browser's, as in other terminals; Tab leaves the terminal while nothing runs.
  copiesOrPastes(event) {
    if (event.type === "keydown" && event.ctrlKey && event.shiftKey && event.key === "C") {
      navigator.clipboard?.writeText(this.terminal.getSelection()).catch(() => {});
      event.preventDefault();
      return false;
    }
    return !(event.ctrlKey && event.shiftKey && event.key === "V") && !(event.key === "Tab" && !this.running);
  }

  fit() {
    if (!this.screen.hidden && by("terminals").offsetHeight) this.fitter.fit();
  }

  // A command that runs is hung up.
  close() {
    sessions.delete(this.station);
    this.socket.close();
    this.terminal.dispose();
    this.screen.remove();
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !this.sheets.includes(sheet));
    show([...sessions.keys()].at(-1) ?? null);
  }
}

// Without control characters, which would be the terminal's.
function printable(text) {
  return text.replace(/[\x00-\x1f\x7f-\x9f]/g, "?");
}

// The document, but for styles as text: those of style elements become style sheets and those of cells properties, which the page's policy
// allows.
function documentWith(sheets) {
  return new Proxy(document, {
    get(target, key) {
      if (key === "createElement") return (name, ...rest) => (name === "style" ? sheetElement(sheets) : name === "span" ? cell(target) : target.createElement(name, ...rest));
      const value = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

// In place of a style element; the policy refuses an empty one, too.
function sheetElement(sheets) {
  const node = element("div", { hidden: "" }), sheet = new CSSStyleSheet();
  sheets.push(sheet);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(node, "textContent", { get: () => "", set: (text) => sheet.replaceSync(text) });
  return node;
}

function cell(target) {
  const node = target.createElement("span");
  node.setAttribute = (name, value) => (name === "style" ? void (node.style.cssText = value) : Element.prototype.setAttribute.call(node, name, value));
  return node;
}

// For tests: what the terminals show, as text.
export function texts() {
  return Object.fromEntries([...sessions].map(([name, { terminal, running }]) => {
    const { active } = terminal.buffer, lines = Array.from({ length: active.length }, (_, at) => active.getLine(at)?.translateToString(true) ?? "");
    return [name, { running, text: lines.join("\n").trimEnd() }];
  }));
}
