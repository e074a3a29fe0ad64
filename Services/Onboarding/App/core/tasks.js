/** Tasks, notes and workload, computed from the objects of the store. Pure functions. */

import { codePoints } from "./task-order.js";

export { distance, resortTasks, sortings, sortTasks } from "./task-order.js";

const managerRealm = "/manager";

/** The states by which a list is filtered. */
export const states = ["open", "overdue", "completed", "all"];

const listed = new WeakMap();
const isASCII = /^[\0-\x7f]*$/;

/** A task as the views display it. The texts for rows and searches are computed when they are needed. */
class ListedTask {
    #address;
    #words;

    constructor(object) {
        const { fields } = object;
        const place = isRecord(fields.place) ? fields.place : null;
        const hasCoordinates = isCoordinate(place?.latitude, 90) && isCoordinate(place?.longitude, 180);
        this.object = object;
        this.id = object.id;
        this.realm = object.realm;
        this.isPending = Boolean(object.isPending);
        this.title = text(fields.title) ?? "";
        this.description = text(fields.taskDescription) ?? "";
        this.due = milliseconds(fields.dueDate);
        this.created = milliseconds(fields.creationDate);
        this.isCompleted = fields.isCompleted === true;
        this.done = milliseconds(fields.completionDate);
        this.completedBy = text(fields.completedBy);
        this.assignee = text(fields.assignee);
        this.team = text(fields.team);
        this.image = text(fields.image);
        this.place = place;
        this.latitude = hasCoordinates ? place.latitude : null;
        this.longitude = hasCoordinates ? place.longitude : null;
    }

    get address() { return (this.#address ??= placeText(this.place)); }
    get words() { return (this.#words ??= fold(`${this.title} ${this.description} ${this.address}`)); }
}

/**
 * Returns the values of a task that the views display. Invalid fields are treated as absent. The result is cached by
 * the object, which is frozen.
 *
 * @param {{realm: string, id: string, fields: object, isPending: boolean}} object a `FieldTask`
 * @returns {ListedTask}
 */
export function listedTask(object) {
    let task = listed.get(object);
    if (!task) listed.set(object, task = new ListedTask(object));
    return task;
}

/**
 * Returns each task once. A manager gets the master in `/manager`, which managers write; another person gets the copy
 * of the team or of their own realm.
 */
export function uniqueTasks(objects, { isManager = false } = {}) {
    const byID = new Map();
    for (const object of objects) {
        if (object.realm === "/archive") continue;
        const before = byID.get(object.id);
        const isPreferred = (object.realm === managerRealm) === isManager;
        if (!before || isPreferred) byID.set(object.id, object);
    }
    return [...byID.values()].map(listedTask);
}

/** Whether the task is open and was due before `now`, in milliseconds. */
export function isOverdue(task, now) {
    return !task.isCompleted && task.due !== null && task.due < now;
}

/**
 * Returns the tasks of a scope: `mine` are those assigned to the person and those in the own realm, `team` those of
 * the person's teams, `all` every one.
 *
 * @param {object[]} tasks results of `listedTask`
 * @param {{scope: string, person: ?string, own: string, teams: Set<string>}} options `teams`: ids of the own teams
 */
export function tasksInScope(tasks, { scope, person, own, teams }) {
    if (scope === "all") return tasks;
    if (scope === "team") return tasks.filter((task) => task.team !== null && teams.has(task.team));
    return tasks.filter((task) => task.realm === own || (person && task.assignee === person));
}

/** Returns the tasks of a state, team and assignee whose texts contain each word of the query. `none`: without. */
export function filterTasks(tasks, { state = "all", team = "", assignee = "", query = "", now = 0, nameOf } = {}) {
    const words = fold(query).split(/\s+/u).filter(Boolean);
    const matches = (value, wanted) => !wanted || (wanted === "none" ? value === null : value === wanted);
    return tasks.filter((task) => {
        if (state === "open" && task.isCompleted) return false;
        if (state === "completed" && !task.isCompleted) return false;
        if (state === "overdue" && !isOverdue(task, now)) return false;
        if (!matches(task.team, team) || !matches(task.assignee, assignee)) return false;
        if (words.length === 0) return true;
        const person = nameOf && task.assignee ? fold(nameOf(task.assignee)) : "";
        return words.every((word) => task.words.includes(word) || person.includes(word));
    });
}

/** Returns the number of open, overdue and completed tasks. */
export function countTasks(tasks, now) {
    const counts = { open: 0, overdue: 0, completed: 0 };
    for (const task of tasks) {
        if (task.isCompleted) counts.completed += 1; else counts.open += 1;
        if (isOverdue(task, now)) counts.overdue += 1;
    }
    return counts;
}

/** Returns the open and overdue tasks per id of a field: `assignee` or `team`. Tasks without one are under "". */
export function workloads(tasks, field, now) {
    const loads = new Map();
    for (const task of tasks) {
        if (task.isCompleted) continue;
        const id = task[field] ?? "";
        const load = loads.get(id) ?? { open: 0, overdue: 0 };
        load.open += 1;
        if (isOverdue(task, now)) load.overdue += 1;
        loads.set(id, load);
    }
    return loads;
}

/** Returns the realm for notes of a task: `/manager` for managers, otherwise the realm of the task's copy. */
export function noteRealm(task, { isManager = false } = {}) {
    return isManager ? managerRealm : task.realm;
}

/** The problems of a note whose task is no longer in the realm. Both have other causes too. */
const movedCodes = new Set(["invalid-field", "realm-not-permitted"]);

/**
 * Returns the rejected new notes to put into another realm, because their task moved while they were queued. Their ids
 * stay, so that no note is stored twice. A note that is rejected in the realm of its task's copy is not returned.
 *
 * @param {object[]} mutations those of the client, in order
 * @param {object[]} objects the `FieldTask` objects
 * @returns {{mutations: object[], realm: ?string, id: string, fields: object}[]} `mutations`: the rejected ones that
 *     this replaces; without `realm` the person deleted the note
 */
export function movedNotes(mutations, objects, { isManager = false } = {}) {
    const notes = mutations.filter(({ kind }) => kind === "TaskNote");
    const isRejected = ({ state }) => state === "rejected";
    const moved = [];
    for (const put of notes) {
        if (put.operation !== "put" || !isRejected(put) || !movedCodes.has(put.problem?.code)) continue;
        const { id, realm: former } = put;
        const changes = notes.filter((one) => one.id === id && one.realm === former && one.sequence > put.sequence);
        const replaced = [put, ...changes.filter(isRejected)];
        if (changes.some(({ operation }) => operation === "delete")) {
            moved.push({ mutations: replaced, realm: undefined, id, fields: {} });
            continue;
        }
        const [task] = uniqueTasks(objects.filter((object) => object.id === put.fields?.task), { isManager });
        const realm = task && noteRealm(task, { isManager });
        if (!realm || realm === former || !changes.every(isRejected)) continue;
        moved.push({ mutations: replaced, realm, id, fields: Object.assign({}, ...replaced.map((one) => one.fields)) });
    }
    return moved;
}

/** Returns the notes of a task, each once, the oldest first. */
export function notesOf(objects, task) {
    const byID = new Map();
    for (const object of objects) {
        if (object.fields.task !== task) continue;
        const before = byID.get(object.id);
        if (!before || object.isPending || (!before.isPending && object.position > before.position)) {
            byID.set(object.id, object);
        }
    }
    return [...byID.values()].sort((a, b) => (milliseconds(a.fields.writtenAt) ?? 0)
        - (milliseconds(b.fields.writtenAt) ?? 0) || codePoints(a.id, b.id));
}

/** Returns the fields that complete or reopen a task. */
export function completion(isCompleted, { person, now }) {
    return isCompleted ? { isCompleted: true, completionDate: now.toISOString(), completedBy: person ?? null }
        : { isCompleted: false, completionDate: null, completedBy: null };
}

/** Returns the lines of an address as one text; empty without any. */
export function placeText(place) {
    if (!isRecord(place)) return "";
    const city = [text(place.postalCode), text(place.city)].filter(Boolean).join(" ");
    return [place.title, place.street, city, place.state, place.countryCode].map(text).filter(Boolean).join(", ");
}

/**
 * Returns the address of a route to a place, for a person to open; undefined without coordinates and address.
 *
 * @param {?object} place
 * @param {{isPhone?: boolean, label?: string}} options a phone opens `geo:` in its map app
 */
export function directionsLink(place, { isPhone = false, label = "" } = {}) {
    if (!isRecord(place)) return undefined;
    const { title, ...address } = place;
    const target = isCoordinate(place.latitude, 90) && isCoordinate(place.longitude, 180)
        ? `${place.latitude},${place.longitude}` : "";
    const query = target || placeText(address) || text(title);
    if (!query) return undefined;
    if (!isPhone) return `https://www.openstreetmap.org/directions?to=${encodeURIComponent(query)}`;
    const name = label ? `(${label.replace(/[()]/gu, " ")})` : "";
    return target ? `geo:${target}?q=${encodeURIComponent(target + name)}` : `geo:0,0?q=${encodeURIComponent(query)}`;
}

/** Returns the coordinates of a text such as "55.676, 12.568" or "55,676; 12,568"; undefined if it has none. */
export function parseCoordinates(value) {
    const match = /^\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*(-?\d{1,3}(?:\.\d+)?)\s*$/u.exec(value)
        ?? /^\s*(-?\d{1,2}(?:,\d+)?)\s*(?:;|\s)\s*(-?\d{1,3}(?:,\d+)?)\s*$/u.exec(value);
    if (!match) return undefined;
    const [latitude, longitude] = [match[1], match[2]].map((part) => Number(part.replace(",", ".")));
    return isCoordinate(latitude, 90) && isCoordinate(longitude, 180) ? { latitude, longitude } : undefined;
}

/** Returns the form's values of a task; of a new one without `fields`. */
export function taskForm(fields = {}) {
    const place = isRecord(fields.place) ? fields.place : {};
    const hasCoordinates = isCoordinate(place.latitude, 90) && isCoordinate(place.longitude, 180);
    return {
        title: text(fields.title) ?? "", taskDescription: text(fields.taskDescription) ?? "",
        due: localMinute(fields.dueDate), team: text(fields.team) ?? "", assignee: text(fields.assignee) ?? "",
        placeTitle: text(place.title) ?? "", street: text(place.street) ?? "", postalCode: text(place.postalCode) ?? "",
        city: text(place.city) ?? "", countryCode: text(place.countryCode) ?? "", state: text(place.state) ?? "",
        coordinates: hasCoordinates ? `${place.latitude}, ${place.longitude}` : "", image: text(fields.image),
    };
}

/** Returns the problems of a form by its values: `missing` or `invalid`. */
export function formProblems(form) {
    const problems = {};
    if (!form.title.trim()) problems.title = "missing";
    if (form.coordinates.trim() && !parseCoordinates(form.coordinates)) problems.coordinates = "invalid";
    if (form.countryCode.trim() && !/^[A-Za-z]{2}$/u.test(form.countryCode.trim())) problems.countryCode = "invalid";
    if (form.due && Number.isNaN(Date.parse(form.due))) problems.due = "invalid";
    return problems;
}

/** Returns the fields of a form. Empty values become null. */
export function formFields(form) {
    const value = (entry) => entry?.trim() || null;
    const place = Object.fromEntries(Object.entries({ title: value(form.placeTitle), street: value(form.street),
        postalCode: value(form.postalCode), city: value(form.city), state: value(form.state),
        countryCode: value(form.countryCode)?.toUpperCase() ?? null, ...parseCoordinates(form.coordinates) })
        .filter(([, entry]) => entry !== null));
    return {
        title: form.title.trim(), taskDescription: value(form.taskDescription),
        dueDate: form.due ? new Date(form.due).toISOString() : null, team: value(form.team),
        assignee: value(form.assignee), place: Object.keys(place).length > 0 ? place : null, image: form.image ?? null,
    };
}

/** Returns the fields that differ from those before; absent and null are equal. */
export function changedFields(fields, before) {
    return Object.fromEntries(Object.entries(fields).filter(([name, value]) =>
        name === "dueDate" ? milliseconds(value) !== milliseconds(before[name])
            : stable(value ?? null) !== stable(before[name] ?? null)));
}

/** Returns the ids of a team's members. */
export function membersOf(memberships, team) {
    return new Set(memberships.filter(({ fields }) => fields.team === team).map(({ fields }) => fields.person));
}

/** Returns the ids of a person's teams. */
export function teamsOf(memberships, person) {
    return new Set(memberships.filter(({ fields }) => fields.person === person).map(({ fields }) => fields.team));
}

/** Returns the newest valid position of each person. */
export function positionsOf(objects) {
    const byID = new Map();
    for (const { id, fields, realm } of objects) {
        if (!isCoordinate(fields.latitude, 90) || !isCoordinate(fields.longitude, 180)) continue;
        const position = { id, realm, latitude: fields.latitude, longitude: fields.longitude,
            accuracy: typeof fields.accuracy === "number" ? fields.accuracy : null,
            time: milliseconds(fields.timestamp), placeName: text(fields.placeName) };
        const before = byID.get(id);
        if (!before || (position.time ?? 0) > (before.time ?? 0)) byID.set(id, position);
    }
    return byID;
}

/** Whether a position is written now: the first one, and then at most one per `interval` milliseconds. */
export function isPositionDue(written, now, interval = 30_000) {
    return written === undefined || now - written >= interval || now < written;
}

/** Returns a text without case and marks, for a search. */
export function fold(value) {
    const plain = String(value ?? "");
    if (isASCII.test(plain)) return plain.toLowerCase();
    return plain.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replaceAll("ø", "o")
        .replaceAll("æ", "ae").replaceAll("ß", "ss");
}

function localMinute(value) {
    const time = milliseconds(value);
    if (time === null) return "";
    return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function milliseconds(value) {
    const time = typeof value === "string" ? Date.parse(value) : NaN;
    return Number.isNaN(time) ? null : time;
}

function stable(value) {
    return isRecord(value) ? JSON.stringify(Object.entries(value).filter(([, entry]) => entry !== null)
        .sort(([a], [b]) => codePoints(a, b))) : JSON.stringify(value);
}

function isRecord(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCoordinate(value, limit) {
    return typeof value === "number" && Number.isFinite(value) && Math.abs(value) <= limit;
}

function text(value) {
    return typeof value === "string" && value !== "" ? value : null;
}
