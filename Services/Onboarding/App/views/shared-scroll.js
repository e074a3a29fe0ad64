/** Scroll positions of a view with a list and a detail. */

/**
 * Keeps the positions of lists, whose keys begin with "list"; details begin at the top.
 *
 * @param {Element} root
 * @returns {{leave: (key: string) => void, enter: (key: string) => void}}
 */
export function scrollMemory(root) {
    const positions = new Map();
    const isList = (key) => key.startsWith("list");
    const pane = (name) => root.querySelector(`.pane-${name}`);
    let last;
    return {
        leave(key) {
            last = key;
            if (isList(key)) positions.set(key, root.closest("main")?.scrollTop ?? 0);
        },
        enter(key) {
            if (key === last) return;
            const main = root.closest("main");
            if (main) main.scrollTop = isList(key) ? positions.get(key) ?? 0 : 0;
            if (!isList(key) && pane("detail")) pane("detail").scrollTop = 0;
        },
    };
}
