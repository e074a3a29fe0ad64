import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import { DeviceState, readResponse } from "../../Services/Onboarding/App/fieldpost.js";
import { StateStore } from "./state-store.mjs";

const folder = new URL("../../examples/sync/", import.meta.url);
const defaultClientID = "00000000-0000-4000-8000-0000000000ff";

for (const name of fs.readdirSync(folder).filter((file) => file.endsWith(".json")).sort()) {
    const transcript = JSON.parse(fs.readFileSync(new URL(name, folder), "utf8"));
    test(`${name}: ${transcript.title}`, async () => {
        const { clientId, historyCountMin, steps } = transcript;
        const run = { state: new DeviceState(clientId, historyCountMin), store: new StateStore(), requests: [] };
        for (const [index, step] of steps.entries()) {
            try {
                await perform(step, run);
                check(step.expect ?? {}, run.state);
            } catch (error) {
                error.message = `step ${index + 1}: ${error.message}`;
                throw error;
            }
        }
    });
}

async function perform(step, run) {
    const { state, requests } = run;
    if (step.enqueue) {
        const mutation = structuredClone(step.enqueue);
        if (step.fill) { mutation.fields[step.fill.field] = "a".repeat(step.fill.length); }
        const enqueue = () => state.enqueue(mutation);
        if (step.isInvalid) { assert.throws(enqueue); return; }
        for (let count = 0; count < (step.times ?? 1); count += 1) { enqueue(); }
    } else if (step.syncRequest) {
        assert.deepEqual(state.syncRequest(step.syncRequest), step.body);
    } else if (step.line) {
        state.takeLine(step.line, JSON.stringify(step.line));
    } else if (step.nextRequest) {
        const request = state.nextRequest(step.nextRequest.countMax);
        if (request) { requests.push(request); }
        if (step.count !== undefined) { assert.equal(request.mutations.length, step.count); }
        if (step.body !== undefined) { assert.deepEqual(request && JSON.parse(request.body), step.body); }
    } else if (step.response) {
        const request = requests.at(step.to ?? -1);
        const response = readResponse(step.response.status, step.response.body);
        const update = state.takeResponse(response, request, step.newClientId ?? defaultClientID);
        if (step.madeProgress !== undefined) { assert.equal(update.madeProgress, step.madeProgress); }
        if (step.lostCount !== undefined) { assert.equal(update.lostCount, step.lostCount); }
        if (step.answers) {
            assert.deepEqual(update.answers.map(({ sequence, outcome }) => ({ sequence, ...outcome })), step.answers);
        }
    } else if (step.restart) {
        run.store.save(state);
        run.state = await run.store.load(state.queue.historyCountMin);
    } else {
        assert.fail("unknown step");
    }
}

const ordered = (objects) => objects
    .map(({ realm, kind, id, position, fields }) => ({ realm, kind, id, position, fields }))
    .sort((left, right) => (`${left.realm} ${left.kind} ${left.id}` < `${right.realm} ${right.kind} ${right.id}` ? -1 : 1));

function check(expected, state) {
    if (expected.shown) { assert.deepEqual(ordered(state.contents()), ordered(expected.shown)); }
    if (expected.position !== undefined) { assert.equal(state.position, expected.position); }
    if (expected.cursors) {
        const cursors = [...state.copy.realms].map(([path, { cursor }]) => [path, cursor]);
        assert.deepEqual(Object.fromEntries(cursors), expected.cursors);
    }
    if (expected.waiting) { assert.deepEqual(state.queue.waiting.map(({ sequence }) => sequence), expected.waiting); }
    if (expected.isInDoubt !== undefined) { assert.equal(state.queue.isInDoubt, expected.isInDoubt); }
    if (expected.clientId) { assert.equal(state.queue.clientId, expected.clientId); }
    if (expected.unconfirmed) {
        const unconfirmed = state.contents()
            .filter(({ realm, kind, id }) => state.hasUnconfirmedChanges(realm, kind, id)).map(({ id }) => id);
        assert.deepEqual(unconfirmed, expected.unconfirmed.map(({ id }) => id));
    }
}
