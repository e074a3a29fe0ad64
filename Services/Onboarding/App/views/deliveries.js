/** The dialog for the person's `DeliveryChoice`: web push, e-mail, quiet hours and sorts of notices. */

import { excludeSort, noticeSorts } from "../core/notices.js";
import { banner, field, input, progress, toggle } from "../ui/components.js";
import { h, view } from "../ui/dom.js";

const isPushSupported = () => "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

async function pushRegistration() {
    const registration = await navigator.serviceWorker.getRegistration();
    return registration?.pushManager ? registration : undefined;
}

/** Ends the push subscription of this browser, for example before the person signs out. */
export async function endPush() {
    if (!isPushSupported()) return undefined;
    const subscription = await (await pushRegistration())?.pushManager.getSubscription();
    await subscription?.unsubscribe();
    return subscription?.endpoint;
}

async function beginPush(pushKey) {
    const registration = await pushRegistration();
    if (!registration) throw Object.assign(new Error("no service worker"), { code: "push-unavailable" });
    if (await Notification.requestPermission() !== "granted") {
        throw Object.assign(new Error("permission denied"), { code: "push-denied" });
    }
    const options = { userVisibleOnly: true, applicationServerKey: pushKey };
    let subscription;
    try {
        subscription = await registration.pushManager.subscribe(options);
    } catch (error) {
        if (error.name !== "InvalidStateError") {
            throw Object.assign(new Error(error.message), { code: "push-unavailable" });
        }
        await (await registration.pushManager.getSubscription())?.unsubscribe();
        subscription = await registration.pushManager.subscribe(options);
    }
    const { endpoint, keys } = subscription.toJSON();
    return { endpoint, p256dh: keys.p256dh, auth: keys.auth };
}

/** Opens the dialog. Changes are written at once. */
export function openDeliveries(app) {
    const realm = `/users/${app.fieldpost.status.email}`;
    const { person } = app.me;
    const root = h("div", { class: "form" });
    const state = { offer: undefined, problem: undefined, endpoint: undefined, isBusy: false };

    const choice = () => person && app.fieldpost.object(realm, person);

    function write(fields) {
        const values = { ...fields, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone };
        const existing = choice();
        return app.report(existing ? app.fieldpost.patch(realm, "DeliveryChoice", person, values)
            : app.fieldpost.put(realm, "DeliveryChoice", person, values));
    }

    async function setPush(isOn) {
        state.isBusy = true;
        rendered.update();
        try {
            const others = (choice()?.fields.pushes ?? []).filter((push) => push.endpoint !== state.endpoint);
            if (isOn) {
                const push = await beginPush(state.offer.pushKey);
                state.endpoint = push.endpoint;
                const kept = others.filter(({ endpoint }) => endpoint !== push.endpoint);
                await write({ pushes: [...kept, push].slice(-8) });
            } else {
                await endPush();
                state.endpoint = undefined;
                await write({ pushes: others.length > 0 ? others : null });
            }
        } catch (error) {
            app.toast(app.problemText(error));
        }
        state.isBusy = false;
        rendered.update();
    }

    function renderPush(fields) {
        const isOn = Boolean(state.endpoint) && (fields.pushes ?? []).some((push) => push.endpoint === state.endpoint);
        const isDenied = isPushSupported() && Notification.permission === "denied";
        const hint = !state.offer.pushKey ? app.t("notices.pushNotOffered") : !isPushSupported()
            ? app.t("notices.pushUnsupported") : isDenied ? app.t("notices.pushBlocked") : app.t("notices.pushHint");
        return toggle({ label: app.t("notices.push"), hint, checked: isOn, onChange: setPush,
            disabled: state.isBusy || !state.offer.pushKey || !isPushSupported() || (isDenied && !isOn) });
    }

    const time = (label, value, onChange) => field({ label, control: input({ type: "time", value, onChange,
        "aria-label": label }) });

    function renderQuiet(fields) {
        const [from, to] = (fields.quietHours ?? "").split("-");
        const set = (start, end) => start && end && start !== end && write({ quietHours: `${start}-${end}` });
        return [
            toggle({ label: app.t("notices.quiet"), hint: app.t("notices.quietHint"), checked: Boolean(from),
                onChange: (isOn) => write({ quietHours: isOn ? "20:00-06:30" : null }) }),
            from && h("div", { class: "form-row", key: "quiet" },
                time(app.t("notices.quietFrom"), from, (value) => set(value, to)),
                time(app.t("notices.quietTo"), to, (value) => set(from, value))),
        ];
    }

    function renderEmail(fields) {
        if (!state.offer.email) return null;
        return [
            toggle({ label: app.t("notices.email"), hint: app.t("notices.emailHint", { email: app.me.email }),
                checked: fields.email, onChange: (isOn) => write({ email: isOn }) }),
            fields.email && toggle({ label: app.t("notices.digest"), hint: app.t("notices.digestHint"),
                checked: Boolean(fields.digestAt), onChange: (isOn) => write({ digestAt: isOn ? "07:30" : null }) }),
            fields.email && fields.digestAt && time(app.t("notices.digestAt"), fields.digestAt,
                (value) => value && write({ digestAt: value })),
        ];
    }

    function render() {
        if (state.problem) return banner({ kind: "warn", text: app.problemText(state.problem) });
        if (!state.offer) return progress({ label: app.t("notices.deliveries") });
        const fields = choice()?.fields ?? {};
        const excluded = fields.excludedCodes ?? [];
        return [
            fields.problem && banner({ kind: "warn", text: fields.problem }),
            h("div", null, renderPush(fields), renderEmail(fields), renderQuiet(fields)),
            h("fieldset", { class: "field" }, h("legend", null, app.t("notices.sorts")),
                Object.keys(noticeSorts).map((sort) => toggle({ label: app.t(`notices.sort.${sort}`),
                    checked: !noticeSorts[sort].every((code) => excluded.includes(code)),
                    onChange: (isOn) => write({ excludedCodes: excludeSort(excluded, sort, !isOn) }) })),
                h("p", { class: "field-note" }, app.t("notices.sortsHint"))),
        ];
    }

    const rendered = view(root, render);
    const stop = person ? app.fieldpost.watch("DeliveryChoice", { realm }, rendered.update) : undefined;
    app.dialog({ title: app.t("notices.deliveries"), content: root,
        onClose: () => { stop?.(); rendered.stop(); } });
    Promise.all([
        app.fieldpost.request("GET", "/v1/deliveries"),
        isPushSupported() ? pushRegistration().then((found) => found?.pushManager.getSubscription()) : undefined,
    ]).then(([offer, subscription]) => {
        state.offer = offer ?? {};
        state.endpoint = subscription?.endpoint;
    }, (error) => { state.problem = error; }).then(rendered.update);
}
