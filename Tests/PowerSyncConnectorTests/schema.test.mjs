/** The generated schema. Its JavaScript is imported with a small SDK, and SQLite executes its statements. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Database } from "./database.mjs";

const project = new URL("../../", import.meta.url);
const id = "0b6cbf5c-6d0e-4f0e-9d3a-0c1c6f0d7a04/users/ana@acme.example";

/** The shape of the SDK's classes. A column `id` is an error there too. */
const sdk = `
export const column = { text: { type: "TEXT" }, integer: { type: "INTEGER" }, real: { type: "REAL" } };
export class Table {
    constructor(columns) {
        if ("id" in columns || Object.values(columns).some((each) => !each)) { throw new Error("Invalid column"); }
        this.columns = columns;
    }
}
`;

function generate(language, ...options) {
    const program = fileURLToPath(new URL(".build/debug/fieldpost", project));
    return execFileSync(program, ["schema", "generate", "powersync", "--language", language, ...options], {
        encoding: "utf8", env: {},
    });
}

async function load(...options) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "schema-"));
    try {
        const library = path.join(folder, "node_modules/@powersync/common");
        fs.mkdirSync(library, { recursive: true });
        fs.writeFileSync(path.join(library, "package.json"), JSON.stringify({ type: "module", main: "index.js" }));
        fs.writeFileSync(path.join(library, "index.js"), sdk);
        fs.writeFileSync(path.join(folder, "schema.mjs"), generate("javascript", ...options));
        return await import(pathToFileURL(path.join(folder, "schema.mjs")));
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
}
const { tables, views } = await load();

/** Returns an object of the kind with every field. */
const whole = (kind) =>
    JSON.parse(fs.readFileSync(new URL(`Tests/ModelTests/Golden/${kind}.v1.json`, project), "utf8"));

/** Runs a test with the tables as the SDK creates them: views of JSON, with a trigger for writes. */
async function withTables(body, schema = { tables, views }) {
    const database = await Database.open();
    try {
        for (const [name, { columns }] of Object.entries(schema.tables)) {
            const values = Object.entries(columns)
                .map(([column, { type }]) => `CAST(json_extract(data, '$.${column}') AS ${type}) AS "${column}"`);
            await database.getAll(`CREATE TABLE "ps_data__${name}" (id TEXT PRIMARY KEY NOT NULL, data TEXT)`);
            await database.getAll(
                `CREATE VIEW "${name}" AS SELECT id, ${values.join(", ")} FROM "ps_data__${name}"`);
        }
        for (const sql of schema.views) { await database.getAll(sql); }
        const insert = (kind, fields, row = id) =>
            database.getAll(`INSERT INTO "ps_data__${kind}" VALUES (?, ?)`, [row, JSON.stringify(fields)]);
        await body(database, insert);
    } finally {
        database.close();
    }
}

test("tables have the fields of their kinds, with the types of the values", async () => {
    await withTables(async (database, insert) => {
        for (const [kind, { columns }] of Object.entries(tables)) {
            const fields = whole(kind);
            assert.deepEqual(Object.keys(columns).sort(), Object.keys(fields).sort(), kind);
            await insert(kind, fields);
            const row = await database.get(`SELECT * FROM "${kind}"`);
            for (const [name, value] of Object.entries(fields)) {
                const expected = typeof value === "boolean" ? Number(value) : value;
                const actual = typeof value === "object" ? JSON.parse(row[name]) : row[name];
                assert.deepEqual(actual, expected, `${kind}.${name}`);
            }
        }
    });
});

test("each list and object has a view with unique columns", async () => {
    await withTables(async (database) => {
        const names = (await database.getAll("SELECT name FROM sqlite_master WHERE type = 'view'"))
            .map(({ name }) => name);
        const structures = Object.keys(tables).flatMap((kind) => Object.entries(whole(kind))
            .filter(([, value]) => typeof value === "object").map(([name]) => `${kind}_${name}`));
        assert.ok(structures.length > 10);
        assert.deepEqual(structures.filter((name) => !names.includes(name)), []);
        for (const name of names) {
            const columns = (await database.getAll(`PRAGMA table_info("${name}")`)).map((column) => column.name);
            assert.equal(columns[0], "id");
            // SQLite renames the second of two columns with one name.
            assert.deepEqual(columns.filter((column) => !/^\w+$/.test(column)), [], name);
            await database.getAll(`SELECT * FROM "${name}"`);
        }
    });
});

test("a list of objects has a row for each element, with its index", async () => {
    await withTables(async (database, insert) => {
        const { reporting } = whole("TimeEntry");
        await insert("TimeEntry", { reporting });
        await insert("TimeEntry", { text: "no choices" }, `${id}2`);
        assert.deepEqual(
            await database.getAll(`SELECT * FROM "TimeEntry_reporting" ORDER BY "reportingIndex"`),
            reporting.map((selection, index) => ({ id, reportingIndex: index, ...selection })));
    });
});

test("an object has a row with typed members", async () => {
    await withTables(async (database, insert) => {
        await insert("FieldTask", { place: { latitude: 55, title: "Gate" } });
        await insert("FieldTask", { title: "no location" }, `${id}2`);
        const rows = await database.getAll(
            `SELECT id, latitude, typeof(latitude) AS type, title, city FROM "FieldTask_place"`);
        assert.deepEqual(rows, [{ id, latitude: 55, type: "real", title: "Gate", city: null }]);
    });
});

test("nested lists and maps have views with the keys of all levels", async () => {
    await withTables(async (database, insert) => {
        const { sections } = whole("ReportingContext");
        await insert("ReportingContext", { sections });
        const joined = await database.getAll(`SELECT name, value FROM "ReportingContext_sections"
            JOIN "ReportingContext_sections_items" USING (id, "sectionsIndex")`);
        assert.deepEqual(joined, [{ name: "Suggestions", value: sections[0].items[0] }]);

        await insert("DefectCommand", whole("DefectCommand"));
        const rows = (view) => database.getAll(`SELECT * FROM "DefectCommand_${view}"`);
        assert.deepEqual(await rows("base"), [{ id, baseKey: "State", value: "Opened" }]);
        assert.deepEqual(await rows("choices_value"), [
            { id, choicesKey: "Component", valueIndex: 0, value: "Cranes" },
            { id, choicesKey: "Component", valueIndex: 1, value: "Piers" },
        ]);
        assert.deepEqual(await rows("detail_items"), [{
            id, itemsIndex: 0, itemsId: "33554442", name: "All defects", folder: "Public Queries", isFolder: 0,
        }]);
        assert.deepEqual((await rows("detail_rows_value")).map(({ rowsIndex, valueIndex }) => [rowsIndex, valueIndex]),
            [[0, 0], [0, 1]]);
    });
});

test("a text that is not JSON affects its own row only", async () => {
    await withTables(async (database, insert) => {
        await insert("TimeEntry", { reporting: "a,b" });
        await insert("FieldTask", { place: "Gate" });
        await insert("TimeEntry", { reporting: [{ context: "c", node: "n" }] }, `${id}2`);
        await insert("FieldTask", { place: { title: "Gate" } }, `${id}2`);
        const reported = await database.getAll(`SELECT id FROM "TimeEntry_reporting" WHERE node = 'n'`);
        assert.deepEqual(reported, [{ id: `${id}2` }]);
        const located = await database.getAll(`SELECT id FROM "FieldTask_place" WHERE title = 'Gate'`);
        assert.deepEqual(located, [{ id: `${id}2` }]);
    });
});

test("the statements can be repeated, and are those of the SQL output", async () => {
    await withTables(async (database) => {
        for (const sql of views) { await database.getAll(sql); }
    });
    const [header, ...lines] = generate("sql").split("\n");
    assert.match(header, /^-- Generated: /);
    // JavaScript keeps the indentation of the lines.
    const collapsed = (sql) => sql.trim().replace(/\s+/g, " ");
    assert.deepEqual(lines.join("\n").split(";").slice(0, -1).map(collapsed), views.map(collapsed));
});

test("own kinds with unusual names of members have tables and views", async () => {
    const [text, number] = [{ type: "string" }, { type: "number" }];
    const list = (items) => ({ type: "array", items });
    const object = (properties) => ({ type: "object", properties });
    const properties = {
        isOpen: { type: "boolean" }, any: {}, free: { type: "object" }, texts: list(text), odd: object({ "é": text }),
        place: object({ x: object({ y: text }), z: number, Z: text, id: text, "a\"`${b}": text, "": text }),
        place_x: object({ y: text }), grid: list(list(number)),
        rows: list(object({ rowsIndex: text, rows: list(text), cells: list(object({ n: number })) })),
    };
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kinds-"));
    try {
        const file = path.join(folder, "kinds.json");
        fs.writeFileSync(file, JSON.stringify({ kinds: { Array: { realms: ["user"], properties } } }));
        const schema = await load("--kinds", file);
        assert.deepEqual(Object.keys(schema.tables), [...Object.keys(tables), "Array"]);
        await withTables(async (database, insert) => {
            const names = schema.views.map((sql) => /^CREATE VIEW "(.*?)"/.exec(sql)?.[1]).filter(Boolean);
            assert.equal(new Set(names.map((name) => name.toLowerCase())).size, names.length);
            for (const name of names.filter((name) => name.startsWith("Array_"))) {
                const columns = (await database.getAll(`PRAGMA table_info("${name}")`)).map((column) => column.name);
                assert.deepEqual(columns.filter((column) => !/^\w+$/.test(column)), [], name);
            }
            const place = { z: 1.5, id: "p", x: { y: "inner" } };
            await insert("Array", { place, rows: [{ cells: [{ n: 7 }] }], grid: [[1, 2]], texts: ["a"] });
            const row = async (view) => await database.get(`SELECT * FROM "Array_${view}"`);
            const { z, placeId } = await row("place");
            assert.deepEqual([z, placeId], [1.5, "p"]);
            assert.deepEqual(await row("place_x"), { id, y: "inner" });
            assert.deepEqual(await row("rows_cells"), { id, rowsIndex: 0, cellsIndex: 0, n: 7 });
            assert.deepEqual(await row("grid"), { id, gridIndex: 0, value: "[1,2]" });
            assert.deepEqual(await row("texts"), { id, textsIndex: 0, value: "a" });
        }, schema);
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
});
