/** The Shared view: appointments and notes, the people they are shared with, and deleted ones. */

import {
    agenda, daysRetained, directory, history, incoming, items, linksByItem, notes, outgoing, overlaps, positions,
    uniqueShares, unseen, dayDate, restoration,
} from "../core/shared.js";
import { avatar, banner, button, card, chip, empty, icon, input, menu, page, panes, segmented, skeleton }
    from "../ui/components.js";
import { h, scrollMemory, view } from "../ui/dom.js";
import { deleteItem, detailPage, editItem, endShare, setDone, stopSharing } from "./shared-editor.js";

export const route = "shared";

const tabs = ["agenda", "notes", "people", "deleted"];

/** Renders the view. Addresses: `shared`, `shared/notes`, `shared/people`, `shared/deleted`, `shared/ID`. */
export function mount(app, root, segments) {
    const { fieldpost, t, format } = app;
    const realm = `/users/${app.me.email}`;
    const me = app.me.person ?? fieldpost.status.person;
    const seenName = `fieldpost.shared.seen.${app.me.email}`;
    const seen = readSeen();
    const state = { tab: "agenda", selected: null, query: "", isEarlierShown: false, open: new Set() };
    const sets = {};
    let model;
    let display;

    const changed = () => { model = undefined; display?.update(); };
    const own = ["Appointment", "Note", "SharedItem", "DeletedObject", "EndedShare", "Notice"];
    const stops = [
        ...own.map((kind) => fieldpost.watch(kind, { realm }, (list) => { sets[kind] = list; changed(); })),
        ...["Appointment", "Note"].map((kind) => fieldpost.watch(kind, { realmPrefix: "/shares/" },
            (list) => { sets[`${kind}Copy`] = list; changed(); })),
        ...["Share", "Person", "PersonLookup"].map((kind) => fieldpost.watch(kind, null,
            (list) => { sets[kind] = list; changed(); })),
    ];

    function read() {
        if (model) return model;
        const links = linksByItem(sets.SharedItem);
        const shares = uniqueShares(sets.Share);
        const list = items({ own: [...sets.Appointment, ...sets.Note], shares, ended: sets.EndedShare, links, me,
            copies: [...sets.AppointmentCopy, ...sets.NoteCopy] });
        const people = directory(sets.Person, sets.PersonLookup, me);
        model = { app, realm, me, list, links, shares, people, unseen: unseen(list, seen),
            person: new Map(people.map((person) => [person.id, person])),
            history: history({ deleted: sets.DeletedObject, ended: sets.EndedShare, list }),
            incoming: incoming({ list, shares, me }), outgoing: outgoing({ list, links, shares, me }) };
        model.name = (id) => model.person.get(id)?.name ?? (id === me ? t("shared.you") : t("shared.unknownPerson"));
        return model;
    }

    function readSeen() {
        try { return JSON.parse(localStorage.getItem(seenName)); } catch { return null; }
    }

    function markSeen() {
        if (!fieldpost.status.position || !fieldpost.status.email) return;
        try { localStorage.setItem(seenName, JSON.stringify(positions(read().list))); } catch { /* Shown again. */ }
    }

    function address(list) {
        const [first] = list;
        if (!first || tabs.includes(first)) {
            state.tab = first ?? "agenda";
            state.selected = null;
            return;
        }
        state.selected = first;
        const { list: all } = read();
        const target = all.find(({ id, object }) => id === first || object.id === first);
        if (target && state.tab !== "people") state.tab = target.kind === "Note" ? "notes" : "agenda";
        if (!target && read().shares.some(({ id }) => id === first)) state.tab = "people";
        if (!target && read().history.some(({ id }) => id === first)) state.tab = "deleted";
    }

    const path = (tab) => tab === "agenda" ? "shared" : `shared/${tab}`;
    const person = (id, size) => avatar({ app, name: read().name(id), image: read().person.get(id)?.avatar, size });

    function itemChips(item) {
        const news = read().unseen.get(item.key);
        const isOwn = item.source === "own";
        const links = isOwn ? read().links.get(item.id) ?? [] : [];
        return [
            news && chip({ label: t(`shared.${news}`), kind: "info" }),
            item.source === "ended" && chip({ label: t(`shared.ended.${item.object.fields.reason}`), kind: "bad" }),
            !isOwn && h("span", { class: "row shared-owner" }, person(item.owner, "small"), read().name(item.owner)),
            links.length > 0 && h("span", { class: "row" }, icon("shared", { size: "small" }),
                t("shared.withCount", { n: links.length })),
            links.some(({ problem }) => problem) && chip({ label: t("shared.problem"), kind: "warn" }),
            item.object.isPending && chip({ label: t("app.pending"), kind: "muted", icon: "sync" }),
        ];
    }

    function agendaDay({ day, items: list }, today) {
        const crowded = overlaps(list);
        return h("section", { class: "shared-day", key: day },
            h("h2", { class: ["shared-date", day === today && "is-today"] },
                h("span", { class: "shared-weekday" }, format.weekday(dayDate(day))),
                h("span", { class: "shared-number" }, String(dayDate(day).getDate())),
                h("span", { class: "visually-hidden" }, ` ${format.date(dayDate(day))}`),
                h("span", { class: "shared-month", "aria-hidden": true }, day === today ? t("shared.today")
                    : monthOf(dayDate(day)))),
            h("div", { class: "shared-events" },
                list.length === 0 && h("p", { class: "muted shared-free" }, t("shared.free")),
                list.map((item) => card({ key: item.key, title: item.title || t("shared.untitled"),
                    href: `#/shared/${item.object.id}`, isSelected: state.selected === item.object.id,
                    kind: item.source === "ended" ? undefined : item.source === "own" ? "info" : "ok",
                    meta: [h("span", { class: "number" }, format.time(item.start),
                        item.end > item.start && `–${format.time(item.end)}`),
                    crowded.has(item.key) && chip({ label: t("shared.overlap"), kind: "warn" }), itemChips(item)] }))
                    .map((node, index) => {
                        if (list[index].source === "ended") node.classList.add("is-ended");
                        return node;
                    })));
    }

    function monthOf(date) {
        const year = date.getFullYear() === app.now().getFullYear() ? {} : { year: "numeric" };
        return date.toLocaleDateString(format.locale, { month: "short", ...year });
    }

    function agendaTab() {
        const { earlier, upcoming, today } = agenda(read().list, app.now());
        const isEmpty = earlier.length === 0 && upcoming.every((day) => day.items.length === 0);
        if (isEmpty) {
            return empty({ icon: "calendar", title: t("shared.noAppointments"), text: t("shared.noAppointmentsText"),
                action: button({ label: t("shared.newAppointment"), icon: "plus", kind: "primary",
                    onClick: () => editItem(read(), "Appointment") }) });
        }
        const count = earlier.reduce((sum, day) => sum + day.items.length, 0);
        return [
            h("div", { class: "shared-agenda", key: "agenda" }, upcoming.map((day) => agendaDay(day, today))),
            count > 0 && button({ key: "earlier", icon: state.isEarlierShown ? "up" : "down", kind: "quiet",
                label: state.isEarlierShown ? t("shared.hideEarlier") : t("shared.showEarlier", { n: count }),
                onClick: () => { state.isEarlierShown = !state.isEarlierShown; display.update(); } }),
            state.isEarlierShown && h("div", { class: "shared-agenda", key: "past" },
                [...earlier].reverse().map((day) => agendaDay(day, today))),
        ];
    }

    function notesTab() {
        const all = notes(read().list);
        if (all.length === 0) {
            return empty({ icon: "note", title: t("shared.noNotes"), text: t("shared.noNotesText"),
                action: button({ label: t("shared.newNote"), icon: "plus", kind: "primary",
                    onClick: () => editItem(read(), "Note") }) });
        }
        const found = state.query ? notes(read().list, state.query) : all;
        const open = all.filter(({ object: { fields } }) => fields.isTask && !fields.isDone).length;
        return [
            h("div", { class: "row wrap" }, h("div", { class: "searchbox" }, icon("search"),
                input({ type: "search", value: state.query, "aria-label": t("shared.search"),
                    placeholder: t("shared.search"),
                    onInput: (value) => { state.query = value; display.update(); } })),
            h("span", { class: "muted small", role: "status" }, t("shared.openTasks", { n: open }))),
            found.length === 0 && empty({ icon: "search", title: t("shared.noMatch") }),
            h("div", { class: "stack shared-notes" }, found.map((item) => {
                const { fields } = item.object;
                const node = card({ key: item.key, level: 2, title: item.title || t("shared.untitled"),
                    href: `#/shared/${item.object.id}`, isSelected: state.selected === item.object.id,
                    lead: fields.isTask ? h("input", { type: "checkbox", class: "shared-check",
                        checked: Boolean(fields.isDone), disabled: item.source !== "own",
                        "aria-label": t("shared.doneOf", { title: item.title }),
                        on: { change: (event) => setDone(read(), item, event.target.checked) } }) : icon("note"),
                    meta: itemChips(item), body: fields.body && h("p", { class: "shared-preview" }, fields.body) });
                if (fields.isTask && fields.isDone) node.classList.add("is-done");
                return node;
            })),
        ];
    }

    function personRow({ person: id, share, items: list, since }, direction) {
        const key = `${direction}-${id}`;
        const isOpen = state.open.has(key);
        const first = since ?? share?.fields.since ?? list.map(({ link }) => link?.since).filter(Boolean).sort()[0];
        return h("div", { class: "shared-person", key },
            h("div", { class: "row" }, person(id),
                h("div", { class: "grow" }, h("h3", null, read().name(id)),
                    h("p", { class: "muted small" }, [t("shared.itemCount", { n: list.length }),
                        first && t("shared.since", { date: format.date(first) })].filter(Boolean).join(" · "))),
                list.length > 0 && h("button", { class: "button button-quiet button-icon", type: "button",
                    "aria-expanded": isOpen, "aria-label": t("shared.itemsOf", { name: read().name(id) }),
                    on: { click: () => {
                        if (!state.open.delete(key)) state.open.add(key);
                        display.update();
                    } } }, icon(isOpen ? "up" : "down")),
                (share || list.length > 0) && menu({ label: t("app.more"), items: [
                    { label: t(direction === "out" ? "shared.endOut" : "shared.endIn"), icon: "close", kind: "danger",
                        run: () => endShare(read(), { id, share, items: list, direction }) }] })),
            isOpen && h("ul", { class: "shared-items" }, list.map(({ item, link }) => h("li", { key: item.key },
                icon(item.kind === "Note" ? "note" : "calendar"),
                h("a", { class: "grow truncate", href: `#/shared/${item.object.id}` },
                    item.title || t("shared.untitled")),
                link?.problem && chip({ label: t("shared.problem"), kind: "warn" }),
                link?.since && h("span", { class: "muted small" }, format.date(link.since)),
                button({ icon: "close", kind: "quiet", isIconOnly: true,
                    label: t(link ? "shared.stop" : "shared.removeCopy", { title: item.title }),
                    onClick: () => link ? stopSharing(read(), item, link) : deleteItem(read(), item) })))));
    }

    function peopleTab() {
        const { incoming: fromOthers, outgoing: toOthers } = read();
        if (fromOthers.length === 0 && toOthers.length === 0) {
            return empty({ icon: "shared", title: t("shared.noShares"), text: t("shared.noSharesText") });
        }
        const rows = (list, direction) => list.length > 0 && h("div", { class: "group" }, list
            .sort((a, b) => format.compare(read().name(a.person), read().name(b.person)))
            .map((entry) => personRow(entry, direction)));
        const section = (list, direction, title, none) => {
            const [current, idle] = [true, false].map((has) => list.filter((entry) => entry.items.length > 0 === has));
            return h("section", { class: "section", key: direction }, h("h2", null, title),
                current.length === 0 && h("p", { class: "muted" }, none), rows(current, direction),
                idle.length > 0 && h("details", { class: "shared-idle", key: "idle" },
                    h("summary", null, t("shared.idle", { n: idle.length })), rows(idle, direction)));
        };
        return [section(fromOthers, "in", t("shared.withMe"), t("shared.nobody")),
            section(toOthers, "out", t("shared.byMe"), t("shared.nothingShared"))];
    }

    async function restore(entry) {
        const target = restoration(entry.object);
        await app.report(fieldpost.put(realm, target.kind, target.id, target.fields, { restore: true }));
        app.toast(t(entry.type === "item" ? "shared.restoredItem" : "shared.restoredShare", { title: entry.title }),
            { action: { label: t("shared.show"),
                run: () => app.navigate(`shared/${target.fields.item ?? target.id}`) } });
    }

    async function forget(entry) {
        const isConfirmed = entry.type !== "item" || await app.confirm({ title: t("shared.forgetTitle"),
            text: t("shared.forgetText", { title: entry.title }), confirm: t("shared.forget"), isDangerous: true });
        if (isConfirmed) await app.report(fieldpost.delete(realm, entry.object.kind, entry.id));
    }

    function historyRow(entry) {
        const days = daysRetained(entry.at, app.now());
        const details = entry.type === "item" ? [t("shared.deletedAt", { date: format.dateTime(entry.at) }),
            t("shared.daysLeft", { n: days })].join(" · ")
            : t(`shared.history.${entry.type}.${entry.reason}`, { name: read().name(entry.person),
                date: format.dateTime(entry.at) });
        return h("div", { class: "shared-past row", key: entry.id },
            icon(entry.kind === "Note" ? "note" : "calendar"),
            h("div", { class: "grow" }, h("h3", null, entry.title || t("shared.untitled")),
                h("p", { class: "muted small" }, details),
                entry.since && h("p", { class: "muted small" }, t("shared.since", { date: format.date(entry.since) }))),
            h("div", { class: "row end" },
                entry.canRestore && button({ label: t("shared.restore"), icon: "undo", onClick: () => restore(entry) }),
                menu({ label: t("app.more"), items: [{ label: t("shared.forget"), icon: "trash", kind: "danger",
                    run: () => forget(entry) }] })));
    }

    function deletedTab() {
        const all = read().history;
        if (all.length === 0) {
            return empty({ icon: "history", title: t("shared.noDeleted"), text: t("shared.noDeletedText") });
        }
        const groups = ["item", "incoming", "outgoing"]
            .map((type) => [type, all.filter((entry) => entry.type === type)]);
        return [h("p", { class: "muted", key: "hint" }, t("shared.retention")),
            groups.filter(([, list]) => list.length > 0).map(([type, list]) => {
                const isAll = state.open.has(`history-${type}`);
                return h("section", { class: "section", key: type }, h("h2", null, t(`shared.history.${type}`)),
                    h("div", { class: "group" }, list.slice(0, isAll ? list.length : 20).map(historyRow)),
                    !isAll && list.length > 20 && button({ kind: "quiet",
                        label: t("shared.showAll", { n: list.length }),
                        onClick: () => { state.open.add(`history-${type}`); display.update(); } }));
            })];
    }

    function changesBanner() {
        const codes = ["item-shared", "share-cancelled", "item-deleted"];
        const unread = sets.Notice.filter(({ fields }) => codes.includes(fields.code) && !fields.isRead);
        if (unread.length === 0) return null;
        return banner({ kind: "info", text: t("shared.changes", { n: unread.length }),
            action: button({ label: t("shared.show"), kind: "quiet", href: "#/notices" }) });
    }

    function render() {
        const isLoading = fieldpost.status.position === 0 && sets.Appointment.length + sets.Note.length === 0
            && fieldpost.status.connection !== "offline";
        const contents = { agenda: agendaTab, notes: notesTab, people: peopleTab, deleted: deletedTab };
        const kind = state.tab === "notes" ? "Note" : "Appointment";
        const list = page({ title: t("shared.title"),
            actions: (state.tab === "agenda" || state.tab === "notes") && [button({ icon: "plus", kind: "primary",
                label: t(`shared.new${kind}`), onClick: () => editItem(read(), kind) })] },
        segmented({ label: t("shared.sections"), name: "shared-tab", value: state.tab,
            onChange: (tab) => app.navigate(path(tab)),
            options: tabs.map((tab) => ({ value: tab, label: t(`shared.${tab}`) })) }),
        h("div", { class: "stack shared-content", key: `content-${state.tab}` },
            isLoading ? skeleton(4) : [state.tab !== "deleted" && changesBanner(), contents[state.tab]()]));
        return panes({ list, detail: state.selected && detailPage(read(), state.selected, path(state.tab)),
            placeholder: h("div", null, icon("shared", { size: "large" }), h("p", null, t("shared.select"))) });
    }

    address(segments);
    const startsEarlier = () => !agenda(read().list, app.now()).upcoming.some((day) => day.items.length > 0);
    state.isEarlierShown = startsEarlier();
    const scroll = scrollMemory(root);
    const pageKey = () => state.selected ?? `list ${state.tab}`;
    display = view(root, render);
    return {
        update(list) {
            scroll.leave(pageKey());
            address(list);
            display.flush();
            scroll.enter(pageKey());
        },
        unmount() {
            markSeen();
            stops.forEach((stop) => stop());
            display.stop();
        },
    };
}
