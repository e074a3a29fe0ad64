/** Sharing of the own position: off until the person turns it on, and at most one position per 30 seconds. */

import { isPositionDue } from "../core/tasks.js";

let watch;
let written;
let problem;
let waiting;
const listeners = new Set();

/** Whether the position is being shared, and the last problem of the device's location service. */
export function sharing() {
    return { isOn: watch !== undefined, problem };
}

/** Calls `listener` after each change of the sharing. Returns the function that ends it. */
export function onSharing(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

function changed() {
    for (const listener of listeners) listener();
}

/** Starts to write the own `Location` while the app is open. */
export function startSharing(app) {
    if (watch !== undefined || !("geolocation" in navigator)) return;
    problem = undefined;
    const { email, person } = app.me;
    const write = (coords, timestamp) => {
        waiting = undefined;
        if (app.me.person !== person) return stopSharing();
        written = Date.now();
        const fields = { latitude: coords.latitude, longitude: coords.longitude, accuracy: coords.accuracy ?? null,
            timestamp: new Date(timestamp + (app.fieldpost.status.clockOffset ?? 0)).toISOString() };
        app.fieldpost.put(`/users/${email}`, "Location", person, fields).catch((error) => {
            problem = error.code ?? "failed";
            changed();
        });
    };
    watch = navigator.geolocation.watchPosition(({ coords, timestamp }) => {
        problem = undefined;
        changed();
        clearTimeout(waiting);
        waiting = undefined;
        if (isPositionDue(written, Date.now())) write(coords, timestamp);
        else waiting = setTimeout(() => write(coords, timestamp), Math.max(0, written + 30_000 - Date.now()));
    }, ({ code }) => {
        problem = code === 1 ? "denied" : "unavailable";
        if (code === 1) stopSharing(); else changed();
    }, { enableHighAccuracy: false, maximumAge: 15_000, timeout: 60_000 });
    changed();
}

/** Stops the sharing. The last position remains until it is removed. */
export function stopSharing() {
    if (watch !== undefined) navigator.geolocation.clearWatch(watch);
    clearTimeout(waiting);
    watch = undefined;
    waiting = undefined;
    written = undefined;
    changed();
}
