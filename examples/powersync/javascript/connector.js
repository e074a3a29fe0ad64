/**
 * Connects a PowerSync SDK for JavaScript to Fieldpost. `connector.d.ts` declares the public interface.
 *
 * The module has no dependencies: it runs with @powersync/web, @powersync/node and @powersync/react-native.
 */

/** Maximum number of entries in one upload. */
export const entryCountMax = 200;
/** Minimum remaining validity of a token before it is renewed, in milliseconds. */
const renewalMargin = 300_000;
/** Minimum time between two renewals of tokens that were not refused, in milliseconds. It covers wrong clocks. */
const renewalInterval = 60_000;
/** Time after which a request without a response fails, in milliseconds. */
const timeout = 90_000;
const problemPrefix = "urn:fieldpost:problem:";

/** Statements on the SDK's queue `ps_crud` and on the local tables. The connectors of all languages have the same. */
const sql = {
    entries: `SELECT json_set(json_insert(data, '$.data', NULL), '$.op_id', id, '$.tx_id', tx_id) AS entry
        FROM ps_crud WHERE id <= ? ORDER BY id`,
    removeRejection: "DELETE FROM fieldpost_rejections WHERE id = ?",
    addRejection: `INSERT INTO fieldpost_rejections
        (id, table_name, row_id, operation, type, title, detail, data, time)
        SELECT CAST(id AS TEXT), json_extract(data, '$.type'), json_extract(data, '$.id'),
            json_extract(data, '$.op'), ?, ?, ?, json_extract(data, '$.data'), ? FROM ps_crud WHERE id = ?`,
    removeMark: "DELETE FROM fieldpost_uploads WHERE id = 'sent' AND sent < ?",
    addMark: `INSERT INTO fieldpost_uploads (id, sent)
        SELECT 'sent', ? WHERE NOT EXISTS (SELECT 1 FROM fieldpost_uploads WHERE id = 'sent')`,
    sent: `SELECT coalesce((SELECT sent FROM fieldpost_uploads WHERE id = 'sent'),
        (SELECT min(id) - 1 FROM ps_crud), (SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number`,
    last: "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number",
    unsent: "SELECT coalesce((SELECT min(id) FROM ps_crud WHERE id > ?), ?) AS number",
    renumber: "UPDATE ps_crud SET id = id + ? WHERE id > ?",
    removeCounter: "DELETE FROM sqlite_sequence WHERE name = 'ps_crud'",
    addCounter: "INSERT INTO sqlite_sequence (name, seq) VALUES ('ps_crud', ?)",
    count: "SELECT count(*) AS number FROM ps_crud",
};

const withoutSlash = (url) => url.replace(/\/+$/, "");
const delay = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** An error with a stable `code`, and the problem of the server if there is one. */
export class ConnectorError extends Error {
    constructor(code, message, status = 0, problem = null) {
        super(`${code}: ${message}`);
        Object.assign(this, { name: "ConnectorError", code, status, problem });
    }
}

/** Returns the local tables of the connector, for the app's schema. They are not synchronised. */
export function localTables({ Table, column }) {
    const { text, integer } = column;
    return {
        fieldpost_rejections: new Table({
            table_name: text, row_id: text, operation: text, type: text, title: text, detail: text, data: text,
            time: text,
        }, { localOnly: true }),
        fieldpost_uploads: new Table({ sent: integer }, { localOnly: true }),
    };
}

/** Returns the id of a new row: a random UUID, followed by the path of its realm. */
export function rowID(realm) { return crypto.randomUUID() + realm; }

/** Returns the error of a response that is not successful. */
function errorOf(status, text) {
    let problem = null;
    try { problem = JSON.parse(text); } catch { /* A proxy may send a page. */ }
    const type = problem?.type ?? "about:blank";
    const code = type.startsWith(problemPrefix) ? type.slice(problemPrefix.length) : `http-${status}`;
    const message = problem?.detail ?? problem?.title ?? `The response is ${status}.`;
    return new ConnectorError(code, message, status, problem);
}

const json = (body) => ({
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

/** The connector: credentials, uploads, images and the login of one person. */
export class FieldpostConnector {
    #gateway; #onboarding; #store; #fetch; #WebSocket; #onLoginRequired; #renewal = null; #renewedAt = 0;
    /** Tokens: refused by the gateway, in use by the SDK, and to be replaced for the SDK. */
    #refused = null; #handedOut = null; #replaced = null; #alignedClient = null;

    constructor({ gateway, onboarding, store, fetch, WebSocket, onLoginRequired = () => {} }) {
        this.#gateway = withoutSlash(gateway);
        this.#onboarding = withoutSlash(onboarding);
        this.#store = store;
        this.#fetch = fetch ?? ((url, init) => globalThis.fetch(url, init));
        this.#WebSocket = WebSocket ?? globalThis.WebSocket;
        this.#onLoginRequired = onLoginRequired;
    }

    /** Returns the endpoint and a valid token, or `null` if no person is signed in. Called by the SDK. */
    async fetchCredentials() {
        // The SDK keeps credentials. It requests others if the stream refused them, or if the token ends.
        this.#replaced = this.#handedOut;
        // The stream of a moved environment answers 401. Only this request returns the new address (421).
        if (this.#replaced) { await this.#request("/v1/realms", {}).catch(() => {}); }
        const login = await this.#login();
        this.#handedOut = login?.accessToken ?? null;
        return login && { endpoint: login.gateway, token: login.accessToken, expiresAt: new Date(login.expiresAt) };
    }

    /** Returns a login with a valid token, renewed if necessary; `null` if the person has to log in. */
    #login() {
        const renew = () => this.#renewedLogin();
        // Two tabs must not renew at the same time: a credential is used once.
        const locks = globalThis.navigator?.locks;
        this.#renewal ??= (locks ? locks.request("fieldpost-renewal", renew) : renew())
            .finally(() => { this.#renewal = null; });
        return this.#renewal;
    }

    async #renewedLogin() {
        const login = await this.#store.load();
        if (!login) { return null; }
        const isRefused = login.accessToken === this.#refused;
        const isExpired = login.expiresAt <= Date.now();
        if (!login.credential) { return isRefused || isExpired ? null : login; }
        const isDue = login.accessToken === this.#replaced
            || (login.expiresAt - Date.now() < renewalMargin && Date.now() - this.#renewedAt > renewalInterval);
        if (!isRefused && !isDue) { return login; }
        try {
            return await this.#renew(login);
        } catch (error) {
            if (error.code === "login-required") {
                await this.#store.save({ ...login, credential: null });
                this.#onLoginRequired(error);
                return isRefused || isExpired ? null : login;
            }
            if (!isRefused && !isExpired) { return login; }
            throw error;
        }
    }

    async #renew(login) {
        let { onboarding } = login;
        const request = json({ credential: login.credential });
        const text = await this.#send(onboarding, "/v1/token", request, (moved) => { onboarding = moved; });
        const next = { ...login, onboarding, ...tokenOf(JSON.parse(text)) };
        // The next credential is stored before it is used.
        await this.#store.save(next);
        this.#renewedAt = Date.now();
        this.#refused = null;
        return next;
    }

    /** Returns the content of a response. If the environment has moved (421), repeats the request there. */
    async #send(base, path, request, onMoved = null) {
        const { isBinary = false, ...init } = request;
        const abort = new AbortController();
        const timer = setTimeout(() => abort.abort(), timeout);
        let response, content;
        try {
            response = await this.#fetch(base + path, { ...init, signal: abort.signal });
            content = await (isBinary && response.ok ? response.arrayBuffer() : response.text());
        } catch (error) {
            throw new ConnectorError("offline", `The server is unreachable (${error.message}).`);
        } finally {
            clearTimeout(timer);
        }
        if (response.ok) { return content; }
        const error = errorOf(response.status, content);
        const moved = error.status === 421 && error.problem?.baseURL;
        if (!moved || !onMoved) { throw error; }
        await onMoved(withoutSlash(moved));
        return this.#send(withoutSlash(moved), path, request);
    }

    /** Sends a request to the gateway with the person's token. */
    async #request(path, request) {
        const login = await this.#login();
        if (!login) { throw new ConnectorError("login-required", "No person is signed in.", 401); }
        const headers = { ...request.headers, Authorization: `Bearer ${login.accessToken}` };
        try {
            return await this.#send(login.gateway, path, { ...request, headers }, async (gateway) => {
                await this.#store.save({ ...await this.#store.load(), gateway });
            });
        } catch (error) {
            if (error.status === 401) { this.#refused = login.accessToken; }
            throw error;
        }
    }

    /** Uploads entries, which are JSON already, and returns their results. */
    async #post(clientId, numbers, entries) {
        const body = `{"clientId":${JSON.stringify(clientId)},"entries":[${entries.join(",")}]}`;
        const answer = JSON.parse(await this.#request("/v1/uploads", { ...json(), body }));
        const isComplete = answer.results?.map((each) => each.op_id).join() === numbers.join()
            && answer.results.every(({ accepted, rejected }) => accepted || rejected)
            && Number.isSafeInteger(answer.expectedSequence);
        if (isComplete) { return answer; }
        throw new ConnectorError("malformed-response", "The results are not those of the uploaded entries.");
    }

    /** Uploads the oldest entries of the queue, and stores rejections. The SDK retries 5 s after an error. */
    async uploadData(database) {
        const clientId = await database.getClientId();
        if (this.#alignedClient !== clientId) {
            await this.#alignNumbers(database, await this.#post(clientId, [], []));
            this.#alignedClient = clientId;
        }
        for (let countMax = entryCountMax; ;) {
            const batch = await database.getCrudBatch(countMax);
            if (!batch) { return; }
            const numbers = batch.crud.map((entry) => entry.clientId);
            const rows = await database.getAll(sql.entries, [numbers.at(-1)]);
            await database.writeTransaction((tx) => markSent(tx, numbers.at(-1)));
            let results;
            try {
                ({ results } = await this.#post(clientId, numbers, rows.map(({ entry }) => entry)));
            } catch (error) {
                if (error.status !== 413) { throw error; }
                countMax = Math.ceil(numbers.length / 2);
                if (numbers.length > 1) { continue; }
                // No request can contain this entry.
                const rejected = { type: `${problemPrefix}body-too-large`, ...error.problem };
                results = [{ op_id: numbers[0], rejected }];
            }
            // After a crash before `complete`, the repeat stores the same rejections.
            await database.writeTransaction((tx) => storeRejections(tx, results));
            await batch.complete();
            return;
        }
    }

    /**
     * Renumbers waiting entries if the server has results of numbers that this database never sent.
     * It was restored from a backup, or copied. New entries would get the stored results of other ones.
     */
    async #alignNumbers(database, { expectedSequence }) {
        await database.writeTransaction(async (tx) => {
            const { number: sent } = await tx.get(sql.sent);
            if (expectedSequence <= sent + 1) { return; }
            // Entries up to `sent` keep their numbers: they were sent, and a repeat is safe.
            const { number: last } = await tx.get(sql.last);
            const { number: unsent } = await tx.get(sql.unsent, [sent, last + 1]);
            // The new numbers are above all old ones, so that they do not collide.
            const shift = Math.max(expectedSequence, last + 1) - unsent;
            await tx.execute(sql.renumber, [shift, sent]);
            await tx.execute(sql.removeCounter);
            await tx.execute(sql.addCounter, [last + shift]);
        });
    }

    /** Uploads an image under a random UUID, before the row that refers to it. Repeats are safe. */
    async putImage(id, bytes, type = "application/octet-stream") {
        await this.#request(`/v1/blobs/${id}`, { method: "PUT", headers: { "Content-Type": type }, body: bytes });
    }

    /** Downloads an image. It never changes, so an app keeps it. */
    async getImage(id) { return new Uint8Array(await this.#request(`/v1/blobs/${id}`, { isBinary: true })); }

    /** Logs a person in. Resolves when the token is stored and the person's data is ready. */
    async login(email, { openURL, onProblem = () => {} }) {
        let onboarding = this.#onboarding;
        const request = json({ email });
        const text = await this.#send(onboarding, "/register_device", request, (moved) => { onboarding = moved; });
        const session = JSON.parse(text);
        const url = `${onboarding.replace(/^http/, "ws")}/sessions/${session.session_id}`;
        const deadline = Date.now() + session.expires_in * 1_000;
        const missing = new Set(["token", "data ready"]), handled = new Set();
        let failures = 0, isOffered = false;
        const opened = () => {
            failures = 0;
            if (!isOffered) { openURL(session.login_url); }
            isOffered = true;
        };
        const received = async ({ id, event, payload }) => {
            if (handled.has(id)) { return; }
            if (event === "token") {
                await this.#store.save({ onboarding, gateway: this.#gateway, ...tokenOf(payload) });
            } else if (event === "error") {
                onProblem({ code: payload.code, message: payload.message }, payload.login_url ?? null);
                if (!payload.login_url) { throw new ConnectorError(payload.code, payload.message); }
            }
            missing.delete(event);
            handled.add(id);
        };
        while (missing.size > 0) {
            if (Date.now() > deadline) { throw new ConnectorError("session-expired", "The login took too long."); }
            if (failures > 0) { await delay(Math.min(500 * 2 ** failures, 10_000)); }
            failures += 1;
            await this.#follow(url, deadline, opened, received, () => missing.size === 0);
        }
    }

    /** Reads the events of a session until the login is complete, the socket closes, or the deadline. */
    #follow(url, deadline, opened, received, isComplete) {
        return new Promise((resolve, reject) => {
            const socket = new this.#WebSocket(url);
            const expiry = setTimeout(() => socket.close(), deadline - Date.now());
            let processed = Promise.resolve();
            socket.onopen = opened;
            socket.onmessage = ({ data }) => {
                processed = processed.then(async () => {
                    const event = JSON.parse(data);
                    await received(event);
                    if (socket.readyState === 1) { socket.send(JSON.stringify({ acknowledge: event.id })); }
                    if (isComplete()) { socket.close(); }
                }).catch((error) => { reject(error); socket.close(); });
            };
            socket.onclose = async ({ code, reason }) => {
                clearTimeout(expiry);
                await processed;
                if (code >= 4000) { reject(new ConnectorError("session-closed", reason || `Close code ${code}.`)); }
                resolve();
            };
        });
    }

    /** Ends the login and clears the database. Throws `queued-entries` unless `discard` is true. */
    async signOut(database, { discard = false } = {}) {
        const { number: count } = await database.get(sql.count);
        if (count > 0 && !discard) {
            throw new ConnectorError("queued-entries", `${count} changes were not uploaded yet.`);
        }
        await database.disconnectAndClear();
        await this.#renewal?.catch(() => {});
        const login = await this.#store.load();
        await this.#store.save(null);
        this.#alignedClient = null;
        if (!login?.credential) { return; }
        await this.#send(login.onboarding, "/v1/logout", json({ credential: login.credential })).catch(() => {});
    }
}

/** Reads the token of an event or of a renewal. */
function tokenOf({ access_token: accessToken, expires_at: expiresAt, credential }) {
    return { accessToken, expiresAt: Date.parse(expiresAt), credential: credential ?? null };
}

/** Records the highest number that was sent, before it is sent. */
async function markSent(tx, number) {
    await tx.execute(sql.removeMark, [number]);
    await tx.execute(sql.addMark, [number]);
}

/** Stores rejections with the content of their entries. */
async function storeRejections(tx, results) {
    for (const { op_id: number, rejected } of results) {
        if (!rejected) { continue; }
        const { type, title = null, detail = null } = rejected;
        // The tables are views, which have no upsert.
        await tx.execute(sql.removeRejection, [String(number)]);
        await tx.execute(sql.addRejection, [type, title, detail, new Date().toISOString(), number]);
    }
}
