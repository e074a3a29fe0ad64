/** The form of a new defect, of a change of its fields, or of a change of its state. */

import {
    changedFields, dependencies, editableFields, fieldLabel, fieldNames, isMultiline, mergeForms, missingFields,
    outsideChoices,
} from "../core/defects.js";
import { banner, button, empty, field, input, page, select, skeleton } from "../ui/components.js";
import { h } from "../ui/dom.js";
import { knownState } from "./defect-detail.js";

/** A form with the edited values. It keeps them while newer versions of the form arrive. */
export class DefectForm {
    #model;
    #options;
    #edits;
    /** Values that the person saw when they edited a field. */
    #seen = {};
    #isChecked = false;
    #dependent;
    #lists;

    /**
     * @param {DefectModel} model
     * @param {object} options `record`, `actionName`, `operation` ("create", "modify" or "change NAME"), `back` and
     *     `update`.
     */
    constructor(model, options) {
        this.#model = model;
        this.#options = options;
        this.#edits = model.draft ?? {};
        model.draft = undefined;
        model.forget(this.#request);
    }

    stop() {
        this.#model.removeDependentForms(this.#options.record, this.#options.actionName);
    }

    get #request() {
        const { record, actionName } = this.#options;
        return { operation: "form", ...(record ? { record } : {}), ...(actionName ? { actionName } : {}) };
    }

    /** The form of the tracker; without one, the fields that the device has of the record. */
    get #form() {
        const { record } = this.#options;
        const first = this.#model.result(this.#request).detail;
        if (first) {
            // Until a newer one arrives, the last lists that depend on edited values stay.
            const second = this.#dependent && this.#model.result(this.#dependent).detail;
            if (second) this.#lists = second;
            return { ...mergeForms(first, this.#dependent && this.#lists), isRead: true };
        }
        if (!record || this.#options.operation !== "modify") return undefined;
        const detail = this.#model.result({ operation: "read", record }).detail;
        if (detail) return { ...detail, isRead: false };
        const defect = this.#model.defect(record)?.fields;
        return defect && { isRead: false, fields: ["headline", "severity", "priority", "owner"].map((name) =>
            ({ name: fieldNames[name], requiredness: name === "headline" ? "mandatory" : "optional",
                value: defect[name] ?? "" })) };
    }

    #edit(form, name, value, isFinal) {
        const current = form.fields.find((candidate) => candidate.name === name);
        if (!(name in this.#seen)) this.#seen[name] = current.value;
        this.#edits[name] = value;
        // A list may depend on the values of others. Of a new record, the tracker has only the lists of an empty one.
        if (isFinal && current.choices?.length && this.#options.record) {
            const fields = dependencies(this.#model.result(this.#request).detail, this.#edits);
            this.#dependent = Object.keys(fields).length > 0 ? { ...this.#request, fields } : undefined;
            if (this.#dependent && this.#model.hasLogin) this.#model.request(this.#dependent);
            this.#options.update();
        } else if (this.#isChecked) {
            this.#options.update();
        }
    }

    #control(form, definition, outside) {
        const { t } = this.#model.app;
        const { name, choices, requiredness } = definition;
        const value = this.#edits[name] ?? definition.value ?? "";
        const isMandatory = requiredness === "mandatory";
        const id = `defect-${name.replace(/\W/g, "-")}`;
        const options = choices?.length && [
            ...(isMandatory && value ? [] : [{ value: "", label: isMandatory ? t("defects.choose") : "–" }]),
            ...(value && !choices.includes(value) ? [{ value, label: value }] : []), ...choices];
        const control = options
            ? select({ options, value, required: isMandatory, onChange: (text) => this.#edit(form, name, text, true) })
            : input({ value, rows: isMultiline(definition) ? 4 : undefined, required: isMandatory,
                onInput: (text) => this.#edit(form, name, text, false) });
        const isMissing = this.#isChecked && isMandatory && !value.trim();
        return h("div", { key: name }, field({ id, control,
            label: isMandatory ? `${fieldLabel(name)} *` : fieldLabel(name),
            error: isMissing ? t("defects.required") : outside.includes(name) ? t("defects.outside") : undefined }));
    }

    #submit(form) {
        const { record, actionName, operation } = this.#options;
        const model = this.#model;
        this.#isChecked = true;
        const isBlocked = form && (missingFields(form, this.#edits).length > 0
            || outsideChoices(form, this.#edits).length > 0);
        if (isBlocked) {
            this.#options.update();
            requestAnimationFrame(() => document.querySelector(".defects-form [aria-invalid]")?.focus());
            return;
        }
        const seen = form && { ...form, fields: form.fields.map((entry) => entry.name in this.#seen
            ? { ...entry, value: this.#seen[entry.name] } : entry) };
        const { fields, base } = changedFields(seen, this.#edits);
        if (operation === "create") {
            model.submit({ operation: "create", fields });
            model.app.navigate("defects/reported");
        } else if (operation === "modify") {
            if (Object.keys(fields).length === 0) {
                model.app.toast(model.app.t("defects.unchanged"));
                return;
            }
            model.submit({ operation: "modify", record, fields, base });
        } else {
            const { name, value } = knownState(model, record);
            model.submit({ operation: "changeState", record, actionName, fields,
                base: value ? { ...base, [name]: value } : base });
        }
        this.#edits = {};
        if (!record) return;
        model.submit({ operation: "read", record });
        model.app.navigate(`defects/${encodeURIComponent(record)}`);
    }

    /** Returns the page of the form. */
    render() {
        const { app } = this.#model;
        const { t, format } = app;
        const { record, actionName, operation, back } = this.#options;
        const request = this.#request;
        this.#model.requestIfOld(request);
        const { detail, isPending, failure, messages } = this.#model.result(request);
        const form = this.#form;
        const title = operation === "create" ? t("defects.new") : actionName ? fieldLabel(actionName)
            : t("defects.modify");
        const target = record ? `defects/${encodeURIComponent(record)}` : back;
        const isChange = operation.startsWith("change ");
        const fields = editableFields(form);
        const outside = this.#isChecked ? outsideChoices(form, this.#edits) : [];
        // Of a change of state, fields that the action makes mandatory, and mandatory ones without a value, come first.
        const always = new Set((record ? this.#model.result({ operation: "read", record }).detail?.fields ?? [] : [])
            .filter(({ requiredness, value }) => requiredness === "mandatory" && value?.trim())
            .map(({ name }) => name));
        // Of a new defect, fields that the reporter can usually fill in come first.
        const isCreation = operation === "create";
        const isMain = ({ name, requiredness }) => (!isChange && !isCreation)
            || (isCreation && /^(description|priority|project)$/i.test(name)) || name in this.#edits
            || (requiredness === "mandatory" && !always.has(name));
        const controls = (list) => list.map((definition) => this.#control(form, definition, outside));
        const rest = fields.filter((definition) => !isMain(definition));
        const isDependentPending = this.#dependent && this.#model.result(this.#dependent).isPending;
        return page({ title, subtitle: record ? this.#model.defect(record)?.fields.headline ?? record : undefined,
            back: { href: `#/${target}`, label: t("app.back") } },
        failure && banner({ kind: "bad", text: failure.fields.messages?.join(" ") || t("defects.failed"),
            action: button({ label: t("app.retry"), kind: "quiet", onClick: () => this.#model.request(request) }) }),
        !this.#model.hasLogin && banner({ kind: "warn", text: t("defects.needsLogin"),
            action: button({ label: t("defects.login"), kind: "quiet", href: "#/defects/account" }) }),
        form && !form.isRead && banner({ kind: "warn", text: t("defects.withoutForm") }),
        !form && isPending && this.#model.isLive && skeleton(4),
        !form && !isPending && !failure && !isChange && empty({ icon: "offline", title: t("defects.noForm"),
            text: t("defects.noFormText"), action: button({ label: t("defects.readNow"), icon: "refresh",
                disabled: !this.#model.hasLogin, onClick: () => this.#model.request(request) }) }),
        !form && isPending && !this.#model.isLive && banner({ kind: "info", text: t("defects.readLater") }),
        detail && (isPending || !this.#model.isLive) && h("p", { class: "muted small", role: "status" },
            this.#model.isLive ? t("defects.reading")
                : t("defects.readAt", { time: format.relative(detail.readAt) })),
        messages.map((text) => h("p", { class: "muted small" }, text)),
        (form || isChange) && h("form", { class: "form defects-form", novalidate: true, on: { submit: (event) => {
            event.preventDefault();
            this.#submit(form);
        } } },
        controls(fields.filter(isMain)),
        isChange && form && fields.every((definition) => !isMain(definition))
            && h("p", null, t("defects.nothingRequired")),
        rest.length > 0 && h("details", { class: "defects-more", key: "more" },
            h("summary", null, t("defects.moreFields", { n: rest.length })),
            h("div", { class: "form" }, controls(rest))),
        h("div", { class: "form-actions" }, button({ label: t("app.cancel"), href: `#/${target}` }),
            button({ label: operation === "create" ? t("defects.create") : isChange ? title : t("app.save"),
                kind: "primary", type: "submit" })),
        // Below the buttons, so that they stay in place when it appears.
        isDependentPending && h("p", { class: "muted small", role: "status" },
            t(this.#model.isLive ? "defects.readingChoices" : "defects.oldChoices"))));
    }
}
