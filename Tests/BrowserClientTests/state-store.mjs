import assert from "node:assert/strict";
import { DeviceState } from "../../Services/Onboarding/App/fieldpost.js";

/** A store for a `DeviceState` alone, as `Fieldpost` writes it. Each function is one transaction. */
export class StateStore {
    stores = { realms: new Map(), pages: new Map(), queue: new Map() };
    meta = null;
    transaction = {
        put: (name, object, key) => this.stores[name].set(key, structuredClone(object)),
        remove: (name, key) => this.stores[name].delete(key),
        getAll: async (name, lower = -Infinity, countMax = undefined) => [...this.stores[name]]
            .sort(([left], [right]) => (left < right ? -1 : 1))
            .filter(([key]) => name !== "pages" || key >= lower).slice(0, countMax)
            .map(([, object]) => structuredClone(object)),
    };

    save(state) {
        state.writeCopy(this.transaction);
        state.copy.clean();
        const { history, waiting } = state.queue;
        const items = [...history.map((item) => ({ ...item, isWaiting: false })),
            ...waiting.map((item) => ({ ...item, isWaiting: true }))];
        this.stores.queue = new Map(structuredClone(items.map((item) => [item.sequence, item])));
        this.meta = state.counts;
        this.requestCount = state.queue.requestCount;
    }

    async load(historyCountMin) {
        const state = await DeviceState.read(this.transaction, this.meta, historyCountMin);
        const strip = (items) => items.map(({ isWaiting, ...item }) => item);
        const { history, waiting } = state.queue;
        Object.assign(state.queue, {
            history: strip(history), waiting: strip(waiting), requestCount: this.requestCount,
        });
        state.rebuild();
        return state;
    }

    /** Runs a step of a compaction of a saved state. */
    async compact(state, { path, after, upTo }) {
        const read = async (page) => this.stores.pages.get(page).text;
        const step = await state.copy.compactionStep(path, after, upTo, read);
        if (!step.isChanged) { return step; }
        for (const page of step.pages) { this.stores.pages.delete(page); }
        const number = step.pages.at(-1);
        if (step.text !== null) { this.stores.pages.set(number, { number, text: step.text }); }
        state.copy.applyStep(step);
        return step;
    }

    /** Checks that each page belongs to a realm. */
    check() {
        const paths = [...this.stores.pages.values()].map(({ text }) => JSON.parse(text).objects.realm);
        assert.deepEqual(paths.filter((path) => !this.stores.realms.has(path)), [], "pages of closed realms");
    }
}
