/** Sorts of notices, their targets and their order. */

/** The codes of notices by sort. */
export const noticeSorts = {
    tasks: ["task-assigned", "task-changed", "task-removed", "task-overdue"],
    entries: ["entry-rejected", "entry-invalid", "entry-changed"],
    sharing: ["item-shared", "share-cancelled", "item-deleted"],
    defects: ["defect-assigned", "defect-modified"],
};

/** Returns the sort of a code: "tasks", "entries", "sharing", "defects" or "other". */
export function noticeSort(code) {
    return Object.keys(noticeSorts).find((sort) => noticeSorts[sort].includes(code)) ?? "other";
}

/** Returns the route of the object that a notice is about; undefined if it has none. */
export function noticeTarget({ code, about }) {
    const routes = { tasks: "tasks", entries: "time", sharing: "shared", defects: "defects" };
    const route = routes[noticeSort(code)];
    if (!route) return undefined;
    if (!about || code === "task-removed") return route;
    return `${route}/${about}`;
}

/** Returns the notices from the newest to the oldest, with a row {day} before the first one of each day. */
export function noticeRows(notices, dayOf) {
    const sorted = [...notices].sort((left, right) =>
        String(right.fields.timestamp ?? "").localeCompare(String(left.fields.timestamp ?? ""))
            || left.id.localeCompare(right.id));
    const rows = [];
    let day;
    for (const notice of sorted) {
        const next = dayOf(notice.fields.timestamp);
        if (next !== day) rows.push({ day: next });
        day = next;
        rows.push({ notice });
    }
    return rows;
}

/** Returns `excludedCodes` after a sort was switched on or off. */
export function excludeSort(excludedCodes, sort, isExcluded) {
    const others = (excludedCodes ?? []).filter((code) => !noticeSorts[sort].includes(code));
    return isExcluded ? [...others, ...noticeSorts[sort]] : others;
}
