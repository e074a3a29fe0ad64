/** The week: a table of selections by day on wide screens, a list of days otherwise, and the summary beside a day. */

import { addDays, dateOf, entrySeconds, selectionKey, stateOf, submittable, totals, weekOf } from "../core/time.js";
import { button, empty, page, skeleton } from "../ui/components.js";
import { h } from "../ui/dom.js";

/** Returns the page of the week that contains a day. */
export function weekPage(model, day) {
    const { app } = model;
    const { t, format } = app;
    const days = weekOf(day, format.firstWeekday);
    const entries = days.flatMap((one) => model.entriesOf(one));
    const sums = totals(entries);
    const open = submittable(entries);
    return page({
        title: t("time.week"), subtitle: rangeText(format, days),
        back: { href: `#/time/${day}`, label: t("time.toDay") },
        actions: [
            button({ label: t("time.previousWeek"), icon: "left", kind: "quiet", isIconOnly: true,
                href: `#/time/week/${addDays(day, -7)}` }),
            !days.includes(model.today) && button({ label: t("time.thisWeek"), kind: "quiet", href: "#/time/week" }),
            button({ label: t("time.nextWeek"), icon: "right", kind: "quiet", isIconOnly: true,
                href: `#/time/week/${addDays(day, 7)}` }),
        ],
    },
    model.isLoading ? skeleton(5) : [
        sumList(format, t, sums),
        open.length > 0 && h("div", { class: "time-actions", key: "actions" }, button({ icon: "send", kind: "primary",
            label: t("time.submitWeek", { n: open.length }), onClick: () => model.submitDays(days) })),
        entries.length === 0 ? h("div", { key: "empty" }, empty({ icon: "calendar", title: t("time.weekEmpty"),
            text: t("time.weekEmptyText"), action: button({ label: t("time.add"), icon: "plus", kind: "primary",
                href: `#/time/${days.includes(model.today) ? model.today : day}/new` }) })) : [
            weekTable(model, days, entries), dayList(model, days)],
    ]);
}

/** Returns the summary of a week beside a day. */
export function weekPanel(model, day) {
    const { app } = model;
    const { t, format } = app;
    const days = weekOf(day, format.firstWeekday);
    const entries = days.flatMap((one) => model.entriesOf(one));
    return h("aside", { class: "page", key: "week", "aria-label": t("time.week") },
        h("div", { class: "section-head" }, h("h2", null, t("time.weekOf", { range: rangeText(format, days) })),
            button({ label: t("time.openWeek"), kind: "quiet", href: `#/time/week/${day}` })),
        sumList(format, t, totals(entries)),
        dayList(model, days, day), shares(model, entries));
}

function rangeText(format, days) {
    return `${format.date(dateOf(days[0]))} – ${format.date(dateOf(days[6]))}`;
}

function sumList(format, t, sums) {
    const item = (key, seconds, kind) => h("div", { class: ["time-total", kind && `is-${kind}`], key },
        h("dt", null, t(key)), h("dd", { class: "number" }, format.hours(seconds)));
    return h("dl", { class: "time-totals", key: "sums" },
        item("time.total", sums.seconds), item("time.totalSubmitted", sums.submitted, sums.submitted > 0 && "ok"),
        item("time.totalDraft", sums.draft), (sums.invalid + sums.rejected > 0)
            && item("time.totalProblem", sums.invalid + sums.rejected, "bad"));
}

/** Returns the days with a bar of their hours, as links. */
function dayList(model, days, selected) {
    const { app } = model;
    const { t, format } = app;
    const sums = days.map((day) => totals(model.entriesOf(day)));
    const most = Math.max(8 * 3600, ...sums.map(({ seconds }) => seconds));
    return h("ol", { class: "time-bars", key: "bars" }, days.map((day, index) => {
        const sum = sums[index];
        const part = (name, seconds) => seconds > 0 && h("span", { class: `time-bar is-${name}`,
            style: { width: `${(seconds / most) * 100}%` } });
        const isFree = sum.seconds === 0;
        return h("li", { key: day }, h("a", { href: `#/time/${day}`,
            class: ["time-bar-row", day === selected && "is-selected", day === model.today && "is-today"] },
        h("span", { class: "time-bar-day" }, h("strong", null, format.weekday(dateOf(day))), " ",
            h("span", { class: "muted" }, format.dayMonth(dateOf(day)))),
        h("span", { class: "time-bar-track", "aria-hidden": true }, part("ok", sum.submitted), part("draft", sum.draft),
            part("bad", sum.invalid + sum.rejected)),
        h("span", { class: ["number", isFree ? "muted" : "time-bar-hours"] }, isFree ? "–" : format.hours(sum.seconds)),
        sum.invalid + sum.rejected > 0 && h("span", { class: "visually-hidden" }, t("time.mark.bad"))));
    }));
}

/** Returns the rows of the week's table: the seconds of each selection by day, the longest first. */
function weekRows(model, entries) {
    const rows = new Map();
    for (const { fields } of entries) {
        if (["suggestion", "deleting"].includes(stateOf(fields))) continue;
        const key = selectionKey(fields);
        if (!rows.has(key)) rows.set(key, { key, names: model.namesOf(fields), seconds: 0, days: new Map() });
        const row = rows.get(key);
        const seconds = entrySeconds(fields);
        row.seconds += seconds;
        row.days.set(fields.entryDate, (row.days.get(fields.entryDate) ?? 0) + seconds);
    }
    return [...rows.values()].sort((a, b) => b.seconds - a.seconds || (a.key < b.key ? -1 : 1));
}

function weekTable(model, days, entries) {
    const { app } = model;
    const { t, format } = app;
    const cell = (seconds) => seconds > 0 ? format.hours(seconds) : "";
    const dayClass = (day) => day === model.today && "is-today";
    return h("div", { class: "time-table-box", key: "table" }, h("table", { class: "time-table" },
        h("caption", { class: "visually-hidden" }, t("time.weekOf", { range: rangeText(format, days) })),
        h("thead", null, h("tr", null, h("th", { scope: "col" }, t("time.work")),
            days.map((day) => h("th", { scope: "col", class: dayClass(day) },
                h("a", { href: `#/time/${day}` }, format.weekday(dateOf(day)), h("br", null),
                    h("span", { class: "muted small" }, format.dayMonth(dateOf(day)))))),
            h("th", { scope: "col" }, t("time.total")))),
        h("tbody", null, weekRows(model, entries).map((row) => h("tr", { key: row.key },
            h("th", { scope: "row" }, h("span", { class: "time-row-name" }, row.names[0] ?? t("time.noSelection")),
                h("span", { class: "muted small" }, row.names.slice(1).join(" · "))),
            days.map((day) => h("td", { class: ["number", dayClass(day)] }, cell(row.days.get(day)))),
            h("td", { class: "number is-total" }, cell(row.seconds))))),
        h("tfoot", null, h("tr", null, h("th", { scope: "row" }, t("time.total")),
            days.map((day) => h("td", { class: ["number", dayClass(day)] },
                cell(totals(model.entriesOf(day)).seconds))),
            h("td", { class: "number is-total" }, cell(totals(entries).seconds))))));
}

/** Returns the hours of each selection of the week. */
function shares(model, entries) {
    const { t, format } = model.app;
    const rows = weekRows(model, entries);
    if (rows.length === 0) return undefined;
    return h("section", { class: "section", key: "shares" },
        h("div", { class: "section-head" }, h("h2", null, t("time.byWork"))),
        h("ul", { class: "group" }, rows.slice(0, 12).map((row) => h("li", { class: "time-share", key: row.key },
            h("span", { class: "grow" }, h("span", { class: "time-row-name" }, row.names[0] ?? t("time.noSelection")),
                h("span", { class: "muted small" }, row.names.slice(1).join(" · "))),
            h("strong", { class: "number" }, format.hours(row.seconds))))));
}
