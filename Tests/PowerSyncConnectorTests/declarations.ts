/** A program that uses every declaration of `connector.d.ts`. It is compiled, and not run. */
import {
    type ConnectorBatch, type ConnectorDatabase, type ConnectorEntry, type ConnectorOptions, type ConnectorTransaction,
    type Login, type LoginStore, type Problem, type RejectionRow, type SocketConstructor, ConnectorError,
    FieldpostConnector, entryCountMax, localTables, rowID,
} from "../../examples/powersync/javascript/connector";

/** The shape of the SDK's classes. */
declare class Table { constructor(columns: Record<string, { type: string }>, options?: { localOnly?: boolean }); }
declare const column: { text: { type: "TEXT" }; integer: { type: "INTEGER" }; real: { type: "REAL" } };
declare class CrudEntry implements ConnectorEntry {
    clientId: number;
    opData?: Record<string, any>;
}
interface SDKDatabase {
    getClientId(): Promise<string>;
    getCrudBatch(limit?: number): Promise<{
        crud: CrudEntry[]; haveMore: boolean; complete: (checkpoint?: string) => Promise<void>;
    } | null>;
    get<T>(sql: string, parameters?: any[]): Promise<T>;
    getAll<T>(sql: string, parameters?: any[]): Promise<T[]>;
    writeTransaction<T>(body: (tx: ConnectorTransaction) => Promise<T>, lockTimeout?: number): Promise<T>;
    disconnectAndClear(options?: { clearLocal?: boolean }): Promise<void>;
}
interface SDKConnector {
    fetchCredentials: () => Promise<{ endpoint: string; token: string; expiresAt?: Date } | null>;
    uploadData: (database: SDKDatabase) => Promise<void>;
}
declare const storage: { getItem(key: string): string | null; setItem(key: string, value: string): void };
declare const WebSocket: SocketConstructor;

const store: LoginStore = {
    async load(): Promise<Login | null> { return JSON.parse(storage.getItem("login") ?? "null"); },
    async save(login) { storage.setItem("login", JSON.stringify(login)); },
};
const options: ConnectorOptions = {
    gateway: "https://fieldpost.example.com", onboarding: "https://onboarding.example.com", store, WebSocket,
    onLoginRequired(error: ConnectorError) {
        const problem: Problem | null = error.problem;
        console.log(error.code, error.status, problem?.detail);
    },
};
export const connector = new FieldpostConnector(options);
export const sdk: SDKConnector = connector;

export async function main(database: SDKDatabase, photo: Uint8Array): Promise<RejectionRow[]> {
    const local: ConnectorDatabase = database;
    const tables: { fieldpost_rejections: Table; fieldpost_uploads: Table } = localTables({ Table, column });
    await connector.login("ana@example.com", {
        openURL: (url) => console.log(url, tables),
        onProblem: ({ code, message }, url) => console.log(code, message, url),
    });
    const credentials = await connector.fetchCredentials();
    console.log(credentials?.endpoint, credentials?.expiresAt.getTime(), rowID("/users/ana@example.com"));
    const batch: ConnectorBatch | null = await database.getCrudBatch(entryCountMax);
    await batch?.complete();
    await connector.uploadData(local);
    await connector.putImage("3f0e6b0a-4a8b-4a53-a1b6-0f0a6c2d9f11", photo, "image/jpeg");
    const image: Uint8Array = await connector.getImage("3f0e6b0a-4a8b-4a53-a1b6-0f0a6c2d9f11");
    console.log(image.length);
    const rows = await database.getAll<RejectionRow>("SELECT * FROM fieldpost_rejections");
    await connector.signOut(local, { discard: true });
    return rows;
}
