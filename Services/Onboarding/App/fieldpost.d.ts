/** Type declarations of `fieldpost.js`, the client of Fieldpost for browsers. */

/** Kinds of objects. Their fields, realms and permissions are in `deploy/openapi.yaml`. */
export type Kind =
    | "Appointment" | "Defect" | "DefectAccount" | "DefectCommand" | "DeletedObject" | "DeliveryChoice" | "EndedShare"
    | "FieldTask" | "Location" | "Membership" | "Note" | "Notice" | "Person" | "PersonLookup" | "PrivateProfile"
    | "Realms" | "ReportingContext" | "ReportingTemplate" | "ReportingTreeNode" | "Share" | "SharedItem" | "TaskNote"
    | "Team" | "TimeEntry" | "TimeEntryStatus" | "User" | (string & {});
export type JSONValue = null | boolean | number | string | JSONValue[] | { [key: string]: JSONValue };
export type Fields = { [field: string]: JSONValue };

/**
 * An object as displayed: the last consistent checkpoint with unconfirmed mutations on top. Frozen.
 * `F` is the type that the app declares for the fields of the kind; the library does not verify it.
 */
export interface FieldpostObject<F extends object = Fields> {
    readonly realm: string;
    readonly kind: Kind;
    readonly id: string;
    /** Position of the confirmed version; 0 if the object exists only on this device. */
    readonly position: number;
    readonly fields: Readonly<F>;
    /** Whether a mutation of it is not yet confirmed by a checkpoint. */
    readonly isPending: boolean;
}

/** `queued`: on this device only. `accepted`: stored by the server. `applied`: contained in this device's checkpoint. */
export type MutationState = "queued" | "accepted" | "applied" | "rejected";

export interface Problem {
    /** Stable code for programs, such as `version-conflict`, `offline`, `storage-full`, `login-required`. */
    readonly code: string;
    /** A sentence for people. */
    readonly detail: string;
}

export interface Mutation {
    /** Identifies the mutation in this store. */
    readonly key: string;
    /** Number in the requests of this device. It can change after the server's database was restored. */
    readonly sequence: number;
    readonly realm: string;
    readonly operation: "put" | "patch" | "delete";
    readonly kind: Kind;
    readonly id: string;
    readonly fields?: Fields;
    /** Time of the write, in milliseconds since 1970 by the device's clock. */
    readonly queuedAt: number;
    readonly state: MutationState;
    /** Present if `state` is `rejected`. */
    readonly problem?: Problem;
}

/** An image that waits for its upload, or whose upload was rejected. */
export interface Upload {
    readonly id: string;
    readonly bytes: number;
    readonly state: "queued" | "rejected";
    readonly problem?: Problem;
}

export type Connection =
    | "signed-out" | "signing-in" | "connecting" | "live" | "offline" | "paused" | "login-required" | "failed";

export interface Realm { readonly path: string; readonly count: number; readonly isOpen: boolean }

export interface Status {
    readonly connection: Connection;
    /** The last failure, while it lasts. */
    readonly problem?: Problem;
    readonly email?: string;
    /** Id of the own `Person`. */
    readonly person?: string;
    /** Position of the last consistent checkpoint; 0 before the first one. */
    readonly position: number;
    /** Time of the last received line, in milliseconds since 1970 by the device's clock. */
    readonly receivedAt?: number;
    /** Mutations and uploads without a result. */
    readonly queued: number;
    /** Rejected mutations and uploads that were not dismissed. */
    readonly rejected: number;
    readonly realms: readonly Realm[];
    /** Whether this tab holds the connection. The other tabs follow the store. */
    readonly isLeader: boolean;
    /** Difference of the server's clock from the device's, in milliseconds, if it is more than a minute. */
    readonly clockOffset?: number;
    /** `memory` if IndexedDB is unavailable: the queue does not survive the tab. */
    readonly storage: { readonly kind: "indexed-db" | "memory"; readonly isFull: boolean; readonly isPersistent: boolean;
        readonly usedBytes?: number; readonly quotaBytes?: number };
}

export interface Options {
    /** Base URL of onboarding, such as `http://127.0.0.1:18083`; the page's origin by default. */
    onboarding?: string;
    /** Base URL of the device API. */
    gateway: string;
    /** Name of the IndexedDB database and of the lock; `fieldpost` by default. */
    name?: string;
}

export interface SignIn {
    /** Address that the person opens to log in. */
    readonly loginURL: string;
    /** Resolves when the token arrived and the realm is ready; rejects with a `FieldpostError`. */
    readonly done: Promise<void>;
    /** Set by the app. Called with a problem, and with a new login address if the person can retry the login. */
    onproblem?: (problem: Problem, loginURL?: string) => void;
    /** Ends the sign-in: `done` rejects with `cancelled`. */
    cancel(): void;
}

/** Selects the objects that satisfy all of its members. */
export interface Filter<F extends object = Fields> {
    /** Exact realm. */
    realm?: string;
    /** Prefix of the realm, such as `/teams/`. */
    realmPrefix?: string;
    id?: string;
    /** Values that fields must have. `null` matches absent fields. */
    fields?: { [Name in keyof F]?: F[Name] | null };
    /** Called for each object that the other members select. A new condition needs a new watch. */
    where?: (object: FieldpostObject<F>) => boolean;
}

/** Errors of the client. `message` is a sentence for people. */
export class FieldpostError extends Error {
    constructor(code: string, detail?: string, status?: number);
    /** Stable code for programs, such as `offline` or `queued-mutations`. */
    readonly code: string;
    /** HTTP status of the response; 0 without one. */
    readonly status: number;
    /** The server's problem (RFC 9457), with members such as `bytesMax`. */
    readonly body?: { readonly [member: string]: JSONValue };
    /** Delay that the server requires before a retry, in milliseconds. */
    readonly retryAfter?: number;
}

export class Fieldpost extends EventTarget {
    /** Use `open`. */
    private constructor();
    /** Opens the store, loads the copy and, if a person is signed in, connects. */
    static open(options: Options): Promise<Fieldpost>;
    readonly status: Status;
    /** Dispatched when `status`, `mutations` or `uploads` may have changed. */
    addEventListener(
        type: "status", listener: (event: Event) => void, options?: boolean | AddEventListenerOptions): void;

    /** Registers the device. Resolves when the person can log in at `loginURL`. */
    signIn(email: string): Promise<SignIn>;
    /** Signs in with a token that the app obtained by itself. Without `credential` it is not renewed. */
    signInWithToken(token: { accessToken: string; expiresAt: number; credential?: string }): Promise<void>;
    /** Ends the login and deletes the store. Throws `queued-mutations` unless `discard` is true. */
    signOut(options?: { discard?: boolean }): Promise<void>;

    /** Returns the objects of a kind that the filter selects, in no specific order. */
    objects<F extends object = Fields>(kind: Kind, filter?: Filter<F> | null): FieldpostObject<F>[];
    /** Pass the kind if several kinds share an id in a realm, such as `Person` and `PersonLookup`. */
    object<F extends object = Fields>(realm: string, id: string, kind?: Kind | null): FieldpostObject<F> | undefined;
    /**
     * Calls `callback` at once, and after each change of the result, with an array that it may sort. Returns the
     * function that ends the watch.
     */
    watch<F extends object = Fields>(
        kind: Kind, filter: Filter<F> | null, callback: (objects: FieldpostObject<F>[]) => void): () => void;

    /**
     * Creates an object, or replaces its fields. Resolves when the mutation is stored on the device: it then survives
     * the tab. With `position`, the server rejects it if the object has another position (`version-conflict`).
     * `restore` undoes the deletion of an `Appointment` or a `Note`.
     */
    put(
        realm: string, kind: Kind, id: string, fields: Fields,
        options?: { position?: number; restore?: boolean }): Promise<Mutation>;
    /** Replaces the named fields of an object. */
    patch(realm: string, kind: Kind, id: string, fields: Fields, options?: { position?: number }): Promise<Mutation>;
    /** Deletes an object. */
    delete(realm: string, kind: Kind, id: string, options?: { position?: number }): Promise<Mutation>;
    /** Mutations that are not `applied` yet, and rejected ones that were not dismissed, in order. */
    readonly mutations: readonly Mutation[];
    /** Images that wait for their upload, and rejected ones that were not dismissed. */
    readonly uploads: readonly Upload[];
    /** Resolves with the mutation once it is `applied` or `rejected`. */
    settled(mutation: Mutation): Promise<Mutation>;
    /** Removes a rejected mutation or upload from the list. */
    dismiss(item: Mutation | Upload): Promise<void>;

    /** Stores an image (JPEG, PNG, WebP, at most 1 MiB) for upload before later mutations and returns its id. */
    addImage(image: Blob): Promise<string>;
    /** Returns an image from the store or the server. */
    image(id: string): Promise<Blob>;
    /** Calls `callback` with the stored outline of the map (GeoJSON), then with the server's if it differs; null: none. */
    outline(callback: (outline: JSONValue) => void): Promise<void>;

    /** Works offline until `resume`, in all tabs. */
    pause(): Promise<void>;
    /** Ends a pause. */
    resume(): Promise<void>;
    /** Names further realms, such as a team's or `/archive`. Kept in the store. */
    openRealms(paths: string[]): Promise<void>;
    /** Sends a request to the device API with the token, such as `GET /v1/deliveries`. Rejects with a `FieldpostError`. */
    request(method: string, path: string, body?: JSONValue): Promise<JSONValue>;
    /** Ends the connection of this tab. The store remains. */
    close(): Promise<void>;
}

/** Maximum size of an object's fields as JSON, in bytes. */
export const fieldsBytesMax: number;
/** Maximum size of an image in bytes. */
export const imageBytesMax: number;

/** Returns a random id. */
export function newID(): string;
/** Returns the derived id of a `Membership`, `SharedItem` or `Share`: first half of one id, last half of the other. */
export function pairedID(first: string, second: string): string;
/** Scales an image to at most 2,048 pixels and 1 MiB, as JPEG. */
export function scaleImage(image: Blob, options?: { pixelsMax?: number; bytesMax?: number }): Promise<Blob>;
