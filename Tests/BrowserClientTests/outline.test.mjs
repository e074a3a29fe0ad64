/** The outline of the map, with a store in memory and a server that has only the outline. */
import assert from "node:assert/strict";
import test from "node:test";
import { Fieldpost } from "../../Services/Onboarding/App/fieldpost.js";

globalThis.navigator ??= {};

const first = { type: "FeatureCollection", features: [] };
const second = { type: "FeatureCollection", features: [{ type: "Feature" }] };

/** Answers as the gateway does. `content`: undefined for an unreachable server, null for no outline. */
class Server {
    content = null;
    requests = [];

    async fetch(address, { headers = {}, signal } = {}) {
        const { pathname } = new URL(address);
        if (pathname === "/v1/realms") {
            return Response.json({ realms: [{ realm: "/users/ana@example.com", permissions: ["read"] }] });
        }
        if (pathname !== "/v1/outline") {
            // No stream opens.
            return new Promise((_, reject) => {
                const abort = () => reject(new DOMException("aborted", "AbortError"));
                if (signal?.aborted) { abort(); } else { signal?.addEventListener("abort", abort); }
            });
        }
        const held = headers["If-None-Match"];
        this.requests.push(held);
        await this.pause;
        if (this.content === undefined) throw new TypeError("unreachable");
        if (this.content === null) {
            return Response.json({ type: "urn:fieldpost:problem:outline-unknown" }, { status: 404 });
        }
        const tag = `"${JSON.stringify(this.content).length}"`;
        const options = { status: held === tag ? 304 : 200, headers: { ETag: tag } };
        return new Response(held === tag ? null : JSON.stringify(this.content), options);
    }
}

/** Runs `body` with a signed-in client. */
async function withClient(body) {
    const server = new Server();
    const original = globalThis.fetch;
    globalThis.fetch = (address, options) => server.fetch(address, options);
    const fieldpost = await Fieldpost.open({ gateway: "https://gateway.example", onboarding: "https://example" });
    try {
        await fieldpost.signInWithToken({ accessToken: "a", expiresAt: Date.now() + 3_000_000 });
        const outlines = async () => {
            const list = [];
            await fieldpost.outline((outline) => list.push(outline));
            return list;
        };
        await body(fieldpost, server, outlines);
    } finally {
        await fieldpost.close();
        globalThis.fetch = original;
    }
}

test("an outline is stored, compared by its tag, replaced and removed", () => withClient(
    async (fieldpost, server, outlines) => {
        assert.deepEqual(await outlines(), [null]);
        server.content = first;
        assert.deepEqual(await outlines(), [first]);
        assert.deepEqual(await outlines(), [first], "304: nothing further");
        server.content = undefined;
        assert.deepEqual(await outlines(), [first], "offline");
        server.content = second;
        assert.deepEqual(await outlines(), [first, second]);
        server.content = null;
        assert.deepEqual(await outlines(), [second, null]);
        assert.deepEqual(await outlines(), [null]);
        const tags = [first, second].map((outline) => `"${JSON.stringify(outline).length}"`);
        assert.deepEqual(server.requests, [undefined, undefined, tags[0], tags[0], tags[0], tags[1], undefined]);
    }));

test("signing out removes the outline, also one that arrives later", () => withClient(
    async (fieldpost, server, outlines) => {
        server.content = first;
        await outlines();
        let go;
        server.pause = new Promise((resolve) => { go = resolve; });
        server.content = second;
        const late = outlines();
        await new Promise((resolve) => { setTimeout(resolve); });
        assert.equal(server.requests.length, 2);
        await fieldpost.signOut();
        go();
        assert.deepEqual(await late, [first]);
        server.content = undefined;
        await fieldpost.signInWithToken({ accessToken: "b", expiresAt: Date.now() + 3_000_000 });
        assert.deepEqual(await outlines(), []);
    }));
