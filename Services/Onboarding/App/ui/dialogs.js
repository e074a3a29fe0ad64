/** Dialogs, confirmations and toasts. */

import { h } from "./dom.js";
import { button } from "./components.js";

/**
 * Opens a modal dialog. Escape, the close button and a click outside close it; the focus returns to the element
 * that had it.
 *
 * @param {object} app
 * @param {object} options `title`; `content`, a node; `actions`: nodes or {label, kind, icon, run}. If `run` returns
 *     false, or a promise of false, the dialog stays open. `onClose` is called after it closed. `isWide`.
 * @returns {{close: () => void, element: HTMLDialogElement}}
 */
export function openDialog(app, { title, content, actions = [], onClose, isWide, isForm }) {
    const run = async (action) => {
        if ((await action.run?.()) !== false) close();
    };
    const close = () => element.open && element.close();
    const buttons = actions.filter(Boolean).map((action) => action instanceof Node ? action
        : button({ ...action, onClick: () => run(action) }));
    const titleID = `dialog-${Math.random().toString(36).slice(2, 8)}`;
    const element = h("dialog", { class: ["dialog", isWide && "dialog-wide"], "aria-labelledby": titleID,
        on: {
            close: () => { element.remove(); onClose?.(); },
            pointerdown: (event) => { pressed = event.target; },
            click: (event) => {
                if (event.target === element && pressed === element && !isForm) close();
            },
        } },
    h("div", { class: "dialog-head" }, h("h2", { id: titleID, tabindex: -1, autofocus: true }, title),
        button({ label: app.t("app.close"), icon: "close", kind: "quiet", isIconOnly: true, onClick: close })),
    h("div", { class: "dialog-body" }, content),
    buttons.length > 0 && h("div", { class: "dialog-actions" }, buttons));
    let pressed;
    document.body.append(element);
    element.showModal();
    return { close, element };
}

/** Opens a dialog with a question. Resolves with true if the person confirms. */
export function openConfirmation(app, { title, text, confirm, cancel, isDangerous }) {
    return new Promise((resolve) => {
        let isConfirmed = false;
        openDialog(app, { title, content: h("p", null, text), onClose: () => resolve(isConfirmed), actions: [
            { label: cancel ?? app.t("app.cancel"), run: () => true },
            { label: confirm ?? app.t("app.ok"), kind: isDangerous ? "danger" : "primary",
                run: () => { isConfirmed = true; } },
        ] });
    });
}

/** Shows a message for some seconds; longer with an action. Returns the function that removes it. */
export function showToast(app, text, { action, isSticky } = {}) {
    const region = document.getElementById("toasts");
    const remove = () => node.remove();
    const node = h("div", { class: "toast" }, h("span", { class: "toast-text" }, text),
        action && button({ label: action.label, kind: "quiet", onClick: () => { remove(); action.run(); } }),
        (action || isSticky) && button({ label: app.t("app.close"), icon: "close", kind: "quiet", isIconOnly: true,
            onClick: remove }));
    while (region.children.length > 2) region.firstChild.remove();
    region.append(node);
    if (!isSticky) setTimeout(remove, action ? 10_000 : 5_000);
    return remove;
}
