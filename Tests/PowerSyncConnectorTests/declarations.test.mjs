/** `connector.d.ts` declares what `connector.js` has, and a program that uses all of it compiles. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as library from "../../examples/powersync/javascript/connector.js";

const program = fileURLToPath(new URL("declarations.ts", import.meta.url));
const source = new URL("../../examples/powersync/javascript/connector.d.ts", import.meta.url);
const declarations = fs.readFileSync(source, "utf8").replace(/\/\*\*.*?\*\//gs, "");
const names = (expression) => [...declarations.matchAll(expression)].map((match) => match[1]).sort();

test("all exports are declared", () => {
    assert.deepEqual(names(/^export (?:class|function|const) (\w+)/gm), Object.keys(library).sort());
});

test("all methods of the connector are declared", () => {
    const methods = Object.getOwnPropertyNames(library.FieldpostConnector.prototype).sort();
    const body = declarations.slice(declarations.indexOf("export class FieldpostConnector"));
    assert.deepEqual([...body.matchAll(/^ {4}(\w+)\(/gm)].map((match) => match[1]).sort(), methods);
});

test("a program that uses every declaration compiles", async () => {
    const text = fs.readFileSync(program, "utf8");
    const all = names(/^export (?:class|function|const|interface|type) (\w+)/gm);
    assert.deepEqual(all.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)), []);
    const options = ["--strict", "--noEmit", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"];
    const compile = promisify(execFile)("tsc", [...options, program]);
    await compile.catch((error) => assert.fail(error.stdout || error.message));
});
