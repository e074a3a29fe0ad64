/**
 * Time entries without DOM and store: days, durations, totals, copies, overlaps, the timer, statuses and their logs.
 * Entries are objects with `id` and `fields`, as `Fieldpost.objects("TimeEntry")` returns them.
 */

const daySeconds = 86_400;
/** Maximum length of a submitted text in UTF-16 units; an environment may have another one. */
export const textLengthMax = 40;

// Days

/** Returns the day of a date by the device's clock, such as "2026-03-30". */
export function dayOf(date) {
    return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** Returns whether a text is a day of the calendar. */
export function isDay(text) {
    return /^\d{4}-\d{2}-\d{2}$/.test(text ?? "") && addDays(text, 0) === text;
}

/** Returns the day that is `count` days later. */
export function addDays(day, count) {
    const date = new Date(`${day}T00:00:00Z`);
    date.setUTCDate(date.getUTCDate() + count);
    return Number.isNaN(date.getTime()) ? undefined : date.toISOString().slice(0, 10);
}

/** Returns noon of a day by the device's clock, for formatting. */
export function dateOf(day) {
    return new Date(`${day}T12:00:00`);
}

/** Returns the weekday of a day: 0 is Sunday. */
export function weekdayOf(day) {
    return new Date(`${day}T00:00:00Z`).getUTCDay();
}

/** Returns the seven days of the week that contains a day. */
export function weekOf(day, firstWeekday = 1) {
    const first = addDays(day, -((weekdayOf(day) - firstWeekday + 7) % 7));
    return Array.from({ length: 7 }, (_, index) => addDays(first, index));
}

/** Returns the days from `first` to `last`, at most `countMax`; without weekends if `isWorkdaysOnly`. */
export function daysBetween(first, last, { isWorkdaysOnly = false, countMax = 62 } = {}) {
    const days = [];
    for (let day = first; day <= last && days.length < countMax; day = addDays(day, 1)) {
        if (!isWorkdaysOnly || ![0, 6].includes(weekdayOf(day))) days.push(day);
    }
    return days;
}

// Durations and times of day

/**
 * Returns the seconds of a typed duration: "7:30", "7.5", "7,5", "7h30", "7 h 30 min", "45m", "45 min", "7".
 * A number without a unit is hours. Undefined if the text is no duration.
 */
export function parseDuration(text) {
    const typed = String(text ?? "").trim().toLowerCase();
    let match = typed.match(/^(\d{1,3}):([0-5]\d)$/);
    if (match) return Number(match[1]) * 3600 + Number(match[2]) * 60;
    match = typed.match(/^(\d{1,3}(?:[.,]\d{1,4})?|[.,]\d{1,4})\s*(?:h|hours?|std\.?|stunden?|t|timer?)?$/);
    if (match) return Math.round(Number(match[1].replace(",", ".")) * 3600);
    match = typed.match(/^(\d{1,4})\s*(?:m|min\.?|minutes?|minuten?|minutter)$/);
    if (match) return Number(match[1]) * 60;
    match = typed.match(/^(\d{1,3})\s*(?:h|std\.?|t)\s*([0-5]?\d)\s*(?:m|min\.?)?$/);
    if (match) return Number(match[1]) * 3600 + Number(match[2]) * 60;
    return undefined;
}

/** Returns a duration as hours and minutes, such as "7:30", rounded to a minute. */
export function durationText(seconds) {
    const minutes = Math.round(Math.abs(seconds ?? 0) / 60);
    return `${(seconds ?? 0) < 0 && minutes > 0 ? "−" : ""}${Math.floor(minutes / 60)}:${pad(minutes % 60)}`;
}

/** Returns the minutes of a typed time of day: "8", "8:30", "8.30", "830", "0830", "5 pm". Undefined if it is none. */
export function parseClock(text) {
    const match = String(text ?? "").trim().toLowerCase()
        .match(/^(\d{1,2})(?:[:.,h]?([0-5]\d))?\s*(am|pm|a|p|uhr)?$/);
    if (!match) return undefined;
    let hours = Number(match[1]);
    const half = match[3]?.[0];
    if ((half === "a" || half === "p") && (hours < 1 || hours > 12)) return undefined;
    if (half === "p" && hours < 12) hours += 12;
    if (half === "a" && hours === 12) hours = 0;
    const minutes = hours * 60 + Number(match[2] ?? 0);
    return minutes <= 24 * 60 ? minutes : undefined;
}

/** Returns the time of day as "08:30" that an ISO time has by its own offset; empty without a time. */
export function clockOf(time) {
    return time?.match(/T(\d{2}:\d{2})/)?.[1] ?? "";
}

/** Returns an ISO time with the device's offset at that moment, such as "2015-03-30T08:00:00-04:00". */
export function localTime(day, minutes) {
    const [year, month, date] = day.split("-").map(Number);
    return isoWithOffset(new Date(year, month - 1, date, 0, minutes));
}

/** Returns a date as an ISO time in seconds with the device's offset. */
export function isoWithOffset(date) {
    const offset = -date.getTimezoneOffset();
    const sign = offset < 0 ? "-" : "+";
    const zone = `${sign}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`;
    return `${dayOf(date)}T${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}${zone}`;
}

/** Returns the fields of an interval on a day. An end that is not after the start is on the next day. */
export function intervalFields(day, startMinutes, endMinutes) {
    const endDay = endMinutes <= startMinutes ? addDays(day, 1) : day;
    return { timeType: "interval", startTime: localTime(day, startMinutes), endTime: localTime(endDay, endMinutes) };
}

/** Returns the seconds of an entry by its `timeType`; 0 if they are missing. */
export function entrySeconds(fields) {
    if (fields.timeType !== "interval") return fields.durationSeconds ?? 0;
    if (!fields.startTime || !fields.endTime) return 0;
    const seconds = Math.round((Date.parse(fields.endTime) - Date.parse(fields.startTime)) / 1000);
    return Number.isFinite(seconds) ? seconds : 0;
}

// Lists

/** Returns the entries of a day: intervals by their start, then durations by their creation. */
export function entriesOf(entries, day) {
    return entries.filter((entry) => entry.fields.entryDate === day).sort(compareInDay);
}

/** Returns the entries by day, each day sorted. */
export function entriesByDay(entries) {
    const days = new Map();
    for (const entry of entries) {
        const day = entry.fields.entryDate ?? "";
        if (!days.has(day)) days.set(day, []);
        days.get(day).push(entry);
    }
    for (const list of days.values()) list.sort(compareInDay);
    return days;
}

/** Returns the entries with the latest day first. */
export function latestFirst(entries) {
    return [...entries].sort((a, b) => compare(b.fields.entryDate ?? "", a.fields.entryDate ?? "")
        || compare(b.fields.createdOn ?? "", a.fields.createdOn ?? "") || b.position - a.position
        || compare(a.id, b.id));
}

/**
 * Returns the sums of entries in seconds. Suggestions and entries whose deletion is requested do not count.
 *
 * @returns {{seconds: number, draft: number, submitted: number, invalid: number, rejected: number, count: number}}
 */
export function totals(entries) {
    const sums = { seconds: 0, draft: 0, submitted: 0, invalid: 0, rejected: 0, count: 0 };
    for (const { fields } of entries) {
        const state = stateOf(fields);
        if (state === "suggestion" || state === "deleting") continue;
        const seconds = entrySeconds(fields);
        sums.seconds += seconds;
        sums.count += 1;
        const group = { draft: "draft", invalid: "invalid", rejected: "rejected" }[state] ?? "submitted";
        sums[group] += seconds;
    }
    return sums;
}

/** Returns the ids of the entries whose intervals overlap another one of the list. */
export function overlapping(entries) {
    const spans = entries.filter(({ fields }) => fields.timeType === "interval" && fields.startTime && fields.endTime
        && stateOf(fields) !== "deleting")
        .map(({ id, fields }) => ({ id, start: Date.parse(fields.startTime), end: Date.parse(fields.endTime) }))
        .sort((a, b) => a.start - b.start);
    const found = new Set();
    let latest;
    for (const span of spans) {
        if (latest && span.start < latest.end) {
            found.add(latest.id);
            found.add(span.id);
        }
        if (!latest || span.end > latest.end) latest = span;
    }
    return found;
}

/** Returns the codes of what is unusual about a day's entries: `overlap`, `over-24-hours`. */
export function dayWarnings(entries) {
    const warnings = [];
    if (overlapping(entries).size > 0) warnings.push("overlap");
    if (totals(entries).seconds > daySeconds) warnings.push("over-24-hours");
    return warnings;
}

/** Returns the fields of a draft with the content of an entry on another day. */
export function copyOf(fields, day, today) {
    const copy = { status: "draft", entryDate: day, createdOn: today, timeType: fields.timeType ?? "duration" };
    for (const name of ["text", "reportingTemplate", "reporting"]) if (fields[name]) copy[name] = fields[name];
    if (copy.timeType === "interval") {
        const [start, end] = [parseClock(clockOf(fields.startTime)), parseClock(clockOf(fields.endTime))];
        if (start !== undefined && end !== undefined) Object.assign(copy, intervalFields(day, start, end));
    } else if (fields.durationSeconds) {
        copy.durationSeconds = fields.durationSeconds;
    }
    return copy;
}

/** Returns the latest day before `day` that has entries to copy; undefined without any in `countMax` days. */
export function dayToCopy(entries, day, countMax = 14) {
    const first = addDays(day, -countMax);
    let found;
    for (const { fields } of entries) {
        const other = fields.entryDate;
        if (!other || other >= day || other < first || ["suggestion", "deleting"].includes(stateOf(fields))) continue;
        if (!found || other > found) found = other;
    }
    return found;
}

/** Returns the drafts among entries: those that "submit the day" submits. Refused entries need an edit first. */
export function submittable(entries) {
    return entries.filter(({ fields }) => stateOf(fields) === "draft");
}

// Selections

/** Returns a text that is equal for entries with the same template and selections. */
export function selectionKey(fields) {
    const reporting = (fields.reporting ?? []).map(({ context, node }) => `${context}=${node}`).sort();
    return `${fields.reportingTemplate ?? ""}|${reporting.join(",")}`;
}

/** Returns the template and selections of the latest entries, each once, the latest first. */
export function recentSelections(entries, countMax = 8) {
    const found = new Map();
    for (const { fields } of latestFirst(entries)) {
        if (!fields.reportingTemplate || !fields.reporting?.length) continue;
        const key = selectionKey(fields);
        if (!found.has(key)) {
            found.set(key, { reportingTemplate: fields.reportingTemplate, reporting: fields.reporting });
        }
        if (found.size >= countMax) break;
    }
    return [...found.values()];
}

/** Returns the favourites with a selection added, or removed if they have it. */
export function toggleFavourite(favourites, { reportingTemplate, reporting }, countMax = 50) {
    const key = selectionKey({ reportingTemplate, reporting });
    const others = favourites.filter((favourite) => selectionKey(favourite) !== key);
    return others.length < favourites.length ? others
        : [{ reportingTemplate, reporting }, ...favourites].slice(0, countMax);
}

// Timer

/** Returns the seconds that a timer has run; 0 if the clock was set back. */
export function timerSeconds(timer, now) {
    return Math.max(0, Math.floor((now.getTime() - timer.startedAt) / 1000));
}

/** Returns seconds rounded to the next step, at least one step. */
export function roundSeconds(seconds, stepMinutes) {
    const step = Math.max(1, stepMinutes) * 60;
    return Math.max(step, Math.round(seconds / step) * step);
}

/**
 * Returns the fields of the draft that a stopped timer becomes: an interval from its start, of the rounded duration, at
 * most 24 hours.
 */
export function timerFields(timer, now, stepMinutes) {
    const start = new Date(Math.floor(timer.startedAt / 60_000) * 60_000);
    const seconds = Math.min(daySeconds, roundSeconds(timerSeconds(timer, now), stepMinutes));
    const fields = { status: "draft", entryDate: dayOf(start), createdOn: dayOf(now), timeType: "interval",
        startTime: isoWithOffset(start), endTime: isoWithOffset(new Date(start.getTime() + seconds * 1000)) };
    for (const name of ["text", "reportingTemplate", "reporting"]) if (timer[name]) fields[name] = timer[name];
    return fields;
}

/**
 * Returns the last instant at which the clock showed these minutes of the day, in milliseconds since 1970. A time of
 * the day before counts if it is at most 12 hours ago; otherwise the result is undefined.
 */
export function startBefore(now, minutes) {
    const start = new Date(now);
    start.setHours(0, minutes, 0, 0);
    if (start > now) start.setDate(start.getDate() - 1);
    const isToday = start.getDate() === now.getDate();
    return isToday || now - start <= 43_200_000 ? start.getTime() : undefined;
}

// Statuses

const chipKinds = { suggestion: "muted", draft: "muted", submitting: "info", submitted: "info", withdrawing: "info",
    deleting: "warn", invalid: "bad", released: "ok", rejected: "bad", approved: "ok", recorded: "ok" };

/**
 * Returns the displayed state of an entry: its status or, while a request waits for the server, `submitting`,
 * `withdrawing` or `deleting`.
 */
export function stateOf(fields) {
    const status = fields.status ?? "draft";
    if (fields.deleteRequested) return "deleting";
    if (["suggestion", "draft"].includes(status)) return fields.submitRequested ? "submitting" : status;
    return fields.submitRequested === false && !["recorded", "invalid"].includes(status) ? "withdrawing" : status;
}

/** Returns the kind of chip for a state. */
export function kindOf(state) {
    return chipKinds[state] ?? "muted";
}

/** Returns what the person can do with an entry. */
export function actionsOf(fields) {
    const state = stateOf(fields);
    const isClosed = state === "recorded" || state === "deleting";
    return {
        canEdit: !isClosed,
        canSubmit: ["suggestion", "draft", "invalid", "withdrawing"].includes(state),
        canWithdraw: ["submitting", "submitted", "released", "rejected", "approved"].includes(state),
        canDelete: !isClosed,
        /** Whether an edit is a request to change the record in the back end. */
        changesRecord: ["submitting", "submitted", "released", "rejected", "approved"].includes(state),
        /** Whether a deletion is a request that the back end decides. */
        requestsDeletion: !["suggestion", "draft", "deleting"].includes(state)
            && !(state === "invalid" && !fields.backendId),
    };
}

/** Returns the lines of an entry's status log, the newest first. `lines`: objects of kind `TimeEntryStatus`. */
export function statusLog(lines, entry) {
    return lines.filter(({ fields }) => fields.entry === entry)
        .sort((a, b) => Date.parse(b.fields.timestamp) - Date.parse(a.fields.timestamp)
            || compare(b.fields.timestamp, a.fields.timestamp) || compare(b.id, a.id))
        .map(({ id, fields }) => ({ id, ...fields }));
}

/**
 * Returns the messages that explain the current status: those of the newest lines, which one decision wrote.
 *
 * @param {object[]} log The result of `statusLog`.
 */
export function reasons(log) {
    const found = [];
    for (const [index, line] of log.entries()) {
        const newer = log[index - 1];
        if (line.status !== log[0].status || !line.message) break;
        if (newer && Date.parse(newer.timestamp) - Date.parse(line.timestamp) > 1000) break;
        found.unshift({ message: line.message, code: line.code ?? undefined });
    }
    return found;
}

/**
 * Returns the problems of an entry's day, time and text that prevent its submission.
 *
 * @returns {{code: string, field: string}[]}
 */
export function timeProblems(fields) {
    const problems = [];
    const add = (code, field) => problems.push({ code, field });
    if (!fields.entryDate) add("date-missing", "entryDate");
    const isInterval = fields.timeType === "interval";
    if (isInterval && !fields.startTime) add("start-missing", "startTime");
    if (isInterval && !fields.endTime) add("end-missing", "endTime");
    if (!isInterval && (fields.durationSeconds ?? null) === null) {
        add("duration-missing", "durationSeconds");
    } else if (!isInterval || (fields.startTime && fields.endTime)) {
        const seconds = entrySeconds(fields);
        const field = isInterval ? "endTime" : "durationSeconds";
        if (seconds <= 0) add(isInterval ? "end-before-start" : "duration-zero", field);
        else if (seconds > daySeconds) add("duration-too-long", field);
        else if (seconds < 18) add("duration-too-short", field);
    }
    if ((fields.text ?? "").length > textLengthMax) add("text-too-long", "text");
    return problems;
}

function compareInDay(a, b) {
    const [x, y] = [startOf(a), startOf(b)];
    return (x === y ? 0 : x - y) || compare(a.fields.createdOn ?? "", b.fields.createdOn ?? "") || compare(a.id, b.id);
}

function startOf({ fields }) {
    return fields.timeType === "interval" && fields.startTime ? Date.parse(fields.startTime) : Infinity;
}

function compare(a, b) {
    return a < b ? -1 : a > b ? 1 : 0;
}

function pad(number) {
    return String(number).padStart(2, "0");
}
