/** A headless Chromium, controlled by the Chrome DevTools Protocol over a WebSocket. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Chromium {
    #process;
    #folder;
    #socket;
    #lastID = 0;
    #pending = new Map();
    #listeners = new Map();

    /** Starts the browser with a profile of its own. */
    static async start() {
        const chromium = new Chromium();
        chromium.#folder = mkdtempSync(join(tmpdir(), "fieldpost-chromium-"));
        const options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--remote-debugging-port=0", "--enable-precise-memory-info", `--user-data-dir=${chromium.#folder}`,
        ];
        chromium.#process = spawn("chromium", [...options, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
        const url = await new Promise((resolve, reject) => {
            let text = "";
            chromium.#process.stderr.on("data", (data) => {
                text += data;
                const match = /listening on (ws:\S+)/.exec(text);
                if (match) { resolve(match[1]); }
            });
            chromium.#process.on("exit", () => reject(new Error(`chromium exited: ${text}`)));
        });
        chromium.#socket = new WebSocket(url);
        await new Promise((resolve, reject) => {
            chromium.#socket.onopen = resolve;
            chromium.#socket.onerror = () => reject(new Error("the browser is unreachable"));
        });
        chromium.#socket.onmessage = (event) => chromium.#take(JSON.parse(event.data));
        return chromium;
    }

    #take(message) {
        if (message.id === undefined) {
            this.#listeners.get(`${message.sessionId} ${message.method}`)?.(message.params);
            return;
        }
        const { resolve, reject, method } = this.#pending.get(message.id);
        this.#pending.delete(message.id);
        if (message.error) {
            reject(new Error(`${method}: ${message.error.message}`));
        } else {
            resolve(message.result);
        }
    }

    send(method, params = {}, sessionId = undefined) {
        this.#lastID += 1;
        const id = this.#lastID;
        this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
        return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject, method }));
    }

    /** Opens a page, and waits until it is loaded. */
    async open(url) {
        const { targetId } = await this.send("Target.createTarget", { url: "about:blank", newWindow: true });
        const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
        const page = new Page(this, targetId, sessionId);
        await page.send("Page.enable");
        await page.send("Runtime.enable");
        await page.send("Network.enable");
        await page.go(url);
        return page;
    }

    listen(page, method, listener) { this.#listeners.set(`${page.session} ${method}`, listener); }

    async end() {
        const isEnded = new Promise((resolve) => this.#process.once("exit", resolve));
        this.#process.kill();
        await isEnded;
        rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
    }
}

export class Page {
    constructor(chromium, target, session) {
        this.chromium = chromium;
        this.target = target;
        this.session = session;
    }

    send(method, params) { return this.chromium.send(method, params, this.session); }

    on(method, listener) { this.chromium.listen(this, method, listener); }

    async go(url) {
        const isLoaded = new Promise((resolve) => this.on("Page.loadEventFired", resolve));
        await this.send("Page.navigate", { url });
        await isLoaded;
    }

    async reload() {
        const isLoaded = new Promise((resolve) => this.on("Page.loadEventFired", resolve));
        await this.send("Page.reload");
        await isLoaded;
    }

    /** Returns the value of an expression, awaited. */
    async value(expression) {
        const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
            expression, awaitPromise: true, returnByValue: true,
        });
        if (exceptionDetails) {
            throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        }
        return result.value;
    }

    /** Waits until an expression is true. */
    async wait(expression, milliseconds = 60_000) {
        const end = Date.now() + milliseconds;
        while (!(await this.value(`(() => { try { return !!(${expression}); } catch { return false; } })()`))) {
            if (Date.now() > end) { throw new Error(`not within ${milliseconds} ms: ${expression}`); }
            await new Promise((resolve) => setTimeout(resolve, 25));
        }
    }

    emulateNetwork(offline) {
        return this.send("Network.emulateNetworkConditions", {
            offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1,
        });
    }

    /** Size of the JavaScript heap in bytes after a garbage collection. */
    async heapBytes() {
        await this.send("HeapProfiler.collectGarbage");
        return (await this.send("Runtime.getHeapUsage")).usedSize;
    }

    /** Closes the page without running its handlers. */
    async close() { await this.chromium.send("Target.closeTarget", { targetId: this.target }); }
}
