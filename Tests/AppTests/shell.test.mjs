import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { excludeSort, noticeRows, noticeSort, noticeTarget } from "../../Services/Onboarding/App/core/notices.js";
import { adviceKey, describeRealm, mutationRoute, nameOf, personalKeys }
    from "../../Services/Onboarding/App/core/sync.js";
import english from "../../Services/Onboarding/App/strings/en.js";

const folder = new URL("../../Services/Onboarding/App/", import.meta.url);
const read = (name) => readFileSync(new URL(name, folder));
const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`.replace(/\/+/g, "/"))
    .map((path) => path.slice(folder.pathname.length));

test("service worker stores every file of the app", () => {
    const source = read("service-worker.js").toString();
    const list = source.slice(source.indexOf("const files = ["), source.indexOf("];"));
    const stored = [...list.matchAll(/"([^"]+)"/g)].map((match) => match[1] === "./" ? "index.html" : match[1]);
    const expected = files.filter((name) => !/\.d\.ts$|^service-worker\.js$|^config\.json$|\.md$/.test(name));
    assert.deepEqual(stored.sort(), expected.sort());
});

/** Adds a module and the modules that it imports statically. */
function addModules(name, modules) {
    if (modules.has(name)) return modules;
    modules.add(name);
    for (const [, path] of read(name).toString().matchAll(/^(?:import|export)\b[^;]*?from\s+"(\.[^"]+)"/gm)) {
        addModules(new URL(path, new URL(name, folder)).pathname.slice(folder.pathname.length), modules);
    }
    return modules;
}

test("first load of each view has at most 150 kB with gzip", () => {
    const size = (names) => [...names].reduce((sum, name) => sum + gzipSync(read(name), { level: 9 }).length, 0);
    const views = files.filter((name) => /^views\/\w+\.js$/.test(name));
    for (const view of views) {
        const names = new Set(["index.html", "icons/icon.svg", "manifest.webmanifest", "fieldpost.js", "strings/de.js",
            ...files.filter((name) => name.endsWith(".css")), ...addModules("app.js", new Set()),
            ...addModules(view, new Set())]);
        assert.ok(size(names) <= 150_000, `${view}: ${size(names)} bytes`);
        if (process.env.VERBOSE) console.log(view, size(names));
    }
});

test("pages have no inline scripts, styles or outside requests", () => {
    const page = read("index.html").toString();
    assert.doesNotMatch(page, /<style|style=|\son\w+=|https?:\/\//);
    assert.doesNotMatch(page, /<script(?![^>]*\bsrc=)/);
    for (const name of files.filter((file) => /\.(js|css)$/.test(file))) {
        assert.doesNotMatch(read(name).toString(), /\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b/,
            name);
    }
});

test("notices have a sort and a target", () => {
    assert.equal(noticeSort("task-overdue"), "tasks");
    assert.equal(noticeSort("of-a-later-release"), "other");
    assert.equal(noticeTarget({ code: "defect-assigned", about: "1" }), "defects/1");
    assert.equal(noticeTarget({ code: "task-removed", about: "1" }), "tasks");
    assert.equal(noticeTarget({ code: "entry-rejected" }), "time");
    assert.equal(noticeTarget({ code: "of-a-later-release", about: "1" }), undefined);
});

test("noticeRows sorts from new to old with a row per day", () => {
    const notice = (id, timestamp) => ({ id, fields: { timestamp } });
    const rows = noticeRows([notice("a", "2026-11-25T08:00:00Z"), notice("b", "2026-11-26T09:00:00Z"),
        notice("c", "2026-11-26T10:00:00Z")], (timestamp) => timestamp.slice(0, 10));
    assert.deepEqual(rows.map((row) => row.day ?? row.notice.id), ["2026-11-26", "c", "b", "2026-11-25", "a"]);
});

test("excludeSort changes only the codes of the sort", () => {
    const excluded = excludeSort(["task-changed", "custom"], "defects", true);
    assert.deepEqual(excluded, ["task-changed", "custom", "defect-assigned", "defect-modified"]);
    assert.deepEqual(excludeSort(excluded, "tasks", false), ["custom", "defect-assigned", "defect-modified"]);
    assert.deepEqual(excludeSort(null, "tasks", false), []);
});

test("every rejection of the contract has advice", () => {
    const contract = readFileSync(new URL("../../deploy/openapi.yaml", import.meta.url), "utf8");
    const section = contract.slice(contract.indexOf("\n    Rejection:"));
    const codes = [...section.slice(0, section.indexOf("\n    ", 20_000)).matchAll(/urn:fieldpost:problem:([a-z-]+)"/g)]
        .map((match) => match[1]);
    assert.ok(codes.length > 10);
    for (const code of [...codes, undefined, "of-a-later-release"]) {
        assert.ok(Object.hasOwn(english, adviceKey(code)), code);
    }
});

test("mutations lead to the view of their object", () => {
    assert.equal(mutationRoute({ kind: "FieldTask", id: "1" }), "tasks/1");
    assert.equal(mutationRoute({ kind: "TaskNote", id: "1", fields: { task: "2" } }), "tasks/2");
    assert.equal(mutationRoute({ kind: "TaskNote", id: "1" }), "tasks");
    assert.equal(mutationRoute({ kind: "Membership", id: "1" }), "team");
    assert.equal(mutationRoute({ kind: "Unknown", id: "1" }), undefined);
});

test("realms are described by their path", () => {
    assert.deepEqual(describeRealm("/users/a@b.c", "a@b.c"), { sort: "own" });
    assert.deepEqual(describeRealm("/teams/1", "a@b.c"), { sort: "team", id: "1" });
    assert.equal(describeRealm("/of-a-later-release", "a@b.c").sort, "other");
});

test("nameOf ignores empty and other values", () => {
    assert.equal(nameOf({ title: " A " }), "A");
    assert.equal(nameOf({ text: " " }), undefined);
    assert.equal(nameOf(undefined), undefined);
});

test("personalKeys selects the timer, favourites and seen items of one person", () => {
    const own = ["fieldpost.time.timer:/users/a@b.c", "fieldpost.time.favourites:/users/a@b.c",
        "fieldpost.shared.seen.a@b.c"];
    const others = ["fieldpost.theme", "fieldpost.time.timer:/users/other-a@b.c", "fieldpost.shared.seen.d.a@b.c"];
    assert.deepEqual(personalKeys([...own, ...others], "a@b.c"), own);
});
