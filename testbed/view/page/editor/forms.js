// Forms of the scenario's keys, made of the fields that the server has read from the JSON Schema (testbed/view/editor/forms.py). A control
// says what changed as `set` or `remove` of a path; it never keeps a value of its own.

import { element, withCode } from "../words.js";

const MAX_ITEMS = 60; // of a list that are shown
const STATIONS = new Set(["from", "to", "station", "host", "power", "move", "follows"]);
const controls = new Map(); // by path as JSON: { node, show, input }
const TAGS = {}; // of keys with a short form: the key of the name
let marked = null, number = 0, change = () => {}, groups = [], stations = () => [];

export function setUp(host, form, onChange, stationNames) {
  [change, stations] = [onChange, stationNames];
  for (const { title, fields } of form) {
    for (const field of fields) if (field.kind === "named") TAGS[field.key] = field.tag;
    const body = element("div"), details = element("details", {}, element("summary", {}, title), body);
    const group = { details, body, fields, made: null };
    details.addEventListener("toggle", () => details.open && build(group));
    groups.push(group);
    host.append(details);
  }
}

let values = {}; // of the scenario's keys, as the server has them
export function show(now) {
  values = now;
  for (const group of groups) for (const field of group.made ?? []) field.show(values[field.key]);
}

function build(group) {
  group.made ??= group.fields.map((field) => {
    const made = fieldOf(field, [field.key]);
    group.body.append(made.node);
    return { ...made, key: field.key };
  });
  for (const field of group.made) field.show(values[field.key]);
  if (marked?.path[0] && group.fields.some((field) => field.key === marked.path[0])) mark(marked);
}

// Show only fields that match, in groups that are open; for the search. After it the groups that it has opened are closed again.
export function filter(words, onlySet) {
  const wanted = words.trim().toLowerCase(), filters = Boolean(wanted || onlySet);
  for (const group of groups) {
    if (filters) group.wasOpen ??= group.details.open;
    else if (group.wasOpen !== undefined) (group.details.open = group.wasOpen), (group.wasOpen = undefined);
    const matching = group.fields.map((field) => matches(field, wanted) && (!onlySet || values[field.key] !== undefined));
    if (filters && matching.some(Boolean)) group.details.open = true;
    if (group.details.open) build(group);
    group.details.hidden = !matching.some(Boolean);
    (group.made ?? []).forEach((field, place) => (field.node.hidden = !matching[place]));
  }
}

function matches(field, wanted) {
  return !wanted || JSON.stringify(field).toLowerCase().includes(wanted);
}

// Open what a path is in, and put the focus on the control of it, or of what it is in.
export function reveal(path) {
  const group = groups.find((one) => one.fields.some((field) => field.key === path[0]));
  if (!group) return null;
  group.details.open = true;
  group.details.hidden = false;
  if (group.wasOpen !== undefined) group.wasOpen = true;
  build(group);
  for (let length = 1; length <= path.length; length += 1) {
    const control = controls.get(JSON.stringify(path.slice(0, length)));
    for (let node = control?.node; node && node !== group.body; node = node.parentElement) if (node.tagName === "DETAILS" && !node.open) (node.open = true), node.make?.();
    if (control?.node) control.node.hidden = false;
  }
  if (marked) mark(marked);
  const control = nearest(path);
  const input = control?.node.querySelector("input, select, summary, button");
  input?.focus();
  control?.node.scrollIntoView({ block: "nearest" });
  return input ?? null;
}

function nearest(path) {
  for (let length = path.length; length > 0; length -= 1) {
    const control = controls.get(JSON.stringify(path.slice(0, length)));
    if (control?.node.isConnected) return control;
  }
  return null;
}

// Say at the field why the scenario is refused, and again when its form is opened.
export function mark(problem) {
  marked = problem;
  for (const old of document.querySelectorAll("#forms .wrong.check")) old.remove();
  for (const old of document.querySelectorAll("#forms [aria-errormessage=wrong-here]")) old.removeAttribute("aria-invalid"), old.removeAttribute("aria-errormessage");
  const control = problem?.path.length ? nearest(problem.path) : null;
  if (!control) return;
  const line = element("p", { class: "wrong check", id: "wrong-here" }, problem.text);
  control.node.append(line);
  const input = control.node.querySelector("input, select");
  if (input?.validationMessage) return; // what is typed in it has its own line
  input?.setAttribute("aria-invalid", "true");
  input?.setAttribute("aria-errormessage", "wrong-here");
}

// --- one field ------------------------------------------------------------------------------------------------------------------

function fieldOf(field, path, options = {}) {
  const name = options.name ?? field.key ?? "", id = `field-${(number += 1)}`;
  const about = aboutOf(field), node = element("div", { class: "field", "data-path": JSON.stringify(path) });
  const made = (MAKERS[field.kind] ?? MAKERS.value)(field, path, { id, name, about: about ? `${id}-about` : null });
  const head = element("div", { class: "head" });
  if (made.simple) head.append(element("label", { class: "name", for: id }, name), ...made.nodes);
  else head.append(element("span", { class: "name" }, name), ...(made.beside ?? []));
  node.append(head);
  if (about) node.append(element("p", { class: "about", id: `${id}-about` }, ...withCode(about)));
  if (!made.simple) node.append(...made.nodes);
  const control = {
    node, show(value) {
      node.classList.toggle("set", value !== undefined);
      made.show(value);
    },
  };
  controls.set(JSON.stringify(path), control);
  return control;
}

function aboutOf(field) {
  const low = field.minimum ?? field.above, high = field.maximum ?? field.below;
  const range = [low !== undefined ? `${field.above !== undefined ? "more than" : "from"} ${low}` : "", high !== undefined ? `${field.below !== undefined ? "less than" : "to"} ${high}` : ""].filter(Boolean).join(" ");
  const unit = field.unit ? `in ${field.unit}` : "", units = field.units ? `or text with ${field.units.join(", ")}` : "";
  const words = field.words ? `or ${field.words.join(", ")}` : "";
  const fallback = field.default !== undefined && typeof field.default !== "object" ? `default ${field.default}` : field.required ? "required" : "";
  const facts = [[unit, range].filter(Boolean).join(", "), units, words, fallback].filter(Boolean).join("; ");
  return [field.text, facts && `${facts[0].toUpperCase()}${facts.slice(1)}.`].filter(Boolean).join(" ");
}

function set(path, value) {
  if (value === undefined) change({ op: "remove", path });
  else change(widened(path, value));
}

// An option of a key that has its short form, a name, makes a table of it.
function widened(path, value) {
  const tag = TAGS[path[0]], short = values[path[0]];
  if (path.length < 2 || !tag || (short !== undefined && typeof short !== "string")) return { op: "set", path, value };
  const name = short ?? groups.flatMap((group) => group.fields).find((field) => field.key === path[0])?.default;
  const inner = path.slice(2).reduceRight((rest, part) => ({ [part]: rest }), value);
  return { op: "set", path: [path[0]], value: { [tag]: name, [path[1]]: inner } };
}

function input(words, path, field, parse) {
  const node = element("input", { type: "text", spellcheck: "false", autocomplete: "off", ...words });
  let shown = "", typing = false, wrong = false;
  node.addEventListener("input", () => (typing = true));
  node.addEventListener("change", () => {
    const text = node.value.trim();
    typing = wrong = false;
    const value = text === "" ? undefined : parse(text);
    complain([node], value === null ? `${JSON.stringify(text)} is no number${unitsOf(field)}` : "");
    if (value === null) wrong = true;
    else if (text !== shown) set(path, value);
  });
  return {
    node, show(value) {
      const before = shown;
      shown = value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
      if ((typing && document.activeElement === node) || (wrong && shown === before)) return; // somebody writes here
      if (wrong) complain([node], "");
      wrong = false;
      if (node.value !== shown) node.value = shown;
    },
  };
}

// Say below fields why what was typed in them is not sent; nothing to say: take it back. The check has its own line.
function complain(nodes, line) {
  const field = nodes[0].closest(".field"), id = `${(nodes[0].id ||= `field-${(number += 1)}`)}-wrong`;
  document.getElementById(id)?.remove();
  for (const node of nodes) node.setCustomValidity(line), node.removeAttribute("aria-invalid"), node.removeAttribute("aria-errormessage");
  if (!line) return;
  field.append(element("p", { class: "wrong", id, role: "alert" }, line));
  for (const node of nodes) node.setAttribute("aria-invalid", "true"), node.setAttribute("aria-errormessage", id);
}

function unitsOf(field) {
  return field.units ? `; a unit may be ${field.units.join(", ")}` : "";
}

const NUMBER = /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/;
function numberOf(field) {
  return (text) => {
    if (NUMBER.test(text)) return Number(text);
    const unit = /^[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*(\S+)$/.exec(text)?.[1];
    if (field.units?.includes(unit) || field.words?.includes(text)) return text;
    return null;
  };
}

// Any TOML value: a number, true, false, a list or a table as JSON; anything else is text.
function valueOf(text) {
  if (NUMBER.test(text)) return Number(text);
  try {
    const value = JSON.parse(text);
    return value === null ? text : value;
  } catch {
    return text;
  }
}

function select(words, choices, path, parse = (text) => text) {
  const node = element("select", words, ...choices.map(([value, label]) => element("option", { value }, label)));
  node.addEventListener("change", () => set(path, node.value === "" ? undefined : parse(node.value)));
  return node;
}

function placeholder(field) {
  return field.default !== undefined && typeof field.default !== "object" ? String(field.default) : "";
}

function fallbackWord(field) {
  return field.default === undefined || typeof field.default === "object" ? "-" : `default (${field.default})`;
}

function plain(field, path, about, parse) {
  const words = { id: about.id, "aria-describedby": about.about, placeholder: placeholder(field) };
  if (STATIONS.has(field.key)) words.list = "nodes";
  const { node, show } = input(words, path, field, parse);
  return { simple: true, nodes: [node, ...(field.unit ? [element("span", { class: "unit" }, field.unit)] : [])], show };
}

function sampleOf(field) {
  switch (field.kind) {
    case "switch": return field.default ?? false;
    case "choice": return field.default ?? field.choices[0];
    case "number": case "whole": return typeof field.default === "number" ? field.default : Math.max(field.minimum ?? (field.above !== undefined ? field.above + 1 : 0), 0);
    case "tuple": return field.fields.map(sampleOf);
    case "list": return field.key === "at" ? [0, 0] : [sampleOf({ ...field.item, key: field.key })];
    case "table": return Object.fromEntries(field.fields.filter((one) => one.required).map((one) => [one.key, sampleOf(one)]));
    case "named": return field.names[0];
    case "either": return sampleOf(field.options[0]);
    default: {
      const names = stations();
      if (field.key === "to") return names[names.length - 1] ?? "sta2";
      if (STATIONS.has(field.key)) return names[0] ?? "sta1";
      return field.key === "name" ? "name1" : "";
    }
  }
}

const MAKERS = {
  number: (field, path, about) => plain(field, path, about, numberOf(field)),
  whole: (field, path, about) => plain(field, path, about, numberOf(field)),
  text: (field, path, about) => plain(field, path, about, (text) => text),
  value: (field, path, about) => plain(field, path, about, valueOf),
  switch(field, path, about) {
    const node = select({ id: about.id, "aria-describedby": about.about }, [["", fallbackWord(field)], ["true", "yes"], ["false", "no"]], path, (text) => text === "true");
    return { simple: true, nodes: [node], show: (value) => (node.value = value === undefined ? "" : String(value)) };
  },
  choice(field, path, about) {
    const node = select({ id: about.id, "aria-describedby": about.about }, [["", fallbackWord(field)], ...field.choices.map((one) => [JSON.stringify(one), String(one)])], path, JSON.parse);
    return { simple: true, nodes: [node], show: (value) => (node.value = value === undefined || !field.choices.includes(value) ? "" : JSON.stringify(value)) };
  },
  tuple(field, path, about) {
    let shown = [], part = false; // whether only a part of it is typed
    const inputs = field.fields.map((one, place) => {
      const node = element("input", { type: "text", "aria-label": `${about.name} ${place + 1}`, ...(one.kind === "text" ? { list: "nodes" } : {}) });
      node.addEventListener("input", () => (part = true));
      node.addEventListener("change", () => {
        const texts = inputs.map((each) => each.value.trim()), wrong = (text, index) => text && parsed[index] === null;
        const parsed = texts.map((text, index) => (field.fields[index].kind === "text" ? text : numberOf(field.fields[index])(text)));
        const found = texts.find(wrong);
        complain(inputs, found === undefined ? "" : `${JSON.stringify(found)} is no number${unitsOf(field.fields[0])}`);
        if (texts.every((text) => text === "")) return (part = false), void (shown !== undefined && set(path, undefined));
        const whole = texts.every((text) => text !== "") && found === undefined;
        if (whole) return (part = false), void set(path, parsed);
      });
      node.addEventListener("focusout", (event) => {
        const given = inputs.filter((each) => each.value.trim()).length;
        if (part && given && given < inputs.length && !inputs.includes(event.relatedTarget)) complain(inputs, `give all ${inputs.length} values`);
      });
      return node;
    });
    return {
      nodes: [element("div", { class: "row" }, ...inputs, element("span", { class: "unit" }, field.fields[0].unit ?? ""))], show(value) {
        const same = JSON.stringify(value) === JSON.stringify(shown);
        shown = value;
        if (part && (same || inputs.includes(document.activeElement))) return; // somebody writes here
        if (part) complain(inputs, "");
        part = false;
        inputs.forEach((node, place) => (node.value = value?.[place] ?? ""));
      },
    };
  },
  table(field, path, about) {
    const body = element("div"), details = element("details", {}, element("summary", {}, `${about.name || "table"} …`), body);
    let made = null, latest;
    details.make = () => {
      if (!made) made = flat(field.fields, path), body.append(made.node);
      made.show(latest);
    };
    details.addEventListener("toggle", () => details.open && details.make());
    return {
      nodes: [details], show(value) {
        latest = value;
        if (made) details.make();
      },
    };
  },
  list(field, path, about) {
    const items = element("div", { class: "items" }), more = element("p", { class: "about" });
    const noun = about.name || "element", add = element("button", { type: "button" }, "Add to ", element("code", {}, noun));
    let latest = [], made = [];
    add.addEventListener("click", () => change({ op: "append", path, value: sampleOf({ ...field.item, key: field.item.key ?? field.key }) }));
    const itemOf = (place) => {
      const scalar = ["text", "number", "whole", "value", "choice", "switch"].includes(field.item.kind), at = [...path, place];
      const gone = element("button", { type: "button", "aria-label": `Remove ${noun} ${place + 1}` }, "Remove");
      gone.addEventListener("click", () => change({ op: "remove", path: at }));
      if (scalar) {
        const inner = fieldOf({ ...field.item, text: "", key: `${place}` }, at, { name: `${noun} ${place + 1}` });
        inner.node.querySelector(".head").append(gone);
        return { node: inner.node, show: inner.show };
      }
      const summary = element("summary"), body = element("div"), details = element("details", {}, summary, body);
      const inner = { made: null };
      let value;
      details.make = () => {
        inner.made ??= (() => {
          const one = field.item.kind === "table" ? flat(field.item.fields, at) : fieldOf(field.item, at, { name: `${noun} ${place + 1}` });
          body.append(one.node, element("p", {}, gone));
          return one;
        })();
        inner.made.show(value);
      };
      details.addEventListener("toggle", () => details.open && details.make());
      controls.set(JSON.stringify(at), { node: details, show: () => {} });
      return {
        node: details, show(now) {
          value = now;
          summary.textContent = `${place + 1}: ${wordsOf(now)}`;
          if (inner.made) details.make();
        },
      };
    };
    return {
      nodes: [items, more, add], show(value) {
        latest = Array.isArray(value) ? value : [];
        const count = Math.min(latest.length, MAX_ITEMS);
        while (made.length > count) made.pop().node.remove();
        while (made.length < count) {
          const item = itemOf(made.length);
          made.push(item);
          items.append(item.node);
        }
        made.forEach((item, place) => item.show(latest[place]));
        more.textContent = latest.length > count ? `and ${latest.length - count} more, in the text and on the map` : "";
      },
    };
  },
  map(field, path, about) {
    const rows = element("div"), made = new Map(), key = element("input", { type: "text", "aria-label": `${about.name}: name of a new entry`, placeholder: "name" });
    const value = element("input", { type: "text", "aria-label": `${about.name}: value of a new entry`, placeholder: "value" }), add = element("button", { type: "button" }, "Add");
    const rowOf = (name) => {
      const at = [...path, name], { node, show } = input({ "aria-label": name }, at, field, valueOf);
      const gone = element("button", { type: "button", "aria-label": `Remove ${name}`, onclick: () => set(at, undefined) }, "Remove");
      const row = element("div", { class: "row" }, element("span", { class: "name" }, name), node, gone);
      rows.append(row);
      return { node: row, show };
    };
    add.addEventListener("click", () => {
      if (!key.value.trim() || !value.value.trim()) return;
      set([...path, key.value.trim()], valueOf(value.value.trim()));
      key.value = value.value = "";
    });
    return {
      nodes: [rows, element("div", { class: "row" }, key, value, add)], show(now) {
        const entries = now && typeof now === "object" && !Array.isArray(now) ? Object.entries(now) : [];
        for (const [name, { node }] of made) if (!entries.some(([one]) => one === name)) node.remove(), made.delete(name);
        for (const [name, one] of entries) {
          if (!made.has(name)) made.set(name, rowOf(name));
          made.get(name).show(one);
        }
      },
    };
  },
  named(field, path, about) {
    const other = field.other ? [["\0", "another: a path"]] : [];
    const names = [["", fallbackWord(field)], ...field.names.map((name) => [name, name]), ...other];
    const list = element("select", { id: about.id, "aria-label": about.name, "aria-describedby": about.about }, ...names.map(([value, label]) => element("option", { value }, label)));
    const free = element("input", { type: "text", "aria-label": `${about.name}: path`, hidden: "" });
    const body = element("div"), details = element("details", {}, element("summary", {}, "options"), body);
    const made = new Map();
    let name = "", latest;
    const nameOf = (value) => (typeof value === "string" ? value : value && typeof value === "object" ? value[field.tag] ?? "" : "");
    const tableOf = () => field.tables[name] ?? (name && field.other ? field.tables.file ?? null : null);
    const need = (which) => (field.tables[which] ?? []).filter((one) => one.required);
    list.addEventListener("change", () => {
      if (list.value === "\0") return void ((free.hidden = false), free.focus());
      if (list.value === "") return void set(path, undefined);
      const needed = need(list.value), bare = list.value === "file" && field.tag === "model";
      if (bare) return void set(path, { file: "" });
      set(path, needed.length ? { [field.tag]: list.value, ...Object.fromEntries(needed.map((one) => [one.key, sampleOf(one)])) } : list.value);
    });
    free.addEventListener("change", () => free.value.trim() && set(path, free.value.trim()));
    details.make = () => {
      if (!made.has(name)) made.set(name, flat(tableOf() ?? [], path));
      put(body, made.get(name).node);
      made.get(name).show(latest);
    };
    details.addEventListener("toggle", () => details.open && details.make());
    return {
      nodes: [details], beside: [list, free], show(value) {
        latest = value;
        name = nameOf(value) || (value && typeof value === "object" && "file" in value ? "file" : "") || String(field.default ?? "");
        const known = field.names.includes(name);
        details.hidden = !(tableOf() ?? []).length;
        if (details.open) details.make();
        if (document.activeElement === free) return; // somebody writes here
        list.value = value === undefined ? "" : known ? name : "\0";
        free.hidden = value === undefined || known;
        free.value = known ? "" : nameOf(value);
      },
    };
  },
  either(field, path, about) {
    const list = element("select", { "aria-label": `${about.name}: form of the value` }, element("option", { value: "" }, "-"), ...field.options.map((one, place) => element("option", { value: place }, one.label)));
    const body = element("div"), made = new Map();
    let latest, place = -1;
    const pick = (which) => {
      place = which;
      if (place < 0) return void body.replaceChildren();
      if (!made.has(place)) made.set(place, fieldOf({ ...field.options[place], text: "", key: field.key }, path, { name: about.name }));
      put(body, made.get(place).node);
      made.get(place).show(latest !== undefined && fits(field.options[place], latest) ? latest : undefined);
    };
    list.addEventListener("change", () => {
      if (list.value === "") return void (latest !== undefined && set(path, undefined));
      pick(Number(list.value));
      const option = field.options[place];
      if (option.kind === "table" || option.kind === "list") set(path, sampleOf({ ...option, key: field.key }));
    });
    return {
      nodes: [body], beside: [list], show(value) {
        latest = value;
        if (value === undefined) return void (place >= 0 && list.value !== "" && document.activeElement && body.contains(document.activeElement) ? 0 : ((list.value = ""), pick(-1)));
        const which = field.options.findIndex((one) => fits(one, value));
        list.value = which < 0 ? "" : String(which);
        pick(which);
      },
    };
  },
};

// A node that is there already stays, and with it the focus and what is typed.
function put(host, node) {
  if (host.firstChild !== node) host.replaceChildren(node);
}

// The fields of a table, without a frame of their own.
function flat(fields, path) {
  const node = element("div"), made = fields.map((one) => [one.key, fieldOf(one, [...path, one.key])]);
  node.append(...made.map(([, inner]) => inner.node));
  return {
    node, show(value) {
      for (const [key, inner] of made) inner.show(value && typeof value === "object" && !Array.isArray(value) ? value[key] : undefined);
    },
  };
}

function fits(field, value) {
  switch (field.kind) {
    case "switch": return typeof value === "boolean";
    case "choice": return field.choices.includes(value);
    case "number": case "whole": return typeof value === "number" || (typeof value === "string" && Boolean(field.units) && numberOf(field)(value) !== null);
    case "text": return typeof value === "string";
    case "list": case "tuple": return Array.isArray(value);
    case "table": case "map": return typeof value === "object" && !Array.isArray(value);
    default: return true;
  }
}

// A short line about an element of a list.
function wordsOf(value) {
  if (value === null || typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.join(", ");
  const { from, to, traffic, at, ...rest } = value;
  const ends = typeof from === "string" && typeof to === "string" ? `${from} → ${to}${traffic ? `, ${traffic}` : ""}` : "";
  const others = Object.entries(ends ? {} : value).slice(0, 4).map(([key, one]) => `${key} ${typeof one === "object" ? JSON.stringify(one) : one}`).join(", ");
  return `${ends}${others}`.slice(0, 70);
}
