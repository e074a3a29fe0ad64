import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { Picker } from "../../Services/Onboarding/App/core/picker.js";

const folder = new URL("../../examples/picker/", import.meta.url);
const map = (fields) => new Map(Object.entries(fields ?? {}));

function makePicker(vector) {
    const { ReportingTemplate, ReportingContext, ReportingTreeNode } = vector.objects;
    return new Picker(vector.user,
        { templates: map(ReportingTemplate), contexts: map(ReportingContext), nodes: map(ReportingTreeNode) });
}

function actual(picker, vectorCase) {
    const result = { ...picker.form(vectorCase.entry) };
    const nodes = (options) => options.map(({ node }) => node);
    if ("query" in vectorCase) {
        result.found = result.choices.map((choice) => nodes(picker.search(choice, vectorCase.query)));
    }
    if ("recent" in vectorCase) {
        result.suggestions = result.choices.map((choice) =>
            nodes(picker.suggestions(choice, vectorCase.recent, vectorCase.countMax)));
    }
    return Object.fromEntries(Object.keys(vectorCase.expected).map((name) => [name, result[name]]));
}

const files = readdirSync(folder).filter((name) => name.endsWith(".json"));

test("the folder has golden vectors", () => assert.ok(files.length >= 4));

for (const name of files) {
    const vector = JSON.parse(readFileSync(new URL(name, folder), "utf8"));
    const picker = makePicker(vector);
    test(`${name}: offered templates`, () => assert.deepEqual(picker.templates, vector.offered));
    for (const vectorCase of vector.cases) {
        test(`${name}: ${vectorCase.title}`, () =>
            assert.deepEqual(actual(picker, vectorCase), vectorCase.expected));
        test(`${name}: ${vectorCase.title}, stable after writing the selections`, () => {
            const { choices, selections } = picker.form(vectorCase.entry);
            const again = picker.form({ ...vectorCase.entry, reporting: selections });
            const displayed = (list) => list.map(({ rejected, ...choice }) => choice);
            assert.deepEqual(displayed(again.choices), displayed(choices));
            assert.deepEqual(again.selections, selections);
        });
    }
}

test("select replaces the node of a context and removes selections that depended on it", () => {
    const vector = JSON.parse(readFileSync(new URL("first-model.json", folder), "utf8"));
    const picker = makePicker(vector);
    const template = vector.user.reportingTemplates[0];
    const [customer, project] = vector.objects.ReportingTemplate[template].reportingContexts;
    const [dsb, arkyn, design] = ["ac7bccce-190e-4679-ab67-cc17826f1f67", "3b31963f-c160-4972-84af-6258202d3060",
        "a65aa78a-fd83-4f46-b74e-c6f05b1f1989"];
    let reporting = picker.select(arkyn, customer, { reportingTemplate: template });
    reporting = picker.select(design, project, { reportingTemplate: template, reporting });
    assert.deepEqual(reporting, [{ context: customer, node: arkyn }, { context: project, node: design }]);
    assert.deepEqual(picker.names({ reportingTemplate: template, reporting }).map(({ title }) => title),
        ["Arkyn Studios Aps", "Design"]);
    assert.deepEqual(picker.select(dsb, customer, { reportingTemplate: template, reporting }),
        [{ context: customer, node: dsb }]);
});

test("a catalogue of 20,000 nodes is processed whole", () => {
    const nodes = new Map([["root", { name: "root" }]]);
    for (let index = 0; index < 20_000; index++) {
        nodes.set(`n${index}`, { name: `Node ${index}`, parent: index < 100 ? "root" : `n${index % 100}` });
    }
    const picker = new Picker({ reportingTemplates: ["t"] }, { nodes,
        templates: new Map([["t", { name: "T", reportingContexts: ["c"] }]]),
        contexts: new Map([["c", { name: "C", sections: [{ name: "All", rootNode: "root" }] }]]) });
    const [choice] = picker.form({ reportingTemplate: "t" }).choices;
    assert.equal(choice.sections[0].options.length, 20_000);
    assert.equal(picker.search(choice, "19999").length, 1);
});
