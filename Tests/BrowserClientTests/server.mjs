/** A naive server of the device API: objects in realms, a counter, and the results of a client. */
import { fieldsAfter } from "../../Services/Onboarding/App/fieldpost.js";

export const own = "/users/ana@example.com", shared = "/common", gained = "/manager";
const paths = [own, shared, gained];

/** A minimal server: objects in realms, a counter, and the results of a client. */
export class Server {
    /** Maximum number of objects per line. */
    pageCount = 2;
    generation = 1;
    position = 0;
    compacted = 0;
    realms = new Map(paths.map((path) => [path, new Map()]));
    permitted = new Set(paths);
    results = [];
    processed = [];

    write(path, id, fields) {
        this.position += 1;
        this.realms.get(path).set(id, { position: this.position, fields });
        return { accepted: this.position };
    }

    compact() {
        this.compacted = this.position;
        for (const realm of this.realms.values()) {
            for (const [id, { fields }] of realm) { if (!fields) { realm.delete(id); } }
        }
    }

    backup() { return structuredClone({ ...this, permitted: null }); }

    restore(backup) {
        const { generation, permitted } = this;
        Object.assign(this, structuredClone(backup), { generation: generation + 1, permitted });
    }

    /** Applies each number once and in order. */
    apply(request) {
        let next = this.results.length + 1;
        for (const { sequence } of request.mutations) {
            if (sequence > next) { return { outcomes: null, expectedSequence: this.results.length + 1 }; }
            next = Math.max(next, sequence + 1);
        }
        const outcomes = new Map();
        for (const item of request.mutations) {
            if (item.sequence === this.results.length + 1) {
                this.processed.push(item.key);
                this.results.push(this.process(item));
            }
            outcomes.set(item.sequence, this.results[item.sequence - 1]);
        }
        return { outcomes, expectedSequence: this.results.length + 1 };
    }

    process({ realm, operation, id, fields }) {
        const rejected = (code) => ({ rejected: { code, detail: "" } });
        if (!this.permitted.has(realm)) { return rejected("not-permitted"); }
        if (fields?.title === -1) { return rejected("invalid-field"); }
        const stored = this.realms.get(realm).get(id);
        if (!stored) {
            if (operation === "put") { return this.write(realm, id, fields); }
            return operation === "patch" ? rejected("unknown-object") : { accepted: 0 };
        }
        if (!stored.fields) { return operation === "delete" ? { accepted: stored.position } : rejected("deleted"); }
        return this.write(realm, id, fieldsAfter({ operation, kind: "FieldTask", fields }, stored.fields));
    }

    content(path) {
        const objects = [...this.realms.get(path)].filter(([, { fields }]) => fields)
            .map(([id, { position, fields }]) => [id, { position, fields }]);
        return new Map(objects);
    }

    contents() { return new Map([...this.permitted].sort().map((path) => [path, this.content(path)])); }
}

/** One response to `POST /v1/sync`, which continues while it is read. */
export class Stream {
    open = new Map();
    queue = [];
    checkpoint = -1;
    isEnded = false;

    constructor(server, named) {
        this.generation = server.generation;
        this.named = new Map(Object.entries(named ?? {}));
    }

    next(server) {
        if (this.queue.length > 0) { return this.queue.shift(); }
        if (server.generation !== this.generation) { this.isEnded = true; return null; }
        const line = this.opened(server) ?? this.page(server);
        if (line) { return { line }; }
        if (server.position <= this.checkpoint) { return null; }
        this.catchUp(server);
        return this.queue.shift();
    }

    keepalive(server) {
        const isIdle = this.queue.length === 0 && server.generation === this.generation
            && server.position === this.checkpoint && this.open.size === server.permitted.size;
        return isIdle
            ? { line: { keepalive: { expiresIn: 60, position: this.checkpoint, cursor: this.cursor() } },
                contents: server.contents() }
            : null;
    }

    cursor() { return `${this.generation}:${this.checkpoint}:${this.checkpoint}`; }

    opened(server) {
        for (const path of [...new Set([...this.open.keys(), ...this.named.keys()])]) {
            if (server.permitted.has(path)) { continue; }
            this.open.delete(path);
            this.named.delete(path);
            return { closed: { realm: path } };
        }
        for (const path of [...server.permitted].sort()) {
            let progress = this.open.get(path);
            if (progress && this.isGood(progress, server)) { continue; }
            progress = progress ? null : this.progress(this.named.get(path), server);
            this.named.delete(path);
            this.open.set(path, progress ?? { start: server.position, base: 0, after: "" });
            this.checkpoint = -1;
            return { open: progress ? { realm: path } : { realm: path, reset: true } };
        }
        return null;
    }

    isGood({ whole, start, base }, server) {
        if (whole !== undefined) { return whole >= server.compacted; }
        return start >= server.compacted && (base === 0 || base >= server.compacted);
    }

    progress(cursor, server) {
        const [generation, start, base, after] = (cursor ?? "0").split(":");
        if (Number(generation) !== server.generation) { return null; }
        let progress = { whole: Number(base) };
        if (after) {
            progress = { start: Number(start), base: Number(base), after };
        } else if (server.position - Number(base) > 40) {
            progress = { start: server.position, base: Number(base), after: "" };
        }
        return this.isGood(progress, server) ? progress : null;
    }

    static line(path, page, cursor) {
        const list = page.map(([id, { position, fields }]) => (fields
            ? { kind: "FieldTask", id, position, fields: structuredClone(fields) }
            : { kind: "FieldTask", id, position, deleted: true }));
        return { objects: { realm: path, list, ...(cursor ? { cursor } : {}) } };
    }

    page(server) {
        for (const [path, { whole, start, base, after }] of this.open) {
            if (whole !== undefined) { continue; }
            const page = [...server.realms.get(path)]
                .filter(([id, object]) => id > after && object.position > base && (base > 0 || object.fields))
                .sort(([left], [right]) => (left < right ? -1 : 1)).slice(0, server.pageCount);
            if (page.length === 0) {
                this.open.set(path, { whole: start });
                return Stream.line(path, [], null);
            }
            const last = page.at(-1)[0];
            this.open.set(path, { start, base, after: last });
            return Stream.line(path, page, `${this.generation}:${start}:${base}:${last}`);
        }
        return null;
    }

    catchUp(server) {
        for (const [path, { whole }] of this.open) {
            const changes = [...server.realms.get(path)].filter(([, { position }]) => position > whole)
                .sort(([, left], [, right]) => left.position - right.position);
            while (changes.length > 0) {
                const page = changes.splice(0, server.pageCount);
                const last = page.at(-1)[1].position;
                this.queue.push({ line: Stream.line(path, page, `${this.generation}:${last}:${last}`) });
            }
            this.open.set(path, { whole: server.position });
        }
        this.checkpoint = server.position;
        const cursors = Object.fromEntries([...this.open.keys()].map((path) => [path, this.cursor()]));
        const checkpoint = { position: this.checkpoint, cursor: this.cursor(), cursors: this.checkpoint % 2 ? cursors : undefined };
        this.queue.push({ line: { checkpoint }, contents: server.contents() });
    }
}
