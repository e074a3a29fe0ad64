/**
 * Page for the fault test of `fieldpost.js`: the test calls the functions of `harness` in several tabs on one store.
 *
 * The address has the parameters `gateway`, `name` (of the store) and `token`.
 */
import { Fieldpost } from "./fieldpost.js";

const parameters = new URLSearchParams(location.search);
const gateway = parameters.get("gateway");
const token = parameters.get("token");

/** Kinds that the test compares in addition to those of the download. */
const kinds = ["DeletedObject", "Location", "Membership", "Note", "Notice", "Person", "PersonLookup", "Team", "User"];

const problems = [];
window.addEventListener("error", (event) => problems.push(event.message));
window.addEventListener("unhandledrejection", (event) => problems.push(String(event.reason?.stack ?? event.reason)));

const opened = Fieldpost.open({ gateway, name: parameters.get("name") });

/** JSON whose keys are sorted, without nulls: null and absent mean the same. */
function canonical(value) {
    if (Array.isArray(value)) { return `[${value.map(canonical).join(",")}]`; }
    if (typeof value !== "object" || value === null) { return JSON.stringify(value); }
    const keys = Object.keys(value).filter((key) => value[key] !== null && value[key] !== undefined).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

const line = (realm, object) => `${realm} ${object.kind} ${object.id} ${object.position} ${canonical(object.fields)}`;

/** Repeats an action while the server is unreachable. */
async function persistently(action) {
    for (let count = 1; ; count += 1) {
        try {
            return await action();
        } catch (error) {
            if (count === 200) { throw error; }
            await new Promise((resolve) => { setTimeout(resolve, 100); });
        }
    }
}

/** Reads all realms from the server, without `fieldpost.js`. */
const download = () => persistently(async () => {
    const response = await fetch(`${gateway}/v1/sync`, {
        method: "POST", body: "{}", headers: { "Authorization": `Bearer ${token}`, "Content-Type": "application/json" },
    });
    if (!response.ok) { throw new Error(`HTTP ${response.status}`); }
    const objects = new Map();
    for (const text of (await response.text()).split("\n").filter((one) => one !== "")) {
        const { realm, list = [] } = JSON.parse(text).objects ?? {};
        for (const object of list) {
            const key = `${realm} ${object.kind} ${object.id}`;
            if (object.deleted) { objects.delete(key); } else { objects.set(key, { realm, ...object }); }
        }
    }
    return [...objects.values()];
});

/** Waits for a condition on the status; returns whether it is met. */
function until(fieldpost, condition, milliseconds) {
    return new Promise((resolve) => {
        const end = (isMet) => {
            clearTimeout(timer);
            fieldpost.removeEventListener("status", check);
            resolve(isMet);
        };
        const check = () => { if (condition()) { end(true); } };
        const timer = setTimeout(() => end(condition()), milliseconds);
        fieldpost.addEventListener("status", check);
        check();
    });
}

globalThis.harness = {
    opened: opened.then(() => "opened"),

    async signIn() {
        const fieldpost = await opened;
        await persistently(() =>
            fieldpost.signInWithToken({ accessToken: token, expiresAt: Date.now() + 3_000_000 }));
        return "signed in";
    },

    /** Resolves with "stored" when the mutation is stored on the device, or with the code of the error. */
    async write(operation, realm, id, fields) {
        const fieldpost = await opened;
        try {
            if (operation === "delete") {
                await fieldpost.delete(realm, "Note", id);
            } else {
                await fieldpost[operation](realm, "Note", id, fields);
            }
            return "stored";
        } catch (error) {
            return error.code ?? String(error.stack);
        }
    },

    /** Starts writes of new notes without waiting. */
    async start(realm, ids, title) {
        const fieldpost = await opened;
        for (const id of ids) { fieldpost.put(realm, "Note", id, { title: `${title} ${id}` }).catch(() => {}); }
        return "started";
    },

    async pause() { await (await opened).pause(); return "paused"; },

    async resume() { await (await opened).resume(); return "resumed"; },

    async status() {
        const fieldpost = await opened;
        const mutations = fieldpost.mutations.map(({ sequence, operation, id, state, problem }) =>
            ({ sequence, operation, id, state, problem: problem?.code }));
        return JSON.stringify({ ...fieldpost.status, mutations, problems });
    },

    /** Waits until this tab is live and has nothing to send; resolves with "idle", or with the status if it is not. */
    async idle(milliseconds) {
        const fieldpost = await opened;
        const isIdle = () => {
            const { connection, queued, email } = fieldpost.status;
            return connection === "live" && queued === 0 && email !== undefined;
        };
        return await until(fieldpost, isIdle, milliseconds) ? "idle" : this.status();
    },

    /** The rejected mutations that this tab shows, as JSON. */
    async rejected() {
        const rejected = (await opened).mutations.filter(({ state }) => state === "rejected");
        return JSON.stringify(rejected.map(({ realm, operation: op, id, fields }) => ({ realm, op, id, fields })));
    },

    async dismissAll() {
        const fieldpost = await opened;
        for (const item of fieldpost.mutations.filter(({ state }) => state === "rejected")) {
            await fieldpost.dismiss(item);
        }
        return "dismissed";
    },

    /** Whether nothing is left of mutations and no error occurred, or the status if not. */
    async isClean() {
        const fieldpost = await opened;
        return fieldpost.mutations.length === 0 && problems.length === 0 ? true : this.status();
    },

    /** Waits until this tab is signed in: it may write. */
    async isSignedIn(milliseconds) {
        const fieldpost = await opened;
        return until(fieldpost, () => fieldpost.status.email !== undefined, milliseconds);
    },

    /**
     * Differences between this tab's objects and the server's, one per line; empty if there are none.
     *
     * A paused tab lacks people who were added to `/common` since, for other seeds.
     */
    async differences() {
        const fieldpost = await opened;
        const { connection, position } = fieldpost.status;
        const downloaded = (await download()).filter((object) =>
            connection !== "paused" || object.realm !== "/common" || object.position <= position);
        const expected = new Set(downloaded.map((object) => line(object.realm, object)));
        const found = new Set();
        for (const kind of new Set([...kinds, ...downloaded.map((object) => object.kind)])) {
            for (const object of fieldpost.objects(kind)) {
                found.add(line(object.realm, object) + (object.isPending ? " pending" : ""));
            }
        }
        return [
            ...[...expected].filter((one) => !found.has(one)).map((one) => `only the server: ${one}`),
            ...[...found].filter((one) => !expected.has(one)).map((one) => `only the tab: ${one}`),
        ].join("\n");
    },

    /** The notes of the server by id, as JSON. */
    async notes() {
        const notes = (await download()).filter((object) => object.kind === "Note");
        return JSON.stringify(Object.fromEntries(notes.map((note) => [note.id, JSON.parse(canonical(note.fields))])));
    },
};
