/**
 * One device and a naive server in random steps, like `Tests/DeviceClientTests/DeviceSimulationTests.swift`: streams
 * are interrupted, requests and responses are lost, delayed and repeated, the device is killed and resumes from its
 * store, whose log is compacted meanwhile, and the database is compacted and restored. Run other seeds with `SEEDS=1,2,3 node --test`.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { DeviceState, fieldsAfter } from "../../Services/Onboarding/App/fieldpost.js";
import { gained, own, Server, shared, Stream } from "./server.mjs";
import { StateStore } from "./state-store.mjs";

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

/** Returns a state as a value to compare. */
function describe({ copy, queue }) {
    const realms = [...copy.realms].map(([path, { content, staged, ...realm }]) => (
        { path, ...realm, content: [...content].sort(), staged: [...staged].sort() }));
    const { clientId: client, nextSequence, waiting, history, resetCount, queriedResetCount } = queue;
    return JSON.stringify({
        realms: realms.sort((left, right) => (left.path < right.path ? -1 : 1)), position: copy.position,
        queue: { client, nextSequence, waiting, history, resetCount, queriedResetCount },
    });
}

/** A person with one device. */
class Phone {
    server = new Server();
    state = new DeviceState(clientId);
    disk = new StateStore();
    compaction = null;
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
    store() {
        this.disk.save(this.state);
        this.stored = { state: describe(this.state), made: JSON.stringify(this.made) };
    }

    takeLine(line) { return this.state.takeLine(line, JSON.stringify(line)); }

    async step() {
        const choice = this.random(100);
        if (choice < 18) { this.act(); }
        else if (choice < 60) { this.read(); }
        else if (choice < 63) { this.stream = null; this.count("cuts"); }
        else if (choice < 78) { this.send(); }
        else if (choice < 80) { this.receiveLate(); }
        else if (choice < 82) { if (this.sent.length > 0) { this.server.apply(this.sent[this.random(this.sent.length)]); } }
        else if (choice < 86) { this.store(); }
        else if (choice < 88) { await this.kill(); }
        else if (choice < 95) { this.writeElsewhere(); }
        else if (choice < 97) { this.changePermission(); }
        else if (choice === 97) { this.writeElsewhere(true); this.server.compact(); this.count("compactions"); }
        else if (choice === 98) { this.backup = this.server.backup(); }
        else { this.restore(); }
        if (this.random(10) === 0) { await this.compact(); }
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
        this.takeLine(line);
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

    async kill() {
        this.stream = null;
        this.late = null;
        this.compaction = null;
        this.state = await this.disk.load();
        this.made = JSON.parse(this.stored.made);
        assert.deepEqual(JSON.parse(describe(this.state)), JSON.parse(this.stored.state), "the state is stored");
        this.count("kills");
    }

    /** Runs one step of a compaction of the log; the device may do anything before the next one. */
    async compact() {
        this.store();
        if (!this.compaction) {
            const realms = [...this.state.copy.realms].map(([path, { settled }]) => ({ path, upTo: settled, after: 0 }));
            this.compaction = { realms };
        }
        const [next] = this.compaction.realms;
        if (!next) { this.compaction = null; return; }
        const step = await this.disk.compact(this.state, next);
        if (step.isChanged) { this.count("merged pages"); }
        this.store();
        next.after = step.pages.at(-1);
        if (next.after === undefined) { this.compaction.realms.shift(); }
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
        this.disk.check();
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
    test(`simulated device converges, seed ${seed}`, async () => {
        const random = generator(seed);
        const counts = {};
        for (let number = 1; number <= 15; number += 1) {
            const phone = new Phone(random(4_000_000_000));
            for (let step = 1; step <= 600; step += 1) {
                try {
                    await phone.step();
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
            permissions: 60, cuts: 100, "merged pages": 50, rejected: 40, "last results lost": 15,
        };
        for (const [event, count] of Object.entries(least)) { assert.ok(counts[event] >= count, `${event}: ${counts[event]}`); }
    });
}
