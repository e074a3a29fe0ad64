/** Defects of the tracker: lists, details of commands, forms and conflicts, computed from the objects of the store. */

/** The operations whose result is a `detail`. */
const reading = new Set(["read", "form", "queries", "runQuery"]);

/** Returns whether an operation only reads. */
export function isRead(operation) {
    return reading.has(operation) || operation === "choices";
}

/** The tracker's field names of the fields of a `Defect`. */
export const fieldNames = { headline: "Headline", state: "State", severity: "Severity", priority: "Priority",
    owner: "Owner", submitter: "Submitter", submitDate: "Submit_Date" };

/**
 * Returns a key that is equal for commands that read the same.
 *
 * @param {object} fields Fields of a `DefectCommand`.
 */
export function requestKey({ operation, record, actionName, fields, choicesOf, folder, query, fromRow }) {
    const sorted = Object.keys(fields ?? {}).sort().map((name) => [name, fields[name]]);
    return JSON.stringify([operation, record || null, actionName ?? null, sorted, choicesOf ?? [], folder || null,
        query || null, fromRow ?? 0]);
}

/**
 * Collects the newest finished detail of each request, as `DefectDetails` of the Swift client.
 *
 * @param {object[]} commands `DefectCommand` objects.
 * @returns {{details: Map<string, {detail: object, messages: string[], id: string}>, pending: Set<string>,
 *     failures: Map<string, object>, superseded: string[]}} By `requestKey`. `failures` are the finished commands
 *     without a detail. `superseded` are the ids of commands to delete.
 */
export function collectDetails(commands) {
    const details = new Map();
    const pending = new Set();
    const superseded = [];
    const failed = new Map();
    for (const { id, fields, position } of commands) {
        if (!fields.submitRequested) continue;
        const reads = reading.has(fields.operation);
        const key = requestKey(reads ? fields : { operation: "read", record: fields.record });
        if (reads && (fields.status ?? "waiting") === "waiting") pending.add(key);
        if (!fields.detail) {
            if (reads && ["refused", "unknown"].includes(fields.status)) {
                const other = failed.get(key);
                if (other) superseded.push(other.position < position ? other.id : id);
                if (!other || other.position < position) failed.set(key, { id, position, fields });
            }
            continue;
        }
        const entry = { detail: fields.detail, messages: fields.messages ?? [], id, reads, position,
            order: fields.detail.readAt ?? "" };
        const other = details.get(key);
        const isNewer = !other || entry.order > other.order || (entry.order === other.order && id > other.id);
        if (other && (isNewer ? other : entry).reads) superseded.push((isNewer ? other : entry).id);
        if (isNewer) details.set(key, entry);
    }
    const failures = new Map();
    for (const [key, failure] of failed) {
        const detail = details.get(key);
        if (detail && detail.position > failure.position) superseded.push(failure.id);
        else failures.set(key, failure);
    }
    return { details, pending, failures, superseded };
}

/**
 * Returns the commands of a record that change it, newest first.
 *
 * @returns {object[]} Commands with `state`: "queued", "waiting", "done", "refused", "conflict" or "unknown".
 */
export function changesOf(commands, record) {
    return commands.filter(({ fields }) => !isRead(fields.operation) && fields.submitRequested
        && (record === null ? fields.operation === "create" : fields.record === record))
        .map((command) => ({ ...command, state: commandState(command) }))
        .sort((a, b) => (b.position || Infinity) - (a.position || Infinity) || (a.id < b.id ? -1 : 1));
}

/** Returns the state of a submitted command. */
export function commandState({ fields, position, isPending }) {
    if (fields.status && fields.status !== "waiting") return fields.status;
    return isPending && position === 0 ? "queued" : "waiting";
}

/** Returns the records with a change that is not finished, or that ended without success. */
export function recordStates(commands) {
    const result = new Map();
    const ranks = { conflict: 5, refused: 4, unknown: 3, queued: 2, waiting: 1 };
    for (const command of commands) {
        const { operation, record, submitRequested } = command.fields;
        if (!record || isRead(operation) || !submitRequested) continue;
        const state = commandState(command);
        if ((ranks[state] ?? 0) > (ranks[result.get(record)] ?? 0)) result.set(record, state);
    }
    return result;
}

/**
 * Returns the defects of a scope, filtered and sorted.
 *
 * @param {object[]} defects `Defect` objects.
 * @param {object} options `scope`: "assigned" or "reported"; `query`; `state`; `sort`: "severity", "priority",
 *     "newest" or "record".
 */
export function listDefects(defects, { scope, query = "", state = "", sort = "severity" }) {
    const words = fold(query).split(/\s+/u).filter(Boolean);
    const compare = {
        severity: (a, b) => rank(a.severity) - rank(b.severity) || rank(a.priority) - rank(b.priority),
        priority: (a, b) => rank(a.priority) - rank(b.priority) || rank(a.severity) - rank(b.severity),
        newest: (a, b) => text(b.submitDate).localeCompare(text(a.submitDate)),
        record: () => 0,
    }[sort];
    return defects.filter(({ fields }) => {
        if (scope === "assigned" && !fields.isAssignedToMe) return false;
        if (scope === "reported" && !fields.isReportedByMe) return false;
        if (state && fields.state !== state) return false;
        const searched = fold([fields.record, fields.headline, fields.state, fields.severity, fields.priority,
            fields.owner, fields.submitter].join(" "));
        return words.every((word) => searched.includes(word));
    }).sort((a, b) => compare(a.fields, b.fields)
        || text(a.fields.record).localeCompare(text(b.fields.record), undefined, { numeric: true }));
}

/** Returns the states of the defects, sorted. */
export function statesOf(defects) {
    return [...new Set(defects.map(({ fields }) => fields.state).filter(Boolean))].sort();
}

/** Returns the kind of a chip for a severity or a priority such as `1-Critical`. */
export function rankKind(value) {
    const number = rank(value);
    return number === 1 ? "bad" : number === 2 ? "warn" : number === 3 ? "info" : "muted";
}

/** Returns the kind of a chip for a state. */
export function stateKind(state) {
    return { Submitted: "info", Assigned: "warn", Opened: "warn", Resolved: "ok", Closed: "muted" }[state] ?? "muted";
}

function rank(value) {
    const match = /^(\d+)/.exec(value ?? "");
    return match ? Number(match[1]) : 99;
}

/** Returns the value without its number: "2-Major" is "Major". */
export function valueLabel(value) {
    return text(value).replace(/^\d+-/, "");
}

/** Returns the name of a field for people: "Submit_Date" is "Submit Date", "record_type" is "Record type". */
export function fieldLabel(name) {
    const label = text(name).replaceAll("_", " ").trim();
    return label.charAt(0).toUpperCase() + label.slice(1);
}

/** Returns a value for people. The tracker's times, such as "2026-11-27 06:48:05", follow the locale. */
export function fieldValue(value, format) {
    const time = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2})?)$/.exec(text(value));
    return time ? format.dateTime(`${time[1]}T${time[2]}`) : value;
}

/** Returns whether a field serves the tracker rather than people. */
export function isTechnical(name) {
    return /^(dbid|id|is_active|is_duplicate|lock_version|locked_by|ratl_\w+|record_type|unduplicate_state|version)$/i
        .test(name);
}

/** Returns the names of fields that are displayed as several lines. */
export function isMultiline({ name, type, value }) {
    return type === "MULTILINE_STRING" || /\n/.test(value ?? "") || /description|note/i.test(name);
}

/** Returns the fields of a form that can be edited, mandatory ones first. */
export function editableFields(form) {
    const fields = (form?.fields ?? []).filter(({ requiredness, isTruncated }) => requiredness !== "readOnly"
        && !isTruncated);
    return [...fields.filter(({ requiredness }) => requiredness === "mandatory"),
        ...fields.filter(({ requiredness }) => requiredness !== "mandatory")];
}

/**
 * Merges the forms of one action: the first with values and choices that depend on none, the second with those that
 * depend on the edited ones.
 *
 * @param {?object} first Detail of the `form` without `fields`.
 * @param {?object} second Detail of the newest `form` with `fields`.
 */
export function mergeForms(first, second) {
    if (!first || !second) return first ?? second;
    const newer = new Map((second.fields ?? []).map((field) => [field.name, field]));
    return { ...first, fields: (first.fields ?? []).map((field) => {
        const other = newer.get(field.name);
        return other ? { ...field, requiredness: other.requiredness, choices: other.choices ?? field.choices } : field;
    }) };
}

/**
 * Returns the changed values and the values that the person saw.
 *
 * @param {object} form Detail of a `form`, or of a `read`.
 * @param {Object<string, string>} edits Edited values by field name.
 * @returns {{fields: Object<string, string>, base: Object<string, string>}}
 */
export function changedFields(form, edits) {
    const fields = {};
    const base = {};
    for (const [name, value] of Object.entries(edits)) {
        const field = form?.fields?.find((candidate) => candidate.name === name);
        if (!field || value === (field.value ?? "")) continue;
        fields[name] = value;
        if (field.value !== undefined && field.value !== null && !field.isTruncated) base[name] = field.value;
    }
    return { fields, base };
}

/** Returns the names of mandatory fields without a value. */
export function missingFields(form, edits) {
    return editableFields(form).filter(({ name, requiredness, value }) => requiredness === "mandatory"
        && !(edits[name] ?? value ?? "").trim()).map(({ name }) => name);
}

/** Returns the names of fields whose value is not one of their choices. Only lists that were read are checked. */
export function outsideChoices(form, edits) {
    return editableFields(form).filter(({ name, value, choices }) => {
        const current = edits[name] ?? value ?? "";
        return choices?.length && current !== "" && !choices.includes(current);
    }).map(({ name }) => name);
}

/**
 * Returns the fields of a form that have a list, with the edited values that other lists may depend on.
 *
 * @returns {Object<string, string>} `fields` of the next `form` command, empty if no field with a list was edited.
 */
export function dependencies(form, edits) {
    const result = {};
    for (const { name, choices, value } of form?.fields ?? []) {
        if (choices?.length && edits[name] !== undefined && edits[name] !== (value ?? "")) result[name] = edits[name];
    }
    return result;
}

/**
 * Returns the values of a conflict side by side.
 *
 * @param {object} command A `DefectCommand` with the status `conflict`.
 * @returns {{name: string, seen: ?string, now: ?string, mine: ?string, isChanged: boolean}[]} One line for each field
 *     of `base` and `fields`; `now` is undefined if the record could not be read.
 */
export function conflictLines({ fields: { base, fields, detail } }) {
    const current = new Map((detail?.fields ?? []).map((field) => [field.name, field.value]));
    const names = [...new Set([...Object.keys(base ?? {}), ...Object.keys(fields ?? {})])];
    return names.map((name) => {
        const seen = base?.[name];
        const now = current.get(name) ?? undefined;
        return { name, seen, now, mine: fields?.[name],
            isChanged: seen !== undefined && now !== undefined && seen !== now };
    }).sort((a, b) => Number(b.isChanged) - Number(a.isChanged));
}

/**
 * Returns the command that repeats a conflicting one with the values of now as its base.
 *
 * @param {object} command
 * @param {Object<string, "mine"|"theirs">} choices By field name; "mine" by default.
 * @returns {?object} Fields of the new command; null if it would change nothing.
 */
export function resolution(command, choices) {
    const { operation, record, actionName } = command.fields;
    const fields = {};
    const base = {};
    for (const { name, seen, now, mine } of conflictLines(command)) {
        if (mine !== undefined && choices[name] !== "theirs" && mine !== now) fields[name] = mine;
        if ((name in fields || mine === undefined) && (now ?? seen) !== undefined) base[name] = now ?? seen;
    }
    if (operation === "modify" && Object.keys(fields).length === 0) return null;
    return { operation, record, ...(actionName ? { actionName } : {}), fields, base, submitRequested: true };
}

/**
 * Returns the rows of a query's pages, in their order.
 *
 * @param {Map} details See `collectDetails`.
 * @returns {{columns: string[], rows: string[][], nextRow: ?number, readAt: ?string, pages: number}}
 */
export function queryRows(details, query) {
    const result = { columns: [], rows: [], nextRow: 0, readAt: null, pages: 0 };
    while (result.nextRow !== null) {
        const page = details.get(requestKey({ operation: "runQuery", query, fromRow: result.nextRow }))?.detail;
        if (!page) break;
        result.columns = page.columns ?? [];
        result.rows.push(...page.rows ?? []);
        result.pages += 1;
        const readAt = page.readAt ?? null;
        if (!result.readAt || (readAt && readAt < result.readAt)) result.readAt = readAt;
        const next = page.nextRow ?? null;
        result.nextRow = next !== null && next > result.nextRow ? next : null;
    }
    return result;
}

/** Returns the record that a query's row names, by its column `id`; undefined if it has none. */
export function rowRecord(columns, row) {
    const index = columns.findIndex((column) => column.toLowerCase() === "id");
    return index >= 0 && row[index] ? row[index] : undefined;
}

function text(value) {
    return value ?? "";
}

function fold(value) {
    return String(value ?? "").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
