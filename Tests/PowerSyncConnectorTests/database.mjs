/**
 * A database with the interface of the PowerSync SDK, on SQLite.
 *
 * Node 20 has no SQLite. Python's module `sqlite3` executes the statements in a child process.
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";

/** Executes statements from lines of JSON, and answers each with its rows or its error. */
const program = `
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.row_factory = sqlite3.Row
for line in sys.stdin:
    sql, parameters = json.loads(line)
    try:
        answer = {"rows": [dict(row) for row in connection.execute(sql, parameters)]}
    except sqlite3.Error as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
`;

const local = { fieldpost_rejections: [
    "table_name", "row_id", "operation", "type", "title", "detail", "data", "time",
], fieldpost_uploads: ["sent"] };

/** Statements for a local table: a view on a table of JSON, with triggers instead of writes. */
function statementsOf([name, columns]) {
    const inner = `ps_data_local__${name}`;
    const read = columns.map((each) => `json_extract(data, '$.${each}') AS ${each}`).join(", ");
    const written = columns.map((each) => `'${each}', NEW.${each}`).join(", ");
    return [
        `CREATE TABLE ${inner} (id TEXT PRIMARY KEY, data TEXT)`,
        `CREATE VIEW ${name} AS SELECT id, ${read} FROM ${inner}`,
        `CREATE TRIGGER ${name}_insert INSTEAD OF INSERT ON ${name} BEGIN`
            + ` INSERT INTO ${inner} VALUES (NEW.id, json_object(${written})); END`,
        `CREATE TRIGGER ${name}_delete INSTEAD OF DELETE ON ${name} BEGIN DELETE FROM ${inner} WHERE id = OLD.id; END`,
    ];
}

/** The queue and the local tables of a device. */
export class Database {
    #process; #answers = []; #queue = Promise.resolve(); #transaction = 0;
    clientId = crypto.randomUUID();
    /** Called before a batch is removed from the queue; a test lets it throw. */
    beforeComplete = () => {};

    static async open(file = ":memory:") {
        const database = new Database(file);
        await database.get("SELECT sqlite_version() AS version");
        return database;
    }

    constructor(file) {
        this.#process = spawn("python3", ["-c", program, file], { stdio: ["pipe", "pipe", "inherit"] });
        const fail = (reason) => {
            for (const { reject } of this.#answers.splice(0)) { reject(new Error(`python3 with sqlite3: ${reason}`)); }
        };
        this.#process.on("error", fail);
        this.#process.on("exit", fail);
        this.#process.stdin.on("error", () => {});
        readline.createInterface({ input: this.#process.stdout }).on("line", (line) => {
            const { rows, error } = JSON.parse(line);
            const { resolve, reject } = this.#answers.shift();
            if (error) { reject(new Error(error)); } else { resolve(rows); }
        });
    }

    async create() {
        await this.getAll("CREATE TABLE ps_crud (id INTEGER PRIMARY KEY AUTOINCREMENT, data TEXT, tx_id INTEGER)");
        for (const sql of Object.entries(local).flatMap(statementsOf)) { await this.getAll(sql); }
        return this;
    }

    getAll(sql, parameters = []) {
        return new Promise((resolve, reject) => {
            this.#answers.push({ resolve, reject });
            this.#process.stdin.write(JSON.stringify([sql, parameters]) + "\n");
        });
    }

    async getOptional(sql, parameters) { return (await this.getAll(sql, parameters))[0] ?? null; }
    async get(sql, parameters) {
        const row = await this.getOptional(sql, parameters);
        if (!row) { throw new Error(`No row: ${sql}`); }
        return row;
    }
    execute(sql, parameters) { return this.getAll(sql, parameters); }

    writeTransaction(body) {
        const run = async () => {
            await this.getAll("BEGIN IMMEDIATE");
            try {
                const result = await body(this);
                await this.getAll("COMMIT");
                return result;
            } catch (error) {
                await this.getAll("ROLLBACK");
                throw error;
            }
        };
        this.#queue = this.#queue.then(run, run);
        return this.#queue;
    }

    async getClientId() { return this.clientId; }

    /** Records writes of the app, all in one transaction. */
    async write(...entries) {
        this.#transaction += 1;
        for (const entry of entries) {
            const values = [JSON.stringify(entry), this.#transaction];
            await this.getAll("INSERT INTO ps_crud (data, tx_id) VALUES (?, ?)", values);
        }
    }

    async getCrudBatch(limit = 100) {
        const rows = await this.getAll("SELECT id FROM ps_crud ORDER BY id LIMIT ?", [limit]);
        const complete = async () => {
            this.beforeComplete();
            await this.getAll("DELETE FROM ps_crud WHERE id <= ?", [rows.at(-1).id]);
        };
        return rows.length === 0 ? null : { crud: rows.map(({ id }) => ({ clientId: id })), haveMore: true, complete };
    }

    async getNextCrudTransaction() { throw new Error("A transaction may be too large for one request."); }

    /** Clears the queue and the local tables. The counter and the client id stay. */
    async disconnectAndClear() {
        await this.getAll("DELETE FROM ps_crud");
        for (const name of Object.keys(local)) { await this.getAll(`DELETE FROM ps_data_local__${name}`); }
    }

    async numbers() { return (await this.getAll("SELECT id FROM ps_crud ORDER BY id")).map(({ id }) => id); }
    rejections() { return this.getAll("SELECT * FROM fieldpost_rejections ORDER BY CAST(id AS INTEGER)"); }
    async counter() { return (await this.getOptional("SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'"))?.seq; }

    /** Returns a copy with the same client id. */
    async copy() {
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), "connector-"));
        const file = path.join(folder, "copy.db");
        await this.getAll("VACUUM INTO ?", [file]);
        const copy = await Database.open(file);
        return Object.assign(copy, { clientId: this.clientId, folder });
    }

    close() {
        this.#process.kill();
        if (this.folder) { fs.rmSync(this.folder, { recursive: true }); }
    }
}
