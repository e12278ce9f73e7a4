// What the user's system asks for, and what the user has chosen: light or dark, no motion, the editor's panes.

const KEY = "manet-view-theme", PANES = "manet-view-editor-without";
const dark = matchMedia("(prefers-color-scheme: dark)"), still = matchMedia("(prefers-reduced-motion: reduce)");

// No fading, no growing, few pictures: motion is what the system asks to avoid.
export function calm() {
  return still.matches;
}

// Storage may be forbidden: the choice then holds until the page closes.
function stored(key = KEY) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function theme() {
  const chosen = stored() ?? document.documentElement.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
}

// The other one, from now on. Who chooses what the system has follows the system again.
export function switchTheme() {
  const next = theme() === "dark" ? "light" : "dark", ofSystem = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = next;
  try {
    if (next === ofSystem) localStorage.removeItem(KEY); else localStorage.setItem(KEY, next);
  } catch {
    return; // not remembered
  }
}

export function onSystemTheme(listener) {
  dark.addEventListener("change", () => {
    if (stored() === null) delete document.documentElement.dataset.theme;
    listener();
  });
}

// The panes of the editor that the user has closed.
export function closedPanes() {
  return (stored(PANES) ?? "").split(" ").filter(Boolean);
}

export function keepClosedPanes(names) {
  try {
    localStorage.setItem(PANES, names.join(" "));
  } catch {
    return; // not remembered
  }
}
