/** Teams, for managers: name, description, colour and members. */

import { newID, pairedID } from "../fieldpost.js";
import { button, empty, field, input, menu, select } from "../ui/components.js";
import { h } from "../ui/dom.js";

/** Opens the form of a team; of a new one without `team`. */
export function editTeam(model, team) {
    const { app } = model;
    const form = { name: team?.name ?? "", description: team?.description ?? "", colour: team?.colour ?? "#0b63b8" };
    const save = () => {
        const name = form.name.trim();
        if (!name) {
            dialog.element?.querySelector("#team-name")?.focus();
            return false;
        }
        const now = app.now().toISOString();
        const fields = { name, teamDescription: form.description.trim() || null,
            backgroundColor: form.colour.slice(1).toUpperCase(), modificationDate: now };
        const id = team?.id ?? newID();
        app.report(team ? app.fieldpost.patch("/common", "Team", id, fields)
            : app.fieldpost.put("/common", "Team", id, { ...fields, creationDate: now }));
        if (!team) app.navigate(`team/team/${id}`);
        return true;
    };
    const remove = async () => {
        const isConfirmed = await app.confirm({ title: app.t("team.deleteTitle"), isDangerous: true,
            text: app.t("team.deleteText", { name: team.name }), confirm: app.t("app.delete") });
        if (!isConfirmed) return;
        app.report(app.fieldpost.delete("/common", "Team", team.id));
        app.navigate("team");
    };
    const dialog = app.dialog({ title: app.t(team ? "team.edit" : "team.newTeam"), isForm: true,
        content: h("div", { class: "form" },
            field({ label: app.t("team.name"), id: "team-name", control: input({ value: form.name, maxlength: 100,
                onInput: (value) => { form.name = value; } }) }),
            field({ label: app.t("tasks.description"), id: "team-description", control: input({ rows: 3,
                value: form.description, onInput: (value) => { form.description = value; } }) }),
            field({ label: app.t("team.colour"), id: "team-colour", control: input({ type: "color", value: form.colour,
                onInput: (value) => { form.colour = value; } }) })),
        actions: [team && { label: app.t("app.delete"), kind: "danger", icon: "trash", run: () => { remove(); } },
            { label: app.t("app.save"), kind: "primary", run: save }] });
}

/** Returns the members of a team; managers add and remove them. */
export function teamMembers(model, team, personCard) {
    const { app } = model;
    const members = model.members(team.id);
    const others = model.people.filter(({ id }) => !members.some((member) => member.id === id));
    const membership = (person) => pairedID(person, team.id);
    const remove = (person) => app.report(app.fieldpost.delete("/common", "Membership", membership(person)));
    return h("section", { class: "section" },
        h("div", { class: "section-head" }, h("h2", null, app.t("team.members", { n: members.length }))),
        members.length === 0 && empty({ icon: "team", title: app.t("team.noMembers") }),
        members.map((person) => personCard(person, app.isManager && menu({
            label: app.t("team.actionsOf", { name: person.name }),
            items: [{ label: app.t("team.removeMember"), icon: "minus", kind: "danger",
                run: () => remove(person.id) }] }))),
        app.isManager && others.length > 0 && select({ label: app.t("team.addMember"), value: "", options: [
            { value: "", label: app.t("team.addMember") },
            ...others.map(({ id, name }) => ({ value: id, label: name }))],
        onChange: (person, event) => {
            if (!person) return;
            event.target.value = "";
            app.report(app.fieldpost.put("/common", "Membership", membership(person), { person, team: team.id }));
        } }),
        app.isManager && button({ label: app.t("tasks.new"), icon: "plus", href: `#/tasks/new/${team.id}` }));
}
