"use strict";
const element = (id) => document.getElementById(id);
const setText = (id, text) => { element(id).textContent = text; };
let session = null, token = null, isDone = false;

element("begin").disabled = false;
element("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    setText("problem", "");
    const response = await fetch("/register_device", {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ email: element("email").value }),
    });
    const body = await response.json();
    if (!response.ok) { setText("problem", body.detail || body.title); return; }
    session = body.session_id;
    setText("session", "registered");
    connect(body.login_url);
});

const offer = (url) => {
    element("login").href = url;
    element("login").hidden = false;
};

// The socket opens before the login is offered, so that no event is missed.
function connect(loginURL) {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/sessions/${session}`);
    let isOpen = false;
    socket.onopen = () => {
        isOpen = true;
        setText("session", "waiting for events");
        if (loginURL) { offer(loginURL); }
    };
    socket.onmessage = (message) => {
        const event = JSON.parse(message.data);
        handle(event);
        socket.send(JSON.stringify({ acknowledge: event.id }));
    };
    socket.onclose = async (event) => {
        setText("session", `closed (${event.code})`);
        // A rejected handshake exposes no reason; a plain request to the session's URL does.
        if (!isOpen && (await fetch(`/sessions/${session}`)).status === 404) {
            setText("session", "expired");
            return;
        }
        if (!isDone && event.code !== 1000 && event.code < 4000) { setTimeout(() => connect(null), 1000); }
    };
}

function handle(event) {
    switch (event.event) {
    case "token":
        token = event.payload.access_token;
        setText("token", `received, valid until ${event.payload.expires_at}`);
        setText("problem", "");
        element("login").hidden = true;
        break;
    case "realm initialized": setText("realm", event.payload.path); break;
    case "data ready": setText("data", "ready"); break;
    case "error":
        setText("problem", event.payload.message);
        if (event.payload.login_url) { offer(event.payload.login_url); }
        break;
    }
    if (token && element("data").textContent === "ready" && !isDone) { isDone = true; follow(); }
}

// The device API's stream has one JSON object per line.
async function follow() {
    const response = await fetch("/device/sync", {
        method: "POST", headers: { Authorization: `Bearer ${token}` },
    });
    if (!response.ok) { setText("live", `the device API returned status ${response.status}`); return; }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
        const { value, done } = await reader.read();
        if (done) { break; }
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines.filter((text) => text)) { show(JSON.parse(line)); }
    }
    setText("live", "the stream has ended");
}

function show(line) {
    if (line.checkpoint) { setText("live", `live, at position ${line.checkpoint.position}`); }
    if (!line.objects) { return; }
    for (const object of line.objects.list) {
        const id = `object-${object.kind}-${object.id}`;
        const old = element(id);
        if (old) { old.remove(); }
        if (object.deleted) { continue; }
        const row = element("objects").insertRow(0);
        row.id = id;
        row.dataset.kind = object.kind;
        const cells = [line.objects.realm, object.kind, object.position, JSON.stringify(object.fields)];
        for (const text of cells) { row.insertCell().textContent = text; }
    }
}
