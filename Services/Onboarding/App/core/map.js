/**
 * The mathematics of the map: Mercator projection, clusters, graticule and scale bar. Pure functions.
 *
 * A world position is {x, y} from 0 to 1, west to east and north to south. A map view is {x, y, scale}: its centre as
 * a world position, and the pixels of the whole world's width.
 */

const equator = 40_075_016.686;
const latitudeMax = 85.05112878;
const radians = Math.PI / 180;

/** Pixels of the world's width: the world in a small window, and about 10 m across 100 pixels. */
export const scaleMin = 256;
export const scaleMax = 256 * 2 ** 20;

/** Returns the world position of coordinates. */
export function project({ latitude, longitude }) {
    const limited = Math.max(-latitudeMax, Math.min(latitudeMax, latitude));
    const y = 0.5 - Math.asinh(Math.tan(limited * radians)) / (2 * Math.PI);
    return { x: longitude / 360 + 0.5, y };
}

/** Returns the coordinates of a world position. */
export function unproject({ x, y }) {
    const latitude = Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) / radians;
    return { latitude, longitude: wrapLongitude((x - 0.5) * 360) };
}

/** Returns the position in the window, in pixels. Across the antimeridian, the nearest repetition counts. */
export function toScreen(view, size, { x, y }) {
    const dx = x - view.x - Math.round(x - view.x);
    return { x: size.width / 2 + dx * view.scale, y: size.height / 2 + (y - view.y) * view.scale };
}

/** Returns the world position of a point of the window. */
export function toWorld(view, size, point) {
    const { width, height } = size;
    return { x: view.x + (point.x - width / 2) / view.scale, y: view.y + (point.y - height / 2) / view.scale };
}

/** Returns the view moved by pixels of the window. */
export function pan(view, dx, dy) {
    return limit({ ...view, x: view.x - dx / view.scale, y: view.y - dy / view.scale });
}

/** Returns the view enlarged by a factor; the point of the window keeps its world position. */
export function zoomAt(view, size, point, factor) {
    const fixed = toWorld(view, size, point);
    const scale = Math.max(scaleMin, Math.min(scaleMax, view.scale * factor));
    return limit({ scale, x: fixed.x - (point.x - size.width / 2) / scale,
        y: fixed.y - (point.y - size.height / 2) / scale });
}

/**
 * Returns the view that moves and enlarges by two fingers.
 *
 * @param {object} view
 * @param {{width: number, height: number}} size
 * @param {{x: number, y: number}[]} before positions of both fingers
 * @param {{x: number, y: number}[]} after
 */
export function pinch(view, size, before, after) {
    const middle = ([a, b]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
    const spread = ([a, b]) => Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
    const from = middle(before);
    const to = middle(after);
    return zoomAt(pan(view, to.x - from.x, to.y - from.y), size, to, spread(after) / spread(before));
}

/**
 * Returns the view that shows all coordinates; the whole world without any. `metresMin` limits the enlargement of
 * one point or of near ones.
 */
export function fit(points, size, { padding = 48, metresMin = 1_500 } = {}) {
    if (points.length === 0) return { x: 0.5, y: 0.45, scale: Math.max(scaleMin, size.width) };
    const worlds = points.map(project);
    const { start, width } = shortestRange(worlds.map(({ x }) => x));
    let top = 1;
    let bottom = 0;
    for (const { y } of worlds) {
        top = Math.min(top, y);
        bottom = Math.max(bottom, y);
    }
    const y = (top + bottom) / 2;
    const smallest = metresMin / (equator * Math.cos(unproject({ x: 0, y }).latitude * radians));
    const scale = Math.min(Math.max(1, size.width - 2 * padding) / Math.max(width, smallest),
        Math.max(1, size.height - 2 * padding) / Math.max(bottom - top, smallest));
    return limit({ x: start + width / 2, y, scale: Math.max(scaleMin, Math.min(scaleMax, scale)) });
}

/** Returns the start and width of the shortest range that contains all positions of a circle of length 1. */
function shortestRange(values) {
    const sorted = values.map((value) => value - Math.floor(value)).sort((a, b) => a - b);
    let widest = 1 - sorted[sorted.length - 1] + sorted[0];
    let start = sorted[0];
    for (let index = 1; index < sorted.length; index++) {
        const gap = sorted[index] - sorted[index - 1];
        if (gap > widest) {
            widest = gap;
            start = sorted[index];
        }
    }
    return { start, width: 1 - widest };
}

/**
 * Returns groups of points that are near each other at a scale. The groups do not depend on the window, so they stay
 * while the map moves. Each point is in exactly one.
 *
 * @param {{x: number, y: number}[]} points world positions, with any other properties
 * @param {number} scale
 * @param {number} radius pixels
 * @returns {{x: number, y: number, points: object[]}[]}
 */
export function cluster(points, scale, radius = 44) {
    const cell = radius / scale;
    const keyOf = (column, row) => column * 2 ** 25 + row;
    const cells = new Map();
    for (const point of points) {
        const column = Math.floor(point.x / cell);
        const row = Math.floor(point.y / cell);
        const key = keyOf(column, row);
        const group = cells.get(key);
        if (group) {
            group.sumX += point.x;
            group.sumY += point.y;
            group.points.push(point);
        } else {
            cells.set(key, { column, row, sumX: point.x, sumY: point.y, points: [point], target: undefined });
        }
    }
    const centre = (group) => ({ x: group.sumX / group.points.length, y: group.sumY / group.points.length });
    const bySize = [...cells.values()].sort((a, b) => b.points.length - a.points.length);
    const result = [];
    for (const group of bySize) {
        const { x, y } = centre(group);
        let nearest;
        let shortest = cell;
        for (let dx = -1; dx <= 1; dx++) {
            for (let dy = -1; dy <= 1; dy++) {
                const target = cells.get(keyOf(group.column + dx, group.row + dy))?.target;
                if (!target) continue;
                const length = Math.hypot(target.x - x, target.y - y);
                if (length < shortest) {
                    shortest = length;
                    nearest = target;
                }
            }
        }
        if (nearest) {
            nearest.points.push(...group.points);
        } else {
            group.target = { x, y, points: [...group.points] };
            result.push(group.target);
        }
    }
    return result;
}

/** Returns the scale at which clusters are computed: steps of a half zoom level. */
export function clusterScale(scale) {
    return 2 ** (Math.round(Math.log2(scale) * 2) / 2);
}

const minute = 1 / 60;
const second = 1 / 3600;
const degreeSteps = [60, 30, 15, 10, 5, 2, 1, 30 * minute, 15 * minute, 10 * minute, 5 * minute, 2 * minute, minute,
    30 * second, 15 * second, 10 * second, 5 * second, 2 * second, second];

/** Returns the smallest step of degrees, minutes or seconds that is at least `degrees`; 60 if none is. */
export function niceDegrees(degrees) {
    let result = degreeSteps[0];
    for (const step of degreeSteps) if (step >= degrees) result = step;
    return result;
}

/**
 * Returns the lines of the graticule in the window.
 *
 * @returns {{axis: "latitude"|"longitude", value: number, step: number, at: number}[]} `at`: pixels from the left
 *     for meridians, from the top for parallels
 */
export function graticule(view, size, spacing = 110) {
    const step = niceDegrees(spacing / view.scale * 360);
    const west = (toWorld(view, size, { x: 0, y: 0 }).x - 0.5) * 360;
    const east = (toWorld(view, size, { x: size.width, y: 0 }).x - 0.5) * 360;
    const lines = [];
    for (let index = Math.ceil(west / step); index * step <= east; index++) {
        const at = size.width / 2 + ((index * step) / 360 + 0.5 - view.x) * view.scale;
        lines.push({ axis: "longitude", value: wrapLongitude(index * step), step, at });
    }
    const north = unproject(toWorld(view, size, { x: 0, y: 0 })).latitude;
    const south = unproject(toWorld(view, size, { x: 0, y: size.height })).latitude;
    const centre = unproject(view).latitude;
    const narrow = niceDegrees(spacing * 0.8 / view.scale * 360 * Math.cos(centre * radians));
    for (let index = Math.ceil(south / narrow); index * narrow <= north; index++) {
        const value = index * narrow;
        if (Math.abs(value) > latitudeMax) continue;
        const at = size.height / 2 + (project({ latitude: value, longitude: 0 }).y - view.y) * view.scale;
        lines.push({ axis: "latitude", value, step: narrow, at });
    }
    return lines;
}

/** Returns the text of a graticule line, such as `55°40′N`; `step` determines whether minutes and seconds appear. */
export function degreesText(value, axis, step) {
    const total = Math.round(Math.abs(value) * 3600);
    const letter = total === 0 || (axis === "longitude" && total === 180 * 3600) ? ""
        : axis === "latitude" ? (value > 0 ? "N" : "S") : (value > 0 ? "E" : "W");
    const pad = (number) => String(number).padStart(2, "0");
    const minutes = step < 1 ? `${pad(Math.floor(total / 60) % 60)}′` : "";
    const seconds = step < minute * 0.999 ? `${pad(total % 60)}″` : "";
    return `${Math.floor(total / 3600)}°${minutes}${seconds}${letter}`;
}

/** Returns the largest of 1, 2 and 5 times a power of ten that is at most `value`. */
export function niceLength(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return ([5, 2].find((factor) => factor * power <= value * (1 + 1e-9)) ?? 1) * power;
}

/** Returns the scale bar at the centre of the window: its length in metres and in pixels. */
export function scaleBar(view, pixelsMax = 120) {
    const metresPerPixel = equator * Math.cos(unproject(view).latitude * radians) / view.scale;
    const metres = niceLength(metresPerPixel * pixelsMax);
    return { metres, pixels: metres / metresPerPixel };
}

/** Returns the radius in pixels of a length in metres at a latitude. */
export function pixelsOf(metres, latitude, view) {
    return metres / (equator * Math.max(0.01, Math.cos(latitude * radians))) * view.scale;
}

/**
 * Returns the lines of a GeoJSON object as world positions. Unknown geometries and invalid positions are omitted.
 *
 * @param {object} geometry a `FeatureCollection`, a `Feature` or a geometry
 * @returns {{isClosed: boolean, points: number[]}[]} `points`: x and y in turn
 */
export function outlinePaths(geometry) {
    const paths = [];
    const line = (positions, isClosed) => {
        const points = [];
        for (const position of Array.isArray(positions) ? positions : []) {
            const [longitude, latitude] = Array.isArray(position) ? position : [];
            if (!Number.isFinite(longitude) || !Number.isFinite(latitude)) continue;
            const { x, y } = project({ latitude, longitude });
            points.push(x, y);
        }
        if (points.length >= 4) paths.push({ isClosed, points });
    };
    const each = (items, visit) => { for (const item of Array.isArray(items) ? items : []) visit(item); };
    const add = (item, depth) => {
        if (!item || typeof item !== "object" || depth > 8) return;
        if (item.type === "FeatureCollection") each(item.features, (feature) => add(feature, depth + 1));
        if (item.type === "Feature") add(item.geometry, depth + 1);
        if (item.type === "GeometryCollection") each(item.geometries, (part) => add(part, depth + 1));
        if (item.type === "LineString") line(item.coordinates, false);
        if (item.type === "MultiLineString") each(item.coordinates, (part) => line(part, false));
        if (item.type === "Polygon") each(item.coordinates, (part) => line(part, true));
        if (item.type === "MultiPolygon") each(item.coordinates, (part) => each(part, (ring) => line(ring, true)));
    };
    add(geometry, 0);
    return paths;
}

function limit(view) {
    return { scale: view.scale, x: view.x - Math.floor(view.x), y: Math.max(0, Math.min(1, view.y)) };
}

function wrapLongitude(degrees) {
    const wrapped = ((degrees + 180) % 360 + 360) % 360 - 180;
    return wrapped === -180 && degrees > 0 ? 180 : wrapped;
}
