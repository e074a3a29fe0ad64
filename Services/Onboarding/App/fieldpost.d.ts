/** Type declarations of `fieldpost.js`, the client of Fieldpost for browsers. */

export type Kind = string;
export type JSONValue = null | boolean | number | string | JSONValue[] | { [key: string]: JSONValue };
export type Fields = { [field: string]: JSONValue };

/** An object as displayed: the last consistent checkpoint with unconfirmed mutations on top. Frozen. */
export interface FieldpostObject {
    readonly realm: string;
    readonly kind: Kind;
    readonly id: string;
    /** Position of the confirmed version; 0 if the object exists only on this device. */
    readonly position: number;
    readonly fields: Fields;
    /** Whether a mutation of it is not yet confirmed by a checkpoint. */
    readonly isPending: boolean;
}

/** `queued`: on this device only. `accepted`: stored by the server. `applied`: contained in this device's checkpoint. */
export type MutationState = "queued" | "accepted" | "applied" | "rejected";

export interface Problem {
    /** Stable code, such as `version-conflict`, `offline`, `storage-full`, `login-required`. */
    readonly code: string;
    /** A sentence for people. */
    readonly detail: string;
}

export interface Mutation {
    readonly sequence: number;
    readonly realm: string;
    readonly operation: "put" | "patch" | "delete";
    readonly kind: Kind;
    readonly id: string;
    readonly fields?: Fields;
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
    /** Rejected mutations that were not dismissed. */
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
    /** Base URL of onboarding; the page's origin by default. */
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
    /** Called with a problem and a new login address if the login failed and may be repeated. */
    onproblem?: (problem: Problem, loginURL?: string) => void;
    cancel(): void;
}

export interface Filter {
    /** Exact realm. */
    realm?: string;
    /** Prefix of the realm, such as `/teams/`. */
    realmPrefix?: string;
    id?: string;
    /** Values that fields must have. `null` matches absent fields. */
    fields?: Fields;
    where?: (object: FieldpostObject) => boolean;
}

/** Errors of the client have a stable `code`. */
export class FieldpostError extends Error { readonly code: string }

export class Fieldpost extends EventTarget {
    /** Opens the store, loads the copy and, if a person is signed in, connects. */
    static open(options: Options): Promise<Fieldpost>;
    readonly status: Status;
    /** Dispatched when `status` or `mutations` changed. */
    addEventListener(type: "status", listener: () => void): void;

    signIn(email: string): Promise<SignIn>;
    /** Signs in with a token that the app obtained by itself. Without `credential` it is not renewed. */
    signInWithToken(token: { accessToken: string; expiresAt: number; credential?: string }): Promise<void>;
    /** Ends the login and deletes the store. Throws `queued-mutations` unless `discard` is true. */
    signOut(options?: { discard?: boolean }): Promise<void>;

    objects(kind: Kind, filter?: Filter): FieldpostObject[];
    /** Pass the kind if several kinds share an id in a realm, such as `Person` and `PersonLookup`. */
    object(realm: string, id: string, kind?: Kind): FieldpostObject | undefined;
    /** Calls `callback` at once, and after each change of the result. Returns the function that ends the watch. */
    watch(kind: Kind, filter: Filter | null, callback: (objects: FieldpostObject[]) => void): () => void;

    /** Resolves when the mutation is stored on the device: it then survives the tab. */
    put(realm: string, kind: Kind, id: string, fields: Fields, options?: { position?: number; restore?: boolean }): Promise<Mutation>;
    patch(realm: string, kind: Kind, id: string, fields: Fields, options?: { position?: number }): Promise<Mutation>;
    delete(realm: string, kind: Kind, id: string, options?: { position?: number }): Promise<Mutation>;
    /** Mutations without `applied` and rejected ones that were not dismissed, in order. */
    readonly mutations: readonly Mutation[];
    readonly uploads: readonly Upload[];
    /** Resolves with the mutation once it is `applied` or `rejected`. */
    settled(mutation: Mutation): Promise<Mutation>;
    /** Removes a rejected mutation or upload from the list. */
    dismiss(item: Mutation | Upload): Promise<void>;

    /** Stores an image for upload (JPEG, PNG, WebP, at most 1 MiB) and returns its id; mutations queued later follow it. */
    addImage(image: Blob): Promise<string>;
    /** Returns an image from the store or the server. */
    image(id: string): Promise<Blob>;
    /** Calls `callback` with the stored outline of the map (GeoJSON), then with the server's if it differs; null: none. */
    outline(callback: (outline: JSONValue) => void): Promise<void>;

    /** Works offline until `resume`, in all tabs. */
    pause(): Promise<void>;
    resume(): Promise<void>;
    /** Names further realms, such as a team's or `/archive`. Kept in the store. */
    openRealms(paths: string[]): Promise<void>;
    /** Sends a request to the device API with the token, such as `GET /v1/deliveries`. Rejects with a `FieldpostError`. */
    request(method: string, path: string, body?: JSONValue): Promise<JSONValue>;
    /** Ends the connection of this tab. The store remains. */
    close(): Promise<void>;
}

/** Returns a random id. */
export function newID(): string;
/** Returns the derived id of a `Membership`, `SharedItem` or `Share`: first half of one id, last half of the other. */
export function pairedID(first: string, second: string): string;
/** Scales an image to at most 2,048 pixels and 1 MiB, as JPEG. */
export function scaleImage(image: Blob, options?: { pixelsMax?: number; bytesMax?: number }): Promise<Blob>;
