import assert from "node:assert/strict";
import { test } from "node:test";
import {
    agenda, appointmentFields, appointmentProblems, daysRetained, directory, findPeople, history, incoming, isShared,
    items, linksByItem, localDay, localTime, nextHour, notes, outgoing, overlaps, positions, restoration, shareChanges,
    uniqueShares, unseen,
} from "../../Services/Onboarding/App/core/shared.js";

const own = "/users/ana@acme.example";
const [ana, bo, cem] = ["a", "b", "c"].map((letter) => letter.repeat(8));
const object = (kind, id, fields, { realm = own, position = 1, isPending = false } = {}) =>
    ({ realm, kind, id, position, fields, isPending });
const at = (hour, minutes = 0) => new Date(2026, 2, 30, hour, minutes).toISOString();
const appointment = (id, hour, durationMinutes = 60, options = {}) =>
    object("Appointment", id, { when: at(hour), durationMinutes, why: `meeting ${id}` }, options);
const share = object("Share", "s1", { owner: bo, recipient: ana, since: at(1) }, { realm: "/shares/s1" });

function all(changes = {}) {
    return items({ own: [], copies: [], shares: [share], ended: [], links: new Map(), me: ana, ...changes });
}

test("directory: omits the own person, and sorts by name", () => {
    const people = [object("Person", ana, { name: "Ana" }), object("Person", cem, { firstName: "Cem", lastName: "Z" }),
        object("Person", bo, {})];
    const list = directory(people, [object("PersonLookup", bo, { name: "Bo Ek", email: "bo@acme.example" })], ana);
    assert.deepEqual(list.map(({ name, email }) => [name, email]), [["Bo Ek", "bo@acme.example"], ["Cem Z", null]]);
    assert.deepEqual(findPeople(list, "ACME bo").map(({ id }) => id), [bo]);
    assert.deepEqual(findPeople(list, "bo z"), []);
});

test("findPeople: ignores accents", () => {
    assert.equal(findPeople([{ name: "Zoë Åberg" }], "zoe aberg").length, 1);
});

test("isShared: a link with a problem does not count", () => {
    const links = linksByItem([object("SharedItem", "l1", { item: "n1", recipient: bo, problem: "full" }),
        object("SharedItem", "l2", { item: "n2", recipient: bo })]);
    assert.equal(isShared(links, "n1"), false);
    assert.equal(isShared(links, "n2"), true);
    assert.equal(isShared(links, "n3"), false);
});

test("shareChanges: returns only differences", () => {
    const links = linksByItem([object("SharedItem", "l1", { item: "n1", recipient: bo })]).get("n1");
    const { added, removed } = shareChanges(links, [cem]);
    assert.deepEqual([added, removed.map(({ id }) => id)], [[cem], ["l1"]]);
    assert.deepEqual(shareChanges(links, [bo]), { added: [], removed: [] });
});

test("items: copies have their owner, and replace ended shares", () => {
    const copy = appointment("x", 9, 60, { realm: "/shares/s1" });
    const ended = ["x", "y"].map((item) => object("EndedShare", `e${item}`, { owner: bo, item, kind: "Appointment",
        title: "old", when: at(9), durationMinutes: 30, reason: "cancelled", endedAt: at(8) }));
    const list = all({ own: [appointment("x", 10)], copies: [copy], ended });
    assert.deepEqual(list.map(({ source, id, owner }) => [source, id, owner]),
        [["own", "x", ana], ["copy", "x", bo], ["ended", "y", bo]]);
    assert.equal(new Set(list.map(({ key }) => key)).size, 3);
    assert.equal(list[2].title, "old");
});

test("items: the owner's own copies are omitted", () => {
    const mine = object("Share", "s2", { owner: ana, recipient: bo });
    assert.deepEqual(all({ shares: [mine], copies: [appointment("x", 9, 60, { realm: "/shares/s2" })] }), []);
});

test("agenda: upcoming days begin with today", () => {
    const now = new Date(2026, 2, 30, 12);
    const tomorrow = object("Appointment", "t", { when: new Date(2026, 2, 31, 8).toISOString(), durationMinutes: 5,
        why: "t" });
    const past = object("Appointment", "p", { when: new Date(2026, 2, 1).toISOString(), durationMinutes: 5, why: "p" });
    const { earlier, upcoming } = agenda(all({ own: [tomorrow, past] }), now);
    assert.deepEqual(earlier.map(({ day }) => day), ["2026-03-01"]);
    assert.deepEqual(upcoming.map(({ day, items: list }) => [day, list.length]),
        [["2026-03-30", 0], ["2026-03-31", 1]]);
});

test("overlaps: adjacent appointments do not overlap", () => {
    const list = agenda(all({ own: [appointment("a", 9), appointment("b", 10), appointment("c", 10)] }),
        new Date(2026, 2, 30)).upcoming[0].items;
    assert.deepEqual([...overlaps(list)].map((key) => key.slice(-1)), ["b", "c"]);
});

test("notes: open tasks first, completed last, search in the text", () => {
    const list = all({ own: [object("Note", "1", { title: "done", isTask: true, isDone: true }),
        object("Note", "2", { title: "note", body: "Köln" }), object("Note", "3", { title: "open", isTask: true })] });
    assert.deepEqual(notes(list).map(({ title }) => title), ["open", "note", "done"]);
    assert.deepEqual(notes(list, "koln").map(({ title }) => title), ["note"]);
});

test("outgoing and incoming: list the items of each person", () => {
    const links = linksByItem([object("SharedItem", "l1", { item: "x", recipient: cem, since: at(2) }),
        object("SharedItem", "l2", { item: "missing", recipient: cem })]);
    const list = all({ own: [appointment("x", 9)], copies: [appointment("y", 9, 60, { realm: "/shares/s1" })], links });
    const out = outgoing({ list, links, shares: [share], me: ana });
    assert.deepEqual(out.map(({ person, items: shared }) => [person, shared.map(({ item }) => item.id)]),
        [[cem, ["x"]]]);
    const from = incoming({ list, shares: [share], me: ana });
    assert.deepEqual(from.map(({ person, since, items: shared }) => [person, since, shared.length]), [[bo, at(1), 1]]);
    assert.deepEqual(incoming({ list, shares: [{ ...share, fields: { ...share.fields, endedBy: bo } }], me: ana }), []);
});

test("uniqueShares: an ended copy wins", () => {
    const ended = { ...share, realm: own, fields: { ...share.fields, endedBy: bo } };
    assert.equal(uniqueShares([ended, share])[0].fields.endedBy, bo);
    assert.equal(uniqueShares([share, ended]).length, 1);
    assert.equal(uniqueShares([share, ended])[0].fields.endedBy, bo);
});

test("restoration: has the content of each kind", () => {
    const deleted = (fields) => restoration({ id: "d", fields: { deletedAt: at(1), ...fields } });
    assert.deepEqual(deleted({ kind: "Note", title: "t", body: null, isTask: true }),
        { kind: "Note", id: "d", fields: { title: "t", isTask: true } });
    assert.deepEqual(deleted({ kind: "Appointment", when: at(9), durationMinutes: 15, why: "w" }).fields,
        { when: at(9), durationMinutes: 15, why: "w" });
    assert.deepEqual(deleted({ kind: "SharedItem", itemKind: "Note", item: "n", recipient: bo }).fields,
        { kind: "Note", item: "n", recipient: bo });
    assert.equal(deleted({ kind: "SharedItem", item: "n" }), null);
});

test("history: a share is restorable while its item exists", () => {
    const deleted = [object("DeletedObject", "l1", { kind: "SharedItem", itemKind: "Appointment", item: "x",
        recipient: bo, reason: "removed", deletedAt: at(3) }),
    object("DeletedObject", "l2", { kind: "SharedItem", itemKind: "Note", item: "n", recipient: bo,
        reason: "item-deleted", deletedAt: at(4) }),
    object("DeletedObject", "n", { kind: "Note", title: "gone", deletedAt: at(4) })];
    const list = history({ deleted, ended: [], list: all({ own: [appointment("x", 9)] }) });
    assert.deepEqual(list.map(({ id, canRestore, title }) => [id, canRestore, title]),
        [["l2", false, "gone"], ["n", true, "gone"], ["l1", true, "meeting x"]]);
    assert.equal(daysRetained(at(1), new Date(2026, 3, 28, 2)), 1);
    assert.equal(daysRetained(at(1), new Date(2027, 0, 1)), 0);
});

test("unseen: reports new and changed copies", () => {
    const copy = (id, position) => appointment(id, 9, 60, { realm: "/shares/s1", position });
    const seen = positions(all({ copies: [copy("x", 5), copy("y", 6)] }));
    const list = all({ copies: [copy("x", 5), copy("y", 7), copy("z", 8)] });
    assert.deepEqual([...unseen(list, seen).values()], ["changed", "new"]);
    assert.equal(unseen(list, null).size, 0);
});

test("appointment form: validates, and an earlier end is on the next day", () => {
    const form = { why: " night ", day: "2026-03-30", from: "22:00", to: "01:30" };
    assert.deepEqual(appointmentProblems(form), []);
    assert.deepEqual(appointmentFields(form), { why: "night", when: at(22), durationMinutes: 210 });
    assert.deepEqual(appointmentProblems({ why: " ", day: "", from: "", to: "" }), ["why", "day", "from", "to"]);
});

test("local dates: day, time and next hour", () => {
    const date = new Date(2026, 0, 5, 7, 9);
    assert.deepEqual([localDay(date), localTime(date), localTime(nextHour(date))], ["2026-01-05", "07:09", "08:00"]);
});
