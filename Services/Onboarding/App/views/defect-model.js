/** The objects of the Defects view, and the commands that it submits. */

import { changesOf, collectDetails, recordStates, requestKey } from "../core/defects.js";
import { newID } from "../fieldpost.js";

/** Age from which a detail is read again when its page is opened. */
const ageMax = 120_000;

/** Watches defects, commands and the login; submits commands, and deletes those that newer ones replace. */
export class DefectModel {
    defects = [];
    commands = [];
    account = null;
    #collected;
    #deleted = new Set();
    /** Ids of the commands that this view submitted: their success is displayed. */
    submitted = new Set();
    #requested = new Set();
    #stops;

    constructor(app, update) {
        this.app = app;
        this.fieldpost = app.fieldpost;
        this.realm = `/users/${app.me.email}`;
        const watch = (kind, assign) => this.fieldpost.watch(kind, { realm: this.realm }, (list) => {
            assign(list);
            update();
        });
        this.#stops = [
            watch("Defect", (list) => { this.defects = list; }),
            watch("DefectAccount", (list) => { this.account = list[0]?.fields ?? null; }),
            watch("DefectCommand", (list) => {
                this.commands = list;
                this.#collected = undefined;
                this.#cleanUp();
            }),
        ];
    }

    stop() {
        this.#stops.forEach((stop) => stop());
    }

    get isLive() {
        return this.fieldpost.status.connection === "live";
    }

    /** Whether commands can be executed: the person's login is stored and not refused. */
    get hasLogin() {
        return Boolean(this.account) && this.account.status !== "refused";
    }

    get collected() {
        this.#collected ??= { ...collectDetails(this.commands), states: recordStates(this.commands) };
        return this.#collected;
    }

    /** Returns the newest result of a request: `detail`, `messages`, `isPending` and `failure`. */
    result(request) {
        const key = requestKey(request);
        const { details, pending, failures } = this.collected;
        return { detail: details.get(key)?.detail, messages: details.get(key)?.messages ?? [],
            isPending: pending.has(key), failure: failures.get(key) };
    }

    /** Returns the defect with this id or record. */
    defect(name) {
        return this.defects.find(({ id, fields }) => id === name || fields.record === name);
    }

    changes(record) {
        return changesOf(this.commands, record);
    }

    /** Submits a command. */
    submit(fields) {
        const id = newID();
        const command = { ...fields, submitRequested: true };
        this.app.report(this.fieldpost.put(this.realm, "DefectCommand", id, command));
        if (["create", "modify", "changeState", "delete"].includes(fields.operation)) this.submitted.add(id);
        return id;
    }

    /** Submits a request unless the same one is pending. It replaces a failed one. */
    request(fields) {
        const { isPending, failure } = this.result(fields);
        if (failure) this.remove(failure.id);
        if (!isPending) this.submit(fields);
    }

    /** Submits a request once while the view is open, if its result is missing or old and can be read now. */
    requestIfOld(fields) {
        const key = requestKey(fields);
        if (this.#requested.has(key) || !this.isLive || !this.hasLogin) return;
        this.#requested.add(key);
        const { detail, isPending } = this.result(fields);
        const age = this.app.now().getTime() - Date.parse(detail?.readAt ?? 0);
        if (!isPending && !(detail && age < ageMax)) queueMicrotask(() => this.request(fields));
    }

    /** Permits another automatic request, when the page is opened again. */
    forget(fields) {
        this.#requested.delete(requestKey(fields));
    }

    remove(id) {
        if (this.#deleted.has(id)) return;
        this.#deleted.add(id);
        this.app.report(this.fieldpost.delete(this.realm, "DefectCommand", id));
    }

    /** Removes the forms that depend on edited values, after their page was closed. */
    removeDependentForms(record, actionName) {
        for (const { id, fields } of this.commands) {
            if (fields.operation === "form" && (fields.record ?? null) === (record ?? null)
                && (fields.actionName ?? null) === (actionName ?? null)
                && Object.keys(fields.fields ?? {}).length > 0) this.remove(id);
        }
    }

    #cleanUp() {
        const { superseded } = this.collected;
        if (superseded.length > 0) queueMicrotask(() => superseded.forEach((id) => this.remove(id)));
    }
}
