/** Descriptions of mutations, rejections and realms. */

const advices = {
    "version-conflict": "conflict", deleted: "deleted", "deletion-pending": "wait", closed: "closed",
    "unknown-object": "deleted", "name-taken": "name", "realm-not-permitted": "access", "result-expired": "compare",
    "invalid-field": "correct", "data-refused": "correct", "too-large": "correct", "status-not-allowed": "compare",
    "image-heif": "image", "image-malformed": "image", "body-too-large": "image", "blob-taken": "image",
    unreadable: "report",
};

/** Returns the key of the text that describes the next step after a rejection. */
export function adviceKey(code) {
    return `sync.advice.${advices[code] ?? "report"}`;
}

const routes = {
    TimeEntry: "time", TimeEntryStatus: "time", FieldTask: "tasks", TaskNote: "tasks", Location: "team", Person: "team",
    Team: "team", Membership: "team", Appointment: "shared", Note: "shared", SharedItem: "shared", Share: "shared",
    Defect: "defects", DefectCommand: "defects", Notice: "notices",
};

/** Returns the route that displays the object of a mutation; undefined if no view does. */
export function mutationRoute({ kind, id, fields }) {
    const route = routes[kind];
    if (!route || ["team", "notices"].includes(route)) return route;
    const target = kind === "TaskNote" ? fields?.task : kind === "SharedItem" ? fields?.item
        : kind === "DefectCommand" ? fields?.defect : id;
    return target ? `${route}/${target}` : route;
}

/** Returns those keys of `localStorage` that hold a person's data, such as the timer and the favourites. */
export function personalKeys(keys, email) {
    return keys.filter((key) => key === `fieldpost.shared.seen.${email}`
        || (key.startsWith("fieldpost.time.") && key.endsWith(`:/users/${email}`)));
}

/** Returns the sort of a realm and the id in its path: {sort: "team", id: "…"}. */
export function describeRealm(path, email) {
    if (path === `/users/${email}`) return { sort: "own" };
    const [, first, id] = path.split("/");
    const sorts = { users: "own", common: "common", catalogues: "catalogue", teams: "team", manager: "manager",
        shares: "share", archive: "archive" };
    return { sort: sorts[first] ?? "other", id };
}

/** Returns the text that names an object: title, text or name. */
export function nameOf(fields) {
    const name = fields?.title ?? fields?.text ?? fields?.name ?? fields?.headline;
    return typeof name === "string" && name.trim() ? name.trim() : undefined;
}
