/**
 * Elements without a framework: `h` creates them, `morph` updates a container to equal new ones,
 * `view` renders once per animation frame.
 */

const svgTags = new Set(["svg", "path", "g", "circle", "ellipse", "line", "rect", "polyline", "polygon", "use", "defs",
    "text", "tspan", "clipPath", "marker", "pattern"]);
const listeners = Symbol("listeners");
const keyOf = Symbol("key");
const rendered = Symbol("rendered");
const reference = Symbol("reference");
const formProperties = ["value", "checked"];

/**
 * Creates an element. SVG tags are created in the SVG namespace.
 *
 * @param {string} tag
 * @param {?object} props `class` (string or array), `dataset`, `on` ({click: f}), `style` ({width: "1px"}), `key` for
 *     `morph`, `ref` (called with the element), `value` and `checked` (as properties), attributes. A boolean of an
 *     `aria-` attribute becomes "true" or "false"; of another attribute it sets or omits the attribute.
 * @param {...(Node|string|number|null|undefined|false|Array)} children A node that is in the document keeps its
 *     position and state when the result is rendered by `morph` or `view`.
 * @returns {Element}
 */
export function h(tag, props, ...children) {
    const element = svgTags.has(tag)
        ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    const { class: names, dataset, on, style, key, ref, value, checked, ...attributes } = props ?? {};
    if (names) {
        element.setAttribute("class", Array.isArray(names) ? names.filter(Boolean).join(" ") : names);
    }
    for (const name in dataset) {
        const text = dataset[name];
        if (text !== undefined && text !== null && text !== false) element.dataset[name] = text === true ? "" : text;
    }
    for (const name in attributes) setAttribute(element, name, attributes[name]);
    if (style) {
        for (const [name, text] of Object.entries(style)) {
            if (name.includes("-")) element.style.setProperty(name, text); else element.style[name] = text;
        }
    }
    if (key !== undefined && key !== null) element[keyOf] = String(key);
    if (on) setListeners(element, on);
    append(element, children);
    if (value !== undefined || checked !== undefined) {
        element[rendered] = {};
        if (value !== undefined) element.value = element[rendered].value = value ?? "";
        if (checked !== undefined) element.checked = element[rendered].checked = Boolean(checked);
    }
    ref?.(element);
    return element;
}

/**
 * Updates the children of a container to equal the new nodes. Focus, scroll position, typed values, open `details`
 * and the state of nodes that are passed again are kept; listeners are replaced.
 *
 * @param {Element} container
 * @param {Node|string|Array} children
 */
export function morph(container, children) {
    const wanted = flatten(children).map(toNode);
    const old = [...container.childNodes];
    const byKey = new Map();
    const isUsed = new Set();
    for (const node of old) if (node[keyOf] !== undefined) byKey.set(node[keyOf], node);
    const passed = new Set(wanted.map((node) => node[reference] ?? node));
    let next = 0;
    const result = wanted.map((node) => {
        const target = node[reference];
        if (target) {
            isUsed.add(target);
            return { target };
        }
        let match;
        if (node[keyOf] !== undefined) {
            match = byKey.get(node[keyOf]);
            if (match && (match.nodeName !== node.nodeName || isUsed.has(match))) match = undefined;
        } else if (!node.isConnected) {
            for (let index = next; index < old.length; index++) {
                const candidate = old[index];
                if (isUsed.has(candidate) || passed.has(candidate) || candidate[keyOf] !== undefined
                    || candidate.nodeName !== node.nodeName) continue;
                match = candidate;
                next = index + 1;
                break;
            }
        }
        if (match) isUsed.add(match);
        return { target: match ?? node, source: match && match !== node ? node : undefined };
    });
    for (const node of old) if (!isUsed.has(node)) node.remove();
    let cursor = container.firstChild;
    for (const { target, source } of result) {
        if (target === cursor) {
            cursor = cursor.nextSibling;
        } else {
            move(container, target, cursor);
        }
        if (source) patch(target, source); else if (!target.isConnected || !isUsed.has(target)) resolve(target);
    }
}

/**
 * Renders into an element, at most once per animation frame.
 *
 * @param {Element} root
 * @param {() => (Node|string|Array)} render
 * @returns {{update: () => void, flush: () => void, stop: () => void}} `update` schedules a render, `flush` renders
 *     at once, `stop` ends the view.
 */
export function view(root, render) {
    let isScheduled = false;
    let isStopped = false;
    const flush = () => {
        isScheduled = false;
        if (!isStopped) morph(root, render());
    };
    const update = () => {
        if (isScheduled || isStopped) return;
        isScheduled = true;
        if (document.hidden) setTimeout(flush, 50); else requestAnimationFrame(flush);
    };
    flush();
    return { update, flush, stop: () => { isStopped = true; } };
}

function setAttribute(element, name, value) {
    if (value === undefined || value === null) return;
    if (typeof value === "boolean" && !name.startsWith("aria-")) {
        if (value) element.setAttribute(name, "");
    } else {
        element.setAttribute(name, String(value));
    }
}

function dispatch(event) {
    return this[listeners]?.[event.type]?.call(this, event);
}

function setListeners(element, on) {
    const before = element[listeners] ?? {};
    for (const type of Object.keys(on)) {
        if (on[type] && !before[type]) element.addEventListener(type, dispatch);
    }
    for (const type of Object.keys(before)) if (!on[type]) element.removeEventListener(type, dispatch);
    element[listeners] = on;
}

function isOmitted(child) {
    return child === null || child === undefined || child === false || child === true || child === "";
}

function flatten(children) {
    return [children].flat(Infinity).filter((child) => !isOmitted(child));
}

function toNode(child) {
    return child instanceof Node ? child : document.createTextNode(String(child));
}

function append(element, children) {
    for (const child of children) {
        if (Array.isArray(child)) {
            append(element, child);
            continue;
        }
        if (isOmitted(child)) continue;
        const node = toNode(child);
        if (node.isConnected) {
            const placeholder = document.createComment("");
            placeholder[reference] = node;
            element.append(placeholder);
        } else {
            element.append(node);
        }
    }
}

/** Replaces the placeholders of connected nodes in a subtree that was inserted as a whole. */
function resolve(root) {
    if (root.nodeType !== Node.ELEMENT_NODE) return;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_COMMENT);
    const placeholders = [];
    while (walker.nextNode()) if (walker.currentNode[reference]) placeholders.push(walker.currentNode);
    for (const placeholder of placeholders) placeholder.replaceWith(placeholder[reference]);
}

function move(container, node, before) {
    if (container.moveBefore && node.isConnected && container.isConnected) {
        container.moveBefore(node, before);
    } else {
        container.insertBefore(node, before);
    }
}

function patch(target, source) {
    if (target.nodeType !== Node.ELEMENT_NODE) {
        if (target.data !== source.data) target.data = source.data;
        return;
    }
    for (const { name } of [...target.attributes]) {
        const isState = name === "open" && /^(DETAILS|DIALOG)$/.test(target.nodeName);
        if (name !== "style" && !isState && !source.hasAttribute(name)) target.removeAttribute(name);
    }
    for (const { name, value } of source.attributes) {
        if (name !== "style" && target.getAttribute(name) !== value) target.setAttribute(name, value);
    }
    const isStyled = source.hasAttribute("style") || target.hasAttribute("style");
    if (isStyled && target.style.cssText !== source.style.cssText) target.style.cssText = source.style.cssText;
    target[keyOf] = source[keyOf];
    if (source[listeners] || target[listeners]) setListeners(target, source[listeners] ?? {});
    const selected = target.nodeName === "SELECT" ? target.value : undefined;
    if (target.nodeName !== "TEXTAREA") morph(target, [...source.childNodes]);
    if (selected !== undefined && target.value !== selected) target.value = selected;
    const now = source[rendered];
    for (const property of formProperties) {
        if (now?.[property] === undefined || target[rendered]?.[property] === now[property]) continue;
        if (target[property] !== now[property]) target[property] = now[property];
    }
    target[rendered] = now;
}

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
