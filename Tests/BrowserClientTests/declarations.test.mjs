/** `fieldpost.d.ts` declares what `fieldpost.js` has, and a program that uses all of it compiles. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as library from "../../Services/Onboarding/App/fieldpost.js";

const folder = new URL("../../", import.meta.url);
const text = (path) => fs.readFileSync(new URL(path, folder), "utf8");
const declarations = text("Services/Onboarding/App/fieldpost.d.ts").replace(/\/\*\*.*?\*\//gs, "");
const sample = "Tests/BrowserClientTests/declarations.ts";
/** Exported for tests. */
const internal = [
    "DeviceState", "batchBytesMax", "batchCountMax", "fieldsAfter", "isEqual", "namedCountMax", "readResponse",
];

const groups = (source, expression) => [...source.matchAll(expression)].map((match) => match[1]);
const sorted = (names) => [...new Set(names)].sort();

/** Returns the members of a declared class or interface, without those of its parameters and inner types. */
function members(name) {
    const start = declarations.search(new RegExp(`^export (class|interface) ${name}\\b`, "m"));
    let body = declarations.slice(declarations.indexOf("{", start) + 1);
    for (let before = ""; body !== before;) {
        before = body;
        body = body.replace(/\([^(){}]*\)|\{[^(){}]*\}/g, "§");
    }
    const member = /(?:^|;)\s*(?:private |static |readonly )*(\w+)\??(?:<[^>]*>)?[§:]/gm;
    return groups(body.slice(0, body.indexOf("}")), member).filter((each) => each !== "constructor");
}

test("all exports are declared", () => {
    const declared = groups(declarations, /^export (?:class|function|const) (\w+)/gm);
    assert.deepEqual(sorted([...declared, ...internal]), sorted(Object.keys(library)));
});

test("all members of the client are declared", () => {
    const { Fieldpost } = library;
    const names = [...Object.getOwnPropertyNames(Fieldpost.prototype), ...Object.getOwnPropertyNames(Fieldpost)];
    const inherited = ["constructor", "length", "name", "prototype"];
    const expected = [...names.filter((name) => !inherited.includes(name)), "addEventListener"];
    assert.deepEqual(sorted(members("Fieldpost")), sorted(expected));
});

test("all members of statuses, mutations, uploads and errors are declared", async (context) => {
    const realms = [{ realm: "/users/ana@example.com", permissions: ["read", "write"] }];
    Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
    context.mock.method(globalThis, "fetch", async (url) => {
        if (url.endsWith("/v1/realms")) { return Response.json({ realms, person: library.newID() }); }
        return Response.json({ detail: "Later." }, { status: 503, headers: { "Retry-After": "1" } });
    });
    const client = await library.Fieldpost.open({ onboarding: "http://onboarding", gateway: "http://gateway" });
    try {
        await client.signInWithToken({ accessToken: "token", expiresAt: Date.now() + 3_600_000 });
        for (let count = 0; !client.status.isLeader && count < 100; count += 1) { await delay(20); }
        const mutation = await client.put(realms[0].realm, "Note", library.newID(), { title: "milk" });
        await client.addImage(new Blob(["image"]));
        const error = await client.request("GET", "/v1/deliveries").catch((error) => error);
        assert.deepEqual(sorted(Object.keys(client.status)), sorted(members("Status")));
        assert.deepEqual(sorted(Object.keys(mutation)), sorted(members("Mutation")));
        // Node has no IndexedDB: the store in memory displays the change, too.
        assert.equal(client.objects("Note").length, 1);
        assert.equal(client.status.queued, 2);
        assert.deepEqual(sorted(Object.keys(client.uploads[0])), sorted(members("Upload")));
        const names = Object.keys(error).filter((name) => name !== "name");
        assert.deepEqual(sorted(names), sorted(members("FieldpostError")));
    } finally {
        await client.close();
    }
});

test("the declared kinds are those of the device API", () => {
    const [, list] = text("deploy/openapi.yaml").match(/enum: \[(Appointment, Defect,.*)\]/);
    const [, kinds] = declarations.match(/export type Kind =(.*?);/s);
    assert.deepEqual(groups(kinds, /"(\w+)"/g), list.split(", "));
});

test("a program that uses every member compiles", async (context) => {
    const program = text(sample);
    const types = groups(declarations, /^export (?:class|interface) (\w+)/gm);
    assert.ok(types.length > 8);
    const names = types.flatMap(members);
    const exported = groups(declarations, /^export (?:class|function|const|interface|type) (\w+)/gm);
    const unused = [...names, ...exported].filter((name) => !new RegExp(`\\b${name}\\b`).test(program));
    assert.deepEqual(unused, []);
    const options = ["--strict", "--noEmit", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"];
    try {
        await promisify(execFile)("tsc", [...options, fileURLToPath(new URL(sample, folder))]);
    } catch (error) {
        if (error.code === "ENOENT") { context.skip("tsc is absent: apt-get install node-typescript"); return; }
        assert.fail(error.stdout);
    }
});
