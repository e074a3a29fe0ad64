import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { chooseLanguage, chooseLocale, languages, translator } from "../../Services/Onboarding/App/core/strings.js";

const folder = new URL("../../Services/Onboarding/App/", import.meta.url);
const texts = {};
for (const language of Object.keys(languages)) {
    texts[language] = (await import(new URL(`strings/${language}.js`, folder))).default;
}
const sources = ["", "core/", "ui/", "views/"].flatMap((path) => readdirSync(new URL(path, folder))
    .filter((name) => name.endsWith(".js")).map((name) => path + name));

const placeholders = (text) => [...new Set((typeof text === "object" ? Object.values(text).join(" ") : text)
    .match(/\{\w+\}/g) ?? [])].sort();

test("all languages have the same keys", () => {
    for (const language of Object.keys(texts)) {
        assert.deepEqual(Object.keys(texts[language]).sort(), Object.keys(texts.en).sort(), language);
    }
});

test("all languages have the same placeholders and plural forms", () => {
    for (const [language, all] of Object.entries(texts)) {
        for (const [key, text] of Object.entries(all)) {
            assert.deepEqual(placeholders(text), placeholders(texts.en[key]), `${language} ${key}`);
            if (typeof text === "object") {
                assert.ok(typeof text.other === "string", `${language} ${key} has no form "other"`);
            } else {
                assert.ok(text.trim().length > 0, `${language} ${key} is empty`);
            }
            assert.equal(typeof text, typeof texts.en[key], `${language} ${key}`);
        }
    }
});

test("no key occurs twice in a language", () => {
    for (const language of Object.keys(texts)) {
        const source = readFileSync(new URL(`strings/${language}.js`, folder), "utf8");
        const keys = [...source.matchAll(/^ {4}"([^"]+)":/gm)].map((match) => match[1]);
        const twice = keys.filter((key, index) => keys.indexOf(key) !== index);
        assert.deepEqual(twice, [], language);
    }
});

test("every key that the sources use exists", () => {
    const missing = [];
    for (const name of sources) {
        const source = readFileSync(new URL(name, folder), "utf8");
        for (const match of source.matchAll(/\bt\(\s*"([^"]+)"/g)) {
            if (!Object.hasOwn(texts.en, match[1])) missing.push(`${name}: ${match[1]}`);
        }
        for (const match of source.matchAll(/\bt\(\s*`([^`$]+)\$\{/g)) {
            if (!Object.keys(texts.en).some((key) => key.startsWith(match[1]))) missing.push(`${name}: ${match[1]}…`);
        }
    }
    assert.deepEqual(missing, []);
});

test("chooseLanguage prefers the saved choice, then the browser's order, then English", () => {
    assert.equal(chooseLanguage("da", ["de-DE"]), "da");
    assert.equal(chooseLanguage("", ["fr", "de-AT", "en"]), "de");
    assert.equal(chooseLanguage("xx", ["fr"]), "en");
    assert.equal(chooseLanguage(null), "en");
    assert.equal(chooseLanguage("constructor", []), "en");
});

test("chooseLocale keeps the browser's region of the language", () => {
    assert.equal(chooseLocale("en", ["de-DE", "en-GB"]), "en-GB");
    assert.equal(chooseLocale("da", ["en-GB"]), "da");
});

test("translator selects plural forms, fills placeholders and returns unknown keys", () => {
    const t = translator({ a: { one: "{n} task", other: "{n} tasks", zero: "none" }, b: "{x} and {y}" }, "en",
        { c: "fallback" });
    assert.equal(t("a", { n: 1 }), "1 task");
    assert.equal(t("a", { n: 2 }), "2 tasks");
    assert.equal(t("a", { n: 0 }), "none");
    assert.equal(t("b", { x: "$&" }), "$& and {y}");
    assert.equal(t("c"), "fallback");
    assert.equal(t("d.e"), "d.e");
});
