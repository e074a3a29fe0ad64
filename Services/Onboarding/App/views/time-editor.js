/** The editor of an entry: template, selections, time, text, and its submission. */

import {
    actionsOf, addDays, clockOf, daysBetween, durationText, entrySeconds, intervalFields, isDay, parseClock,
    parseDuration, selectionKey, stateOf, textLengthMax,
} from "../core/time.js";
import { banner, button, field, icon, input, page, segmented, select } from "../ui/components.js";
import { h } from "../ui/dom.js";
import { openPicker } from "./time-picker.js";

/** Lists of at most this many options are displayed in the form; longer ones in a dialog with a search. */
const inlineOptionsMax = 5;
const durations = [1800, 3600, 7200, 14_400, 27_000, 28_800];

/** The form that was left with changes; opened again, it has them. */
let unsaved;

/** The state of the form. It lives as long as the address of the entry. */
export class EntryEditor {
    #model;
    #entry;
    #update;
    #isAbsence;
    #fields;
    #duration;
    #start;
    #end;
    #until;
    #isWithProblems = false;
    #isChanged = false;
    #isRestored = false;

    constructor(model, { key, day, entry, isAbsence, update }) {
        this.key = key;
        this.#model = model;
        this.#entry = entry;
        this.#update = update;
        this.#isAbsence = isAbsence;
        const offered = model.picker.templates;
        const first = offered.find((id) => model.isAbsence(id) === isAbsence) ?? offered[0];
        const known = entry?.fields ?? { entryDate: day, timeType: "duration", reportingTemplate: first };
        this.#fields = { reporting: [], ...known, timeType: known.timeType ?? "duration" };
        this.#until = this.#fields.entryDate;
        const seconds = entrySeconds(this.#fields);
        this.#duration = seconds > 0 ? durationText(seconds) : isAbsence ? "8:00" : "";
        if (isAbsence && !entry) this.#fields.durationSeconds = 28_800;
        this.#start = clockOf(this.#fields.startTime);
        this.#end = clockOf(this.#fields.endTime);
        if (unsaved?.key === key) {
            ({ fields: this.#fields, duration: this.#duration, start: this.#start, end: this.#end,
                until: this.#until } = unsaved);
            this.#isChanged = this.#isRestored = true;
        }
        unsaved = undefined;
        this.#preventLoss = (event) => { if (this.#isChanged) event.preventDefault(); };
        addEventListener("beforeunload", this.#preventLoss);
    }

    #preventLoss;

    stop() {
        removeEventListener("beforeunload", this.#preventLoss);
        if (this.#isChanged) {
            unsaved = { key: this.key, fields: this.#fields, duration: this.#duration, start: this.#start,
                end: this.#end, until: this.#until };
        }
    }

    #discard(back) {
        this.#isChanged = false;
        this.#model.app.navigate(back);
    }

    /** The content as it is written. */
    get #content() {
        const { entryDate, reportingTemplate, timeType, text } = this.#fields;
        const reporting = this.#model.picker.form(this.#fields).selections;
        const content = { entryDate, reportingTemplate, reporting, timeType, text: text?.trim() || null };
        if (timeType === "interval") {
            const [start, end] = [parseClock(this.#start), parseClock(this.#end)];
            const interval = intervalFields(entryDate, start ?? 0, end ?? 0);
            content.startTime = start === undefined ? null : interval.startTime;
            content.endTime = end === undefined ? null : interval.endTime;
        } else {
            content.durationSeconds = parseDuration(this.#duration) ?? null;
        }
        return content;
    }

    #set(changes) {
        Object.assign(this.#fields, changes);
        this.#isChanged = true;
        this.#update();
    }

    #selectNode(context, node) {
        const { picker } = this.#model;
        this.#set({ reporting: picker.select(node, context, this.#fields) });
        return picker.form(this.#fields);
    }

    render() {
        const { app } = this.#model;
        const { t, format } = app;
        const entry = this.#entry && (this.#model.entry(this.#entry.id) ?? this.#entry);
        const form = this.#model.picker.form(this.#fields);
        const back = entry ? `time/${this.#fields.entryDate ?? entry.fields.entryDate}/${entry.id}`
            : `time/${this.#fields.entryDate}`;
        const title = entry ? "time.editEntry" : this.#isAbsence ? "time.newAbsence" : "time.newEntry";
        const problems = this.#model.problems({ ...this.#content, backendId: entry?.fields.backendId });
        const errorOf = (name) => this.#isWithProblems
            ? problems.find((problem) => problem.field === name)?.text : undefined;
        return page({ title: t(title), back: { href: `#/${back}`, label: t("app.cancel") } },
            this.#isRestored && h("div", { key: "restored" }, banner({ kind: "info", text: t("time.restored"),
                action: button({ label: t("time.discard"), kind: "quiet", onClick: () => this.#discard(back) }) })),
            entry && this.#hint(entry),
            h("form", { class: "form time-form", key: "form", novalidate: true, on: { submit: (event) => {
                event.preventDefault();
                this.#save(true);
            } } },
            this.#quick(),
            this.#template(),
            form.choices.filter(({ visible }) => visible).map((choice, index, choices) =>
                this.#choice(choice, choices, problems)),
            this.#time(errorOf),
            this.#days(errorOf),
            this.#text(errorOf),
            this.#isWithProblems && problems.length > 0 && h("div", { class: "time-note is-bad", role: "alert",
                key: "problems" }, h("strong", null, t("time.missing")),
            h("ul", { class: "time-reasons" }, problems.map(({ text }) => h("li", null, text)))),
            this.#buttons(entry, back, format)));
    }

    #hint(entry) {
        const { t } = this.#model.app;
        const state = stateOf(entry.fields);
        const { canEdit, changesRecord } = actionsOf(entry.fields);
        const reasons = this.#model.reasons(entry.id).map(({ message }) => message);
        if (!canEdit) return banner({ kind: "warn", text: t("time.explain.recorded") });
        if (state === "invalid" || state === "rejected") {
            return h("div", { class: "time-note is-bad", key: "hint" },
                h("strong", null, t(state === "invalid" ? "time.reasonInvalid" : "time.reasonRejected")),
                h("ul", { class: "time-reasons" }, reasons.map((text) => h("li", null, text))));
        }
        return changesRecord && h("div", { key: "hint" }, banner({ kind: "info", text: t("time.editHint") }));
    }

    /** Returns the favourites and recent selections. */
    #quick() {
        if (this.#isAbsence) return undefined;
        const { t } = this.#model.app;
        const quick = this.#model.quickSelections(6);
        if (quick.length === 0) return undefined;
        const current = selectionKey(this.#fields);
        return h("fieldset", { class: "field", key: "quick" }, h("legend", null, t("time.quick")),
            h("div", { class: "time-quick" }, quick.map((one) => h("button", { type: "button", key: one.key,
                class: "time-quick-item", "aria-pressed": one.key === current, on: { click: () => this.#set(
                    { reportingTemplate: one.reportingTemplate, reporting: one.reporting }) } },
            one.isFavourite && icon("star", { size: "small" }),
            h("span", { class: "grow" }, one.names.map(({ title }) => title).join(" · "))))));
    }

    #template() {
        const { app, picker } = this.#model;
        const { t } = app;
        const offered = picker.templates;
        const current = this.#fields.reportingTemplate;
        const isListed = !current || offered.includes(current) || !picker.template(current);
        const list = isListed ? offered : [current, ...offered];
        if (list.length < 2) return undefined;
        const options = list.map((id) => ({ value: id, label: picker.template(id).name }));
        const change = (id) => {
            const reportingTemplate = id || undefined;
            this.#set({ reportingTemplate,
                reporting: picker.form({ ...this.#fields, reportingTemplate }).selections });
        };
        return h("div", { key: "template" }, field({ label: t("time.template"), id: "time-template",
            control: select({ options: current ? options : [{ value: "", label: t("time.choose") }, ...options],
                value: current ?? "", onChange: change }) }));
    }

    /** Returns the control of a choice: its options if there are few, otherwise a button that opens the dialog. */
    #choice(choice, choices, problems) {
        const { app, picker } = this.#model;
        const { t } = app;
        const key = `choice-${choice.context}`;
        const options = choice.sections.flatMap((section) => section.options);
        const error = this.#isWithProblems && problems.find((problem) => problem.context === choice.context)?.text;
        const titles = choice.selected.map((node) => picker.title(node));
        const label = choice.required ? choice.name : t("time.optional", { name: choice.name });
        const rejected = choice.rejected.map((node) => picker.title(node)).filter(Boolean);
        const note = error || (rejected.length > 0 && t("time.unavailable", { names: rejected.join(", ") }))
            || (choice.changeable && options.length === 0 && t("time.choiceWaits"));
        const wrap = (control) => h("fieldset", { class: ["field", error && "has-error"], key },
            h("legend", null, label), control,
            note && h("p", { class: "field-note" }, error && icon("warning", { size: "small" }), note));
        if (!choice.changeable) return wrap(h("p", { class: "time-fixed" }, icon("lock", { size: "small" }),
            titles.join(", ") || "–"));
        if (options.length === 0) {
            return wrap(titles.length > 0 && h("p", { class: "time-fixed" }, titles.join(", ")));
        }
        if (options.length <= inlineOptionsMax && options.every(({ depth }) => depth === 0)) {
            return wrap(h("div", { class: "time-options" }, [...new Map(options.map((one) => [one.node, one])).values()]
                .map(({ node, title }) => {
                    const isSelected = choice.selected.includes(node);
                    return h("button", { type: "button", class: "time-option", key: node, "aria-pressed": isSelected,
                        on: { click: () => this.#selectNode(choice.context,
                            isSelected && !choice.required ? null : node) } },
                    isSelected && icon("check", { size: "small" }), h("span", null, title));
                })));
        }
        const open = () => openPicker(this.#model, { choice,
            select: (context, node) => this.#selectNode(context, node) });
        return wrap(h("button", { type: "button", class: ["time-choice", titles.length === 0 && "is-empty"],
            "aria-haspopup": "dialog", on: { click: open } },
        h("span", { class: "truncate" }, titles.join(", ") || t("time.chooseFrom", { n: options.length })),
        icon("right")));
    }

    #time(errorOf) {
        const { app } = this.#model;
        const { t, format } = app;
        const isInterval = this.#fields.timeType === "interval";
        const typed = this.#content;
        const seconds = entrySeconds(typed);
        const setDuration = (text) => {
            this.#duration = text;
            this.#set({});
        };
        const change = (timeType) => {
            if (timeType === "duration" && seconds > 0) this.#duration = durationText(seconds);
            if (timeType === "interval" && !this.#start && seconds > 0 && seconds < 57_600) {
                this.#start = "08:00";
                this.#end = durationText(28_800 + seconds).padStart(5, "0");
            }
            this.#set({ timeType });
        };
        const step = (direction) => () => setDuration(durationText(Math.min(86_400, Math.max(900,
            (Math.floor((parseDuration(this.#duration) ?? 0) / 900) + direction) * 900))));
        const isUnreadable = this.#duration.trim() !== "" && parseDuration(this.#duration) === undefined;
        const clock = (label, value, name, apply) => field({ label: t(label), error: errorOf(name), control: input({
            type: "time", id: `time-${name}`, value, onInput: (text) => { apply(text); this.#set({}); } }) });
        return h("div", { class: "stack", key: "time" },
            segmented({ label: t("time.kind"), name: "time-kind", value: this.#fields.timeType, onChange: change,
                options: [{ value: "duration", label: t("time.duration") },
                    { value: "interval", label: t("time.fromTo") }] }),
            isInterval ? h("div", { key: "interval", class: "stack" }, h("div", { class: "form-row" },
                clock("time.from", this.#start, "startTime", (text) => { this.#start = text; }),
                clock("time.to", this.#end, "endTime", (text) => { this.#end = text; })),
            seconds > 0 && h("p", { class: "muted" }, t(typed.endTime?.slice(0, 10) > typed.entryDate
                ? "time.spanNextDay" : "time.span", { hours: format.hours(seconds) })))
                : h("div", { key: "duration", class: "stack" }, h("div", { class: "time-duration" },
                    button({ label: t("time.less"), icon: "minus", isIconOnly: true, onClick: step(-1) }),
                    field({ label: t("time.hours"), hint: isUnreadable ? undefined : t("time.hoursHint"),
                        error: isUnreadable ? t("time.unreadable") : errorOf("durationSeconds"),
                        control: input({ id: "time-duration", value: this.#duration, inputmode: "text",
                            autocomplete: "off", placeholder: "0:00", onInput: setDuration }) }),
                    button({ label: t("time.more"), icon: "plus", isIconOnly: true, onClick: step(1) })),
                h("div", { class: "time-options", role: "group", "aria-label": t("time.hours") }, durations.map((one) =>
                    h("button", { type: "button", class: "time-option number", key: String(one),
                        "aria-pressed": parseDuration(this.#duration) === one,
                        on: { click: () => setDuration(durationText(one)) } }, format.hours(one))))));
    }

    #days(errorOf) {
        const { t } = this.#model.app;
        const change = (name) => (day) => {
            if (name === "until") this.#until = day;
            else if (this.#until < day || this.#until === this.#fields.entryDate) this.#until = day;
            this.#set(name === "until" ? {} : { entryDate: isDay(day) ? day : this.#fields.entryDate });
        };
        const isRange = this.#isAbsence && !this.#entry;
        const count = isRange ? this.#range().length : 1;
        return h("div", { class: "stack", key: "days" }, h("div", { class: "form-row" },
            field({ label: t(isRange ? "time.firstDay" : "time.day"), error: errorOf("entryDate"),
                control: input({ type: "date", id: "time-day", value: this.#fields.entryDate ?? "",
                    onChange: change("day") }) }),
            isRange && field({ label: t("time.lastDay"), control: input({ type: "date", id: "time-until",
                value: this.#until, min: this.#fields.entryDate, max: addDays(this.#fields.entryDate, 61),
                onChange: change("until") }) })),
        isRange && h("p", { class: "muted" }, t("time.rangeCount", { n: count })));
    }

    #range() {
        const { entryDate } = this.#fields;
        if (!isDay(this.#until) || this.#until <= entryDate) return [entryDate];
        return daysBetween(entryDate, this.#until, { isWorkdaysOnly: true });
    }

    #text(errorOf) {
        const { t } = this.#model.app;
        const text = this.#fields.text ?? "";
        return h("div", { key: "text" }, field({ label: t("time.text"), error: errorOf("text"),
            hint: t("time.textHint", { n: text.length, max: textLengthMax }),
            control: input({ id: "time-text", value: text, maxlength: 1000, autocomplete: "off",
                onInput: (value) => this.#set({ text: value }) }) }));
    }

    #buttons(entry, back) {
        const { t } = this.#model.app;
        const state = entry ? stateOf(entry.fields) : "draft";
        const isRecord = entry && actionsOf(entry.fields).changesRecord;
        const count = this.#range().length;
        if (entry && !actionsOf(entry.fields).canEdit) return undefined;
        return h("div", { class: "form-actions time-form-actions", key: "buttons" },
            h("a", { class: "button button-quiet time-cancel", href: `#/${back}` }, t("app.cancel")),
            isRecord
                ? button({ label: t(state === "rejected" ? "time.saveAgain" : "time.saveChange"), icon: "send",
                    kind: "primary", type: "submit" })
                : [button({ label: t("time.saveDraft"), onClick: () => this.#save(false) }),
                    button({ label: this.#isAbsence && count > 1 ? t("time.submitCount", { n: count })
                        : t("time.submit"), icon: "send", kind: "primary", type: "submit" })]);
    }

    async #save(isSubmitting) {
        const { app } = this.#model;
        const { t } = app;
        const content = this.#content;
        const backendId = this.#entry?.fields.backendId;
        const isUnreadable = this.#duration.trim() !== "" && parseDuration(this.#duration) === undefined;
        const hasProblems = this.#model.problems({ ...content, backendId }).length > 0;
        if ((isSubmitting && hasProblems) || (isUnreadable && content.timeType === "duration")) {
            this.#isWithProblems = true;
            this.#update();
            requestAnimationFrame(() => requestAnimationFrame(() => {
                const first = document.querySelector(".time-form .has-error");
                first?.scrollIntoView({ block: "center" });
                first?.querySelector("input, button, select")?.focus({ preventScroll: true });
            }));
            return;
        }
        this.#isChanged = false;
        const { id } = this.#entry ?? {};
        if (id) {
            const now = this.#model.entry(id)?.fields ?? this.#entry.fields;
            const changes = changed(now, content);
            const isRecord = actionsOf(now).changesRecord;
            if (!isRecord && isSubmitting) changes.submitRequested = true;
            if (!isRecord && !isSubmitting && now.status === "invalid") changes.submitRequested = false;
            if (now.status === "suggestion" && !isSubmitting) changes.status = "draft";
            if (Object.keys(changes).length > 0) this.#model.patch(id, changes);
            app.navigate(`time/${content.entryDate}/${id}`);
            if (isRecord && Object.keys(changes).length > 0) app.toast(t("time.changeRequested"));
            if (!isRecord) app.toast(isSubmitting ? this.#model.submittedText(1) : t("time.savedCount", { n: 1 }));
            return;
        }
        const days = this.#range();
        for (const day of days) {
            const moved = content.timeType === "interval" ? intervalFields(day, parseClock(this.#start),
                parseClock(this.#end)) : {};
            this.#model.create({ ...withoutNulls(content), ...(content.endTime ? moved : {}), entryDate: day,
                createdOn: this.#model.today, status: "draft", ...(isSubmitting ? { submitRequested: true } : {}) });
        }
        app.navigate(`time/${days[0]}`);
        app.toast(isSubmitting ? this.#model.submittedText(days.length) : t("time.savedCount", { n: days.length }));
    }
}

/** Returns the fields of `content` that differ from those of the entry; null and absent are equal. */
function changed(fields, content) {
    const text = (value) => JSON.stringify(Array.isArray(value) && value.length === 0 ? null : value ?? null);
    return Object.fromEntries(Object.entries(content).filter(([name, value]) => text(fields[name]) !== text(value)));
}

function withoutNulls(content) {
    return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== null && value !== undefined));
}
