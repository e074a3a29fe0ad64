import assert from "node:assert/strict";
import { test } from "node:test";
import { calendarDays, firstWeekday, formatter, hours, parseHours, toDate }
    from "../../Services/Onboarding/App/core/format.js";

const now = () => new Date(2026, 10, 27, 12, 0);

test("hours formats seconds as hours and minutes", () => {
    assert.equal(hours(27_000), "7:30");
    assert.equal(hours(0), "0:00");
    assert.equal(hours(59), "0:01");
    assert.equal(hours(360_000), "100:00");
    assert.equal(hours(-5_400), "−1:30");
    assert.equal(hours(undefined), "0:00");
});

test("parseHours accepts clock and decimal durations and rejects other texts", () => {
    assert.equal(parseHours("7:30"), 27_000);
    assert.equal(parseHours(" 7,5 "), 27_000);
    assert.equal(parseHours("7.25"), 26_100);
    assert.equal(parseHours("8"), 28_800);
    for (const text of ["", "x", "7:60", "1e3", "-1", null]) assert.equal(parseHours(text), undefined);
});

test("toDate reads a date without time as local", () => {
    const date = toDate("2026-03-30");
    assert.deepEqual([date.getFullYear(), date.getMonth(), date.getDate(), date.getHours()], [2026, 2, 30, 0]);
});

test("firstWeekday follows the locale", () => {
    assert.equal(firstWeekday("de"), 1);
    assert.equal(firstWeekday("da-DK"), 1);
    assert.equal(firstWeekday("en-GB"), 1);
    assert.equal(firstWeekday("en-US"), 0);
    assert.equal(firstWeekday("ar-EG"), 6);
    assert.equal(firstWeekday("not a locale"), 1);
});

test("formatter omits the current year and returns an empty text without a date", () => {
    const { date, dayMonth, time, dateTime, relative } = formatter("en-GB", { now });
    assert.equal(date("2026-11-26"), "26 Nov");
    assert.equal(date("2025-11-26"), "26 Nov 2025");
    assert.equal(dayMonth("2025-11-26"), "26 Nov");
    for (const format of [date, dayMonth, time, dateTime, relative]) {
        assert.equal(format(undefined), "");
        assert.equal(format("no date"), "");
    }
});

test("formatter relates times by calendar day", () => {
    const { relative, relativeDay } = formatter("en-GB", { now });
    assert.equal(relative(now()), "now");
    assert.equal(relative(now().getTime() - 5 * 60_000), "5 minutes ago");
    assert.equal(relative(now().getTime() + 3 * 3_600_000), "in 3 hours");
    assert.equal(relativeDay("2026-11-26"), "yesterday");
    assert.equal(relativeDay("2026-11-27"), "today");
    assert.equal(relativeDay("2026-10-01"), "1 Oct");
});

test("formatter uses the locale's numbers, units and languages", () => {
    assert.equal(formatter("de").number(1_234.5), "1.234,5");
    assert.equal(formatter("en").bytes(4_200_000), "4.2 MB");
    assert.equal(formatter("da", { now }).weekday("2026-11-27", "long"), "fredag");
});

test("calendarDays counts midnights, not hours", () => {
    assert.equal(calendarDays(new Date(2026, 9, 24, 23), new Date(2026, 9, 26, 1)), 2);
    assert.equal(calendarDays(new Date(2026, 2, 29, 12), new Date(2026, 2, 28, 12)), -1);
});
