/**
 * The client library of Fieldpost for browsers. `fieldpost.d.ts` declares its public interface.
 *
 * Parts, in this order: the pure core (`DeviceState`), the store (IndexedDB or memory), the connection of the leading
 * tab, and `Fieldpost`, which connects them and shares their events with the other tabs.
 */

// MARK: Limits

/** Maximum number of mutations in one request. */
export const batchCountMax = 500;
/** Maximum size of a request's body in bytes. */
export const batchBytesMax = 1_048_576;
/** Maximum number of realms named in a request for a stream. */
export const namedCountMax = 1_000;
/** Maximum size of an object's fields in bytes. */
export const fieldsBytesMax = 65_536;
/** Maximum size of an image in bytes. */
export const imageBytesMax = 1_048_576;

/** Time without a line after which a stream is closed, in milliseconds. */
const silenceMax = 90_000;
/** Maximum delay of a retry, in milliseconds. */
const backoffMax = 30_000;
/** Time that a tab waits for a missing message before it rereads the store, in milliseconds. */
const messageGapMax = 300;
/** Minimum remaining validity of a token before it is renewed, in milliseconds. */
const renewalMargin = 300_000;
/** Maximum number of attempts to open the database while the browser deletes it. */
const openCountMax = 10;
/** Number of changes after which the leader stores what it has read of a stream. */
const groupCountMin = 2_000;
/** Number of changed objects above which all are displayed again. */
const changedCountMax = 5_000;
/** Maximum number of objects in a page that a compaction merges. */
const mergedCountMax = 1_000;
/** Maximum length of the text of a page that a compaction merges. */
const mergedLengthMax = 500_000;
/** Maximum number of pages that one step of a compaction reads. */
const mergedPageCountMax = 200;
/** Number of changes that take as long to load as an empty page. */
const changesPerPage = 20;
/** Number of changes that may be appended before a compaction, in addition to the number of objects. */
const appendedCountMin = 20_000;

const bytesOf = (text) => new TextEncoder().encode(text).length;
const addressOf = (realm, kind, id) => `${realm} ${kind} ${id}`;
const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** An error with a stable `code`. */
export class FieldpostError extends Error {
    /** Creates an error with a code for programs and a sentence for people. */
    constructor(code, detail, status = 0) {
        super(detail || code);
        this.name = "FieldpostError";
        this.code = code;
        this.status = status;
    }
}

/** Returns a random id. */
export function newID() {
    if (crypto.randomUUID) { return crypto.randomUUID(); }
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Returns the derived id of a `Membership`, `SharedItem` or `Share`: first half of one id, last half of the other. */
export function pairedID(first, second) { return first.slice(0, 18) + second.slice(18); }

// MARK: Copy

/**
 * The copy of the realms: the content of the last consistent checkpoint, and staged changes received since.
 *
 * The store has it as a log: each received line with objects is a page, under an increasing number. The pages of a
 * realm up to `settled` are its content; those above are staged. A checkpoint moves `settled` and copies nothing.
 */
class DeviceCopy {
    constructor() {
        /** Realm path → its state (see `realm`); contents by address. */
        this.realms = new Map();
        this.position = 0;
        this.nextPage = 1;
        /** Number of changes, and of pages by weight, that were appended since the last compaction. */
        this.appended = 0;
        this.clean();
    }

    /** Forgets which changes the store lacks: of realms, added pages by number, and numbers of removed pages. */
    clean() { this.dirty = { realms: new Set(), pages: new Map(), removed: new Set() }; }

    realm(path) {
        let realm = this.realms.get(path);
        if (!realm) {
            realm = {
                content: new Map(), staged: new Map(), isReset: false, cursor: null, isOpen: false, isUnnamed: false,
                pages: [], settled: 0,
            };
            this.realms.set(path, realm);
        }
        this.dirty.realms.add(path);
        return realm;
    }

    /** Prepares for a stream and returns the realms to name, with their cursors. */
    beginStream(only = null, countMax = namedCountMax) {
        for (const path of this.realms.keys()) {
            const realm = this.realm(path);
            realm.isOpen = false;
            realm.isUnnamed = only ? !only.includes(path) : false;
        }
        const named = [...this.realms].filter(([, realm]) => !realm.isUnnamed);
        const saved = ([, realm]) => (realm.cursor === null ? -1 : realm.content.size + realm.staged.size);
        const compare = (left, right) => (left < right ? -1 : left > right ? 1 : 0);
        if (named.length > countMax) {
            named.sort((left, right) => saved(right) - saved(left) || compare(left[0], right[0]));
            for (const [, realm] of named.splice(countMax)) { realm.isUnnamed = true; }
        }
        named.sort((left, right) => compare(left[0], right[0]));
        return Object.fromEntries(named.map(([path, realm]) => [path, realm.cursor]));
    }

    /** Applies a line and its text, and returns the addresses of changed objects. */
    apply(line, text) {
        if (line.open) { this.open(line.open.realm, line.open.reset === true); return new Set(); }
        if (line.closed) { return this.close(line.closed.realm); }
        if (line.objects) { this.stage(line.objects, text); return new Set(); }
        if (line.checkpoint) { return this.checkpoint(line.checkpoint); }
        if (line.keepalive) { this.keepalive(line.keepalive); }
        return new Set();
    }

    open(path, isReset) {
        const realm = this.realm(path);
        realm.isOpen = true;
        // Without a cursor the server sends the complete realm.
        if (isReset || realm.cursor === null) { this.restart(realm); }
    }

    /** Downloads a realm again: its content remains until the next checkpoint. */
    restart(realm) {
        realm.isReset = true;
        realm.staged = new Map();
        realm.cursor = null;
        this.removePages(realm, (page) => page > realm.settled);
    }

    /** Downloads all realms again. */
    restartAll() {
        for (const path of this.realms.keys()) { this.restart(this.realm(path)); }
        this.position = 0;
    }

    close(path) {
        const realm = this.realms.get(path);
        if (!realm) { return new Set(); }
        this.removePages(realm, () => true);
        this.realms.delete(path);
        this.dirty.realms.add(path);
        return new Set(realm.content.keys());
    }

    removePages(realm, isRemoved) {
        for (const page of realm.pages.filter(isRemoved)) {
            if (!this.dirty.pages.delete(page)) { this.dirty.removed.add(page); }
        }
        realm.pages = realm.pages.filter((page) => !isRemoved(page));
    }

    stage({ realm: path, list, cursor }, text) {
        const realm = this.realm(path);
        realm.isOpen = true;
        if (cursor !== undefined && cursor !== null) { realm.cursor = cursor; }
        if (list.length === 0) { return; }
        for (const change of list) {
            realm.staged.set(addressOf(path, change.kind, change.id), change.deleted ? null : objectOf(path, change));
        }
        realm.pages.push(this.nextPage);
        this.dirty.pages.set(this.nextPage, text);
        this.nextPage += 1;
        this.appended += changesPerPage + list.length;
    }

    /** Adds a stored page. Pages are loaded in the order of their numbers. */
    load({ number, text }) {
        const { realm: path, list } = JSON.parse(text).objects;
        const realm = this.realms.get(path);
        realm.pages.push(number);
        const isStaged = number > realm.settled;
        const target = isStaged ? realm.staged : realm.content;
        for (const change of list) {
            const address = addressOf(path, change.kind, change.id);
            if (!change.deleted) {
                target.set(address, objectOf(path, change));
            } else if (isStaged) {
                target.set(address, null);
            } else {
                target.delete(address);
            }
        }
    }

    checkpoint({ position, cursor, cursors }) {
        this.position = position;
        const changed = new Set();
        for (const [path, realm] of [...this.realms]) {
            if (!realm.isUnnamed || realm.isOpen) { continue; }
            for (const address of this.close(path)) { changed.add(address); }
        }
        for (const [path, realm] of this.realms) {
            if (realm.isOpen) { this.settle(path, cursors?.[path] ?? cursor ?? null, changed); }
        }
        return changed;
    }

    /** Makes the staged changes visible. */
    settle(path, cursor, changed) {
        const realm = this.realm(path);
        realm.cursor = cursor ?? realm.cursor;
        if (realm.isReset) {
            for (const address of realm.content.keys()) { changed.add(address); }
            this.removePages(realm, (page) => page <= realm.settled);
            realm.content = new Map();
            realm.isReset = false;
        }
        // A complete download is not copied.
        const isComplete = realm.content.size === 0;
        if (isComplete) { realm.content = realm.staged; }
        for (const [address, object] of realm.staged) {
            changed.add(address);
            if (!object) {
                realm.content.delete(address);
            } else if (!isComplete) {
                realm.content.set(address, object);
            }
        }
        realm.staged = new Map();
        realm.settled = realm.pages.at(-1) ?? realm.settled;
    }

    /** Processes a keepalive: a checkpoint, unless staged changes wait for theirs. */
    keepalive({ position, cursor, cursors }) {
        for (const realm of this.realms.values()) {
            if (realm.isOpen && (realm.staged.size > 0 || realm.isReset)) { return; }
        }
        this.position = Math.max(this.position, position);
        for (const [path, { isOpen }] of this.realms) {
            const next = cursors?.[path] ?? cursor;
            if (isOpen && next) { this.realm(path).cursor = next; }
        }
    }

    /** Whether so much was appended that the log should be compacted. */
    get isCompactionDue() {
        const count = [...this.realms.values()].reduce((sum, { content }) => sum + content.size, 0);
        return this.appended > appendedCountMin + count;
    }

    /**
     * Returns a step of a compaction: the settled pages from `after` to `upTo` that one page can replace.
     *
     * `read` returns the text of a page. Superseded changes and deletions are dropped. That is safe because a
     * compaction begins with the oldest page of a realm: no page before a dropped deletion has its object.
     */
    async compactionStep(path, after, upTo, read) {
        const { pages, content, settled } = this.realms.get(path) ?? { pages: [] };
        const step = { path, pages: [], text: null, isChanged: false };
        const kept = new Map();
        let length = 0;
        for (const page of pages) {
            if (page <= after || page > Math.min(upTo, settled)) { continue; }
            const text = await read(page) ?? "";
            const list = text ? JSON.parse(text).objects.list : [];
            const live = list.filter(({ kind, id, position, deleted }) => (
                !deleted && content.get(addressOf(path, kind, id))?.position === position));
            const size = text.length * live.length / Math.max(list.length, 1);
            const isFull = kept.size + live.length > mergedCountMax || length + size > mergedLengthMax
                || step.pages.length >= mergedPageCountMax;
            if (step.pages.length > 0 && isFull) { break; }
            step.isChanged ||= step.pages.length > 0 || live.length < list.length;
            step.pages.push(page);
            length += size;
            for (const change of live) { kept.set(addressOf(path, change.kind, change.id), change); }
        }
        if (kept.size > 0) { step.text = JSON.stringify({ objects: { realm: path, list: [...kept.values()] } }); }
        return step;
    }

    /** Replaces the pages of a step by one under the last number, or by none. */
    applyStep({ path, pages, text }) {
        const realm = this.realms.get(path);
        const removed = new Set(text === null ? pages : pages.slice(0, -1));
        realm.pages = realm.pages.filter((page) => !removed.has(page));
    }
}

function objectOf(realm, { kind, id, position, fields }) {
    return Object.freeze({ realm, kind, id, position, fields: Object.freeze(fields), isPending: false });
}

// MARK: Queue

/** The queue of mutations: numbered when they are queued, completed by results, stored for a while afterwards. */
class DeviceQueue {
    constructor(clientId, historyCountMin) {
        this.clientId = clientId;
        this.historyCountMin = historyCountMin;
        this.nextSequence = 1;
        /** Mutations without a result, in order. */
        this.waiting = [];
        /** Completed mutations, the oldest first. */
        this.history = [];
        this.requestCount = 0;
        this.requestInFlight = null;
        this.resetCount = 0;
        this.queriedResetCount = 0;
    }

    /** Whether a realm was reset, and the server has not confirmed since that it still has its results. */
    get isInDoubt() { return this.history.length > 0 && this.queriedResetCount < this.resetCount; }

    /** Returns the next request: the oldest mutations; first the last completed one, if results may be lost. */
    nextRequest(countMax) {
        const isQuery = this.isInDoubt;
        const candidates = isQuery ? [this.history.at(-1), ...this.waiting] : this.waiting;
        if (candidates.length === 0) { return null; }
        const head = `{"clientId":${JSON.stringify(this.clientId)},"mutations":[`;
        let size = bytesOf(head);
        const [batch, texts] = [[], []];
        for (const item of candidates.slice(0, Math.min(countMax, batchCountMax))) {
            const text = requestText(item);
            const bytes = bytesOf(text);
            // The closing brackets of the body need two more bytes.
            if (batch.length > 0 && size + 1 + bytes + 2 > batchBytesMax) { break; }
            size += bytes + (batch.length > 0 ? 1 : 0);
            batch.push(item);
            texts.push(text);
        }
        this.requestCount += 1;
        this.requestInFlight = this.requestCount;
        return {
            number: this.requestCount, resetCount: this.resetCount, isQuery, mutations: batch,
            body: `${head}${texts.join(",")}]}`,
        };
    }

    /** Processes a response; `null` if it does not belong to the latest request. */
    apply(response, request, newClientId) {
        if (request.number !== this.requestInFlight) { return null; }
        this.requestInFlight = null;
        this.queriedResetCount = Math.max(this.queriedResetCount, request.resetCount);
        const expected = response.expectedSequence;
        // Numbers that were never allocated here: another device uses this client id and got these results.
        if (!response.outcomes || expected > this.nextSequence) { return this.requeue(expected, newClientId); }
        const effect = request.isQuery
            ? this.applyQuery(response.outcomes)
            : { completed: [], lostCount: 0, isRequeued: false };
        effect.completed.push(...this.complete(response.outcomes));
        return effect;
    }

    complete(outcomes) {
        const completed = [];
        for (const item of this.waiting) {
            const outcome = outcomes.get(item.sequence);
            if (!outcome) { break; }
            completed.push({ ...item, outcome });
        }
        this.waiting.splice(0, completed.length);
        this.history.push(...completed);
        if (this.history.length > 2 * this.historyCountMin) {
            this.history.splice(0, this.history.length - this.historyCountMin);
        }
        return completed;
    }

    /** Processes the result of the query for lost results. If only the last was lost, it has been reprocessed. */
    applyQuery(outcomes) {
        const last = this.history.at(-1);
        const outcome = last && outcomes.get(last.sequence);
        if (!outcome || outcome.expired || isEqual(outcome, last.outcome)) {
            return { completed: [], lostCount: 0, isRequeued: false };
        }
        const changed = { ...last, outcome };
        this.history[this.history.length - 1] = changed;
        return { completed: [changed], lostCount: 0, isRequeued: true };
    }

    /** Continues at the number that the gateway expects; with a new client id if mutations were lost. */
    requeue(expected, newClientId) {
        const effect = { completed: [], lostCount: 0, isRequeued: false };
        if (expected <= this.nextSequence) {
            // The person has seen rejections: those mutations are not shown again while they wait.
            const lost = this.history.filter((item) => item.sequence >= expected)
                .map((item) => (item.outcome?.rejected ? item : { ...item, outcome: null }));
            this.history = this.history.filter((item) => item.sequence < expected);
            this.waiting = [...lost, ...this.waiting];
            effect.isRequeued = lost.length > 0;
            const first = this.waiting[0];
            if (!first || first.sequence <= expected) { return effect; }
            effect.lostCount = first.sequence - expected;
        }
        effect.isRequeued = true;
        effect.isRenumbered = true;
        this.clientId = newClientId;
        this.history = [];
        this.waiting = this.waiting.map((item, index) => ({ ...item, sequence: index + 1 }));
        this.nextSequence = this.waiting.length + 1;
        return effect;
    }
}

function requestText({ sequence, realm, operation, kind, id, fields, position, restore }) {
    return JSON.stringify({
        sequence, realm, op: operation, kind, id, fields: fields ?? undefined, position: position ?? undefined,
        restore: restore || undefined,
    });
}

/** Returns whether two JSON values are equal. */
export function isEqual(left, right) {
    if (left === right) { return true; }
    if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) { return false; }
    if (Array.isArray(left) !== Array.isArray(right)) { return false; }
    const keys = Object.keys(left);
    return keys.length === Object.keys(right).length
        && keys.every((key) => Object.hasOwn(right, key) && isEqual(left[key], right[key]));
}

/** Reads a response to `POST /v1/mutations`: outcomes by number, or a gap. `null` for any other status. */
export function readResponse(status, body) {
    if (status === 409) {
        if (!Number.isSafeInteger(body?.expectedSequence)) { throw new FieldpostError("malformed-response"); }
        return { outcomes: null, expectedSequence: body.expectedSequence };
    }
    if (status !== 200) { return null; }
    if (!Array.isArray(body?.results) || !Number.isSafeInteger(body.expectedSequence)) {
        throw new FieldpostError("malformed-response", "The response to the mutations has no results.");
    }
    const outcomes = new Map();
    for (const { sequence, accepted, rejected } of body.results) {
        if (accepted) {
            outcomes.set(sequence, { accepted: accepted.position });
        } else if (rejected) {
            const code = codeOf(rejected);
            const isExpired = code === "result-expired" || code === "answer-forgotten";
            outcomes.set(sequence, isExpired
                ? { expired: true }
                : { rejected: { code, detail: rejected.detail ?? "" } });
        }
    }
    return { outcomes, expectedSequence: body.expectedSequence };
}

/** Returns the last part of a problem's type. */
function codeOf(problem) { return String(problem?.type ?? "").split(/[/:#]/).filter(Boolean).at(-1) ?? ""; }

// MARK: Optimistic rules

const unreplacedFields = {
    TimeEntry: new Set(["status", "submitRequested", "backendId", "deleteRequested", "statusAt"]),
    Person: new Set(["role"]),
};

/** Returns the fields of an object after a mutation, as the server will probably store them; `null`: no object. */
export function fieldsAfter(mutation, fields) {
    const given = mutation.fields ?? null;
    if (mutation.operation === "patch") { return fields && { ...fields, ...given }; }
    if (mutation.operation === "put") {
        if (!given || !fields) { return given ?? fields; }
        const kept = unreplacedFields[mutation.kind];
        const result = { ...fields };
        for (const name of Object.keys(fields)) {
            if (!Object.hasOwn(given, name) && !kept?.has(name)) { result[name] = null; }
        }
        return { ...result, ...given };
    }
    // An entry that the back end may have is kept until the back end has deleted its record.
    if (!fields || mutation.kind !== "TimeEntry") { return null; }
    const isOwn = ["suggestion", "draft", "invalid"].includes(fields.status ?? "draft");
    return isOwn && (fields.backendId ?? null) === null ? null : { ...fields, deleteRequested: true };
}

// MARK: State

/**
 * The complete state of a device: its copy, its queue, and the objects to display.
 *
 * It has no clock and performs no input or output: its owner reads the stream, sends the requests and stores it. A
 * request is sent only after the state from which it was made was stored.
 */
export class DeviceState {
    /** Creates a new device with a random id that was never used before. */
    constructor(clientId, historyCountMin = 10_000) {
        this.copy = new DeviceCopy();
        this.queue = new DeviceQueue(clientId, historyCountMin);
        /** Address → mutations that the copy does not contain yet, in order. */
        this.pending = new Map();
    }

    /** Position of the last consistent checkpoint. */
    get position() { return this.copy.position; }

    /** Returns an object as displayed. */
    object(realm, kind, id) { return this.at(addressOf(realm, kind, id)); }

    /** Returns the object at an address as displayed. */
    at(address) {
        const held = this.copy.realms.get(address.slice(0, address.indexOf(" ")))?.content.get(address);
        const mutations = this.pending.get(address);
        if (!mutations) { return held; }
        const fields = mutations.reduce((before, item) => fieldsAfter(item, before), held?.fields ?? null);
        if (!fields) { return undefined; }
        const { realm, kind, id } = mutations[0];
        return Object.freeze({
            realm, kind, id, position: held?.position ?? 0, fields: Object.freeze(fields), isPending: true,
        });
    }

    /** Returns the objects as displayed, of one realm or of all. */
    contents(path = null) {
        const addresses = new Set();
        for (const [name, realm] of this.copy.realms) {
            if (path !== null && name !== path) { continue; }
            for (const address of realm.content.keys()) { addresses.add(address); }
        }
        for (const [address, [{ realm }]] of this.pending) {
            if (path === null || realm === path) { addresses.add(address); }
        }
        return [...addresses].map((address) => this.at(address)).filter(Boolean);
    }

    /** Whether an object may still change without another person's action. */
    hasUnconfirmedChanges(realm, kind, id) {
        const address = addressOf(realm, kind, id);
        return this.queue.isInDoubt || this.pending.has(address)
            || this.queue.waiting.some((item) => addressOf(item.realm, item.kind, item.id) === address);
    }

    /** Returns the body of `POST /v1/sync`; the following lines belong to it. */
    syncRequest({ live = true, only = null, realmCountMax = namedCountMax, further = [] } = {}) {
        const realms = this.copy.beginStream(only, realmCountMax);
        for (const path of further) {
            if (!this.copy.realms.has(path) && Object.keys(realms).length < realmCountMax) { realms[path] = null; }
        }
        const body = { live };
        if (only) { body.only = [...only].sort(); }
        if (Object.keys(realms).length > 0) { body.realms = realms; }
        return body;
    }

    /** Processes one line of the stream; `text` is stored. */
    takeLine(line, text) {
        if (line.open?.reset === true) { this.queue.resetCount += 1; }
        const before = this.copy.position;
        const changed = this.copy.apply(line, text);
        if (this.copy.position < before) {
            // The database was restored from a backup: mutations that it lacks are shown on top again.
            for (const address of this.rebuild()) { changed.add(address); }
        } else if (this.copy.position > before) {
            for (const address of this.dropConfirmed()) { changed.add(address); }
        }
        return { changed, answers: [], lostCount: 0, madeProgress: true };
    }

    /** Queues a mutation `{realm, operation, kind, id, fields?, position?, restore?}`, displayed immediately. */
    enqueue(mutation) {
        checkMutation(mutation);
        return this.addQueued({ ...mutation, sequence: this.queue.nextSequence, outcome: null });
    }

    /** Adds a mutation that was numbered in the store. */
    addQueued(item) {
        this.queue.waiting.push(item);
        this.queue.nextSequence = item.sequence + 1;
        const address = addressOf(item.realm, item.kind, item.id);
        this.pending.set(address, [...(this.pending.get(address) ?? []), item]);
        return { changed: new Set([address]), answers: [], lostCount: 0, madeProgress: true, item };
    }

    /** Returns the next request to `POST /v1/mutations`; `null` if there is none. */
    nextRequest(countMax = batchCountMax) { return this.queue.nextRequest(countMax); }

    /** Processes the response to a request. `newClientId` is used if the server has lost mutations for good. */
    takeResponse(response, request, newClientId) {
        const update = { changed: new Set(), answers: [], lostCount: 0, madeProgress: false };
        const effect = this.queue.apply(response, request, newClientId);
        if (!effect) { return update; }
        Object.assign(update, { answers: effect.completed, lostCount: effect.lostCount, madeProgress: true });
        update.isRequeued = effect.isRequeued;
        update.isRenumbered = effect.isRenumbered === true;
        if (effect.isRequeued) { return { ...update, changed: this.rebuild() }; }
        for (const item of effect.completed) {
            const address = addressOf(item.realm, item.kind, item.id);
            const before = this.pending.get(address) ?? [];
            // A mutation that was rejected before a restore was not pending.
            const after = before.filter(({ sequence }) => sequence !== item.sequence);
            if (this.isPending(item)) {
                after.push(item);
                after.sort((left, right) => left.sequence - right.sequence);
            }
            if (after.length > 0) { this.pending.set(address, after); } else { this.pending.delete(address); }
            if (after.length !== before.length) { update.changed.add(address); }
        }
        update.madeProgress = effect.completed.length > 0 || (request.isQuery && response.outcomes !== null);
        return update;
    }

    /** Whether a mutation is displayed on top of the copy: every checkpoint at its position contains it. */
    isPending({ outcome }) {
        if (!outcome) { return true; }
        return outcome.accepted !== undefined && outcome.accepted > this.copy.position;
    }

    dropConfirmed() {
        const dropped = new Set();
        for (const [address, mutations] of [...this.pending]) {
            const left = mutations.filter((item) => this.isPending(item));
            if (left.length === mutations.length) { continue; }
            if (left.length > 0) { this.pending.set(address, left); } else { this.pending.delete(address); }
            dropped.add(address);
        }
        return dropped;
    }

    /** Recomputes the pending mutations and returns the objects that may have changed. */
    rebuild() {
        const changed = new Set(this.pending.keys());
        this.pending = new Map();
        for (const item of [...this.queue.history, ...this.queue.waiting]) {
            if (!this.isPending(item)) { continue; }
            const address = addressOf(item.realm, item.kind, item.id);
            const list = this.pending.get(address);
            if (list) { list.push(item); } else { this.pending.set(address, [item]); }
            changed.add(address);
        }
        return changed;
    }

    /** Returns what the store keeps in `meta`. */
    get counts() {
        const { position, nextPage, appended } = this.copy;
        const { clientId, nextSequence, resetCount, queriedResetCount } = this.queue;
        return { position, nextPage, appended, clientId, nextSequence, resetCount, queriedResetCount };
    }

    /** Writes the changes of the copy that the store lacks. */
    writeCopy(tx) {
        const { dirty, realms } = this.copy;
        for (const path of dirty.realms) {
            if (!realms.has(path)) { tx.remove("realms", path); continue; }
            const { isReset, cursor, isOpen, isUnnamed, settled } = realms.get(path);
            tx.put("realms", { path, state: { isReset, cursor, isOpen, isUnnamed, settled } }, path);
        }
        for (const number of dirty.removed) { tx.remove("pages", number); }
        for (const [number, text] of dirty.pages) { tx.put("pages", { number, text }, number); }
    }

    /** Reads a state from the store. */
    static async read(tx, meta, historyCountMin = 10_000) {
        const state = new DeviceState(meta.clientId, historyCountMin);
        const { position, nextPage = 1, appended = 0, clientId, nextSequence, resetCount, queriedResetCount } = meta;
        Object.assign(state.copy, { position, nextPage, appended });
        Object.assign(state.queue, { clientId, nextSequence, resetCount, queriedResetCount });
        const [realms, items] = await Promise.all([tx.getAll("realms"), tx.getAll("queue")]);
        for (const { path, state: stored } of realms) { Object.assign(state.copy.realm(path), stored); }
        for (const item of items) { (item.isWaiting ? state.queue.waiting : state.queue.history).push(item); }
        // The store reads the next pages while these are parsed.
        let [count, next] = [8, tx.getAll("pages", 0, 8)];
        for (;;) {
            const pages = await next;
            if (pages.length === 0) { break; }
            const length = pages.reduce((sum, { text }) => sum + text.length, 0);
            count = Math.min(Math.ceil(count * mergedLengthMax / length), 2 * count, 1_000);
            next = tx.getAll("pages", pages.at(-1).number + 1, count);
            for (const page of pages) { state.copy.load(page); }
        }
        state.rebuild();
        state.copy.clean();
        return state;
    }
}

/** Rejects mutations that the server could not read, which would block the queue. */
function checkMutation({ realm, operation, kind, id, fields, position }) {
    const fail = (detail) => { throw new FieldpostError("malformed-mutation", detail); };
    if (!["put", "patch", "delete"].includes(operation)) { fail(`The operation '${operation}' does not exist.`); }
    if (typeof realm !== "string" || !realm.startsWith("/")) { fail(`'${realm}' is no realm.`); }
    if (typeof kind !== "string" || !/^[A-Za-z]+$/.test(kind)) { fail(`'${kind}' is no kind.`); }
    if (!uuidPattern.test(id)) { fail(`'${id}' is no id: a UUID is expected.`); }
    if (position !== undefined && !(Number.isSafeInteger(position) && position >= 0)) {
        fail("The position is no whole number.");
    }
    if (operation === "delete") { return; }
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) { fail("The fields are no object."); }
    const text = JSON.stringify(fields);
    if (/(^|[^\\])(\\\\)*\\u0000/.test(text)) { fail("The fields contain a null character."); }
    const bytes = bytesOf(text);
    if (bytes > fieldsBytesMax) {
        throw new FieldpostError("fields-too-large", `The fields have ${bytes} bytes; at most ${fieldsBytesMax}.`);
    }
}

// MARK: Store

const storeNames = ["meta", "realms", "pages", "queue", "rejections", "uploads", "images"];

function result(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

/** Returns the error of a failed transaction as the app sees it. */
function failureOf(error) {
    return error.name === "QuotaExceededError"
        ? new FieldpostError("storage-full", "The device's storage is full.") : error;
}

/** The store in IndexedDB: the truth that all tabs share. */
class DatabaseStore {
    kind = "indexed-db";

    /** `onevicted` is called when the browser has closed the database, which it does before it deletes it. */
    constructor(name, onevicted) {
        this.name = name;
        this.onevicted = onevicted;
        this.database = null;
        this.opening = null;
        this.isClosed = false;
    }

    /** Opens the database, once for all callers. */
    open() {
        this.opening ??= this.#openNow().finally(() => { this.opening = null; });
        return this.opening;
    }

    async #openNow(attempt = 1) {
        if (this.isClosed) { throw new FieldpostError("closed", "The client was closed."); }
        const request = indexedDB.open(this.name, 2);
        request.onupgradeneeded = () => {
            const created = request.result;
            // Version 1 stored the copy by object; it is downloaded again.
            for (const name of ["realms", "objects", "pages"]) {
                if (created.objectStoreNames.contains(name)) { created.deleteObjectStore(name); }
            }
            for (const name of storeNames) {
                if (!created.objectStoreNames.contains(name)) { created.createObjectStore(name); }
            }
        };
        let database;
        try {
            database = await result(request);
        } catch (error) {
            // An eviction aborts requests in flight, also repeatedly.
            if (error.name !== "AbortError" || attempt >= openCountMax) { throw failureOf(error); }
            await delay(Math.min(10 * 2 ** attempt, 1_000));
            return this.#openNow(attempt + 1);
        }
        database.onversionchange = () => database.close();
        database.onclose = () => {
            if (this.database !== database) { return; }
            this.database = null;
            this.onevicted();
        };
        this.database = database;
        return undefined;
    }

    /** Runs `body` in one transaction. It must await requests of the transaction only. */
    async transact(names, mode, body) {
        if (!this.database) { await this.open(); }
        let transaction;
        try {
            transaction = this.database.transaction(names, mode);
        } catch (error) {
            if (error.name !== "InvalidStateError") { throw error; }
            await this.open();
            transaction = this.database.transaction(names, mode);
        }
        const { db } = transaction;
        let fail;
        const done = new Promise((resolve, reject) => {
            fail = () => reject(transaction.error ?? new DOMException("aborted", "AbortError"));
            transaction.oncomplete = resolve;
            transaction.onabort = fail;
            db.addEventListener("close", fail);
        });
        done.catch(() => {}).finally(() => db.removeEventListener("close", fail));
        const store = (name) => transaction.objectStore(name);
        const from = (lower) => (lower === undefined ? undefined : IDBKeyRange.lowerBound(lower));
        let value;
        try {
            const running = body({
                get: (name, key) => result(store(name).get(key)),
                getAll: (name, lower, countMax) => result(store(name).getAll(from(lower), countMax)),
                put: (name, object, key) => { store(name).put(object, key); },
                remove: (name, key) => { store(name).delete(key); },
                removeBelow: (name, key) => { store(name).delete(IDBKeyRange.upperBound(key, true)); },
                clear: (name) => { store(name).clear(); },
            });
            // Requests of an evicted database may end without an event.
            value = await Promise.race([running, done.then(() => running)]);
        } catch (error) {
            try { transaction.abort(); } catch { /* It has ended already. */ }
            await done.catch(() => {});
            throw failureOf(transaction.error ?? error);
        }
        await done.catch((error) => { throw failureOf(error); });
        return value;
    }

    close() { this.isClosed = true; this.database?.close(); this.database = null; }
}

/** A store that lives as long as the tab, if IndexedDB is unavailable. */
class MemoryStore {
    kind = "memory";
    stores = Object.fromEntries(storeNames.map((name) => [name, new Map()]));
    turn = Promise.resolve();

    async open() {}

    transact(names, mode, body) {
        const sorted = (name) => [...this.stores[name]].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
        const run = async () => {
            const ended = [];
            const value = await body({
                get: async (name, key) => structuredClone(this.stores[name].get(key)),
                getAll: async (name, lower, countMax) => sorted(name)
                    .filter(([key]) => lower === undefined || key >= lower).slice(0, countMax)
                    .map(([, object]) => object),
                put: (name, object, key) => ended.push(() => this.stores[name].set(key, object)),
                remove: (name, key) => ended.push(() => this.stores[name].delete(key)),
                removeBelow: (name, bound) => ended.push(() => {
                    for (const key of this.stores[name].keys()) { if (key < bound) { this.stores[name].delete(key); } }
                }),
                clear: (name) => ended.push(() => this.stores[name].clear()),
            });
            for (const change of ended) { change(); }
            return value;
        };
        const turn = this.turn.then(run);
        this.turn = turn.catch(() => {});
        return turn;
    }

    close() {}
}

/** Returns the content of an empty store. */
function emptyMeta() {
    return {
        storeId: newID(), revision: 0, clientId: newID(), nextSequence: 1, position: 0, nextPage: 1, appended: 0,
        resetCount: 0, queriedResetCount: 0, login: null, owner: null, isPaused: false, realms: [], baseURL: null,
        leader: null, isSignedOut: false,
    };
}

// MARK: HTTP

const delay = (milliseconds, signal) => new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
});

/** Returns the error of a response that is not a success. */
async function errorOf(response) {
    let body = {};
    try { body = await response.json(); } catch { /* Not every proxy sends a problem. */ }
    const error = new FieldpostError(
        codeOf(body) || `http-${response.status}`, body.detail || body.title || `Status ${response.status}.`,
        response.status);
    error.body = body;
    const retryAfter = Number(response.headers.get("Retry-After"));
    if (retryAfter > 0) { error.retryAfter = retryAfter * 1_000; }
    return error;
}

const isTransient = (status) => status === 0 || status === 408 || status === 429 || status >= 500;
const problemOf = (error) => ({ code: error.code ?? "failed", detail: error.message ?? String(error) });

/** A signal that loops wait for. */
class Signal {
    constructor() { this.isSet = false; this.wake = null; }
    set() { this.isSet = true; this.wake?.(); }
    async wait(milliseconds = 2_147_483_647) {
        if (!this.isSet) {
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, milliseconds);
                this.wake = () => { clearTimeout(timer); resolve(); };
            });
        }
        this.wake = null;
        this.isSet = false;
    }
}

// MARK: Client

/** The client of one tab. See `fieldpost.d.ts` for its interface. */
export class Fieldpost extends EventTarget {
    #gateway; #onboarding; #name; #tab = newID();
    #store; #channel = null; #meta = emptyMeta(); #state = new DeviceState(this.#meta.clientId);
    #rejections = new Map(); #uploads = new Map();
    /** Kind → address → displayed object. */
    #view = new Map();
    #watches = new Set(); #changedKinds = new Set(); #isNotifying = false;
    /** Settled-promises by mutation key. */
    #waiters = new Map();
    /** The revision of the last reading of the whole store, until this tab has claimed the lead. */
    #rereadRevision = NaN;
    /** Messages of other tabs that arrived before an earlier one, by revision. */
    #early = new Map(); #gapTimer = null; #reloadCount = 0; #reloading = null;
    #connection = "signed-out"; #problem = null; #receivedAt; #offset = 0;
    #isFull = false; #isPersistent = false; #usage = {};
    #isLeader = false; #isClosed = false; #isSigningIn = false; #leading = null; #releaseLock = null;
    #mutationList = null;
    #streamSignal = new Signal(); #sendSignal = new Signal(); #streamAbort = null; #renewal = null; #backoff = 0;
    #leaderSeenAt = 0; #wakeListener = null; #work = Promise.resolve();

    constructor(options) {
        super();
        this.#onboarding = (options.onboarding ?? location.origin).replace(/\/$/, "");
        this.#gateway = options.gateway.replace(/\/$/, "");
        this.#name = options.name ?? "fieldpost";
    }

    /** Opens the store, loads the copy and, if a person is signed in, connects. */
    static async open(options) {
        const client = new Fieldpost(options);
        await client.#open();
        return client;
    }

    async #open() {
        try {
            this.#store = new DatabaseStore(this.#name, () => this.#restoreSoon());
            await this.#store.open();
        } catch {
            this.#store = new MemoryStore();
        }
        await this.#reload().catch((error) => {
            // A store that was evicted cannot be created again while the storage is full.
            if (error.code !== "storage-full") { throw error; }
            this.#store.close();
            this.#store = new MemoryStore();
            return this.#reload();
        });
        if (this.#store.kind === "indexed-db" && "BroadcastChannel" in globalThis) {
            this.#channel = new BroadcastChannel(`fieldpost ${this.#name}`);
            this.#channel.onmessage = ({ data }) => this.#receiveMessage(data);
            this.#share({ hello: true });
        }
        this.#wakeListener = () => this.#wake();
        globalThis.addEventListener?.("online", this.#wakeListener);
        globalThis.addEventListener?.("offline", this.#wakeListener);
        globalThis.document?.addEventListener("visibilitychange", this.#wakeListener);
        this.#isPersistent = await navigator.storage?.persisted?.().catch(() => false) ?? false;
        this.#setConnection(this.#restingConnection());
        this.#competeForLead();
        this.#measureStorage();
    }

    // MARK: Status

    /** The state of the connection, the store and the queue. */
    get status() {
        const realms = [...this.#state.copy.realms].map(([path, realm]) => ({
            path, count: realm.content.size, isOpen: realm.isOpen,
        }));
        const { login } = this.#meta;
        const uploads = [...this.#uploads.values()];
        const isRejected = ({ state }) => state === "rejected";
        return Object.freeze({
            connection: this.#connection, problem: this.#problem ?? undefined,
            email: login?.email ?? undefined, person: login?.person ?? undefined,
            position: this.#state.position, receivedAt: this.#receivedAt,
            queued: this.#state.queue.waiting.length + uploads.filter((upload) => !isRejected(upload)).length,
            rejected: this.#rejections.size + uploads.filter(isRejected).length,
            realms, isLeader: this.#isLeader,
            clockOffset: Math.abs(this.#offset) > 60_000 ? this.#offset : undefined,
            storage: {
                kind: this.#store.kind, isFull: this.#isFull, isPersistent: this.#isPersistent, ...this.#usage,
            },
        });
    }

    #restingConnection() {
        if (!this.#meta.login) { return "signed-out"; }
        if (this.#meta.isPaused) { return "paused"; }
        return this.#connection === "signed-out" || this.#connection === "paused" ? "connecting" : this.#connection;
    }

    #setConnection(connection, error = null) {
        const problem = error && problemOf(error);
        if (this.#connection === connection && isEqual(problem, this.#problem)) { return; }
        this.#connection = connection;
        this.#problem = problem;
        if (this.#isLeader) { this.#shareStatus(); }
        this.#notify();
    }

    #shareStatus() {
        this.#share({
            status: {
                connection: this.#connection, problem: this.#problem, receivedAt: this.#receivedAt,
                offset: this.#offset, isFull: this.#isFull,
            },
        });
    }

    async #measureStorage() {
        try {
            const { usage, quota } = await navigator.storage.estimate();
            this.#usage = { usedBytes: usage, quotaBytes: quota };
            this.#isPersistent = await navigator.storage.persisted();
            this.#notify();
        } catch { /* Not every browser reports it. */ }
    }

    #setFull(isFull) {
        if (this.#isFull === isFull) { return; }
        this.#isFull = isFull;
        if (this.#isLeader) { this.#shareStatus(); }
        this.#notify();
        if (isFull) { this.#measureStorage(); }
    }

    // MARK: Displayed objects

    /** Returns the displayed objects of a kind. */
    objects(kind, filter = null) {
        const all = this.#view.get(kind);
        if (!all) { return []; }
        if (!filter) { return [...all.values()]; }
        if (filter.realm && filter.id) {
            const object = all.get(addressOf(filter.realm, kind, filter.id));
            return object && isIncluded(object, filter) ? [object] : [];
        }
        const list = [];
        for (const object of all.values()) { if (isIncluded(object, filter)) { list.push(object); } }
        return list;
    }

    /** Returns an object. Pass the kind if several kinds share an id, such as `Person` and `PersonLookup`. */
    object(realm, id, kind = null) {
        for (const [name, all] of kind ? [[kind, this.#view.get(kind)]] : this.#view) {
            const object = all?.get(addressOf(realm, name, id));
            if (object) { return object; }
        }
        return undefined;
    }

    /** Calls `callback` at once and after each change of the result; returns the function that ends the watch. */
    watch(kind, filter, callback) {
        const watch = { kind, filter, callback, last: null };
        this.#watches.add(watch);
        this.#runWatch(watch);
        return () => { this.#watches.delete(watch); };
    }

    #runWatch(watch) {
        const objects = this.objects(watch.kind, watch.filter);
        const { last } = watch;
        if (last && last.length === objects.length && last.every((object, index) => object === objects[index])) {
            return;
        }
        watch.last = objects;
        try { watch.callback([...objects]); } catch (error) { console.error(error); }
    }

    /** Updates the displayed objects at changed addresses. */
    #show(changed) {
        if (changed.size > changedCountMax) { this.#showAll(); return; }
        for (const address of changed) { this.#showAt(address); }
        this.#notify();
    }

    #showAt(address) {
        const object = this.#state.at(address);
        const kind = object?.kind ?? address.split(" ", 2)[1];
        if (object) { this.#shown(kind).set(address, object); } else { this.#shown(kind).delete(address); }
        this.#changedKinds.add(kind);
    }

    /** Displays the objects of the whole state, which takes less time than many single changes. */
    #showAll() {
        for (const kind of this.#view.keys()) { this.#changedKinds.add(kind); }
        this.#view = new Map();
        for (const { content } of this.#state.copy.realms.values()) {
            for (const [address, object] of content) { this.#shown(object.kind).set(address, object); }
        }
        for (const kind of this.#view.keys()) { this.#changedKinds.add(kind); }
        for (const address of this.#state.pending.keys()) { this.#showAt(address); }
        this.#notify();
    }

    /** Returns the displayed objects of a kind by address. */
    #shown(kind) {
        let all = this.#view.get(kind);
        if (!all) { this.#view.set(kind, all = new Map()); }
        return all;
    }

    /** Calls watches and listeners once per task. */
    #notify() {
        this.#mutationList = null;
        if (this.#isNotifying) { return; }
        this.#isNotifying = true;
        queueMicrotask(() => {
            this.#isNotifying = false;
            const kinds = this.#changedKinds;
            this.#changedKinds = new Set();
            for (const watch of [...this.#watches]) {
                if (kinds.has(watch.kind) && this.#watches.has(watch)) { this.#runWatch(watch); }
            }
            this.#settle();
            this.dispatchEvent(new Event("status"));
        });
    }

    // MARK: Messages between tabs

    /** Sends a message, with the id of the store that it belongs to, to the other tabs. */
    #share(message) { this.#channel?.postMessage({ storeId: this.#meta.storeId, ...message }); }

    /** Rereads the whole store, and retries at once unless `isFailure`. */
    async #reload({ isFailure = false } = {}) {
        const { storeId } = this.#meta;
        this.#reloadCount += 1;
        this.#reloading = this.#reread().finally(() => { this.#reloadCount -= 1; });
        await this.#reloading;
        this.#drain();
        if (isFailure && storeId === this.#meta.storeId) { return; }
        this.#streamSignal.set();
        this.#sendSignal.set();
    }

    async #reread() {
        const storeId = await this.#restore();
        const names = storeNames.filter((name) => name !== "images");
        const content = await this.#store.transact(names, "readonly", async (tx) => {
            const meta = await tx.get("meta", "meta");
            // The browser deleted the store meanwhile.
            if (meta?.storeId !== storeId) { return null; }
            const [rejections, uploads] = await Promise.all([tx.getAll("rejections"), tx.getAll("uploads")]);
            return { meta, rejections, uploads, state: await DeviceState.read(tx, meta) };
        });
        if (!content) { await this.#reread(); return; }
        if (storeId !== this.#meta.storeId) {
            // The lines and messages of the previous store do not belong to this one.
            this.#streamAbort?.abort();
            this.#early.clear();
        }
        this.#state = content.state;
        this.#rereadRevision = content.meta.revision;
        this.#adoptMeta(content.meta);
        this.#dropEarly(content.meta.revision);
        this.#rejections = new Map(content.rejections.map((item) => [item.key, item]));
        this.#uploads = new Map(content.uploads.map((upload) => [upload.id, upload]));
        this.#showAll();
    }

    /**
     * Adds the login and the queue of this tab to a store that replaces an evicted one; returns the store's id.
     *
     * One transaction decides which tab creates the store. Only the leader sends, so its client id and its numbers
     * replace those of other tabs, and the server recognises repeats. Another tab adds the mutations that are missing.
     */
    async #restore() {
        const { meta, isChanged } = await this.#store.transact(
            ["meta", "queue", "rejections", "uploads"], "readwrite", async (tx) => {
                const stored = await tx.get("meta", "meta");
                const { storeId, login, owner, isPaused, realms, baseURL, leader } = this.#meta;
                if (stored?.storeId === storeId) { return { meta: stored, isChanged: false }; }
                const isOtherLogin = stored?.owner ? stored.owner !== owner : stored?.isSignedOut;
                if (stored && (!owner || isOtherLogin)) { return { meta: stored, isChanged: false }; }
                const { queue } = this.#state;
                const own = [...queue.history.map((item) => ({ ...item, isWaiting: false })),
                    ...queue.waiting.map((item) => ({ ...item, isWaiting: true }))];
                // Mutations that wait for an earlier message were not sent yet.
                const early = [...this.#early.values()].flatMap(({ events }) => events)
                    .flatMap(({ enqueue }) => enqueue ?? []).sort((left, right) => left.sequence - right.sequence);
                const others = await tx.getAll("queue");
                const created = stored?.owner ? stored
                    : { ...emptyMeta(), ...stored, login, owner, isPaused, realms, baseURL };
                const isNumbering = !stored?.owner || !stored.leader || stored.leader === this.#tab;
                if (isNumbering) {
                    const { clientId, nextSequence, resetCount, queriedResetCount } = queue;
                    created.leader ??= leader;
                    Object.assign(created, { clientId, nextSequence, resetCount, queriedResetCount });
                    for (const item of this.#rejections.values()) { tx.put("rejections", item, item.key); }
                    for (const upload of this.#uploads.values()) { tx.put("uploads", upload, upload.id); }
                }
                const [numbered, added] = isNumbering ? [own, [...early, ...others]] : [others, [...own, ...early]];
                const keys = new Set(numbered.map(({ key }) => key));
                tx.clear("queue");
                for (const item of numbered) { tx.put("queue", item, item.sequence); }
                for (const item of added) {
                    if (!item.isWaiting || keys.has(item.key)) { continue; }
                    keys.add(item.key);
                    tx.put("queue", { ...item, sequence: created.nextSequence }, created.nextSequence);
                    created.nextSequence += 1;
                }
                if (login?.token.expiresAt > created.login?.token.expiresAt) { created.login = login; }
                created.revision += 1;
                tx.put("meta", created, "meta");
                return { meta: created, isChanged: true };
            }).catch((error) => this.#rethrow(error));
        const { storeId, revision } = meta;
        if (isChanged) { this.#share({ storeId, revision, meta, events: [{ reload: true }] }); }
        return storeId;
    }

    /** Returns whether this tab has loaded the current store and its client id; otherwise, rereads the store. */
    async #verify() {
        const meta = await this.#store.transact(["meta"], "readonly", (tx) => tx.get("meta", "meta"));
        const isCurrent = this.#isLoaded(meta) && meta.clientId === this.#state.queue.clientId;
        if (!isCurrent) { await this.#reload(); }
        return isCurrent;
    }

    #rethrow(error) {
        if (error.code === "storage-full") { this.#setFull(true); }
        throw error;
    }

    /** Restores an evicted store at once: an idle tab may be closed before it uses the store again. */
    #restoreSoon() {
        if (this.#isClosed) { return; }
        this.#serially(() => this.#verify()).catch((error) => this.#setConnection("failed", error));
    }

    #isLoaded(meta) { return meta !== undefined && meta.storeId === this.#meta.storeId; }

    #adoptMeta(meta) {
        const keys = ["login", "isPaused", "realms", "baseURL"];
        const isChanged = keys.some((key) => !isEqual(this.#meta[key], meta[key]));
        this.#meta = meta;
        if (!isChanged) { return; }
        const resting = this.#restingConnection();
        if (!this.#isLeader || resting !== this.#connection) { this.#setConnection(resting); }
        this.#streamAbort?.abort();
        this.#backoff = 0;
        this.#streamSignal.set();
        this.#sendSignal.set();
    }

    #receiveMessage(message) {
        if (this.#isClosed) { return; }
        if (message.storeId !== this.#meta.storeId) {
            // Another tab has recreated the store, or has not reread it yet.
            this.#serially(async () => {
                await this.#verify();
                if (message.storeId === this.#meta.storeId) { this.#receiveMessage(message); }
            }).catch((error) => this.#setConnection("failed", error));
        } else if (message.hello) {
            if (this.#isLeader) { this.#shareStatus(); }
        } else if (message.status) {
            this.#leaderSeenAt = Date.now();
            if (this.#isLeader) { return; }
            this.#receivedAt = message.status.receivedAt;
            this.#offset = message.status.offset;
            this.#isFull = message.status.isFull;
            this.#connection = message.status.connection;
            this.#problem = message.status.problem;
            this.#notify();
        } else if (message.revision) {
            this.#receive(message);
        }
    }

    /** Applies changes in the order of their revisions. */
    #receive(message) {
        if (message.revision <= this.#meta.revision) { return; }
        this.#early.set(message.revision, message);
        this.#drain();
    }

    #drain() {
        while (this.#reloadCount === 0) {
            const next = this.#early.get(this.#meta.revision + 1);
            if (!next) { break; }
            this.#early.delete(next.revision);
            this.#applyMessage(next);
        }
        clearTimeout(this.#gapTimer);
        if (this.#early.size > 0) { this.#gapTimer = setTimeout(() => this.#reloadSafely(), messageGapMax); }
    }

    #dropEarly(upTo) {
        for (const revision of [...this.#early.keys()]) { if (revision <= upTo) { this.#early.delete(revision); } }
    }

    #reloadSafely() {
        return this.#serially(() => this.#reload()).catch((error) => this.#setConnection("failed", error));
    }

    #applyMessage({ meta, events }) {
        if (events.some(({ reload }) => reload)) {
            // The previous revision remains, so that the leader reads the queue before it writes.
            this.#adoptMeta({ ...meta, revision: this.#meta.revision });
            this.#reloadSafely();
            return;
        }
        this.#adoptMeta(meta);
        const changed = new Set();
        const add = (update) => { for (const address of update.changed) { changed.add(address); } };
        for (const event of events) {
            if (event.enqueue) { this.#addQueued(event.enqueue, changed); }
            if (event.begin) { this.#state.copy.beginStream(); }
            for (const text of event.lines ?? []) { add(this.#state.takeLine(JSON.parse(text), text)); }
            if (event.response) {
                const { response, request, newClientId } = event.response;
                this.#state.queue.requestInFlight = request.number;
                add(this.#state.takeResponse(response, request, newClientId));
            }
            for (const item of event.rejections ?? []) { this.#rejections.set(item.key, item); }
            for (const key of event.dismissed ?? []) { this.#rejections.delete(key); }
            for (const upload of event.uploads ?? []) { this.#uploads.set(upload.id, upload); }
            for (const id of event.uploaded ?? []) { this.#uploads.delete(id); }
        }
        this.#state.copy.clean();
        this.#show(changed);
        this.#sendSignal.set();
    }

    #addQueued(item, changed) {
        if (item.sequence < this.#state.queue.nextSequence) { return; }
        for (const address of this.#state.addQueued(item).changed) { changed.add(address); }
    }

    /**
     * Changes the store in one transaction with the next revision, and shares the change.
     *
     * `body(tx, meta)` may change `meta` and returns the events for the tabs. With `isOwn`, this tab has applied the
     * events itself: only the leader does so, after it has read what other tabs queued.
     */
    async #change(names, body, { isOwn = false } = {}) {
        let message;
        let isAhead = false;
        const { storeId } = this.#meta;
        const all = [...new Set(["meta", "queue", "rejections", "uploads", ...names])];
        try {
            message = await this.#store.transact(all, "readwrite", async (tx) => {
                const meta = await tx.get("meta", "meta");
                if (!this.#isLoaded(meta) || (isOwn && meta.clientId !== this.#state.queue.clientId)) {
                    throw new FieldpostError("store-replaced", "The browser deleted the store.");
                }
                if (isOwn && meta.leader !== this.#tab) { throw new FieldpostError("not-leader"); }
                isAhead = isOwn;
                const pulled = isOwn && meta.revision !== this.#meta.revision ? await this.#pull(tx, meta) : null;
                const events = await body(tx, meta);
                meta.revision += 1;
                tx.put("meta", meta, "meta");
                return { storeId: meta.storeId, revision: meta.revision, meta, events, pulled };
            });
        } catch (error) {
            const isReplaced = error.code === "store-replaced" || error.name === "AbortError";
            // The state of this tab has changes that are not stored.
            if (isAhead) { await this.#reload({ isFailure: true }); }
            if (error.code === "storage-full") { this.#rethrow(error); }
            // The browser may evict the store in the middle of the transaction, too.
            if (isReplaced && !isAhead) {
                await this.#verify();
                if (!isOwn && this.#meta.storeId !== storeId) { return this.#change(names, body); }
            }
            throw error;
        }
        this.#setFull(false);
        const { pulled, ...shared } = message;
        this.#share(shared);
        if (isOwn) {
            this.#dropEarly(shared.revision);
            this.#adoptMeta(shared.meta);
            if (pulled) { this.#show(pulled); }
        } else {
            this.#receiveMessage(shared);
            // A change that was made while this tab rereads the store is applied afterwards.
            while (this.#reloadCount > 0 && this.#early.has(shared.revision)) { await this.#reloading.catch(() => {}); }
        }
        return shared;
    }

    /** Reads what other tabs have changed and returns the changed addresses. */
    async #pull(tx, meta) {
        const changed = new Set();
        const [items, rejections, uploads] = await Promise.all([
            tx.getAll("queue", this.#state.queue.nextSequence), tx.getAll("rejections"), tx.getAll("uploads"),
        ]);
        for (const item of items) { this.#addQueued(item, changed); }
        this.#rejections = new Map(rejections.map((item) => [item.key, item]));
        this.#uploads = new Map(uploads.map((upload) => [upload.id, upload]));
        this.#state.queue.nextSequence = meta.nextSequence;
        return changed;
    }

    // MARK: Mutations

    /** Creates or replaces an object. Resolves when the mutation is stored on the device. */
    put(realm, kind, id, fields, options = {}) { return this.#enqueue("put", realm, kind, id, fields, options); }

    /** Replaces the named fields of an object. */
    patch(realm, kind, id, fields, options = {}) { return this.#enqueue("patch", realm, kind, id, fields, options); }

    /** Deletes an object. */
    delete(realm, kind, id, options = {}) { return this.#enqueue("delete", realm, kind, id, undefined, options); }

    async #enqueue(operation, realm, kind, id, fields, { position, restore }) {
        const mutation = {
            key: newID(), realm, operation, kind, id: String(id).toLowerCase(), position, restore,
            fields: operation === "delete" ? undefined : structuredClone(fields), queuedAt: Date.now(), outcome: null,
            isWaiting: true,
        };
        checkMutation(mutation);
        if (!this.#meta.login) { throw new FieldpostError("signed-out", "No person is signed in."); }
        let item;
        await this.#change([], async (tx, meta) => {
            item = { ...mutation, sequence: meta.nextSequence };
            meta.nextSequence += 1;
            tx.put("queue", item, item.sequence);
            return [{ enqueue: item }];
        });
        return this.#mutation(item);
    }

    /** Returns a queued item as the app sees it. */
    #mutation(item) {
        const { key, sequence, realm, operation, kind, id, fields, queuedAt, outcome } = item;
        let state = "queued";
        if (outcome?.rejected) { state = "rejected"; }
        if (outcome?.expired) { state = "applied"; }
        if (outcome?.accepted !== undefined) { state = this.#state.isPending(item) ? "accepted" : "applied"; }
        return Object.freeze({
            key, sequence, realm, operation, kind, id, fields, queuedAt, state, problem: outcome?.rejected ?? undefined,
        });
    }

    /** Mutations without `applied`, and rejected ones that were not dismissed, in order. */
    get mutations() {
        if (!this.#mutationList) {
            const items = new Map([...this.#rejections.values()].map((item) => [item.key, item]));
            for (const list of this.#state.pending.values()) { for (const item of list) { items.set(item.key, item); } }
            const ordered = [...items.values()].sort((a, b) => a.queuedAt - b.queuedAt || a.sequence - b.sequence);
            this.#mutationList = Object.freeze(ordered.map((item) => this.#mutation(item)));
        }
        return this.#mutationList;
    }

    /** Images that wait for their upload, or were rejected. */
    get uploads() {
        return [...this.#uploads.values()].map(({ id, bytes, state, problem }) => (
            Object.freeze({ id, bytes, state, problem })));
    }

    /** Resolves with the mutation once it is `applied` or `rejected`. */
    settled(mutation) {
        return new Promise((resolve) => {
            const waiting = this.#waiters.get(mutation.key) ?? { mutation, resolves: [] };
            waiting.resolves.push(resolve);
            this.#waiters.set(mutation.key, waiting);
            this.#notify();
        });
    }

    #settle() {
        if (this.#waiters.size === 0) { return; }
        const open = new Map(this.mutations.map((mutation) => [mutation.key, mutation]));
        for (const [key, { mutation, resolves }] of this.#waiters) {
            const current = open.get(key) ?? this.#completed(mutation);
            if (current.state === "queued" || current.state === "accepted") { continue; }
            this.#waiters.delete(key);
            for (const resolve of resolves) { resolve(current); }
        }
    }

    /** Returns a mutation that is not listed: its result, or `applied` if that is not stored any more. */
    #completed(mutation) {
        const item = this.#state.queue.history.findLast(({ key }) => key === mutation.key);
        if (item) { return this.#mutation(item); }
        return mutation.state === "rejected" ? mutation : Object.freeze({ ...mutation, state: "applied" });
    }

    /** Removes a rejected mutation or upload from the list. */
    async dismiss(item) {
        await this.#change(["images"], async (tx) => {
            if (item.key) {
                tx.remove("rejections", item.key);
                return [{ dismissed: [item.key] }];
            }
            tx.remove("uploads", item.id);
            tx.remove("images", item.id);
            return [{ uploaded: [item.id] }];
        });
    }

    // MARK: Images

    /** Stores an image for upload and returns its id; mutations that are queued later follow it. */
    async addImage(image) {
        if (image.size > imageBytesMax) {
            throw new FieldpostError("body-too-large", `The image has ${image.size} bytes; at most ${imageBytesMax}.`);
        }
        const id = newID();
        // Bytes, because some browsers do not store blobs in private windows.
        const bytes = await image.arrayBuffer();
        await this.#change(["images"], async (tx, meta) => {
            const upload = { id, bytes: image.size, state: "queued", sequence: meta.nextSequence };
            tx.put("images", { bytes, type: image.type }, id);
            tx.put("uploads", upload, id);
            return [{ uploads: [upload] }];
        });
        return id;
    }

    #storedImage(id) { return this.#store.transact(["images"], "readonly", (tx) => tx.get("images", id)); }

    /** Returns an image from the store or the server. */
    async image(id) {
        const stored = await this.#storedImage(id);
        if (stored) { return new Blob([stored.bytes], { type: stored.type }); }
        const response = await this.#fetch("GET", `/v1/blobs/${id}`);
        const blob = await response.blob();
        const bytes = await blob.arrayBuffer();
        this.#store.transact(["images"], "readwrite", async (tx) => tx.put("images", { bytes, type: blob.type }, id))
            .catch(() => {});
        return blob;
    }

    // MARK: Outline

    /**
     * Calls `callback` with the stored outline of the map, then with the server's if it differs; null if there is none.
     * Offline it is called with the stored one only.
     */
    async outline(callback) {
        const { storeId, owner } = this.#meta;
        const key = "outline";
        const stored = await this.#storedImage(key);
        if (stored) { callback(JSON.parse(stored.text)); }
        let text = null, tag = null;
        try {
            const response = await this.#fetch("GET", "/v1/outline", {
                headers: stored ? { "If-None-Match": stored.tag } : {},
            });
            if (response.status === 304) { return; }
            tag = response.headers.get("ETag");
            text = await response.text();
        } catch (error) {
            if (error.status !== 404) { return; }
        }
        const isCurrent = await this.#store.transact(["meta", "images"], "readwrite", async (tx) => {
            const meta = await tx.get("meta", "meta");
            // The person signed out meanwhile.
            if (!meta?.login || meta.storeId !== storeId || meta.owner !== owner) { return false; }
            if (text) { tx.put("images", { text, tag }, key); } else { tx.remove("images", key); }
            return true;
        }).catch(() => true);
        if (isCurrent) { callback(text && JSON.parse(text)); }
    }

    // MARK: Requests

    get #base() { return this.#meta.baseURL ?? this.#gateway; }

    /** Sends a request with the token and returns a successful response, or that the stored content is unchanged. */
    async #fetch(method, path, { body, signal, headers = {}, token = this.#meta.login?.token } = {}) {
        if (!token) { throw new FieldpostError("signed-out", "No person is signed in.", 401); }
        let response;
        try {
            response = await fetch(this.#base + path, {
                method, body, signal, cache: "no-store",
                headers: { Authorization: `Bearer ${token.accessToken}`, ...headers },
            });
        } catch (error) {
            throw new FieldpostError("offline", `The server is unreachable (${error.message}).`);
        }
        this.#readClock(response);
        if (!response.ok && response.status !== 304) { throw await errorOf(response); }
        return response;
    }

    /** Compares the server's clock with the device's. */
    #readClock(response) {
        const time = Date.parse(response.headers.get("Date") ?? "");
        if (!time) { return; }
        const offset = time + 500 - Date.now();
        const isChanged = Math.abs(offset - this.#offset) > 2_000;
        if (isChanged) { this.#offset = offset; this.#notify(); }
    }

    /** Sends a request to the device API with the token. */
    async request(method, path, body = undefined) {
        const options = body === undefined
            ? {}
            : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
        const response = await this.#fetch(method, path, options);
        const text = await response.text();
        return text ? JSON.parse(text) : null;
    }

    // MARK: Login

    /** Registers the e-mail address and resolves when the person can log in. */
    async signIn(email) {
        const registered = await this.#register(email);
        const scheme = this.#onboarding.replace(/^http/, "ws");
        const session = `${scheme}/sessions/${registered.session_id}`;
        let socket = null, isDone = false, hasToken = false, isReady = false, isOffered = false;
        const seen = new Set();
        let finish, fail, offered, refused;
        const done = new Promise((resolve, reject) => { finish = resolve; fail = reject; });
        done.catch(() => {});
        const offer = new Promise((resolve, reject) => { offered = resolve; refused = reject; });
        const end = (error) => {
            if (isDone) { return; }
            isDone = true;
            this.#isSigningIn = false;
            clearTimeout(expiry);
            socket?.close();
            if (error) {
                refused(error);
                fail(error);
                this.#setConnection(this.#restingConnection());
            } else {
                finish();
            }
        };
        const expire = () => end(new FieldpostError("session-expired", "The login took too long."));
        const expiry = setTimeout(expire, registered.expires_in * 1_000);
        const login = {
            loginURL: registered.login_url, done, onproblem: undefined,
            cancel: () => end(new FieldpostError("cancelled", "The login was cancelled.")),
        };
        const handle = async ({ event, payload }) => {
            if (event === "token") {
                await this.#storeLogin({ ...tokenOf(payload) }, email.trim().toLowerCase());
                hasToken = true;
            } else if (event === "data ready") {
                isReady = true;
            } else if (event === "error") {
                const problem = { code: payload.code, detail: payload.message };
                if (payload.login_url) {
                    login.onproblem?.(problem, payload.login_url);
                } else {
                    login.onproblem?.(problem);
                    end(new FieldpostError(payload.code, payload.message));
                }
            }
            if (hasToken && isReady && !isDone) {
                await this.#identify().catch((error) => { if (!isTransient(error.status)) { throw error; } });
                end();
            }
        };
        const connect = (attempt) => {
            if (isDone) { return; }
            socket = new WebSocket(session);
            let turn = Promise.resolve();
            socket.onopen = () => {
                attempt = 0;
                isOffered = true;
                offered();
            };
            const current = socket;
            socket.onmessage = ({ data }) => {
                turn = turn.then(async () => {
                    const event = JSON.parse(data);
                    if (!seen.has(event.id)) { await handle(event); }
                    seen.add(event.id);
                    if (current.readyState === WebSocket.OPEN) {
                        current.send(JSON.stringify({ acknowledge: event.id }));
                    }
                }).catch((error) => end(error));
            };
            socket.onclose = async ({ code, reason }) => {
                await turn;
                if (isDone || code === 1000) { return; }
                if (code >= 4000) { end(new FieldpostError("session-closed", reason || `Close code ${code}.`)); }
                if (!isOffered && attempt > 3) { end(new FieldpostError("offline", "The session cannot be opened.")); }
                if (isDone) { return; }
                await delay(Math.min(500 * 2 ** attempt, 10_000));
                connect(attempt + 1);
            };
        };
        this.#isSigningIn = true;
        if (!this.#meta.login) { this.#setConnection("signing-in"); }
        connect(0);
        await offer;
        return login;
    }

    async #register(email) {
        let response;
        try {
            response = await fetch(`${this.#onboarding}/register_device`, {
                method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ email }),
            });
        } catch {
            throw new FieldpostError("offline", "The server is unreachable.");
        }
        this.#readClock(response);
        if (!response.ok) {
            const error = await errorOf(response);
            if (response.status === 421 && error.body.baseURL && error.body.baseURL !== this.#onboarding) {
                this.#onboarding = error.body.baseURL.replace(/\/$/, "");
                return this.#register(email);
            }
            throw error;
        }
        return response.json();
    }

    /** Signs in with a token that the app obtained by itself. Without `credential` it is not renewed. */
    async signInWithToken({ accessToken, expiresAt, credential }) {
        const token = { accessToken, expiresAt, credential: credential ?? null };
        const person = await this.#whoami(token);
        await this.#storeLogin(token, person.email, person.person);
    }

    /** Returns the person of a token. */
    async #whoami(token = this.#meta.login?.token) {
        const response = await this.#fetch("GET", "/v1/realms", { token });
        const { realms, person } = await response.json();
        const own = realms.map(({ realm }) => realm).find((realm) => realm.startsWith("/users/"));
        return { email: own?.slice("/users/".length) ?? null, person: person ?? null };
    }

    /** Stores a login. The copy and the queue of another person are deleted; waiting mutations prevent that. */
    async #storeLogin(token, email, person = null) {
        await this.#change(storeNames, async (tx, meta) => {
            const events = [];
            if (meta.owner && email && meta.owner !== email) {
                const items = await tx.getAll("queue");
                if (items.some(({ isWaiting }) => isWaiting)) {
                    throw new FieldpostError("queued-mutations", "Another person's changes wait on this device.");
                }
                for (const name of storeNames) { if (name !== "meta") { tx.clear(name); } }
                const { storeId, revision, leader } = meta;
                Object.assign(meta, emptyMeta(), { storeId, revision, leader });
                events.push({ reload: true });
            }
            meta.login = { token, email, person: person ?? (meta.login?.email === email ? meta.login.person : null) };
            meta.owner = email;
            return events;
        });
        if (this.#isLeader || this.#connection === "login-required") { this.#setConnection("connecting"); }
        this.#isPersistent = await navigator.storage?.persist?.().catch(() => false) ?? false;
        this.#wake();
    }

    /** Completes the login with the person's id. */
    async #identify() {
        const { email, person } = await this.#whoami();
        if (email && this.#meta.login && (person !== this.#meta.login.person || email !== this.#meta.login.email)) {
            await this.#storeLogin(this.#meta.login.token, email, person);
        }
    }

    /** Ends the login and deletes the store. Throws `queued-mutations` unless `discard` is true. */
    async signOut({ discard = false } = {}) {
        const credential = this.#meta.login?.token.credential;
        await this.#change(storeNames, async (tx, meta) => {
            const [items, uploads] = await Promise.all([tx.getAll("queue"), tx.getAll("uploads")]);
            const count = items.filter(({ isWaiting }) => isWaiting).length
                + uploads.filter(({ state }) => state === "queued").length;
            if (count > 0 && !discard) {
                throw new FieldpostError("queued-mutations", `${count} changes were not sent yet.`);
            }
            for (const name of storeNames) { if (name !== "meta") { tx.clear(name); } }
            const { storeId, revision, leader } = meta;
            Object.assign(meta, emptyMeta(), { storeId, revision, leader, isSignedOut: true });
            return [{ reload: true }];
        });
        await this.#reloadSafely();
        this.#receivedAt = undefined;
        this.#setConnection("signed-out");
        if (!credential) { return; }
        await fetch(`${this.#onboarding}/v1/logout`, {
            method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ credential }),
            keepalive: true,
        }).catch(() => {});
    }

    /** Renews the token if it expires soon or was refused. One request at a time. */
    #renew({ isRefused = false } = {}) {
        this.#renewal ??= this.#renewNow(isRefused).finally(() => { this.#renewal = null; });
        return this.#renewal;
    }

    async #renewNow(isRefused) {
        const { token } = this.#meta.login ?? {};
        if (!token) { throw new FieldpostError("signed-out", "No person is signed in.", 401); }
        if (!isRefused && !this.#expiresSoon(token)) { return; }
        if (!token.credential) {
            if (!isRefused) { return; }
            throw new FieldpostError("login-required", "The login has expired.", 401);
        }
        let response;
        try {
            response = await fetch(`${this.#onboarding}/v1/token`, {
                method: "POST", headers: { "Content-Type": "application/json" },
                body: JSON.stringify({ credential: token.credential }),
            });
        } catch (error) {
            throw new FieldpostError("offline", `The server is unreachable (${error.message}).`);
        }
        this.#readClock(response);
        if (!response.ok) { throw await errorOf(response); }
        const next = tokenOf(await response.json());
        await this.#change([], async (tx, meta) => {
            if (meta.login) { meta.login = { ...meta.login, token: next }; }
            return [];
        });
    }

    /** Whether a token should be renewed, by the server's clock. */
    #expiresSoon({ expiresAt, credential }) {
        return credential && expiresAt - (Date.now() + this.#offset) < renewalMargin;
    }

    // MARK: Leading

    /** Waits for the lock; the tab that has it leads. Without locks each tab leads alone. */
    #competeForLead(steal = false) {
        if (!navigator.locks || this.#store.kind === "memory") { this.#lead(); return; }
        navigator.locks.request(`fieldpost ${this.#name}`, steal ? { steal } : {}, async () => {
            if (this.#isClosed) { return; }
            const released = new Promise((resolve) => { this.#releaseLock = resolve; });
            await this.#lead();
            await released;
        }).catch(() => {
            // Another tab stole the lock, because this one did not respond.
            this.#follow();
            if (!this.#isClosed) { this.#competeForLead(); }
        });
    }

    #follow() {
        this.#isLeader = false;
        this.#streamAbort?.abort();
        this.#streamSignal.set();
        this.#sendSignal.set();
        this.#notify();
    }

    async #lead() {
        try {
            await this.#claimLead();
        } catch (error) {
            this.#setConnection("failed", error);
            await delay(2_000);
            if (!this.#isClosed) { return this.#lead(); }
            return undefined;
        }
        if (this.#isClosed) { return undefined; }
        this.#isLeader = true;
        this.#setConnection(this.#restingConnection());
        this.#shareStatus();
        this.#notify();
        this.#compactSafely();
        this.#leading = Promise.all([this.#streamLoop(), this.#sendLoop()]);
        return undefined;
    }

    async #claimLead() {
        const { revision } = await this.#change([], async (tx, meta) => { meta.leader = this.#tab; return []; });
        // The store that was just opened needs no second reading, unless another tab changed it meanwhile.
        if (revision !== this.#rereadRevision + 1) { await this.#reload(); }
        this.#rereadRevision = NaN;
    }

    #wake() {
        this.#backoff = 0;
        this.#streamSignal.set();
        this.#sendSignal.set();
        if (globalThis.navigator?.onLine === false) { this.#streamAbort?.abort(); }
        if (!this.#isLeader && this.#channel && globalThis.document?.visibilityState === "visible") {
            this.#checkLeader();
        }
    }

    /** Takes the lead from a tab that the browser has suspended. */
    async #checkLeader() {
        const started = Date.now();
        this.#share({ hello: true });
        await delay(4_000);
        const isIdle = document.visibilityState === "visible" && this.#leaderSeenAt < started;
        if (isIdle && !this.#isLeader && !this.#isClosed) { this.#competeForLead(true); }
    }

    get #isActive() { return this.#isLeader && !this.#isClosed; }
    get #mayConnect() {
        return this.#isActive && this.#meta.login !== null && !this.#meta.isPaused
            && !(this.#connection === "login-required" && this.#refusedToken === this.#meta.login.token.accessToken);
    }
    #refusedToken = null;

    /** Applies work to the state one after the other: a commit of lines never overlaps one of results. */
    #serially(body) {
        const turn = this.#work.then(body);
        this.#work = turn.catch(() => {});
        return turn;
    }

    async #streamLoop() {
        while (this.#isActive) {
            if (!this.#mayConnect) { await this.#streamSignal.wait(); continue; }
            const started = this.#receivedAt;
            try {
                await this.#followStream();
                if (this.#receivedAt !== started) { this.#backoff = 0; }
                if (this.#mayConnect && this.#connection === "live") { this.#setConnection("connecting"); }
            } catch (error) {
                if (!this.#isActive) { return; }
                await this.#handleFailure(error).catch((failure) => this.#setConnection("failed", failure));
                if (!this.#mayConnect) { continue; }
            }
            if (this.#backoff > 0 || this.#receivedAt === started) {
                this.#backoff = Math.min(Math.max(1_000, this.#backoff * 2), backoffMax);
                await this.#streamSignal.wait(this.#retryAfter ?? Math.random() * this.#backoff);
                this.#retryAfter = null;
            }
        }
    }
    #retryAfter = null;

    /** Chooses the state of the connection after a failure. */
    async #handleFailure(error) {
        if (error.code === "not-leader") {
            // Another tab stole the lock, which ends the lead, or created an evicted store.
            await delay(500);
            if (this.#isActive) { await this.#serially(() => this.#claimLead()); }
            return;
        }
        if (!this.#meta.login || this.#meta.isPaused) { this.#setConnection(this.#restingConnection()); return; }
        if (error.code === "aborted" || error.code === "store-replaced") { return; }
        this.#retryAfter = error.retryAfter ?? null;
        if (error.code === "environment-moved" && error.body?.baseURL) { await this.#move(error.body.baseURL); return; }
        if (error.status === 401 && error.code !== "login-required") {
            try {
                await this.#renew({ isRefused: true });
                return;
            } catch (renewal) { error = renewal; }
        }
        if (error.code === "login-required") {
            this.#refusedToken = this.#meta.login?.token.accessToken ?? null;
            this.#setConnection("login-required", error);
        } else if (error.code === "offline") {
            this.#setConnection("offline", error);
        } else if (error.code === "storage-full") {
            this.#retryAfter = backoffMax;
            this.#setConnection("failed", error);
        } else {
            this.#setConnection(isTransient(error.status ?? 0) ? "offline" : "failed", error);
            if (!isTransient(error.status ?? 0)) { this.#retryAfter ??= backoffMax; }
        }
    }

    /** Continues at another installation: the queue is kept, and all realms are downloaded again. */
    async #move(baseURL) {
        await this.#serially(() => this.#change(["realms", "pages"], async (tx, meta) => {
            this.#state.copy.restartAll();
            this.#state.writeCopy(tx);
            Object.assign(meta, this.#state.counts, { baseURL: baseURL.replace(/\/$/, "") });
            return [{ reload: true }];
        }, { isOwn: true }));
        await this.#reloadSafely();
    }

    /** Opens a stream and applies its lines until it ends. */
    async #followStream() {
        const abort = new AbortController();
        this.#streamAbort = abort;
        if (this.#connection !== "live" && this.#connection !== "offline") { this.#setConnection("connecting"); }
        await this.#renew();
        if (!this.#meta.login?.person) { await this.#identify(); }
        if (abort.signal.aborted || !this.#mayConnect) { throw new FieldpostError("aborted"); }
        const token = this.#meta.login.token;
        const body = await this.#serially(async () => {
            let request;
            await this.#change(["realms", "pages"], async (tx) => {
                request = this.#state.syncRequest({ live: true, further: this.#meta.realms });
                this.#state.writeCopy(tx);
                return [{ begin: true }];
            }, { isOwn: true });
            this.#state.copy.clean();
            return request;
        });
        let silence = null;
        const heard = () => {
            clearTimeout(silence);
            silence = setTimeout(() => abort.abort(), silenceMax);
        };
        heard();
        // A stream uses one token: it ends when the token does.
        const untilRenewal = token.credential
            ? Math.max(token.expiresAt - Date.now() - this.#offset - renewalMargin + 1_000, 60_000) : 0;
        const renewal = untilRenewal > 0 && untilRenewal < 2_000_000_000
            ? setTimeout(() => this.#renew().catch(() => {}), untilRenewal) : null;
        try {
            const response = await this.#fetch("POST", "/v1/sync", {
                body: JSON.stringify(body), signal: abort.signal, headers: { "Content-Type": "application/json" },
            });
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            let rest = "";
            let group = [];
            let count = 0;
            let stored = Promise.resolve();
            // The next group is read and parsed while one is stored.
            const store = async () => {
                await stored;
                stored = this.#takeLines(group, abort.signal);
                stored.catch(() => {});
                [group, count] = [[], 0];
            };
            for (;;) {
                const { value, done } = await reader.read();
                if (done) { break; }
                heard();
                const texts = value.split("\n");
                texts[0] = rest + texts[0];
                rest = texts.pop();
                let isComplete = false;
                for (const text of texts.filter(Boolean)) {
                    const line = JSON.parse(text);
                    group.push({ line, text });
                    count += line.objects?.list.length ?? 0;
                    isComplete ||= Boolean(line.checkpoint || line.keepalive || line.closed);
                    if (count >= groupCountMin) { await store(); }
                }
                if (isComplete && group.length > 0) { await store(); await stored; }
            }
            await store();
            await stored;
        } catch (error) {
            if (abort.signal.aborted && error.name === "AbortError") { throw new FieldpostError("aborted"); }
            if (error instanceof TypeError) { throw new FieldpostError("offline", "The connection was lost."); }
            throw error;
        } finally {
            clearTimeout(silence);
            clearTimeout(renewal);
            abort.abort();
            if (this.#streamAbort === abort) { this.#streamAbort = null; }
        }
    }

    /** Applies and stores lines in one transaction. */
    #takeLines(group, signal) {
        return this.#serially(async () => {
            signal.throwIfAborted();
            if (group.length === 0) { return; }
            let updates;
            await this.#change(["realms", "pages"], async (tx, meta) => {
                updates = group.map(({ line, text }) => this.#state.takeLine(line, text));
                this.#state.writeCopy(tx);
                Object.assign(meta, this.#state.counts);
                return [{ lines: group.map(({ text }) => text) }];
            }, { isOwn: true });
            this.#state.copy.clean();
            this.#receivedAt = Date.now();
            this.#backoff = 0;
            for (const { changed } of updates) { this.#show(changed); }
            if (this.#state.queue.isInDoubt) { this.#sendSignal.set(); }
            if (group.some(({ line }) => line.checkpoint || line.keepalive)) { this.#setConnection("live"); }
            this.#shareStatus();
            this.#compactSafely();
        });
    }

    /** Compacts the log in the background if that is due. An error ends it; the next lines start another. */
    #compactSafely() {
        if (this.#isCompacting || !this.#isActive || !this.#state.copy.isCompactionDue) { return; }
        this.#isCompacting = true;
        this.#compact().catch(() => {}).finally(() => { this.#isCompacting = false; });
    }
    #isCompacting = false;

    /** Rewrites the settled pages of each realm, oldest first. Each step is a transaction, so it may end anywhere. */
    async #compact() {
        const state = this.#state;
        const { copy } = state;
        const { appended } = copy;
        for (const [path, { settled }] of [...copy.realms]) {
            let after = 0;
            while (after !== null) {
                await delay(1);
                after = await this.#serially(async () => {
                    if (this.#state !== state || !this.#isActive) { throw new FieldpostError("aborted"); }
                    return this.#compactNext(path, after, settled);
                });
            }
        }
        await this.#serially(() => this.#change([], async (tx, meta) => {
            copy.appended -= appended;
            Object.assign(meta, state.counts);
            return [];
        }, { isOwn: true }));
    }

    /** Runs a step of a compaction; returns its last page, or `null` after the last step. */
    async #compactNext(path, after, upTo) {
        const step = await this.#store.transact(["meta", "pages"], "readwrite", async (tx) => {
            const meta = await tx.get("meta", "meta");
            if (!this.#isLoaded(meta) || meta.leader !== this.#tab) { throw new FieldpostError("not-leader"); }
            const read = async (page) => (await tx.get("pages", page))?.text;
            const next = await this.#state.copy.compactionStep(path, after, upTo, read);
            if (!next.isChanged) { return next; }
            for (const number of next.pages) { tx.remove("pages", number); }
            const number = next.pages.at(-1);
            if (next.text !== null) { tx.put("pages", { number, text: next.text }, number); }
            return next;
        });
        if (step.isChanged) { this.#state.copy.applyStep(step); }
        return step.pages.at(-1) ?? null;
    }

    async #sendLoop() {
        let failures = 0;
        while (this.#isActive) {
            const canSend = this.#mayConnect && this.#connection !== "signing-in" && navigator.onLine !== false;
            try {
                if (canSend && await this.#sendNext()) { failures = 0; continue; }
                await this.#sendSignal.wait();
                continue;
            } catch (error) {
                if (!this.#isActive) { return; }
                failures += 1;
                await this.#handleFailure(error).catch((failure) => this.#setConnection("failed", failure));
                const wait = error.retryAfter ?? Math.random() * Math.min(1_000 * 2 ** failures, backoffMax);
                await this.#sendSignal.wait(Math.max(wait, 100));
            }
        }
    }

    /** Sends the next image or mutations; returns whether there were any. */
    async #sendNext() {
        if (!await this.#serially(() => this.#verify())) { return true; }
        const { queue } = this.#state;
        const uploads = [...this.#uploads.values()].filter(({ state }) => state === "queued")
            .sort((left, right) => left.sequence - right.sequence);
        const [upload] = uploads;
        const before = upload ? queue.waiting.filter(({ sequence }) => sequence < upload.sequence).length : Infinity;
        if (upload && before === 0 && !queue.isInDoubt) {
            await this.#sendImage(upload);
            return true;
        }
        const request = this.#state.nextRequest(before + (queue.isInDoubt ? 1 : 0));
        if (!request) { return false; }
        const response = await this.#post(request);
        const update = await this.#serially(() => this.#takeResponse(response, request));
        if (!update.madeProgress) { await delay(1_000); }
        return true;
    }

    async #post(request) {
        const abort = new AbortController();
        const timer = setTimeout(() => abort.abort(), silenceMax);
        try {
            const response = await this.#fetch("POST", "/v1/mutations", {
                body: request.body, headers: { "Content-Type": "application/json" }, signal: abort.signal,
            });
            return readResponse(response.status, await response.json());
        } catch (error) {
            if (error.status === 409) { return readResponse(409, error.body); }
            if (error instanceof FieldpostError) { throw error; }
            throw new FieldpostError("offline", "The response was lost.");
        } finally {
            clearTimeout(timer);
        }
    }

    async #takeResponse(response, request) {
        const newClientId = newID();
        const { number, resetCount, isQuery } = request;
        let update;
        const rejections = [], dismissed = [], uploads = [];
        await this.#change([], async (tx, meta) => {
            const { queue } = this.#state;
            const numbers = queue.waiting.map(({ sequence }) => sequence);
            const oldest = queue.history[0]?.sequence;
            update = this.#state.takeResponse(response, request, newClientId);
            for (const item of update.answers) {
                if (item.outcome.rejected) { rejections.push(item); } else { dismissed.push(item.key); }
            }
            for (const item of rejections) {
                tx.put("rejections", item, item.key);
                this.#rejections.set(item.key, item);
            }
            for (const key of dismissed) { tx.remove("rejections", key); this.#rejections.delete(key); }
            if (update.isRequeued) {
                tx.clear("queue");
                for (const item of queue.history) { tx.put("queue", { ...item, isWaiting: false }, item.sequence); }
                for (const item of queue.waiting) { tx.put("queue", { ...item, isWaiting: true }, item.sequence); }
            } else {
                for (const item of update.answers) { tx.put("queue", { ...item, isWaiting: false }, item.sequence); }
                const first = queue.history[0]?.sequence;
                if (first > oldest) { tx.removeBelow("queue", first); }
            }
            if (update.isRenumbered) {
                for (const upload of this.#uploads.values()) {
                    const count = numbers.filter((sequence) => sequence < upload.sequence).length;
                    const moved = { ...upload, sequence: queue.waiting.length - numbers.length + count + 1 };
                    uploads.push(moved);
                    tx.put("uploads", moved, moved.id);
                    this.#uploads.set(moved.id, moved);
                }
            }
            Object.assign(meta, this.#state.counts);
            const event = { response, request: { number, resetCount, isQuery }, newClientId };
            return [{ response: event, rejections, dismissed, uploads }];
        }, { isOwn: true });
        this.#show(update.changed);
        return update;
    }

    async #sendImage(upload) {
        const stored = await this.#storedImage(upload.id);
        let problem = null;
        try {
            if (!stored) { throw new FieldpostError("image-missing", "The image is not on the device any more.", 404); }
            await this.#fetch("PUT", `/v1/blobs/${upload.id}`, {
                body: stored.bytes, headers: { "Content-Type": stored.type || "application/octet-stream" },
            });
        } catch (error) {
            if (isTransient(error.status) || [401, 403, 421].includes(error.status)) { throw error; }
            problem = problemOf(error);
        }
        await this.#change([], async (tx) => {
            if (!problem) {
                tx.remove("uploads", upload.id);
                return [{ uploaded: [upload.id] }];
            }
            const rejected = { ...upload, state: "rejected", problem };
            tx.put("uploads", rejected, upload.id);
            return [{ uploads: [rejected] }];
        });
    }

    // MARK: Control

    async #set(change) {
        await this.#change([], async (tx, meta) => { change(meta); return []; });
    }

    /** Works offline until `resume`, in all tabs. */
    async pause() {
        await this.#set((meta) => { meta.isPaused = true; });
        this.#setConnection(this.#restingConnection());
    }

    /** Ends a pause. */
    async resume() {
        await this.#set((meta) => { meta.isPaused = false; });
        this.#setConnection(this.#restingConnection());
        this.#wake();
    }

    /** Names further realms, such as a team's or `/archive`. */
    async openRealms(paths) {
        const missing = paths.filter((path) => !this.#meta.realms.includes(path));
        if (missing.length === 0) { return; }
        await this.#set((meta) => { meta.realms = [...new Set([...meta.realms, ...paths])].slice(0, namedCountMax); });
    }

    /** Ends the connection of this tab. The store remains. */
    async close() {
        if (this.#isClosed) { return; }
        this.#isClosed = true;
        this.#isLeader = false;
        clearTimeout(this.#gapTimer);
        this.#streamAbort?.abort();
        this.#streamSignal.set();
        this.#sendSignal.set();
        globalThis.removeEventListener?.("online", this.#wakeListener);
        globalThis.removeEventListener?.("offline", this.#wakeListener);
        globalThis.document?.removeEventListener("visibilitychange", this.#wakeListener);
        await this.#leading?.catch(() => {});
        await this.#work;
        this.#releaseLock?.();
        this.#channel?.close();
        this.#store.close();
    }
}

/** Returns whether an object passes a filter. */
function isIncluded(object, { realm, realmPrefix, id, fields, where }) {
    if (realm && object.realm !== realm) { return false; }
    if (realmPrefix && !object.realm.startsWith(realmPrefix)) { return false; }
    if (id && object.id !== id) { return false; }
    for (const [name, value] of Object.entries(fields ?? {})) {
        if (!isEqual(object.fields[name] ?? null, value)) { return false; }
    }
    return !where || where(object);
}

/** Reads the token of an event or of a renewal. */
function tokenOf({ access_token: accessToken, expires_at: expiresAt, credential, device_id: deviceId }) {
    const expiry = Date.parse(expiresAt);
    return { accessToken, expiresAt: expiry, credential: credential ?? null, deviceId: deviceId ?? null };
}

// MARK: Images

/** Scales an image to at most 2,048 pixels and 1 MiB, as JPEG. */
export async function scaleImage(image, { pixelsMax = 2_048, bytesMax = imageBytesMax } = {}) {
    let bitmap;
    try {
        bitmap = await createImageBitmap(image, { imageOrientation: "from-image" });
    } catch {
        throw new FieldpostError("image-unreadable", "The browser cannot read this image.");
    }
    let scale = Math.min(1, pixelsMax / Math.max(bitmap.width, bitmap.height));
    try {
        for (let quality = 0.8; ; quality -= 0.15) {
            if (quality < 0.4) { quality = 0.7; scale *= 0.7; }
            const canvas = document.createElement("canvas");
            canvas.width = Math.max(1, Math.round(bitmap.width * scale));
            canvas.height = Math.max(1, Math.round(bitmap.height * scale));
            const context = canvas.getContext("2d");
            context.fillStyle = "#ffffff";
            context.fillRect(0, 0, canvas.width, canvas.height);
            context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
            const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", quality); });
            if (!blob) { throw new FieldpostError("image-unreadable", "The browser cannot write this image."); }
            if (blob.size <= bytesMax || canvas.width * canvas.height < 4_096) { return blob; }
        }
    } finally {
        bitmap.close();
    }
}
