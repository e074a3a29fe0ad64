import HTTPServer
import Model

/// The HTML, style sheet and script of the device page.
extension DevicePage {
    static let html = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Fieldpost device</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <link rel="stylesheet" href="/device/page.css"><script src="/device/page.js" defer></script></head>
        <body><main><h1>Device simulator</h1>
        <form id="start"><label>E-mail address <input id="email" type="email" required></label>
        <button id="begin" type="submit" disabled>Register</button></form>
        <ol>
        <li>Session: <span id="session">none</span></li>
        <li>Login: <a id="login" target="_blank" rel="noopener" hidden>open the login page</a></li>
        <li>Token: <span id="token">waiting</span></li>
        <li>Realm: <span id="realm">waiting</span></li>
        <li>Data: <span id="data">waiting</span></li>
        </ol>
        <p id="problem" role="alert"></p>
        <h2>Realm objects</h2>
        <p id="live">no objects yet</p>
        <table><thead><tr><th>Realm</th><th>Kind</th><th>Position</th><th>Fields</th></tr></thead>
        <tbody id="objects"></tbody></table>
        </main></body></html>

        """

    static let style = """
        body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
        table { border-collapse: collapse; font-size: 0.8rem; }
        td, th { border: 1px solid #ccc; padding: 0.2rem 0.5rem; text-align: left; overflow-wrap: anywhere; }
        #problem { color: #a00; }

        """

    static let script = #"""
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

        """#
}
