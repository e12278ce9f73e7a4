// Questions to the server (formats/view.md). The token comes with the page's address and leaves the address bar at once.

const stored = new URLSearchParams(location.search).get("token");
if (stored) {
  sessionStorage.setItem("token", stored);
  history.replaceState(null, "", location.pathname + location.hash);
}
export const token = sessionStorage.getItem("token") ?? "";
let run = null; // the chosen run of a folder or of a plan

export function choose(path) {
  run = path;
}

function address(path, words = {}, of = run) {
  const query = new URLSearchParams(words);
  if (of !== null) query.set("run", of);
  return `api/${path}${query.size ? `?${query}` : ""}`;
}

const LOST = "The connection to the server is lost; trying again. A run that this server did not start goes on without it.";
const CHANGED = "Another server answers at this address now. Open the page at the address that it printed; what is shown is in the part after #.";
const AGAIN_MS = 1500;
let onLost = () => {}, onBack = () => {}, trying = false;

// What the page does when the server is lost (with one line for the user), and when it answers again.
export function watch(whenLost, whenBack) {
  [onLost, onBack] = [whenLost, whenBack];
}

// Asks until there is an answer. A server that was started again has another token, and no question helps.
export async function lost() {
  if (trying) return;
  trying = true;
  onLost(LOST);
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    const response = await fetch(address("run"), { headers: { Authorization: `Bearer ${token}` } }).catch(() => null);
    if (response?.status === 401) return void onLost(CHANGED);
    if (!response?.ok) continue;
    trying = false;
    return void onBack();
  }
}

async function answer(path, words, options = {}, of = run) {
  const response = await fetch(address(path, words, of), { headers: { Authorization: `Bearer ${token}` }, ...options }).catch((problem) => {
    if (problem.name !== "TypeError") throw problem;
    lost();
    throw new Error(LOST);
  });
  if (response.ok) return response;
  if (response.status === 401 && trying) throw new Error(CHANGED);
  const text = await response.json().catch(() => ({ error: `${response.status} ${response.statusText}` }));
  throw new Error(text.error);
}

// The address of a WebSocket about the run under way.
export function socketAddress(path, words = {}) {
  const query = new URLSearchParams({ token, ...(run === null ? {} : { run }), ...words });
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/${path}?${query}`;
}

export async function ask(path, words) {
  return (await answer(path, words)).json();
}

// `of`: the run that acts, the chosen one or another.
export async function act(action, of = run) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  return (await answer("control", {}, { method: "POST", body: JSON.stringify(action), headers }, of)).json();
}

export async function frames(from, to, limit) {
  const response = await answer("frames", { from: Math.floor(from), to: Math.ceil(to), limit });
  return decode(await response.arrayBuffer(), Number(response.headers.get("x-total")));
}

const LAYOUT = [
  ["row", Uint32Array], ["t", BigInt64Array], ["air", Uint32Array], ["station", Uint16Array], ["peer", Uint16Array], ["frame", Uint8Array],
  ["fate", Uint8Array], ["attempt", Uint8Array], ["flags", Uint8Array], ["bytes", Uint16Array], ["packet", Uint32Array],
  ["power", Float32Array], ["receivers", Uint16Array], ["backoff", Uint16Array],
];

// The columns of a message; `t` and `end` as numbers of ns, exact below 104 days.
export function decode(buffer, total = null) {
  const head = new DataView(buffer);
  const count = head.getUint32(8, true);
  const columns = { count, thinned: (head.getUint32(12, true) & 1) === 1, total: total ?? count };
  let offset = 16;
  for (const [name, Kind] of LAYOUT) {
    columns[name] = new Kind(buffer, offset, count);
    offset += Math.ceil((count * Kind.BYTES_PER_ELEMENT) / 8) * 8;
  }
  const halves = new Int32Array(buffer, columns.t.byteOffset, 2 * count); // a BigInt for each number takes four times as long
  columns.t = new Float64Array(count);
  columns.end = new Float64Array(count);
  for (let at = 0; at < count; at += 1) {
    columns.t[at] = halves[2 * at + 1] * 2 ** 32 + (halves[2 * at] >>> 0);
    columns.end[at] = columns.t[at] + columns.air[at];
  }
  return columns;
}
