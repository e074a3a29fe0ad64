/** The data of the Time view: the copy's entries and reporting data, the timer and favourites of this device. */

import { newID } from "../fieldpost.js";
import { Picker } from "../core/picker.js";
import {
    actionsOf, copyOf, dayOf, dayToCopy, entriesByDay, entriesOf, latestFirst, reasons, recentSelections, selectionKey,
    statusLog, submittable, timeProblems, timerFields, toggleFavourite,
} from "../core/time.js";

/** The steps, in minutes, to which a stopped timer can be rounded. */
export const timerSteps = [1, 5, 6, 15, 30];

export class TimeModel {
    #app;
    #onChange;
    #own;
    #stops = [];
    #objects = { templates: [], contexts: [], nodes: [] };
    #user;
    #picker;
    #entries = [];
    #byDay;
    #recent;
    #latest;
    #lines = [];
    #linesByEntry;
    #storageChanged = (event) => {
        if (event.key?.startsWith("fieldpost.time.")) this.#onChange();
    };

    constructor(app, onChange) {
        this.#app = app;
        this.#onChange = onChange;
        this.#own = `/users/${app.me.email || app.fieldpost.status.email}`;
        const realm = this.#own;
        const watch = (kind, filter, apply) => this.#stops.push(app.fieldpost.watch(kind, filter, (objects) => {
            apply(objects);
            onChange();
        }));
        const reporting = (name) => (objects) => {
            this.#objects[name] = objects;
            this.#picker = undefined;
        };
        watch("User", { realm }, (users) => {
            this.#user = users[0]?.fields;
            this.#picker = undefined;
        });
        watch("ReportingTemplate", { realm }, reporting("templates"));
        watch("ReportingContext", { realm }, reporting("contexts"));
        watch("ReportingTreeNode", null, reporting("nodes"));
        watch("TimeEntry", { realm }, (entries) => {
            this.#entries = entries;
            this.#byDay = this.#recent = this.#latest = undefined;
        });
        watch("TimeEntryStatus", { realm }, (lines) => {
            this.#lines = lines;
            this.#linesByEntry = undefined;
        });
        addEventListener("storage", this.#storageChanged);
    }

    stop() {
        for (const stop of this.#stops) stop();
        removeEventListener("storage", this.#storageChanged);
    }

    get app() { return this.#app; }
    get today() { return dayOf(this.#app.now()); }
    get entries() { return this.#entries; }
    /** Whether the first download is in progress. */
    get isLoading() { return !this.#user && this.#app.fieldpost.status.position === 0; }
    get isOffline() { return ["offline", "paused", "failed"].includes(this.#app.fieldpost.status.connection); }

    get picker() {
        if (!this.#picker) {
            const map = (objects) => new Map(objects.map(({ id, fields }) => [id, fields]));
            const { templates, contexts, nodes } = this.#objects;
            const catalogue = `/catalogues/${this.#user?.catalogue}`;
            this.#picker = new Picker(this.#user, { templates: map(templates), contexts: map(contexts),
                nodes: map(nodes.filter((node) => node.realm === catalogue)),
                retired: map(nodes.filter((node) => node.realm !== catalogue)) });
        }
        return this.#picker;
    }

    entry(id) { return this.#entries.find((entry) => entry.id === id); }

    entriesOf(day) {
        this.#byDay ??= entriesByDay(this.#entries);
        return this.#byDay.get(day) ?? [];
    }

    get latest() { return (this.#latest ??= latestFirst(this.#entries)); }

    /** Returns the favourites and recent selections that a new entry can have, each once, favourites first. */
    quickSelections(countMax = 8) {
        this.#recent ??= recentSelections(this.latest, 12);
        const { favourites, picker } = this;
        const keys = new Set(favourites.map(selectionKey));
        return [...favourites.map((one) => ({ ...one, isFavourite: true })),
            ...this.#recent.filter((one) => !keys.has(selectionKey(one)))]
            .filter((one) => picker.templates.includes(one.reportingTemplate) && picker.problems(one).length === 0)
            .map((one) => ({ ...one, key: selectionKey(one), names: picker.names(one) }))
            .filter(({ names }) => names.length > 0).slice(0, countMax);
    }

    /** Returns the titles of an entry's selections; the template's name without any. */
    namesOf(fields) {
        const names = this.picker.names(fields).map(({ title }) => title);
        const template = this.picker.template(fields.reportingTemplate);
        if (this.isAbsence(fields.reportingTemplate) || names.length === 0) {
            return [template?.name, ...names].filter((name, index, all) => name && all.indexOf(name) === index);
        }
        return names;
    }

    /** Returns whether a template is for leave, sickness and the like: its type of time is no project. */
    isAbsence(template) {
        const type = this.picker.template(template)?.type ?? "";
        return /absence|leave|sick|illness|vacation|holiday|time.?off/i.test(type);
    }

    log(entry) {
        if (!this.#linesByEntry) {
            this.#linesByEntry = new Map();
            for (const line of this.#lines) {
                const { entry: id } = line.fields;
                if (!this.#linesByEntry.has(id)) this.#linesByEntry.set(id, []);
                this.#linesByEntry.get(id).push(line);
            }
        }
        return statusLog(this.#linesByEntry.get(entry) ?? [], entry);
    }

    reasons(entry) { return reasons(this.log(entry)); }

    /** Returns the problems that prevent the submission of these fields, with texts. */
    problems(fields) {
        const { t } = this.#app;
        const contextName = (id) => this.#objects.contexts.find((context) => context.id === id)?.fields.name ?? "";
        const own = this.picker.problems(fields).filter(({ code }) => code !== "selection-ambiguous")
            .map((problem) => ({ ...problem, text: t(`time.problem.${problem.code}`,
                { context: contextName(problem.context), node: this.picker.title(problem.node) ?? "" }) }));
        const others = timeProblems(fields).map((problem) => ({ ...problem, text: t(`time.problem.${problem.code}`) }));
        return [...own, ...others];
    }

    // Mutations

    /** Creates an entry. Resolves with its id when it is stored on the device; undefined if that failed. */
    async create(fields) {
        const id = newID();
        const stored = this.#app.fieldpost.put(this.#own, "TimeEntry", id, fields);
        this.#app.report(stored);
        return stored.then(() => id, () => undefined);
    }

    patch(id, fields) {
        return this.#app.report(this.#app.fieldpost.patch(this.#own, "TimeEntry", id, fields));
    }

    submit(id) { return this.patch(id, { submitRequested: true }); }
    withdraw(id) { return this.patch(id, { submitRequested: false }); }

    /** Returns the message after a submission: offline, it waits on the device. */
    submittedText(n) { return this.#app.t(this.isOffline ? "time.queuedCount" : "time.submittedCount", { n }); }

    /** Submits the complete entries of some days, and reports how many are incomplete. */
    submitDays(days) {
        const { t, toast } = this.#app;
        const candidates = submittable(days.flatMap((day) => this.entriesOf(day)));
        const complete = candidates.filter(({ fields }) => this.problems(fields).length === 0);
        for (const { id } of complete) this.submit(id);
        const incomplete = candidates.length - complete.length;
        const parts = [];
        if (complete.length > 0) parts.push(this.submittedText(complete.length));
        if (incomplete > 0) parts.push(t("time.incompleteCount", { n: incomplete }));
        toast(parts.join(" "));
    }

    dayToCopy(day) { return dayToCopy(this.#entries, day); }

    async copyDay(from, to) {
        const { t, toast } = this.#app;
        const copies = entriesOf(this.#entries, from)
            .filter(({ fields }) => fields.status !== "suggestion" && !fields.deleteRequested)
            .map(({ fields }) => copyOf(fields, to, this.today));
        const ids = copies.map(() => newID());
        const put = (id, fields) => this.#app.fieldpost.put(this.#own, "TimeEntry", id, fields);
        copies.forEach((fields, index) => this.#app.report(put(ids[index], fields)));
        const undo = () => ids.forEach((id) => this.#app.report(
            this.#app.fieldpost.delete(this.#own, "TimeEntry", id)));
        toast(t("time.copied", { n: ids.length }), { action: { label: t("app.undo"), run: undo } });
    }

    /** Deletes an entry: at once with "undo" if no back end has it, otherwise after a confirmation. */
    async remove(entry) {
        const { t, toast, confirm, report, fieldpost } = this.#app;
        const { requestsDeletion } = actionsOf(entry.fields);
        if (requestsDeletion && !(await confirm({ title: t("time.deleteTitle"), text: t("time.deleteText"),
            confirm: t("app.delete"), isDangerous: true }))) return false;
        report(fieldpost.delete(this.#own, "TimeEntry", entry.id));
        if (requestsDeletion) {
            toast(t("time.deleteRequested"));
        } else {
            const { statusAt, submitRequested, deleteRequested, backendId, ...content } = entry.fields;
            // The id of a deleted entry is not reused.
            const undo = () => this.create({ ...content, status: "draft" });
            toast(t("time.deleted"), { action: { label: t("app.undo"), run: undo } });
        }
        return true;
    }

    // Favourites and the timer, on this device

    get favourites() { return this.#read("favourites") ?? []; }
    isFavourite(fields) { return this.favourites.some((one) => selectionKey(one) === selectionKey(fields)); }

    toggleFavourite({ reportingTemplate, reporting }) {
        this.#write("favourites", toggleFavourite(this.favourites, { reportingTemplate, reporting: reporting ?? [] }));
    }

    get timer() { return this.#read("timer"); }
    get timerStep() { return this.#read("step") ?? 1; }
    set timerStep(minutes) { this.#write("step", minutes); }

    startTimer(content = {}) {
        const { reportingTemplate, reporting, text } = content;
        this.#write("timer", { startedAt: this.#app.now().getTime(), reportingTemplate, reporting, text });
    }

    editTimer(content) { this.#write("timer", { ...this.timer, ...content }); }
    discardTimer() { this.#write("timer", undefined); }

    /** Stops the timer. Returns the day and id of the draft with its time; without `id`, nothing was stored. */
    async stopTimer() {
        const fields = timerFields(this.timer, this.#app.now(), this.timerStep);
        const id = await this.create(fields);
        if (id) this.discardTimer();
        return { day: fields.entryDate, id, fields };
    }

    #read(name) {
        try {
            return JSON.parse(localStorage.getItem(`fieldpost.time.${name}:${this.#own}`) ?? "null") ?? undefined;
        } catch {
            return undefined;
        }
    }

    #write(name, value) {
        const key = `fieldpost.time.${name}:${this.#own}`;
        try {
            if (value === undefined) localStorage.removeItem(key);
            else localStorage.setItem(key, JSON.stringify(value));
        } catch {
            this.#app.toast(this.#app.t("problem.storage-full"));
        }
        this.#onChange();
    }
}
