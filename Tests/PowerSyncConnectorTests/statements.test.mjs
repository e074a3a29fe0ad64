/** The connectors that are not run here have the SQL statements of the one that is. */
import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";

const folder = new URL("../../examples/powersync/", import.meta.url);
const read = (path) => fs.readFileSync(new URL(path, folder), "utf8");
const collapsed = (text) => text.replace(/\s+/g, " ");

/** Returns the statements of `connector.js`. */
function statements() {
    const source = read("javascript/connector.js");
    const list = source.slice(source.indexOf("const sql = {"), source.indexOf("\n};") + 1);
    return [...list.matchAll(/: (["`])(.*?)\1,\n/gs)].map((match) => collapsed(match[2]));
}

test("all statements are found", () => { assert.equal(statements().length, 12); });

for (const path of [
    "swift/FieldpostConnector.swift", "kotlin/FieldpostConnector.kt", "dart/fieldpost_connector.dart",
    "csharp/FieldpostConnector.cs",
]) {
    test(`${path} has the same statements`, () => {
        const text = collapsed(read(path));
        assert.deepEqual(statements().filter((statement) => !text.includes(statement)), []);
        const verbs = /\b(SELECT (?=json_set|coalesce|count)|(INSERT INTO|UPDATE|DELETE FROM) (?=\w))/g;
        assert.equal(text.match(verbs).length, 12);
    });
}
