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

let view = null, timer = null, typed = 0, pending = false, send = () => {};

// `onText(text, joins)`: what was typed, after a rest; returns when the server has it.
export function setUp(host, onText) {
  send = onText;
  const root = host.attachShadow({ mode: "open" }), box = document.createElement("div");
  box.className = "box";
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".box { flex: 1; min-width: 0; height: 100%; }");
  root.append(box);
  const state = EditorState.create({
    extensions: [
      lineNumbers(), drawSelection(), highlightActiveLine(), lintGutter(), StreamLanguage.define(toml), syntaxHighlighting(colours), look,
      keymap.of(defaultKeymap.filter((one) => !/Mod-z|Mod-y|Mod-s/.test(one.key ?? ""))), EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "The scenario as TOML. Escape, then Tab, leaves it." }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !update.transactions.some((one) => one.annotation(ours))) changed();
      }),
    ],
  });
  view = new EditorView({ state, parent: box, root });
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}

function changed() {
  pending = true;
  clearTimeout(timer);
  timer = setTimeout(() => flush(), AFTER_MS);
}

// Send what was typed. Also before any other change, so that none is made on an older text.
// `inside`: of such a change, which the caller carries out.
export async function flush(inside = false) {
  clearTimeout(timer);
  if (!pending) return;
  pending = false;
  const joins = performance.now() - typed < JOINED_MS;
  await send(now(), joins, inside);
  typed = performance.now();
}

// Whether something was typed that the server does not have yet.
export function isPending() {
  return pending;
}

export function markPending() {
  pending = true;
}

// What was typed is dropped, after a question.
export function forget() {
  clearTimeout(timer);
  pending = false;
}

function now() {
  return view.state.doc.toString();
}

// Show the server's text: only what differs is replaced, so that cursor and scroll stay.
export function show(text) {
  const old = now();
  if (pending || old === text) return;
  let begin = 0, endOld = old.length, endNew = text.length;
  while (begin < endOld && begin < endNew && old[begin] === text[begin]) begin += 1;
  while (endOld > begin && endNew > begin && old[endOld - 1] === text[endNew - 1]) (endOld -= 1), (endNew -= 1);
  view.dispatch({ changes: { from: begin, to: endOld, insert: text.slice(begin, endNew) }, annotations: ours.of(true) });
}

// The line of what is refused.
export function mark(problem) {
  const lines = view.state.doc.lines, found = [];
  if (problem) {
    const line = view.state.doc.line(Math.min(lines, Math.max(1, problem.line ?? 1)));
    found.push({ from: line.from, to: line.to, severity: "error", message: problem.text });
  }
  view.dispatch(setDiagnostics(view.state, found));
}

export function goTo(number) {
  const line = view.state.doc.line(Math.min(view.state.doc.lines, Math.max(1, number)));
  view.dispatch({ selection: { anchor: line.from }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
  view.focus();
}
