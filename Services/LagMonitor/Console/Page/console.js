// The console: session, requests, navigation. External content is displayed as text, never as markup.
import { manual, views } from "/views.js";

// `isActive`: the user interacted since the last request. `keepsView`: the next change of the address keeps the view.
const state = { token: null, timer: null, generation: 0, isActive: false, keepsView: false };
const main = document.getElementById("main");
const banner = document.getElementById("banner");

/** Creates an HTML element with attributes; children are nodes or text. */
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

/** Creates an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** An error response of the service. */
export class RequestError extends Error {
  constructor(status, detail, retrySeconds) {
    super(detail);
    this.status = status;
    this.retrySeconds = retrySeconds;
  }
}

export function showBanner(text) {
  banner.textContent = text;
  banner.hidden = !text;
}

async function parseResponse(response) {
  if (response.status === 204) return null;
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  if (response.status === 401) {
    signedOut(state.token === null ? null : "Your session has expired, or was inactive for too long.");
  }
  throw new RequestError(response.status, body.detail || body.title || `status ${response.status}`,
    Number(response.headers.get("retry-after")) || 60);
}

/**
 * Sends a GET request without empty parameters. Automatic refreshes are marked, so that a session without activity
 * expires.
 */
export async function fetchJSON(path, parameters = {}, isAutomatic = false) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  const headers = isAutomatic && !state.isActive ? { "fieldpost-console-automatic": "1" } : {};
  state.isActive = false;
  return parseResponse(await fetch(path + (query ? "?" + query : ""), { credentials: "same-origin", headers }));
}

/** Sends a POST request. */
export async function postJSON(path, body = {}) {
  return parseResponse(await fetch(path, {
    method: "POST", credentials: "same-origin", body: JSON.stringify(body),
    headers: { "content-type": "application/json", "fieldpost-console-token": state.token },
  }));
}

/** Displays the sign-in page, optionally with a reason. */
function signedOut(reason = null) {
  state.token = null;
  clearTimeout(state.timer);
  state.generation += 1;
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  document.getElementById("views").hidden = true;
  document.getElementById("account").hidden = true;
  showBanner("");
  document.title = "Fieldpost console";
  main.replaceChildren(h("div", { class: "welcome" }, h("h2", {}, "Sign in"),
    reason ? h("p", { role: "status" }, reason) : null,
    h("p", {}, "The console is for administrators of this installation."),
    h("p", {}, h("a", { class: "button", id: "sign-in", href: "/sign-in" }, "Sign in with your organisation"))));
}

/** Displays the view that the address names, and refreshes it while the page is visible. */
async function show() {
  if (!state.token) return;
  const [name, query] = location.hash.slice(1).split("?");
  const view = views[name] ? name : "overview";
  const generation = ++state.generation;
  clearTimeout(state.timer);
  for (const link of document.querySelectorAll("#views a")) {
    if (link.hash === "#" + view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = (document.querySelector("#views a[aria-current]")?.textContent || "Topic") + " – Fieldpost console";
  const container = h("div", { "data-view": view });
  main.replaceChildren(container);
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  const refresh = views[view](container, new URLSearchParams(query || ""));
  await refreshPeriodically(refresh, generation, false, manual.has(view));
}

/** Refreshes a view, and repeats that at the interval it returns; a manual view is refreshed once. */
async function refreshPeriodically(refresh, generation, isAutomatic, isManual) {
  if (generation !== state.generation) return;
  let seconds = 0;
  try {
    if (!document.hidden) seconds = await refresh(isAutomatic);
    else seconds = 5;
    showBanner("");
  } catch (error) {
    if (generation !== state.generation) return;
    showBanner(error instanceof RequestError ? error.message
      : "The console's service is unavailable. " + (isManual ? "Retry later." : "Retrying automatically."));
    // Invalid requests are not repeated.
    const isInvalid = error instanceof RequestError && error.status >= 400 && error.status < 500 && error.status !== 429;
    seconds = isInvalid || isManual ? 0 : 5;
  }
  if (generation !== state.generation || !seconds) return;
  state.timer = setTimeout(() => refreshPeriodically(refresh, generation, true, isManual), seconds * 1000);
}

/** Navigates to a view with parameters. */
export function navigate(view, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  const hash = "#" + view + (query ? "?" + query : "");
  if (location.hash === hash) show();
  else location.hash = hash;
}

/** Pushes an address with an opened item, so that the browser's Back closes it. */
export function pushAddress(address) {
  history.pushState({ isPushed: true }, "", address);
}

/** Removes that address without redrawing the view. */
export function popAddress(address) {
  if (!history.state?.isPushed) { history.replaceState(null, "", address); return; }
  state.keepsView = true;
  history.back();
}

async function start() {
  try {
    const session = await fetchJSON("/api/session");
    state.token = session.token;
    document.getElementById("email").textContent = session.email;
    document.getElementById("views").hidden = false;
    document.getElementById("account").hidden = false;
    await show();
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) return;
    if (error instanceof RequestError && error.status === 429) {
      const time = new Date(Date.now() + error.retrySeconds * 1000).toLocaleTimeString();
      signedOut(`${error.message} The next attempt is at ${time}.`);
      state.timer = setTimeout(start, error.retrySeconds * 1000);
      return;
    }
    showBanner("The console's service is unavailable. Retrying automatically.");
    setTimeout(start, 5000);
  }
}

document.getElementById("sign-out").addEventListener("click", async () => {
  try {
    await postJSON("/api/sign-out");
    signedOut();
  } catch (error) {
    if (!(error instanceof RequestError && error.status === 401)) showBanner("Sign-out failed. Retry.");
  }
});
for (const name of ["pointerdown", "keydown", "wheel"]) {
  window.addEventListener(name, () => { state.isActive = true; }, { passive: true, capture: true });
}
document.querySelector(".skip").addEventListener("click", (event) => {
  // The address must keep naming the view.
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => {
  if (state.keepsView) { state.keepsView = false; return; }
  show();
  main.focus({ preventScroll: true });
});
start();
