/** Sync: connection, rejected and queued mutations, data on the device, settings, and sign-out. */

import { adviceKey, describeRealm, mutationRoute, nameOf, personalKeys } from "../core/sync.js";
import { languages } from "../core/strings.js";
import { entrySeconds } from "../core/time.js";
import { avatar, banner, button, card, chip, field, icon, page, progress, segmented, select, toggle }
    from "../ui/components.js";
import { h, view } from "../ui/dom.js";
import { endPush } from "./deliveries.js";
import { mountSignIn } from "./signin.js";

export const route = "sync";

const connectionIcons = { live: "check-circle", connecting: "sync", "signing-in": "sync", offline: "offline",
    paused: "pause", "login-required": "lock", failed: "warning", "signed-out": "sign-out" };
const connectionKinds = { live: "ok", connecting: "info", "signing-in": "info", offline: "warn", paused: "warn",
    "login-required": "bad", failed: "bad", "signed-out": "muted" };
const listMax = 50;
// Problems that the connection's text describes.
const explained = ["offline", "login-required"];

export function mount(app, root) {
    const { fieldpost } = app;
    let isListComplete = false;

    const kindName = (kind) => {
        const name = app.t(`kind.${kind}`);
        return name.startsWith("kind.") ? kind : name;
    };
    const section = (title, content, action) => h("section", { class: "section", key: title },
        h("div", { class: "section-head" }, h("h2", null, title), action), content);

    function signInAgain() {
        const box = h("div", null);
        let form;
        const dialog = app.dialog({ title: app.t("signin.title"), content: box, onClose: () => form.stop() });
        form = mountSignIn(app, box, { email: fieldpost.status.email, isFixed: true, onDone: () => dialog.close() });
    }

    async function signOut() {
        const waiting = fieldpost.status.queued;
        const isConfirmed = await app.confirm(waiting > 0
            ? { title: app.t("sync.signOutQueued", { n: waiting }), text: app.t("sync.signOutQueuedText"),
                confirm: app.t("sync.signOutDiscard"), isDangerous: true }
            : { title: app.t("sync.signOutTitle"), text: app.t("sync.signOutText"), confirm: app.t("sync.signOut") });
        if (!isConfirmed) return;
        await endPush().catch(() => {});
        const { email } = fieldpost.status;
        await app.report(fieldpost.signOut({ discard: waiting > 0 }));
        if (fieldpost.status.email) return;
        try {
            for (const key of personalKeys(Object.keys(localStorage), email)) localStorage.removeItem(key);
        } catch { /* Without storage there is nothing to remove. */ }
    }

    async function keepStorage() {
        const isGranted = await navigator.storage?.persist?.();
        app.toast(app.t(isGranted ? "sync.persistGranted" : "sync.persistDenied"));
        rendered.update();
    }

    function renderConnection(status) {
        const { connection, problem } = status;
        const received = status.receivedAt ? app.t("sync.received", { time: app.format.relative(status.receivedAt) })
            : app.t("sync.neverReceived");
        return h("div", { class: "group" },
            h("div", { class: "sync-connection" },
                h("span", { class: ["sync-state", `sync-${connectionKinds[connection] ?? "muted"}`] },
                    icon(connectionIcons[connection] ?? "sync")),
                h("div", { class: "grow" }, h("strong", { class: "sync-name" }, app.t(`status.${connection}`)),
                    h("p", { class: "muted" }, app.t(`sync.about.${connection}`))),
                connection === "login-required" && button({ label: app.t("signin.again"), kind: "primary",
                    onClick: signInAgain })),
            problem && !explained.includes(problem.code) && connection !== "live" && h("div", null,
                banner({ kind: "warn", text: app.problemText(problem) })),
            status.clockOffset && h("div", null, banner({ kind: "warn", text: app.t("sync.clock",
                { n: Math.round(Math.abs(status.clockOffset) / 60_000) }) })),
            h("div", null, toggle({ label: app.t("sync.paused"), hint: app.t("sync.pausedHint"),
                checked: connection === "paused", disabled: connection === "signed-out",
                onChange: (isOn) => app.report(isOn ? fieldpost.pause() : fieldpost.resume()) })),
            h("div", { class: "muted small" }, received, !status.isLeader && ` · ${app.t("sync.follower")}`));
    }

    function title(mutation) {
        const object = fieldpost.object(mutation.realm, mutation.id);
        const fields = { ...object?.fields, ...mutation.fields };
        if (mutation.kind === "TimeEntry" && fields.entryDate) {
            return app.t("sync.entry", { day: app.format.date(fields.entryDate),
                hours: app.format.hours(entrySeconds(fields)) });
        }
        return nameOf(mutation.fields) ?? nameOf(object?.fields) ?? kindName(mutation.kind);
    }

    const action = (mutation) => app.t(`sync.operation.${mutation.operation}`, { kind: kindName(mutation.kind) });

    function renderRejected(item) {
        const isUpload = item.bytes !== undefined;
        const { code } = item.problem ?? {};
        const target = isUpload ? undefined : mutationRoute(item);
        return card({ key: `rejected-${item.sequence ?? item.id}`, kind: "bad",
            title: isUpload ? app.t("sync.image") : title(item),
            meta: [h("span", null, isUpload ? app.format.bytes(item.bytes) : action(item)),
                item.queuedAt && h("span", null, app.format.relative(item.queuedAt))],
            body: h("div", { class: "sync-rejection" },
                h("p", null, app.problemText(item.problem)),
                h("p", { class: "muted" }, app.t(adviceKey(code), { code: code ?? "" })),
                h("div", { class: "row wrap" },
                    target && button({ label: app.t("sync.open"), icon: "right", onClick: () => app.navigate(target) }),
                    button({ label: app.t("sync.dismiss"), icon: "check", kind: "quiet",
                        onClick: () => app.report(fieldpost.dismiss(item)) }))) });
    }

    function renderQueued(item) {
        const isUpload = item.bytes !== undefined;
        return h("li", { class: "sync-queued", key: `queued-${item.sequence ?? item.id}` },
            icon(isUpload ? "image" : item.operation === "delete" ? "trash" : "edit"),
            h("div", { class: "grow" }, h("div", { class: "truncate" }, isUpload ? app.t("sync.image") : title(item)),
                h("div", { class: "muted small" }, isUpload ? app.format.bytes(item.bytes)
                    : `${action(item)} · ${app.format.relative(item.queuedAt)}`)),
            chip({ label: app.t(`sync.state.${item.state}`), kind: item.state === "accepted" ? "ok" : "info" }));
    }

    function realmName({ path }) {
        const { sort, id } = describeRealm(path, fieldpost.status.email);
        if (sort === "team") {
            const name = nameOf(fieldpost.object("/common", id)?.fields);
            return name ? app.t("sync.realm.teamNamed", { name }) : app.t("sync.realm.team");
        }
        return sort === "other" ? path : app.t(`sync.realm.${sort}`);
    }

    function renderRealms({ realms, connection }) {
        const rows = new Map();
        for (const realm of realms) {
            const name = realmName(realm);
            const row = rows.get(name) ?? { name, count: 0, isOpen: true, paths: [] };
            rows.set(name, { ...row, count: row.count + realm.count, isOpen: row.isOpen && realm.isOpen,
                paths: [...row.paths, realm.path] });
        }
        const sorted = [...rows.values()].sort((left, right) => app.format.compare(left.name, right.name));
        return h("ul", { class: "group sync-realms" }, sorted.map((row) => h("li", { key: row.name,
            title: row.paths.slice(0, 10).join("\n") },
        h("span", { class: "grow" }, row.name),
        !row.isOpen && connection === "live" && chip({ label: app.t("sync.closed"), kind: "muted" }),
        h("span", { class: "muted number" }, app.t("sync.objects", { n: row.count })))));
    }

    function renderStorage(storage) {
        const { usedBytes, quotaBytes, kind, isFull, isPersistent } = storage;
        return h("div", { class: "group" },
            isFull && h("div", null, banner({ kind: "bad", text: app.t("sync.storageFull") })),
            kind === "memory" && h("div", null, banner({ kind: "warn", text: app.t("sync.memory") })),
            h("div", { class: "stack" },
                h("div", { class: "row" }, h("span", { class: "grow" }, app.t("sync.used")),
                    h("span", { class: "number muted" }, usedBytes === undefined ? "–" : quotaBytes
                        ? app.t("sync.usedOf", { used: app.format.bytes(usedBytes),
                            quota: app.format.bytes(quotaBytes) }) : app.format.bytes(usedBytes))),
                quotaBytes > 0 && progress({ value: usedBytes ?? 0, max: quotaBytes, label: app.t("sync.used") })),
            h("div", { class: "row wrap" }, h("span", { class: "grow muted" }, isPersistent
                ? app.t("sync.persistent") : app.t("sync.evictable")),
            !isPersistent && kind !== "memory" && button({ label: app.t("sync.persist"), onClick: keepStorage })));
    }

    function renderSettings() {
        const { language, theme } = app.settings;
        const names = Object.entries(languages).map(([value, label]) => ({ value, label }));
        return h("div", { class: "group" },
            h("div", null, field({ label: app.t("sync.language"), id: "sync-language", control: select({
                value: language ?? "", options: [{ value: "", label: app.t("sync.languageSystem") }, ...names],
                onChange: (value) => app.saveSetting("language", value) }) })),
            h("div", null, field({ label: app.t("sync.theme"), control: segmented({ label: app.t("sync.theme"),
                name: "theme", value: theme ?? "system", options: [
                    { value: "system", label: app.t("sync.themeSystem"), icon: "device" },
                    { value: "light", label: app.t("sync.themeLight"), icon: "sun" },
                    { value: "dark", label: app.t("sync.themeDark"), icon: "moon" },
                ], onChange: (value) => { app.saveSetting("theme", value); rendered.update(); } }) })));
    }

    const renderAccount = () => h("div", { class: "group" },
        h("div", { class: "row sync-account" }, avatar({ name: app.me.name, image: app.me.image, app }),
            h("div", { class: "grow" }, h("strong", null, app.me.name),
                h("p", { class: "muted truncate" }, app.me.email)),
            chip({ label: app.t(`sync.role.${app.me.role}`), kind: "info" })),
        h("div", { class: "row wrap" }, h("span", { class: "grow muted small" },
            app.t("sync.version", { version: app.version })),
        button({ label: app.t("sync.signOut"), icon: "sign-out", kind: "danger", onClick: signOut })));

    function render() {
        const { status, mutations, uploads } = fieldpost;
        const rejected = [...mutations, ...uploads].filter((item) => item.state === "rejected");
        const queued = [...mutations, ...uploads].filter((item) => item.state === "queued"
            || item.state === "accepted");
        const shown = isListComplete ? queued : queued.slice(0, listMax);
        return page({ title: app.t("sync.title") },
            renderConnection(status),
            rejected.length > 0 && section(app.t("sync.rejected", { n: rejected.length }),
                rejected.map(renderRejected)),
            section(app.t("sync.queue", { n: queued.length }), queued.length === 0
                ? h("div", { class: "group" }, h("p", { class: "row muted" }, icon("check"), app.t("sync.queueEmpty")))
                : h("ul", { class: "group" }, shown.map(renderQueued)),
            queued.length > shown.length && button({ label: app.t("sync.showAll"), kind: "quiet",
                onClick: () => { isListComplete = true; rendered.update(); } })),
            h("div", { class: "sync-columns" },
                section(app.t("sync.data"), status.realms.length === 0 ? h("div", { class: "group" },
                    h("p", { class: "muted" }, app.t("sync.noData"))) : renderRealms(status)),
                h("div", { class: "sync-column" },
                    section(app.t("sync.storage"), renderStorage(status.storage)),
                    section(app.t("sync.settings"), renderSettings()),
                    section(app.t("sync.account"), renderAccount()))));
    }

    const rendered = view(root, render);
    fieldpost.addEventListener("status", rendered.update);
    const timer = setInterval(rendered.update, 10_000);
    return {
        update: rendered.update,
        unmount: () => {
            clearInterval(timer);
            fieldpost.removeEventListener("status", rendered.update);
            rendered.stop();
        },
    };
}
