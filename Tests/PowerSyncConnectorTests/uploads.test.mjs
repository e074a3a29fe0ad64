/** Uploads of the PowerSync connector for JavaScript, to a server that keeps numbers and results like the gateway. */
import assert from "node:assert/strict";
import test from "node:test";
import { problem } from "./gateway.mjs";
import { note, realm, titles, uploadAll, withConnector } from "./support.mjs";

const invalid = problem(422, "invalid-field").body;

test("entries are uploaded as the SDK has them, and removed from the queue", () => withConnector(async (context) => {
    const { connector, database, gateway } = context;
    const id = crypto.randomUUID() + realm;
    await database.write(
        { op: "PUT", type: "Note", id, data: { title: "milk" }, metadata: "app" },
        { op: "PATCH", type: "Note", id, data: { title: null }, old: { title: "milk" } },
    );
    await database.write({ op: "DELETE", type: "Note", id });
    await connector.uploadData(database);
    assert.deepEqual(gateway.uploads, [[
        { op_id: 1, op: "PUT", type: "Note", id, tx_id: 1, data: { title: "milk" }, metadata: "app" },
        { op_id: 2, op: "PATCH", type: "Note", id, tx_id: 1, data: { title: null }, old: { title: "milk" } },
        { op_id: 3, op: "DELETE", type: "Note", id, tx_id: 2, data: null },
    ]]);
    assert.deepEqual(await database.numbers(), []);
    assert.deepEqual(await database.rejections(), []);
}));

test("a long queue is uploaded in batches, in order", () => withConnector(async (context) => {
    const { connector, database, gateway } = context;
    const expected = Array.from({ length: 450 }, (_, index) => `note ${index}`);
    await database.write(...expected.map((title) => note(title)));
    await connector.uploadData(database);
    assert.equal((await database.numbers()).length, 250);
    await uploadAll(connector, database);
    assert.deepEqual(gateway.uploads.map((entries) => entries.length), [200, 200, 50]);
    assert.deepEqual(titles(gateway.applied), expected);
}));

test("a rejected entry is stored, and does not block later ones", () => withConnector(async (context) => {
    const { connector, database, gateway } = context;
    gateway.rejectionOf = ({ data }) => (data?.title === "bad" ? invalid : null);
    const bad = note("bad");
    await database.write(note("good"), bad, note("later"));
    await connector.uploadData(database);
    assert.deepEqual(titles(gateway.applied), ["good", "later"]);
    assert.deepEqual(await database.numbers(), []);
    const [{ time, ...row }, ...more] = await database.rejections();
    assert.deepEqual(more, []);
    assert.deepEqual(row, {
        id: "2", table_name: "Note", row_id: bad.id, operation: "PUT", type: invalid.type, title: "Problem",
        detail: "Detail of invalid-field.", data: '{"title":"bad"}',
    });
    assert.ok(Math.abs(Date.now() - Date.parse(time)) < 60_000);
}));

test("a crash before the batch is completed repeats the same results", () => withConnector(async (context) => {
    const { connector, database, gateway, start } = context;
    gateway.rejectionOf = ({ data }) => (data?.title === "bad" ? invalid : null);
    await database.write(note("good"), note("bad"));
    database.beforeComplete = () => { throw new Error("crash"); };
    await assert.rejects(connector.uploadData(database), /crash/);
    // Rejections are stored before the queue loses the entries.
    assert.equal((await database.rejections()).length, 1);
    database.beforeComplete = () => {};
    await start().uploadData(database);
    assert.deepEqual(titles(gateway.applied), ["good"]);
    assert.equal((await database.rejections()).length, 1);
    assert.deepEqual(await database.numbers(), []);
}));

test("a connection that is cut after the commit applies entries once", () => withConnector(async (context) => {
    const { connector, database, gateway, start } = context;
    await connector.uploadData(database);
    await database.write(note("first"), note("second"));
    gateway.isCutAfterCommit = true;
    await assert.rejects(connector.uploadData(database), { code: "offline" });
    assert.deepEqual(await database.numbers(), [1, 2]);
    // The number of the next write is above that of the lost response.
    await database.write(note("third"));
    await start().uploadData(database);
    assert.deepEqual(titles(gateway.applied), ["first", "second", "third"]);
    assert.deepEqual(gateway.uploads.at(-1).map((entry) => entry.op_id), [1, 2, 3]);
}));

const failures = [[503, "busy"], [429, "too-many-requests"], [500, "http-500"], [400, "malformed-request"]];
for (const [status, code] of failures) {
    test(`a response ${status} keeps the queue and reports ${code}`, () => withConnector(async (context) => {
        const { connector, database, gateway } = context;
        await database.write(note("milk"));
        const response = status === 500 ? { status, body: {} } : problem(status, code);
        gateway.fail("/v1/uploads", undefined, response);
        const detail = status === 500 ? /http-500/ : new RegExp(`Detail of ${code}`);
        await assert.rejects(connector.uploadData(database), (error) => (
            error.code === code && error.status === status && detail.test(error.message)));
        assert.deepEqual(await database.numbers(), [1]);
        assert.deepEqual(await database.rejections(), []);
        await connector.uploadData(database);
        assert.deepEqual(titles(gateway.applied), ["milk"]);
    }));
}

test("an unreachable server keeps the queue", () => withConnector(async ({ connector, database, gateway }) => {
    await database.write(note("milk"));
    gateway.stop();
    await assert.rejects(connector.uploadData(database), { code: "offline", status: 0 });
    assert.deepEqual(await database.numbers(), [1]);
}));

test("a batch that is too large is halved", () => withConnector(async ({ connector, database, gateway }) => {
    gateway.bytesMax = 2_000;
    const expected = ["a", "b", "c", "d", "e"].map((letter) => letter.repeat(600));
    await database.write(...expected.map((title) => note(title)));
    await uploadAll(connector, database);
    assert.deepEqual(titles(gateway.applied), expected);
    assert.deepEqual(await database.rejections(), []);
}));

test("an entry that no request can contain is rejected on the device", () => withConnector(async (context) => {
    const { connector, database, gateway } = context;
    gateway.bytesMax = 2_000;
    await database.write(note("small"), note("x".repeat(3_000)), note("later"));
    await uploadAll(connector, database);
    assert.deepEqual(titles(gateway.applied), ["small", "later"]);
    const [row] = await database.rejections();
    assert.equal(row.id, "2");
    assert.equal(row.type, "urn:fieldpost:problem:body-too-large");
}));

for (const [name, results] of [
    ["of other entries", [{ op_id: 7, accepted: { position: 1 } }, { op_id: 2, accepted: { position: 2 } }]],
    ["that are missing", [{ op_id: 1, accepted: { position: 1 } }]],
    ["without an outcome", [{ op_id: 1 }, { op_id: 2, accepted: { position: 2 } }]],
]) {
    test(`results ${name} do not complete the batch`, () => withConnector(async ({ connector, database, gateway }) => {
        await database.write(note("first"), note("second"));
        gateway.fail("/v1/uploads", undefined, { status: 200, body: { results, expectedSequence: 3 } });
        await assert.rejects(connector.uploadData(database), { code: "malformed-response" });
        assert.deepEqual(await database.numbers(), [1, 2]);
    }));
}

test("a gap after the database was cleared is accepted", () => withConnector(async (context) => {
    const { connector, database, gateway, start } = context;
    await database.write(note("first"));
    await connector.uploadData(database);
    await database.write(note("discarded"), note("discarded"));
    await database.disconnectAndClear();
    await database.write(note("last"));
    await start().uploadData(database);
    assert.deepEqual(titles(gateway.applied), ["first", "last"]);
    assert.equal(gateway.uploads.at(-1)[0].op_id, 4);
}));
