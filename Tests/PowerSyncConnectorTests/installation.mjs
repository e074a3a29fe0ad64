/**
 * A device with the JavaScript connector against a running installation. `PowerSyncFlowTests` starts it.
 *
 * Environment variables: GATEWAY_URL, IDENTITY_URL (the sandbox's), EMAIL.
 */
import assert from "node:assert/strict";
import { FieldpostConnector } from "../../examples/powersync/javascript/connector.js";
import { Database } from "./database.mjs";
import { Stream } from "./stream.mjs";

const { GATEWAY_URL: gateway, IDENTITY_URL: identity, EMAIL: email } = process.env;
const realm = `/users/${email}`;
const response = await fetch(`${identity}/sandbox/token`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ email }),
});
const { access_token: accessToken } = await response.json();
const login = { onboarding: gateway, gateway, accessToken, expiresAt: Date.now() + 3_600_000, credential: null };
const store = { load: async () => login, save: async () => {} };
const connector = new FieldpostConnector({ gateway, onboarding: gateway, store });
const database = await (await Database.open()).create();
const stream = await new Stream(database, connector).create();
const client = await database.getClientId();

/** Returns the displayed objects of a kind, by their ids. */
async function shown(kind) {
    const rows = await database.getAll("SELECT id, data FROM shown WHERE type = ?", [kind]);
    return new Map(rows.map(({ id, data }) => [id, JSON.parse(data)]));
}

/** Waits until a condition is true. */
async function until(what, condition) {
    for (const end = Date.now() + 120_000; !await condition();) {
        if (Date.now() > end) { throw new Error(`not within 120 s: ${what}`); }
        await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
}

/** Uploads the queue, and waits until its results are displayed, as the SDK does. */
async function upload() {
    while ((await database.numbers()).length > 0) { await connector.uploadData(database); }
    const { token } = await connector.fetchCredentials();
    const response = await fetch(`${gateway}/write-checkpoint2.json?client_id=${client}`, {
        headers: { Authorization: `Token ${token}`, "Content-Type": "application/json" },
    });
    assert.equal(response.status, 200);
    const count = stream.completedCount;
    stream.awaited = Number((await response.json()).data.write_checkpoint);
    await until("the write checkpoint", () => stream.completedCount > count);
}

/** Runs a part of the test while the stream is connected. */
async function whileConnected(body) {
    let following;
    await new Promise((resolve, reject) => { following = stream.follow(resolve); following.catch(reject); });
    await body();
    stream.stop();
    await following;
}

const [first, second, invalid, image] = Array.from({ length: 4 }, () => crypto.randomUUID());
const headers = { Authorization: `Bearer ${accessToken}` };
await until("the gateway has the environment", async () => (await fetch(`${gateway}/v1/realms`, { headers })).ok);
await whileConnected(async () => {
    await until("the first download", async () => (await shown("Person")).size > 0);
    await database.write({ op: "PUT", type: "Note", id: first + realm, data: { title: "\"milk\" \\ ü", isTask: 1 } });
    await upload();
    const note = (await shown("Note")).get(first + realm);
    assert.deepEqual([note.title, note.isTask], ["\"milk\" \\ ü", true]);

    // A rejected entry is never displayed, and reported.
    await database.write({ op: "PUT", type: "Note", id: invalid + realm, data: { colour: "blue" } });
    await upload();
    assert.equal((await shown("Note")).has(invalid + realm), false);
    const [rejection] = await database.rejections();
    assert.deepEqual([rejection.row_id, rejection.type], [invalid + realm, "urn:fieldpost:problem:unknown-field"]);

    const png = Buffer.from(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=", "base64");
    await connector.putImage(image, png, "image/png");
    assert.deepEqual((await connector.getImage(image)).subarray(0, 8), new Uint8Array(png.subarray(0, 8)));
});
assert.equal(stream.encoding, "gzip");

// Written offline, and uploaded with the next connection, which continues from its positions.
await database.write(
    { op: "PATCH", type: "Note", id: first + realm, data: { isDone: 1 } },
    { op: "PUT", type: "Note", id: second + realm, data: { title: "bread" } });
const lineCount = stream.lineCount;
await whileConnected(async () => {
    await upload();
    const notes = await shown("Note");
    assert.deepEqual([notes.get(first + realm).isDone, notes.get(second + realm).title], [true, "bread"]);
    await database.write({ op: "DELETE", type: "Note", id: second + realm });
    await upload();
    assert.equal((await shown("Note")).has(second + realm), false);
});
assert.ok(stream.lineCount - lineCount < 20, `${stream.lineCount - lineCount} lines`);
database.close();
console.log("the device has what the installation has");
