/** `Fieldpost` with a store: kills, compaction, upgrades, faults of the storage, the clock, and lost mutations. */
import assert from "node:assert/strict";
import test from "node:test";
import { newID } from "../../Services/Onboarding/App/fieldpost.js";
import { Browser, Tab } from "./browser.mjs";
import { Gateway } from "./gateway.mjs";
import { gained, own, Server, shared } from "./server.mjs";

const kind = "FieldTask", name = "fieldpost";
const idOf = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

/** A browser, its tabs and a server. */
class Setting {
    server = new Server();
    gateway = new Gateway(this.server);
    browser = new Browser();
    tabs = [];
    // Timers of tabs do not keep the process running.
    waiting = setInterval(() => {}, 1_000);

    constructor(options) {
        this.browser.install((url, request) => this.gateway.fetch(url, request), options);
    }

    async open({ commitCountMax = Infinity, isSigningIn = true } = {}) {
        const tab = new Tab(this.browser);
        this.tabs.push(tab);
        tab.commitCountMax = commitCountMax;
        await tab.open({ gateway: "http://gateway.test", onboarding: "http://onboarding.test", name });
        if (isSigningIn && !tab.isKilled && !tab.client.status.email) { await this.signIn(tab); }
        return tab;
    }

    signIn(tab, token = {}) {
        const signingIn = tab.run(() => tab.client.signInWithToken({
            accessToken: "token", expiresAt: Date.now() + 3_600_000, ...token }));
        return Promise.race([signingIn, tab.killed]);
    }

    fill(count) {
        for (let number = 1; number <= count; number += 1) { this.server.write(shared, idOf(number), { number }); }
    }

    expected() {
        return [...this.server.contents()].flatMap(([realm, content]) => (
            [...content].map(([id, { position, fields }]) => JSON.stringify([realm, id, position, fields])))).sort();
    }

    shown(tab) {
        return tab.client.objects(kind).map(({ realm, id, position, fields, isPending }) => (
            JSON.stringify([realm, id, position, isPending ? "pending" : fields]))).sort();
    }

    /** Waits until a tab is live and shows what the server has. */
    async waitUntilEqual(tab) {
        await eventually(() => {
            const { connection, queued } = tab.client.status;
            return connection === "live" && queued === 0
                && JSON.stringify(this.shown(tab)) === JSON.stringify(this.expected());
        }, () => `${JSON.stringify(tab.client.status)} ${this.shown(tab).length} of ${this.expected().length}`);
    }

    /** Checks the log: each page belongs to a realm, and the content that another tab loads is complete. */
    checkPages() {
        const paths = new Set(this.browser.records(name, "realms").map(({ path }) => path));
        const pages = this.browser.records(name, "pages");
        for (const { text } of pages) {
            assert.ok(paths.has(JSON.parse(text).objects.realm), "a page of a closed realm");
        }
        return pages;
    }

    async end() {
        for (const tab of this.tabs) { if (!tab.isKilled) { await tab.close(); } }
        clearInterval(this.waiting);
    }
}

async function eventually(condition, describe = () => "not within 20 s") {
    const end = Date.now() + 20_000;
    while (!await condition()) {
        if (Date.now() > end) { assert.fail(describe()); }
        await new Promise((resolve) => { setTimeout(resolve, 5); });
    }
}

/** Runs a test with a setting, which it ends. */
function check(title, body, options) {
    test(title, async () => {
        const setting = new Setting(options);
        try { await body(setting); } finally { await setting.end(); }
    });
}

check("kill after any transaction leaves a store that converges, also during a compaction", async (setting) => {
    const { server, browser, gateway } = setting;
    server.pageCount = 1;
    setting.fill(1_100);
    // Another device changes what the compaction rewrites.
    let changeCount = 0;
    browser.oncommit = () => {
        changeCount += 1;
        const id = idOf(1 + (changeCount * 7) % 1_100);
        gateway.write(shared, id, changeCount % 3 ? { change: changeCount } : null);
        if (changeCount % 5 === 0) { gateway.write(gained, id, { change: changeCount }); }
        if (changeCount % 11 === 0) { server.permitted.delete(gained); } else { server.permitted.add(gained); }
    };
    let written = 0;
    for (let commitCountMax = 3; commitCountMax <= 26; commitCountMax += 1) {
        const tab = await setting.open({ commitCountMax });
        written += 1;
        const id = idOf(10_000 + written);
        const isStored = tab.isKilled ? null : await Promise.race([
            tab.run(() => tab.client.put(own, kind, id, { written })).then(() => true), tab.killed]);
        await Promise.race([tab.killed, new Promise((resolve) => { setTimeout(resolve, 800); })]);
        tab.kill();
        if (isStored) { setting.stored = [...setting.stored ?? [], id]; }
        setting.checkPages();
    }
    browser.oncommit = () => {};
    server.permitted.add(gained);
    const tab = await setting.open();
    await setting.waitUntilEqual(tab);
    for (const id of setting.stored) { assert.ok(tab.client.object(own, id), `${id} was stored and is applied`); }
    const keys = server.processed.length;
    assert.equal(server.realms.get(own).size, keys, "no mutation is applied twice");
    await eventually(() => setting.checkPages().length < 600, () => `${setting.checkPages().length} pages`);
    tab.kill();
    setting.gateway.fetch = () => Promise.reject(new TypeError("offline"));
    const offline = await setting.open();
    assert.deepEqual(setting.shown(offline), setting.expected(), "the compacted store is complete");
});

check("upgrade from version 1 keeps login, queue, rejections, uploads and images", async (setting) => {
    const { server, browser, gateway } = setting;
    setting.fill(5);
    const image = newID(), rejectedKey = newID();
    const queued = {
        key: newID(), sequence: 2, realm: own, operation: "put", kind, id: idOf(50), fields: { title: 1 }, queuedAt: 1,
        outcome: null, isWaiting: true,
    };
    const rejected = {
        ...queued, key: rejectedKey, sequence: 1, isWaiting: false,
        outcome: { rejected: { code: "closed", detail: "" } },
    };
    const meta = {
        storeId: newID(), revision: 9, clientId: newID(), nextSequence: 3, position: 4, resetCount: 1,
        queriedResetCount: 1, owner: "ana@example.com", isPaused: false, realms: [], baseURL: null, leader: null,
        login: {
            token: { accessToken: "token", expiresAt: Date.now() + 3_600_000, credential: null },
            email: "ana@example.com", person: "person",
        },
    };
    gateway.results.set(meta.clientId, [{ rejected: { code: "closed", detail: "" } }]);
    const old = { realm: shared, kind, id: idOf(99), position: 3, fields: {}, isPending: false };
    browser.databases.set(name, { version: 1, stores: new Map(Object.entries({
        meta: [["meta", meta]], objects: [[`${shared} ${kind} ${old.id}`, old]], pages: [[1, { realm: own, list: [] }]],
        realms: [[shared, {
            path: shared, state: { isReset: false, cursor: "1:4:4", isOpen: true, isUnnamed: false },
        }]],
        queue: [[1, rejected], [2, queued]], rejections: [[rejectedKey, rejected]],
        uploads: [[image, { id: image, bytes: 1, state: "queued", sequence: 2 }]],
        images: [[image, { bytes: new ArrayBuffer(1), type: "image/jpeg" }]],
    }).map(([store, records]) => [store, new Map(records)])) });
    const tab = await setting.open({ isSigningIn: false });
    assert.equal(tab.client.status.email, "ana@example.com");
    assert.deepEqual(tab.client.mutations.map(({ state }) => state), ["rejected", "queued"]);
    assert.equal(tab.client.object(shared, old.id), undefined, "the old copy is dropped");
    await setting.waitUntilEqual(tab);
    assert.equal(server.processed.length, 1);
    assert.deepEqual([...gateway.blobs.keys()], [image]);
    assert.equal(browser.databases.get(name).stores.has("objects"), false);
    assert.deepEqual(tab.client.mutations.map(({ key }) => key), [rejectedKey]);
    setting.checkPages();
});

check("reset replaces the pages of a realm when it settles", async (setting) => {
    const { server, gateway } = setting;
    setting.fill(20);
    const tab = await setting.open();
    await setting.waitUntilEqual(tab);
    assert.equal(setting.checkPages().length, 10);
    server.restore(server.backup());
    for (let number = 1; number <= 14; number += 1) { gateway.write(shared, idOf(number), null); }
    gateway.wake();
    await setting.waitUntilEqual(tab);
    assert.equal(setting.checkPages().length, 3);
});

check("closed realm leaves no page in the store", async (setting) => {
    const { server, gateway } = setting;
    setting.fill(3);
    gateway.write(gained, idOf(200), { secret: true });
    const tab = await setting.open();
    await setting.waitUntilEqual(tab);
    server.permitted.delete(gained);
    gateway.wake();
    await eventually(() => setting.checkPages().every(({ text }) => !text.includes("secret")));
    await setting.waitUntilEqual(tab);
});

check("tab that follows shows what the leader receives", async (setting) => {
    const { gateway } = setting;
    setting.fill(3);
    const leader = await setting.open();
    await setting.waitUntilEqual(leader);
    const follower = await setting.open();
    assert.equal(follower.client.status.isLeader, false);
    gateway.write(shared, idOf(2), { title: 2 });
    gateway.write(shared, idOf(1), null);
    await setting.waitUntilEqual(follower);
    await follower.run(() => follower.client.put(own, kind, idOf(70), { title: 3 }));
    leader.kill();
    await setting.waitUntilEqual(follower);
    gateway.write(shared, idOf(4), { title: 4 });
    await setting.waitUntilEqual(follower);
    setting.checkPages();
});

for (const [title, hours, renewals] of [["behind", 3, 1], ["ahead", -3, 0]]) {
    check(`device clock ${title} the server's: tokens are renewed by the server's clock`, async (setting) => {
        const { gateway } = setting;
        gateway.clockOffset = hours * 3_600_000;
        const tab = await setting.open({ isSigningIn: false });
        // By the server's clock, the token of the late device expires soon, and that of the early one does not.
        const expiresAt = Date.now() + gateway.clockOffset + (renewals ? 120_000 : 3_600_000);
        await setting.signIn(tab, { expiresAt, credential: "credential" });
        await setting.waitUntilEqual(tab);
        assert.equal(gateway.renewals, renewals);
        assert.ok(Math.abs(tab.client.status.clockOffset - gateway.clockOffset) < 2_000, "clockOffset");
    });
}

check("full storage refuses mutations, keeps the queue, and recovers", async (setting) => {
    const { server, gateway, browser } = setting;
    const tab = await setting.open();
    await setting.waitUntilEqual(tab);
    await tab.run(() => tab.client.pause());
    await tab.run(() => tab.client.put(own, kind, idOf(1), { title: 1 }));
    browser.isFull = true;
    const put = tab.run(() => tab.client.put(own, kind, idOf(2), { title: 2 }));
    await assert.rejects(put, { code: "storage-full" });
    assert.equal(tab.client.status.storage.isFull, true);
    assert.equal(tab.client.status.queued, 1);
    assert.equal(tab.client.object(own, idOf(2)), undefined);
    browser.isFull = false;
    await tab.run(() => tab.client.resume());
    await setting.waitUntilEqual(tab);
    browser.isFull = true;
    gateway.write(shared, idOf(3), { title: 3 });
    await eventually(() => tab.client.status.connection === "failed", () => JSON.stringify(tab.client.status));
    assert.equal(tab.client.status.problem.code, "storage-full");
    assert.equal(tab.client.object(shared, idOf(3)), undefined, "what is not stored is not displayed");
    browser.isFull = false;
    await tab.run(() => tab.client.put(own, kind, idOf(2), { title: 2 }));
    await tab.run(() => tab.client.resume());
    await setting.waitUntilEqual(tab);
    assert.equal(tab.client.status.storage.isFull, false);
    assert.equal(server.processed.length, 2);
    setting.checkPages();
});

check("evicted store that cannot be created again: a new tab works in memory", async (setting) => {
    const { browser } = setting;
    browser.isFull = true;
    const tab = await setting.open();
    assert.equal(tab.client.status.storage.kind, "memory");
    const mutation = await tab.run(() => tab.client.put(own, kind, idOf(1), { title: 1 }));
    assert.equal((await tab.client.settled(mutation)).state, "applied");
});

check("without IndexedDB the store lasts as long as the tab", async (setting) => {
    const { server, gateway } = setting;
    setting.fill(4);
    const tab = await setting.open();
    assert.equal(tab.client.status.storage.kind, "memory");
    await setting.waitUntilEqual(tab);
    const mutation = await tab.run(() => tab.client.put(own, kind, idOf(20), { title: 1 }));
    assert.equal((await tab.client.settled(mutation)).state, "applied");
    gateway.write(shared, idOf(1), null);
    server.permitted.delete(gained);
    await setting.waitUntilEqual(tab);
    await tab.run(() => tab.client.signOut());
    assert.deepEqual(tab.client.objects(kind), []);
}, { hasDatabase: false });

check("moved organisation: the queue is sent to the new address, and all realms are downloaded", async (setting) => {
    const { gateway } = setting;
    setting.fill(6);
    const tab = await setting.open();
    await setting.waitUntilEqual(tab);
    await tab.run(() => tab.client.pause());
    await tab.run(() => tab.client.put(own, kind, idOf(30), { title: 1 }));
    const server = new Server();
    const next = new Gateway(server);
    for (let number = 4; number <= 9; number += 1) { server.write(shared, idOf(number), { moved: number }); }
    gateway.movedTo = "http://next.test/";
    setting.gateway = {
        fetch: (url, request) => (new URL(url).host === "next.test" ? next : gateway).fetch(url, request),
    };
    setting.server = server;
    await tab.run(() => tab.client.resume());
    await setting.waitUntilEqual(tab);
    assert.equal(server.processed.length, 1);
    assert.equal(setting.checkPages().length, 4, "only pages of the new installation");
});

check("restored database: lost mutations are sent again under their numbers", async (setting) => {
    const { server, gateway } = setting;
    const tab = await setting.open();
    await setting.waitUntilEqual(tab);
    const backup = server.backup();
    const results = new Map(gateway.results);
    for (const number of [1, 2, 3]) {
        const mutation = await tab.run(() => tab.client.put(own, kind, idOf(number), { number }));
        assert.equal((await tab.client.settled(mutation)).state, "applied");
    }
    const { clientId } = setting.browser.records(name, "meta")[0];
    server.restore(backup);
    gateway.results = results;
    gateway.wake();
    await eventually(() => server.realms.get(own).size === 3);
    await setting.waitUntilEqual(tab);
    assert.equal(setting.browser.records(name, "meta")[0].clientId, clientId);
    assert.equal(gateway.results.get(clientId).length, 3);
});

check("gap that cannot be filled: waiting mutations get a new client id and numbers from 1", async (setting) => {
    const { server, gateway, browser } = setting;
    const tab = await setting.open();
    await setting.waitUntilEqual(tab);
    const { clientId } = browser.records(name, "meta")[0];
    const first = await tab.run(() => tab.client.put(own, kind, idOf(9), { number: 9 }));
    await tab.client.settled(first);
    // Another device has the same client id, such as after a copy of the browser's profile.
    gateway.results.set(clientId, Array.from({ length: 9 }, () => ({ accepted: 1 })));
    await tab.run(() => tab.client.pause());
    for (const number of [1, 2]) { await tab.run(() => tab.client.put(own, kind, idOf(number), { number })); }
    await tab.run(() => tab.client.addImage(new Blob(["image"], { type: "image/jpeg" })));
    const last = await tab.run(() => tab.client.put(own, kind, idOf(3), { number: 3 }));
    await tab.run(() => tab.client.resume());
    await setting.waitUntilEqual(tab);
    const meta = browser.records(name, "meta")[0];
    assert.notEqual(meta.clientId, clientId);
    assert.equal(gateway.results.get(meta.clientId).length, 3);
    const [image] = gateway.blobs.keys();
    const received = gateway.received.slice(-4);
    assert.deepEqual(received, [idOf(1), idOf(2), image, idOf(3)], "the image precedes what was queued later");
    assert.equal((await tab.client.settled(last)).state, "applied");
    assert.deepEqual(browser.records(name, "queue").map(({ sequence }) => sequence), [1, 2, 3]);
    assert.equal(server.realms.get(own).size, 4);
});

check("evicted store: a put at once is stored and sent without a wait", async (setting) => {
    const { browser, server } = setting;
    setting.fill(4);
    const [first, second] = [await setting.open(), await setting.open()];
    for (const tab of [first, second]) { await setting.waitUntilEqual(tab); }
    for (const [number, tab] of [[1, first], [2, second], [3, second], [4, first]]) {
        browser.evict();
        const begin = Date.now();
        await tab.run(() => tab.client.put(own, kind, idOf(number), { number }));
        for (const one of [first, second]) { await setting.waitUntilEqual(one); }
        assert.ok(Date.now() - begin < 5_000, `${number}: ${Date.now() - begin} ms`);
        assert.equal(server.realms.get(own).size, number);
    }
    setting.checkPages();
});
