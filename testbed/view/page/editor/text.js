// The TOML text: CodeMirror in a shadow root, because its styles then are constructed sheets, which the page's policy allows.

import { Annotation, defaultKeymap, drawSelection, EditorState, EditorView, highlightActiveLine, HighlightStyle, keymap, lineNumbers, lintGutter, setDiagnostics, StreamLanguage, syntaxHighlighting, tags, toml } from "./vendor/codemirror.js";

const AFTER_MS = 300; // of rest, until what was typed is sent
const JOINED_MS = 1200; // typing with shorter rests is one step of undo
const ours = Annotation.define();
const look = EditorView.theme({
  "&": { height: "100%", width: "100%", color: "var(--ink)", backgroundColor: "var(--field)", fontSize: "13px" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace', overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 9%, transparent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--accent) 28%, transparent) !important" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)" },
});
const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--flow5)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--accent)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--ink)", fontWeight: "bold" },
]);

// `base`: the server's text from which what is here was typed. Where the server's text is another one by now, both count until the
// user has said which.
let view = null, timer = null, sentMs = 0, base = "", send = () => {};

// `onRest()`: after a rest of typing; sends what was typed, and returns when the server has it.
export function setUp(host, onRest) {
  send = onRest;
  const root = host.attachShadow({ mode: "open" }), box = document.createElement("div");
  box.className = "box";
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".box { flex: 1; min-width: 0; height: 100%; }");
  root.append(box);
  const state = EditorState.create({
    extensions: [
      lineNumbers(), drawSelection(), highlightActiveLine(), lintGutter(), StreamLanguage.define(toml), syntaxHighlighting(colours), look,
      keymap.of(defaultKeymap.filter((one) => !/Mod-z|Mod-y|Mod-s/.test(one.key ?? ""))), EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "The scenario as TOML. Escape, then Tab, leaves it.", tabindex: "0" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !update.transactions.some((one) => one.annotation(ours))) changed();
      }),
    ],
  });
  view = new EditorView({ state, parent: box, root });
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}

function changed() {
  clearTimeout(timer);
  timer = setTimeout(() => send(), AFTER_MS);
}

// Send what was typed now. Also before any other change, so that none is made on an older text.
export async function flush() {
  clearTimeout(timer);
  if (isPending()) await send();
}

// Whether something was typed that the server does not have yet.
export function isPending() {
  return now() !== base;
}

export function isBasedOn(text) {
  return plain(text) === base;
}

// What is typed here counts, as typed into `text`.
export function rebase(text) {
  base = plain(text);
}

// What is typed here is dropped, after a question.
export function reset(text) {
  clearTimeout(timer);
  replace(now(), plain(text));
  base = plain(text);
}

export function now() {
  return view.state.doc.toString();
}

// Whether what was typed joins what was sent before it to one step of undo.
export function joins() {
  return performance.now() - sentMs < JOINED_MS;
}

// The server has `text`, which was sent from here; more may have been typed since.
export function sent(text) {
  sentMs = performance.now();
  base = plain(text);
}

// Show the server's text. What was typed meanwhile stays; `merges`: the text is the base after a change made here, which is taken
// over beside what was typed unless both are in the same lines.
export function show(text, merges) {
  const wanted = plain(text), old = now();
  if (old === base || old === wanted) replace(old, wanted);
  else {
    if (!merges) return;
    const mine = difference(base, old), theirs = difference(base, wanted), [here, there] = [mine, theirs].map((one) => linesOf(base, one));
    if (there.begin <= here.end && here.begin <= there.end) return;
    const shift = there.begin > here.end ? mine.insert.length - (mine.end - mine.begin) : 0;
    put(theirs.begin + shift, theirs.end + shift, theirs.insert);
  }
  base = wanted;
}

const plain = (text) => text.replace(/\r\n?/g, "\n"); // as the editor has it

// Only what differs is replaced, so that cursor and scroll stay.
function replace(old, text) {
  const { begin, end, insert } = difference(old, text);
  if (old !== text) put(begin, end, insert);
}

function put(from, to, insert) {
  view.dispatch({ changes: { from, to, insert }, annotations: ours.of(true) });
}

function difference(old, text) {
  let begin = 0, end = old.length, last = text.length;
  while (begin < end && begin < last && old[begin] === text[begin]) begin += 1;
  while (end > begin && last > begin && old[end - 1] === text[last - 1]) (end -= 1), (last -= 1);
  return { begin, end, insert: text.slice(begin, last) };
}

function linesOf(text, { begin, end }) {
  const behind = text.indexOf("\n", end);
  return { begin: text.lastIndexOf("\n", begin - 1) + 1, end: behind < 0 ? text.length : behind };
}

// The line of what is refused, if it has one.
export function mark(problem) {
  const lines = view.state.doc.lines, found = [];
  if (problem?.line) {
    const line = view.state.doc.line(Math.min(lines, Math.max(1, problem.line)));
    found.push({ from: line.from, to: line.to, severity: "error", message: problem.text });
  }
  view.dispatch(setDiagnostics(view.state, found));
}

export function goTo(number) {
  const line = view.state.doc.line(Math.min(view.state.doc.lines, Math.max(1, number)));
  view.dispatch({ selection: { anchor: line.from }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
  view.focus();
}
