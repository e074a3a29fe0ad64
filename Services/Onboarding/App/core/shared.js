/** Sharing: agenda, notes, recipients, history and restore, computed from the objects of the store. */

const day = 86_400_000;

/** Returns a person's display name from their `Person` and `PersonLookup` fields. */
export function personName(person, lookup) {
    const parts = [person?.firstName, person?.lastName].filter((part) => part?.trim()).join(" ");
    return person?.name?.trim() || parts || lookup?.name?.trim() || lookup?.email || "";
}

/**
 * Returns all people except the own one, sorted by name. A person without a name has the beginning of their id.
 *
 * @param {object[]} people `Person` objects.
 * @param {object[]} lookups `PersonLookup` objects.
 * @param {string} me Id of the own `Person`.
 * @returns {{id: string, name: string, email: ?string, avatar: ?string}[]}
 */
export function directory(people, lookups, me) {
    const byID = new Map(lookups.map((lookup) => [lookup.id, lookup.fields]));
    return people.filter(({ id }) => id !== me).map(({ id, fields }) => ({
        id, name: personName(fields, byID.get(id)) || id.slice(0, 8), email: byID.get(id)?.email ?? null,
        avatar: fields.avatar ?? null,
    })).sort((a, b) => a.id.startsWith(a.name) - b.id.startsWith(b.name) || a.name.localeCompare(b.name)
        || (a.id < b.id ? -1 : 1));
}

/** Returns the people whose name or address contains each word of the query. */
export function findPeople(people, query) {
    const words = fold(query).split(/\s+/u).filter(Boolean);
    return people.filter(({ name, email }) => {
        const text = fold(`${name} ${email ?? ""}`);
        return words.every((word) => text.includes(word));
    });
}

/** Returns the local day of a date as `YYYY-MM-DD`. */
export function localDay(date) {
    const two = (number) => String(number).padStart(2, "0");
    return `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Returns the local date at the start of a day `YYYY-MM-DD`. */
export function dayDate(text) {
    const [year, month, date] = text.split("-").map(Number);
    return new Date(year, month - 1, date);
}

/** Returns the local time of a date as `HH:MM`. */
export function localTime(date) {
    return `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
}

/** Returns the date of a local day and time, or undefined if one of them is not valid. */
export function localDate(dayText, timeText) {
    if (!/^\d{4}-\d\d-\d\d$/.test(dayText ?? "") || !/^\d\d:\d\d/.test(timeText ?? "")) return undefined;
    const [hour, minute] = timeText.split(":").map(Number);
    const date = dayDate(dayText);
    date.setHours(hour, minute);
    return Number.isNaN(date.getTime()) ? undefined : date;
}

/** Returns the next full hour. */
export function nextHour(now) {
    const date = new Date(now);
    date.setHours(date.getHours() + 1, 0, 0, 0);
    return date;
}

/**
 * Returns the recipients of the own items, as `SharedItemList` of the Swift client.
 *
 * @param {object[]} links Own `SharedItem` objects.
 * @returns {Map<string, {id: string, recipient: string, since: ?string, problem: ?string, isPending: boolean}[]>} Links
 *     by the id of the item, also those with a problem.
 */
export function linksByItem(links) {
    const result = new Map();
    for (const { id, fields, isPending } of links) {
        if (!fields.item || !fields.recipient) continue;
        if (!result.has(fields.item)) result.set(fields.item, []);
        result.get(fields.item).push({ id, recipient: fields.recipient, since: fields.since ?? null,
            problem: fields.problem ?? null, isPending });
    }
    return result;
}

/** Returns whether an item is shared: a link names it and has no problem. */
export function isShared(links, item) {
    return (links.get(item) ?? []).some(({ problem }) => !problem);
}

/**
 * Returns the differences between the current links of an item and the chosen recipients.
 *
 * @returns {{added: string[], removed: object[]}} Recipients to add, links to delete.
 */
export function shareChanges(links, recipients) {
    const chosen = new Set(recipients);
    const current = new Set(links.map(({ recipient }) => recipient));
    return {
        added: [...chosen].filter((recipient) => !current.has(recipient)),
        removed: links.filter(({ recipient }) => !chosen.has(recipient)),
    };
}

/**
 * Returns all appointments and notes that the person sees.
 *
 * @param {object} objects `own` and `copies`: `Appointment` and `Note` objects; `shares`: `Share` objects; `ended`:
 *     `EndedShare` objects; `links`: see `linksByItem`; `me`: id of the own `Person`.
 * @returns {object[]} Each with `key`, `id`, `kind`, `source` ("own", "copy" or "ended"), `title`, `owner`, `start`,
 *     `end`, `isShared` and `object`.
 */
export function items({ own, copies, shares, ended, links, me }) {
    const owners = new Map(shares.map(({ id, fields }) => [id, fields.owner]));
    const result = own.map((object) => item(object, "own", me, isShared(links, object.id)));
    for (const object of copies) {
        const owner = owners.get(object.realm.slice("/shares/".length));
        if (owner === me) continue;
        result.push(item(object, "copy", owner, true));
    }
    const current = new Set(result.filter(({ source }) => source === "copy").map(({ owner, id }) => `${owner} ${id}`));
    for (const object of ended) {
        const { fields } = object;
        if (fields.kind !== "Appointment" || current.has(`${fields.owner} ${fields.item}`)) continue;
        const last = { ...object, kind: "Appointment", fields: { ...fields, why: fields.title } };
        result.push({ ...item(last, "ended", fields.owner, false), id: fields.item, object });
    }
    return result;
}

function item(object, source, owner, shared) {
    const { fields, kind, id } = object;
    const start = kind === "Appointment" && fields.when ? new Date(fields.when) : null;
    return { key: `${source}-${object.realm}-${object.id}`, id, kind, source, owner, isShared: shared, object,
        title: (kind === "Appointment" ? fields.why : fields.title) ?? "", start,
        end: start && new Date(start.getTime() + (fields.durationMinutes ?? 0) * 60_000) };
}

/**
 * Returns the appointments by local day.
 *
 * @param {object[]} list See `items`.
 * @param {Date} now
 * @returns {{earlier: object[], upcoming: object[], today: string}} Days with `day` and `items`, in ascending order.
 *     `upcoming` always begins with today.
 */
export function agenda(list, now) {
    const today = localDay(now);
    const days = new Map();
    const appointments = list.filter(({ start }) => start && !Number.isNaN(start.getTime()))
        .sort((a, b) => a.start - b.start || a.end - b.end || (a.key < b.key ? -1 : 1));
    for (const appointment of appointments) {
        const name = localDay(appointment.start);
        if (!days.has(name)) days.set(name, { day: name, items: [] });
        days.get(name).items.push(appointment);
    }
    if (!days.has(today)) days.set(today, { day: today, items: [] });
    const sorted = [...days.values()].sort((a, b) => a.day < b.day ? -1 : 1);
    return { today, earlier: sorted.filter((entry) => entry.day < today),
        upcoming: sorted.filter((entry) => entry.day >= today) };
}

/** Returns the ids of own and shared appointments that overlap another one of the same day list. */
export function overlaps(list) {
    const result = new Set();
    const sorted = list.filter(({ source }) => source !== "ended");
    for (let index = 0; index < sorted.length; index++) {
        for (let other = index + 1; other < sorted.length && sorted[other].start < sorted[index].end; other++) {
            result.add(sorted[index].key).add(sorted[other].key);
        }
    }
    return result;
}

/** Returns the notes of `items`, in the order open tasks, notes, completed tasks, and by title in each. */
export function notes(list, query = "") {
    const rank = ({ object: { fields } }) => fields.isTask ? (fields.isDone ? 2 : 0) : 1;
    const words = fold(query).split(/\s+/u).filter(Boolean);
    return list.filter(({ kind, title, object }) => {
        const text = fold(`${title} ${object.fields.body ?? ""}`);
        return kind === "Note" && words.every((word) => text.includes(word));
    }).sort((a, b) => rank(a) - rank(b) || a.title.localeCompare(b.title) || (a.key < b.key ? -1 : 1));
}

/**
 * Returns the recipients of own items.
 *
 * @returns {{person: string, share: ?object, items: {item: object, link: object}[]}[]} By the time of the latest link.
 */
export function outgoing({ list, links, shares, me }) {
    const own = new Map(list.filter(({ source }) => source === "own").map((entry) => [entry.id, entry]));
    const people = new Map();
    const entry = (person) => {
        if (!people.has(person)) people.set(person, { person, share: null, items: [] });
        return people.get(person);
    };
    for (const share of shares) {
        if (share.fields.owner === me && !share.fields.endedBy) entry(share.fields.recipient).share = share;
    }
    for (const [id, itemLinks] of links) {
        if (!own.has(id)) continue;
        for (const link of itemLinks) entry(link.recipient).items.push({ item: own.get(id), link });
    }
    return [...people.values()].map((value) => ({ ...value, items: value.items.sort(byTitle) }));
}

/** Returns the people who share with the person: `share`, `person`, `since` and their `items`. */
export function incoming({ list, shares, me }) {
    return shares.filter(({ fields }) => fields.recipient === me && !fields.endedBy).map((share) => ({
        share, person: share.fields.owner, since: share.fields.since ?? null,
        items: list.filter(({ source, object }) => source === "copy" && object.realm === `/shares/${share.id}`)
            .map((entry) => ({ item: entry })).sort(byTitle),
    }));
}

function byTitle(a, b) {
    return a.item.title.localeCompare(b.item.title) || (a.item.key < b.item.key ? -1 : 1);
}

/** Removes duplicates of `Share`s, which are in their own realm and in those of both people. */
export function uniqueShares(shares) {
    const result = new Map();
    for (const share of shares) {
        const other = result.get(share.id);
        if (!other || !other.fields.endedBy) result.set(share.id, share);
    }
    return [...result.values()];
}

/**
 * Returns the put that restores a `DeletedObject`.
 *
 * @returns {?{kind: string, id: string, fields: object}} Null if its content is not complete.
 */
export function restoration({ id, fields }) {
    const pick = (names) => Object.fromEntries(names.filter((name) => fields[name] !== undefined
        && fields[name] !== null).map((name) => [name, fields[name]]));
    switch (fields.kind) {
    case "Appointment":
        if (!fields.when) return null;
        return { kind: fields.kind, id, fields: { durationMinutes: 0, why: "",
            ...pick(["when", "durationMinutes", "why"]) } };
    case "Note":
        return { kind: fields.kind, id, fields: { title: "", ...pick(["title", "body", "isTask", "isDone"]) } };
    case "SharedItem":
        if (!fields.item || !fields.recipient || !fields.itemKind) return null;
        return { kind: fields.kind, id, fields: { kind: fields.itemKind, ...pick(["item", "recipient", "since"]) } };
    default:
        return null;
    }
}

/**
 * Returns the deleted items and the ended shares of the person, newest first.
 *
 * @param {object} objects `deleted`: `DeletedObject`s; `ended`: `EndedShare`s; `list`: see `items`.
 * @returns {object[]} Each with `id`, `type` ("item", "outgoing" or "incoming"), `kind`, `title`, `at`, `reason`,
 *     `person`, `since`, `object` and `canRestore`.
 */
export function history({ deleted, ended, list }) {
    const own = new Map(list.filter(({ source }) => source === "own").map((entry) => [entry.id, entry]));
    const deletedByID = new Map(deleted.map((object) => [object.id, object]));
    const result = deleted.map((object) => {
        const { id, fields } = object;
        const base = { id, object, at: fields.deletedAt, reason: fields.reason ?? null, since: fields.since ?? null };
        if (fields.kind !== "SharedItem") {
            return { ...base, type: "item", kind: fields.kind, person: null, canRestore: Boolean(restoration(object)),
                title: (fields.kind === "Appointment" ? fields.why : fields.title) ?? "" };
        }
        const named = own.get(fields.item);
        const gone = deletedByID.get(fields.item)?.fields;
        return { ...base, type: "outgoing", kind: fields.itemKind, person: fields.recipient ?? null,
            title: named?.title ?? gone?.why ?? gone?.title ?? "",
            canRestore: Boolean(named) && Boolean(restoration(object)) };
    });
    for (const object of ended) {
        const { id, fields } = object;
        result.push({ id, object, type: "incoming", kind: fields.kind, title: fields.title ?? "", at: fields.endedAt,
            reason: fields.reason, person: fields.owner, since: fields.since ?? null, canRestore: false });
    }
    return result.sort((a, b) => a.at < b.at ? 1 : a.at > b.at ? -1 : a.id < b.id ? -1 : 1);
}

/** Returns the days until an object is removed, if it is retained for 30 days, the default of an environment. */
export function daysRetained(deletedAt, now, retentionDays = 30) {
    return Math.max(0, Math.ceil((new Date(deletedAt).getTime() + retentionDays * day - now.getTime()) / day));
}

/**
 * Returns which copies are new or changed since the person last saw them.
 *
 * @param {object[]} list See `items`.
 * @param {?Object<string, number>} seen Positions by the key of the copy; null before the first time.
 * @returns {Map<string, "new"|"changed">}
 */
export function unseen(list, seen) {
    const result = new Map();
    if (!seen) return result;
    for (const { key, source, object } of list) {
        if (source !== "copy") continue;
        if (seen[key] === undefined) result.set(key, "new");
        else if (object.position > seen[key]) result.set(key, "changed");
    }
    return result;
}

/** Returns the positions of all copies, to be stored as seen. */
export function positions(list) {
    return Object.fromEntries(list.filter(({ source }) => source === "copy")
        .map(({ key, object }) => [key, object.position]));
}

/** Returns the names of the fields that are missing or not valid in a form of an appointment. */
export function appointmentProblems({ why, day: dayText, from, to }) {
    const start = localDate(dayText, from);
    const end = localDate(dayText, to);
    return [!why?.trim() && "why", !localDate(dayText, "00:00") && "day", !start && "from",
        !end && "to"].filter(Boolean);
}

/** Returns the fields of an appointment from its form. An end before the start is on the next day. */
export function appointmentFields({ why, day: dayText, from, to }) {
    const start = localDate(dayText, from);
    const end = localDate(dayText, to);
    if (end < start) end.setDate(end.getDate() + 1);
    return { why: why.trim(), when: start.toISOString(), durationMinutes: Math.round((end - start) / 60_000) };
}

function fold(text) {
    return String(text ?? "").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
