/** Uses every member of `fieldpost.d.ts`. `declarations.test.mjs` compiles it; it does not run. */
import {
    Fieldpost, FieldpostError, fieldsBytesMax, imageBytesMax, newID, pairedID, scaleImage,
} from "../../Services/Onboarding/App/fieldpost.js";
import type {
    Connection, Fields, FieldpostObject, Filter, JSONValue, Kind, Mutation, MutationState, Options, Problem, Realm,
    SignIn, Status, Upload,
} from "../../Services/Onboarding/App/fieldpost.js";

type FieldTask = { title: string; isCompleted?: boolean | null };
type TaskNote = { task: string; author: string; writtenAt: string; text?: string | null; image?: string | null };

const options: Options = { onboarding: "https://onboarding.example", gateway: "https://api.example", name: "tasks" };
const fieldpost: Fieldpost = await Fieldpost.open(options);
// @ts-expect-error: only `open` creates a client.
new Fieldpost(options);

/** Adds a note with a photo to a task. */
async function addNote(task: FieldpostObject<FieldTask>, text: string, photo: Blob) {
    const image = await fieldpost.addImage(await scaleImage(photo));
    const author = fieldpost.status.person!;
    const fields = { task: task.id, author, writtenAt: new Date().toISOString(), text, image };
    return fieldpost.put(task.realm, "TaskNote", newID(), fields);
}

/** Displays the notes of a task, now and after each change. Returns the function that ends it. */
function showNotes(task: FieldpostObject, show: (notes: FieldpostObject<TaskNote>[]) => void) {
    const filter = { realm: task.realm, fields: { task: task.id } };
    return fieldpost.watch<TaskNote>("TaskNote", filter, (notes) => {
        show(notes.sort((one, other) => one.fields.writtenAt.localeCompare(other.fields.writtenAt)));
    });
}

const listener = (event: Event) => console.log(event.type);
fieldpost.addEventListener("status", listener, { once: true });
fieldpost.addEventListener("status", () => {});
fieldpost.removeEventListener("status", listener);

function describe(status: Status): string {
    const { connection, problem, email, person, position, receivedAt, queued, rejected, realms, isLeader } = status;
    const { kind, isFull, isPersistent, usedBytes, quotaBytes } = status.storage;
    const state: Connection = connection;
    const paths = realms.filter((realm: Realm) => realm.isOpen && realm.count > 0).map(({ path }) => path);
    const times: (number | undefined)[] = [receivedAt, status.clockOffset, usedBytes, quotaBytes];
    return [
        state, sentence(problem), email, person, position, queued, rejected, paths, isLeader, kind, isFull,
        isPersistent, times,
    ].join();
}

function sentence(problem?: Problem): string { return problem ? `${problem.code}: ${problem.detail}` : "none"; }

async function signIn(email: string) {
    const login: SignIn = await fieldpost.signIn(email);
    login.onproblem = (problem, loginURL) => console.log(sentence(problem), loginURL?.length);
    console.log(login.loginURL);
    setTimeout(() => login.cancel(), 60_000);
    await login.done;
    await fieldpost.signInWithToken({ accessToken: "token", expiresAt: Date.now(), credential: "credential" });
    await fieldpost.signOut({ discard: true });
}

function read() {
    const filter: Filter<FieldTask> = {
        realmPrefix: "/teams/", id: newID(), fields: { isCompleted: null }, where: ({ fields }) => fields.title !== "",
    };
    const task = fieldpost.objects("FieldTask", filter)[0];
    const untyped: FieldpostObject | undefined = fieldpost.object(task.realm, task.id, "FieldTask");
    const value: JSONValue | undefined = untyped?.fields.title;
    const kind: Kind = task.kind;
    // @ts-expect-error: objects are frozen.
    task.fields.title = "";
    fieldpost.watch("FieldTask", null, (tasks) => console.log(tasks[0].isPending, tasks[0].position))();
    return [fieldpost.objects("FieldTask"), value, kind];
}

async function write(fields: Fields) {
    const id = pairedID(newID(), newID());
    const options = { position: 0, restore: true };
    const made: Mutation = await fieldpost.put("/users/ana@example.com", "Note", id, fields, options);
    await fieldpost.patch(made.realm, made.kind, made.id, fields, { position: 1 });
    await fieldpost.delete(made.realm, made.kind, made.id, { position: 2 });
    const { key, sequence, operation, queuedAt, state, problem, fields: written } = await fieldpost.settled(made);
    const result: MutationState = state;
    console.log(key, sequence, operation, queuedAt, result, sentence(problem), written);
    for (const mutation of fieldpost.mutations) { await fieldpost.dismiss(mutation); }
    const uploads: readonly Upload[] = fieldpost.uploads;
    for (const upload of uploads) { console.log(upload.id, upload.bytes, upload.state, sentence(upload.problem)); }
    await fieldpost.dismiss(uploads[0]);
}

async function control() {
    const image = await scaleImage(await fieldpost.image(newID()), { pixelsMax: 64, bytesMax: imageBytesMax });
    await fieldpost.pause();
    await fieldpost.resume();
    await fieldpost.openRealms(["/archive"]);
    const response: JSONValue = await fieldpost.request("GET", "/v1/deliveries", null);
    await fieldpost.outline((outline) => console.log(outline));
    await fieldpost.close();
    const error = new FieldpostError("code", "A sentence.", 404);
    const parts: unknown[] = [error.code, error.message, error.status, error.body?.bytesMax, error.retryAfter];
    return [image.size, fieldsBytesMax, response, parts];
}

export { addNote, control, describe, read, showNotes, signIn, write };
