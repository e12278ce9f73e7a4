// Names, colours and shapes of what the page shows.

export const FRAMES = ["RTS", "CTS", "data", "ACK", "broadcast"];
export const FATES = ["unfinished", "delivered", "collision", "hidden", "weak", "error", "busy", "nav"];
export const MEANING = {
  delivered: "delivered", collision: "lost: collision", hidden: "lost: hidden terminal", weak: "lost: below the threshold",
  error: "lost: bit errors", busy: "lost: receiver busy", nav: "RTS not answered: NAV", broadcast: "broadcast", captured: "delivered by capture",
  unfinished: "cut by the end, or broadcast",
};
export const BROADCAST = 65535;
export const UNKNOWN = 65534;
export const FLOW_DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3]];

let styles = null;
export function colour(name) {
  styles ??= getComputedStyle(document.documentElement);
  return styles.getPropertyValue(`--${name}`).trim() || "#888";
}
export function repaint() {
  styles = null;
}

export function kindOf(frames, at) {
  return frames.peer[at] === BROADCAST ? "broadcast" : FATES[frames.fate[at]];
}

// The mark at the end of a frame's line: a shape for each fate, beside its colour.
export function mark(pen, kind, x, y, size) {
  pen.beginPath();
  if (kind === "collision") { pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size); pen.moveTo(x + size, y - size); pen.lineTo(x - size, y + size); pen.stroke(); return; }
  if (kind === "hidden") { pen.moveTo(x, y - size * 1.3); pen.lineTo(x + size * 1.3, y); pen.lineTo(x, y + size * 1.3); pen.lineTo(x - size * 1.3, y); pen.closePath(); pen.fill(); return; }
  if (kind === "weak") { pen.moveTo(x - size, y - size); pen.lineTo(x + size, y - size); pen.lineTo(x, y + size); pen.closePath(); pen.stroke(); return; }
  if (kind === "error") { pen.rect(x - size, y - size, 2 * size, 2 * size); pen.stroke(); return; }
  if (kind === "busy") { pen.rect(x - size, y - size, 2 * size, 2 * size); pen.fill(); return; }
  if (kind === "nav") { pen.moveTo(x - size, y); pen.lineTo(x + size, y); pen.moveTo(x, y - size); pen.lineTo(x, y + size); pen.stroke(); return; }
  pen.arc(x, y, size, 0, 7);
  if (kind === "broadcast") pen.stroke(); else pen.fill();
}

export function seconds(ns, digits = 6) {
  return `${(ns / 1e9).toFixed(digits)} s`;
}

export function rate(bps) {
  return bps >= 1e6 ? `${(bps / 1e6).toFixed(2)} Mbit/s` : `${(bps / 1e3).toFixed(0)} kbit/s`;
}

export function element(name, words = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(words)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}
