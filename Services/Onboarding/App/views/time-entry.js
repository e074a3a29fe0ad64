/** The page of an entry: its content, its state in words, the reasons, the actions and the status log. */

import { actionsOf, dateOf, entrySeconds, kindOf, stateOf } from "../core/time.js";
import { button, chip, menu, page } from "../ui/components.js";
import { h } from "../ui/dom.js";
import { entryItems, spanText, stateChip } from "./time-parts.js";

/** Returns the page of an entry. */
export function entryPage(model, entry, day) {
    const { app } = model;
    const { t, format } = app;
    const { fields } = entry;
    const state = stateOf(fields);
    const actions = actionsOf(fields);
    const [main] = model.namesOf(fields);
    const isFavourite = model.isFavourite(fields);
    const back = `#/time/${day}`;
    const remove = async () => { if (await model.remove(entry)) app.navigate(`time/${day}`); };
    const items = entryItems(model, day, entry).filter((item) => item && item.icon !== "star" && item.icon !== "edit"
        && item.icon !== "undo").map((item) => item.icon === "trash" ? { ...item, run: remove } : item);
    return page({
        title: main ?? t("time.noSelection"), subtitle: format.longDate(dateOf(fields.entryDate ?? day)),
        back: { href: back, label: t("time.toDay") },
        actions: [
            fields.reportingTemplate && button({ icon: "star", kind: "quiet", isIconOnly: true, isPressed: isFavourite,
                label: t("time.isFavourite"), onClick: () => model.toggleFavourite(fields) }),
            menu({ label: t("app.more"), items }),
        ],
    },
    h("div", { class: "time-state", key: "state" },
        h("div", { class: "time-state-head" }, stateChip(model, entry),
            entry.isPending && chip({ label: t("app.pending"), icon: "upload" }),
            h("span", { class: "time-state-hours number" }, format.hours(entrySeconds(fields)), " ",
                t("app.hourUnit"))),
        h("p", { class: "muted" }, t(`time.explain.${entry.isPending && model.isOffline ? "offline" : state}`))),
    notes(model, entry, state),
    h("dl", { class: "facts", key: "facts" }, facts(model, entry)),
    h("div", { class: "time-actions", key: "buttons" },
        actions.canSubmit && state !== "withdrawing" && button({ label: t("time.submit"), icon: "send",
            kind: state === "invalid" ? undefined : "primary", disabled: model.problems(fields).length > 0,
            onClick: () => model.submit(entry.id) }),
        state === "withdrawing" && button({ label: t("time.keepSubmitted"), icon: "send",
            onClick: () => model.submit(entry.id) }),
        actions.canEdit && button({ label: t("app.edit"), icon: "edit",
            kind: ["invalid", "rejected"].includes(state) ? "primary" : undefined,
            href: `#/time/${fields.entryDate ?? day}/${entry.id}/edit` }),
        actions.canWithdraw && button({ label: t("time.withdraw"), icon: "undo", onClick: () => {
            model.withdraw(entry.id);
            app.toast(t("time.withdrawn"));
        } }),
        actions.canDelete && button({ label: t("app.delete"), icon: "trash", kind: "danger", onClick: remove })),
    statusLog(model, entry));
}

/** Returns the reasons of a refusal or rejection, and the problems of an entry that is not submitted. */
function notes(model, entry, state) {
    const { t } = model.app;
    const reasons = model.reasons(entry.id);
    const list = (texts) => h("ul", { class: "time-reasons" }, texts.map((text) => h("li", null, text)));
    if ((state === "draft" || state === "suggestion") && model.problems(entry.fields).length > 0) {
        return h("div", { class: "time-note is-warn", key: "note" }, h("strong", null, t("time.missing")),
            list(model.problems(entry.fields).map(({ text }) => text)));
    }
    if (reasons.length === 0) return undefined;
    const isBad = state === "invalid" || state === "rejected";
    const title = { invalid: "time.reasonInvalid", rejected: "time.reasonRejected" }[state] ?? "time.reasonNote";
    return h("div", { class: ["time-note", isBad ? "is-bad" : "is-info"], key: "note", role: isBad ? "alert" : null },
        h("strong", null, t(title)), list(reasons.map(({ message }) => message)));
}

function facts(model, { fields }) {
    const { t } = model.app;
    const span = spanText(model, fields);
    const template = model.picker.template(fields.reportingTemplate);
    return [
        template && [t("time.template"), template.name],
        ...model.picker.names(fields).map(({ name, title }) => [name, title]),
        span && [t("time.fromTo"), span],
        fields.text && [t("time.text"), fields.text],
        fields.backendId && [t("time.record"), fields.backendId],
    ].filter(Boolean).flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]);
}

function statusLog(model, entry) {
    const { t, format } = model.app;
    const log = model.log(entry.id);
    return h("section", { class: "section", key: "log" },
        h("div", { class: "section-head" }, h("h2", null, t("time.log"))),
        log.length === 0 ? h("p", { class: "muted" }, t("time.logEmpty"))
            : h("ol", { class: "time-log" }, log.map((line) => h("li",
                { key: line.id, class: `is-${kindOf(line.status)}` },
                h("span", { class: "time-log-mark", "aria-hidden": true }),
                h("div", { class: "time-log-text" },
                    h("span", { class: "time-log-head" }, h("strong", null, t(`time.state.${line.status}`)),
                        h("time", { class: "muted small", datetime: line.timestamp }, format.dateTime(line.timestamp))),
                    line.message && h("span", null, line.message))))));
}
