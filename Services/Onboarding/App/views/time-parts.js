/** Parts that several pages of the Time view show. */

import { actionsOf, clockOf, copyOf, kindOf, parseClock, startBefore, stateOf } from "../core/time.js";
import { banner, button, chip, field, input } from "../ui/components.js";
import { h, view } from "../ui/dom.js";

/** Returns the menu items of an entry. */
export function entryItems(model, day, entry) {
    const { app } = model;
    const { t } = app;
    const actions = actionsOf(entry.fields);
    const copyTo = (target) => async () => {
        const id = await model.create(copyOf(entry.fields, target, model.today));
        if (id) app.navigate(`time/${target}/${id}/edit`);
    };
    return [
        actions.canEdit && { label: t("app.edit"), icon: "edit", run: () => app.navigate(
            `time/${entry.fields.entryDate ?? day}/${entry.id}/edit`) },
        actions.canWithdraw && { label: t("time.withdraw"), icon: "undo", run: () => {
            model.withdraw(entry.id);
            app.toast(t("time.withdrawn"));
        } },
        { label: t("time.copyToToday"), icon: "copy", run: copyTo(model.today) },
        !model.timer && entry.fields.reportingTemplate && { label: t("time.timerWith"), icon: "play",
            run: () => model.startTimer(entry.fields) },
        entry.fields.reportingTemplate && { icon: "star", run: () => model.toggleFavourite(entry.fields),
            label: t(model.isFavourite(entry.fields) ? "time.unfavourite" : "time.favourite") },
        actions.canDelete && { label: t("app.delete"), icon: "trash", kind: "danger", run: () => model.remove(entry) },
    ];
}

/** Returns the hours of an entry and, of an interval, its times. */
export function spanText({ app }, fields) {
    if (fields.timeType !== "interval" || !fields.startTime || !fields.endTime) return undefined;
    const time = (text) => app.format.time(`2000-01-01T${clockOf(text)}:00`);
    return `${time(fields.startTime)} – ${time(fields.endTime)}`;
}

/** Returns the chip of an entry's state. */
export function stateChip(model, entry) {
    const state = stateOf(entry.fields);
    const waits = entry.isPending && model.isOffline;
    return chip({ label: model.app.t(`time.state.${state}`), kind: kindOf(state), icon: waits ? "offline"
        : { invalid: "warning", rejected: "warning", recorded: "lock", approved: "check" }[state] });
}

/** Returns the hint that entries of other days were refused, with a link to the newest one; nothing without any. */
export function attention(model, day) {
    const { t } = model.app;
    const refused = model.entries.filter(({ fields }) => fields.entryDate !== day
        && ["invalid", "rejected"].includes(stateOf(fields)));
    if (refused.length === 0) return undefined;
    const newest = refused.reduce((one, other) => other.fields.entryDate > one.fields.entryDate ? other : one);
    return h("div", { key: "attention" }, banner({ kind: "warn", text: t("time.attention", { n: refused.length }),
        action: button({ label: t("time.attentionShow"), kind: "quiet",
            href: `#/time/${newest.fields.entryDate}/${newest.id}` }) }));
}

/** Opens the correction of the running timer's start. */
export function changeTimerStart(model) {
    const { app } = model;
    const { t, format } = app;
    const { startedAt } = model.timer;
    let value = new Date(startedAt).toTimeString().slice(0, 5);
    let error;
    const content = h("div", { class: "form" });
    const form = view(content, () => field({ label: t("time.from"), id: "timer-start", error,
        control: input({ type: "time", value, onInput: (text) => { value = text; } }) }));
    app.dialog({ title: t("time.changeStart"), content, isForm: true, onClose: () => form.stop(), actions: [
        { label: t("app.cancel") },
        { label: t("app.save"), kind: "primary", run: () => {
            const minutes = parseClock(value);
            const start = minutes === undefined ? undefined : startBefore(app.now(), minutes);
            if (start === undefined) {
                error = t("time.startInvalid");
                form.flush();
                return false;
            }
            model.editTimer({ startedAt: start });
            app.toast(t("time.startChanged", { time: format.time(start) }));
            return true;
        } },
    ] });
}
