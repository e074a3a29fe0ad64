import assert from "node:assert/strict";
import { test } from "node:test";
import {
    changedFields, changesOf, collectDetails, commandState, conflictLines, dependencies, editableFields, fieldLabel,
    fieldValue, listDefects, mergeForms, missingFields, outsideChoices, queryRows, rankKind, recordStates, requestKey,
    resolution, rowRecord, statesOf,
} from "../../Services/Onboarding/App/core/defects.js";

let next = 0;
const command = (fields, options = {}) => ({ id: `c${++next}`, position: next, isPending: false, kind: "DefectCommand",
    fields: { submitRequested: true, ...fields }, ...options });
const defect = (record, fields) => ({ id: record, fields: { record, headline: `headline ${record}`, ...fields } });
const read = (record, readAt, more = {}) => command({ operation: "read", record, status: "done", detail: { readAt },
    ...more });

test("requestKey: absent, null and empty values are equal; the order of fields is not relevant", () => {
    assert.equal(requestKey({ operation: "form", record: "", fields: null, fromRow: null }),
        requestKey({ operation: "form" }));
    assert.equal(requestKey({ operation: "form", fields: { a: "1", b: "2" } }),
        requestKey({ operation: "form", fields: { b: "2", a: "1" } }));
    assert.notEqual(requestKey({ operation: "form", record: "A" }), requestKey({ operation: "read", record: "A" }));
});

test("collectDetails: the newest detail replaces older ones", () => {
    const old = read("A", "2026-03-30T10:00:00.000Z");
    const recent = read("A", "2026-03-30T11:00:00.000Z");
    const other = read("B", "2026-03-30T09:00:00.000Z");
    const waiting = command({ operation: "read", record: "A" });
    const { details, pending, superseded } = collectDetails([recent, old, other, waiting]);
    assert.equal(details.get(requestKey({ operation: "read", record: "A" })).id, recent.id);
    assert.deepEqual(superseded, [old.id]);
    assert.deepEqual([...pending], [requestKey({ operation: "read", record: "A" })]);
});

test("collectDetails: a conflict has the record as it is read, and is never superseded", () => {
    const conflict = command({ operation: "modify", record: "A", status: "conflict",
        detail: { readAt: "2026-03-30T10:00:00.000Z" } });
    const recent = read("A", "2026-03-30T11:00:00.000Z");
    assert.deepEqual(collectDetails([conflict, recent]).superseded, []);
    assert.equal(collectDetails([conflict]).details.size, 1);
});

test("collectDetails: a failure is reported until a newer detail arrives", () => {
    const refused = command({ operation: "read", record: "A", status: "refused", messages: ["no"] });
    const key = requestKey({ operation: "read", record: "A" });
    assert.equal(collectDetails([refused]).failures.get(key).id, refused.id);
    const recent = read("A", "2026-03-30T11:00:00.000Z");
    const result = collectDetails([refused, recent]);
    assert.equal(result.failures.size, 0);
    assert.deepEqual(result.superseded, [refused.id]);
});

test("collectDetails: a command that is not submitted is ignored", () => {
    assert.equal(collectDetails([read("A", "2026-03-30T11:00:00.000Z", { submitRequested: false })]).details.size, 0);
});

test("changesOf: newest first, without reads", () => {
    const first = command({ operation: "modify", record: "A", status: "done" });
    const second = command({ operation: "changeState", record: "A" }, { position: 0, isPending: true });
    const list = changesOf([first, second, read("A", "x"), command({ operation: "create" })], "A");
    assert.deepEqual(list.map(({ id, state }) => [id, state]), [[second.id, "queued"], [first.id, "done"]]);
    assert.equal(commandState(command({ operation: "modify", status: "waiting" })), "waiting");
});

test("recordStates: the most urgent state wins", () => {
    const states = recordStates([command({ operation: "modify", record: "A", status: "conflict" }),
        command({ operation: "modify", record: "A" }), command({ operation: "modify", record: "B", status: "done" })]);
    assert.deepEqual([...states], [["A", "conflict"]]);
});

test("listDefects: scope, search and order", () => {
    const list = [
        defect("S10", { severity: "2-Major", state: "Opened", isAssignedToMe: true, submitDate: "2026-01-01" }),
        defect("S2", { severity: "2-Major", isAssignedToMe: true, submitDate: "2026-02-01" }),
        defect("S3", { severity: "1-Critical", isAssignedToMe: true, isReportedByMe: true })];
    const records = (options) => listDefects(list, options).map(({ id }) => id);
    assert.deepEqual(records({ scope: "assigned" }), ["S3", "S2", "S10"]);
    assert.deepEqual(records({ scope: "reported" }), ["S3"]);
    assert.deepEqual(records({ scope: "assigned", sort: "newest" }), ["S2", "S10", "S3"]);
    assert.deepEqual(records({ scope: "assigned", query: "major s1" }), ["S10"]);
    assert.deepEqual(records({ scope: "assigned", state: "Opened" }), ["S10"]);
    assert.deepEqual(statesOf(list), ["Opened"]);
    assert.deepEqual(["1-Critical", "2-Major", "3-Average", "4-Minor", null].map(rankKind),
        ["bad", "warn", "info", "muted", "muted"]);
});

const form = { readAt: "x", fields: [
    { name: "Headline", requiredness: "mandatory", value: "old" },
    { name: "Notes", requiredness: "optional", value: "long", isTruncated: true },
    { name: "id", requiredness: "readOnly", value: "S1" },
    { name: "Project", requiredness: "optional", value: "P", choices: ["P", "Q"] },
    { name: "Component", requiredness: "mandatory", value: "", choices: [] },
    { name: "Odd", requiredness: "optional" },
] };

test("form: editable fields, changes, and mandatory ones", () => {
    assert.deepEqual(editableFields(form).map(({ name }) => name), ["Headline", "Component", "Project", "Odd"]);
    assert.deepEqual(changedFields(form, { Headline: "new", Project: "P", Odd: "1", other: "x" }),
        { fields: { Headline: "new", Odd: "1" }, base: { Headline: "old" } });
    assert.deepEqual(missingFields(form, { Headline: " " }), ["Headline", "Component"]);
    assert.deepEqual(missingFields(form, { Component: "C" }), []);
});

test("form: choices depend on edited values", () => {
    assert.deepEqual(dependencies(form, { Project: "Q", Headline: "new" }), { Project: "Q" });
    assert.deepEqual(dependencies(form, { Project: "P" }), {});
    const second = { fields: [{ name: "Component", requiredness: "mandatory", value: "", choices: ["C1"] }] };
    const merged = mergeForms(form, second);
    assert.deepEqual(outsideChoices(merged, { Component: "C2", Project: "Q" }), ["Component"]);
    assert.deepEqual(outsideChoices(merged, { Component: "C1" }), []);
    assert.equal(mergeForms(undefined, undefined), undefined);
    assert.equal(mergeForms(form, undefined), form);
});

const conflict = command({ operation: "modify", record: "S1", status: "conflict",
    fields: { Severity: "1-Critical", Owner: "bo" }, base: { Severity: "2-Major", Owner: "ana" },
    detail: { fields: [{ name: "Severity", value: "3-Average" }, { name: "Owner", value: "ana" }] } });

test("conflict: values are side by side, changed ones first", () => {
    assert.deepEqual(conflictLines(conflict), [
        { name: "Severity", seen: "2-Major", now: "3-Average", mine: "1-Critical", isChanged: true },
        { name: "Owner", seen: "ana", now: "ana", mine: "bo", isChanged: false }]);
});

test("conflict: the resolution is based on the values of now", () => {
    assert.deepEqual(resolution(conflict, {}), { operation: "modify", record: "S1", submitRequested: true,
        fields: { Severity: "1-Critical", Owner: "bo" }, base: { Severity: "3-Average", Owner: "ana" } });
    assert.deepEqual(resolution(conflict, { Severity: "theirs" }).fields, { Owner: "bo" });
    assert.equal(resolution(conflict, { Severity: "theirs", Owner: "theirs" }), null);
});

test("conflict of a state: the resolution keeps the action", () => {
    const change = command({ operation: "changeState", record: "S1", actionName: "Resolve", status: "conflict",
        fields: {}, base: { State: "Opened" }, detail: { fields: [{ name: "State", value: "Assigned" }] } });
    assert.deepEqual(resolution(change, {}), { operation: "changeState", record: "S1", actionName: "Resolve",
        fields: {}, base: { State: "Assigned" }, submitRequested: true });
});

test("queryRows: joins consecutive pages, and has the oldest time", () => {
    const page = (fromRow, rows, nextRow, readAt) => command({ operation: "runQuery", query: "q", fromRow,
        status: "done", detail: { columns: ["id", "Headline"], rows, nextRow, readAt } });
    const { details } = collectDetails([page(0, [["A", "a"]], 1, "2026-03-30T10:00:00Z"),
        page(1, [["B", "b"]], undefined, "2026-03-30T09:00:00Z")]);
    const result = queryRows(details, "q");
    assert.deepEqual([result.rows.length, result.nextRow, result.readAt, result.pages],
        [2, null, "2026-03-30T09:00:00Z", 2]);
    assert.equal(rowRecord(result.columns, result.rows[1]), "B");
    assert.equal(rowRecord(["Headline"], ["x"]), undefined);
    assert.equal(queryRows(details, "other").nextRow, 0);
});

test("names and times of the tracker are displayed for people", () => {
    assert.equal(fieldLabel("record_type"), "Record type");
    assert.equal(fieldLabel("Submit_Date"), "Submit Date");
    const format = { dateTime: (value) => `<${value}>` };
    assert.equal(fieldValue("2026-11-27 06:48:05", format), "<2026-11-27T06:48:05>");
    for (const value of ["2026-11-27", "version 2026-11-27 06:48", "", undefined]) {
        assert.equal(fieldValue(value, format), value);
    }
});
