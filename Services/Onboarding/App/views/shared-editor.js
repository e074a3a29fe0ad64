/** Detail and dialogs of the Shared view: create, edit, share, stop sharing, delete with undo. */

import {
    appointmentFields, appointmentProblems, findPeople, localDay, localTime, nextHour, shareChanges,
} from "../core/shared.js";
import { newID, pairedID } from "../fieldpost.js";
import { avatar, button, chip, empty, field, icon, input, menu, page, toggle } from "../ui/components.js";
import { h, view } from "../ui/dom.js";

const minute = 60_000;

/** Returns the page of an item. */
export function detailPage(model, id, back) {
    const { app, list, links, name } = model;
    const { t, format } = app;
    const backLink = { href: `#/${back}`, label: t("app.back") };
    const item = list.find((candidate) => candidate.object.id === id) ?? list.find((candidate) => candidate.id === id);
    if (!item) {
        const past = model.history.find((entry) => entry.id === id);
        const share = model.shares.find((entry) => entry.id === id);
        const other = past?.person ?? (share && (share.fields.owner === model.me ? share.fields.recipient
            : share.fields.owner));
        return page({ title: past?.title || t("shared.title"), back: backLink, level: 1 },
            past ? empty({ icon: "history", title: t(`shared.history.${past.type}`), text: past.type === "item"
                ? t("shared.deletedAt", { date: format.dateTime(past.at) })
                : t(`shared.history.${past.type}.${past.reason}`, { name: name(past.person),
                    date: format.dateTime(past.at) }) })
                : empty({ icon: "shared", title: other ? t("shared.shareWith", { name: name(other) })
                    : t("shared.missing"), text: other ? undefined : t("shared.missingText") }));
    }
    const { fields, isPending } = item.object;
    const isOwn = item.source === "own";
    const itemLinks = isOwn ? links.get(item.id) ?? [] : [];
    const share = model.incoming.find((entry) => entry.share.id === item.object.realm.slice("/shares/".length));
    return page({ title: item.title || t("shared.untitled"), back: backLink,
        actions: [
            isOwn && button({ label: t("app.edit"), icon: "edit", isIconOnly: true, kind: "quiet",
                onClick: () => editItem(model, item.kind, item) }),
            menu({ label: t("app.more"), items: [item.source === "ended"
                ? { label: t("shared.forget"), icon: "trash", kind: "danger", run: () => app.report(
                    app.fieldpost.delete(model.realm, "EndedShare", item.object.id)) }
                : { label: isOwn ? t("app.delete") : t("shared.removeCopy", { title: item.title }), icon: "trash",
                    kind: "danger", run: () => deleteItem(model, item, back) }] }),
        ] },
    h("div", { class: "row wrap" },
        chip({ label: t(item.kind === "Note" ? fields.isTask ? "shared.task" : "shared.note" : "shared.appointment"),
            icon: item.kind === "Note" ? "note" : "calendar" }),
        item.source === "ended" && chip({ label: t(`shared.ended.${fields.reason}`), kind: "bad" }),
        isPending && chip({ label: t("app.pending"), icon: "sync" })),
    item.start && h("dl", { class: "facts" }, h("dt", null, t("shared.when")), h("dd", null,
        format.longDate(item.start), h("br"), h("span", { class: "number" }, format.time(item.start),
            item.end > item.start && `–${format.time(item.end)}`)),
    item.end > item.start && [h("dt", null, t("shared.duration")),
        h("dd", { class: "number" }, format.hours((item.end - item.start) / 1_000), " ", t("app.hourUnit"))]),
    fields.isTask && toggle({ label: t("shared.done"), checked: fields.isDone, disabled: !isOwn,
        onChange: (isDone) => setDone(model, item, isDone) }),
    fields.body && h("p", { class: "preserve shared-body" }, fields.body),
    isOwn && h("section", { class: "section" },
        h("div", { class: "row" }, h("h2", { class: "grow" }, t("shared.sharedWith")),
            button({ label: t("shared.share"), icon: "shared", kind: "primary",
                onClick: () => shareItem(model, item) })),
        itemLinks.length === 0 ? h("p", { class: "muted" }, t("shared.onlyYou"))
            : h("div", { class: "group" }, itemLinks.map((link) => h("div", { class: "row", key: link.id },
                avatar({ app, name: name(link.recipient), image: model.person.get(link.recipient)?.avatar }),
                h("div", { class: "grow" }, h("p", null, name(link.recipient)),
                    link.since && h("p", { class: "muted small" },
                        t("shared.since", { date: format.date(link.since) })),
                    link.problem && h("p", { class: "small shared-problem" }, icon("warning", { size: "small" }),
                        link.problem)),
                link.isPending && chip({ label: t("app.pending"), icon: "sync" }),
                button({ label: t("shared.stop"), kind: "quiet", onClick: () => stopSharing(model, item, link) }))))),
    !isOwn && h("section", { class: "section" }, h("h2", null, t("shared.sharedBy")),
        h("div", { class: "row" }, avatar({ app, name: name(item.owner), image: model.person.get(item.owner)?.avatar }),
            h("div", null, h("p", null, name(item.owner)),
                item.source === "ended" ? h("p", { class: "muted small" }, t("shared.endedAt", {
                    date: format.dateTime(fields.endedAt) }))
                    : share?.since && h("p", { class: "muted small" }, t("shared.since", {
                        date: format.date(share.since) })))),
        h("p", { class: "muted small" }, t(item.source === "ended" ? "shared.endedText" : "shared.readOnly"))));
}

/** Changes whether a task note is done. */
export function setDone({ app, realm }, item, isDone) {
    return app.report(app.fieldpost.patch(realm, "Note", item.id, { isDone }));
}

/** Deletes an own item, or removes a copy, and offers to undo the deletion of an own item. */
export async function deleteItem({ app, realm }, item, back) {
    const { t, fieldpost } = app;
    const isOwn = item.source === "own";
    if (!isOwn && !await app.confirm({ title: t("shared.removeCopyTitle"), text: t("shared.removeCopyText"),
        confirm: t("shared.remove"), isDangerous: true })) return;
    const content = { ...item.object.fields };
    const done = app.report(fieldpost.delete(item.object.realm, item.kind, item.id));
    if (back && /^#\/shared\/[0-9a-f-]{36}$/i.test(location.hash)) app.navigate(back);
    app.toast(t(isOwn ? "shared.deletedItem" : "shared.removedCopy", { title: item.title }), isOwn ? { action: {
        label: t("app.undo"),
        run: () => app.report(fieldpost.put(realm, item.kind, item.id, content, { restore: true })),
    } } : undefined);
    await done;
}

/** Stops sharing an item with one recipient, and offers to undo it. */
export function stopSharing({ app, realm, name }, item, link) {
    const { t, fieldpost } = app;
    app.report(fieldpost.delete(realm, "SharedItem", link.id));
    app.toast(t("shared.stopped", { name: name(link.recipient) }), { action: { label: t("app.undo"),
        run: () => app.report(putLink(app, realm, item, link.recipient, link.since, true)) } });
}

/** Ends all sharing with a person, in one direction. */
export async function endShare({ app, realm, name }, { id, share, items, direction }) {
    const { t, fieldpost } = app;
    const isOut = direction === "out";
    if (!await app.confirm({ title: t(isOut ? "shared.endOut" : "shared.endIn"), isDangerous: true,
        text: t(isOut ? "shared.endOutText" : "shared.endInText", { name: name(id), n: items.length }),
        confirm: t("shared.end") })) return;
    if (share) {
        await app.report(fieldpost.delete(`/shares/${share.id}`, "Share", share.id));
    } else {
        for (const { link } of items) await app.report(fieldpost.delete(realm, "SharedItem", link.id));
    }
    app.toast(t("shared.endedWith", { name: name(id) }));
}

function putLink(app, realm, item, recipient, since, restore) {
    return app.fieldpost.put(realm, "SharedItem", pairedID(item.id, recipient), { kind: item.kind, item: item.id,
        recipient, since: since ?? app.now().toISOString() }, restore ? { restore: true } : {});
}

/** Opens the choice of recipients of an item. */
export function shareItem(model, item) {
    const { app, realm, people, links } = model;
    const { t } = app;
    const current = links.get(item.id) ?? [];
    const chosen = new Set(current.map(({ recipient }) => recipient));
    const isCurrent = new Set(chosen);
    let query = "";
    const content = h("div", { class: "stack" });
    const choice = view(content, () => {
        const found = findPeople(people, query).sort((a, b) => isCurrent.has(b.id) - isCurrent.has(a.id));
        return [
            h("div", { class: "searchbox" }, icon("search"), input({ type: "search", value: query,
                "aria-label": t("shared.findPeople"), placeholder: t("shared.findPeople"),
                onInput: (value) => { query = value; choice.update(); } })),
            h("p", { class: "muted small", role: "status" }, t("shared.chosen", { n: chosen.size })),
            found.length === 0 ? h("p", { class: "muted" }, t("shared.noMatch"))
                : h("div", { class: "group shared-choice" }, found.slice(0, 100).map((person) =>
                    h("label", { class: "row", key: person.id },
                        avatar({ app, name: person.name, image: person.avatar }),
                        h("span", { class: "grow" }, h("span", { class: "shared-name" }, person.name),
                            person.email && h("span", { class: "muted small" }, person.email)),
                        h("input", { type: "checkbox", class: "shared-check", checked: chosen.has(person.id),
                            on: { change: (event) => {
                                if (event.target.checked) chosen.add(person.id); else chosen.delete(person.id);
                                choice.update();
                            } } })))),
            found.length > 100 && h("p", { class: "muted small" }, t("shared.more", { n: found.length - 100 })),
        ];
    });
    app.dialog({ title: t("shared.shareTitle", { title: item.title }), content, onClose: () => choice.stop(), actions: [
        { label: t("app.cancel"), run: () => true },
        { label: t(current.length > 0 ? "app.save" : "shared.share"), kind: "primary", run: () => {
            const { added, removed } = shareChanges(current, [...chosen]);
            for (const recipient of added) app.report(putLink(app, realm, item, recipient, undefined, true));
            for (const link of removed) app.report(app.fieldpost.delete(realm, "SharedItem", link.id));
            if (added.length > 0) app.toast(t("shared.sharedToast", { n: added.length }));
            else if (removed.length > 0) app.toast(t("shared.stoppedToast", { n: removed.length }));
        } },
    ] });
}

/** Opens the editor of a new or an existing own item. */
export function editItem(model, kind, item) {
    const { app, realm } = model;
    const { t, fieldpost } = app;
    const fields = item?.object.fields ?? {};
    const start = item?.start ?? nextHour(app.now());
    const end = item?.end ?? new Date(start.getTime() + 60 * minute);
    const values = kind === "Appointment"
        ? { why: fields.why ?? "", day: localDay(start), from: localTime(start), to: localTime(end) }
        : { title: fields.title ?? "", body: fields.body ?? "", isTask: Boolean(fields.isTask) };
    const before = { ...values };
    const isMoved = () => ["day", "from", "to"].some((name) => values[name] !== before[name]);
    let problems = [];
    const content = h("div", { class: "form" });
    const form = view(content, () => {
        const text = (name, label, options = {}) => field({ label: t(label), id: `shared-${name}`,
            control: input({ value: values[name], onInput: (value) => { values[name] = value; }, ...options }),
            error: problems.includes(name) ? t(`shared.invalid.${name}`) : undefined });
        return kind === "Appointment" ? [
            text("why", "shared.why", { maxlength: 500 }),
            text("day", "shared.date", { type: "date" }),
            h("div", { class: "form-row" }, text("from", "shared.from", { type: "time" }),
                text("to", "shared.to", { type: "time" })),
        ] : [
            text("title", "shared.noteTitle", { maxlength: 500 }),
            text("body", "shared.noteBody", { rows: 6 }),
            toggle({ label: t("shared.isTask"), hint: t("shared.isTaskHint"), checked: values.isTask,
                onChange: (value) => { values.isTask = value; } }),
        ];
    });
    const save = () => {
        problems = kind === "Appointment" ? appointmentProblems(values) : values.title.trim() ? [] : ["title"];
        if (problems.length > 0) {
            form.flush();
            content.querySelector("[aria-invalid]")?.focus();
            return false;
        }
        const result = kind === "Appointment" ? appointmentFields(values)
            : { title: values.title.trim(), body: values.body.trim() || null, isTask: values.isTask };
        if (item) {
            const differences = Object.fromEntries(Object.entries(result).filter(([name, value]) =>
                (fields[name] ?? null) !== value && !(name === "isTask" && Boolean(fields[name]) === value)
                && !(["when", "durationMinutes"].includes(name) && !isMoved())));
            if (Object.keys(differences).length > 0) {
                app.report(fieldpost.patch(realm, kind, item.id, differences));
            }
        } else {
            const id = newID();
            app.report(fieldpost.put(realm, kind, id, result));
            app.navigate(`shared/${id}`);
        }
        return true;
    };
    const dialog = app.dialog({ content, isForm: true, onClose: () => form.stop(),
        title: t(item ? `shared.edit${kind}` : `shared.new${kind}`), actions: [
            { label: t("app.cancel"), run: () => true }, { label: t("app.save"), kind: "primary", run: save }] });
    content.querySelector("input")?.focus();
    content.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && event.target.nodeName === "INPUT" && save()) dialog.close();
    });
}
