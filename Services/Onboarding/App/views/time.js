/** The Time view: a day with its entries and the timer, a week, an entry with its log, and the editor. */

import {
    addDays, dateOf, dayWarnings, entrySeconds, isDay, overlapping, stateOf, submittable, timerSeconds,
    totals, weekOf,
} from "../core/time.js";
import { banner, button, card, chip, empty, icon, menu, page, skeleton } from "../ui/components.js";
import { h, view } from "../ui/dom.js";
import { EntryEditor } from "./time-editor.js";
import { entryPage } from "./time-entry.js";
import { TimeModel, timerSteps } from "./time-model.js";
import { attention, changeTimerStart, entryItems, spanText, stateChip } from "./time-parts.js";
import { weekPage, weekPanel } from "./time-week.js";

export const route = "time";

/**
 * Renders the view. Addresses: `time`, `time/DAY`, `time/week/DAY`, `time/DAY/new`, `time/DAY/absence`, `time/DAY/ID`,
 * `time/DAY/ID/edit`, and `time/ID` for notices and rejections, which do not know the day.
 */
export function mount(app, root, segments) {
    let address;
    let current = segments;
    let editor;
    let display;
    let clock;
    const update = () => display?.update();
    const model = new TimeModel(app, update);

    function readAddress([first, second, third]) {
        const today = model?.today;
        if (first === "week") return { page: "week", day: isDay(second) ? second : today };
        if (first && !isDay(first)) {
            return { page: "entry", day: model.entry(first)?.fields.entryDate ?? today, id: first };
        }
        const day = first ?? today;
        if (second === "new" || second === "absence") return { page: "editor", day, kind: second };
        if (second) return { page: third === "edit" ? "editor" : "entry", day, id: second };
        return { page: "day", day };
    }

    /** Returns the editor of the address; the same one while the address stays. */
    function currentEditor() {
        const { day, id, kind } = address;
        const key = `${id ?? kind} ${id ? "" : day}`;
        if (editor?.key !== key) {
            const entry = id && model.entry(id);
            if (id && !entry) return undefined;
            editor?.stop();
            editor = new EntryEditor(model, { key, day, entry, isAbsence: kind === "absence", update });
        }
        return editor;
    }

    function detail() {
        if (address.page === "editor") {
            const shownEditor = currentEditor();
            if (shownEditor) return shownEditor.render();
        } else if (address.page === "entry" && model.entry(address.id)) {
            return entryPage(model, model.entry(address.id), address.day);
        }
        if (address.page === "day") return undefined;
        return model.isLoading ? page({ title: app.t("time.entry"), level: 1 }, skeleton(3))
            : page({ title: app.t("time.entry"), back: { href: `#/time/${address.day}`, label: app.t("app.back") } },
                empty({ icon: "time", title: app.t("time.gone"), text: app.t("time.goneText"),
                    action: button({ label: app.t("time.toDay"), href: `#/time/${address.day}` }) }));
    }

    function render() {
        // The day of an entry without one in its address is known once the entry is.
        if (address.id && address.id === current[0]) address = readAddress(current);
        updateClock();
        if (address.page === "week") return weekPage(model, address.day);
        const shown = detail();
        return h("div", { class: ["panes", shown && "has-detail"], key: "panes" },
            h("div", { class: "pane pane-list", key: "list" }, dayPage(model, address)),
            h("div", { class: "pane pane-detail", key: "detail" },
                shown ?? (model.isLoading ? undefined : weekPanel(model, address.day))));
    }

    /** Renders the running time once per second, without a render of the view. */
    function updateClock() {
        if (Boolean(model.timer) === Boolean(clock)) return;
        clearInterval(clock);
        clock = model.timer ? setInterval(() => {
            const { timer } = model;
            const node = root.querySelector(".time-clock");
            if (timer && node) node.textContent = clockText(timerSeconds(timer, app.now()));
        }, 1000) : undefined;
    }

    // The day may have changed while the page was hidden.
    const shown = () => {
        if (document.hidden) return;
        address = readAddress(current);
        update();
    };
    document.addEventListener("visibilitychange", shown);
    const statusChanged = () => update();
    app.fieldpost.addEventListener("status", statusChanged);
    address = readAddress(segments);
    display = view(root, render);

    return {
        update(next) {
            current = next;
            address = readAddress(next);
            if (address.page !== "editor") {
                editor?.stop();
                editor = undefined;
            }
            display.update();
        },
        unmount() {
            display.stop();
            editor?.stop();
            model.stop();
            clearInterval(clock);
            document.removeEventListener("visibilitychange", shown);
            app.fieldpost.removeEventListener("status", statusChanged);
        },
    };
}

function clockText(seconds) {
    const two = (number) => String(number).padStart(2, "0");
    return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** Returns the page of a day. */
function dayPage(model, { day, id }) {
    const { app } = model;
    const { t, format } = app;
    const entries = model.entriesOf(day);
    const isToday = day === model.today;
    const title = Math.abs(daysFromToday(model, day)) <= 1 ? capitalised(format.relativeDay(dateOf(day)))
        : format.weekday(dateOf(day), "long");
    return page({
        title, subtitle: format.date(dateOf(day)),
        actions: [!isToday && button({ label: t("time.today"), kind: "quiet", href: "#/time" }),
            h("a", { class: "button time-week-link", href: `#/time/week/${day}` }, icon("calendar"),
                h("span", null, t("time.week")))],
    },
    weekStrip(model, day),
    model.isLoading ? loading(model) : [
        timerCard(model),
        warnings(model, entries),
        attention(model, day),
        entries.length > 0 ? entryList(model, day, entries, id) : emptyDay(model, day),
    ]);
}

function daysFromToday(model, day) {
    return Math.round((Date.parse(day) - Date.parse(model.today)) / 86_400_000);
}

function capitalised(text) {
    return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

function loading({ app, isOffline }) {
    return isOffline ? empty({ icon: "offline", title: app.t("time.noCopy"), text: app.t("time.noCopyText") })
        : skeleton(4);
}

/** Returns the seven days of the week with their totals, as links. */
function weekStrip(model, day) {
    const { app } = model;
    const { t, format } = app;
    const days = weekOf(day, format.firstWeekday);
    const step = (count, label, name) => h("a", { class: "button button-quiet button-icon time-step",
        href: `#/time/${addDays(day, count)}`, "aria-label": label, title: label }, icon(name));
    return h("nav", { class: "time-strip", "aria-label": t("time.days") },
        step(-7, t("time.previousWeek"), "left"),
        h("ol", { class: "time-days" }, days.map((one) => {
            const sums = totals(model.entriesOf(one));
            const problem = sums.invalid > 0 || sums.rejected > 0;
            const mark = problem ? "bad" : sums.draft > 0 ? "draft" : sums.seconds > 0 ? "ok" : undefined;
            return h("li", { key: one }, h("a", {
                class: ["time-day", one === day && "is-selected", one === model.today && "is-today"],
                href: `#/time/${one}`, "aria-current": one === day ? "date" : undefined,
                "aria-label": [format.longDate(dateOf(one)), format.hours(sums.seconds),
                    mark && t(`time.mark.${mark}`)].filter(Boolean).join(", "),
            },
            h("span", { class: "time-day-name" }, format.weekday(dateOf(one))),
            h("span", { class: "time-day-number" }, String(Number(one.slice(8)))),
            h("span", { class: "time-day-hours number" }, sums.seconds > 0 ? format.hours(sums.seconds) : "–"),
            h("span", { class: ["time-mark", mark && `is-${mark}`] })));
        })),
        step(7, t("time.nextWeek"), "right"));
}

/** Returns the running timer with its selection, or nothing. */
function timerCard(model) {
    const { timer, app } = model;
    if (!timer) return undefined;
    const { t, format } = app;
    const stop = async () => {
        const { day, id, fields } = await model.stopTimer();
        if (!id) return;
        if (model.problems(fields).length > 0) app.navigate(`time/${day}/${id}/edit`);
        else app.toast(t("time.timerSaved"), { action: { label: t("app.edit"),
            run: () => app.navigate(`time/${day}/${id}/edit`) } });
    };
    const discard = async () => {
        if (await app.confirm({ title: t("time.discardTitle"), text: t("time.discardText"),
            confirm: t("time.discard"), isDangerous: true })) model.discardTimer();
    };
    const names = timer.reportingTemplate ? model.namesOf(timer) : [];
    const quick = names.length === 0 ? model.quickSelections(4) : [];
    return h("section", { class: "time-timer", key: "timer", "aria-label": t("time.timer") },
        h("div", { class: "time-timer-main" },
            h("span", { class: "time-pulse", "aria-hidden": true }),
            h("div", { class: "grow" },
                h("div", { class: "time-clock number", key: "clock" },
                    clockText(timerSeconds(timer, app.now()))),
                h("div", { class: "time-timer-note" },
                    [...names, t("time.since", { time: format.time(timer.startedAt) })].join(" · "))),
            menu({ label: t("time.timerOptions"), items: [
                { label: t("time.changeStart"), icon: "edit", run: () => changeTimerStart(model) },
                ...timerSteps.map((minutes) => ({ icon: minutes === model.timerStep ? "check" : "circle",
                    label: t("time.roundTo", { n: minutes }), run: () => { model.timerStep = minutes; } })),
                { label: t("time.discard"), icon: "trash", kind: "danger", run: discard }] }),
            button({ label: t("time.stop"), icon: "stop", kind: "primary", onClick: stop })),
        quick.length > 0 && h("p", { class: "time-timer-for muted small", key: "for" }, t("time.timerFor")),
        quick.length > 0 && h("div", { class: "time-quick", key: "quick" }, quick.map((one) =>
            h("button", { class: "time-quick-item", type: "button", key: one.key, on: { click: () =>
                model.editTimer({ reportingTemplate: one.reportingTemplate, reporting: one.reporting }) } },
            one.isFavourite && icon("star", { size: "small" }),
            h("span", { class: "grow" }, one.names.map(({ title }) => title).join(" · "))))));
}

function warnings({ app }, entries) {
    return dayWarnings(entries).map((code) => h("div", { key: `warning-${code}` },
        banner({ kind: "warn", text: app.t(`time.warning.${code}`) })));
}

function emptyDay(model, day) {
    const { app } = model;
    const { t } = app;
    if (model.picker.templates.length === 0) {
        return h("div", { key: "empty" }, empty({ icon: "time", title: t("time.noTemplates"),
            text: t("time.noTemplatesText") }));
    }
    return h("div", { key: "empty", class: "time-empty" },
        empty({ icon: "time", title: t("time.emptyTitle"), text: t("time.emptyText") }), dayActions(model, day, true));
}

/** Returns the buttons of a day: add, timer, and a menu or buttons for absence and copies. */
function dayActions(model, day, isEmpty) {
    const { app } = model;
    const { t, format } = app;
    const source = model.dayToCopy(day);
    const isDayBefore = source === addDays(day, -1);
    const copyLabel = source && (!isDayBefore ? t("time.copyDay", { day: format.weekday(dateOf(source), "long") })
        : t(day === model.today ? "time.copyYesterday" : "time.copyDayBefore"));
    const hasAbsence = model.picker.templates.some((id) => model.isAbsence(id));
    const others = [
        source && { label: copyLabel, icon: "copy", run: () => model.copyDay(source, day) },
        hasAbsence && { label: t("time.absence"), icon: "bag", run: () => app.navigate(`time/${day}/absence`) },
    ].filter(Boolean);
    return h("div", { class: "time-actions", key: "actions" },
        button({ label: t("time.add"), icon: "plus", kind: "primary", href: `#/time/${day}/new` }),
        !model.timer && button({ label: t("time.startTimer"), icon: "play", onClick: () => model.startTimer() }),
        isEmpty ? others.map(({ run, ...item }) => button({ ...item, onClick: run }))
            : others.length > 0 && menu({ label: t("app.more"), items: others }));
}

function entryList(model, day, entries, selected) {
    const { app } = model;
    const { t, format } = app;
    const overlaps = overlapping(entries);
    const suggestions = entries.filter(({ fields }) => fields.status === "suggestion");
    const others = entries.filter(({ fields }) => fields.status !== "suggestion");
    const open = submittable(others);
    const sums = totals(others);
    const shares = [["draft", "time.sumDraft"], ["submitted", "time.sumSubmitted"], ["invalid", "time.sumInvalid"],
        ["rejected", "time.sumRejected"]].filter(([name]) => sums[name] > 0);
    return [
        h("div", { class: "time-sum", key: "sum" },
            h("strong", { class: "grow number" }, format.hours(sums.seconds), h("span", null, " ", t("app.hourUnit"))),
            open.length > 0 && button({ label: t("time.submitDay", { n: open.length }), icon: "send",
                onClick: () => model.submitDays([day]) }),
            h("div", { class: "time-sum-parts muted small" }, shares.map(([name, key]) =>
                h("span", null, t(key, { hours: format.hours(sums[name]) }))))),
        dayActions(model, day, false),
        h("div", { class: "stack", key: "entries", role: "list", "aria-label": t("time.entries") },
            others.map((entry) => entryCard(model, day, entry, { isSelected: entry.id === selected,
                overlaps: overlaps.has(entry.id) }))),
        suggestions.length > 0 && h("section", { class: "section", key: "suggestions" },
            h("div", { class: "section-head" }, h("h2", null, t("time.suggestions"))),
            h("div", { class: "stack", role: "list" }, suggestions.map((entry) => entryCard(model, day, entry, {})))),
    ];
}

function entryCard(model, day, entry, { isSelected, overlaps }) {
    const { app } = model;
    const { t, format } = app;
    const { fields } = entry;
    const state = stateOf(fields);
    const [main, ...others] = model.namesOf(fields);
    const isProblem = state === "invalid" || state === "rejected";
    const reason = isProblem ? model.reasons(entry.id).map(({ message }) => message).join(" · ") : undefined;
    const missing = state === "draft" && model.problems(fields).length > 0;
    const span = spanText(model, fields);
    const canAccept = state === "suggestion";
    const canSubmit = state === "draft" && !missing;
    const node = card({
        key: entry.id, role: "listitem", level: 2, isSelected, kind: isProblem ? "bad" : undefined,
        href: `#/time/${day}/${entry.id}`,
        title: main ?? t("time.noSelection"),
        meta: [
            h("span", { class: "time-meta-line" }, others.join(" · "), others.length > 0 && span && " · ",
                span && h("span", { class: "time-span" }, span)),
            fields.text && h("span", { class: "time-text" }, fields.text),
            h("span", { class: "time-chips" }, stateChip(model, entry),
                missing && chip({ label: t("time.incomplete"), kind: "warn" }),
                overlaps && chip({ label: t("time.overlaps"), kind: "warn" }),
                entry.isPending && chip({ label: t("app.pending"), icon: "upload" })),
            reason && h("span", { class: "time-reason" }, reason),
        ],
        actions: [
            canSubmit && button({ label: t("time.submit"), icon: "send", kind: "quiet", isIconOnly: true,
                onClick: () => model.submit(entry.id) }),
            canAccept && button({ label: t("time.accept"), kind: "quiet",
                onClick: () => model.patch(entry.id, { status: "draft" }) }),
            menu({ label: t("time.actionsOf", { title: main ?? t("time.noSelection") }),
                items: entryItems(model, day, entry) }),
        ],
    });
    node.classList.add("time-card");
    node.querySelector(".card-main").after(h("div", { class: "time-card-hours number" },
        format.hours(entrySeconds(fields))));
    return node;
}
