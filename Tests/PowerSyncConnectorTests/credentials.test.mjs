/** Credentials, images and the login of the PowerSync connector for JavaScript. */
import assert from "node:assert/strict";
import test from "node:test";
import { localTables, rowID } from "../../examples/powersync/javascript/connector.js";
import { Gateway, problem } from "./gateway.mjs";
import { note, realm, titles, withConnector } from "./support.mjs";

test("credentials are the gateway and the valid token", () => withConnector(async ({ connector, gateway, store }) => {
    const { accessToken, expiresAt } = store.login;
    const expected = { endpoint: gateway.url, token: accessToken, expiresAt: new Date(expiresAt) };
    assert.deepEqual(await connector.fetchCredentials(), expected);
    assert.equal(gateway.renewals, 0);
}));

test("a token near its end is renewed once, also by concurrent calls", () => withConnector(async (context) => {
    const { connector, gateway, store } = context;
    store.login = { ...store.login, expiresAt: Date.now() + 60_000 };
    const [first, second] = await Promise.all([connector.fetchCredentials(), connector.getImage("id").catch(() => {})]);
    assert.equal(gateway.renewals, 1);
    assert.equal(first.token, store.login.accessToken);
    assert.equal(second, undefined);
    assert.equal(store.login.credential, "credential-1");
}));

test("a clock that is ahead does not renew before each request", () => withConnector(async (context) => {
    const { connector, gateway, store } = context;
    gateway.lifetime = 60_000;
    store.login = { ...store.login, expiresAt: Date.now() + 60_000 };
    for (let count = 0; count < 3; count += 1) { await connector.getImage("id").catch(() => {}); }
    assert.equal(gateway.renewals, 1);
}));

test("credentials that the stream refused are replaced", () => withConnector(async ({ connector, gateway }) => {
    const first = await connector.fetchCredentials();
    gateway.refuse(first.token);
    const second = await connector.fetchCredentials();
    assert.notEqual(second.token, first.token);
    assert.equal(gateway.renewals, 1);
}));

test("a lost response to a renewal does not end the login", () => withConnector(async (context) => {
    const { connector, gateway, store } = context;
    const { token } = await connector.fetchCredentials();
    gateway.cutRenewalCount = 2;
    assert.equal((await connector.fetchCredentials()).token, token);
    assert.equal(store.login.credential, "credential-0");
    assert.notEqual((await connector.fetchCredentials()).token, token);
    assert.equal(store.login.credential, "credential-3");
}));

test("a refused upload throws, and the next one has another token", () => withConnector(async (context) => {
    const { connector, database, gateway, store } = context;
    await database.write(note("milk"));
    gateway.refuse(store.login.accessToken);
    await assert.rejects(connector.uploadData(database), { code: "unauthorized", status: 401 });
    assert.deepEqual(await database.numbers(), [1]);
    await connector.uploadData(database);
    assert.deepEqual(titles(gateway.applied), ["milk"]);
    assert.equal(gateway.renewals, 1);
}));

test("a login that cannot be renewed is reported, and the queue is kept", () => withConnector(async (context) => {
    const { database, gateway, store, start } = context;
    const errors = [];
    const connector = start({ onLoginRequired: (error) => errors.push(error.code) });
    await database.write(note("milk"));
    gateway.isRevoked = true;
    gateway.refuse(store.login.accessToken);
    await assert.rejects(connector.uploadData(database), { status: 401 });
    await assert.rejects(connector.uploadData(database), { code: "login-required" });
    assert.equal(await connector.fetchCredentials(), null);
    assert.deepEqual(errors, ["login-required"]);
    assert.equal(store.login.credential, null);
    assert.deepEqual(await database.numbers(), [1]);
}));

test("without a login there are no credentials", () => withConnector(async ({ connector, database, store }) => {
    store.login = null;
    assert.equal(await connector.fetchCredentials(), null);
    await assert.rejects(connector.uploadData(database), { code: "login-required" });
}));

test("an upload follows an environment that has moved", () => withConnector(async (context) => {
    const { connector, database, gateway, store } = context;
    const next = await new Gateway().start();
    try {
        next.tokens = gateway.tokens;
        gateway.movedTo = `${next.url}/`;
        await database.write(note("milk"));
        await connector.uploadData(database);
        assert.deepEqual(titles(next.applied), ["milk"]);
        assert.equal(store.login.gateway, next.url);
        assert.equal((await connector.fetchCredentials()).endpoint, next.url);
    } finally {
        next.stop();
    }
}));

test("credentials have the new endpoint after the stream of a moved environment ended", () => withConnector(
    async ({ connector, gateway, store }) => {
        const next = await new Gateway().start();
        try {
            next.tokens = gateway.tokens;
            await connector.fetchCredentials();
            gateway.movedTo = next.url;
            const { endpoint } = await connector.fetchCredentials();
            assert.equal(endpoint, next.url);
            assert.deepEqual([store.login.gateway, store.login.onboarding], [next.url, next.url]);
        } finally {
            next.stop();
        }
    },
));

test("two addresses that name each other end with an error", () => withConnector(async (context) => {
    const { connector, database, gateway } = context;
    gateway.movedTo = gateway.url;
    await assert.rejects(connector.uploadData(database), { code: "environment-moved" });
}));

test("an image is stored and read", () => withConnector(async ({ connector }) => {
    const id = crypto.randomUUID();
    const bytes = new Uint8Array([1, 2, 3]);
    await connector.putImage(id, bytes, "image/png");
    assert.deepEqual(await connector.getImage(id), bytes);
    await assert.rejects(connector.getImage(crypto.randomUUID()), { code: "blob-unknown", status: 404 });
}));

test("a sign-out clears the database and ends the device", () => withConnector(async (context) => {
    const { connector, database, gateway, store } = context;
    await database.write(note("milk"));
    await assert.rejects(connector.signOut(database), { code: "queued-entries" });
    assert.ok(store.login);
    await connector.signOut(database, { discard: true });
    assert.equal(store.login, null);
    assert.deepEqual(await database.numbers(), []);
    assert.equal(gateway.credential, null);
    assert.equal(await connector.fetchCredentials(), null);
}));

/** A socket whose events a test sends. */
class Socket {
    static opened = [];
    readyState = 1;
    acknowledged = [];
    constructor(url) {
        this.url = url;
        Socket.opened.push(this);
        Socket.waiting?.(this);
        setImmediate(() => this.onopen?.());
    }
    static next() { return new Promise((resolve) => { Socket.waiting = resolve; }); }
    receive(id, event, payload = {}) { this.onmessage({ data: JSON.stringify({ id, event, payload }) }); }
    send(text) { this.acknowledged.push({ ...JSON.parse(text), saved: this.saved() }); }
    saved = () => 0;
    close(code = 1000, reason = "") {
        if (this.readyState === 3) { return; }
        this.readyState = 3;
        setImmediate(() => this.onclose({ code, reason }));
    }
}

/** Starts a login and returns its first socket and its result. */
async function beginLogin({ start, store }, options = {}) {
    store.login = null;
    const pages = [];
    const opened = Socket.next();
    const openURL = (url) => pages.push(url);
    const done = start({ WebSocket: Socket }).login("ana@example.com", { openURL, ...options });
    done.catch(() => {});
    const socket = await opened;
    socket.saved = () => store.saved.length;
    await new Promise(setImmediate);
    return { socket, done, pages };
}

test("a login stores the token before it acknowledges it", () => withConnector(async (context) => {
    const { gateway, store } = context;
    const { socket, done, pages } = await beginLogin(context);
    assert.equal(socket.url, `${gateway.url.replace("http", "ws")}/sessions/session`);
    assert.deepEqual(pages, [`${gateway.url}/login`]);
    const token = { ...gateway.issue(), credential: "credential-0" };
    socket.receive(1, "token", token);
    socket.receive(2, "realm initialized", { path: realm });
    socket.receive(3, "data ready");
    await done;
    assert.deepEqual(socket.acknowledged, [1, 2, 3].map((id) => ({ acknowledge: id, saved: 1 })));
    assert.deepEqual(store.login, {
        onboarding: gateway.url, gateway: gateway.url, accessToken: token.access_token,
        expiresAt: Date.parse(token.expires_at), credential: "credential-0",
    });
}));

test("a login continues after its socket was lost", () => withConnector(async (context) => {
    const { gateway, store } = context;
    const { socket, done, pages } = await beginLogin(context);
    const token = gateway.issue();
    socket.receive(1, "token", token);
    await new Promise(setImmediate);
    const next = Socket.next();
    socket.close(1006);
    const second = await next;
    second.receive(1, "token", token);
    second.receive(3, "data ready");
    await done;
    assert.equal(pages.length, 1);
    assert.equal(store.saved.length, 1);
    assert.deepEqual(second.acknowledged.map(({ acknowledge }) => acknowledge), [1, 3]);
}));

test("a failed login offers another attempt, or ends", () => withConnector(async (context) => {
    const problems = [];
    const onProblem = ({ code }, url) => problems.push([code, url]);
    const { socket, done } = await beginLogin(context, { onProblem });
    socket.receive(1, "error", { code: "consent-refused", message: "Again.", login_url: "https://login.example.com" });
    socket.receive(2, "error", { code: "person-unknown", message: "Unknown." });
    await assert.rejects(done, { code: "person-unknown" });
    assert.deepEqual(problems, [["consent-refused", "https://login.example.com"], ["person-unknown", null]]);
}));

test("an expired session ends the login", () => withConnector(async (context) => {
    const { socket, done } = await beginLogin(context);
    socket.close(4001, "expired");
    await assert.rejects(done, { code: "session-closed" });
}));

test("a rejected registration ends the login", () => withConnector(async ({ gateway, start }) => {
    gateway.fail("/register_device", problem(404, "organisation-unknown"));
    const login = start({ WebSocket: Socket }).login("ana@example.com", { openURL: () => {} });
    await assert.rejects(login, { code: "organisation-unknown" });
}));

test("the local tables and row ids fit the schema", () => {
    class Table { constructor(columns, options) { Object.assign(this, { columns, options }); } }
    const tables = localTables({ Table, column: { text: "TEXT", integer: "INTEGER" } });
    assert.deepEqual(Object.keys(tables), ["fieldpost_rejections", "fieldpost_uploads"]);
    for (const { options } of Object.values(tables)) { assert.deepEqual(options, { localOnly: true }); }
    assert.match(rowID(realm), /^[0-9a-f-]{36}\/users\/ana@example\.com$/);
});
