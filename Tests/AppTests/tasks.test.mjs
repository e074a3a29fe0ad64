import assert from "node:assert/strict";
import { test } from "node:test";
import * as tasks from "../../Services/Onboarding/App/core/tasks.js";

process.env.TZ = "Europe/Copenhagen";

const now = Date.parse("2026-11-27T12:00:00Z");
const task = (id, fields = {}, realm = "/manager") => ({ realm, kind: "FieldTask", id, position: 1, isPending: false,
    fields: { title: id, ...fields } });
const listed = (...objects) => objects.map(tasks.listedTask);
const ids = (list) => list.map(({ id }) => id).join(" ");

test("a manager gets the master, a member the copy", () => {
    const objects = [task("a", {}, "/teams/t"), task("a"), task("b", {}, "/teams/t"), task("c", {}, "/archive")];
    const realms = (options) => tasks.uniqueTasks(objects, options).map(({ realm }) => realm);
    assert.deepEqual(realms({ isManager: true }), ["/manager", "/teams/t"]);
    assert.deepEqual(realms(), ["/teams/t", "/teams/t"]);
});

test("scopes contain own, team and all tasks", () => {
    const list = listed(task("own", {}, "/users/me"), task("assigned", { assignee: "p", team: "t" }, "/teams/t"),
        task("shared", { team: "t" }, "/teams/t"), task("other", { team: "u" }));
    const options = { person: "p", own: "/users/me", teams: new Set(["t"]) };
    assert.equal(ids(tasks.tasksInScope(list, { ...options, scope: "mine" })), "own assigned");
    assert.equal(ids(tasks.tasksInScope(list, { ...options, scope: "team" })), "assigned shared");
    assert.equal(tasks.tasksInScope(list, { ...options, scope: "all" }).length, 4);
});

test("a rejected note moves with its task, with its later changes", () => {
    const note = (sequence, operation, fields, change = {}) => ({ kind: "TaskNote", id: "n", realm: "/teams/a",
        sequence, operation, fields, state: "rejected", problem: { code: "invalid-field" }, ...change });
    const put = note(1, "put", { task: "t", text: "one", image: "i" });
    const patch = note(2, "patch", { text: "two" }, { problem: { code: "unknown-object" } });
    const moved = (list, objects = [task("t", {}, "/users/me")], options = {}) =>
        tasks.movedNotes(list, objects, options).map(({ mutations, realm, fields }) =>
            [mutations.map(({ sequence }) => sequence).join(" "), realm, fields]);
    const whole = ["1 2", "/users/me", { task: "t", text: "two", image: "i" }];
    assert.deepEqual(moved([put, patch]), [whole]);
    assert.deepEqual(moved([note(1, "put", put.fields, { problem: { code: "realm-not-permitted" } }), patch]), [whole]);
    assert.deepEqual(moved([note(1, "put", put.fields, { realm: "/users/me" })]), [], "another cause");
    assert.deepEqual(moved([note(1, "put", put.fields, { problem: { code: "deleted" } })]), []);
    assert.deepEqual(moved([note(1, "put", put.fields, { state: "accepted" }), patch]), []);
    assert.deepEqual(moved([{ ...put, kind: "Note" }]), []);
    assert.deepEqual(moved([put], []), [], "the task is not visible");
    assert.deepEqual(moved([put], [task("t", {}, "/teams/a")]), [], "the task did not move");
    assert.deepEqual(moved([put, { ...patch, state: "queued" }]), [], "the patch has no result yet");
    const deletion = note(3, "delete", undefined, { state: "accepted" });
    assert.deepEqual(moved([put, patch, deletion]), [["1 2", undefined, {}]]);
    assert.deepEqual(moved([put], [task("t", {}, "/teams/b"), task("t")], { isManager: true })[0][1], "/manager");
    assert.deepEqual(moved([{ ...put, realm: "/manager" }], [task("t")], { isManager: true }), []);
});

test("an unassigned task is not mine before the own person is known", () => {
    const list = listed(task("a", {}, "/teams/t"));
    assert.equal(tasks.tasksInScope(list, { scope: "mine", own: "/users/me", teams: new Set() }).length, 0);
});

test("an open task is overdue after its due date", () => {
    const list = listed(task("late", { dueDate: "2026-11-27T11:59:59Z" }),
        task("soon", { dueDate: "2026-11-27T12:00:00Z" }),
        task("done", { dueDate: "2026-11-01T00:00:00Z", isCompleted: true }), task("none"));
    assert.equal(ids(tasks.filterTasks(list, { state: "overdue", now })), "late");
    assert.equal(ids(tasks.filterTasks(list, { state: "open", now })), "late soon none");
    assert.deepEqual(tasks.countTasks(list, now), { open: 3, overdue: 1, completed: 1 });
});

test("a search finds words of title, place and assignee without case and marks", () => {
    const list = listed(task("1", { title: "Pumpe prüfen", place: { city: "Århus" }, assignee: "p" }), task("2"));
    const find = (query) => ids(tasks.filterTasks(list, { query, nameOf: () => "Søren" }));
    assert.equal(find("PRUFEN arhus"), "1");
    assert.equal(find("soren pumpe"), "1");
    assert.equal(find("soren ventil"), "");
});

test("filters select a team, an assignee, or none", () => {
    const list = listed(task("a", { team: "t", assignee: "p" }), task("b", { team: "t" }), task("c"));
    assert.equal(ids(tasks.filterTasks(list, { team: "t" })), "a b");
    assert.equal(ids(tasks.filterTasks(list, { team: "none" })), "c");
    assert.equal(ids(tasks.filterTasks(list, { team: "t", assignee: "none" })), "b");
});

test("open tasks precede completed ones in each order", () => {
    const list = listed(task("done", { isCompleted: true, completionDate: "2026-11-02T00:00:00Z" }),
        task("latest", { isCompleted: true, completionDate: "2026-11-03T00:00:00Z" }), task("none"),
        task("b", { dueDate: "2026-12-02T00:00:00Z" }), task("a", { dueDate: "2026-12-02T00:00:00Z" }));
    assert.equal(ids(tasks.sortTasks(list, "due")), "a b none latest done");
    assert.equal(ids(tasks.sortTasks(list, "title")), "a b none done latest");
});

test("the nearest place comes first, and tasks without coordinates last", () => {
    const list = listed(task("far", { place: { latitude: 57, longitude: 10 } }), task("none"),
        task("near", { place: { latitude: 55.7, longitude: 12.5 } }));
    assert.equal(ids(tasks.sortTasks(list, "place", { near: { latitude: 55.6, longitude: 12.6 } })), "near far none");
});

test("workloads count open and overdue tasks per person", () => {
    const loads = tasks.workloads(listed(task("a", { assignee: "p", dueDate: "2026-01-01T00:00:00Z" }),
        task("b", { assignee: "p" }), task("c", { assignee: "p", isCompleted: true }), task("d")), "assignee", now);
    assert.deepEqual(loads.get("p"), { open: 2, overdue: 1 });
    assert.deepEqual(loads.get(""), { open: 1, overdue: 0 });
});

test("notes appear once, the oldest first", () => {
    const note = (id, realm, writtenAt, position) => ({ realm, id, position, isPending: false,
        fields: { task: "t", writtenAt } });
    const notes = tasks.notesOf([note("b", "/manager", "2026-11-02T00:00:00Z", 2),
        note("b", "/teams/x", "2026-11-02T00:00:00Z", 3), note("a", "/manager", "2026-11-01T00:00:00Z", 9),
        { ...note("c", "/manager", "", 1), fields: { task: "u" } }], "t");
    assert.deepEqual(notes.map(({ id, realm }) => `${id} ${realm}`), ["a /manager", "b /teams/x"]);
});

test("notes of managers are in their realm, others in that of the copy", () => {
    const [copy] = listed(task("a", {}, "/teams/t"));
    assert.equal(tasks.noteRealm(copy, { isManager: true }), "/manager");
    assert.equal(tasks.noteRealm(copy), "/teams/t");
});

test("completion and reopening write all three fields", () => {
    const options = { person: "p", now: new Date(now) };
    assert.deepEqual(tasks.completion(true, options), { isCompleted: true, completionDate: "2026-11-27T12:00:00.000Z",
        completedBy: "p" });
    assert.deepEqual(tasks.completion(false, options), { isCompleted: false, completionDate: null, completedBy: null });
});

test("directions lead to coordinates, otherwise to the address", () => {
    const place = { latitude: 55.5, longitude: -12.25, title: "Depot" };
    assert.equal(tasks.directionsLink(place), "https://www.openstreetmap.org/directions?to=55.5%2C-12.25");
    assert.equal(tasks.directionsLink(place, { isPhone: true, label: "A (b)" }),
        "geo:55.5,-12.25?q=55.5%2C-12.25(A%20%20b%20)");
    assert.equal(tasks.directionsLink({ street: "Gade 1", city: "Odense", title: "x" }),
        "https://www.openstreetmap.org/directions?to=Gade%201%2C%20Odense");
    assert.equal(tasks.directionsLink({}), undefined);
    assert.equal(tasks.directionsLink(null), undefined);
});

test("coordinates are read with points or commas", () => {
    assert.deepEqual(tasks.parseCoordinates("55.676, 12.568"), { latitude: 55.676, longitude: 12.568 });
    assert.deepEqual(tasks.parseCoordinates("55,676; 12,568"), { latitude: 55.676, longitude: 12.568 });
    assert.deepEqual(tasks.parseCoordinates("-1 100"), { latitude: -1, longitude: 100 });
    assert.equal(tasks.parseCoordinates("91, 10"), undefined);
    assert.equal(tasks.parseCoordinates("Odense"), undefined);
});

test("a form without changes patches nothing", () => {
    const fields = { title: "A", dueDate: "2026-11-27T08:30:00Z", team: "t", assignee: null, image: "i",
        place: { title: "Depot", city: "Odense", countryCode: "DK", latitude: 55.4, longitude: 10.4, state: null } };
    assert.deepEqual(tasks.changedFields(tasks.formFields(tasks.taskForm(fields)), fields), {});
});

test("a form patches the changed fields alone, and empties the place as a whole", () => {
    const fields = { title: "A", place: { city: "Odense" } };
    const form = { ...tasks.taskForm(fields), city: " ", due: "2026-11-27T09:30" };
    assert.deepEqual(tasks.changedFields(tasks.formFields(form), fields),
        { dueDate: "2026-11-27T08:30:00.000Z", place: null });
});

test("a form reports a missing title and unreadable coordinates", () => {
    const form = { ...tasks.taskForm(), coordinates: "here", countryCode: "D1" };
    assert.deepEqual(tasks.formProblems(form), { title: "missing", coordinates: "invalid", countryCode: "invalid" });
    assert.deepEqual(tasks.formProblems({ ...tasks.taskForm(), title: "A" }), {});
});

test("the newest valid position of a person counts", () => {
    const at = (realm, latitude, timestamp) => ({ realm, id: "p", fields: { latitude, longitude: 12, timestamp } });
    const positions = tasks.positionsOf([at("/manager", 1, "2026-11-27T10:00:00Z"),
        at("/teams/t", 2, "2026-11-27T11:00:00Z"), at("/teams/u", 95, "2026-11-27T12:00:00Z")]);
    assert.equal(positions.get("p").latitude, 2);
});

test("a position is written at most every 30 seconds", () => {
    assert.ok(tasks.isPositionDue(undefined, now));
    assert.ok(!tasks.isPositionDue(now, now + 29_999));
    assert.ok(tasks.isPositionDue(now, now + 30_000));
    assert.ok(tasks.isPositionDue(now + 60_000, now));
});

test("10,000 tasks are filtered and sorted", () => {
    const list = listed(...Array.from({ length: 10_000 }, (_, index) => task(`task ${index * 7919 % 10_000}`,
        { dueDate: new Date(now + index * 104_729 % 1e9).toISOString() })));
    const result = tasks.sortTasks(tasks.filterTasks(list, { state: "open", query: "task 1", now }), "due");
    assert.ok(result.length > 1_000);
});

test("resorting a changed list equals sorting it", () => {
    const object = (index, title, dueDate) => ({ realm: "/manager", id: `id-${index}`,
        fields: { title, dueDate, isCompleted: index % 3 === 0 } });
    const dueDate = (index) => new Date(Date.UTC(2026, 3, 1 + index * 7 % 11)).toISOString();
    const before = listed(...Array.from({ length: 60 }, (_, index) => object(index, `Task ${index}`, dueDate(index))));
    const changed = [...before.slice(1, 20), ...listed(object(0, "Task", dueDate(5)), object(70, "New", null)),
        ...before.slice(25)];
    for (const sorting of tasks.sortings) {
        const sorted = tasks.sortTasks(changed, sorting);
        assert.deepEqual(tasks.resortTasks(tasks.sortTasks(before, sorting), changed, sorting), sorted);
        assert.deepEqual(tasks.resortTasks([], changed, sorting), sorted);
    }
});

test("texts are folded the same with and without other letters", () => {
    assert.equal(tasks.fold("Install METER 7"), "install meter 7");
    assert.equal(tasks.fold("Nørregade ÆBLE Straße É"), "norregade aeble strasse e");
    assert.equal(tasks.fold(undefined), "");
});
