/** The Tasks view: a list with scopes, filters and a search; the detail and the editor are modules of their own. */

import { filterTasks, isOverdue, resortTasks, sortings, states, tasksInScope } from "../core/tasks.js";
import { button, chip, empty, icon, page, panes, segmented, select, skeleton } from "../ui/components.js";
import { h, view } from "../ui/dom.js";
import { virtualList } from "../ui/list.js";
import { setCompleted, TaskDetail } from "./task-detail.js";
import { TaskEditor } from "./task-editor.js";
import { TasksModel } from "./tasks-model.js";

export const route = "tasks";

/** The choices of the list; they remain while the app is open. */
const choices = { scope: undefined, state: "open", sorting: "due", team: "", assignee: "", query: "", isOpen: false };

/** Renders the view. Addresses: `tasks`, `tasks/new`, `tasks/new/TEAM`, `tasks/ID`, `tasks/ID/edit`. */
export function mount(app, root, segments) {
    let address = segments;
    let display;
    let detail;
    let editor;
    let shown;
    let visible;
    let prepared = 0;
    let isPreparing = false;
    let isUnmounted = false;
    const update = () => display?.update();
    const model = new TasksModel(app, update);
    choices.scope ??= app.isManager ? "all" : "mine";
    if (!app.isManager && choices.scope === "all") choices.scope = "mine";
    const list = virtualList({ items: [], key: (task) => task.id, rowHeight: 76, label: app.t("tasks.title"),
        row: (task) => taskRow(model, task, { isSelected: task.id === address[0] }) });

    /** Returns the tasks to list; the same array while its sources and the choices stay. */
    function visibleTasks() {
        const { now } = model;
        const near = choices.sorting === "place" ? model.positions.get(app.me.person) : undefined;
        const { isOpen, ...filter } = choices;
        const key = [model.tasks, model.ownTeams, model.minute, near, choices.query && model.people,
            JSON.stringify(filter)];
        if (visible && key.every((part, index) => part === visible.key[index])) return visible;
        const scoped = tasksInScope(model.tasks, { scope: choices.scope, person: app.me.person, own: model.own,
            teams: model.ownTeams });
        const filtered = filterTasks(scoped, { ...filter, now, nameOf: (id) => model.personName(id) });
        const isResorted = visible?.sorting === choices.sorting && visible.key[3] === near;
        const tasks = resortTasks(isResorted ? visible.tasks : [], filtered, choices.sorting,
            { near, compare: app.format.compare });
        visible = { key, scoped, tasks, sorting: choices.sorting,
            overdue: tasks.filter((task) => isOverdue(task, now)).length };
        prepared = 0;
        if (!isPreparing) prepareSearch();
        return visible;
    }

    /** Computes the search texts in short slices while the page is idle, so that the first search is fast. */
    function prepareSearch(deadline) {
        while (prepared < model.tasks.length && (deadline?.timeRemaining?.() ?? 0) > 2) {
            model.tasks[prepared].words; // The getter stores its result.
            prepared += 1;
        }
        isPreparing = prepared < model.tasks.length && !isUnmounted;
        if (isPreparing) globalThis.requestIdleCallback?.(prepareSearch);
    }

    function choose(values) {
        Object.assign(choices, values);
        update();
    }

    function filters() {
        const scopes = ["mine", "team", ...(app.isManager ? ["all"] : [])];
        const count = [choices.team, choices.assignee].filter(Boolean).length;
        const selection = (name, options) => select({ label: app.t(`tasks.${name}`), value: choices[name],
            onChange: (value) => choose({ [name]: value }), options });
        return h("div", { class: "tasks-filters" },
            segmented({ label: app.t("tasks.scope"), value: choices.scope, onChange: (scope) => choose({ scope }),
                options: scopes.map((value) => ({ value, label: app.t(`tasks.scope.${value}`) })) }),
            h("div", { class: "row" },
                h("div", { class: "searchbox" }, icon("search"), h("input", { class: "control", type: "search",
                    value: choices.query, placeholder: app.t("tasks.search"), "aria-label": app.t("tasks.search"),
                    on: { input: (event) => choose({ query: event.target.value }) } })),
                button({ label: count > 0 ? app.t("tasks.filtersOn", { n: count }) : app.t("tasks.filters"),
                    icon: "filter", isIconOnly: true, isPressed: choices.isOpen || count > 0,
                    onClick: () => choose({ isOpen: !choices.isOpen }) })),
            h("div", { class: "tasks-choices" },
                selection("state", states.map((value) => ({ value, label: app.t(`tasks.state.${value}`) }))),
                selection("sorting", sortings.map((value) => ({ value, label: app.t(`tasks.sort.${value}`) }))),
                choices.isOpen && selection("team", [{ value: "", label: app.t("tasks.anyTeam") },
                    { value: "none", label: app.t("tasks.noTeam") },
                    ...model.teams.map(({ id, name }) => ({ value: id, label: name }))]),
                choices.isOpen && selection("assignee", [{ value: "", label: app.t("tasks.anyAssignee") },
                    { value: "none", label: app.t("tasks.noAssignee") },
                    ...model.people.map(({ id, name }) => ({ value: id, label: name }))])));
    }

    function emptyState(scoped) {
        const isFiltered = choices.query || choices.team || choices.assignee;
        const reset = button({ label: app.t("tasks.resetFilters"), onClick: () => choose({ query: "", team: "",
            assignee: "", state: "all" }) });
        if (scoped.length > 0 && isFiltered) {
            return empty({ icon: "search", title: app.t("tasks.noMatch"), text: app.t("tasks.noMatchText"),
                action: reset });
        }
        if (scoped.length > 0) {
            return empty({ icon: "check-circle", title: app.t(`tasks.none.${choices.state}`),
                text: app.t("tasks.noneText", { n: scoped.length }), action: reset });
        }
        return empty({ icon: "tasks", title: app.t(`tasks.empty.${choices.scope}`),
            text: app.t(`tasks.emptyText.${choices.scope}`), action: app.isManager && button({
                label: app.t("tasks.new"), icon: "plus", kind: "primary", href: "#/tasks/new" }) });
    }

    function listPage() {
        const { scoped, tasks, overdue } = visibleTasks();
        const source = [address[0], model.teams, model.people, model.minute];
        const isSame = shown && source.every((part, index) => part === shown.source[index]);
        if (!isSame || shown.tasks !== tasks) {
            shown = { tasks, source: isSame ? shown.source : source };
            list.update(tasks, shown.source);
        }
        const content = model.isLoading && model.tasks.length === 0 ? skeleton(6)
            : tasks.length === 0 ? emptyState(scoped) : list;
        const counts = [app.t("tasks.count", { n: tasks.length }),
            overdue > 0 && app.t("tasks.overdueCount", { n: overdue })];
        return page({ title: app.t("tasks.title"),
            subtitle: !model.isLoading && counts.filter(Boolean).join(", "),
            actions: app.isManager && button({ label: app.t("tasks.new"), icon: "plus", kind: "primary",
                href: "#/tasks/new" }) }, filters(), content);
    }

    function detailPage() {
        const [id, action] = address;
        if (!id) return undefined;
        const isNew = id === "new";
        const task = isNew ? undefined : model.task(id);
        if ((isNew || (task && action === "edit")) && app.isManager) {
            const key = address.join("/");
            if (editor?.key !== key) editor = new TaskEditor(model, { key, task, team: isNew && action, update });
            return editor.render();
        }
        editor = undefined;
        if (!task) {
            const back = { href: "#/tasks", label: app.t("app.back") };
            return page({ title: app.t("tasks.task"), back }, model.isLoading ? skeleton(3) : empty({ icon: "tasks",
                title: app.t("tasks.gone"), text: app.t("tasks.goneText"),
                action: button({ label: app.t("tasks.toList"), href: "#/tasks" }) }));
        }
        if (detail?.id !== id) {
            detail?.stop();
            detail = new TaskDetail(model, { id, update });
        }
        return detail.render(task);
    }

    display = view(root, () => panes({ list: listPage(), detail: detailPage(),
        placeholder: empty({ icon: "tasks", title: app.t("tasks.choose"), text: app.t("tasks.chooseText") }) }));
    return {
        update(next) {
            if (address.join("/") !== next.join("/")) root.querySelector(".pane-detail")?.scrollTo(0, 0);
            address = next;
            update();
        },
        unmount() {
            isUnmounted = true;
            detail?.stop();
            model.stop();
            display.stop();
        },
    };
}

/** Returns a row of a task list: a button that completes the task, its title and the most important values. */
export function taskRow(model, task, { isSelected, isCompact } = {}) {
    const { app } = model;
    const late = isOverdue(task, model.now);
    const label = app.t(task.isCompleted ? "tasks.reopenTitle" : "tasks.completeTitle", { title: task.title });
    const names = [task.team && model.teamName(task.team), !isCompact && task.assignee
        && task.assignee !== app.me.person && model.personName(task.assignee), task.address].filter(Boolean);
    return h("div", { class: ["task-row", task.isCompleted && "is-completed", late && "is-overdue",
        isSelected && "is-selected"] },
    h("button", { class: "task-check", type: "button", "aria-label": label, title: label,
        on: { click: () => setCompleted(model, task, !task.isCompleted, { canUndo: true }) } },
    icon(task.isCompleted ? "check-circle" : "circle")),
    h("a", { class: "task-link", href: `#/tasks/${task.id}`, "aria-current": isSelected ? "true" : undefined },
        h("span", { class: "task-title truncate" }, task.title || app.t("tasks.untitled")),
        h("span", { class: "task-meta" }, dueChip(model, task),
            task.isPending && h("span", { class: "task-pending", title: app.t("app.pending") },
                icon("cloud", { size: "small" }), h("span", { class: "visually-hidden" }, app.t("app.pending"))),
            h("span", { class: "truncate" }, names.join(" · ")))));
}

/** Returns the due or completion date as a chip or text; nothing without a date. */
export function dueChip({ app, now }, task) {
    if (task.isCompleted) {
        return chip({ kind: "ok", icon: "check", label: task.done === null ? app.t("tasks.completed")
            : app.format.date(task.done) });
    }
    if (task.due === null) return null;
    const days = Math.abs(task.due - now) / 86_400_000;
    const text = days < 6.5 ? app.format.relative(task.due) : app.format.date(task.due);
    if (task.due < now) {
        return chip({ kind: "bad", icon: "warning", label: app.t("tasks.overdueSince", { time: text }) });
    }
    return chip({ kind: days < 1 ? "warn" : "muted", icon: "calendar", label: app.t("tasks.dueAt", { time: text }) });
}
