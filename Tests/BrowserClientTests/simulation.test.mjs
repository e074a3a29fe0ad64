/**
 * One device and a naive server in random steps, like `Tests/DeviceClientTests/DeviceSimulationTests.swift`: streams
 * are interrupted, requests and responses are lost, delayed and repeated, the device is killed and resumes from its
 * stored state, and the database is compacted and restored. Run other seeds with `SEEDS=1,2,3 node --test`.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { DeviceState, fieldsAfter } from "../../Services/Onboarding/App/fieldpost.js";

const own = "/users/ana@example.com", shared = "/common", gained = "/manager";
const paths = [own, shared, gained];
const clientId = "00000000-0000-4000-8000-0000000000c1";
const idOf = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const seeds = (process.env.SEEDS ?? "1,2,3,4").split(",").map(Number);

/** Returns a random number generator (mulberry32). */
function generator(seed) {
    let state = seed >>> 0;
    return (limit) => {
        state = (state + 0x6D2B79F5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
    };
}

/** A minimal server: objects in realms, a counter, and the results of a client. */
class Server {
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
class Stream {
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
                .sort(([left], [right]) => (left < right ? -1 : 1)).slice(0, 2);
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
                const page = changes.splice(0, 2);
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

/** A person with one device. */
class Phone {
    server = new Server();
    state = new DeviceState(clientId);
    backup = null;
    stream = null;
    late = null;
    sent = [];
    made = [];
    isDisturbed = false;
    counts = {};

    constructor(seed) {
        this.random = generator(seed);
        this.store();
    }

    count(event) { this.counts[event] = (this.counts[event] ?? 0) + 1; }
    store() { this.stored = { state: JSON.stringify(this.state), made: structuredClone(this.made) }; }

    step() {
        const choice = this.random(100);
        if (choice < 18) { this.act(); }
        else if (choice < 60) { this.read(); }
        else if (choice < 63) { this.stream = null; this.count("cuts"); }
        else if (choice < 78) { this.send(); }
        else if (choice < 80) { this.receiveLate(); }
        else if (choice < 82) { if (this.sent.length > 0) { this.server.apply(this.sent[this.random(this.sent.length)]); } }
        else if (choice < 86) { this.store(); }
        else if (choice < 88) { this.kill(); }
        else if (choice < 95) { this.writeElsewhere(); }
        else if (choice < 97) { this.changePermission(); }
        else if (choice === 97) { this.writeElsewhere(true); this.server.compact(); this.count("compactions"); }
        else if (choice === 98) { this.backup = this.server.backup(); }
        else { this.restore(); }
        this.checkOwn();
    }

    fields() {
        const fields = {};
        for (const name of ["title", "taskDescription", "dueDate"]) { if (this.random(2)) { fields[name] = this.random(20); } }
        return fields;
    }

    act() {
        const operations = ["put", "patch", "delete"];
        if (this.random(10) < 6) {
            const ids = [...this.ownObjects().keys()];
            const id = ids.length > 0 && (ids.length > 2 || this.random(2)) ? ids[this.random(ids.length)] : null;
            if (!id) { this.enqueue("put", own, idOf(1_000 + this.made.length), this.fields()); return; }
            const isRejected = this.random(8) === 0;
            const operation = isRejected ? "patch" : ids.length > 5 ? "delete" : operations[this.random(2)];
            this.enqueue(operation, own, id, isRejected ? { ...this.fields(), title: -1 } : this.fields());
        } else {
            this.enqueue(operations[this.random(3)], this.random(2) ? shared : gained, idOf(100 + this.random(12)), this.fields());
        }
    }

    enqueue(operation, realm, id, fields) {
        const mutation = { realm, operation, kind: "FieldTask", id, fields: operation === "delete" ? undefined : fields };
        const key = `${this.made.length} ${this.random(1_000_000_000)}`;
        this.made.push({ ...mutation, key, isRejected: false });
        this.state.enqueue({ ...mutation, key });
        this.count("mutations");
    }

    /** The person's own objects, which only this device changes. */
    ownObjects() {
        const objects = new Map();
        for (const item of this.made) {
            if (item.realm !== own || item.isRejected) { continue; }
            const fields = fieldsAfter(item, objects.get(item.id) ?? null);
            if (fields) { objects.set(item.id, fields); } else { objects.delete(item.id); }
        }
        return objects;
    }

    openStream() {
        const body = this.state.syncRequest({ realmCountMax: [1, 2, 3, 3, 3, 3, 3, 3][this.random(8)] });
        this.stream = new Stream(this.server, body.realms);
    }

    read() {
        if (!this.stream || this.stream.isEnded) { this.openStream(); }
        for (let count = 1 + this.random(4); count > 0; count -= 1) {
            const line = this.stream.next(this.server) ?? this.stream.keepalive(this.server);
            if (!line) { return; }
            this.take(line);
        }
    }

    copy() {
        const contents = [...this.state.copy.realms].sort().map(([path, { content }]) => [path, new Map(
            [...content.values()].map(({ id, position, fields }) => [id, { position, fields }]))]);
        return new Map(contents);
    }

    take({ line, contents }) {
        const before = this.copy();
        this.state.takeLine(line);
        this.count("lines");
        const filled = (map) => new Map([...map].filter(([, content]) => content.size > 0)
            .map(([path, content]) => [path, new Map([...content].sort())]).sort());
        if (contents) { this.count("checkpoints"); }
        if (line.closed) { before.delete(line.closed.realm); }
        assert.deepEqual(filled(this.copy()), filled(contents ?? before), "the copy is a consistent checkpoint");
    }

    send() {
        const request = this.state.nextRequest(1 + this.random(5));
        if (!request) { return; }
        this.store();
        this.sent = [...this.sent.slice(-20), request];
        switch (this.random(6)) {
            case 0: this.count("requests lost"); break;
            case 1: this.server.apply(request); this.count("responses lost"); break;
            case 2: this.late = { request, response: this.server.apply(request) }; break;
            case 3: this.server.apply(request); this.receive(this.server.apply(request), request); break;
            default: this.receive(this.server.apply(request), request);
        }
    }

    receive(response, request) {
        const update = this.state.takeResponse(response, request, idOf(2));
        if (!response.outcomes) { this.count("gaps"); }
        for (const item of update.answers) {
            const made = this.made[item.sequence - 1];
            assert.ok(made, `mutation ${item.sequence} was never made`);
            if (item.outcome.rejected) { made.isRejected = true; this.count("rejected"); }
        }
        assert.equal(this.state.queue.clientId, clientId, "the client id stays");
        assert.equal(update.lostCount, 0);
    }

    receiveLate() {
        if (!this.late) { return; }
        const { response, request } = this.late;
        this.late = null;
        this.receive(response, request);
        this.count("late responses");
    }

    kill() {
        this.stream = null;
        this.late = null;
        this.state = DeviceState.fromJSON(JSON.parse(this.stored.state));
        this.made = structuredClone(this.stored.made);
        assert.deepEqual(JSON.parse(JSON.stringify(this.state)), JSON.parse(this.stored.state), "the state is stored");
        this.count("kills");
    }

    writeElsewhere(isDelete = this.random(3) === 0) {
        this.server.write(this.random(2) ? shared : gained, idOf(100 + this.random(12)), isDelete ? null : this.fields());
    }

    changePermission() {
        if (!this.server.permitted.delete(gained)) { this.server.permitted.add(gained); }
        this.count("permissions");
    }

    restore() {
        if (!this.backup || this.random(3) > 0) { return; }
        this.server.restore(this.backup);
        this.isDisturbed = true;
        this.sent = [];
        this.count("restores");
    }

    /** The person's changes of their own objects are always displayed. */
    checkOwn() {
        if (this.isDisturbed) { return; }
        const objects = this.ownObjects();
        for (const [id, fields] of objects) {
            assert.deepEqual(this.state.object(own, "FieldTask", id)?.fields, fields, `${id} is displayed`);
        }
    }

    /** Runs without faults until nothing is left to do; then compares everything. */
    rest() {
        this.late = null;
        for (let count = 0; count < 10_000; count += 1) {
            if (!this.stream || this.stream.isEnded) { this.openStream(); }
            const line = this.stream.next(this.server);
            if (line) { this.take(line); continue; }
            const request = this.state.nextRequest();
            if (request) { this.receive(this.server.apply(request), request); continue; }
            if (this.stream.isEnded) { continue; }
            const keepalive = this.stream.keepalive(this.server);
            if (keepalive) { this.take(keepalive); }
            this.store();
            this.checkIdle();
            return;
        }
        assert.fail("the device does not become idle");
    }

    checkIdle() {
        this.isDisturbed = false;
        this.count("idle");
        assert.deepEqual(this.server.processed, this.made.map(({ key }) => key), "processed once and in order");
        const { history, waiting } = this.state.queue;
        assert.deepEqual([...history, ...waiting].map(({ outcome }) => outcome), this.server.results);
        assert.deepEqual(new Set(this.state.copy.realms.keys()), this.server.permitted);
        for (const path of this.server.permitted) {
            const shown = this.state.contents(path).map(({ id, position, fields }) => [id, { position, fields }]).sort();
            assert.deepEqual(shown, [...this.server.content(path)].sort(), `${path} is displayed`);
        }
        assert.equal(this.state.pending.size, 0);
    }

    /** Restores a backup while the device has nothing to send. Every second time only the last result is lost. */
    restoreIdle() {
        if (this.random(2)) {
            const recent = this.server.backup();
            this.act();
            this.rest();
            this.server.restore(recent);
            this.writeElsewhere();
            this.count("last results lost");
        } else if (this.backup) {
            this.server.restore(this.backup);
        } else {
            return;
        }
        this.isDisturbed = true;
        this.sent = [];
        this.rest();
    }
}

for (const seed of seeds) {
    test(`simulated device converges, seed ${seed}`, () => {
        const random = generator(seed);
        const counts = {};
        for (let number = 1; number <= 15; number += 1) {
            const phone = new Phone(random(4_000_000_000));
            for (let step = 1; step <= 600; step += 1) {
                try {
                    phone.step();
                    if (step % 120 === 0) { phone.rest(); phone.restoreIdle(); }
                } catch (error) {
                    error.message = `seed ${seed}, phone ${number}, step ${step}: ${error.message}`;
                    throw error;
                }
            }
            for (const [event, count] of Object.entries(phone.counts)) { counts[event] = (counts[event] ?? 0) + count; }
        }
        const least = {
            idle: 75, checkpoints: 500, gaps: 5, restores: 5, compactions: 20, kills: 80, "late responses": 10,
            permissions: 60, cuts: 100, rejected: 40, "last results lost": 15,
        };
        for (const [event, count] of Object.entries(least)) { assert.ok(counts[event] >= count, `${event}: ${counts[event]}`); }
    });
}
