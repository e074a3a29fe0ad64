/** The orders of task lists. Pure functions. */

/** The orders of a task list. */
export const sortings = ["due", "title", "created", "place"];

/**
 * Returns the tasks in order; open tasks precede completed ones. Tasks with the same value are ordered by title, then
 * by id, as in the device client's `TaskLists`.
 *
 * @param {object[]} tasks
 * @param {string} sorting one of `sortings`; `place` needs `near`
 * @param {{near?: {latitude: number, longitude: number}, compare?: (a: string, b: string) => number}} options
 */
export function sortTasks(tasks, sorting = "due", options = {}) {
    return [...tasks].sort(taskOrder(tasks, sorting, options));
}

function taskOrder(tasks, sorting, { near, compare = codePoints } = {}) {
    const distances = new Map();
    if (sorting === "place" && near) for (const task of tasks) distances.set(task.id, distance(near, task));
    const byTitle = (a, b) => compare(a.title, b.title) || codePoints(a.id, b.id);
    const orders = {
        title: byTitle,
        created: (a, b) => (b.created ?? -Infinity) - (a.created ?? -Infinity) || byTitle(a, b),
        place: near ? (a, b) => difference(distances.get(a.id), distances.get(b.id)) || byTitle(a, b)
            : (a, b) => compare(a.address || "\uffff", b.address || "\uffff") || byTitle(a, b),
        due: (a, b) => (a.isCompleted ? difference(b.done ?? -Infinity, a.done ?? -Infinity)
            : difference(a.due ?? Infinity, b.due ?? Infinity)) || byTitle(a, b),
    };
    const order = orders[sorting] ?? orders.due;
    return (a, b) => Number(a.isCompleted) - Number(b.isCompleted) || order(a, b);
}

/**
 * Returns the tasks in order, as `sortTasks`. Only those that the previous result does not contain are sorted; they are
 * merged into the others, which are in order already.
 */
export function resortTasks(previous, tasks, sorting, options) {
    const added = new Set(tasks);
    const kept = previous.filter((task) => added.delete(task));
    const order = taskOrder(tasks, sorting, options);
    const result = [];
    let next = 0;
    for (const task of [...added].sort(order)) {
        let [low, high] = [next, kept.length];
        while (low < high) {
            const middle = (low + high) >> 1;
            if (order(kept[middle], task) <= 0) low = middle + 1; else high = middle;
        }
        while (next < low) result.push(kept[next++]);
        result.push(task);
    }
    while (next < kept.length) result.push(kept[next++]);
    return result;
}

/** Returns the distance of two coordinates in metres; Infinity if one has none. */
export function distance(a, b) {
    if (a?.latitude == null || b?.latitude == null) return Infinity;
    const radians = (degrees) => degrees * Math.PI / 180;
    const squared = Math.sin(radians(b.latitude - a.latitude) / 2) ** 2 + Math.cos(radians(a.latitude))
        * Math.cos(radians(b.latitude)) * Math.sin(radians(b.longitude - a.longitude) / 2) ** 2;
    return 2 * 6_371_008.8 * Math.asin(Math.min(1, Math.sqrt(squared)));
}

/** Compares two texts by their UTF-16 units. */
export function codePoints(a, b) {
    return a < b ? -1 : a > b ? 1 : 0;
}

function difference(a, b) {
    return a === b ? 0 : a < b ? -1 : 1;
}
