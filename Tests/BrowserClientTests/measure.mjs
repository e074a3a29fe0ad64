/**
 * Measures `fieldpost.js` and the field app in a headless Chromium.
 *
 *     node --experimental-websocket measure.mjs APP GATEWAY IDENTITY ENVIRONMENT MEASUREMENT EMAIL
 *
 * APP is the address of the field app, such as `http://127.0.0.1:18083/app/`. GATEWAY is the device API as the app's
 * page reaches it; `-` is the app's origin. IDENTITY is the sandbox's identity provider. Measurements:
 *
 * - `sync`: first download of the person's realms, compared with reading the same stream and with parsing it
 * - `paint`: warm start of each view, until it displays content
 * - `scroll`: longest task while the task list is scrolled
 * - `heap`: heap before and after 3,600 changes of the person's notes, an hour of one per second
 *
 * The data of the person are prepared before: 100,000 notes, or 10,000 tasks and 5,000 entries.
 */
import { randomUUID } from "node:crypto";
import { Chromium } from "./chromium.mjs";

const [app, gatewayArgument, identity, environment, measurement, email] = process.argv.slice(2);
if (!email) {
    console.error("measure.mjs APP GATEWAY IDENTITY ENVIRONMENT sync|paint|scroll|heap EMAIL");
    process.exit(2);
}
const { origin } = new URL(app);
const gateway = gatewayArgument === "-" ? origin : gatewayArgument;
const views = ["time", "tasks", "team", "shared", "defects", "notices", "sync"];
const seconds = (milliseconds) => `${(milliseconds / 1_000).toFixed(2)} s`;

async function post(url, body, headers = {}) {
    const response = await fetch(url, {
        method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers },
    });
    if (!response.ok) { throw new Error(`${url}: ${response.status} ${await response.text()}`); }
    return response.json();
}

async function tokenOf() {
    return (await post(`${identity}/sandbox/token`, { email, environment })).access_token;
}

/** Opens a page of the app's origin without the app, so that only the measurement uses the store. */
function openBlank(chromium) {
    return chromium.open(`${app}config.json`);
}

/** Opens a store in the page, signs in, and waits until the copy is complete and stored. */
async function download(page, name) {
    const token = await tokenOf();
    return page.value(`(async () => {
        const { Fieldpost } = await import(${JSON.stringify(new URL("fieldpost.js", app).href)});
        const begin = performance.now();
        const fieldpost = await Fieldpost.open({ gateway: ${JSON.stringify(gateway)}, ${name} });
        globalThis.fieldpost = fieldpost;
        const isLive = () => fieldpost.status.connection === "live" && fieldpost.status.position > 0;
        const live = new Promise((resolve) => {
            const check = () => { if (isLive()) { resolve(); } };
            fieldpost.addEventListener("status", check);
            check();
        });
        await fieldpost.signInWithToken({ accessToken: ${JSON.stringify(token)}, expiresAt: Date.now() + 3e6 });
        await live;
        const milliseconds = performance.now() - begin;
        return { milliseconds, count: fieldpost.status.realms.reduce((sum, realm) => sum + realm.count, 0) };
    })()`);
}

/** Reads the stream up to its end, and parses its lines if `parses`. */
async function read(page, parses) {
    const token = await tokenOf();
    return page.value(`(async () => {
        const begin = performance.now();
        const response = await fetch(${JSON.stringify(`${gateway}/v1/sync`)}, {
            method: "POST", body: "{}", cache: "no-store",
            headers: { "Authorization": "Bearer ${token}", "Content-Type": "application/json" },
        });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "", count = 0, size = 0;
        for (;;) {
            const { value, done } = await reader.read();
            if (done) { break; }
            size += value.length;
            const lines = (rest + value).split("\\n");
            rest = lines.pop();
            for (const line of lines) {
                if (line && ${parses}) { count += JSON.parse(line).objects?.list.length ?? 0; }
            }
        }
        return { milliseconds: performance.now() - begin, count, size };
    })()`);
}

async function measureSync(chromium) {
    const page = await openBlank(chromium);
    await read(page, false);
    const rounds = [];
    for (let round = 1; round <= 3; round += 1) {
        const [bytes, parsed] = [await read(page, false), await read(page, true)];
        const stored = await download(page, `name: "measure-${round}"`);
        await page.value("fieldpost.close()");
        rounds.push({ bytes, parsed, stored });
        const rate = Math.round(stored.count / stored.milliseconds * 1_000);
        console.log(`round ${round}: ${stored.count} objects, ${(bytes.size / 1e6).toFixed(1)} MB: read `
            + `${seconds(bytes.milliseconds)}, read and parsed ${seconds(parsed.milliseconds)}, stored `
            + `${seconds(stored.milliseconds)} (${rate} objects/s)`);
    }
    const best = (name) => Math.min(...rounds.map((round) => round[name].milliseconds));
    console.log(`share of reading: ${(best("bytes") / best("stored")).toFixed(2)}, `
        + `of reading and parsing: ${(best("parsed") / best("stored")).toFixed(2)}`);
}

/** Downloads the person's realms into the app's own store. */
async function prepareApp(chromium) {
    const page = await openBlank(chromium);
    const { milliseconds, count } = await download(page, "name: undefined");
    console.log(`${count} objects in ${seconds(milliseconds)}`);
    await page.value("fieldpost.close()");
    await page.send("Performance.enable", { timeDomain: "threadTicks" });
    return page;
}

/** Runs in each document: notes when the main element first displays content instead of placeholders. */
const contentObserver = `(() => {
    const tasks = globalThis.longTasks = [];
    new PerformanceObserver((list) => {
        for (const { startTime, duration } of list.getEntries()) { tasks.push({ startTime, duration }); }
    }).observe({ type: "longtask", buffered: true });
    const check = () => {
        const main = document.getElementById("main");
        const isShown = main?.innerText.trim().length > 20 && !main.querySelector(".skeleton, [aria-busy=true]");
        if (isShown && globalThis.shownAt === undefined) { globalThis.shownAt = performance.now(); }
        if (globalThis.shownAt === undefined) { requestAnimationFrame(check); }
    };
    requestAnimationFrame(check);
})()`;

/** Returns the processor time of the page's main thread in milliseconds, which other processes do not lengthen. */
async function processorTime(page) {
    const { metrics } = await page.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value * 1_000;
}

/** Opens a view, and returns the times until it displays content. */
async function openView(page, view) {
    await page.go("about:blank");
    const before = await processorTime(page);
    await page.go(`${app}#/${view}`);
    await page.wait("globalThis.shownAt !== undefined");
    const after = await processorTime(page);
    // A navigation may begin in another process.
    const processor = after < before ? after : after - before;
    return { time: Math.round(await page.value("globalThis.shownAt")), processor: Math.round(processor) };
}

async function measurePaint(chromium) {
    const page = await prepareApp(chromium);
    await page.send("Page.addScriptToEvaluateOnNewDocument", { source: contentObserver });
    await openView(page, "sync");
    for (const view of views) {
        const times = [];
        for (let round = 0; round < 3; round += 1) {
            times.push(await openView(page, view));
        }
        const title = await page.value("document.querySelector('#main h1')?.textContent ?? ''");
        const listed = times.map(({ time, processor }) => `${time} ms (processor ${processor} ms)`).join(", ");
        console.log(`${view} (${title}): content after ${listed}`);
    }
}

async function measureScroll(chromium) {
    const page = await prepareApp(chromium);
    await page.send("Page.addScriptToEvaluateOnNewDocument", { source: contentObserver });
    for (const view of ["tasks/all", "tasks", "time"]) {
        await openView(page, view);
        const found = await page.value(`(async () => {
            const frame = () => new Promise(requestAnimationFrame);
            for (let count = 0; count < 60; count += 1) { await frame(); }
            const elements = [...document.querySelectorAll("#main, #main *"), document.scrollingElement];
            const scrolled = elements.filter((one) => one.scrollHeight > one.clientHeight + 50
                && /auto|scroll/.test(getComputedStyle(one).overflowY) || one === document.scrollingElement)
                .sort((a, b) => b.scrollHeight - a.scrollHeight)[0];
            longTasks.length = 0;
            const begin = performance.now();
            let longestFrame = 0, last = begin;
            for (let count = 0; count < 300; count += 1) {
                scrolled.scrollTop += count % 60 === 59 ? 20_000 : 400;
                await frame();
                longestFrame = Math.max(longestFrame, performance.now() - last);
                last = performance.now();
            }
            const tasks = longTasks.filter((task) => task.startTime >= begin).map((task) => task.duration);
            return {
                height: scrolled.scrollHeight, top: scrolled.scrollTop, tasks: tasks.length, longestFrame,
                longest: Math.max(0, ...tasks),
            };
        })()`);
        const { height, tasks, longest, longestFrame } = found;
        console.log(`${view}: list of ${height} px, ${tasks} long tasks, longest ${Math.round(longest)} ms, `
            + `longest frame ${Math.round(longestFrame)} ms`);
    }
}

async function measureHeap(chromium) {
    const page = await openBlank(chromium);
    await download(page, "name: \"measure-heap\"");
    const token = await tokenOf();
    const clientId = randomUUID();
    const ids = Array.from({ length: 100 }, () => randomUUID());
    let sequence = 0, count = 0;
    const change = async (text) => {
        const mutations = ids.slice(0, 10).map(() => {
            const id = ids[count % ids.length];
            count += 1;
            sequence += 1;
            const fields = { title: `${text} ${sequence}`, body: "Measure the hall." };
            return { sequence, realm: `/users/${email}`, op: "put", kind: "Note", id, fields };
        });
        const headers = { Authorization: `Bearer ${token}` };
        const { results } = await post(`${gateway}/v1/mutations`, { clientId, mutations }, headers);
        const { accepted } = results.at(-1);
        await page.wait(`fieldpost.status.position >= ${accepted.position}`);
    };
    await page.value("(fieldpost.watch('Note', null, (notes) => { globalThis.noteCount = notes.length; }), 1)");
    for (let round = 0; round < 20; round += 1) { await change("before"); }
    console.log(`heap before: ${(await page.heapBytes() / 1e6).toFixed(2)} MB`);
    for (let quarter = 1; quarter <= 4; quarter += 1) {
        for (let round = 0; round < 90; round += 1) { await change("during"); }
        console.log(`after ${quarter * 900} changes: ${(await page.heapBytes() / 1e6).toFixed(2)} MB`);
    }
}

const chromium = await Chromium.start();
try {
    const measures = { sync: measureSync, paint: measurePaint, scroll: measureScroll, heap: measureHeap };
    await measures[measurement](chromium);
} finally {
    await chromium.end();
}
process.exit(0);
