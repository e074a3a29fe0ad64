/** The canvas below the markers of a map: water, outline, graticule and circles of accuracy. */

import { degreesText, graticule, pixelsOf, toScreen } from "../core/map.js";
import { h } from "./dom.js";

export class MapBackground {
    canvas = h("canvas", { class: "map-canvas", "aria-hidden": true });
    /** Paths of `outlinePaths`, and world positions with the point of a circle. */
    outline = [];
    circles = [];
    #style;
    #scheme = matchMedia("(prefers-color-scheme: dark)");
    #themes;
    #changed;

    /** Creates the canvas; `redraw` is called after the theme changed. */
    constructor(redraw) {
        this.#changed = () => {
            this.#style = undefined;
            redraw();
        };
        this.#scheme.addEventListener("change", this.#changed);
        this.#themes = new MutationObserver(this.#changed);
        this.#themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    }

    stop() {
        this.#themes.disconnect();
        this.#scheme.removeEventListener("change", this.#changed);
    }

    /** Returns the colours and the font of the theme. Reading them in each frame would recompute the styles. */
    #readStyle() {
        const style = getComputedStyle(this.canvas);
        const colours = ["--map-water", "--map-grid", "--map-outline", "--map-land", "--accent", "--text-muted"];
        return { family: style.fontFamily, colours: new Map(colours.map((name) =>
            [name, style.getPropertyValue(name).trim()])) };
    }

    /** Draws the part of the world that a map shows: {view, size}. */
    draw({ view, size }) {
        const { canvas } = this;
        const ratio = devicePixelRatio || 1;
        const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
        if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
        const context = canvas.getContext("2d");
        this.#style ??= this.#readStyle();
        const { colours, family } = this.#style;
        const colour = (name) => colours.get(name);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.fillStyle = colour("--map-water");
        context.fillRect(0, 0, size.width, size.height);
        this.#drawOutline(context, { view, size, colour });
        const lines = graticule(view, size);
        context.lineWidth = 1;
        context.strokeStyle = colour("--map-grid");
        context.beginPath();
        for (const { axis, at } of lines) {
            const edge = Math.round(at) + 0.5;
            context.moveTo(axis === "longitude" ? edge : 0, axis === "longitude" ? 0 : edge);
            context.lineTo(axis === "longitude" ? edge : size.width, axis === "longitude" ? size.height : edge);
        }
        context.stroke();
        this.#drawLabels(context, lines, { size, colour, family });
        for (const { x, y, point } of this.circles) {
            const centre = toScreen(view, size, { x, y });
            const radius = Math.min(2_000, pixelsOf(point.accuracy, point.latitude, view));
            if (radius < 16) continue;
            context.beginPath();
            context.arc(centre.x, centre.y, radius, 0, 2 * Math.PI);
            context.globalAlpha = 0.15;
            context.fillStyle = colour("--accent");
            context.fill();
            context.globalAlpha = 1;
        }
    }

    #drawLabels(context, lines, { size: { width, height }, colour, family }) {
        context.font = `500 11px ${family}`;
        context.lineWidth = 3;
        context.lineJoin = "round";
        context.strokeStyle = colour("--map-water");
        context.fillStyle = colour("--text-muted");
        for (const { axis, value, step, at } of lines) {
            const text = degreesText(value, axis, step);
            const isMeridian = axis === "longitude";
            const [x, y] = isMeridian ? [at + 4, 12] : [5, at - 4];
            if (isMeridian ? x < 52 || x > width - 60 : y < 26 || y > height - 10) continue;
            context.strokeText(text, x, y);
            context.fillText(text, x, y);
        }
    }

    #drawOutline(context, { view, size, colour }) {
        if (this.outline.length === 0) return;
        const half = size.width / 2 / view.scale;
        for (const offset of [-1, 0, 1]) {
            if (view.x + half < offset || view.x - half > offset + 1) continue;
            for (const isClosed of [true, false]) {
                context.beginPath();
                for (const path of this.outline) {
                    if (path.isClosed !== isClosed) continue;
                    for (let index = 0; index < path.points.length; index += 2) {
                        const x = (path.points[index] + offset - view.x) * view.scale + size.width / 2;
                        const y = (path.points[index + 1] - view.y) * view.scale + size.height / 2;
                        if (index === 0) context.moveTo(x, y); else context.lineTo(x, y);
                    }
                    if (isClosed) context.closePath();
                }
                context.lineWidth = 1.25;
                context.strokeStyle = colour("--map-outline");
                context.fillStyle = colour("--map-land");
                if (isClosed) context.fill("evenodd");
                context.stroke();
            }
        }
    }
}
