/** The dialog in which a node of a long list is selected: search, favourites and recent ones, then the sections. */

import { button, icon, input } from "../ui/components.js";
import { h, view } from "../ui/dom.js";
import { virtualList } from "../ui/list.js";

const rowHeight = 48;
const headHeight = 36;

/**
 * Opens the picker. After a selection it continues with the next required choice that has none.
 *
 * @param {TimeModel} model
 * @param {object} options `choice`: the first choice. `select(context, node)` writes a selection and returns the new
 *     form.
 */
export function openPicker(model, { choice: start, select }) {
    const { app, picker } = model;
    const { t } = app;
    let choice = start;
    let query = "";
    const opened = new Set();
    let display;

    function pick(node) {
        const form = select(choice.context, node);
        const index = form.choices.findIndex(({ context }) => context === choice.context);
        const next = form.choices.slice(index + 1).find((one) => one.visible && one.changeable && one.required
            && one.selected.length === 0 && one.sections.length > 0);
        if (!next) {
            dialog.close();
            return;
        }
        choice = next;
        query = "";
        opened.clear();
        refresh();
        dialog.element.querySelector("h2").textContent = choice.name;
        const search = dialog.element.querySelector("input");
        search.value = "";
        search.focus();
    }

    function refresh() {
        const items = rows();
        found = items.length;
        list.update(items);
        display.update();
    }

    /** Returns the rows: headings, options and "more". */
    function rows() {
        if (query.trim()) return picker.search(choice, query).map((option) => row(option, "found"));
        const result = [];
        const add = (name, options) => {
            if (options.length === 0) return;
            result.push({ key: `head ${result.length} ${name}`, heading: name });
            result.push(...options.map((option) => row({ ...option, depth: 0 }, name)));
        };
        const favourites = picker.suggestions(choice, model.favourites, 5);
        const shown = new Set(favourites.map(({ node }) => node));
        add(t("time.favourites"), favourites);
        add(t("time.recent"), picker.suggestions(choice, model.latest.slice(0, 500).map(({ fields }) => fields), 8)
            .filter(({ node }) => !shown.has(node)).slice(0, 5));
        choice.sections.forEach((section, index) => {
            const isOpened = opened.has(index) || section.shown >= section.options.length;
            const options = isOpened ? section.options : section.options.slice(0, section.shown);
            if (choice.sections.length > 1 || result.length > 0) {
                result.push({ key: `section ${index}`, heading: section.name });
            }
            result.push(...options.map((option) => row(option, index)));
            if (!isOpened) {
                result.push({ key: `more ${index}`, more: section.options.length - section.shown, index });
            }
        });
        return result;
    }

    function row(option, group) {
        return { key: `${group} ${option.node}`, option };
    }

    function rowNode(item) {
        if (item.heading !== undefined) return h("h3", { class: "time-pick-head" }, item.heading);
        if (item.more !== undefined) {
            return h("button", { type: "button", class: "time-pick is-more", on: { click: () => {
                opened.add(item.index);
                refresh();
            } } }, t("time.moreCount", { n: item.more }));
        }
        const { node, title, depth } = item.option;
        const isSelected = choice.selected.includes(node);
        return h("button", { type: "button", class: "time-pick", "aria-current": isSelected ? "true" : undefined,
            style: { paddingInlineStart: `${16 + Math.min(depth, 6) * 16}px` }, on: { click: () => pick(node) } },
        h("span", { class: "truncate grow" }, title),
        picker.reference(node) && h("span", { class: "muted small number" }, picker.reference(node)),
        isSelected && icon("check"));
    }

    const first = rows();
    let found = first.length;
    const list = virtualList({ items: first, key: ({ key }) => key, row: rowNode, label: choice.name,
        rowHeight: ({ heading }) => heading === undefined ? rowHeight : headHeight });
    const content = h("div", { class: "time-picker" });
    const dialog = app.dialog({ title: choice.name, content, onClose: () => display?.stop() });
    dialog.element.classList.add("time-picker-dialog");
    display = view(content, () => {
        return [
            h("div", { class: "searchbox", key: "search" }, icon("search"), input({ type: "search", value: query,
                "aria-label": t("time.search", { name: choice.name }), placeholder: t("time.search",
                    { name: choice.name }), autocomplete: "off", onInput: (text) => {
                    query = text;
                    refresh();
                } })),
            !choice.required && choice.selected.length > 0 && button({ key: "clear", label: t("time.clear"),
                icon: "close", kind: "quiet", onClick: () => pick(null) }),
            found === 0 && h("p", { class: "time-pick-none muted", key: "none", role: "status" },
                t("time.noMatch", { query })),
            h("div", { class: "time-pick-list", key: "list" }, list),
        ];
    });
    if (matchMedia("(pointer: fine)").matches) content.querySelector("input").focus();
    return dialog;
}
