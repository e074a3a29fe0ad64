/** The device API of a naive `Server`, as a function in place of `fetch`. */
import { own, Stream } from "./server.mjs";

const json = (status, body, headers = {}) => new Response(JSON.stringify(body), { status, headers });

export class Gateway {
    /** Difference of the server's clock from that of this process, in milliseconds. */
    clockOffset = 0;
    /** Address to which the organisation moved. */
    movedTo = null;
    /** Results by client id. */
    results = new Map();
    blobs = new Map();
    renewals = 0;
    /** Ids of applied mutations and of uploaded images, in order. */
    received = [];
    #waiting = [];

    constructor(server) { this.server = server; }

    /** Continues the streams after the server's data have changed. */
    wake() { for (const resume of this.#waiting.splice(0)) { resume(); } }

    /** Writes as another device; `null` deletes. */
    write(path, id, fields) { this.server.write(path, id, fields); this.wake(); }

    async fetch(url, { method, body, signal }) {
        await new Promise((resolve) => { setImmediate(resolve); });
        if (signal?.aborted) { throw signal.reason; }
        const response = this.respond(new URL(url).pathname, method, body, signal);
        response.headers.set("Date", new Date(Date.now() + this.clockOffset).toUTCString());
        return response;
    }

    respond(path, method, body, signal) {
        if (path === "/v1/token") {
            this.renewals += 1;
            const expiry = new Date(Date.now() + this.clockOffset + 3_600_000).toISOString();
            const token = { access_token: `renewed ${this.renewals}`, expires_at: expiry, credential: "credential" };
            return json(200, token);
        }
        if (this.movedTo) { return json(421, { type: "environment-moved", baseURL: this.movedTo }); }
        if (path === "/v1/realms") { return json(200, { realms: [{ realm: own }], person: "person" }); }
        if (path === "/v1/mutations") { return this.apply(JSON.parse(body)); }
        if (path === "/v1/sync") { return this.stream(JSON.parse(body), signal); }
        if (path.startsWith("/v1/blobs/") && method === "PUT") {
            const id = path.slice("/v1/blobs/".length);
            this.blobs.set(id, body);
            this.received.push(id);
            return json(201, {});
        }
        return json(404, { type: "unknown" });
    }

    apply({ clientId, mutations }) {
        this.server.results = this.results.get(clientId) ?? [];
        const items = mutations.map(({ op, ...item }) => ({ ...item, operation: op }));
        const { outcomes, expectedSequence } = this.server.apply({ mutations: items });
        if (!outcomes) { return json(409, { expectedSequence }); }
        this.results.set(clientId, this.server.results);
        this.received.push(...items.map(({ id }) => id));
        this.wake();
        const results = [...outcomes].map(([sequence, { accepted, rejected }]) => (rejected
            ? { sequence, rejected: { type: rejected.code, detail: rejected.detail } }
            : { sequence, accepted: { position: accepted } }));
        return json(200, { results, expectedSequence });
    }

    stream({ realms }, signal) {
        const stream = new Stream(this.server, realms);
        let isOpen = true;
        const encoder = new TextEncoder();
        const body = new ReadableStream({
            start: (controller) => {
                signal?.addEventListener("abort", () => {
                    if (isOpen) { isOpen = false; controller.error(new DOMException("aborted", "AbortError")); }
                });
            },
            pull: async (controller) => {
                while (isOpen) {
                    const next = stream.next(this.server);
                    if (next) { controller.enqueue(encoder.encode(`${JSON.stringify(next.line)}\n`)); return; }
                    if (stream.isEnded) { isOpen = false; controller.close(); return; }
                    await new Promise((resolve) => { this.#waiting.push(resolve); });
                }
            },
            cancel: () => { isOpen = false; },
        });
        return new Response(body, { status: 200 });
    }
}
