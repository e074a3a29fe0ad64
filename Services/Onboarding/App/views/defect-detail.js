/** The page of a defect: its fields, its actions, and the results of the person's commands. */

import { conflictLines, fieldLabel, fieldValue, isMultiline, isTechnical, rankKind, resolution, stateKind,
    valueLabel } from "../core/defects.js";
import { banner, button, chip, empty, icon, menu, page, segmented, skeleton } from "../ui/components.js";
import { h } from "../ui/dom.js";

/** Returns the value of a field in the newest detail, otherwise in the mirrored defect. */
export function knownState(model, record) {
    const field = model.result({ operation: "read", record }).detail?.fields?.find(({ name, type }) =>
        type === "STATE" || name === "State");
    return field ?? { name: "State", value: model.defect(record)?.fields.state };
}

/**
 * Returns the page of a record.
 *
 * @param {DefectModel} model
 * @param {object} state `selected`: the record; `showsEmpty`; `choices` of a conflict.
 */
export function detailPage(model, state, { back, update }) {
    const { app } = model;
    const { t, format } = app;
    const record = state.selected;
    const request = { operation: "read", record };
    model.requestIfOld(request);
    const { detail, messages, isPending, failure } = model.result(request);
    const fields = model.defect(record)?.fields;
    const value = (name) => detail?.fields?.find((field) => field.name === name)?.value;
    // The mirror follows changes of others; a detail is newer only if a command of this person read it since.
    const shown = { state: value("State") ?? fields?.state, severity: value("Severity") ?? fields?.severity,
        priority: value("Priority") ?? fields?.priority, headline: value("Headline") ?? fields?.headline };
    const changes = model.changes(record);
    const newestDone = changes.find(({ id, state: status }) => status === "done" && model.submitted.has(id));
    const visible = changes.filter((command) => command.state !== "done" || command === newestDone);
    const isDeleted = changes.some(({ fields: command, state: status }) => command.operation === "delete"
        && status === "done");
    const actions = detail?.actions ?? [];
    const transitions = actions.filter(({ operation }) => operation === "changeState");
    const removal = actions.find(({ operation }) => operation === "delete");
    const path = `#/defects/${encodeURIComponent(record)}`;
    return page({ title: shown.headline || record, subtitle: record, back: { href: `#/${back}`, label: t("app.back") },
        actions: menu({ label: t("app.more"), items: [
            { label: t("defects.keepOffline"), icon: "download", disabled: !model.hasLogin,
                run: () => keepOffline(model, record, transitions) },
            { label: t("defects.delete"), icon: "trash", kind: "danger", disabled: !model.hasLogin || isDeleted,
                run: () => deleteDefect(model, record, removal) },
        ] }) },
    h("div", { class: "row wrap" },
        shown.state && chip({ label: shown.state, kind: stateKind(shown.state) }),
        shown.severity && chip({ label: valueLabel(shown.severity), kind: rankKind(shown.severity) }),
        shown.priority && chip({ label: valueLabel(shown.priority) }),
        fields?.isAssignedToMe && chip({ label: t("defects.mine"), kind: "info", icon: "user" }),
        fields?.isReportedByMe && chip({ label: t("defects.reportedByMe"), icon: "flag" })),
    visible.map((command) => command.state === "conflict" ? conflictPanel(model, command, state, update)
        : commandBanner(model, command, state)),
    !isDeleted && h("div", { class: "row wrap defects-actions" },
        button({ label: t("defects.modify"), icon: "edit", kind: "primary", href: `${path}/modify` }),
        transitions.length > 0 && h("span", { class: "muted small", key: "transitions" }, t("defects.changeState")),
        transitions.map(({ name, state: target }) => button({ key: name, label: fieldLabel(name),
            title: target ? t("defects.leadsTo", { state: target }) : undefined,
            href: `${path}/change/${encodeURIComponent(name)}` }))),
    fields && h("dl", { class: "facts" }, [["owner", fields.owner], ["submitter", fields.submitter],
        ["submitDate", fields.submitDate], ["severity", fields.severity],
        ["priority", fields.priority]]
        .filter(([, text]) => text).flatMap(([name, text]) =>
            [h("dt", null, t(`defects.field.${name}`)), h("dd", null, fieldValue(text, format))])),
    h("section", { class: "section" },
        h("div", { class: "section-head" }, h("h2", { class: "grow" }, t("defects.allFields")),
            h("span", { class: "muted small", role: "status" }, isPending
                ? t(model.isLive ? "defects.reading" : "defects.readLater")
                : detail?.readAt && t("defects.readAt", { time: format.relative(detail.readAt) })),
            button({ label: t("defects.refresh"), icon: "refresh", kind: "quiet", isIconOnly: true,
                disabled: isPending || !model.hasLogin, onClick: () => model.request(request) })),
        failure && banner({ kind: "bad", text: failure.fields.messages?.join(" ") || t("defects.failed") }),
        detail ? allFields(detail, messages, state, app, update)
            : isPending && model.isLive ? skeleton(3)
                : !failure && empty({ icon: "offline", title: t("defects.notRead"), text: t(model.hasLogin
                    ? "defects.notReadText" : "defects.needsLogin") })),
    changes.length > 0 && commandLog(model, changes));
}

function allFields(detail, messages, state, { t, format }, update) {
    const fields = detail.fields ?? [];
    const filled = fields.filter(({ name, value }) => !isTechnical(name)
        && (value === undefined || value === null || value.trim() !== ""));
    const shown = state.showsEmpty ? fields : filled;
    return [
        messages.map((text) => h("p", { class: "muted small" }, text)),
        h("dl", { class: "facts defects-fields" }, shown.map((field) => {
            const text = fieldValue(field.value, format) ?? t("defects.unreadable");
            return h("div", { class: ["defects-field", isMultiline(field) && text && "is-long"], key: field.name },
                h("dt", null, fieldLabel(field.name)),
                h("dd", { class: "preserve" }, text || "–",
                    field.isTruncated && chip({ label: t("defects.truncated") })));
        })),
        filled.length < fields.length && button({ kind: "quiet",
            label: state.showsEmpty ? t("defects.hideEmpty")
                : t("defects.showEmpty", { n: fields.length - filled.length }),
            onClick: () => { state.showsEmpty = !state.showsEmpty; update(); } }),
    ];
}

/** Returns a message about a command: waiting, done, refused or of unknown outcome. */
export function commandBanner(model, command, state) {
    const { t } = model.app;
    const { operation, actionName, record, messages } = command.fields;
    const kinds = { queued: "info", waiting: "info", done: "ok", refused: "bad", unknown: "warn", conflict: "bad" };
    const name = operation === "changeState" ? fieldLabel(actionName) : t(`defects.operation.${operation}`);
    const isFinal = !["queued", "waiting"].includes(command.state);
    const values = Object.entries(command.fields.fields ?? {}).slice(0, 4)
        .map(([field, value]) => `${fieldLabel(field)}: ${value || "–"}`).join(" · ");
    const text = isFinal && command.state !== "done" ? (messages ?? []).join(" ") || t("defects.failed") : values;
    return h("div", { key: command.id, class: "defects-command" }, banner({ kind: kinds[command.state], text,
        title: command.state === "done" ? t(`defects.done.${operation}`, { name })
            : `${name}: ${t(`defects.status.${command.state}`)}`,
        action: h("div", { class: "row" },
            operation === "create" && record && state.selected !== record && button({
                kind: "quiet", label: t("defects.openRecord", { record }),
                href: `#/defects/${encodeURIComponent(record)}` }),
            ["refused", "unknown"].includes(command.state) && operation !== "delete" && button({ kind: "quiet",
                label: t("defects.editAgain"), onClick: () => editAgain(model, command) }),
            button({ label: isFinal ? t("defects.dismiss") : t("defects.cancel"), icon: "close", kind: "quiet",
                isIconOnly: true, onClick: () => model.remove(command.id) })) }));
}

/** Opens the form of a refused command with its values. */
function editAgain(model, { id, fields: { operation, record, actionName, fields } }) {
    model.draft = { ...fields };
    model.remove(id);
    const name = encodeURIComponent(record ?? "");
    model.app.navigate(operation === "create" ? "defects/new" : operation === "modify" ? `defects/${name}/modify`
        : `defects/${name}/change/${encodeURIComponent(actionName)}`);
}

/** Returns the values of a conflict side by side, with the choice of the value for each field. */
function conflictPanel(model, command, state, update) {
    const { t } = model.app;
    const lines = conflictLines(command);
    const choices = state.choices[command.id] ??= {};
    const text = (value) => value === undefined || value === null ? t("defects.notKnown") : value || "–";
    const hasRecord = Boolean(command.fields.detail);
    const next = hasRecord ? resolution(command, choices) : null;
    const cell = (label, content, name) => h("div", { class: ["defects-value", name] },
        h("span", { class: "muted small" }, label), h("span", { class: "preserve" }, content));
    return h("section", { class: "defects-conflict", key: command.id, role: "alert" },
        h("div", { class: "row" }, icon("warning"), h("h2", null, t("defects.conflict"))),
        h("p", null, t("defects.conflictText")),
        lines.map(({ name, seen, now, mine, isChanged }) => h("div", { class: "defects-difference", key: name },
            h("h3", null, fieldLabel(name), isChanged && chip({ label: t("defects.changed"), kind: "warn" })),
            h("div", { class: "defects-values" }, cell(t("defects.seen"), text(seen)),
                cell(t("defects.now"), text(now), isChanged && "is-changed"),
                mine !== undefined && cell(t("defects.yours"), text(mine), "is-mine")),
            mine !== undefined && isChanged && segmented({ label: fieldLabel(name),
                name: `conflict-${command.id}-${name}`, value: choices[name] ?? "mine",
                onChange: (value) => { choices[name] = value; update(); },
                options: ["mine", "theirs"].map((value) => ({ value, label: t(`defects.keep.${value}`) })) }))),
        !hasRecord && (command.fields.messages ?? []).map((message) => h("p", { class: "small" }, message)),
        h("div", { class: "form-actions" },
            button({ label: t("defects.discard"), onClick: () => {
                model.remove(command.id);
                model.request({ operation: "read", record: command.fields.record });
            } }),
            hasRecord && button({ label: t("defects.sendAgain"), kind: "primary", disabled: !next, onClick: () => {
                model.submit(next);
                model.submit({ operation: "read", record: command.fields.record });
                model.remove(command.id);
            } })));
}

function commandLog(model, changes) {
    const { t } = model.app;
    const kinds = { done: "ok", refused: "bad", conflict: "bad", unknown: "warn" };
    return h("details", { class: "defects-log", key: "log" },
        h("summary", null, t("defects.log", { n: changes.length })),
        h("ul", null, changes.map(({ id, state, fields }) => h("li", { class: "row", key: id },
            h("span", { class: "grow" }, fields.operation === "changeState" ? fieldLabel(fields.actionName)
                : t(`defects.operation.${fields.operation}`), h("span", { class: "muted small" }, " ",
                Object.entries(fields.fields ?? {}).map(([name, value]) => `${fieldLabel(name)}: ${value || "–"}`)
                    .join(" · "))),
            chip({ label: t(`defects.status.${state}`), kind: kinds[state] ?? "muted" })))));
}

/** Reads the forms of the actions that the state allows, so that they can be edited offline. */
function keepOffline(model, record, transitions) {
    model.request({ operation: "read", record });
    model.request({ operation: "form", record });
    for (const { name } of transitions) model.request({ operation: "form", record, actionName: name });
    model.app.toast(model.app.t("defects.keptOffline", { n: transitions.length + 1 }));
}

async function deleteDefect(model, record, action) {
    const { app } = model;
    if (!await app.confirm({ title: app.t("defects.delete"), text: app.t("defects.deleteText", { record }),
        confirm: app.t("defects.delete"), isDangerous: true })) return;
    const { name, value } = knownState(model, record);
    model.submit({ operation: "delete", record, ...(action ? { actionName: action.name } : {}),
        ...(value ? { base: { [name]: value } } : {}) });
}
