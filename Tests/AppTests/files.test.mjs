// The files of the field app refer only to files that exist: a missing one would keep the app from opening offline.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../../Services/Onboarding/App", import.meta.url));
const hasApp = existsSync(join(folder, "service-worker.js"));
// onboarding generates it.
const generated = "config.json";

/** Returns the paths of all files below the folder. */
const files = () =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1));

const text = (file) => readFileSync(join(folder, file), "utf8");

/** Returns the first group of each match. */
const matches = (text, expression) => [...text.matchAll(expression)].map((match) => match[1]);

const precached = () => {
    const name = /["'](?:\.\/|\/app\/)?([\w./-]+\.(?:html|js|mjs|css|json|webmanifest|svg|png))["']/g;
    return matches(text("service-worker.js"), name).filter((file) => file !== generated);
};

test("precached files exist", { skip: !hasApp && "the app is absent" }, () => {
    const names = precached();
    assert.ok(names.includes("app.js"), "the service worker names the files that it precaches");
    assert.deepEqual(names.filter((file) => !existsSync(join(folder, file))), []);
});

test("modules and styles are precached", { skip: !hasApp && "the app is absent" }, () => {
    const names = new Set([...precached(), "service-worker.js"]);
    assert.deepEqual(files().filter((file) => /\.(?:js|css)$/.test(file) && !names.has(file)), []);
});

test("imported modules and linked files exist", { skip: !hasApp && "the app is absent" }, () => {
    const missing = [];
    for (const file of files()) {
        const references = file.endsWith(".js")
            ? matches(text(file), /^\s*(?:import|export)\b[^;"]*"(\.{1,2}\/[^"]+)"/gm)
            : file.endsWith(".html") ? matches(text(file), /\b(?:src|href)="([\w./-]+)"/g) : [];
        for (const reference of references) {
            const path = normalize(join(dirname(file), reference));
            if (path !== "./" && !existsSync(join(folder, path))) missing.push(`${file}: ${reference}`);
        }
    }
    assert.deepEqual(missing, []);
});
