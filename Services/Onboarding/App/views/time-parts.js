/** Parts that several pages of the Time view show. */

import { actionsOf, clockOf, copyOf, kindOf, stateOf } from "../core/time.js";
import { chip } from "../ui/components.js";

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
