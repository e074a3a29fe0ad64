/**
 * The choices of a time entry, by the rules of `docs/apps/reporting-picker.md`. The golden vectors of
 * `examples/picker` test this module.
 */

/** Maximum number of levels below the root of a section. */
const depthMax = 64;
/** Maximum number of cached forms. */
const formsMax = 8;

/**
 * @typedef {object} ReportingObjects Fields by id. `nodes` are those of the person's catalogue; `retired` are the nodes
 *     of the own realm, which only have titles for earlier selections.
 * @property {Map<string, object>} templates
 * @property {Map<string, object>} contexts
 * @property {Map<string, object>} nodes
 * @property {Map<string, object>} [retired]
 *
 * @typedef {{context: string, node: string}} Selection
 * @typedef {{code: string, context: ?string, node: ?string, message: string}} Problem
 * @typedef {{node: string, title: string, depth: number}} Option
 * @typedef {object} Choice
 * @property {string} context
 * @property {string} name
 * @property {boolean} required
 * @property {boolean} visible
 * @property {boolean} changeable
 * @property {string[]} selected
 * @property {boolean} preselected Whether preselected nodes are selected.
 * @property {string[]} rejected
 * @property {{name: string, shown: number, options: Option[]}[]} sections
 */

/** The picker of a device's copy. Create it again if an object of the two realms changed, except entries. */
export class Picker {
    #user;
    #objects;
    #children;
    /** The latest forms: a page computes the form of the same selections several times. */
    #forms = new Map();
    /** The first offer of each section, and whether it depends on earlier nodes. */
    #offered = new Map();

    /**
     * @param {?object} user The fields of the `User`.
     * @param {ReportingObjects} objects
     */
    constructor(user, objects) {
        this.#user = user ?? {};
        this.#objects = { retired: new Map(), ...objects };
    }

    /** Returns the ids of the templates to offer, in display order: those that a new entry can use. */
    get templates() {
        return (this.#user.reportingTemplates ?? []).filter((id) => {
            const template = this.#objects.templates.get(id);
            return template && (template.reportingContexts ?? []).every((context) => this.#isUsable(context));
        });
    }

    /** Returns the fields of a template, also of one that is not offered. */
    template(id) {
        return this.#objects.templates.get(id);
    }

    /** Returns a node's title, also of a node that can no longer be selected; undefined if there is no such node. */
    title(node) {
        const fields = this.#objects.nodes.get(node) ?? this.#objects.retired.get(node);
        return fields && titleOf(fields);
    }

    /** Returns the back end's id of a node. */
    reference(node) {
        return this.#objects.nodes.get(node)?.referenceId ?? undefined;
    }

    /**
     * Returns the titles of an entry's selected or preselected nodes in the order of its template, each with its
     * context's name. Contexts that are not visible are omitted.
     *
     * @param {object} entry Fields of a `TimeEntry`.
     * @returns {{context: string, name: string, node: string, title: string}[]}
     */
    names(entry) {
        const template = this.#objects.templates.get(entry.reportingTemplate);
        const contexts = template?.reportingContexts ?? [...new Set((entry.reporting ?? []).map((one) => one.context))];
        const names = [];
        for (const context of contexts) {
            const fields = this.#objects.contexts.get(context);
            if (fields?.visible === false) continue;
            const own = given(entry, context);
            for (const node of own.length > 0 ? own : fields?.preselected ?? []) {
                const title = this.title(node);
                if (title !== undefined) names.push({ context, name: fields?.name ?? "", node, title });
            }
        }
        return names;
    }

    /**
     * Returns the choices of an entry's template, the selections to write, and the problems of the entry as it is.
     * Do not modify the result: it is cached.
     *
     * @param {object} entry Fields of a `TimeEntry`.
     * @returns {{choices: Choice[], selections: Selection[], problems: Problem[]}}
     */
    form(entry) {
        const key = JSON.stringify([entry.reportingTemplate, entry.reporting, Boolean(entry.backendId)]);
        if (!this.#forms.has(key)) {
            if (this.#forms.size >= formsMax) this.#forms.clear();
            this.#forms.set(key, this.#makeForm(entry));
        }
        return this.#forms.get(key);
    }

    #makeForm(entry) {
        const template = this.#objects.templates.get(entry.reportingTemplate);
        const choices = [];
        const selections = [];
        const earlier = new Set();
        for (const id of template?.reportingContexts ?? []) {
            const context = this.#objects.contexts.get(id);
            if (!context) continue;
            const possible = (nodes) => nodes.filter((node) => !this.#nodeProblem(node, id, context, earlier));
            const own = given(entry, id);
            const changeable = !isFixed(context);
            const kept = changeable ? possible(own) : entry.backendId ? own : [];
            const applied = kept.length > 0 ? kept : context.preselected ?? [];
            const selected = possible(applied);
            choices.push({
                context: id, name: context.name, required: Boolean(context.required),
                visible: context.visible !== false, changeable, selected,
                preselected: kept.length === 0 && selected.length > 0,
                rejected: [...new Set([...own, ...applied])].filter((node) => !selected.includes(node)),
                sections: changeable ? this.#sections(context, earlier) : [],
            });
            for (const node of kept) selections.push({ context: id, node });
            for (const node of selected) earlier.add(node);
        }
        return { choices, selections, problems: this.problems(entry) };
    }

    /**
     * Returns an entry's selections after a change of one context.
     *
     * @param {?string} node The context's only selected node; null removes the selection, so that preselected nodes
     *     apply.
     * @param {string} context
     * @param {object} entry The entry before the change.
     * @returns {Selection[]} The possible selections, in the template's order.
     */
    select(node, context, entry) {
        const reporting = (entry.reporting ?? []).filter((selection) => selection.context !== context);
        if (node) reporting.push({ context, node });
        return this.form({ ...entry, reporting }).selections;
    }

    /** Returns the problems of an entry's template and selections; empty if it can be submitted with them. */
    problems(entry) {
        if (!entry.reportingTemplate) return [problem("template-missing", "Template is missing")];
        const template = this.#objects.templates.get(entry.reportingTemplate);
        if (!template) return [problem("template-unavailable", "Template is not available any more")];
        const found = [];
        const earlier = new Set();
        const contexts = template.reportingContexts ?? [];
        for (const id of contexts) {
            const context = this.#objects.contexts.get(id);
            if (!context) {
                found.push(problem("context-unavailable",
                    `Template '${template.name}' refers to a choice that does not exist`, id));
                continue;
            }
            const preselected = context.preselected ?? [];
            const own = given(entry, id);
            const nodes = own.length > 0 ? own : preselected;
            if (isFixed(context) && !entry.backendId && !isSameSet(nodes, preselected)) {
                found.push(problem("selection-fixed", `${context.name} cannot be changed`, id));
                continue;
            }
            if (nodes.length === 0 && context.required) {
                found.push(problem("selection-missing", `${context.name} is missing`, id));
            }
            if (nodes.length > 1) {
                found.push(problem("selection-ambiguous", `Only one ${context.name} can be selected`, id));
            }
            for (const node of nodes) {
                const rejection = this.#nodeProblem(node, id, context, earlier);
                if (rejection) found.push(rejection);
            }
            for (const node of nodes) earlier.add(node);
        }
        for (const { context, node } of entry.reporting ?? []) {
            if (contexts.includes(context)) continue;
            const name = this.#objects.contexts.get(context)?.name ?? context;
            found.push(problem("context-not-in-template", `${name} is not part of template '${template.name}'`,
                context, node));
        }
        return found;
    }

    /**
     * Returns the options of a choice that match a query, each once, in display order. Each term has to occur in the
     * title or the reference. Accents are compared as they are.
     *
     * @param {Choice} choice
     * @param {string} query
     * @returns {Option[]}
     */
    search(choice, query) {
        const terms = query.toLowerCase().split(/\s+/u).filter(Boolean);
        const found = new Map();
        for (const section of choice.sections) {
            for (const option of section.options) {
                if (found.has(option.node)) continue;
                const texts = [option.title.toLowerCase(), (this.reference(option.node) ?? "").toLowerCase()];
                if (terms.every((term) => texts.some((text) => text.includes(term)))) found.set(option.node, option);
            }
        }
        return [...found.values()];
    }

    /**
     * Returns the options of a choice that the person's latest entries select.
     *
     * @param {Choice} choice
     * @param {object[]} recent Fields of entries, the latest first.
     * @param {number} countMax
     * @returns {Option[]}
     */
    suggestions(choice, recent, countMax = 5) {
        const options = optionsByNode(choice);
        const found = new Set();
        for (const entry of recent) {
            for (const node of given(entry, choice.context)) if (options.has(node)) found.add(node);
            if (found.size >= countMax) break;
        }
        return [...found].slice(0, countMax).map((node) => options.get(node));
    }

    #isUsable(id) {
        const context = this.#objects.contexts.get(id);
        if (!context || !isFixed(context)) return Boolean(context);
        const nodes = context.preselected ?? [];
        if (nodes.length > 1 || (nodes.length === 0 && context.required)) return false;
        return nodes.every((node) => {
            const rejection = this.#nodeProblem(node, id, context, new Set());
            return !rejection || rejection.code === "node-excluded";
        });
    }

    #nodeProblem(id, contextID, context, earlier) {
        const node = this.#objects.nodes.get(id);
        const rejection = (code, text) => problem(code, `${context.name}: ${text}`, contextID, id);
        if (!node) return rejection("node-unavailable", "the selection is not available any more");
        if (!(context.sections ?? []).some((section) => this.#contains(section, id))) {
            return rejection("node-not-offered", `'${titleOf(node)}' is not one of its choices`);
        }
        if (!canFollow(node, earlier)) {
            return rejection("node-excluded", `'${titleOf(node)}' does not go with the selections before it`);
        }
        return undefined;
    }

    #contains(section, id) {
        if ((section.items ?? []).includes(id)) return true;
        const root = section.rootNode ?? undefined;
        if (root === undefined || id === root) return false;
        let node = id;
        for (let level = 0; level < depthMax; level++) {
            node = this.#objects.nodes.get(node)?.parent ?? undefined;
            if (node === undefined) return false;
            if (node === root) return true;
        }
        return false;
    }

    #sections(context, earlier) {
        const sections = [];
        for (const section of context.sections ?? []) {
            if (!this.#offered.has(section)) this.#offered.set(section, this.#makeSection(section, earlier));
            const { offered, isDependent } = this.#offered.get(section);
            // Most sections have no dependencies: their options are always the same.
            const one = isDependent ? this.#makeSection(section, earlier).offered : offered;
            if (one) sections.push(one);
        }
        return sections;
    }

    #makeSection(section, earlier) {
        const options = new Map();
        let isDependent = false;
        const offer = (id, depth) => {
            const node = this.#objects.nodes.get(id);
            if (node?.hasDependencies) isDependent = true;
            if (node && !options.has(id) && canFollow(node, earlier)) {
                options.set(id, { node: id, title: titleOf(node), depth });
            }
        };
        for (const item of section.items ?? []) offer(item, 0);
        const root = section.rootNode ?? undefined;
        const walk = (parent, depth) => {
            if (depth >= depthMax) return;
            for (const child of this.#childrenOf(parent)) {
                // A cycle through the root ends at the root.
                if (child === root) continue;
                offer(child, depth);
                walk(child, depth + 1);
            }
        };
        if (root !== undefined) walk(root, 0);
        const shown = Math.min(Math.max(section.showCount ?? options.size, 0), options.size);
        const offered = options.size > 0 ? { name: section.name, shown, options: [...options.values()] } : undefined;
        return { offered, isDependent };
    }

    #childrenOf(parent) {
        if (!this.#children) {
            this.#children = new Map();
            for (const [id, node] of this.#objects.nodes) {
                if (!node.parent) continue;
                if (!this.#children.has(node.parent)) this.#children.set(node.parent, []);
                this.#children.get(node.parent).push({ id, title: titleOf(node).toLowerCase() });
            }
            for (const [id, list] of this.#children) {
                list.sort((a, b) => compareCodePoints(a.title, b.title) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
                this.#children.set(id, list.map((child) => child.id));
            }
        }
        return this.#children.get(parent) ?? [];
    }
}

/** Returns the options of all sections of a choice by node, each once, in display order. */
export function optionsByNode(choice) {
    const options = new Map();
    for (const section of choice.sections) {
        for (const option of section.options) if (!options.has(option.node)) options.set(option.node, option);
    }
    return options;
}

function given(entry, context) {
    return (entry.reporting ?? []).filter((selection) => selection.context === context).map(({ node }) => node);
}

function isFixed(context) {
    return Boolean(context.readOnly) || context.visible === false;
}

function canFollow(node, earlier) {
    return !node.hasDependencies || (node.dependencies ?? []).some((dependency) => earlier.has(dependency));
}

function titleOf(node) {
    return node.title ?? node.name;
}

function isSameSet(left, right) {
    const [a, b] = [new Set(left), new Set(right)];
    return a.size === b.size && [...a].every((value) => b.has(value));
}

function problem(code, message, context = null, node = null) {
    return { code, context, node, message };
}

/** Compares code point by code point; `<` of strings compares UTF-16 units. */
function compareCodePoints(left, right) {
    const [a, b] = [left[Symbol.iterator](), right[Symbol.iterator]()];
    for (;;) {
        const [x, y] = [a.next(), b.next()];
        if (x.done || y.done) return x.done ? (y.done ? 0 : -1) : 1;
        const difference = x.value.codePointAt(0) - y.value.codePointAt(0);
        if (difference !== 0) return difference;
    }
}
