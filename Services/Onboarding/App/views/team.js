/** The Team view: teams and members with workload and last position, a map, and the sharing of the own position. */

import { distance, isOverdue, sortTasks } from "../core/tasks.js";
import { avatar, button, card, chip, empty, initials, page, panes, segmented, select, skeleton,
    toggle } from "../ui/components.js";
import { h, view } from "../ui/dom.js";
import { virtualList } from "../ui/list.js";
import { createMap } from "../ui/map.js";
import { taskRow } from "./tasks.js";
import { TasksModel } from "./tasks-model.js";
import { editTeam, teamMembers } from "./team-editor.js";
import { onSharing, sharing, startSharing, stopSharing } from "./team-position.js";

export const route = "team";

const choices = { list: "teams", content: "open", order: "name" };

/** Renders the view. Addresses: `team`, `team/map`, `team/map/ID`, `team/person/ID`, `team/team/ID`. */
export function mount(app, root, segments) {
    let address = segments;
    let display;
    let shown;
    let points;
    let listed;
    let isListOpen = false;
    const cards = new Map();
    const update = () => display?.update();
    const model = new TasksModel(app, update);
    const stopListening = onSharing(update);
    const map = createMap(app, {
        label: app.t("team.mapLabel"), onSelect: open, onSelectGroup: openGroup,
        legend: ["task", "overdue", "person", "me"].map((kind) => ({ kind, label: app.t(`team.legend.${kind}`) })),
    });
    const pointList = virtualList({ items: [], key: ({ id }) => id, rowHeight: 56, label: app.t("team.pointList"),
        row: pointRow });
    const taskList = virtualList({ items: [], key: ({ id }) => id, rowHeight: 76, label: app.t("tasks.title"),
        row: (task) => taskRow(model, task, { isCompact: address[0] === "person" }) });
    // The map is usable without it.
    app.fieldpost.outline((outline) => map.setOutline(outline)).catch(() => {});

    function open(point) {
        app.navigate(point.kind === "person" || point.kind === "me" ? `team/person/${point.id}` : `tasks/${point.id}`);
    }

    function openGroup(group) {
        const dialog = app.dialog({ title: app.t("team.groupLabel", { n: group.length }),
            content: h("ul", { class: "point-dialog" }, group.slice(0, 200).map((point) => h("li", null,
                h("button", { class: "menu-item", type: "button", on: { click: () => {
                    dialog.close();
                    open(point);
                } } }, sign(point), h("span", null, point.label))))) });
    }

    function sign(point) {
        return h("span", { class: ["map-sign", `map-${point.kind}`], "aria-hidden": true }, point.initials ?? "");
    }

    /** Returns the points of the map; the same array while nothing changed. */
    function mapPoints() {
        const key = [model.tasks, model.positions, model.people, model.minute, choices.content];
        if (points && key.every((part, index) => part === points.key[index])) return points.items;
        const { now } = model;
        const tasks = choices.content === "people" ? [] : model.tasks.filter((task) => task.latitude !== null
            && (choices.content === "all" || !task.isCompleted));
        const people = [...model.positions.values()].filter(({ id }) => model.person(id));
        const items = [
            ...tasks.map((task) => taskPoint(app, task, now)),
            ...people.map((position) => ({ ...position, kind: position.id === app.me.person ? "me" : "person",
                initials: initials(model.personName(position.id)),
                label: app.t("team.personAt", { name: model.personName(position.id), time: ageText(position) }) })),
        ];
        points = { key, items };
        return items;
    }

    /** Updates the list of points while it is open: the labels of all points are needed for their order. */
    function updatePointList(items) {
        if (!isListOpen || listed === items) return;
        listed = items;
        pointList.update([...items].sort((a, b) => app.format.compare(a.label, b.label)));
    }

    function ageText(position) {
        return position.time === null ? app.t("team.timeUnknown") : app.format.relative(position.time);
    }

    function pointRow(point) {
        const isPerson = point.kind === "person" || point.kind === "me";
        return h("a", { class: "point-row", href: isPerson ? `#/team/person/${point.id}` : `#/tasks/${point.id}` },
            sign(point), h("span", { class: "grow truncate" }, point.label),
            h("span", { class: "muted small number" }, `${point.latitude.toFixed(3)}, ${point.longitude.toFixed(3)}`));
    }

    function mapPage() {
        const items = mapPoints();
        map.update(items, address[1]);
        updatePointList(items);
        const isDetail = address[0] === "map";
        const missing = choices.content === "people" ? 0 : model.tasks.filter((task) => task.latitude === null
            && (choices.content === "all" || !task.isCompleted)).length;
        return h("section", { class: "map-page" },
            h("header", { class: "map-head" },
                isDetail && h("span", { class: "map-back" }, button({ label: app.t("app.back"), icon: "back",
                    isIconOnly: true, kind: "quiet", href: "#/team" })),
                h(isDetail ? "h1" : "h2", { tabindex: -1 }, app.t("team.map")),
                segmented({ label: app.t("team.mapContent"), value: choices.content,
                    options: ["open", "all", "people"].map((value) => ({ value,
                        label: app.t(`team.content.${value}`) })),
                    onChange: (content) => { choices.content = content; update(); } })),
            map.element,
            items.length === 0 && h("p", { class: "map-empty" }, model.isLoading ? app.t("team.loading")
                : app.t("team.mapEmpty")),
            h("details", { class: "map-list", on: { toggle: (event) => {
                isListOpen = event.target.open;
                updatePointList(points.items);
            } } }, h("summary", null, [
                app.t("team.pointCount", { n: items.length }),
                missing > 0 && app.t("team.withoutPlace", { n: missing })].filter(Boolean).join(" · ")),
                h("div", { class: "map-list-items" }, pointList)));
    }

    function sharingCard() {
        const { isOn, problem } = sharing();
        const [own] = app.fieldpost.objects("Location", { realm: model.own });
        const isAvailable = "geolocation" in navigator;
        const hint = !isAvailable ? app.t("team.shareUnavailable") : problem ? app.t(`team.share.${problem}`)
            : isOn ? app.t("team.shareOn") : app.t("team.shareHint");
        return h("div", { class: ["share-card", isOn && "is-on"] },
            toggle({ label: app.t("team.share"), hint, checked: isOn, disabled: !isAvailable || !app.me.person,
                onChange: (isChecked) => (isChecked ? startSharing(app) : stopSharing()) }),
            own && !isOn && button({ label: app.t("team.removePosition"), kind: "quiet", icon: "trash",
                onClick: () => app.report(app.fieldpost.delete(model.own, "Location", app.me.person)) }));
    }

    function load(counts) {
        if (!counts?.open) return chip({ label: app.t("team.noLoad"), kind: "muted" });
        return [chip({ label: app.t("team.load", { n: counts.open }), kind: "info" }),
            counts.overdue > 0 && chip({ label: app.t("tasks.overdueCount", { n: counts.overdue }), kind: "bad" })];
    }

    function personCard(person, extra) {
        const position = model.positions.get(person.id);
        return card({ key: person.id, href: `#/team/person/${person.id}`, isSelected: address[1] === person.id,
            lead: avatar({ app, name: person.name, image: person.avatar }),
            title: [person.name, person.id === app.me.person
                && h("span", { class: "muted" }, ` (${app.t("team.you")})`)],
            meta: [load(model.loads.get(person.id)),
                position && h("span", null, app.t("team.seen", { time: ageText(position) }))], actions: extra });
    }

    /** Returns a person's card: the same element while its content stays, because there may be hundreds. */
    function keptCard(person) {
        const load = model.loads.get(person.id);
        const key = [person, load?.open, load?.overdue, model.positions.get(person.id)?.time,
            address[1] === person.id, model.minute];
        const known = cards.get(person.id);
        if (known && !person.avatar && key.every((part, index) => part === known.key[index])) return known.node;
        const node = personCard(person);
        cards.set(person.id, { key, node });
        return node;
    }

    function peopleList() {
        const open = ({ id }) => model.loads.get(id)?.open ?? 0;
        const people = choices.order === "load" ? [...model.people].sort((a, b) => open(b) - open(a)) : model.people;
        return h("div", { class: "section" }, app.isManager && select({ label: app.t("team.order"),
            value: choices.order, options: ["name", "load"].map((value) => ({ value,
                label: app.t(`team.order.${value}`) })),
            onChange: (order) => { choices.order = order; update(); } }), people.map(keptCard));
    }

    function listPage() {
        const isEmpty = model.teams.length === 0 && model.people.length === 0;
        const mine = model.teams.filter(({ id }) => model.ownTeams.has(id));
        const others = model.teams.filter(({ id }) => !model.ownTeams.has(id));
        const teams = (items) => items.map((team) => card({ key: team.id, href: `#/team/team/${team.id}`,
            isSelected: address[1] === team.id, title: team.name,
            lead: team.colour ? h("span", { class: "team-sign", style: { background: team.colour } },
                initials(team.name)) : avatar({ app, name: team.name, image: team.image }),
            meta: [h("span", null, app.t("team.members", { n: model.members(team.id).length })),
                (app.isManager || model.ownTeams.has(team.id)) && load(model.teamLoads.get(team.id))] }));
        const group = (title, items) => items.length > 0 && h("section", { class: "section" },
            h("div", { class: "section-head" }, h("h2", null, title)), teams(items));
        const content = model.isLoading && isEmpty ? skeleton(5)
            : isEmpty ? empty({ icon: "team", title: app.t("team.empty"), text: app.t("team.emptyText") })
                : choices.list === "people" ? peopleList()
                    : model.teams.length === 0 ? empty({ icon: "team", title: app.t("team.noTeams"),
                        text: app.t(app.isManager ? "team.noTeamsManager" : "team.noTeamsText") })
                        : [group(app.t("team.mine"), mine), group(app.t("team.others"), others)];
        return page({ title: app.t("team.title"), actions: [
            h("span", { class: "map-link" }, button({ label: app.t("team.map"), icon: "map", href: "#/team/map" })),
            app.isManager && button({ label: app.t("team.newTeam"), icon: "plus", isCompact: true,
                onClick: () => editTeam(model) })] },
        sharingCard(),
        segmented({ label: app.t("team.list"), value: choices.list,
            options: ["teams", "people"].map((value) => ({ value, label: app.t(`team.list.${value}`) })),
            onChange: (list) => { choices.list = list; update(); } }), content);
    }

    function tasksSection(tasks) {
        const key = [model.tasks, model.minute, address.join("/")];
        if (!shown || key.some((part, index) => part !== shown.key[index])) {
            shown = { key, sorted: sortTasks(tasks().filter((task) => !task.isCompleted), "due",
                { compare: app.format.compare }) };
            taskList.update(shown.sorted);
        }
        const { sorted } = shown;
        return h("section", { class: "section" }, h("div", { class: "section-head" },
            h("h2", null, app.t("team.openTasks", { n: sorted.length }))),
        sorted.length > 0 ? taskList : h("p", { class: "muted" }, app.t("team.noOpenTasks")));
    }

    function personPage(person) {
        const position = model.positions.get(person.id);
        const own = model.positions.get(app.me.person);
        const away = own && person.id !== app.me.person ? distance(own, position) : undefined;
        const teams = model.teamsOf(person.id);
        const row = (key, value) => value && [h("dt", null, app.t(key)), h("dd", null, value)];
        return page({ title: person.name, back: { href: "#/team", label: app.t("app.back") } },
            h("div", { class: "row wrap" }, avatar({ app, name: person.name, image: person.avatar, size: "large" }),
                h("div", { class: "stack" }, h("span", { class: "muted" }, app.t(`team.role.${person.role}`)),
                    h("span", { class: "row wrap" }, load(model.loads.get(person.id))))),
            h("dl", { class: "facts" },
                row("team.email", person.email && h("a", { href: `mailto:${person.email}` }, person.email)),
                row("team.teams", teams.length > 0 ? teams.map(({ id, name }, index) => [index > 0 && ", ",
                    h("a", { href: `#/team/team/${id}` }, name)]) : h("span", { class: "muted" }, app.t("team.none"))),
                row("team.position", position ? [position.placeName && `${position.placeName}, `, ageText(position),
                    Number.isFinite(away) && away > 100 && h("span", { class: "muted" }, " · ", app.t("team.away",
                        { distance: app.format.number(away / 1_000, { style: "unit", unit: "kilometer",
                            maximumFractionDigits: away < 10_000 ? 1 : 0 }) }))]
                    : h("span", { class: "muted" }, app.t("team.noPosition")))),
            position && h("div", { class: "row" }, button({ label: app.t("tasks.onMap"), icon: "map",
                href: `#/team/map/${person.id}` })),
            tasksSection(() => model.tasks.filter((task) => task.assignee === person.id)));
    }

    function teamPage(team) {
        const canSee = app.isManager || model.ownTeams.has(team.id);
        return page({ title: team.name, back: { href: "#/team", label: app.t("app.back") },
            actions: app.isManager && button({ label: app.t("app.edit"), icon: "edit", kind: "quiet", isIconOnly: true,
                onClick: () => editTeam(model, team) }) },
        team.description && h("p", { class: "preserve" }, team.description),
        teamMembers(model, team, personCard),
        canSee ? tasksSection(() => model.tasks.filter((task) => task.team === team.id))
            : h("p", { class: "muted" }, app.t("team.hidden")));
    }

    function detailPage() {
        const [kind, id] = address;
        if (kind === "map") return mapPage();
        if (kind !== "person" && kind !== "team") return undefined;
        const item = kind === "person" ? model.person(id) : model.team(id);
        if (item) return kind === "person" ? personPage(item) : teamPage(item);
        return page({ title: app.t("team.title"), back: { href: "#/team", label: app.t("app.back") } },
            model.isLoading ? skeleton(3) : empty({ icon: "team", title: app.t("team.gone"),
                text: app.t("team.goneText") }));
    }

    function showSelected() {
        if (address[0] !== "map" || !address[1]) return;
        if (!mapPoints().some(({ id }) => id === address[1])) {
            choices.content = "all";
            map.update(mapPoints(), address[1]);
        }
        map.show(address[1]);
    }

    display = view(root, () => panes({ list: listPage(), detail: detailPage(),
        placeholder: address[0] ? null : mapPage() }));
    showSelected();
    return {
        update(next) {
            const isSame = address.join("/") === next.join("/");
            if (!isSame) root.querySelector(".pane-detail")?.scrollTo(0, 0);
            address = next;
            if (!isSame) display.flush();
            if (!isSame) showSelected();
            update();
        },
        unmount() {
            stopListening();
            map.stop();
            model.stop();
            display.stop();
        },
    };
}

/** Returns the point of a task. Its label is computed when it is displayed: most points are parts of groups. */
function taskPoint(app, task, now) {
    const isLate = isOverdue(task, now);
    return {
        id: task.id, latitude: task.latitude, longitude: task.longitude,
        kind: task.isCompleted ? "done" : isLate ? "overdue" : "task",
        get label() {
            return app.t(isLate ? "team.overdueTask" : "team.openTask",
                { title: task.title || app.t("tasks.untitled") });
        },
    };
}
