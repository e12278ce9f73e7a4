// Questions of the editor to its server (formats/view.md). Changes go one after the other, each with the version that it was made on.

import { token } from "../api.js";

const LOST = "The server does not answer. What it had is in the draft beside the file; this page keeps what you see and tries again. If the server was ended, start it with --edit, and copy what came after from here.";
const CHANGED = "Another server answers at this address now. Open the editor at the address that it printed; unsaved work is in its draft.";

export class Refused extends Error {
  constructor(message, status, body) {
    super(message);
    Object.assign(this, { status, body });
  }

  // Whether no server has answered, or another one than the page's.
  get isLost() {
    return this.status === 0 || this.status === 401;
  }
}

async function asked(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...(options.body ? { "Content-Type": "application/json" } : {}) };
  const response = await fetch(`api/edit/${path}`, { ...options, headers }).catch(() => null);
  if (!response) throw new Refused(LOST, 0, {});
  if (response.status === 401) throw new Refused(CHANGED, 401, {});
  return response;
}

async function answered(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(body.error ?? `the server answers ${response.status}`, response.status, body);
  return body;
}

export async function ask(path) {
  return answered(await asked(path));
}

export async function post(path, body) {
  return answered(await asked(path, { method: "POST", body: JSON.stringify(body) }));
}

// A file of the server as an address that an image or a frame takes.
export async function fileUrl(path) {
  const response = await asked(path);
  if (!response.ok) await answered(response);
  return URL.createObjectURL(await response.blob());
}
