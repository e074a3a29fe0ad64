/** Declarations of `connector.js`. They need no package: the types of the SDK fit these interfaces. */

/** Maximum number of entries in one upload. */
export const entryCountMax: number;

/** A problem of the server (RFC 9457). */
export interface Problem {
    type: string;
    title?: string;
    status?: number;
    detail?: string;
    [member: string]: unknown;
}

/** An error with a stable code, such as `offline`, `login-required` or `malformed-request`. */
export class ConnectorError extends Error {
    constructor(code: string, message: string, status?: number, problem?: Problem | null);
    /** For programs. Without a problem of the server it is `http-` and the status. */
    readonly code: string;
    /** Status of the response; 0 without one. */
    readonly status: number;
    readonly problem: Problem | null;
}

/** The login of one person. Treat `credential` as a password. */
export interface Login {
    onboarding: string;
    gateway: string;
    accessToken: string;
    /** Expiry of the token, in milliseconds since 1970. */
    expiresAt: number;
    /** Renews the token; `null` if the person has to log in when it ends. */
    credential: string | null;
}

/** Stores the login. All tabs of a browser use one store, and `save` resolves when the login is stored. */
export interface LoginStore {
    load(): Promise<Login | null>;
    save(login: Login | null): Promise<void>;
}

/** The part of a WebSocket that the login uses. */
export type SocketConstructor = new (url: string) => {
    readonly readyState: number;
    onopen: ((event: any) => any) | null;
    onmessage: ((event: any) => any) | null;
    onclose: ((event: any) => any) | null;
    send(data: string): void;
    close(): void;
};

export interface ConnectorOptions {
    /** Base URL of the device API. */
    gateway: string;
    /** Base URL of onboarding. */
    onboarding: string;
    store: LoginStore;
    /** React Native passes `fetch` of `expo/fetch`. By default, the global one. */
    fetch?: (url: string, init?: any) => Promise<any>;
    /** By default, the global one, which Node has from version 22. */
    WebSocket?: SocketConstructor;
    /** Called when the token cannot be renewed any more. The queue is kept. */
    onLoginRequired?: (error: ConnectorError) => void;
}

/** The part of an SDK's transaction that the connector uses. */
export interface ConnectorTransaction {
    execute(sql: string, parameters?: any[]): Promise<unknown>;
    get<Row>(sql: string, parameters?: any[]): Promise<Row>;
}

/** An entry of the upload queue. */
export interface ConnectorEntry {
    clientId: number;
}

/** The oldest entries of the upload queue. */
export interface ConnectorBatch {
    crud: ConnectorEntry[];
    complete(checkpoint?: string): Promise<void>;
}

/** The part of an SDK's database that the connector uses. */
export interface ConnectorDatabase {
    getClientId(): Promise<string>;
    getCrudBatch(limit?: number): Promise<ConnectorBatch | null>;
    get<Row>(sql: string, parameters?: any[]): Promise<Row>;
    getAll<Row>(sql: string, parameters?: any[]): Promise<Row[]>;
    writeTransaction<Result>(body: (tx: ConnectorTransaction) => Promise<Result>): Promise<Result>;
    disconnectAndClear(): Promise<void>;
}

/** A row of `fieldpost_rejections`. The id is the number of the entry. */
export interface RejectionRow {
    id: string;
    table_name: string;
    row_id: string;
    operation: "PUT" | "PATCH" | "DELETE";
    /** `urn:fieldpost:problem:` and a code. */
    type: string;
    title: string | null;
    detail: string | null;
    /** The columns of the entry, as JSON. */
    data: string | null;
    /** Time of the rejection on the device (RFC 3339). */
    time: string;
}

/** Returns the local tables of the connector, for the app's schema. */
export function localTables<Table>(sdk: {
    Table: new (columns: any, options?: any) => Table;
    column: { text: unknown; integer: unknown };
}): { fieldpost_rejections: Table; fieldpost_uploads: Table };

/** Returns the id of a new row of a realm, such as `/users/ana@example.com`. */
export function rowID(realm: string): string;

/** The connector of one person, for `connect` of the SDK. */
export class FieldpostConnector {
    constructor(options: ConnectorOptions);
    fetchCredentials(): Promise<{ endpoint: string; token: string; expiresAt: Date } | null>;
    uploadData(database: ConnectorDatabase): Promise<void>;
    /** Uploads an image under a random UUID, before the row that refers to it. */
    putImage(id: string, bytes: Uint8Array | ArrayBuffer | Blob, type?: string): Promise<void>;
    getImage(id: string): Promise<Uint8Array>;
    /** Logs a person in. Resolves when the token is stored and the person's data is ready. */
    login(email: string, options: {
        /** Opens the page of the login in a browser. */
        openURL(url: string): void;
        /** With a URL, another attempt in the same session may succeed. */
        onProblem?(problem: { code: string; message: string }, url: string | null): void;
    }): Promise<void>;
    /** Ends the login and clears the database. Throws `queued-entries` unless `discard` is true. */
    signOut(database: ConnectorDatabase, options?: { discard?: boolean }): Promise<void>;
}
