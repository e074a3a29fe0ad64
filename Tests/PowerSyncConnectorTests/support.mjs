/** A connector with a database and a server, all real but small. */
import { FieldpostConnector } from "../../examples/powersync/javascript/connector.js";
import { Database } from "./database.mjs";
import { Gateway } from "./gateway.mjs";

export const realm = "/users/ana@example.com";

/** Returns an entry of the queue for a new note. */
export function note(title, id = crypto.randomUUID()) {
    return { op: "PUT", type: "Note", id: id + realm, data: { title } };
}

/** A store of the login that records what was saved. */
export class Store {
    saved = [];
    constructor(login) { this.login = login; }
    async load() { return this.login; }
    async save(login) { this.login = login; this.saved.push(login); }
}

/** Runs a test with a server, a signed-in connector and an empty database. */
export async function withConnector(body, options = {}) {
    const gateway = await new Gateway().start();
    const { access_token: accessToken, expires_at: expiresAt } = gateway.issue();
    const store = new Store({
        onboarding: gateway.url, gateway: gateway.url, accessToken, expiresAt: Date.parse(expiresAt),
        credential: "credential-0",
    });
    const database = await (await Database.open()).create();
    const opened = [database];
    /** Returns a connector, such as that of the app's next start. */
    const start = (more) => new FieldpostConnector({
        gateway: gateway.url, onboarding: gateway.url, store, ...options, ...more,
    });
    /** Returns a copy of the database, as a backup restores it. */
    const backup = async (from = database) => {
        const copy = await from.copy();
        opened.push(copy);
        return copy;
    };
    let timer;
    const limit = new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(new Error("The test did not end within 120 s.")), 120_000);
    });
    try {
        await Promise.race([body({ gateway, store, database, connector: start(), start, backup }), limit]);
    } finally {
        clearTimeout(timer);
        for (const each of opened) { each.close(); }
        gateway.stop();
    }
}

/** Uploads until the queue is empty, as the SDK does. */
export async function uploadAll(connector, database) {
    while ((await database.numbers()).length > 0) { await connector.uploadData(database); }
}

export const titles = (entries) => entries.map(({ data }) => data?.title ?? null);
