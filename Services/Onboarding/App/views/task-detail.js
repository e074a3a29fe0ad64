/** The detail of a task: values, location, completion, and the notes and photos of those who work on it. */

import { completion, directionsLink, isOverdue, noteRealm } from "../core/tasks.js";
import { newID } from "../fieldpost.js";
import { avatar, button, chip, icon, menu, page, picture, select } from "../ui/components.js";
import { h } from "../ui/dom.js";
import { chosenPhoto } from "./tasks-model.js";

const textMax = 4_000;
const drafts = new Map();

/** Completes or reopens a task: managers write the master, others the copy. */
export function setCompleted(model, task, isCompleted, { canUndo } = {}) {
    const { app } = model;
    const before = { isCompleted: task.isCompleted, completionDate: task.object.fields.completionDate ?? null,
        completedBy: task.completedBy };
    const write = (fields) => app.report(app.fieldpost.patch(task.realm, "FieldTask", task.id, fields));
    write(completion(isCompleted, { person: app.me.person, now: app.now() }));
    if (!canUndo) return;
    app.toast(app.t(isCompleted ? "tasks.wasCompleted" : "tasks.wasReopened", { title: task.title }),
        { action: { label: app.t("app.undo"), run: () => {
            const isOwn = app.isManager || !before.completedBy || before.completedBy === app.me.person;
            write(isOwn ? before : completion(before.isCompleted, { person: app.me.person, now: app.now() }));
        } } });
}

export class TaskDetail {
    constructor(model, { id, update }) {
        Object.assign(this, { model, app: model.app, id, update });
        if (!drafts.has(id)) drafts.set(id, { text: "", photo: undefined, url: undefined });
        this.draft = drafts.get(id);
        this.edited = undefined;
        this.isBusy = false;
    }

    stop() {
        if (!this.draft.text && !this.draft.photo) drafts.delete(this.id);
    }

    render(task) {
        const { app, model } = this;
        const late = isOverdue(task, model.now);
        return page({ title: task.title || app.t("tasks.untitled"), back: { href: "#/tasks", label: app.t("app.back") },
            actions: app.isManager && [
                button({ label: app.t("app.edit"), icon: "edit", isIconOnly: true, kind: "quiet",
                    href: `#/tasks/${task.id}/edit` }),
                menu({ label: app.t("app.more"), items: [{ label: app.t("tasks.delete"), icon: "trash", kind: "danger",
                    run: () => this.deleteTask(task) }] })] },
        h("div", { class: "row wrap" },
            task.isCompleted ? chip({ kind: "ok", icon: "check", label: app.t("tasks.completed") })
                : chip({ kind: late ? "bad" : "info", icon: late ? "warning" : "circle",
                    label: app.t(late ? "tasks.overdue" : "tasks.open") }),
            task.isPending && chip({ icon: "cloud", label: app.t("app.pending") })),
        task.description && h("p", { class: "preserve" }, task.description),
        h("div", { class: "task-main-action" }, button({
            label: app.t(task.isCompleted ? "tasks.reopen" : "tasks.complete"),
            icon: task.isCompleted ? "undo" : "check", kind: task.isCompleted ? undefined : "primary",
            onClick: () => this.complete(task) })),
        this.facts(task), this.location(task),
        task.image && picture({ app, image: task.image, alt: app.t("tasks.imageOf", { title: task.title }),
            class: "task-image" }),
        this.notes(task));
    }

    facts(task) {
        const { app, model } = this;
        const row = (key, value) => value && [h("dt", null, app.t(key)), h("dd", null, value)];
        const link = (person) => model.person(person) && h("a", { href: `#/team/person/${person}` },
            model.personName(person));
        return h("dl", { class: "facts task-facts" },
            row("tasks.due", task.due === null ? h("span", { class: "muted" }, app.t("tasks.noDue"))
                : `${app.format.weekday(task.due)} ${app.format.dateTime(task.due)}`),
            row("tasks.team", app.isManager ? this.teamSelection(task)
                : task.team ? model.teamName(task.team) : h("span", { class: "muted" }, app.t("tasks.noTeam"))),
            row("tasks.assignee", app.isManager ? this.assigneeSelection(task)
                : link(task.assignee) ?? h("span", { class: "muted" }, app.t("tasks.noAssignee"))),
            row("tasks.created", task.created !== null && app.format.dateTime(task.created)),
            task.isCompleted && row("tasks.completedBy", [link(task.completedBy),
                task.done !== null && h("span", { class: "muted" }, " ", app.format.dateTime(task.done))]));
    }

    /** Completes or reopens the task; a note that was written but not added is offered first. */
    async complete(task) {
        const { app, draft } = this;
        if (!task.isCompleted && (draft.text.trim() || draft.photo)) {
            const isConfirmed = await app.confirm({ title: app.t("tasks.unsentTitle"),
                text: app.t("tasks.unsentText"), confirm: app.t("tasks.sendAndComplete") });
            if (!isConfirmed || !await this.send(task)) return;
        }
        setCompleted(this.model, task, !task.isCompleted);
    }

    teamSelection(task) {
        const { app, model } = this;
        return select({ label: app.t("tasks.team"), value: task.team ?? "", options: [
            { value: "", label: app.t("tasks.noTeam") },
            ...model.teams.map(({ id, name }) => ({ value: id, label: name }))],
        onChange: (value) => {
            const team = value || null;
            const isMember = !team || !task.assignee || model.members(team).some(({ id }) => id === task.assignee);
            this.patch(task, { team, ...(isMember ? {} : { assignee: null }) });
            const before = { team: task.team ?? null, assignee: task.assignee ?? null };
            app.toast(app.t(isMember ? "tasks.moved" : "tasks.movedUnassigned", {
                team: team ? model.teamName(team) : app.t("tasks.noTeam"), name: model.personName(task.assignee) }),
            { action: { label: app.t("app.undo"), run: () => this.patch(task, before) } });
        } });
    }

    assigneeSelection(task) {
        const { app, model } = this;
        const people = task.team ? model.members(task.team) : model.people;
        // The key replaces the control together with its options.
        return select({ key: `assignee-${task.team}`, label: app.t("tasks.assignee"), value: task.assignee ?? "",
            options: [{ value: "", label: app.t("tasks.noAssignee") },
                ...people.map(({ id, name }) => ({ value: id, label: name }))],
            onChange: (value) => this.patch(task, { assignee: value || null }) });
    }

    patch(task, fields) {
        this.app.report(this.app.fieldpost.patch(task.realm, "FieldTask", task.id, fields));
    }

    location(task) {
        const { app } = this;
        if (!task.place) return null;
        const isPhone = /Android|iPhone|iPad/u.test(navigator.userAgent);
        const href = directionsLink(task.place, { isPhone, label: task.title });
        const { title, street, postalCode, city, state, countryCode } = task.place;
        const lines = [[street], [postalCode, city], [state, countryCode]]
            .map((parts) => parts.filter(Boolean).join(" "));
        return h("section", { class: "section" },
            h("div", { class: "section-head" }, h("h2", null, app.t("tasks.place"))),
            h("div", { class: "task-place" }, icon("pin"), h("div", { class: "grow" },
                title && h("strong", null, title), lines.filter(Boolean).map((line) => h("div", null, line)),
                task.latitude !== null && h("div", { class: "muted small number" },
                    `${task.latitude.toFixed(5)}, ${task.longitude.toFixed(5)}`))),
            h("div", { class: "row wrap" },
                href && h("a", { class: "button", href, target: "_blank", rel: "noopener noreferrer",
                    title: app.t("tasks.directionsTitle") }, icon("directions"),
                h("span", null, app.t("tasks.directions"))),
                task.latitude !== null && button({ label: app.t("tasks.onMap"), icon: "map",
                    href: `#/team/map/${task.id}` })));
    }

    async deleteTask(task) {
        const { app } = this;
        const isConfirmed = await app.confirm({ title: app.t("tasks.deleteTitle"),
            text: app.t("tasks.deleteText", { title: task.title }), confirm: app.t("app.delete"), isDangerous: true });
        if (!isConfirmed) return;
        app.report(app.fieldpost.delete(task.realm, "FieldTask", task.id));
        app.navigate("tasks");
    }

    notes(task) {
        const { app, model } = this;
        const notes = model.notes(task.id);
        return h("section", { class: "section" },
            h("div", { class: "section-head" }, h("h2", null, notes.length > 0
                ? app.t("tasks.notesCount", { n: notes.length }) : app.t("tasks.notes"))),
            notes.length === 0 ? h("p", { class: "muted" }, app.t("tasks.noNotes"))
                : h("ol", { class: "notes" }, notes.map((note) => this.note(note))),
            this.composer(task));
    }

    note(note) {
        const { app, model } = this;
        const { author, text, image, writtenAt } = note.fields;
        const isOwn = author === app.me.person;
        const name = model.personName(author) || app.t("tasks.unknownPerson");
        const items = [isOwn && { label: app.t("app.edit"), icon: "edit", run: () => {
            this.edited = { id: note.id, text: text ?? "" };
            this.update();
        } }, (isOwn || app.isManager) && { label: app.t("app.delete"), icon: "trash", kind: "danger",
            run: () => this.deleteNote(note) }].filter(Boolean);
        return h("li", { class: "note", key: note.id },
            avatar({ app, name, image: model.person(author)?.avatar }),
            h("div", { class: "note-main" },
                h("div", { class: "note-head" }, h("strong", { class: "truncate" }, name),
                    h("time", { class: "muted small", datetime: writtenAt }, app.format.relative(writtenAt)),
                    note.isPending && h("span", { class: "muted", title: app.t("app.pending") },
                        icon("cloud", { size: "small" }),
                        h("span", { class: "visually-hidden" }, app.t("app.pending"))),
                    items.length > 0 && h("span", { class: "end" }, menu({ items,
                        label: app.t("tasks.noteActions", { name }) }))),
                this.edited?.id === note.id ? this.noteEditor(note) : text && h("p", { class: "preserve" }, text),
                image && h("button", { class: "note-photo", type: "button", "aria-label": app.t("tasks.enlarge"),
                    on: { click: () => app.dialog({ title: app.t("tasks.photo"), isWide: true,
                        content: picture({ app, image, alt: text ?? app.t("tasks.photoBy", { name }) }) }) } },
                picture({ app, image, alt: text ?? app.t("tasks.photoBy", { name }) }))));
    }

    noteEditor(note) {
        const { app } = this;
        const close = () => { this.edited = undefined; this.update(); };
        return h("div", { class: "stack" },
            h("textarea", { class: "control", rows: 3, maxlength: textMax, value: this.edited.text,
                "aria-label": app.t("tasks.noteText"),
                on: { input: (event) => { this.edited.text = event.target.value; } } }),
            h("div", { class: "row" }, button({ label: app.t("app.save"), kind: "primary", onClick: () => {
                const text = this.edited.text.trim() || null;
                if (!text && !note.fields.image) return;
                app.report(app.fieldpost.patch(note.realm, "TaskNote", note.id, { text }));
                close();
            } }), button({ label: app.t("app.cancel"), onClick: close })));
    }

    async deleteNote(note) {
        const { app } = this;
        const isConfirmed = await app.confirm({ title: app.t("tasks.deleteNoteTitle"),
            text: app.t("tasks.deleteNoteText"), confirm: app.t("app.delete"), isDangerous: true });
        if (isConfirmed) app.report(app.fieldpost.delete(note.realm, "TaskNote", note.id));
    }

    composer(task) {
        const { app, draft } = this;
        const name = `photo-${task.id}`;
        return h("div", { class: "composer" },
            h("textarea", { class: "control", rows: 2, maxlength: textMax, value: draft.text,
                placeholder: app.t("tasks.notePlaceholder"), "aria-label": app.t("tasks.noteText"),
                on: { input: (event) => {
                    const wasEmpty = !draft.text.trim();
                    draft.text = event.target.value;
                    if (wasEmpty !== !draft.text.trim()) this.update();
                } } }),
            draft.url && h("div", { class: "composer-photo" }, h("img", { src: draft.url, alt: app.t("tasks.photo") }),
                button({ label: app.t("tasks.removePhoto"), icon: "close", isIconOnly: true,
                    onClick: () => { this.setPhoto(undefined); this.update(); } })),
            h("div", { class: "row" },
                h("input", { class: "visually-hidden", type: "file", accept: "image/*", id: name,
                    on: { change: (event) => this.choosePhoto(event.target) } }),
                h("label", { class: "button", for: name }, icon("camera"), h("span", null, app.t("tasks.addPhoto"))),
                h("span", { class: "end" }, button({ label: app.t("tasks.send"), icon: "send", kind: "primary",
                    disabled: this.isBusy || (!draft.text.trim() && !draft.photo), onClick: () => this.send(task) }))));
    }

    async choosePhoto(control) {
        const photo = await chosenPhoto(this.app, control);
        if (photo) this.setPhoto(photo);
        this.update();
    }

    setPhoto(photo) {
        if (this.draft.url) URL.revokeObjectURL(this.draft.url);
        this.draft.photo = photo;
        this.draft.url = photo && URL.createObjectURL(photo);
    }

    async send(task) {
        const { app, draft } = this;
        this.isBusy = true;
        this.update();
        try {
            const image = draft.photo ? await app.fieldpost.addImage(draft.photo) : null;
            const mutation = app.fieldpost.put(noteRealm(task, { isManager: app.isManager }), "TaskNote", newID(), {
                task: task.id, text: draft.text.trim() || null, image, author: app.me.person,
                writtenAt: app.now().toISOString() });
            await mutation;
            app.report(mutation);
            draft.text = "";
            this.setPhoto(undefined);
            return true;
        } catch (error) {
            app.report(Promise.reject(error));
            return false;
        } finally {
            this.isBusy = false;
            this.update();
        }
    }
}
