import assert from "node:assert/strict";
import { test } from "node:test";
import * as time from "../../Services/Onboarding/App/core/time.js";

process.env.TZ = "Europe/Copenhagen";

const entry = (id, fields) => ({ id, position: 0, fields });
const hours = (count) => count * 3600;
const interval = (id, day, start, end) => entry(id, { entryDate: day, status: "draft",
    ...time.intervalFields(day, time.parseClock(start), time.parseClock(end)) });

test("days are counted across months, years and changes of the clock", () => {
    assert.equal(time.addDays("2026-03-28", 2), "2026-03-30");
    assert.equal(time.addDays("2026-01-01", -1), "2025-12-31");
    assert.equal(time.dayOf(new Date(2026, 10, 27, 23, 59)), "2026-11-27");
    assert.ok(time.isDay("2028-02-29"));
    assert.ok(!time.isDay("2026-02-29"));
    assert.ok(!time.isDay("tomorrow"));
    assert.ok(!time.isDay(null));
});

test("a week begins with the locale's first weekday", () => {
    assert.equal(time.weekOf("2026-11-27", 1)[0], "2026-11-23");
    assert.equal(time.weekOf("2026-11-27", 0)[0], "2026-11-22");
    assert.equal(time.weekOf("2026-11-22", 1)[6], "2026-11-22");
    assert.equal(time.weekOf("2026-11-27", 6)[0], "2026-11-21");
});

test("daysBetween omits weekends on request and has a limit", () => {
    assert.deepEqual(time.daysBetween("2026-11-27", "2026-11-30", { isWorkdaysOnly: true }),
        ["2026-11-27", "2026-11-30"]);
    assert.equal(time.daysBetween("2026-01-01", "2030-01-01").length, 62);
    assert.deepEqual(time.daysBetween("2026-01-02", "2026-01-01"), []);
});

test("durations are parsed in the usual notations", () => {
    const seconds = { "7:30": 27_000, "7.5": 27_000, "7,5": 27_000, "7": 25_200, " 7 h ": 25_200, "7h30": 27_000,
        "7 h 30 min": 27_000, "45m": 2700, "45 min": 2700, "90min": 5400, ",5": 1800, "0:05": 300, "7,25 std": 26_100,
        "2 timer": 7200, "0": 0, "1.3333": 4800 };
    for (const [text, expected] of Object.entries(seconds)) assert.equal(time.parseDuration(text), expected, text);
    for (const text of ["", "x", "7:60", "7:3", "-1", "1:2:3", "7.5.1", null]) {
        assert.equal(time.parseDuration(text), undefined, text);
    }
});

test("durations are written as hours and minutes", () => {
    assert.equal(time.durationText(27_000), "7:30");
    assert.equal(time.durationText(0), "0:00");
    assert.equal(time.durationText(3599), "1:00");
    assert.equal(time.durationText(-1800), "−0:30");
    assert.equal(time.durationText(360_000), "100:00");
});

test("times of day are parsed in the usual notations", () => {
    const minutes = { "8": 480, "8:30": 510, "08.30": 510, "830": 510, "0830": 510, "17": 1020, "5 pm": 1020,
        "12am": 0, "12 pm": 720, "8 Uhr": 480, "24:00": 1440, "0": 0 };
    for (const [text, expected] of Object.entries(minutes)) assert.equal(time.parseClock(text), expected, text);
    for (const text of ["", "25", "8:61", "13 pm", "24:01", "x"]) assert.equal(time.parseClock(text), undefined, text);
});

test("an interval has the device's offset, and ends on the next day if its end is not after its start", () => {
    assert.deepEqual(time.intervalFields("2026-07-01", 480, 600), { timeType: "interval",
        startTime: "2026-07-01T08:00:00+02:00", endTime: "2026-07-01T10:00:00+02:00" });
    const night = time.intervalFields("2026-01-31", 22 * 60, 6 * 60);
    assert.equal(night.endTime, "2026-02-01T06:00:00+01:00");
    assert.equal(time.entrySeconds(night), hours(8));
    assert.equal(time.entrySeconds(time.intervalFields("2026-03-28", 22 * 60, 6 * 60)), hours(7));
});

test("an entry's seconds follow its type of time", () => {
    assert.equal(time.entrySeconds({ durationSeconds: 60 }), 60);
    assert.equal(time.entrySeconds({ timeType: "interval", durationSeconds: 60 }), 0);
    assert.equal(time.entrySeconds({}), 0);
    assert.equal(time.clockOf("2015-03-30T08:00:00-04:00"), "08:00");
    assert.equal(time.clockOf(null), "");
});

test("a day lists intervals by start, then durations", () => {
    const list = [entry("b", { entryDate: "2026-11-27" }), interval("late", "2026-11-27", "13", "14"),
        entry("a", { entryDate: "2026-11-27" }), interval("early", "2026-11-27", "8", "9"),
        interval("other", "2026-11-26", "8", "9")];
    assert.deepEqual(time.entriesOf(list, "2026-11-27").map(({ id }) => id), ["early", "late", "a", "b"]);
    assert.deepEqual([...time.entriesByDay(list).keys()], ["2026-11-27", "2026-11-26"]);
});

test("totals omit suggestions and requested deletions", () => {
    const list = [entry("1", { durationSeconds: 100 }), entry("2", { durationSeconds: 200, status: "suggestion" }),
        entry("3", { durationSeconds: 400, status: "released", submitRequested: true }),
        entry("4", { durationSeconds: 800, status: "released", deleteRequested: true }),
        entry("5", { durationSeconds: 1600, status: "invalid" })];
    assert.deepEqual(time.totals(list),
        { seconds: 2100, draft: 100, submitted: 400, invalid: 1600, rejected: 0, count: 3 });
});

test("overlaps are found across entries that contain others; touching ones do not overlap", () => {
    const day = "2026-11-27";
    const list = [interval("1", day, "8", "12"), interval("2", day, "9", "10"), interval("3", day, "11", "13"),
        interval("4", day, "13", "14")];
    assert.deepEqual([...time.overlapping(list)].sort(), ["1", "2", "3"]);
    assert.deepEqual(time.dayWarnings(list), ["overlap"]);
    assert.deepEqual(time.dayWarnings([entry("1", { durationSeconds: hours(25) })]), ["over-24-hours"]);
    assert.deepEqual(time.dayWarnings([]), []);
});

test("a copy is a draft on the other day, at the same times, without the back end's fields", () => {
    const fields = { ...interval("1", "2026-07-01", "22", "6").fields, status: "approved", backendId: "17",
        submitRequested: true, statusAt: "2026-07-01T00:00:00Z", text: "night", reportingTemplate: "t",
        reporting: [{ context: "c", node: "n" }] };
    assert.deepEqual(time.copyOf(fields, "2026-12-01", "2026-12-02"), { status: "draft", entryDate: "2026-12-01",
        createdOn: "2026-12-02", timeType: "interval", text: "night", reportingTemplate: "t",
        reporting: [{ context: "c", node: "n" }], startTime: "2026-12-01T22:00:00+01:00",
        endTime: "2026-12-02T06:00:00+01:00" });
    assert.deepEqual(time.copyOf({ durationSeconds: 60 }, "2026-12-01", "2026-12-01"), { status: "draft",
        entryDate: "2026-12-01", createdOn: "2026-12-01", timeType: "duration", durationSeconds: 60 });
});

test("the day to copy is the latest one with entries, within two weeks", () => {
    const list = [entry("1", { entryDate: "2026-11-20" }), entry("2", { entryDate: "2026-11-24" }),
        entry("3", { entryDate: "2026-11-25", status: "suggestion" }), entry("4", { entryDate: "2026-11-28" })];
    assert.equal(time.dayToCopy(list, "2026-11-27"), "2026-11-24");
    assert.equal(time.dayToCopy(list, "2026-11-20"), undefined);
    assert.equal(time.dayToCopy(list, "2027-11-20"), undefined);
});

test("submitting a day concerns its drafts", () => {
    const list = ["draft", "suggestion", "invalid", "released", undefined].map((status, index) =>
        entry(String(index), { status }));
    assert.deepEqual(time.submittable(list).map(({ id }) => id), ["0", "4"]);
});

test("recent selections are listed once, the latest first; favourites toggle", () => {
    const one = { reportingTemplate: "t", reporting: [{ context: "a", node: "1" }, { context: "b", node: "2" }] };
    const same = { reportingTemplate: "t", reporting: [{ context: "b", node: "2" }, { context: "a", node: "1" }] };
    const two = { reportingTemplate: "t", reporting: [{ context: "a", node: "3" }] };
    const list = [entry("1", { ...one, entryDate: "2026-11-01" }), entry("2", { ...same, entryDate: "2026-11-03" }),
        entry("3", { ...two, entryDate: "2026-11-02" }), entry("4", { entryDate: "2026-11-04" })];
    assert.deepEqual(time.recentSelections(list), [same, two]);
    assert.deepEqual(time.recentSelections(list, 1), [same]);
    assert.deepEqual(time.toggleFavourite([], one), [one]);
    assert.deepEqual(time.toggleFavourite([two, one], same), [two]);
});

test("a timer rounds to its step, and is an interval of at most 24 hours", () => {
    const start = new Date(2026, 10, 27, 23, 50, 30);
    const timer = { startedAt: start.getTime(), text: "x", reportingTemplate: "t", reporting: [] };
    const now = new Date(start.getTime() + 22 * 60_000);
    assert.equal(time.timerSeconds(timer, now), 1320);
    assert.equal(time.timerSeconds(timer, new Date(0)), 0);
    const fields = time.timerFields(timer, now, 15);
    assert.equal(fields.entryDate, "2026-11-27");
    assert.equal(fields.startTime, "2026-11-27T23:50:00+01:00");
    assert.equal(fields.endTime, "2026-11-28T00:05:00+01:00");
    assert.equal(time.entrySeconds(time.timerFields(timer, new Date(start.getTime() + 1e9), 1)), hours(24));
    assert.equal(time.roundSeconds(10, 6), 360);
    assert.equal(time.roundSeconds(539, 6), 360);
    assert.equal(time.roundSeconds(541, 6), 720);
});

test("the displayed state includes requests that wait for the server", () => {
    const states = [
        [{}, "draft"], [{ submitRequested: true }, "submitting"], [{ status: "suggestion" }, "suggestion"],
        [{ status: "submitted", submitRequested: true }, "submitted"],
        [{ status: "released", submitRequested: false }, "withdrawing"], [{ status: "released" }, "released"],
        [{ status: "invalid", submitRequested: false }, "invalid"], [{ status: "recorded" }, "recorded"],
        [{ status: "approved", submitRequested: true, deleteRequested: true }, "deleting"],
    ];
    for (const [fields, state] of states) assert.equal(time.stateOf(fields), state, JSON.stringify(fields));
});

test("actions follow the life cycle", () => {
    const allowed = (fields) => Object.entries(time.actionsOf(fields)).filter(([, value]) => value).map(([name]) => name);
    assert.deepEqual(allowed({}), ["canEdit", "canSubmit", "canDelete"]);
    assert.deepEqual(allowed({ status: "released", submitRequested: true }),
        ["canEdit", "canWithdraw", "canDelete", "changesRecord", "requestsDeletion"]);
    assert.deepEqual(allowed({ status: "invalid", submitRequested: true }), ["canEdit", "canSubmit", "canDelete"]);
    assert.deepEqual(allowed({ status: "invalid", backendId: "1" }),
        ["canEdit", "canSubmit", "canDelete", "requestsDeletion"]);
    assert.deepEqual(allowed({ status: "recorded" }).filter((name) => name.startsWith("can")), []);
    assert.deepEqual(allowed({ status: "released", deleteRequested: true }), []);
});

test("the reasons are the messages of the last decision", () => {
    const line = (id, status, timestamp, message) => ({ id, fields: { entry: "e", status, timestamp, message } });
    const lines = [line("1", "draft", "2026-11-27T08:00:00.000Z"), line("3", "invalid", "2026-11-27T08:00:02.001Z", "B"),
        line("2", "invalid", "2026-11-27T08:00:02Z", "A"), line("0", "invalid", "2026-11-27T07:00:00.000Z", "old"),
        { id: "9", fields: { entry: "other", status: "released", timestamp: "2026-11-28T08:00:00.000Z" } }];
    const log = time.statusLog(lines, "e");
    assert.deepEqual(log.map(({ id }) => id), ["3", "2", "1", "0"]);
    assert.deepEqual(time.reasons(log).map(({ message }) => message), ["A", "B"]);
    assert.deepEqual(time.reasons([]), []);
    assert.deepEqual(time.reasons(time.statusLog([line("1", "released", "2026-11-27T08:00:00.000Z")], "e")), []);
});

test("problems of day, time and text are those of the submitter", () => {
    const codes = (fields) => time.timeProblems(fields).map(({ code }) => code);
    assert.deepEqual(codes({}), ["date-missing", "duration-missing"]);
    assert.deepEqual(codes({ entryDate: "2026-11-27", durationSeconds: 0 }), ["duration-zero"]);
    assert.deepEqual(codes({ entryDate: "2026-11-27", durationSeconds: 17 }), ["duration-too-short"]);
    assert.deepEqual(codes({ entryDate: "2026-11-27", durationSeconds: 86_401 }), ["duration-too-long"]);
    assert.deepEqual(codes({ entryDate: "2026-11-27", timeType: "interval" }), ["start-missing", "end-missing"]);
    assert.deepEqual(codes({ entryDate: "2026-11-27", timeType: "interval", startTime: "2026-11-27T08:00:00Z",
        endTime: "2026-11-27T07:00:00Z" }), ["end-before-start"]);
    assert.deepEqual(codes({ entryDate: "2026-11-27", durationSeconds: 60, text: "x".repeat(41) }), ["text-too-long"]);
    assert.deepEqual(codes({ entryDate: "2026-11-27", durationSeconds: 60 }), []);
});

test("a corrected start of the timer is today's, or of the last 12 hours", () => {
    const noon = new Date(2026, 10, 27, 12, 0);
    const at = (now, text) => time.startBefore(now, time.parseClock(text));
    assert.equal(at(noon, "08:15"), new Date(2026, 10, 27, 8, 15).getTime());
    assert.equal(at(noon, "13:00"), undefined);
    assert.equal(at(new Date(2026, 10, 27, 0, 30), "23:50"), new Date(2026, 10, 26, 23, 50).getTime());
});
