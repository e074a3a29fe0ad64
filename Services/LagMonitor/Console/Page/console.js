// The console: session, requests, navigation. What comes from the suite is shown as text, never as markup.
import { manual, views } from "/views.js";

// `isTouched`: somebody did something since the page asked last. `isSame`: the address changes, and the view stays.
const state = { token: null, timer: null, turn: 0, isTouched: false, isSame: false };
const main = document.getElementById("main");
const banner = document.getElementById("banner");

/** Makes an element. Attributes are set as such; children are nodes or text. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Makes an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** What the service answered instead of what was asked for. */
export class Refused extends Error {
  constructor(status, detail, retrySeconds) {
    super(detail);
    this.status = status;
    this.retrySeconds = retrySeconds;
  }
}

export function say(text) {
  banner.textContent = text;
  banner.hidden = !text;
}

async function answer(response) {
  if (response.status === 204) return null;
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  if (response.status === 401) {
    signedOut(state.token === null ? null : "Your session is over, or nobody used it for a while.");
  }
  throw new Refused(response.status, body.detail || body.title || `status ${response.status}`,
    Number(response.headers.get("retry-after")) || 60);
}

/**
 * Asks the service. Parameters that are empty are left out. What the page asks by itself says so: a session of which
 * nobody does anything becomes idle.
 */
export async function ask(path, parameters = {}, isAutomatic = false) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  const headers = isAutomatic && !state.isTouched ? { "fieldpost-console-automatic": "1" } : {};
  state.isTouched = false;
  return answer(await fetch(path + (query ? "?" + query : ""), { credentials: "same-origin", headers }));
}

/** Has the service change something. */
export async function act(path, body = {}) {
  return answer(await fetch(path, {
    method: "POST", credentials: "same-origin", body: JSON.stringify(body),
    headers: { "content-type": "application/json", "fieldpost-console-token": state.token },
  }));
}

/** Shows the sign-in page, with the reason for it. */
function signedOut(reason = null) {
  state.token = null;
  clearTimeout(state.timer);
  state.turn += 1;
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  document.getElementById("views").hidden = true;
  document.getElementById("who").hidden = true;
  say("");
  document.title = "Fieldpost console";
  main.replaceChildren(h("div", { class: "welcome" }, h("h2", {}, "Sign in"),
    reason ? h("p", { role: "status" }, reason) : null,
    h("p", {}, "The console is for administrators of this installation."),
    h("p", {}, h("a", { class: "button", id: "sign-in", href: "/sign-in" }, "Sign in with your organisation"))));
}

/** Shows the view that the address names, and keeps it up to date for as long as somebody can see it. */
async function show() {
  if (!state.token) return;
  const [name, query] = location.hash.slice(1).split("?");
  const view = views[name] ? name : "picture";
  const turn = ++state.turn;
  clearTimeout(state.timer);
  for (const link of document.querySelectorAll("#views a")) {
    if (link.hash === "#" + view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = (document.querySelector("#views a[aria-current]")?.textContent || "Fieldpost") + " – Fieldpost console";
  const place = h("div", { "data-view": view });
  main.replaceChildren(place);
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  const refresh = views[view](place, new URLSearchParams(query || ""));
  await follow(refresh, turn, false, manual.has(view));
}

/** Brings a view up to date, and does so again as long as it wants; one that waits for the person, once. */
async function follow(refresh, turn, isAutomatic, isManual) {
  if (turn !== state.turn) return;
  let seconds = 0;
  try {
    if (!document.hidden) seconds = await refresh(isAutomatic);
    else seconds = 5;
    say("");
  } catch (error) {
    if (turn !== state.turn) return;
    say(error instanceof Refused ? error.message
      : "The console's service does not answer. " + (isManual ? "Try again." : "It is asked again."));
    // What was asked wrongly is not asked again.
    const isWrong = error instanceof Refused && error.status >= 400 && error.status < 500 && error.status !== 429;
    seconds = isWrong || isManual ? 0 : 5;
  }
  if (turn !== state.turn || !seconds) return;
  state.timer = setTimeout(() => follow(refresh, turn, true, isManual), seconds * 1000);
}

/** Goes to a view with parameters. */
export function go(view, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  const hash = "#" + view + (query ? "?" + query : "");
  if (location.hash === hash) show();
  else location.hash = hash;
}

/** Says in the address what is open in the view, as a step that the browser's Back takes back. */
export function enter(address) {
  history.pushState({ isEntered: true }, "", address);
}

/** Takes that back, without drawing the view anew. */
export function leave(address) {
  if (!history.state?.isEntered) { history.replaceState(null, "", address); return; }
  state.isSame = true;
  history.back();
}

async function begin() {
  try {
    const session = await ask("/api/session");
    state.token = session.token;
    document.getElementById("email").textContent = session.email;
    document.getElementById("views").hidden = false;
    document.getElementById("who").hidden = false;
    await show();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return;
    if (error instanceof Refused && error.status === 429) {
      const time = new Date(Date.now() + error.retrySeconds * 1000).toLocaleTimeString();
      signedOut(`${error.message} The next attempt is at ${time}.`);
      state.timer = setTimeout(begin, error.retrySeconds * 1000);
      return;
    }
    say("The console's service does not answer. It is asked again.");
    setTimeout(begin, 5000);
  }
}

document.getElementById("sign-out").addEventListener("click", async () => {
  try {
    await act("/api/sign-out");
    signedOut();
  } catch (error) {
    if (!(error instanceof Refused && error.status === 401)) say("The sign-out did not arrive: try again.");
  }
});
for (const name of ["pointerdown", "keydown", "wheel"]) {
  window.addEventListener(name, () => { state.isTouched = true; }, { passive: true, capture: true });
}
document.querySelector(".skip").addEventListener("click", (event) => {
  // The address names the view, which stays.
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => {
  if (state.isSame) { state.isSame = false; return; }
  show();
  main.focus({ preventScroll: true });
});
begin();
