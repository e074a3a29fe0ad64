/** The Defects view: assigned and reported defects, queries of the tracker, and the person's login. */

import {
    changesOf, fieldLabel, listDefects, queryRows, rankKind, rowRecord, stateKind, statesOf, valueLabel,
} from "../core/defects.js";
import { banner, button, card, chip, empty, field, icon, input, page, panes, segmented, select, skeleton }
    from "../ui/components.js";
import { h, scrollMemory, view } from "../ui/dom.js";
import { virtualList } from "../ui/list.js";
import { commandBanner, detailPage } from "./defect-detail.js";
import { DefectForm } from "./defect-form.js";
import { DefectModel } from "./defect-model.js";

export const route = "defects";

const tabs = ["assigned", "reported", "queries", "account"];

/**
 * Renders the view. Addresses: `defects`, `defects/reported`, `defects/queries`, `defects/queries/FOLDER`,
 * `defects/query/ID`, `defects/account`, `defects/new`, `defects/RECORD`, `defects/RECORD/modify`,
 * `defects/RECORD/change/ACTION`.
 */
export function mount(app, root, segments) {
    const { fieldpost, t, format } = app;
    const state = { tab: "assigned", folder: undefined, query: undefined, selected: undefined, search: "", filter: "",
        sort: "severity", showsEmpty: false, choices: {},
        login: { kind: "password", user: "", password: "", token: "" } };
    let form;
    let display;
    const model = new DefectModel(app, () => display?.update());

    const list = virtualList({ items: [], key: ({ id }) => id, rowHeight: 92, label: t("defects.title"), row });

    function row({ id, fields }) {
        const change = model.collected.states.get(fields.record);
        return h("div", { class: "defects-row" }, card({ title: fields.headline, href: `#/defects/${id}`, level: 2,
            isSelected: state.selected === fields.record || state.selected === id,
            kind: { bad: "bad", warn: "warn" }[rankKind(fields.severity)],
            meta: [h("span", { class: "mono" }, fields.record),
                change && chip({ label: t(`defects.status.${change}`),
                    kind: { conflict: "bad", refused: "bad", unknown: "warn" }[change] ?? "muted" }),
                fields.state && chip({ label: fields.state, kind: stateKind(fields.state) }),
                !change && fields.severity && chip({ label: valueLabel(fields.severity),
                    kind: rankKind(fields.severity) }),
                h("span", { class: "truncate" }, state.tab === "reported" ? fields.owner : fields.submitter)] }));
    }

    function read([first, second, third]) {
        const before = state.selected && `${state.selected} ${state.page}`;
        state.selected = undefined;
        state.page = "detail";
        if (!first || tabs.includes(first)) {
            state.tab = first ?? "assigned";
            state.query = undefined;
            state.folder = first === "queries" ? second : undefined;
        } else if (first === "query") {
            state.tab = "queries";
            state.query = second;
        } else if (first === "new") {
            state.selected = "new";
            state.page = "create";
        } else {
            state.selected = model.defect(first)?.fields.record ?? first;
            if (second === "modify") state.page = "modify";
            if (second === "change" && third) state.page = `change ${third}`;
        }
        if (before !== (state.selected && `${state.selected} ${state.page}`)) {
            form?.stop();
            form = undefined;
            state.choices = {};
            model.forget({ operation: "read", record: state.selected });
        }
    }

    function back() {
        if (state.query) return `defects/query/${state.query}`;
        if (state.folder) return `defects/queries/${state.folder}`;
        return state.tab === "assigned" ? "defects" : `defects/${state.tab}`;
    }

    function loginBanner() {
        if (state.tab === "account" || fieldpost.status.position === 0) return null;
        const login = button({ label: t("defects.login"), kind: "quiet", href: "#/defects/account" });
        if (!model.account) return banner({ kind: "warn", text: t("defects.noLogin"), action: login });
        if (model.account.status === "refused") {
            return banner({ kind: "bad", text: model.account.reason || t("defects.refusedLogin"), action: login });
        }
        return null;
    }

    function listTab() {
        const inScope = listDefects(model.defects, { scope: state.tab });
        const found = listDefects(model.defects, { scope: state.tab, query: state.search, state: state.filter,
            sort: state.sort });
        list.update(found);
        const creations = changesOf(model.commands, null)
            .filter(({ id, state: status }) => status !== "done" || model.submitted.has(id));
        return [
            creations.map((command) => commandBanner(model, command, state)),
            inScope.length > 0 && h("div", { class: "row wrap defects-filters" },
                h("div", { class: "searchbox" }, icon("search"), input({ type: "search", value: state.search,
                    "aria-label": t("defects.search"), placeholder: t("defects.search"),
                    onInput: (value) => { state.search = value; display.update(); } })),
                select({ label: t("defects.state"), value: state.filter,
                    onChange: (value) => { state.filter = value; display.update(); },
                    options: [{ value: "", label: t("defects.allStates") }, ...statesOf(inScope)] }),
                select({ label: t("defects.sort"), value: state.sort,
                    onChange: (value) => { state.sort = value; display.update(); },
                    options: ["severity", "priority", "newest", "record"].map((value) =>
                        ({ value, label: t(`defects.sort.${value}`) })) })),
            inScope.length === 0 ? empty({ icon: "defects", title: t(`defects.none.${state.tab}`),
                text: t("defects.noneText") })
                : found.length === 0 ? empty({ icon: "search", title: t("defects.noMatch"),
                    action: button({ label: t("defects.clear"),
                        onClick: () => { state.search = ""; state.filter = ""; display.update(); } }) })
                    : [h("p", { class: "muted small", role: "status" }, t("defects.count", { n: found.length })), list],
        ];
    }

    /** Returns the time of a result with the button that reads it again. */
    function readLine(request, readAt) {
        const { isPending } = model.result(request);
        return h("div", { class: "row defects-read" }, h("span", { class: "muted small grow", role: "status" },
            isPending ? t(model.isLive ? "defects.reading" : "defects.readLater")
                : readAt ? t("defects.readAt", { time: format.relative(readAt) }) : ""),
        button({ label: t("defects.refresh"), icon: "refresh", kind: "quiet", isIconOnly: true,
            disabled: isPending || !model.hasLogin, onClick: () => model.request(request) }));
    }

    function nothingRead(request) {
        const { isPending, failure } = model.result(request);
        if (failure) return banner({ kind: "bad", text: failure.fields.messages?.join(" ") || t("defects.failed") });
        if (isPending && model.isLive) return skeleton(3);
        return empty({ icon: "offline", title: t("defects.notRead"), text: t("defects.notReadText"),
            action: button({ label: t("defects.readNow"), icon: "refresh", disabled: isPending || !model.hasLogin,
                onClick: () => model.request(request) }) });
    }

    function workspaceItem(id) {
        for (const { detail } of model.collected.details.values()) {
            const found = detail.items?.find((item) => item.id === id);
            if (found) return found;
        }
        return undefined;
    }

    function queriesTab() {
        if (state.query) return queryTab();
        const request = { operation: "queries", ...(state.folder ? { folder: state.folder } : {}) };
        model.requestIfOld(request);
        const { detail, failure } = model.result(request);
        const groups = Map.groupBy ? Map.groupBy(detail?.items ?? [], ({ folder }) => folder)
            : new Map([["", detail?.items ?? []]]);
        return [
            state.folder && h("div", { class: "row" }, button({ label: t("app.back"), icon: "back", kind: "quiet",
                isIconOnly: true, href: "#/defects/queries" }), h("h2", null, workspaceItem(state.folder)?.name ?? "")),
            !detail ? nothingRead(request) : [
                readLine(request, detail.readAt),
                failure && banner({ kind: "bad", text: failure.fields.messages?.join(" ") || t("defects.failed") }),
                detail.items?.length === 0 && empty({ icon: "folder", title: t("defects.noQueries") }),
                [...groups].map(([name, items]) => h("section", { class: "section", key: name },
                    name && h("h2", null, name),
                    h("div", { class: "group" }, items.map((item) => h("a", { class: "row defects-query", key: item.id,
                        href: `#/defects/${item.isFolder ? "queries" : "query"}/${encodeURIComponent(item.id)}` },
                    icon(item.isFolder ? "folder" : "search"), h("span", { class: "grow" }, item.name),
                    icon("right")))))),
            ],
        ];
    }

    function queryTab() {
        const first = { operation: "runQuery", query: state.query };
        model.requestIfOld(first);
        const { columns, rows, nextRow, readAt, pages } = queryRows(model.collected.details, state.query);
        const next = { operation: "runQuery", query: state.query, fromRow: nextRow ?? 0 };
        const headline = columns.findIndex((column) => /headline|title/i.test(column));
        const { failure, messages } = model.result(first);
        return [
            h("div", { class: "row" }, button({ label: t("app.back"), icon: "back", kind: "quiet", isIconOnly: true,
                href: "#/defects/queries" }), h("h2", null, workspaceItem(state.query)?.name ?? state.query)),
            pages === 0 ? nothingRead(first) : [
                readLine(first, readAt),
                failure && banner({ kind: "bad", text: failure.fields.messages?.join(" ") || t("defects.failed") }),
                messages.map((text) => h("p", { class: "muted small" }, text)),
                rows.length === 0 && empty({ icon: "search", title: t("defects.noRows") }),
                h("div", { class: "stack defects-rows" }, rows.map((values, index) => {
                    const record = rowRecord(columns, values);
                    const title = values[headline] || record || values[0];
                    return card({ key: `${index}`, title, isSelected: Boolean(record) && state.selected === record,
                        href: record && `#/defects/${encodeURIComponent(record)}`,
                        meta: columns.map((column, place) => place !== headline && values[place]
                            && h("span", null, h("span", { class: "visually-hidden" }, `${fieldLabel(column)}: `),
                                values[place])) });
                })),
                nextRow !== null && button({ label: t("defects.moreRows"), onClick: () => model.request(next),
                    disabled: model.result(next).isPending }),
            ],
        ];
    }

    async function login(method, body) {
        try {
            await fieldpost.request(method, "/v1/credentials/compass", body);
            Object.assign(state.login, { user: "", password: "", token: "" });
            app.toast(t(body ? "defects.loginStored" : "defects.loginRemoved"));
        } catch (error) {
            app.toast(app.problemText(error));
        }
        display.update();
    }

    function accountTab() {
        const { login: values } = state;
        const { account } = model;
        const kinds = { good: "ok", refused: "bad", unchecked: "info" };
        const text = (name, options) => field({ label: t(`defects.${name}`), id: `defects-${name}`,
            control: input({ value: values[name], autocomplete: "off", ...options,
                onInput: (value) => { values[name] = value; display.update(); } }) });
        return [
            account && card({ level: 2, title: account.user || t("defects.tokenLogin"),
                meta: [chip({ label: t(`defects.account.${account.status}`), kind: kinds[account.status] }),
                    t("defects.storedAt", { time: format.dateTime(account.storedAt) })],
                body: account.reason && h("p", null, account.reason),
                actions: button({ label: t("defects.removeLogin"), icon: "trash", kind: "quiet", isIconOnly: true,
                    onClick: async () => {
                        if (await app.confirm({ title: t("defects.removeLogin"), text: t("defects.removeLoginText"),
                            confirm: t("defects.removeLogin"), isDangerous: true })) login("DELETE");
                    } }) }),
            h("p", { class: "muted" }, t("defects.loginText")),
            h("form", { class: "form", on: { submit: (event) => {
                event.preventDefault();
                login("PUT", values.kind === "token" ? { token: values.token.trim() }
                    : { user: values.user.trim(), password: values.password });
            } } },
            segmented({ label: t("defects.loginKind"), name: "defects-kind", value: values.kind,
                onChange: (kind) => { values.kind = kind; display.update(); },
                options: ["password", "token"].map((value) => ({ value, label: t(`defects.with.${value}`) })) }),
            values.kind === "token" ? text("token", { type: "password", required: true })
                : [text("user", { required: true }), text("password", { type: "password", required: true })],
            h("div", { class: "form-actions" }, button({ label: t("defects.storeLogin"), kind: "primary",
                type: "submit" }))),
        ];
    }

    function detail() {
        if (!state.selected) return undefined;
        if (state.page === "detail") return detailPage(model, state, { back: back(), update: () => display.update() });
        form ??= new DefectForm(model, { record: state.selected === "new" ? undefined : state.selected,
            actionName: state.page.startsWith("change ") ? state.page.slice(7) : undefined, operation: state.page,
            back: back(), update: () => display.update() });
        return form.render();
    }

    function render() {
        const isLoading = fieldpost.status.position === 0 && model.defects.length === 0
            && fieldpost.status.connection !== "offline";
        const contents = { assigned: listTab, reported: listTab, queries: queriesTab, account: accountTab };
        const left = page({ title: t("defects.title"),
            actions: button({ label: t("defects.new"), icon: "plus", kind: "primary", href: "#/defects/new" }) },
        segmented({ label: t("defects.sections"), name: "defects-tab", value: state.tab,
            onChange: (tab) => app.navigate(tab === "assigned" ? "defects" : `defects/${tab}`),
            options: tabs.map((value) => ({ value, label: t(`defects.${value}`) })) }),
        h("div", { class: "stack defects-content", key: `content-${state.tab}` },
            isLoading ? skeleton(5) : [loginBanner(), contents[state.tab]()]));
        return panes({ list: left, detail: detail(),
            placeholder: h("div", null, icon("defects", { size: "large" }), h("p", null, t("defects.select"))) });
    }

    const scroll = scrollMemory(root);
    const pageKey = () => state.selected ? `${state.selected} ${state.page}`
        : `list ${state.tab} ${state.folder ?? state.query ?? ""}`;
    read(segments);
    display = view(root, render);
    fieldpost.addEventListener("status", display.update);
    return {
        update(list) {
            scroll.leave(pageKey());
            read(list);
            display.flush();
            scroll.enter(pageKey());
        },
        unmount() {
            fieldpost.removeEventListener("status", display.update);
            form?.stop();
            model.stop();
            display.stop();
        },
    };
}
