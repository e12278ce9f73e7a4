// What a page with control adds to a run under way: flows (the actions on a station are in panel.js).

import { act } from "./api.js";
import { notice, speak, state } from "./state.js";
import { element } from "./words.js";

const by = (id) => document.getElementById(id);

// The form, filled with the stations and the TCPs of this run; hidden where no flow can be started.
export function setUp() {
  const possible = Boolean(state.live && state.about.control && state.about.tcps?.length && state.about.nodes?.length > 1);
  by("flow-form").hidden = !possible;
  if (!possible) return;
  const options = (names, chosen) => names.map((name) => element("option", { value: name, selected: name === chosen ? "" : null }, name));
  by("flow-from").replaceChildren(...options(state.about.nodes, state.about.nodes[0]));
  by("flow-to").replaceChildren(...options(state.about.nodes, state.about.nodes.at(-1)));
  by("flow-tcp").replaceChildren(element("option", { value: "" }, "the run's"), ...options(state.about.tcps));
}

export function listen() {
  by("flow-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const number = (id) => (by(id).value === "" ? null : Number(by(id).value));
    const size = number("flow-bytes"), seconds = number("flow-seconds");
    const action = { op: "flow", from: by("flow-from").value, to: by("flow-to").value, traffic: size === null ? "bulk" : "transfer" };
    if (size !== null) action.size = size;
    if (seconds !== null) action.seconds = seconds;
    if (by("flow-tcp").value) action.tcp = by("flow-tcp").value;
    by("flow-start").disabled = true;
    try {
      const { flow } = await act(action);
      notice("");
      speak(`${flow} from ${action.from} to ${action.to} started`);
    } catch (problem) {
      notice(problem.message);
    } finally {
      by("flow-start").disabled = false;
    }
  });
}
