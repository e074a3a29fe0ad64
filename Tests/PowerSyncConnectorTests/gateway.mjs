/** A small server of uploads, images, tokens and logins, with faults that a test injects. */
import http from "node:http";

const problem = (status, code, members = {}) => ({
    status, body: {
        type: `urn:fieldpost:problem:${code}`, title: "Problem", status, detail: `Detail of ${code}.`, ...members,
    },
});

/** The gateway and onboarding of an installation. */
export class Gateway {
    /** Client id → its results by number, and the next expected number. */
    clients = new Map();
    /** Applied entries in order, and their number of objects. */
    applied = [];
    /** Paths of the received requests, and the bodies of uploads with entries. */
    requests = []; uploads = [];
    images = new Map();
    bytesMax = 1_048_576;
    /** Path → the responses of its next requests. */
    #faults = new Map();
    isCutAfterCommit = false;
    /** Base URL of the installation to which this one has moved. */
    movedTo = null;
    tokens = new Map();
    /** The credential that renews the token, and the one before it, which is accepted until the next is used. */
    credential = "credential-0"; spent = null; renewals = 0; isRevoked = false;
    lifetime = 3_600_000;
    /** Number of the next renewals whose responses are lost. */
    cutRenewalCount = 0;

    /** Returns the rejection of an entry, or `null`. A test replaces it. */
    rejectionOf = () => null;

    async start() {
        this.#server = http.createServer((request, response) => { this.#serve(request, response); });
        await new Promise((resolve) => { this.#server.listen(0, "127.0.0.1", resolve); });
        this.url = `http://127.0.0.1:${this.#server.address().port}`;
        return this;
    }
    #server;

    stop() { this.#server.closeAllConnections(); this.#server.close(); }

    /** Returns a valid token and the time of its end. */
    issue() {
        const token = `token-${this.tokens.size}-${this.url}`;
        this.tokens.set(token, true);
        return { access_token: token, expires_at: new Date(Date.now() + this.lifetime).toISOString() };
    }

    /** Answers the next request of a path with these responses. */
    fail(path, ...responses) { this.#faults.set(path, responses); }

    refuse(token) { this.tokens.set(token, false); }

    async #serve(request, response) {
        const chunks = [];
        for await (const chunk of request) { chunks.push(chunk); }
        const body = Buffer.concat(chunks);
        const path = request.url;
        this.requests.push(`${request.method} ${path}`);
        const fault = this.#faults.get(path)?.shift();
        const { status, body: content, isCut } = fault ?? this.#answer(request, path, body);
        if (isCut) { request.socket.destroy(); return; }
        response.writeHead(status, { "Content-Type": Buffer.isBuffer(content) ? "image/png" : "application/json" });
        response.end(Buffer.isBuffer(content) ? content : content && JSON.stringify(content));
    }

    #answer(request, path, body) {
        const moved = problem(421, "environment-moved", { baseURL: this.movedTo });
        if (path === "/v1/token") { return this.movedTo ? moved : this.#renew(JSON.parse(body)); }
        if (path === "/v1/logout") { this.credential = null; return { status: 204 }; }
        if (path === "/register_device") {
            if (this.movedTo) { return moved; }
            return { status: 200, body: { login_url: `${this.url}/login`, session_id: "session", expires_in: 900 } };
        }
        const [scheme, token] = (request.headers.authorization ?? "").split(" ");
        if (scheme !== "Bearer" || !this.tokens.get(token)) { return problem(401, "unauthorized"); }
        if (this.movedTo) { return moved; }
        if (body.length > this.bytesMax) { return problem(413, "body-too-large", { bytesMax: this.bytesMax }); }
        if (path === "/v1/realms") { return { status: 200, body: { realms: [] } }; }
        if (path === "/v1/uploads") { return this.#upload(JSON.parse(body)); }
        const id = path.slice("/v1/blobs/".length);
        if (request.method === "PUT") { this.images.set(id, body); return { status: 201 }; }
        return this.images.has(id) ? { status: 200, body: this.images.get(id) } : problem(404, "blob-unknown");
    }

    #renew({ credential }) {
        if (this.isRevoked || (credential !== this.credential && credential !== this.spent)) {
            return problem(401, "login-required", { reason: "reused" });
        }
        this.renewals += 1;
        this.spent = credential;
        this.credential = `credential-${this.renewals}`;
        const body = { ...this.issue(), credential: this.credential, token_type: "Bearer" };
        if (this.cutRenewalCount > 0) { this.cutRenewalCount -= 1; return { isCut: true }; }
        return { status: 200, body };
    }

    /** Applies entries with numbers from the expected one on, also with gaps. Smaller ones get their stored result. */
    #upload({ clientId, entries }) {
        if (!this.clients.has(clientId)) { this.clients.set(clientId, { results: new Map(), expected: 1 }); }
        const client = this.clients.get(clientId);
        if (entries.length > 0) { this.uploads.push(entries); }
        const results = entries.map((entry) => {
            const { op_id: number } = entry;
            if (number < client.expected) {
                const expired = { rejected: problem(422, "result-expired").body };
                return { op_id: number, ...(client.results.get(number) ?? expired) };
            }
            const rejected = this.rejectionOf(entry);
            if (!rejected) { this.applied.push(entry); }
            const result = rejected ? { rejected } : { accepted: { position: this.applied.length } };
            client.results.set(number, result);
            client.expected = number + 1;
            return { op_id: number, ...result };
        });
        if (this.isCutAfterCommit) { this.isCutAfterCommit = false; return { isCut: true }; }
        return { status: 200, body: { results, expectedSequence: client.expected } };
    }

    expected(clientId) { return this.clients.get(clientId)?.expected ?? 1; }
}

export { problem };
