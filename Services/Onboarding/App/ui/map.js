/** A map that the page draws by itself: graticule, outline and scale bar on a canvas, points as buttons above it. */

import {
    cluster, clusterScale, fit, outlinePaths, pan, pinch, project, scaleBar, scaleMax, toScreen, zoomAt,
} from "../core/map.js";
import { button, icon } from "./components.js";
import { h, morph } from "./dom.js";
import { MapBackground } from "./map-background.js";

const icons = { task: "tasks", overdue: "warning", done: "check", person: "user", me: "user" };
const margin = 60;
/** Maximum number of scales whose groups are cached. */
const scalesMax = 4;

/**
 * Creates a map. Pass its `element` again in each render of a view.
 *
 * @param {object} app
 * @param {object} options `label`; `onSelect(point)`; `onSelectGroup(points)` for points that no enlargement
 *     separates; `legend`: {kind, label}[].
 * @returns {{element: HTMLElement, update: (points: object[], selected?: string) => void, fit: () => void,
 *     show: (id: string) => boolean, setOutline: (geometry: ?object) => void, stop: () => void}} A point is {id,
 *     kind: "task"|"overdue"|"done"|"person"|"me", latitude, longitude, label, accuracy?}.
 */
export function createMap(app, { label, onSelect, onSelectGroup, legend = [] }) {
    return new MapView(app, { label, onSelect, onSelectGroup, legend });
}

class MapView {
    constructor(app, options) {
        this.app = app;
        this.options = options;
        this.points = [];
        /** The latest groups by scale, and the displayed markers by key. */
        this.groups = new Map();
        this.shown = new Map();
        this.size = { width: 0, height: 0 };
        this.pointers = new Map();
        this.isFitted = false;
        this.isFrameRequested = false;
        this.build();
        this.observer = new ResizeObserver(() => this.resized());
        this.observer.observe(this.element);
    }

    build() {
        const { app, options } = this;
        this.background = new MapBackground(() => this.draw());
        this.markers = h("div", { class: "map-markers" });
        this.surface = h("div", { class: "map-surface", tabindex: 0, role: "application", "aria-label": options.label,
            "aria-roledescription": app.t("team.map"), "aria-describedby": "map-help" },
        this.background.canvas);
        this.bar = h("div", { class: "map-bar-line" });
        this.barText = h("span", { class: "number" });
        const control = (key, name, run) => button({ label: app.t(key), icon: name, isIconOnly: true, onClick: run });
        this.element = h("div", { class: "map" }, this.surface, this.markers,
            h("p", { class: "visually-hidden", id: "map-help" }, app.t("team.mapHelp")),
            h("div", { class: "map-controls" },
                control("team.zoomIn", "plus", () => this.zoom(2)),
                control("team.zoomOut", "minus", () => this.zoom(0.5)),
                control("team.fit", "target", () => this.fit())),
            h("ul", { class: "map-legend", "aria-label": app.t("team.legend") }, options.legend.map((entry) =>
                h("li", null, h("span", { class: ["map-sign", `map-${entry.kind}`] },
                    icon(icons[entry.kind], { size: "small" })), entry.label))),
            h("div", { class: "map-bar", "aria-hidden": true }, this.barText, this.bar));
        const on = (type, run, settings) => this.element.addEventListener(type, run, settings);
        on("pointerdown", (event) => this.pressed(event));
        on("pointermove", (event) => this.moved(event));
        on("pointerup", (event) => this.released(event));
        on("pointercancel", (event) => this.released(event));
        on("wheel", (event) => this.wheel(event), { passive: false });
        on("dblclick", (event) => this.doubleClicked(event));
        on("click", (event) => {
            if (!this.wasDragged) return;
            this.wasDragged = false;
            event.preventDefault();
            event.stopPropagation();
        }, true);
        on("keydown", (event) => this.keydown(event));
    }

    /** Replaces the points. The first ones determine the visible part. */
    update(points, selected) {
        if (points === this.source && selected === this.selected) return;
        this.source = points;
        this.selected = selected;
        this.points = points.map((point) => {
            const { x, y } = project(point);
            return { x, y, point };
        });
        this.background.circles = this.points.filter(({ point }) => point.accuracy);
        this.groups = new Map();
        if (!this.isFitted && points.length > 0 && this.size.width > 0) this.fit(); else this.schedule();
    }

    setOutline(geometry) {
        this.background.outline = outlinePaths(geometry);
        this.schedule();
    }

    fit() {
        if (this.size.width === 0) return;
        this.isFitted = this.points.length > 0;
        const isNarrow = Math.min(this.size.width, this.size.height) < 500;
        // On a phone the legend covers the lower part.
        const covered = isNarrow ? Math.min(90, this.size.height / 4) : 0;
        const view = fit(this.points.map(({ point }) => point),
            { ...this.size, height: this.size.height - covered }, { padding: isNarrow ? 52 : 72 });
        this.goTo(pan(view, 0, -covered / 2));
    }

    /** Moves to a point, enlarged enough to see its surroundings. Returns whether it is on the map. */
    show(id) {
        const found = this.points.find(({ point }) => point.id === id);
        if (!found) return false;
        if (this.size.width === 0) {
            this.pending = id;
            return true;
        }
        this.isFitted = true;
        const near = fit([found.point], this.size, { metresMin: 4_000 });
        this.goTo({ x: found.x, y: found.y, scale: Math.max(this.view?.scale ?? 0, near.scale) });
        return true;
    }

    zoom(factor, point = { x: this.size.width / 2, y: this.size.height / 2 }) {
        if (this.view) this.goTo(zoomAt(this.target ?? this.view, this.size, point, factor));
    }

    stop() {
        this.observer.disconnect();
        this.background.stop();
        this.isStopped = true;
    }

    resized() {
        const { width, height } = this.element.getBoundingClientRect();
        if (width === 0 || height === 0) return;
        this.size = { width, height };
        if (this.pending) {
            const id = this.pending;
            this.pending = undefined;
            this.view = fit(this.points.map(({ point }) => point), this.size);
            this.show(id);
        } else if (!this.view || !this.isFitted) {
            this.fit();
        }
        this.draw();
    }

    /** Moves to a view, in steps of 200 ms in total unless the person prefers less motion. */
    goTo(view) {
        const from = this.view;
        if (!from || matchMedia("(prefers-reduced-motion: reduce)").matches) {
            this.target = undefined;
            this.view = view;
            this.schedule();
            return;
        }
        this.target = view;
        const dx = view.x - from.x - Math.round(view.x - from.x);
        const start = performance.now();
        const step = (time) => {
            if (this.target !== view || this.isStopped) return;
            const part = Math.min(1, Math.max(0, (time - start) / 200));
            const eased = 1 - (1 - part) ** 3;
            const scale = from.scale * (view.scale / from.scale) ** eased;
            // The centre moves with the enlargement, so that the point under the pointer keeps its position.
            const ratio = view.scale === from.scale ? eased
                : (1 / from.scale - 1 / scale) / (1 / from.scale - 1 / view.scale);
            this.view = part === 1 ? view : { scale, x: from.x + dx * ratio, y: from.y + (view.y - from.y) * ratio };
            this.draw();
            if (part < 1) requestAnimationFrame(step); else this.target = undefined;
        };
        requestAnimationFrame(step);
    }

    setView(view) {
        this.target = undefined;
        this.view = view;
        this.isFitted = true;
        this.schedule();
    }

    schedule() {
        if (this.isFrameRequested) return;
        this.isFrameRequested = true;
        requestAnimationFrame(() => {
            this.isFrameRequested = false;
            this.draw();
        });
    }

    at(event) {
        const box = this.element.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    }

    pressed(event) {
        if (event.target.closest(".map-controls") || event.button > 0) return;
        this.pointers.set(event.pointerId, this.at(event));
        if (this.pointers.size === 1) {
            this.wasDragged = false;
            this.start = this.at(event);
        } else {
            this.wasDragged = true;
        }
    }

    moved(event) {
        const before = this.pointers.get(event.pointerId);
        if (!before || !this.view) return;
        const after = this.at(event);
        if (!this.wasDragged && Math.hypot(after.x - this.start.x, after.y - this.start.y) < 6) return;
        if (!this.wasDragged) {
            this.wasDragged = true;
            this.element.classList.add("is-dragged");
        }
        try { this.element.setPointerCapture(event.pointerId); } catch { /* The pointer has ended. */ }
        const positions = [...this.pointers.values()];
        this.pointers.set(event.pointerId, after);
        if (this.pointers.size === 2) {
            this.setView(pinch(this.view, this.size, positions, [...this.pointers.values()]));
        } else if (this.pointers.size === 1) {
            this.setView(pan(this.view, after.x - before.x, after.y - before.y));
        }
    }

    released(event) {
        this.pointers.delete(event.pointerId);
        if (this.pointers.size === 0) {
            this.element.classList.remove("is-dragged");
            setTimeout(() => { this.wasDragged = false; }, 0);
        }
    }

    wheel(event) {
        if (!this.view) return;
        event.preventDefault();
        const pixels = event.deltaY * (event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1);
        const factor = Math.exp(-Math.max(-400, Math.min(400, pixels)) * (event.ctrlKey ? 0.01 : 0.002));
        this.setView(zoomAt(this.view, this.size, this.at(event), factor));
    }

    doubleClicked(event) {
        if (event.target.closest("button")) return;
        event.preventDefault();
        this.zoom(event.shiftKey ? 0.5 : 2, this.at(event));
    }

    keydown(event) {
        if (event.altKey || event.ctrlKey || event.metaKey || !this.view) return;
        const far = event.shiftKey ? 200 : 60;
        const moves = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
        if (moves[event.key]) this.goTo(pan(this.target ?? this.view, ...moves[event.key]));
        else if (event.key === "+" || event.key === "=") this.zoom(2);
        else if (event.key === "-" || event.key === "_") this.zoom(0.5);
        else if (event.key === "0" || event.key === "Home") this.fit();
        else return;
        event.preventDefault();
    }

    draw() {
        if (!this.view || this.size.width === 0 || this.isStopped || !this.element.isConnected) return;
        this.background.draw(this);
        this.drawMarkers();
        const bar = scaleBar(this.view);
        if (bar.metres !== this.barMetres) {
            const isKilometres = bar.metres >= 1_000;
            this.barText.textContent = this.app.format.number(isKilometres ? bar.metres / 1_000 : bar.metres,
                { style: "unit", unit: isKilometres ? "kilometer" : "meter" });
            this.barMetres = bar.metres;
        }
        this.bar.style.width = `${Math.round(bar.pixels)}px`;
    }

    groupsAt(scale) {
        if (!this.groups.has(scale)) {
            if (this.groups.size >= scalesMax) this.groups.delete(this.groups.keys().next().value);
            this.groups.set(scale, cluster(this.points, scale));
        }
        return this.groups.get(scale);
    }

    /** Displays the groups of the visible part. While the map moves, markers only get another position. */
    drawMarkers() {
        const { view, size } = this;
        const scale = clusterScale(view.scale);
        const visible = [];
        for (const group of this.groupsAt(scale)) {
            const { x, y } = toScreen(view, size, group);
            if (x < -margin || y < -margin || x > size.width + margin || y > size.height + margin) continue;
            visible.push({ group, x, y });
        }
        visible.sort((a, b) => a.y - b.y);
        const before = this.shown;
        this.shown = new Map();
        let isChanged = visible.length !== before.size;
        for (const { group, x, y } of visible) {
            const [{ point }] = group.points;
            const key = group.points.length === 1 ? point.id : `group ${point.id}`;
            const isSelected = group.points.some((member) => member.point.id === this.selected);
            let marker = before.get(key);
            if (marker?.group !== group || marker.isSelected !== isSelected) {
                isChanged = true;
                marker = { group, isSelected, node: group.points.length === 1
                    ? this.marker(point, key, isSelected) : this.group(group, key, isSelected) };
            }
            marker.node.style.transform = `translate(${x}px, ${y}px)`;
            this.shown.set(key, marker);
        }
        if (!isChanged) return;
        morph(this.markers, [...this.shown.values()].map(({ node }) => node));
        // An earlier element with the same key was updated instead.
        let node = this.markers.firstElementChild;
        for (const marker of this.shown.values()) {
            marker.node = node;
            node = node.nextElementSibling;
        }
    }

    marker(point, key, isSelected) {
        return h("button", { class: ["map-marker", `map-${point.kind}`, isSelected && "is-selected"], type: "button",
            key, "aria-label": point.label, title: point.label, on: { click: () => this.options.onSelect?.(point) } },
        h("span", { class: ["map-sign", `map-${point.kind}`] },
            point.initials ?? icon(icons[point.kind], { size: "small" })));
    }

    group(group, key, isSelected) {
        const members = group.points.map(({ point }) => point);
        const overdue = members.filter(({ kind }) => kind === "overdue").length;
        const people = members.filter(({ kind }) => kind === "person" || kind === "me").length;
        const label = [this.app.t("team.groupLabel", { n: members.length }),
            people > 0 && this.app.t("team.groupPeople", { n: people }),
            overdue > 0 && this.app.t("team.groupOverdue", { n: overdue })].filter(Boolean).join(", ");
        const size = Math.round(Math.min(64, 36 + 6 * Math.log2(members.length) / 2));
        return h("button", { class: ["map-marker map-group", overdue > 0 && "has-overdue",
            isSelected && "is-selected"], type: "button", key, "aria-label": label, title: label,
        on: { click: () => this.open(members) } },
        h("span", { class: "map-count number", style: { width: `${size}px`, height: `${size}px` } },
            this.app.format.number(members.length)));
    }

    /** Enlarges until the points separate; if they are at one location, they are selected together. */
    open(members) {
        const view = fit(members, this.size, { padding: 80, metresMin: 60 });
        if (view.scale < scaleMax / 2 && view.scale > this.view.scale * 1.2) {
            this.isFitted = true;
            this.goTo(view);
        } else {
            this.options.onSelectGroup?.(members);
        }
    }
}
