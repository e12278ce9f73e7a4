// A scenario that this view may start: its seed, its start and its stop.

import { act, ask, choose } from "./api.js";
import { notice, speak, state } from "./state.js";

const by = (id) => document.getElementById(id);
const ASK_EVERY_MS = 500;
let open = null; // shows what a new answer says the run is

export function setUp() {
  const { about } = state, busy = Boolean(about.running || (about.starting && about.kind === "planned"));
  by("start-form").hidden = !about.startable;
  if (!about.startable) return;
  by("start-seed").value = about.seed;
  by("start-seed").disabled = busy;
  by("start").textContent = about.starting && about.kind === "planned" ? "Starting" : "Start";
  by("start").disabled = busy || about.kind !== "planned";
  by("start-why").textContent = !busy && about.kind !== "planned" ? "This seed has results; choose another one." : "";
  by("stop").hidden = !busy;
  if (about.starting && about.kind === "planned") follow();
}

// Until the run is under way, or its start has failed.
async function follow() {
  const { about } = state;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    if (state.about !== about) return;
    try {
      const answer = await ask("run");
      if (answer.kind === "planned" && answer.starting) continue;
      await open(answer);
      notice(answer.failure ?? "");
      if (answer.running) speak("The run is under way.");
      return;
    } catch (problem) {
      notice(problem.message);
    }
  }
}

async function show() {
  try {
    await open(await ask("run"));
  } catch (problem) {
    notice(problem.message);
  }
}

export function listen(opened) {
  open = opened;
  by("start-seed").addEventListener("change", () => {
    if (!by("start-seed").reportValidity()) return;
    state.run = state.about.name.replace(/[0-9]+$/, by("start-seed").value);
    choose(state.run);
    show();
  });
  by("start-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await act({ op: "start" });
      notice("");
    } catch (problem) {
      notice(problem.message);
      return;
    }
    show();
  });
  by("stop").addEventListener("click", () => act({ op: "stop" }).then(() => notice("The run is being stopped; what it has captured is kept."), (problem) => notice(problem.message)));
}
