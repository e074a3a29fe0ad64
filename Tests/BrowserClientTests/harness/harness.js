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

/** Reads all realms from the server, without `fieldpost.js`. */
async function download() {
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
}

globalThis.harness = {
    opened: opened.then(() => "opened"),

    async signIn() {
        const fieldpost = await opened;
        await fieldpost.signInWithToken({ accessToken: token, expiresAt: Date.now() + 3_000_000 });
        return "signed in";
    },

    /** Resolves with the mutation's sequence when it is stored on the device. */
    async write(operation, realm, id, fields) {
        const fieldpost = await opened;
        const mutation = operation === "delete"
            ? await fieldpost.delete(realm, "Note", id) : await fieldpost[operation](realm, "Note", id, fields);
        return mutation.sequence;
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

    /** Whether this tab is live and has nothing to send, or the status if not. */
    async idle() {
        const { connection, queued, email } = (await opened).status;
        return connection === "live" && queued === 0 && email !== undefined ? "idle" : this.status();
    },

    /** Whether nothing is left of mutations and no error occurred, or the status if not. */
    async isClean() {
        const fieldpost = await opened;
        return fieldpost.mutations.length === 0 && problems.length === 0 ? true : this.status();
    },

    /** Whether this tab is signed in: it may write. */
    async isSignedIn() { return (await opened).status.email !== undefined; },

    /** Differences between this tab's objects and the server's, one per line; empty if there are none. */
    async differences() {
        const fieldpost = await opened;
        const downloaded = await download();
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
