/** The components of the design system: functions that return elements. Their styles are in `app.css`. */

import { h } from "./dom.js";
import { iconPaths } from "./icons.js";

/** Icons by name and size. Copies of one are faster than new elements. */
const icons = new Map();

/** Returns an icon of 20 pixels in the colour of the text. It is hidden from screen readers. */
export function icon(name, { size } = {}) {
    const key = `${name} ${size ?? ""}`;
    if (!icons.has(key)) {
        icons.set(key, h("svg", { class: ["icon", size && `icon-${size}`], viewBox: "0 0 24 24", "aria-hidden": true },
            (iconPaths[name] ?? iconPaths.circle).map((path) => h("path", { d: path }))));
    }
    return icons.get(key).cloneNode(true);
}

/**
 * Returns a button. With `href` it is a link with the style of a button.
 *
 * @param {object} options `kind`: "primary", "quiet", "danger" or absent. With `isIconOnly`, `label` is for screen
 *     readers and the tooltip; with `isCompact` this applies under 480 pixels. `isPressed` makes it a toggle button.
 */
export function button({ label, icon: name, kind, onClick, disabled, type = "button", isIconOnly, isCompact, isPressed,
    href, key, id, title }) {
    const isLink = href !== undefined;
    return h(isLink ? "a" : "button", {
        class: ["button", kind && `button-${kind}`, isIconOnly && "button-icon",
            isCompact && "button-compact"],
        type: isLink ? undefined : type, href, disabled: !isLink && Boolean(disabled), key, id,
        "aria-label": isIconOnly || isCompact ? label : undefined, "aria-pressed": isPressed,
        title: title ?? (isIconOnly || isCompact ? label : undefined), on: onClick ? { click: onClick } : undefined,
    }, name && icon(name), !isIconOnly && h("span", null, label));
}

/** Returns a labelled control with a hint or an error below it. A group of controls becomes a `fieldset`. */
export function field({ label, control, hint, error, id }) {
    const name = id ?? control.id ?? "";
    const base = name || `field-${slug(label)}`;
    const note = error ?? hint;
    const isControl = /^(INPUT|SELECT|TEXTAREA)$/.test(control.nodeName);
    if (isControl) {
        control.id = base;
        if (note) control.setAttribute("aria-describedby", `${base}-note`);
        if (error) control.setAttribute("aria-invalid", "true");
    }
    return h(isControl ? "div" : "fieldset", { class: ["field", error && "has-error"] },
        isControl ? h("label", { for: base }, label) : h("legend", null, label),
        control,
        note && h("p", { class: "field-note", id: `${base}-note` }, error && icon("warning", { size: "small" }), note));
}

/** Returns a text control: `input` with a type, or `textarea` with `rows`. `onInput` and `onChange` get the value. */
export function input({ type = "text", rows, value, onInput, onChange, ...attributes }) {
    const changed = (handler) => handler && ((event) => handler(event.target.value, event));
    return h(rows ? "textarea" : "input", { class: "control", type: rows ? undefined : type, rows, value: value ?? "",
        on: { input: changed(onInput), change: changed(onChange) }, ...attributes });
}

/** Returns a selection. `options`: {value, label, group?, disabled?} or strings. `onChange` gets the value. */
export function select({ options, value, onChange, label, ...attributes }) {
    const groups = new Map();
    for (const option of options) {
        const entry = typeof option === "object" ? option : { value: option, label: option };
        if (!groups.has(entry.group ?? "")) groups.set(entry.group ?? "", []);
        groups.get(entry.group ?? "").push(entry);
    }
    const nodes = [...groups].map(([group, entries]) => {
        const list = entries.map((entry) => h("option", { value: entry.value ?? "", disabled: entry.disabled },
            entry.label));
        return group ? h("optgroup", { label: group }, list) : list;
    });
    return h("select", { class: "control", value: value ?? "", "aria-label": label, ...attributes,
        on: { change: (event) => onChange?.(event.target.value, event) } }, nodes);
}

/** Returns a row of exclusive options. `options`: {value, label, icon?}. */
export function segmented({ label, options, value, onChange, name }) {
    const group = name ?? `segmented-${slug(label)}`;
    return h("div", { class: "segmented", role: "radiogroup", "aria-label": label }, options.map((option) =>
        h("label", { class: "segment", key: String(option.value) },
            h("input", { type: "radio", name: group, value: option.value, checked: option.value === value,
                on: { change: () => onChange?.(option.value) } }),
            h("span", null, option.icon && icon(option.icon), option.label))));
}

/** Returns a switch with a label and an optional hint. `onChange` gets a boolean. */
export function toggle({ label, hint, checked, onChange, disabled, id }) {
    return h("label", { class: "toggle" },
        h("span", { class: "toggle-text" }, h("span", { class: "toggle-label" }, label),
            hint && h("span", { class: "toggle-hint" }, hint)),
        h("input", { type: "checkbox", role: "switch", checked: Boolean(checked), disabled: Boolean(disabled), id,
            on: { change: (event) => onChange?.(event.target.checked, event) } }));
}

/** Returns a small label of a state. `kind`: "ok", "warn", "bad", "info" or "muted". */
export function chip({ label, kind = "muted", icon: name }) {
    return h("span", { class: ["chip", `chip-${kind}`] }, name && icon(name, { size: "small" }), label);
}

/**
 * Returns a card. With `onClick` or `href` its title becomes a button or link that covers the card; `actions` stay
 * separate. `level` is that of the heading. With a `role` it is not an article.
 */
export function card({ title, meta, body, actions, onClick, href, key, lead, isSelected, kind, level = 3, role }) {
    const heading = href ? h("a", { class: "card-link", href, "aria-current": isSelected ? "true" : undefined }, title)
        : onClick ? h("button", { class: "card-link", type: "button", on: { click: onClick },
            "aria-current": isSelected ? "true" : undefined }, title) : title;
    return h(role ? "div" : "article", { role, key, class: ["card", (href || onClick) && "card-active",
        isSelected && "is-selected", kind && `card-${kind}`] },
        lead && h("div", { class: "card-lead" }, lead),
        h("div", { class: "card-main" },
            title && h(`h${level}`, { class: "card-title" }, heading),
            meta && h("div", { class: "card-meta" }, meta),
            body && h("div", { class: "card-body" }, body)),
        actions && h("div", { class: "card-actions" }, actions));
}

/** Returns the empty state of a view or list. `action`: a node, such as a button. */
export function empty({ icon: name = "circle", title, text, action }) {
    return h("div", { class: "empty" }, h("div", { class: "empty-icon" }, icon(name, { size: "large" })),
        h("h2", null, title), text && h("p", null, text), action);
}

/** Returns placeholders for content that is being loaded. */
export function skeleton(rows = 4) {
    return h("div", { class: "skeleton", "aria-hidden": true },
        Array.from({ length: rows }, () => h("div", { class: "skeleton-row" }, h("span"), h("span"))));
}

/** Returns a message across the view. `kind`: "info", "ok", "warn" or "bad". `action`: a node. */
export function banner({ kind = "info", text, action, title }) {
    const names = { info: "info", ok: "check", warn: "warning", bad: "warning" };
    return h("div", { class: ["banner", `banner-${kind}`], role: kind === "bad" ? "alert" : "status" },
        icon(names[kind] ?? "info"),
        h("div", { class: "banner-text" }, title && h("strong", null, title), h("span", null, text)), action);
}

const images = new Map();
// Instead of the alternative text while an image is loaded.
const blank = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";

/** Returns the address of an image of the store, as a promise. It resolves with undefined if there is none. */
export function imageURL(app, id) {
    if (!images.has(id)) {
        const url = app.fieldpost.image(id).then((blob) => URL.createObjectURL(blob)).catch(() => {
            images.delete(id);
        });
        images.set(id, url);
    }
    return images.get(id);
}

/** Returns an image by its blob's id; a placeholder appears until it is loaded, and a text if that failed. */
export function picture({ app, image, alt = "", class: name }) {
    const shown = loaded.get(image);
    const isFailed = Date.now() - (failed.get(image) ?? 0) < retryInterval;
    if (!shown && isFailed) return missingPicture(app, image, name);
    const node = h("img", { class: ["picture", name], alt, src: shown ?? blank, key: `image-${image}`,
        dataset: { loading: !shown } });
    if (!shown) load(app, image, node, name);
    return node;
}

function missingPicture(app, image, name) {
    return h("span", { class: ["picture picture-missing", name], key: `image-${image}` }, icon("image"),
        app.t("app.imageMissing"));
}

/** Returns a person's or team's picture, or the initials on a colour that the name determines. */
export function avatar({ name, image, app, size }) {
    const text = initials(name);
    const hue = [...String(name ?? "")].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 997, 7) % 8;
    const shown = image && loaded.get(image);
    const node = h("span", { class: ["avatar", `avatar-${hue}`, size && `avatar-${size}`], "aria-hidden": true },
        shown ? h("img", { src: shown, alt: "" }) : text);
    if (image && !shown && app) {
        imageURL(app, image).then((url) => {
            if (!url) return;
            loaded.set(image, url);
            app.refresh?.();
        });
    }
    return node;
}

const loaded = new Map();
const failed = new Map();
const retryInterval = 30_000;

function load(app, image, node, name) {
    imageURL(app, image).then((url) => {
        if (!url) {
            failed.set(image, Date.now());
            node.replaceWith(missingPicture(app, image, name));
            app.refresh?.();
            return;
        }
        loaded.set(image, url);
        node.src = url;
        delete node.dataset.loading;
        app.refresh?.();
    });
}

/** Returns the first letters of the first and last word of a name; of one word with a number, as in "emp012": "E12". */
export function initials(name) {
    const words = String(name ?? "").trim().split(/[\s.@_-]+/u).filter(Boolean);
    const number = words.length === 1 && /^\D.*?0*(\d{1,2})$/u.exec(words[0]);
    if (number) return [...words[0]][0].toLocaleUpperCase() + number[1];
    const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words;
    return letters.map((word) => [...word][0].toLocaleUpperCase()).join("") || "?";
}

/** Returns a menu behind a button. `items`: {label, icon?, kind?, run, disabled?}; falsy ones are omitted. */
export function menu({ label, icon: name = "more", items, key }) {
    const close = (event) => event.target.closest("details")?.removeAttribute("open");
    return h("details", { class: "menu", key },
        h("summary", { class: "button button-quiet button-icon", "aria-label": label, title: label }, icon(name)),
        h("div", { class: "menu-items" }, items.filter(Boolean).map((item) =>
            h("button", { class: ["menu-item", item.kind && `menu-${item.kind}`], type: "button",
                disabled: Boolean(item.disabled),
                on: { click: (event) => { close(event); item.run(event); } } },
            item.icon && icon(item.icon), h("span", null, item.label)))));
}

/**
 * Returns a page: its heading, which gets the focus on navigation, and its content.
 *
 * @param {object} options `actions`: nodes on the right. `back`: {href, label}, a link above the heading.
 */
export function page({ title, subtitle, actions, back, id, level = 1 }, ...children) {
    return h("section", { class: "page", id },
        h("header", { class: "page-head" },
            back && h("a", { class: "button button-quiet button-icon page-back", href: back.href,
                "aria-label": back.label, title: back.label }, icon("back")),
            h("div", { class: "page-title" }, h(`h${level}`, { tabindex: -1 }, title),
                subtitle && h("p", { class: "page-subtitle" }, subtitle)),
            actions && h("div", { class: "page-actions" }, actions)),
        children);
}

/** Returns the layout of list and detail: side by side from 1,000 pixels, below that `detail` if present. */
export function panes({ list, detail, placeholder }) {
    return h("div", { class: ["panes", detail && "has-detail"] },
        h("div", { class: "pane pane-list", key: "list" }, list),
        h("div", { class: "pane pane-detail", key: "detail" },
            detail ?? h("div", { class: "pane-placeholder" }, placeholder)));
}

/** Returns a progress bar; without `value` it is indeterminate. */
export function progress({ value, max = 1, label }) {
    return h("progress", { class: "progress", max, "aria-label": label,
        ...(value === undefined ? {} : { value: String(value) }) });
}

function slug(text) {
    return String(text ?? "").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40);
}
