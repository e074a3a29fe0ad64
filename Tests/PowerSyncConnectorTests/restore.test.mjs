/** A database that was restored from a backup has numbers that the server already used for other entries. */
import assert from "node:assert/strict";
import test from "node:test";
import { note, titles, uploadAll, withConnector } from "./support.mjs";

test("entries written after a restore get new numbers", () => withConnector(async (context) => {
    const { connector, database, gateway, start, backup } = context;
    await database.write(note("before"));
    await uploadAll(connector, database);
    const restored = await backup();
    await database.write(note("lost 1"), note("lost 2"), note("lost 3"));
    await uploadAll(connector, database);

    await restored.write(note("new"));
    await uploadAll(start(), restored);
    assert.deepEqual(titles(gateway.applied), ["before", "lost 1", "lost 2", "lost 3", "new"]);
    assert.equal(await restored.counter(), 5);
    // The next start finds nothing to change.
    await restored.write(note("next"));
    await uploadAll(start(), restored);
    assert.equal(gateway.uploads.at(-1)[0].op_id, 6);
}));

test("as many entries as the server is ahead are not answered from its memory", () => withConnector(async (context) => {
    const { connector, database, gateway, start, backup } = context;
    await database.write(note("before"));
    await uploadAll(connector, database);
    const restored = await backup();
    await database.write(note("lost"));
    await uploadAll(connector, database);

    // Its counter does not reveal the restore: the number is the one that the server expects less one.
    await restored.write(note("new 1"), note("new 2"));
    await uploadAll(start(), restored);
    assert.deepEqual(titles(gateway.applied), ["before", "lost", "new 1", "new 2"]);
}));

test("entries that were sent before the backup keep their numbers", () => withConnector(async (context) => {
    const { connector, database, gateway, start, backup } = context;
    await connector.uploadData(database);
    await database.write(note("in flight 1"), note("in flight 2"));
    gateway.isCutAfterCommit = true;
    await assert.rejects(connector.uploadData(database), { code: "offline" });
    const restored = await backup();
    await uploadAll(connector, database);
    await database.write(note("lost"));
    await uploadAll(connector, database);

    await restored.write(note("new"));
    await uploadAll(start(), restored);
    assert.deepEqual(titles(gateway.applied), ["in flight 1", "in flight 2", "lost", "new"]);
    assert.deepEqual(gateway.uploads.at(-1).map((entry) => entry.op_id), [1, 2, 4]);
}));

test("many waiting entries are renumbered in their order", () => withConnector(async (context) => {
    const { connector, database, gateway, start, backup } = context;
    const restored = await backup();
    await database.write(note("lost 1"), note("lost 2"));
    await uploadAll(connector, database);
    const expected = Array.from({ length: 300 }, (_, index) => `new ${index}`);
    await restored.write(...expected.map((title) => note(title)));
    await uploadAll(start(), restored);
    assert.deepEqual(titles(gateway.applied).slice(2), expected);
}));

test("a backup from before the first upload has no mark, and is detected", () => withConnector(async (context) => {
    const { connector, database, gateway, start, backup } = context;
    const restored = await backup();
    await database.write(note("lost 1"), note("lost 2"));
    await uploadAll(connector, database);
    await restored.write(note("new"));
    await uploadAll(start(), restored);
    assert.deepEqual(titles(gateway.applied), ["lost 1", "lost 2", "new"]);
}));

test("the mark is stored before the request", () => withConnector(async ({ connector, database, gateway }) => {
    await connector.uploadData(database);
    await database.write(note("first"), note("second"));
    gateway.isCutAfterCommit = true;
    await assert.rejects(connector.uploadData(database));
    assert.deepEqual(await database.get("SELECT sent FROM fieldpost_uploads"), { sent: 2 });
}));

test("a smaller batch does not lower the mark", () => withConnector(async ({ connector, database, gateway, start }) => {
    await connector.uploadData(database);
    await database.write(note("a".repeat(600)), note("b".repeat(600)));
    gateway.isCutAfterCommit = true;
    await assert.rejects(connector.uploadData(database));
    gateway.bytesMax = 1_000;
    await start().uploadData(database);
    assert.deepEqual(await database.get("SELECT sent FROM fieldpost_uploads"), { sent: 2 });
    await uploadAll(start(), database);
    assert.equal(gateway.applied.length, 2);
}));

test("the numbers are compared once per start", () => withConnector(async ({ connector, database, gateway }) => {
    for (const title of ["first", "second"]) {
        await database.write(note(title));
        await connector.uploadData(database);
    }
    assert.equal(gateway.requests.filter((request) => request === "POST /v1/uploads").length, 3);
}));
