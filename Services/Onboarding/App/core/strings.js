/** Choice of the language and texts with placeholders. */

/** The languages of the app, with their own names. */
export const languages = { en: "English", de: "Deutsch", da: "Dansk" };

/**
 * Returns the language of the texts: the saved choice, otherwise the first supported one that the browser prefers,
 * otherwise English.
 *
 * @param {?string} saved "en", "de", "da", or anything else for the browser's choice
 * @param {readonly string[]} preferred such as `navigator.languages`
 */
export function chooseLanguage(saved, preferred = []) {
    if (saved && Object.hasOwn(languages, saved)) return saved;
    for (const tag of preferred) {
        const language = String(tag).toLowerCase().split("-")[0];
        if (Object.hasOwn(languages, language)) return language;
    }
    return "en";
}

/** Returns the locale of dates and numbers: the browser's tag of this language, with its region if it has one. */
export function chooseLocale(language, preferred = []) {
    return preferred.find((tag) => String(tag).toLowerCase().split("-")[0] === language) ?? language;
}

/**
 * Returns the function `t(key, values?)`. A text with plural forms is selected by the value `n`. A placeholder
 * without a value remains, and a key without a text is returned as it is.
 *
 * @param {object} texts
 * @param {string} locale
 * @param {object} fallback texts of another language for missing keys
 * @param {(number: number) => string} formatNumber
 */
export function translator(texts, locale, fallback = {}, formatNumber = String) {
    const rules = new Intl.PluralRules(locale);
    return (key, values = {}) => {
        let text = texts[key] ?? fallback[key];
        if (text === undefined) return key;
        if (typeof text === "object") {
            const n = Number(values.n ?? 0);
            text = (n === 0 ? text.zero : undefined) ?? text[rules.select(n)] ?? text.other;
        }
        return text.replace(/\{(\w+)\}/g, (match, name) => {
            const value = values[name];
            if (value === undefined || value === null) return match;
            return typeof value === "number" ? formatNumber(value) : String(value);
        });
    };
}
