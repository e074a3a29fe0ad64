/** The shell of the field app: it opens the store, selects the language, and shows one view per route. */

import { chooseLanguage, chooseLocale, translator } from "./core/strings.js";
import { formatter } from "./core/format.js";
import { banner, button, empty, icon, page, skeleton } from "./ui/components.js";
import { openConfirmation, openDialog, showToast } from "./ui/dialogs.js";
import { h, morph } from "./ui/dom.js";

export const version = "1.0";

const tabs = ["time", "tasks", "team", "shared", "defects", "notices"];
const routes = [...tabs, "sync"];
const element = (id) => document.getElementById(id);
/** Difference of the server's clock, in milliseconds. */
let clockOffset = 0;
const saved = (name) => { try { return localStorage.getItem(`fieldpost.${name}`); } catch { return null; } };

const app = {
    version,
    fieldpost: undefined,
    me: { email: "", person: undefined, role: "employee", name: "" },
    isManager: false,
    unread: 0,
    now: () => new Date(Date.now() + clockOffset),
    navigate(path) {
        const hash = `#/${path}`;
        if (location.hash === hash) show(); else location.hash = hash;
    },
    toast: (text, options) => showToast(app, text, options),
    confirm: (options) => openConfirmation(app, options),
    dialog: (options) => openDialog(app, options),
    report,
    problemText,
    /** Renders the current view again, for example after an image was loaded. */
    refresh: () => current.view?.update?.(current.segments),
    settings: { language: saved("language"), theme: saved("theme") ?? "system" },
    saveSetting(name, value) {
        app.settings[name] = value;
        try { localStorage.setItem(`fieldpost.${name}`, value ?? ""); } catch { /* The choice lasts until a reload. */ }
        if (name === "theme") applyTheme();
        if (name === "language") loadLanguage().then(() => { renderShell(); remount(); });
    },
};

// For the console of the developer tools, and for tests.
globalThis.fieldpostApp = app;

let current = { route: undefined, view: undefined, segments: [], generation: 0 };

/** Returns the text of a problem: the app's own if it has one for the code, otherwise the sentence of the server. */
function problemText(problem) {
    const key = `problem.${problem?.code}`;
    const text = app.t(key);
    return text === key ? problem?.detail || problem?.message || app.t("problem.unknown") : text;
}

/** Shows a toast if the promise rejects, or if the mutation that it resolves with is rejected later. */
async function report(promise) {
    try {
        const mutation = await promise;
        if (mutation?.sequence !== undefined && mutation.operation) {
            const settled = await app.fieldpost.settled(mutation);
            if (settled.state === "rejected" && !await isResent(settled)) {
                app.toast(app.t("app.rejected", { problem: problemText(settled.problem) }),
                    { action: { label: app.t("app.details"), run: () => app.navigate("sync") } });
            }
        }
        return mutation;
    } catch (error) {
        if (!error.code) console.error(error);
        app.toast(problemText(error));
        return undefined;
    }
}

async function loadLanguage() {
    const preferred = navigator.languages ?? [navigator.language];
    const language = chooseLanguage(app.settings.language, preferred);
    const locale = chooseLocale(language, preferred);
    const texts = await import(`./strings/${language}.js`);
    app.language = language;
    app.format = formatter(locale, { now: app.now });
    app.t = translator(texts.default, locale, {}, app.format.number);
    document.documentElement.lang = language;
}

function applyTheme() {
    const { theme } = app.settings;
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
}

/** Returns the kind and text of the status pill. */
export function describeStatus(app) {
    const { connection, queued, rejected } = app.fieldpost.status;
    const kinds = { live: "ok", connecting: "busy", "signing-in": "busy", offline: "warn", paused: "warn",
        "login-required": "bad", failed: "bad", "signed-out": "muted" };
    const isSending = queued > 0 && rejected === 0 && connection === "live";
    const parts = [rejected > 0 ? app.t("status.rejected", { n: rejected })
        : isSending ? app.t("status.sending", { n: queued }) : app.t(`status.${connection}`)];
    if (queued > 0 && !isSending) parts.push(app.t("status.queued", { n: queued }));
    return { kind: rejected > 0 ? "bad" : kinds[connection] ?? "muted", text: parts.join(" · ") };
}

function renderShell() {
    element("skip").textContent = app.t("app.skip");
    const isSignedOut = !app.fieldpost?.status.email;
    document.body.classList.toggle("is-signed-out", isSignedOut);
    if (isSignedOut) {
        morph(element("topbar"), []);
        morph(element("tabs"), []);
        return;
    }
    const status = describeStatus(app);
    element("tabs").setAttribute("aria-label", app.t("app.navigation"));
    morph(element("topbar"), [
        h("a", { class: "brand", href: "#/time" }, h("img", { src: "icons/icon.svg", alt: "" }),
            h("span", null, app.t("app.name"))),
        h("a", { class: ["status-pill", `is-${status.kind}`], href: "#/sync", title: status.text,
            "aria-current": current.route === "sync" ? "page" : undefined },
        h("span", { class: "status-dot" }), h("span", { class: "visually-hidden" }, app.t("sync.title"), ": "),
        h("span", { class: "truncate" }, status.text)),
    ]);
    morph(element("tabs"), tabs.map((route) => h("a", { class: "tab", href: `#/${route}`, key: route,
        "aria-current": current.route === route ? "page" : undefined },
    h("span", { class: "tab-icon" }, icon(route),
        route === "notices" && app.unread > 0 && h("span", { class: "badge" },
            app.unread > 99 ? "99+" : String(app.unread),
            h("span", { class: "visually-hidden" }, " ", app.t("app.unread")))),
    h("span", { class: "tab-label" }, app.t(`${route}.tab`)))));
}

let announced;
function announce() {
    const { connection, rejected } = app.fieldpost.status;
    const state = `${connection} ${rejected}`;
    if (connection === "connecting" || state === announced) return;
    if (announced !== undefined) element("announcer").textContent = describeStatus(app).text;
    announced = state;
}

/** Confirms that changes which waited without a connection were sent. */
let hasWaited = false;
function confirmSent() {
    const { connection, queued, rejected } = app.fieldpost.status;
    if (queued > 0 && ["offline", "paused"].includes(connection)) hasWaited = true;
    if (!hasWaited || queued > 0 || connection !== "live") return;
    hasWaited = false;
    if (rejected === 0) app.toast(app.t("sync.queueEmpty"));
}

/** Returns the route and segments of the address. */
function readAddress() {
    const [route, ...segments] = location.hash.replace(/^#\/?/, "").split("?")[0].split("/").filter(Boolean)
        .map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
    return { route: routes.includes(route) ? route : "time", segments };
}

function remount() {
    current.route = undefined;
    show();
}

/** Shows the view of the address. A view that cannot be loaded shows an error state; the others keep working. */
async function show() {
    const isSignedOut = !app.fieldpost?.status.email;
    const address = isSignedOut ? { route: "signin", segments: [] } : readAddress();
    const root = element("main");
    if (address.route === current.route) {
        const isSame = address.segments.join("/") === current.segments.join("/");
        current.segments = address.segments;
        try { current.view?.update?.(address.segments); } catch (error) { fail(root, address.route, error); }
        if (!isSame) requestAnimationFrame(() => requestAnimationFrame(focusHeading));
        return;
    }
    const isFirst = current.generation === 0;
    try { current.view?.unmount?.(); } catch (error) { console.error(error); }
    current = { ...address, view: undefined, generation: current.generation + 1 };
    const { generation } = current;
    renderShell();
    const timer = setTimeout(() => generation === current.generation && root.replaceChildren(
        h("div", { class: "page" }, skeleton(5))), 150);
    try {
        const module = await import(`./views/${address.route}.js`);
        if (generation !== current.generation) return;
        clearTimeout(timer);
        root.replaceChildren();
        root.scrollTop = 0;
        const container = h("div", { class: `view view-${address.route}` });
        root.append(container);
        current.view = module.mount(app, container, current.segments);
    } catch (error) {
        clearTimeout(timer);
        if (generation === current.generation) fail(root, address.route, error);
    }
    document.title = isSignedOut ? app.t("app.name") : `${app.t(`${address.route}.title`)} – ${app.t("app.name")}`;
    if (!isFirst && !isSignedOut) focusHeading();
}

function fail(root, route, error) {
    console.error(error);
    root.replaceChildren(page({ title: app.t(`${route}.title`) }, empty({ icon: "warning",
        title: app.t("app.viewFailed"), text: navigator.onLine ? app.t("app.viewFailedText") : app.t("app.viewOffline"),
        action: button({ label: app.t("app.reload"), icon: "refresh", onClick: () => location.reload() }) })));
}

function focusHeading() {
    const headings = [...element("main").querySelectorAll("h1")].filter((heading) => heading.offsetParent);
    const heading = headings[headings.length - 1];
    if (document.querySelector("dialog[open]")) return;
    (heading ?? element("main")).focus({ preventScroll: true });
}

function readPerson() {
    const { email, person } = app.fieldpost.status;
    const object = person && app.fieldpost.object("/common", person, "Person");
    const role = { admin: "admin", manager: "manager" }[object?.fields.role] ?? "employee";
    const hasManagerRealm = app.fieldpost.status.realms.some((realm) => realm.path === "/manager" && realm.isOpen);
    const name = object?.fields.name || [object?.fields.firstName, object?.fields.lastName].filter(Boolean).join(" ");
    app.me = { email: email ?? "", person, role, name: name || email || "", image: object?.fields.avatar };
    app.isManager = role !== "employee" || hasManagerRealm;
}

let stopWatches;
function watchStore() {
    stopWatches?.();
    const own = `/users/${app.fieldpost.status.email}`;
    const stops = [
        app.fieldpost.watch("Notice", { realm: own, where: (notice) => !notice.fields.isRead }, (notices) => {
            app.unread = notices.length;
            renderShell();
            if (navigator.setAppBadge) navigator.setAppBadge(app.unread).catch(() => {});
        }),
        app.fieldpost.watch("Person", { realm: "/common", id: app.fieldpost.status.person ?? "" }, statusChanged),
    ];
    stopWatches = () => stops.forEach((stop) => stop());
}

let watched;
let wasManager;
function statusChanged() {
    const { email, person, connection, clockOffset: offset } = app.fieldpost.status;
    clockOffset = offset ?? 0;
    readPerson();
    const identity = email && `${email} ${person ?? ""}`;
    if (identity !== watched) {
        watched = identity;
        if (identity) watchStore(); else stopWatches?.();
    }
    renderShell();
    announce();
    confirmSent();
    renderLogin(connection);
    resendNotes();
    const isRoleChanged = wasManager !== undefined && wasManager !== app.isManager;
    wasManager = email ? app.isManager : undefined;
    if ((current.route === "signin") === Boolean(email) || isRoleChanged) remount();
}

/** Puts rejected notes into the realm to which their task moved; one tab does so. */
let resending;
const resentKeys = new Set();
function resendNotes() {
    const { isLeader, rejected } = app.fieldpost.status;
    if (!isLeader || rejected === 0) return;
    resending ??= sendNotes().catch((error) => console.warn("notes were not sent again", error.message))
        .finally(() => { resending = undefined; });
}

async function sendNotes() {
    const { fieldpost, isManager } = app;
    if (!fieldpost.mutations.some(({ kind, state }) => kind === "TaskNote" && state === "rejected")) return;
    const { movedNotes } = await import("./core/tasks.js");
    for (const note of movedNotes(fieldpost.mutations, fieldpost.objects("FieldTask"), { isManager })) {
        if (note.realm) await fieldpost.put(note.realm, "TaskNote", note.id, note.fields);
        for (const mutation of note.mutations) {
            resentKeys.add(mutation.key);
            await fieldpost.dismiss(mutation);
        }
    }
}

/** Whether a rejected mutation of a note is sent again in another realm. The task's move may arrive after it. */
async function isResent({ kind, key }) {
    const timeMax = Date.now() + 5_000;
    while (kind === "TaskNote" && !resentKeys.has(key) && Date.now() < timeMax) {
        await new Promise((resolve) => { setTimeout(resolve, 250); });
    }
    return resentKeys.has(key);
}

/** Offers to log in again if the login expired. The data and the queue remain. */
let loginToast;
function renderLogin(connection) {
    if (connection !== "login-required") {
        loginToast?.();
        loginToast = undefined;
    } else if (!loginToast) {
        loginToast = app.toast(app.t("app.loginRequired"), { isSticky: true,
            action: { label: app.t("signin.again"), run: () => { loginToast = undefined; app.navigate("sync"); } } });
    }
}

async function registerWorker() {
    if (!("serviceWorker" in navigator)) return;
    navigator.serviceWorker.addEventListener("message", ({ data }) => {
        if (data?.type === "new-version") {
            app.toast(app.t("app.newVersion"), { isSticky: true,
                action: { label: app.t("app.reload"), run: () => location.reload() } });
        }
        if (data?.type === "navigate") app.navigate(data.path);
    });
    try {
        await navigator.serviceWorker.register("service-worker.js");
    } catch (error) {
        console.warn("service worker registration failed", error.message);
    }
}

async function openStore() {
    const [{ Fieldpost }, config] = await Promise.all([import("./fieldpost.js"),
        fetch("config.json").then((response) => response.json())]);
    return Fieldpost.open({ onboarding: location.origin, gateway: config.gateway });
}

async function start() {
    // The store, the texts and the view are loaded at the same time: none of them needs another one.
    const opening = openStore();
    opening.catch(() => {});
    import(`./views/${readAddress().route}.js`).catch(() => {});
    await loadLanguage();
    applyTheme();
    try {
        app.fieldpost = await opening;
    } catch (error) {
        console.error(error);
        document.body.classList.add("is-signed-out");
        const text = problemText({ code: error.code, detail: app.t("app.startFailedText") });
        morph(element("main"), h("div", { class: "signin" }, h("div", { class: "signin-box" },
            h("div", { class: "signin-brand" }, h("img", { src: "icons/icon.svg", alt: "" }),
                h("h1", null, app.t("app.startFailed"))), banner({ kind: "bad", text }),
            button({ label: app.t("app.reload"), icon: "refresh", onClick: () => location.reload() }))));
        registerWorker();
        return;
    }
    app.fieldpost.addEventListener("status", statusChanged);
    addEventListener("hashchange", show);
    document.addEventListener("click", (event) => {
        for (const menu of document.querySelectorAll("details.menu[open]")) {
            if (!menu.contains(event.target)) menu.removeAttribute("open");
        }
    });
    document.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        for (const menu of document.querySelectorAll("details.menu[open]")) {
            menu.removeAttribute("open");
            menu.querySelector("summary").focus();
        }
    });
    element("skip").addEventListener("click", (event) => { event.preventDefault(); focusHeading(); });
    statusChanged();
    await show();
    registerWorker();
}

start();
