// Generated: fieldpost schema generate typescript
import type * as library from "./fieldpost.js";

/** Only integrations write it. */
export type Array = {
    string?: {
        a?: string;
    } | null;
    text?: string | null;
};

/** An object of the kind Error. */
export type Error = {
    error?: string | null;
};

/**
 * An inspection of a site.
 * It ends a comment: * / and begins one: / *
 */
export type Inspection = {
    /** Name of the site. */
    site?: string | null;
    state?: "draft" | "sent" | "in progress" | "none" | "1st" | "" | (string & {}) | null;
    day?: string | null;
    seenAt?: string | null;
    photos?: (string)[] | null;
    /** The position of the site. */
    place?: {
        latitude: number;
        floor: number | null;
        "odd \"name\"$"?: boolean;
        point?: {
            x: number;
        };
        note: library.JSONValue;
    } | null;
    tags?: ("red" | "green" | (string & {}) | null)[] | null;
    counts?: { [name: string]: number } | null;
    anything?: library.JSONValue;
    score?: number | null;
    isUrgent?: boolean | null;
    steps?: ({
        title?: string;
    })[] | null;
    receipt?: string | null;
    approval?: string | null;
    level?: string | null;
};

/** The fields of a new object that people may write. */
export type NewInspection = {
    /** Name of the site. */
    site: string;
    state: "draft" | "sent" | "in progress" | "none" | "1st" | "";
    level: string | null;
    day?: string | null;
    seenAt?: string | null;
    photos?: (string)[] | null;
    /** The position of the site. */
    place?: {
        latitude: number;
        floor: number | null;
        "odd \"name\"$"?: boolean;
        point?: {
            x: number;
        };
        note: library.JSONValue;
    } | null;
    tags?: ("red" | "green" | null)[] | null;
    counts?: { [name: string]: number } | null;
    anything?: library.JSONValue;
    score?: number | null;
    isUrgent?: boolean | null;
    steps?: ({
        title?: string;
    })[] | null;
};

/** Creates an object, in a realm where people may do it. */
export function createInspection(
    client: library.Fieldpost, realm: `/users/${string}` | `/teams/${string}`, id: string, fields: NewInspection) {
    return client.put(realm, "Inspection", id, fields);
}

/** The fields that people may change. Those that are absent keep their values. */
export type InspectionChange = {
    state?: "draft" | "sent" | "in progress" | "none" | "1st" | "";
    day?: string | null;
    photos?: (string)[] | null;
    /** The position of the site. */
    place?: {
        latitude: number;
        floor: number | null;
        "odd \"name\"$"?: boolean;
        point?: {
            x: number;
        };
        note: library.JSONValue;
    } | null;
    approval?: string | null;
    level?: string | null;
};

/** Changes an object. */
export function changeInspection(
    client: library.Fieldpost, object: { readonly realm: string; readonly id: string }, fields: InspectionChange) {
    return client.patch(object.realm, "Inspection", object.id, fields);
}

/** Deletes an object. */
export function deleteInspection(client: library.Fieldpost, object: { readonly realm: string; readonly id: string }) {
    return client.delete(object.realm, "Inspection", object.id);
}

/** An object of the kind Kind. */
export type Kind = {
    in?: boolean | null;
    var?: number | null;
    when?: number | null;
};

/** The fields of a new object that people may write. */
export type NewKind_ = {
    in: boolean;
    var?: number | null;
    when?: number | null;
};

/** Creates an object, in a realm where people may do it. */
export function createKind(
    client: library.Fieldpost, realm: `/teams/${string}`, id: string, fields: NewKind_) {
    return client.put(realm, "Kind", id, fields);
}

/** The fields that people may change. Those that are absent keep their values. */
export type KindChange = {
    in?: boolean;
    var?: number | null;
    when?: number | null;
};

/** Changes an object. */
export function changeKind(
    client: library.Fieldpost, object: { readonly realm: string; readonly id: string }, fields: KindChange) {
    return client.patch(object.realm, "Kind", object.id, fields);
}

/** An object of the kind NewKind. */
export type NewKind = {
    a?: string | null;
};

/** The fields that people may change. Those that are absent keep their values. */
export type NewKindChange = {
    a?: string | null;
};

/** Changes an object. */
export function changeNewKind(
    client: library.Fieldpost, object: { readonly realm: string; readonly id: string }, fields: NewKindChange) {
    return client.patch(object.realm, "NewKind", object.id, fields);
}

/** An object of the kind String. */
export type String = {
    class?: string | null;
    self?: string | null;
    init?: string | null;
    fields?: string | null;
    new?: {
        String?: string;
        string?: number;
    } | null;
    day?: {
        day?: string;
    } | null;
    func?: "class" | "self" | "allCases" | (string & {}) | null;
};

/** The fields of a new object that people may write. */
export type NewString = {
    class: string;
    self?: string | null;
    init?: string | null;
    fields?: string | null;
    new?: {
        String?: string;
        string?: number;
    } | null;
    day?: {
        day?: string;
    } | null;
    func?: "class" | "self" | "allCases" | null;
};

/** Creates an object, in a realm where people may do it. */
export function createString(
    client: library.Fieldpost, realm: "/manager", id: string, fields: NewString) {
    return client.put(realm, "String", id, fields);
}

/** The fields that people may change. Those that are absent keep their values. */
export type StringChange = {
    class?: string;
    self?: string | null;
    init?: string | null;
    fields?: string | null;
    new?: {
        String?: string;
        string?: number;
    } | null;
    day?: {
        day?: string;
    } | null;
    func?: "class" | "self" | "allCases" | null;
};

/** Changes an object. */
export function changeString(
    client: library.Fieldpost, object: { readonly realm: string; readonly id: string }, fields: StringChange) {
    return client.patch(object.realm, "String", object.id, fields);
}

/** Deletes an object. */
export function deleteString(client: library.Fieldpost, object: { readonly realm: string; readonly id: string }) {
    return client.delete(object.realm, "String", object.id);
}
