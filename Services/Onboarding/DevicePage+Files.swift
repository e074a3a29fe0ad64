import HTTPServer
import Model

/// What the device page consists of.
extension DevicePage {
    static let html = """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>Fieldpost device</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <link rel="stylesheet" href="/device/page.css"><script src="/device/page.js" defer></script></head>
        <body><main><h1>A device</h1>
        <form id="start"><label>E-mail address <input id="email" type="email" required></label>
        <button id="begin" type="submit" disabled>Begin</button></form>
        <ol>
        <li>Session: <span id="session">none</span></li>
        <li>Login: <a id="login" target="_blank" rel="noopener" hidden>open the login page</a></li>
        <li>Token: <span id="token">waiting</span></li>
        <li>Realm: <span id="realm">waiting</span></li>
        <li>Data: <span id="data">waiting</span></li>
        </ol>
        <p id="problem" role="alert"></p>
        <h2>What is in the realm</h2>
        <p id="live">nothing yet</p>
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
        const say = (id, text) => { element(id).textContent = text; };
        let session = null, token = null, isDone = false;

        element("begin").disabled = false;
        element("start").addEventListener("submit", async (event) => {
            event.preventDefault();
            say("problem", "");
            const answer = await fetch("/register_device", {
                method: "POST", headers: { "Content-Type": "application/json" },
                body: JSON.stringify({ email: element("email").value }),
            });
            const body = await answer.json();
            if (!answer.ok) { say("problem", body.detail || body.title); return; }
            session = body.session_id;
            say("session", "registered");
            connect(body.login_url);
        });

        const offer = (url) => {
            element("login").href = url;
            element("login").hidden = false;
        };

        // First the socket, then the login: nothing that happens is missed.
        function connect(loginURL) {
            const scheme = location.protocol === "https:" ? "wss:" : "ws:";
            const socket = new WebSocket(`${scheme}//${location.host}/sessions/${session}`);
            let isOpen = false;
            socket.onopen = () => {
                isOpen = true;
                say("session", "waiting for events");
                if (loginURL) { offer(loginURL); }
            };
            socket.onmessage = (message) => {
                const event = JSON.parse(message.data);
                take(event);
                socket.send(JSON.stringify({ acknowledge: event.id }));
            };
            socket.onclose = async (event) => {
                say("session", `closed (${event.code})`);
                // A handshake that is refused does not say why; the session's address does.
                if (!isOpen && (await fetch(`/sessions/${session}`)).status === 404) {
                    say("session", "expired");
                    return;
                }
                if (!isDone && event.code !== 1000 && event.code < 4000) { setTimeout(() => connect(null), 1000); }
            };
        }

        function take(event) {
            switch (event.event) {
            case "token":
                token = event.payload.access_token;
                say("token", `received, good until ${event.payload.expires_at}`);
                say("problem", "");
                element("login").hidden = true;
                break;
            case "realm initialized": say("realm", event.payload.path); break;
            case "data ready": say("data", "ready"); break;
            case "error":
                say("problem", event.payload.message);
                if (event.payload.login_url) { offer(event.payload.login_url); }
                break;
            }
            if (token && element("data").textContent === "ready" && !isDone) { isDone = true; follow(); }
        }

        // The device API's stream: one JSON object a line.
        async function follow() {
            const answer = await fetch("/device/sync", {
                method: "POST", headers: { Authorization: `Bearer ${token}` },
            });
            if (!answer.ok) { say("live", `the device API answers ${answer.status}`); return; }
            const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
            let rest = "";
            for (;;) {
                const { value, done } = await reader.read();
                if (done) { break; }
                const lines = (rest + value).split("\n");
                rest = lines.pop();
                for (const line of lines.filter((text) => text)) { show(JSON.parse(line)); }
            }
            say("live", "the stream has ended");
        }

        function show(line) {
            if (line.checkpoint) { say("live", `live, at position ${line.checkpoint.position}`); }
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
