/** The form of a task, for managers: title, description, due date, team, assignee, location and picture. */

import { changedFields, formFields, formProblems, taskForm } from "../core/tasks.js";
import { newID } from "../fieldpost.js";
import { button, field, icon, input, page, picture, select } from "../ui/components.js";
import { h } from "../ui/dom.js";
import { chosenPhoto } from "./tasks-model.js";

export class TaskEditor {
    constructor(model, { key, task, team, update }) {
        Object.assign(this, { model, app: model.app, key, task, update });
        this.form = taskForm(task?.object.fields);
        if (team && model.team(team)) this.form.team = team;
        this.back = task ? `#/tasks/${task.id}` : team ? `#/team/team/${team}` : "#/tasks";
        this.before = task?.object.fields ?? {};
        this.problems = {};
        this.photo = undefined;
        this.isBusy = false;
    }

    render() {
        const { app, back, form, model, problems } = this;
        const error = (name) => problems[name] && app.t(`tasks.problem.${name}`);
        const line = (name, key, options = {}) => {
            const { hint, ...attributes } = options;
            return field({ label: app.t(key), id: `task-${name}`, error: error(name), hint,
                control: input({ value: form[name], onInput: (value) => { form[name] = value; }, ...attributes }) });
        };
        const people = form.team ? model.members(form.team) : model.people;
        const submit = (event) => {
            event.preventDefault();
            this.save();
        };
        return page({ title: app.t(this.task ? "tasks.edit" : "tasks.new"),
            back: { href: back, label: app.t("app.back") } },
        h("form", { class: "form", novalidate: true, on: { submit } },
            line("title", "tasks.titleField", { maxlength: 200, required: true, autocomplete: "off" }),
            line("taskDescription", "tasks.description", { rows: 4 }),
            line("due", "tasks.due", { type: "datetime-local" }),
            h("div", { class: "form-row" },
                field({ label: app.t("tasks.team"), id: "task-team", control: select({ value: form.team, options: [
                    { value: "", label: app.t("tasks.noTeam") },
                    ...model.teams.map(({ id, name }) => ({ value: id, label: name }))],
                onChange: (team) => {
                    form.team = team;
                    if (team && !model.members(team).some(({ id }) => id === form.assignee)) form.assignee = "";
                    this.update();
                } }) }),
                field({ label: app.t("tasks.assignee"), id: "task-assignee",
                    hint: form.team && people.length === 0 ? app.t("tasks.noMembers") : undefined,
                    control: select({ key: `assignee-${form.team}`, value: form.assignee, options: [
                        { value: "", label: app.t("tasks.noAssignee") },
                        ...people.map(({ id, name }) => ({ value: id, label: name }))],
                    onChange: (assignee) => { form.assignee = assignee; } }) })),
            h("fieldset", { class: "task-fieldset" }, h("legend", null, app.t("tasks.place")),
                line("placeTitle", "tasks.placeName", { autocomplete: "off" }),
                line("street", "tasks.street", { autocomplete: "off" }),
                h("div", { class: "form-row" }, line("postalCode", "tasks.postalCode", { autocomplete: "off" }),
                    line("city", "tasks.city", { autocomplete: "off" }),
                    line("countryCode", "tasks.country", { maxlength: 2, autocomplete: "off" })),
                line("coordinates", "tasks.coordinates", { hint: app.t("tasks.coordinatesHint"), autocomplete: "off" }),
                "geolocation" in navigator && button({ label: app.t("tasks.here"), icon: "target",
                    onClick: () => this.useOwnPosition() })),
            this.image(),
            h("div", { class: "form-actions" }, button({ label: app.t("app.cancel"), href: back }),
                button({ label: app.t(this.task ? "app.save" : "tasks.create"), kind: "primary", type: "submit",
                    disabled: this.isBusy }))));
    }

    image() {
        const { app, form } = this;
        const shown = this.photo ? h("img", { class: "task-image", src: this.photo.url, alt: app.t("tasks.image") })
            : form.image && picture({ app, image: form.image, alt: app.t("tasks.image"), class: "task-image" });
        return h("fieldset", { class: "task-fieldset" }, h("legend", null, app.t("tasks.image")), shown,
            h("div", { class: "row wrap" },
                h("input", { class: "visually-hidden", type: "file", accept: "image/*", id: "task-image",
                    on: { change: (event) => this.choosePhoto(event.target) } }),
                h("label", { class: "button", for: "task-image" }, icon("camera"),
                    h("span", null, app.t(shown ? "tasks.replaceImage" : "tasks.addImage"))),
                shown && button({ label: app.t("tasks.removeImage"), icon: "trash", kind: "quiet", onClick: () => {
                    this.setPhoto(undefined);
                    form.image = null;
                    this.update();
                } })));
    }

    setPhoto(blob) {
        if (this.photo) URL.revokeObjectURL(this.photo.url);
        this.photo = blob && { blob, url: URL.createObjectURL(blob) };
    }

    async choosePhoto(control) {
        const photo = await chosenPhoto(this.app, control);
        if (photo) this.setPhoto(photo);
        this.update();
    }

    useOwnPosition() {
        navigator.geolocation.getCurrentPosition(({ coords }) => {
            this.form.coordinates = `${coords.latitude.toFixed(6)}, ${coords.longitude.toFixed(6)}`;
            this.update();
        }, () => this.app.toast(this.app.t("team.positionFailed")), { enableHighAccuracy: true, timeout: 15_000 });
    }

    async save() {
        const { app, form, task } = this;
        this.problems = formProblems(form);
        if (Object.keys(this.problems).length > 0) {
            this.update();
            requestAnimationFrame(() => document.querySelector(".form [aria-invalid]")?.focus());
            return;
        }
        this.isBusy = true;
        this.update();
        try {
            if (this.photo) form.image = await app.fieldpost.addImage(this.photo.blob);
            const fields = formFields(form);
            const id = task?.id ?? newID();
            if (task) {
                const changes = changedFields(fields, this.before);
                if (Object.keys(changes).length > 0) {
                    const mutation = app.fieldpost.patch(task.realm, "FieldTask", id, changes);
                    await mutation;
                    app.report(mutation);
                }
            } else {
                const present = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
                const mutation = app.fieldpost.put("/manager", "FieldTask", id, { ...present, isCompleted: false,
                    creationDate: app.now().toISOString() });
                await mutation;
                app.report(mutation);
            }
            this.setPhoto(undefined);
            app.navigate(`tasks/${id}`);
        } catch (error) {
            app.report(Promise.reject(error));
        }
        this.isBusy = false;
        this.update();
    }
}
