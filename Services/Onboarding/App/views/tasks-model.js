/** Tasks, teams, people and positions of the store, for the views Tasks and Team. */

import { membersOf, notesOf, positionsOf, teamsOf, uniqueTasks, workloads } from "../core/tasks.js";
import { scaleImage } from "../fieldpost.js";

const peopleKinds = ["Person", "PersonLookup"];
const kinds = ["FieldTask", "Team", "Membership", "Person", "PersonLookup", "Location", "TaskNote"];

/** Returns the scaled image that was chosen in a file input; undefined if there is none, or it is unreadable. */
export async function chosenPhoto(app, control) {
    const [file] = control.files;
    control.value = "";
    try {
        return file && await scaleImage(file);
    } catch {
        app.toast(app.t("tasks.photoUnreadable"));
        return undefined;
    }
}

export class TasksModel {
    #objects = {};
    #cache = new Map();
    #stops;
    #timer;
    /** Minutes since the view was opened: results that depend on the time are valid for one. */
    minute = 0;

    /** Watches the store; `update` is called after each change and once per minute, because tasks become overdue. */
    constructor(app, update) {
        this.app = app;
        for (const kind of kinds) this.#objects[kind] = [];
        this.#stops = kinds.map((kind) => app.fieldpost.watch(kind, null, (objects) => {
            this.#objects[kind] = objects;
            this.#forget(kind);
            update();
        }));
        this.#timer = setInterval(() => {
            this.minute += 1;
            this.#forget("time");
            update();
        }, 60_000);
    }

    stop() {
        for (const stop of this.#stops) stop();
        clearInterval(this.#timer);
    }

    /** Whether the first checkpoint has not arrived yet. */
    get isLoading() { return this.app.fieldpost.status.position === 0; }
    get now() { return this.app.now().getTime(); }
    get own() { return `/users/${this.app.me.email}`; }

    get tasks() {
        return this.#once(`tasks ${this.app.isManager}`, ["FieldTask"], () => uniqueTasks(this.#objects.FieldTask,
            { isManager: this.app.isManager }));
    }

    task(id) {
        const byID = this.#once(`by id ${this.app.isManager}`, ["FieldTask"],
            () => new Map(this.tasks.map((one) => [one.id, one])));
        return byID.get(id);
    }

    notes(task) { return notesOf(this.#objects.TaskNote, task); }

    get memberships() { return this.#objects.Membership; }

    get ownTeams() {
        return this.#once("own teams", ["Membership"], () => teamsOf(this.memberships, this.app.me.person));
    }

    /** All teams, by name. */
    get teams() {
        return this.#once("teams", ["Team"], () => this.#objects.Team.filter(({ realm }) => realm === "/common").map(
            ({ id, fields }) => ({ id, name: fields.name ?? "", description: fields.teamDescription ?? "",
                colour: /^[0-9a-f]{6}$/iu.test(fields.backgroundColor ?? "") ? `#${fields.backgroundColor}` : undefined,
                image: fields.image }))
            .sort((a, b) => this.app.format.compare(a.name, b.name)));
    }

    team(id) {
        return this.#once("team by id", ["Team"], () => new Map(this.teams.map((team) => [team.id, team]))).get(id);
    }

    teamName(id) { return this.team(id)?.name ?? ""; }

    /** All people, by name. */
    get people() {
        return this.#once("people", peopleKinds, () => {
            const lookups = new Map(this.#objects.PersonLookup.map(({ id, fields }) => [id, fields]));
            return this.#objects.Person.filter(({ realm }) => realm === "/common").map(({ id, fields }) => {
                const full = [fields.firstName, fields.lastName].filter(Boolean).join(" ");
                const lookup = lookups.get(id);
                return { id, name: fields.name || full || lookup?.name || lookup?.email || id.slice(0, 8),
                    email: lookup?.email, avatar: fields.avatar, role: fields.role ?? "worker" };
            }).sort((a, b) => this.app.format.compare(a.name, b.name));
        });
    }

    person(id) {
        return this.#once("person by id", peopleKinds,
            () => new Map(this.people.map((person) => [person.id, person]))).get(id);
    }

    personName(id) { return this.person(id)?.name ?? ""; }

    /** The people of a team, by name. */
    members(team) {
        return this.#once(`members ${team}`, [...peopleKinds, "Membership"], () => {
            const ids = membersOf(this.memberships, team);
            return this.people.filter(({ id }) => ids.has(id));
        });
    }

    teamsOf(person) {
        const ids = teamsOf(this.memberships, person);
        return this.teams.filter(({ id }) => ids.has(id));
    }

    get loads() {
        return this.#once("loads", ["FieldTask", "time"], () => workloads(this.tasks, "assignee", this.now));
    }

    get teamLoads() {
        return this.#once("team loads", ["FieldTask", "time"], () => workloads(this.tasks, "team", this.now));
    }

    get positions() { return this.#once("positions", ["Location"], () => positionsOf(this.#objects.Location)); }

    /** Returns a result that is cached until an object of one of the kinds changes; "time": until the next minute. */
    #once(name, sources, compute) {
        let known = this.#cache.get(name);
        if (!known) this.#cache.set(name, known = { sources, value: compute() });
        return known.value;
    }

    #forget(source) {
        for (const [name, { sources }] of this.#cache) if (sources.includes(source)) this.#cache.delete(name);
    }
}
