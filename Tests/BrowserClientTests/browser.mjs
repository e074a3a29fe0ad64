/**
 * The interfaces of a browser that `fieldpost.js` uses, with faults: tabs are killed, storage is full or evicted.
 *
 * All tabs run in this process. A call belongs to the tab in whose `run` it began.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { Fieldpost } from "../../Services/Onboarding/App/fieldpost.js";

const current = new AsyncLocalStorage();
const startTimer = setTimeout;
const never = new Promise(() => {});
const turn = () => new Promise((resolve) => { setImmediate(resolve); });
const order = (left, right) => (left < right ? -1 : left > right ? 1 : 0);

/** A page that has opened a store. */
export class Tab {
    isKilled = false;
    /** Number of written transactions after which the tab is killed. */
    commitCountMax = Infinity;
    killed = new Promise((resolve) => { this.onkill = resolve; });

    constructor(browser) { this.browser = browser; }

    run(body) { return current.run(this, body); }

    async open(options) {
        this.client = await Promise.race([this.run(() => Fieldpost.open(options)), this.killed]);
        return this.client;
    }

    kill() {
        if (this.isKilled) { return; }
        this.isKilled = true;
        this.browser.release(this);
        this.onkill();
    }

    close() { return this.run(() => this.client.close()); }
}

export class Browser {
    /** Stores by name, of databases by name. */
    databases = new Map();
    connections = new Set();
    channels = new Set();
    isFull = false;
    /** Called after each written transaction. */
    oncommit = () => {};
    work = Promise.resolve();
    locks = [];

    /** Replaces the interfaces of this process. `send` performs requests. */
    install(send, { hasDatabase = true } = {}) {
        const browser = this;
        const globals = {
            setTimeout: (...values) => {
                const timer = startTimer(...values);
                return current.getStore() ? timer.unref() : timer;
            },
            indexedDB: hasDatabase ? { open: (name, version) => browser.openDatabase(name, version) } : undefined,
            IDBKeyRange: { lowerBound: (lower) => ({ lower }), upperBound: (upper) => ({ upper }) },
            navigator: {
                onLine: true, locks: { request: (name, options, body) => browser.requestLock(options, body) },
            },
            fetch: (url, options) => (current.getStore()?.isKilled ? never : send(url, options)),
            BroadcastChannel: class {
                constructor(name) {
                    Object.assign(this, { name, tab: current.getStore() });
                    browser.channels.add(this);
                }
                postMessage(data) {
                    if (this.tab.isKilled) { return; }
                    const copy = structuredClone(data);
                    for (const other of browser.channels) {
                        if (other === this || other.name !== this.name) { continue; }
                        setImmediate(() => {
                            if (!other.tab.isKilled) { other.tab.run(() => other.onmessage({ data: copy })); }
                        });
                    }
                }
                close() { browser.channels.delete(this); }
            },
        };
        for (const [name, value] of Object.entries(globals)) {
            Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
        }
    }

    requestLock(options, body) {
        const lock = { tab: current.getStore(), body };
        lock.done = new Promise((resolve, reject) => Object.assign(lock, { resolve, reject }));
        this.locks.push(lock);
        this.grantLock();
        return lock.done;
    }

    grantLock() {
        const [lock] = this.locks;
        if (!lock || lock.isHeld) { return; }
        lock.isHeld = true;
        const end = () => { this.locks = this.locks.filter((one) => one !== lock); this.grantLock(); };
        lock.tab.run(() => lock.body()).then(lock.resolve, lock.reject).finally(end);
    }

    release(tab) {
        this.locks = this.locks.filter((lock) => lock.tab !== tab);
        for (const channel of this.channels) { if (channel.tab === tab) { this.channels.delete(channel); } }
        this.grantLock();
    }

    // MARK: Databases

    openDatabase(name, version) {
        const request = {};
        const tab = current.getStore();
        this.work = this.work.then(async () => {
            await turn();
            if (tab.isKilled) { return; }
            const stored = this.databases.get(name) ?? { version: 0, stores: new Map() };
            const database = new Database(this, tab, stored.stores);
            request.result = database;
            if (stored.version < version) { request.onupgradeneeded({ oldVersion: stored.version }); }
            this.databases.set(name, { version, stores: stored.stores });
            this.connections.add(database);
            request.onsuccess();
        });
        return request;
    }

    /** Deletes all databases, as browsers do without asking. */
    evict() {
        this.databases.clear();
        const connections = [...this.connections];
        this.connections.clear();
        for (const database of connections) { database.evict(); }
    }

    /** Returns the records of a store. */
    records(name, store) { return [...this.databases.get(name).stores.get(store).values()]; }
}

class Database {
    onclose = null;
    listeners = new Set();

    constructor(browser, tab, stores) { Object.assign(this, { browser, tab, stores }); }

    get objectStoreNames() { return { contains: (name) => this.stores.has(name) }; }
    createObjectStore(name) { this.stores.set(name, new Map()); }
    deleteObjectStore(name) { this.stores.delete(name); }
    addEventListener(type, listener) { this.listeners.add(listener); }
    removeEventListener(type, listener) { this.listeners.delete(listener); }
    evict() {
        this.isEvicted = true;
        this.isClosed = true;
        if (this.tab.isKilled) { return; }
        this.tab.run(() => {
            this.onclose?.();
            for (const listener of this.listeners) { listener(); }
        });
    }
    close() { this.isClosed = true; this.browser.connections.delete(this); }

    transaction(names, mode) {
        if (this.isClosed) { throw new DOMException("closed", "InvalidStateError"); }
        const transaction = new Transaction(this, names, mode);
        this.browser.work = this.browser.work.then(() => transaction.run());
        return transaction;
    }
}

/** A transaction runs alone. Like in a browser, it ends when a request's callbacks make no further request. */
class Transaction {
    requests = [];
    error = null;
    tab = current.getStore();

    constructor(database, names, mode) { Object.assign(this, { db: database, names, mode }); }

    objectStore(name) {
        if (!this.names.includes(name)) { throw new DOMException(`no ${name}`, "NotFoundError"); }
        const request = (perform) => {
            if (this.isEnded) { throw new DOMException("ended", "TransactionInactiveError"); }
            const added = { perform: () => perform(this.stores.get(name)) };
            this.requests.push(added);
            return added;
        };
        const write = (perform) => request((store) => {
            if (this.mode !== "readwrite") { throw new DOMException("read-only", "ReadOnlyError"); }
            return perform(store);
        });
        return {
            get: (key) => request((store) => structuredClone(store.get(key))),
            getAll: (range, countMax) => request((store) => [...store].sort(([left], [right]) => order(left, right))
                .filter(([key]) => range === undefined || key >= range.lower).slice(0, countMax)
                .map(([, object]) => structuredClone(object))),
            put: (object, key) => {
                const copy = structuredClone(object);
                return write((store) => {
                    if (this.db.browser.isFull) { throw new DOMException("full", "QuotaExceededError"); }
                    store.set(key, copy);
                });
            },
            delete: (key) => write((store) => {
                const isBelow = (one) => key.upper !== undefined && one < key.upper;
                for (const one of [...store.keys()]) { if (one === key || isBelow(one)) { store.delete(one); } }
            }),
            clear: () => write((store) => store.clear()),
        };
    }

    abort() {
        if (this.isEnded) { throw new DOMException("ended", "InvalidStateError"); }
        this.isEnded = true;
        this.isAborted = true;
        queueMicrotask(() => this.onabort?.());
    }

    async run() {
        await turn();
        // Changes are made to copies, which a commit puts in place of the stores.
        const { stores } = this.db;
        this.stores = new Map(this.names.map((name) => [name, new Map(stores.get(name))]));
        while (this.requests.length > 0 && !this.isEnded) {
            if (this.tab.isKilled) { return; }
            const request = this.requests.shift();
            try {
                request.result = request.perform();
                request.onsuccess?.();
            } catch (error) {
                request.error = error;
                request.onerror?.();
                this.error = error;
                this.abort();
            }
            await turn();
        }
        if (this.tab.isKilled || this.isAborted) { return; }
        this.isEnded = true;
        if (this.db.isEvicted) { return; }
        if (this.mode === "readwrite") {
            for (const [name, store] of this.stores) { stores.set(name, store); }
            this.db.browser.oncommit();
            this.tab.commitCountMax -= 1;
            if (this.tab.commitCountMax <= 0) { this.tab.kill(); return; }
        }
        this.oncomplete?.();
    }
}
