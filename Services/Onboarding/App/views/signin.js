/** Sign-in by e-mail address and the login page of the organisation. */

import { banner, button, field, input, progress } from "../ui/components.js";
import { h, view } from "../ui/dom.js";

export const route = "signin";

const looksLikeAddress = (text) => /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text);

/**
 * Renders the steps of a login into an element.
 *
 * @param {object} app
 * @param {Element} root
 * @param {{email?: string, isFixed?: boolean, onDone?: () => void}} options With `isFixed` the address cannot change.
 */
export function mountSignIn(app, root, { email = "", isFixed = false, onDone } = {}) {
    const state = { email, step: "address", error: undefined, loginURL: undefined };
    let session;
    let attempt = 0;

    async function begin(event) {
        event?.preventDefault();
        state.email = state.email.trim();
        if (!looksLikeAddress(state.email)) {
            state.error = app.t("signin.invalidAddress");
            rendered.flush();
            root.querySelector("input")?.focus();
            return;
        }
        Object.assign(state, { step: "waiting", error: undefined, loginURL: undefined });
        const number = ++attempt;
        const tab = window.open("", "_blank");
        rendered.update();
        try {
            session = await app.fieldpost.signIn(state.email);
            if (number !== attempt) return session.cancel();
            state.loginURL = session.loginURL;
            session.onproblem = (problem, loginURL) => {
                state.error = app.problemText(problem);
                if (loginURL) state.loginURL = loginURL;
                rendered.update();
            };
            if (tab) {
                tab.opener = null;
                tab.location.replace(session.loginURL);
            }
            rendered.update();
            await session.done;
            tab?.close();
            onDone?.();
        } catch (error) {
            tab?.close();
            if (number !== attempt) return;
            if (!error.code) console.error(error);
            Object.assign(state, { step: "address", error: app.problemText(error) });
            rendered.update();
        }
    }

    function cancel() {
        attempt += 1;
        session?.cancel();
        Object.assign(state, { step: "address", error: undefined });
        rendered.update();
    }

    const renderAddress = () => h("form", { class: "form", novalidate: true, on: { submit: begin }, key: "address" },
        !navigator.onLine && banner({ kind: "warn", text: app.t("signin.offline") }),
        field({ label: app.t("signin.email"), hint: isFixed ? undefined : app.t("signin.emailHint"), error: state.error,
            id: "signin-email", control: input({ type: "email", value: state.email, name: "email", readonly: isFixed,
                autocomplete: "username", autocapitalize: "off", spellcheck: "false", required: true,
                onInput: (value) => { state.email = value; } }) }),
        button({ label: app.t("signin.continue"), kind: "primary", type: "submit" }));

    const renderWaiting = () => h("div", { class: "form", key: "waiting" },
        state.error && banner({ kind: "bad", text: state.error }),
        h("div", { class: "stack", role: "status" },
            h("p", null, h("strong", null, state.loginURL ? app.t("signin.waiting") : app.t("signin.preparing"))),
            state.loginURL && h("p", { class: "muted" }, app.t("signin.waitingText", { email: state.email }))),
        progress({ label: app.t("signin.waiting") }),
        state.loginURL && h("a", { id: "login-link", class: "button button-primary", href: state.loginURL,
            target: "_blank",
            rel: "noopener noreferrer" }, app.t("signin.open")),
        button({ label: app.t("app.cancel"), kind: "quiet", onClick: cancel }));

    const rendered = view(root, () => state.step === "waiting" ? renderWaiting() : renderAddress());
    return { update: rendered.update, stop: () => { rendered.stop(); if (state.step === "waiting") cancel(); } };
}

export function mount(app, root) {
    const box = h("div", { class: "signin-card" });
    root.append(h("div", { class: "signin" }, h("div", { class: "signin-box" },
        h("div", { class: "signin-brand" }, h("img", { src: "icons/icon.svg", alt: "" }),
            h("h1", { tabindex: -1 }, app.t("app.name")), h("p", { class: "muted" }, app.t("signin.text"))),
        box, h("p", { class: "muted small signin-note" }, app.t("signin.note")))));
    const form = mountSignIn(app, box);
    return { update: form.update, unmount: form.stop };
}
