/** Dates, times, durations and numbers by locale. */

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** Returns the date of a `Date`, of milliseconds since 1970, or of an ISO string. A date without time is local. */
export function toDate(value) {
    if (value instanceof Date) return value;
    const match = typeof value === "string" && /^(\d{4})-(\d{2})-(\d{2})$/.exec(value);
    return match ? new Date(Number(match[1]), Number(match[2]) - 1, Number(match[3])) : new Date(value);
}

/** Returns the first weekday of a locale: 0 Sunday … 6 Saturday. */
export function firstWeekday(tag) {
    try {
        const locale = new Intl.Locale(tag);
        const info = locale.getWeekInfo?.() ?? locale.weekInfo;
        if (info?.firstDay) return info.firstDay % 7;
        const region = locale.maximize().region;
        return ["US", "CA", "MX", "BR", "JP", "IN", "IL", "AU", "ZA"].includes(region) ? 0 : 1;
    } catch {
        return 1;
    }
}

/** Returns "7:30" for 27,000 seconds; negative durations have a minus sign. */
export function hours(seconds) {
    const minutes = Math.round(Math.abs(Number(seconds) || 0) / minute);
    const sign = Number(seconds) < 0 && minutes > 0 ? "−" : "";
    return `${sign}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
}

/** Returns the seconds of "7:30", "7.5", "7,5" or "7"; undefined if the text is not a duration. */
export function parseHours(text) {
    const trimmed = String(text ?? "").trim();
    const clock = /^(\d{1,3}):([0-5]?\d)$/.exec(trimmed);
    if (clock) return Number(clock[1]) * hour + Number(clock[2]) * minute;
    if (!/^\d{1,3}([.,]\d{0,2})?$/.test(trimmed)) return undefined;
    return Math.round(Number(trimmed.replace(",", ".")) * 60) * minute;
}

/**
 * Returns the formatter of a locale. Every function accepts a `Date`, milliseconds or an ISO string, and returns
 * an empty string for a value that is not a date.
 *
 * @param {string} locale
 * @param {{now?: () => Date, timeZone?: string}} options
 */
export function formatter(locale, { now = () => new Date(), timeZone } = {}) {
    const dateFormats = new Map();
    const format = (value, options) => {
        const date = toDate(value);
        if (value === null || value === undefined || Number.isNaN(date.getTime())) return "";
        const name = JSON.stringify(options);
        if (!dateFormats.has(name)) dateFormats.set(name, new Intl.DateTimeFormat(locale, { timeZone, ...options }));
        return dateFormats.get(name).format(date);
    };
    const numberFormats = new Map();
    const relativeFormat = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
    const isThisYear = (value) => toDate(value).getFullYear() === now().getFullYear();
    const date = (value) => format(value, isThisYear(value)
        ? { day: "numeric", month: "short" } : { day: "numeric", month: "short", year: "numeric" });
    const dayMonth = (value) => format(value, { day: "numeric", month: "short" });
    const time = (value) => format(value, { hour: "numeric", minute: "2-digit" });
    return {
        locale,
        date,
        dayMonth,
        time,
        dateTime: (value) => {
            const parts = [date(value), time(value)].filter(Boolean);
            return parts.join(", ");
        },
        longDate: (value) => format(value, { weekday: "long", day: "numeric", month: "long", year: "numeric" }),
        month: (value) => format(value, { month: "long", year: "numeric" }),
        weekday: (value, style = "short") => format(value, { weekday: style }),
        relative: (value) => {
            const instant = toDate(value);
            if (value === null || value === undefined || Number.isNaN(instant.getTime())) return "";
            const seconds = (instant.getTime() - now().getTime()) / 1_000;
            const size = Math.abs(seconds);
            if (size < 45) return relativeFormat.format(0, "second");
            if (size < 45 * minute) return relativeFormat.format(Math.round(seconds / minute), "minute");
            if (size < 22 * hour) return relativeFormat.format(Math.round(seconds / hour), "hour");
            if (size < 7 * day) return relativeFormat.format(calendarDays(now(), instant), "day");
            return date(instant);
        },
        relativeDay: (value) => {
            const days = calendarDays(now(), toDate(value));
            return Math.abs(days) < 7 ? relativeFormat.format(days, "day") : date(value);
        },
        hours,
        number: (value, options) => {
            const name = JSON.stringify(options ?? {});
            if (!numberFormats.has(name)) numberFormats.set(name, new Intl.NumberFormat(locale, options));
            return numberFormats.get(name).format(value);
        },
        bytes: (value) => {
            const size = Number(value) || 0;
            const [divisor, unit] = size < 1_000_000 ? [1_000, "kilobyte"] : size < 1_000_000_000
                ? [1_000_000, "megabyte"] : [1_000_000_000, "gigabyte"];
            const scaled = size / divisor;
            return new Intl.NumberFormat(locale, { style: "unit", unit, maximumFractionDigits: scaled < 10 ? 1 : 0 })
                .format(scaled);
        },
        list: (items) => new Intl.ListFormat(locale, { type: "conjunction" }).format(items),
        compare: new Intl.Collator(locale, { numeric: true, sensitivity: "base" }).compare,
        firstWeekday: firstWeekday(locale),
    };
}

/** Returns the number of midnights between two dates, by the local clock. */
export function calendarDays(from, to) {
    const start = Date.UTC(from.getFullYear(), from.getMonth(), from.getDate());
    return Math.round((Date.UTC(to.getFullYear(), to.getMonth(), to.getDate()) - start) / (day * 1_000));
}
