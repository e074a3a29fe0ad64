/** A list that renders only its visible rows. */

import { h, morph } from "./dom.js";

const overscan = 6;

class VirtualList extends HTMLElement {
    #options;
    #items = [];
    #offsets = [0];
    #source;
    /** Row → the item and the source from which it was rendered. */
    #rendered = new WeakMap();
    #first = 0;
    #last = 0;
    #nodes = new Map();
    /** Key of the row that had the focus last, and the row whose controls are in the tab order. */
    #current;
    #entry;
    #isScheduled = false;
    #inner = h("div", { class: "list-inner", role: "presentation" });
    #schedule = () => {
        if (this.#isScheduled) return;
        this.#isScheduled = true;
        requestAnimationFrame(() => {
            this.#isScheduled = false;
            if (this.isConnected) this.#render(false);
        });
    };
    #observer = new ResizeObserver(this.#schedule);

    configure(options) {
        this.#options = options;
        this.className = "list";
        this.setAttribute("role", "list");
        if (options.label) this.setAttribute("aria-label", options.label);
        this.append(this.#inner);
        this.addEventListener("keydown", (event) => this.#keydown(event));
        this.addEventListener("focusin", (event) => this.#focused(event));
        this.update(options.items ?? []);
    }

    connectedCallback() {
        document.addEventListener("scroll", this.#schedule, { capture: true, passive: true });
        addEventListener("resize", this.#schedule);
        this.#observer.observe(this);
        this.#render(true);
        this.#schedule();
    }

    disconnectedCallback() {
        document.removeEventListener("scroll", this.#schedule, { capture: true });
        removeEventListener("resize", this.#schedule);
        this.#observer.disconnect();
    }

    connectedMoveCallback() {}

    /** Displays other items. Rows whose item and `source` are the same as before are not rendered again. */
    update(items, source = {}) {
        const { rowHeight } = this.#options;
        // Read before the height changes: reading it afterwards would compute the layout twice.
        const top = this.isConnected ? this.#top : 0;
        this.#items = items;
        this.#source = source;
        const offsets = new Array(items.length + 1);
        offsets[0] = 0;
        for (let index = 0; index < items.length; index++) {
            offsets[index + 1] = offsets[index]
                + (typeof rowHeight === "function" ? rowHeight(items[index], index) : rowHeight);
        }
        this.#offsets = offsets;
        this.#inner.style.height = `${offsets[items.length]}px`;
        if (this.isConnected) this.#render(true, top);
    }

    /** Scrolls to the item with this key and, if `focus` is true, moves the focus to it. */
    reveal(key, { focus = false } = {}) {
        const index = this.#items.findIndex((item) => String(this.#options.key(item)) === String(key));
        if (index >= 0) this.#go(index, focus);
    }

    #indexAt(offset) {
        let low = 0;
        let high = this.#items.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.#offsets[middle + 1] <= offset) low = middle + 1; else high = middle;
        }
        return low;
    }

    #scroller() {
        for (let node = this.isConnected ? this : null; node; node = node.parentElement) {
            if (/auto|scroll/.test(getComputedStyle(node).overflowY)) return node;
        }
        return document.scrollingElement;
    }

    get #top() { return this.#inner.getBoundingClientRect().top; }

    #render(isChanged, top = this.#top) {
        const height = innerHeight || 800;
        let first = Math.max(0, this.#indexAt(Math.max(0, -top)) - overscan);
        let last = Math.min(this.#items.length, this.#indexAt(Math.max(0, height - top)) + overscan);
        if (first > last) [first, last] = [Math.max(0, this.#items.length - overscan), this.#items.length];
        if (!isChanged && first === this.#first && last === this.#last) return;
        this.#first = first;
        this.#last = last;
        if (isChanged) this.#replace(); else this.#slide();
        this.#setEntry(this.#nodes.get(this.#current) ?? this.#inner.firstElementChild);
    }

    #name(index) {
        return String(this.#options.key(this.#items[index]));
    }

    #row(index, name) {
        const node = h("div", { class: "list-row", role: "listitem", key: name, dataset: { key: name } },
            this.#options.row(this.#items[index], index));
        this.#place(node, index);
        setTabIndex(node, name === this.#entry?.dataset.key);
        this.#rendered.set(node, { item: this.#items[index], source: this.#source });
        return node;
    }

    #place(node, index) {
        node.setAttribute("aria-setsize", this.#items.length);
        node.setAttribute("aria-posinset", index + 1);
        node.style.transform = `translateY(${this.#offsets[index]}px)`;
        node.style.height = `${this.#offsets[index + 1] - this.#offsets[index]}px`;
    }

    /** Renders the visible rows whose item or source changed, and moves the others. */
    #replace() {
        const rows = [];
        for (let index = this.#first; index < this.#last; index++) {
            const name = this.#name(index);
            const node = this.#nodes.get(name);
            const before = node && this.#rendered.get(node);
            const isSame = before?.item === this.#items[index] && before.source === this.#source;
            if (isSame) this.#place(node, index);
            rows.push(isSame ? node : this.#row(index, name));
        }
        morph(this.#inner, rows);
        this.#nodes = new Map();
        [...this.#inner.children].forEach((node, place) => {
            this.#nodes.set(node.dataset.key, node);
            this.#rendered.set(node, { item: this.#items[this.#first + place], source: this.#source });
        });
    }

    /** Removes the rows that became invisible, and creates only those that became visible. */
    #slide() {
        const nodes = new Map();
        for (let index = this.#first; index < this.#last; index++) {
            const name = this.#name(index);
            nodes.set(name, this.#nodes.get(name));
        }
        for (const [name, node] of this.#nodes) if (!nodes.has(name)) node.remove();
        let next = this.#inner.firstElementChild;
        let index = this.#first;
        for (const [name, node] of nodes) {
            if (node) {
                next = node.nextElementSibling;
            } else {
                const row = this.#row(index, name);
                this.#inner.insertBefore(row, next);
                nodes.set(name, row);
            }
            index += 1;
        }
        this.#nodes = nodes;
    }

    /** Makes one row the entry of the tab order; the arrow keys reach the others. */
    #setEntry(node) {
        if (node === this.#entry) return;
        if (this.#entry) setTabIndex(this.#entry, false);
        if (node) setTabIndex(node, true);
        this.#entry = node ?? undefined;
    }

    #focused(event) {
        const node = event.target.closest(".list-row");
        if (!node || node.dataset.key === this.#current) return;
        this.#current = node.dataset.key;
        this.#setEntry(node);
    }

    #keydown(event) {
        const node = event.target.closest(".list-row");
        const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.nodeName);
        if (!node || isTyping || event.ctrlKey || event.altKey || event.metaKey) return;
        const index = Number(node.getAttribute("aria-posinset")) - 1;
        const page = (height) => this.#indexAt(Math.max(0, this.#offsets[index] + height));
        const steps = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: this.#items.length - 1,
            PageDown: Math.max(index + 1, page(innerHeight * 0.8)),
            PageUp: Math.min(index - 1, page(innerHeight * -0.8)) };
        if (!(event.key in steps)) return;
        event.preventDefault();
        this.#go(Math.min(this.#items.length - 1, Math.max(0, steps[event.key])), true);
    }

    #go(index, focus) {
        const scroller = this.#scroller();
        const isDocument = scroller === document.scrollingElement;
        const box = isDocument ? { top: 0, bottom: innerHeight } : scroller.getBoundingClientRect();
        const style = getComputedStyle(scroller);
        const top = this.#inner.getBoundingClientRect().top + this.#offsets[index];
        const bottom = this.#inner.getBoundingClientRect().top + this.#offsets[index + 1];
        const above = top - box.top - (parseFloat(style.scrollPaddingTop) || 0);
        const below = bottom - box.bottom + (parseFloat(style.scrollPaddingBottom) || 0);
        if (above < 0) scroller.scrollBy(0, above); else if (below > 0) scroller.scrollBy(0, below);
        this.#render(false);
        const node = this.#nodes.get(String(this.#options.key(this.#items[index])));
        if (focus && node) (controls(node)[0] ?? node).focus({ preventScroll: true });
    }
}

function controls(node) {
    return node.querySelectorAll("a, button, summary, input, select");
}

function setTabIndex(node, isEntry) {
    for (const control of controls(node)) control.setAttribute("tabindex", isEntry ? "0" : "-1");
}

if (!customElements.get("fieldpost-list")) customElements.define("fieldpost-list", VirtualList);

/**
 * Creates a list. Keep the element and call `update(items)`; pass it again in each render of a view. It renders the
 * rows that are visible in the window, whichever element scrolls.
 *
 * @param {object} options `items`; `key(item)`; `rowHeight`, pixels or a function of the item; `row(item, index)`,
 *     a node; `label` for screen readers.
 * @returns {HTMLElement & {update(items: any[], source?: object): void,
 *     reveal(key: string, options?: {focus: boolean}): void}}
 */
export function virtualList(options) {
    const element = document.createElement("fieldpost-list");
    element.configure(options);
    return element;
}
