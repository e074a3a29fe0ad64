/** The stream of the PowerSync protocol, stored in SQLite as the core of the SDKs does. */

const tables = [
    "CREATE TABLE ps_buckets (name TEXT PRIMARY KEY, last INTEGER NOT NULL)",
    `CREATE TABLE ps_oplog (bucket TEXT, number INTEGER, type TEXT, id TEXT, data TEXT,
        PRIMARY KEY (bucket, type, id))`,
    "CREATE TABLE shown (type TEXT, id TEXT, data TEXT, PRIMARY KEY (type, id))",
];
/** The PUT with the highest number is displayed, over all buckets. */
const display = `INSERT INTO shown SELECT type, id, data FROM ps_oplog o WHERE NOT EXISTS (
    SELECT 1 FROM ps_oplog p WHERE p.type = o.type AND p.id = o.id AND p.number > o.number)`;

/** A device: follows the stream, and displays consistent checkpoints in the table `shown`. */
export class Stream {
    #database; #connector; #abort = null; #announced = new Set(); #position = 0; #number = 0;
    /** The number of the upload that must be in a displayed checkpoint. */
    awaited = 0;
    lineCount = 0; completedCount = 0;

    constructor(database, connector) {
        this.#database = database;
        this.#connector = connector;
    }

    async create() {
        for (const sql of tables) { await this.#database.getAll(sql); }
        return this;
    }

    /** Follows the stream until it is stopped; `connected` is called with its first line, as the SDK does. */
    async follow(connected = () => {}) {
        const { endpoint, token } = await this.#connector.fetchCredentials();
        this.#abort = new AbortController();
        const buckets = await this.#database.getAll(
            "SELECT name, CAST(last AS TEXT) AS after FROM ps_buckets ORDER BY name");
        const response = await fetch(`${endpoint}/sync/stream`, {
            method: "POST", signal: this.#abort.signal,
            headers: { Authorization: `Token ${token}`, "Content-Type": "application/json" },
            body: JSON.stringify({
                buckets, include_checksum: true, raw_data: true, binary_data: true, parameters: null,
                client_id: await this.#database.getClientId(),
                streams: { include_defaults: true, subscriptions: [] },
            }),
        });
        if (!response.ok) { throw new Error(`${response.status}: ${await response.text()}`); }
        this.encoding = response.headers.get("content-encoding");
        let rest = "", isFirst = true;
        const decoder = new TextDecoder();
        try {
            for await (const chunk of response.body) {
                const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
                rest = lines.pop();
                for (const line of lines) {
                    await this.#database.writeTransaction(() => this.#apply(JSON.parse(line)));
                    this.lineCount += 1;
                    if (isFirst) { connected(); }
                    isFirst = false;
                }
            }
        } catch (error) {
            if (error.name !== "AbortError") { throw error; }
        }
    }

    stop() { this.#abort?.abort(); }

    async #apply({ checkpoint, checkpoint_diff: diff, data, checkpoint_complete: complete }) {
        if (checkpoint) {
            this.#announced = new Set(checkpoint.buckets.map(({ bucket }) => bucket));
            const held = await this.#database.getAll("SELECT name FROM ps_buckets");
            await this.#remove(held.map(({ name }) => name).filter((name) => !this.#announced.has(name)));
        } else if (diff) {
            for (const { bucket } of diff.updated_buckets) { this.#announced.add(bucket); }
            await this.#remove(diff.removed_buckets);
        } else if (data) {
            await this.#store(data);
        } else if (complete) {
            await this.#complete();
        }
        if (checkpoint ?? diff) {
            this.#position = Number((checkpoint ?? diff).last_op_id);
            this.#number = Number((checkpoint ?? diff).write_checkpoint ?? 0);
        }
    }

    async #remove(names) {
        for (const name of names) {
            this.#announced.delete(name);
            await this.#database.execute("DELETE FROM ps_oplog WHERE bucket = ?", [name]);
            await this.#database.execute("DELETE FROM ps_buckets WHERE name = ?", [name]);
        }
    }

    async #store({ bucket, data }) {
        if (!this.#announced.has(bucket)) { throw new Error(`${bucket} was not announced.`); }
        for (const { op, op_id: number, object_type: type, object_id: id, data: fields, checksum } of data) {
            if (checksum !== 0) { throw new Error(`The checksum is ${checksum}.`); }
            if (op === "CLEAR") {
                await this.#database.execute("DELETE FROM ps_oplog WHERE bucket = ?", [bucket]);
            } else if (op === "PUT") {
                await this.#database.execute(
                    "INSERT OR REPLACE INTO ps_oplog VALUES (?, ?, ?, ?, ?)",
                    [bucket, Number(number), type, id, fields]);
            } else if (op === "REMOVE") {
                await this.#database.execute(
                    "DELETE FROM ps_oplog WHERE bucket = ? AND type = ? AND id = ?", [bucket, type, id]);
            }
        }
        await this.#database.execute(
            "INSERT OR REPLACE INTO ps_buckets VALUES (?, ?)", [bucket, Number(data.at(-1).op_id)]);
    }

    async #complete() {
        const waiting = await this.#database.numbers();
        if (waiting.length > 0 || this.#number < this.awaited) { return; }
        await this.#database.execute("DELETE FROM shown");
        await this.#database.execute(display);
        for (const name of this.#announced) {
            await this.#database.execute("UPDATE ps_buckets SET last = ? WHERE name = ?", [this.#position, name]);
        }
        this.completedCount += 1;
    }
}
