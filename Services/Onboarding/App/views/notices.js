/** Notices: newest first, by day, with a filter for unread ones and the choice of deliveries. */

import { noticeRows, noticeSort, noticeTarget } from "../core/notices.js";
import { button, empty, icon, menu, page, segmented, skeleton } from "../ui/components.js";
import { h, view } from "../ui/dom.js";
import { virtualList } from "../ui/list.js";
import { openDeliveries } from "./deliveries.js";

export const route = "notices";

const capitalise = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);
const icons = { tasks: "tasks", entries: "time", sharing: "shared", defects: "defects", other: "notices" };

export function mount(app, root, segments) {
    const realm = `/users/${app.fieldpost.status.email}`;
    let notices;
    let filter = "unread";
    let hasChosen = false;

    const setRead = (notice, isRead) => app.fieldpost.patch(realm, "Notice", notice.id, { isRead });

    function open(notice) {
        if (!notice.fields.isRead) app.report(setRead(notice, true));
        const target = noticeTarget(notice.fields);
        if (target) app.navigate(target);
    }

    async function remove(notice, event) {
        const row = event.target.closest(".list-row");
        const next = row?.nextElementSibling ?? row?.previousElementSibling;
        next?.querySelector("button")?.focus();
        await app.report(app.fieldpost.delete(realm, "Notice", notice.id));
    }

    async function readAll() {
        const unread = notices.filter((notice) => !notice.fields.isRead);
        app.report(Promise.all(unread.map((notice) => setRead(notice, true))));
        app.toast(app.t("notices.allRead"));
    }

    async function removeRead() {
        const read = notices.filter((notice) => notice.fields.isRead);
        const isConfirmed = await app.confirm({ title: app.t("notices.removeRead"),
            text: app.t("notices.removeReadText", { n: read.length }), confirm: app.t("app.delete"),
            isDangerous: true });
        if (isConfirmed) {
            app.report(Promise.all(read.map((notice) => app.fieldpost.delete(realm, "Notice", notice.id))));
        }
    }

    const row = ({ day, notice }) => {
        if (!notice) return h("h2", { class: "notices-day" }, day);
        const sort = noticeSort(notice.fields.code);
        const isUnread = !notice.fields.isRead;
        const isBad = /rejected|invalid|overdue/.test(notice.fields.code);
        return h("div", { class: ["notice", isUnread && "is-unread"] },
            h("span", { class: ["notice-icon", `notice-${isBad ? "bad" : sort}`] }, icon(icons[sort])),
            h("button", { class: "notice-main card-link", type: "button", on: { click: () => open(notice) } },
                h("span", { class: "notice-text" }, isUnread && h("span", { class: "visually-hidden" },
                    app.t("app.unread"), ": "), readable(notice.fields.text)),
                h("span", { class: "notice-meta" }, app.t(`notices.sort.${sort}`), " · ",
                    app.format.relative(notice.fields.timestamp))),
            h("span", { class: "card-actions" }, isUnread && h("span", { class: "notice-dot" }),
                button({ label: app.t("notices.remove"), icon: "close", kind: "quiet", isIconOnly: true,
                    onClick: (event) => remove(notice, event) })));
    };

    // The server's sentences have ISO dates.
    const readable = (text) => String(text ?? "").replace(/\b\d{4}-\d{2}-\d{2}\b/g, (day) => app.format.date(day));

    const list = virtualList({ label: app.t("notices.title"), row,
        key: (item) => item.notice?.id ?? `day ${item.day}`,
        rowHeight: (item) => !item.notice ? 40 : innerWidth < 600 ? 104 : 84 });

    function render() {
        const unread = (notices ?? []).filter((notice) => !notice.fields.isRead);
        if (!hasChosen) filter = unread.length > 0 ? "unread" : "all";
        const shown = filter === "unread" ? unread : notices ?? [];
        list.update(noticeRows(shown, (timestamp) => capitalise(app.format.relativeDay(timestamp))));
        const isLoading = app.fieldpost.status.position === 0 && shown.length === 0;
        return page({ title: app.t("notices.title"), actions: [
            button({ label: app.t("notices.deliveries"), icon: "settings", isCompact: true,
                onClick: () => openDeliveries(app) }),
            notices?.length > 0 && menu({ label: app.t("app.more"), items: [
                { label: app.t("notices.readAll"), icon: "check", run: readAll, disabled: unread.length === 0 },
                { label: app.t("notices.removeRead"), icon: "trash", kind: "danger", run: removeRead,
                    disabled: unread.length === notices.length },
            ] }),
        ] },
        segmented({ label: app.t("notices.filter"), value: filter, options: [
            { value: "unread", label: unread.length > 0 ? app.t("notices.unreadCount", { n: unread.length })
                : app.t("notices.unread") },
            { value: "all", label: app.t("notices.all") },
        ], onChange: (value) => { filter = value; hasChosen = true; rendered.update(); } }),
        isLoading ? skeleton(5) : shown.length === 0 ? renderEmpty() : list);
    }

    const renderEmpty = () => filter === "unread" && notices?.length > 0
        ? empty({ icon: "check-circle", title: app.t("notices.noneUnread"), text: app.t("notices.noneUnreadText") })
        : empty({ icon: "notices", title: app.t("notices.none"), text: app.t("notices.noneText") });

    /** Opens the notice that a push message names. */
    function follow([id]) {
        const notice = id && app.fieldpost.object(realm, id);
        if (notice) open(notice);
    }

    const rendered = view(root, render);
    const stop = app.fieldpost.watch("Notice", { realm }, (objects) => {
        notices = objects;
        rendered.update();
    });
    const timer = setInterval(rendered.update, 60_000);
    follow(segments);
    return {
        update: (changed) => { follow(changed ?? []); rendered.update(); },
        unmount: () => { stop(); clearInterval(timer); rendered.stop(); },
    };
}
