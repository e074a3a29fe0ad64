// Stores the app's files, so that it opens offline, and displays push messages.
//
// The files of one version are stored together in one cache. After each navigation the worker requests the files
// with their ETags. If one changed, it stores the complete new version, and the pages offer to reload.

const files = [
    "./", "app.css", "app.js", "fieldpost.js", "manifest.webmanifest",
    "core/defects.js", "core/format.js", "core/map.js", "core/notices.js", "core/picker.js", "core/shared.js",
    "core/strings.js", "core/sync.js", "core/task-order.js", "core/tasks.js", "core/time.js",
    "icons/icon-192.png", "icons/icon-512.png", "icons/icon.svg",
    "strings/da.js", "strings/de.js", "strings/en.js",
    "ui/components.js", "ui/dialogs.js", "ui/dom.js", "ui/icons.js", "ui/list.js",
    "ui/map-background.js", "ui/map.js", "ui/theme.js",
    "views/defect-detail.js", "views/defect-form.js", "views/defect-model.js", "views/defects.css",
    "views/defects.js", "views/deliveries.js", "views/notices.css", "views/notices.js", "views/shared-editor.js",
    "views/shared.css", "views/shared.js", "views/signin.js", "views/sync.css", "views/sync.js",
    "views/task-detail.js", "views/task-editor.js", "views/tasks-model.js", "views/tasks.css", "views/tasks.js",
    "views/team-editor.js", "views/team-position.js", "views/team.css", "views/team.js", "views/time-editor.js",
    "views/time-entry.js", "views/time-model.js", "views/time-parts.js", "views/time-picker.js", "views/time-week.js",
    "views/time.css", "views/time.js",
];

const prefix = "fieldpost-shell-";
const stateCache = "fieldpost-state";
const scope = new URL("./", self.location.href);
const addresses = new Set(files.map((file) => new URL(file, scope).href));
const currentKey = new URL("current-version", scope).href;
const configuration = new URL("config.json", scope).href;
const checkInterval = 60_000;

async function currentName() {
    const response = await (await caches.open(stateCache)).match(currentKey);
    return response?.text();
}

/** The cache of the current version; read once, because a page requests about 40 files. */
let opened;

function currentCache() {
    opened ??= currentName().then((name) => name && caches.open(name));
    opened.catch(() => { opened = undefined; });
    return opened;
}

async function setCurrent(name) {
    await (await caches.open(stateCache)).put(currentKey, new Response(name));
    opened = undefined;
    const names = await caches.keys();
    await Promise.all(names.filter((other) => other.startsWith(prefix) && other !== name)
        .map((other) => caches.delete(other)));
}

async function equals(left, right) {
    const [first, second] = await Promise.all([left.clone().arrayBuffer(), right.clone().arrayBuffer()]);
    if (first.byteLength !== second.byteLength) return false;
    const bytes = new Uint8Array(second);
    return new Uint8Array(first).every((byte, index) => byte === bytes[index]);
}

/** Returns the file's response, and whether it differs from the stored one. */
async function fetchFile(address, stored) {
    const etag = stored?.headers.get("etag");
    const response = await fetch(address, { cache: "no-store", headers: etag ? { "If-None-Match": etag } : {} });
    if (response.status === 304 && stored) return { response: stored, isChanged: false };
    if (response.status === 404) return { response: undefined, isChanged: Boolean(stored) };
    if (!response.ok || response.redirected) throw new Error(`${address}: status ${response.status}`);
    return { response, isChanged: !stored || !await equals(stored, response) };
}

/** Stores a complete version if a file changed. Returns its name, or undefined if nothing changed. */
async function store() {
    const current = await currentName();
    const old = current && await caches.open(current);
    const results = new Map();
    const queue = [...addresses];
    const work = async () => {
        for (let address = queue.shift(); address; address = queue.shift()) {
            results.set(address, await fetchFile(address, await old?.match(address)));
        }
    };
    await Promise.all(Array.from({ length: 6 }, work));
    if (current && ![...results.values()].some((result) => result.isChanged)) return undefined;
    if (!results.get(scope.href)?.response) throw new Error("the app is not available");
    const name = `${prefix}${Date.now()}`;
    const cache = await caches.open(name);
    await Promise.all([...results].map(([address, { response }]) => response && cache.put(address, response.clone())));
    return name;
}

let checkedAt = 0;
let check;

/** Looks for a new version, at most once per minute, and reports it to the open pages. */
function checkVersion() {
    if (check || Date.now() - checkedAt < checkInterval) return check;
    checkedAt = Date.now();
    check = store().then(async (name) => {
        if (!name) return;
        await setCurrent(name);
        const clients = await self.clients.matchAll({ type: "window" });
        for (const client of clients) client.postMessage({ type: "new-version" });
    }).catch(() => {}).finally(() => { check = undefined; });
    return check;
}

async function fromStore(address, request) {
    const stored = await (await currentCache())?.match(address);
    return stored ?? fetch(request);
}

async function networkFirst(request) {
    const cache = await caches.open(stateCache);
    try {
        const response = await fetch(request, { cache: "no-cache" });
        if (response.ok) await cache.put(configuration, response.clone());
        return response;
    } catch (error) {
        const stored = await cache.match(configuration);
        if (stored) return stored;
        throw error;
    }
}

self.addEventListener("install", (event) => {
    // The configuration too: the page has requested it before this worker controls it.
    const configured = caches.open(stateCache).then((cache) => cache.add(configuration));
    const stored = store().then((name) => name && setCurrent(name));
    event.waitUntil(Promise.all([configured, stored]).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
    const { request } = event;
    const url = new URL(request.url);
    if (request.method !== "GET" || url.origin !== scope.origin) return;
    url.search = "";
    url.hash = "";
    const isPage = request.mode === "navigate"
        && (url.href === scope.href || url.href === new URL("index.html", scope).href);
    if (isPage) {
        event.respondWith(fromStore(scope.href, request));
        event.waitUntil(Promise.resolve(checkVersion()));
    } else if (url.href === configuration) {
        event.respondWith(networkFirst(request));
    } else if (addresses.has(url.href)) {
        event.respondWith(fromStore(url.href, request));
    }
});

self.addEventListener("push", (event) => {
    let message = {};
    try { message = event.data?.json() ?? {}; } catch { message = { text: event.data?.text() }; }
    event.waitUntil(self.registration.showNotification("Fieldpost", {
        body: message.text ?? "", tag: message.id, timestamp: Date.parse(message.timestamp) || undefined,
        icon: new URL("icons/icon-192.png", scope).href, badge: new URL("icons/icon-192.png", scope).href,
        data: { id: message.id },
    }));
});

self.addEventListener("notificationclick", (event) => {
    event.notification.close();
    const { id } = event.notification.data ?? {};
    const path = id ? `notices/${encodeURIComponent(id)}` : "notices";
    event.waitUntil((async () => {
        const clients = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
        const client = clients.find((candidate) => candidate.url.startsWith(scope.href));
        if (!client) return self.clients.openWindow(`${scope.href}#/${path}`);
        client.postMessage({ type: "navigate", path });
        return client.focus();
    })());
});
