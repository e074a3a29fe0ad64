import { Fieldpost, newID, scaleImage } from "./fieldpost.js";

const element = (id) => document.getElementById(id);

const fieldpost = await Fieldpost.open({
    onboarding: "http://127.0.0.1:18083",
    gateway: "http://127.0.0.1:18080",
    name: "inspections",
});

/** Returns a new element with its content. */
function make(name, properties, ...content) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...content);
    return made;
}

function showStatus() {
    const { connection, email, queued } = fieldpost.status;
    const isSignedIn = email !== undefined;
    element("status").textContent = `${connection}, ${queued} to send`;
    element("sign-in").hidden = isSignedIn;
    element("inspections").hidden = !isSignedIn;
    element("sign-out").hidden = !isSignedIn;
    const rejected = fieldpost.mutations.filter((mutation) => mutation.state === "rejected");
    element("problems").replaceChildren(...rejected.map((mutation) => make("li", { className: "problem" },
        `${mutation.problem.detail} `,
        make("button", { textContent: "Dismiss", onclick: () => fieldpost.dismiss(mutation) }))));
}
fieldpost.addEventListener("status", showStatus);
showStatus();

element("sign-in").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
        const signIn = await fieldpost.signIn(event.target.email.value);
        signIn.onproblem = (problem, loginURL) => {
            element("status").textContent = problem.detail;
            if (loginURL) { element("login").href = loginURL; }
        };
        element("login").href = signIn.loginURL;
        element("login").hidden = false;
        await signIn.done;
    } catch (error) {
        element("status").textContent = error.message;
    }
    element("login").hidden = true;
});

element("sign-out").addEventListener("click", async () => {
    try {
        await fieldpost.signOut();
    } catch (error) {
        if (error.code !== "queued-mutations") { throw error; }
        if (confirm("Some changes were not sent. Discard them?")) { await fieldpost.signOut({ discard: true }); }
    }
});

// A watch calls its function at once. These are the addresses of photos, the names of sites, and the inspections.
const pictures = new Map();
const siteNames = new Map();
let inspections = [];

// Sites are in /common: all people read them, and managers write them.
fieldpost.watch("Site", { realm: "/common" }, (sites) => {
    siteNames.clear();
    for (const site of sites) { siteNames.set(site.id, site.fields.name); }
    element("add").site.replaceChildren(...sites.map((site) => make("option", { value: site.id }, site.fields.name)));
    showInspections();
});

fieldpost.watch("Inspection", { realmPrefix: "/users/" }, (objects) => {
    inspections = objects.sort((one, other) => other.fields.plannedAt.localeCompare(one.fields.plannedAt));
    showInspections();
});

function showInspections() { element("list").replaceChildren(...inspections.map(card)); }

/** Returns the element of a photo. */
function picture(id) {
    const image = make("img", { alt: "Photo" });
    if (!pictures.has(id)) { pictures.set(id, fieldpost.image(id).then((blob) => URL.createObjectURL(blob))); }
    pictures.get(id).then((address) => { image.src = address; }, () => { pictures.delete(id); });
    return image;
}

/** Returns the list item of an inspection. */
function card(inspection) {
    const { site, state, plannedAt, answers, photos, receipt, problem } = inspection.fields;
    const day = new Date(plannedAt).toLocaleDateString();
    const item = make("li", {}, make("strong", {}, `${siteNames.get(site) ?? "No site"}, ${day}: ${state} `));
    for (const [question, answer] of Object.entries(answers)) { item.append(make("div", {}, `${question} ${answer}`)); }
    item.append(...(photos ?? []).map(picture));
    if (problem) { item.append(make("div", { className: "problem" }, problem)); }
    if (state === "draft") {
        const send = () => fieldpost.patch(inspection.realm, "Inspection", inspection.id, { state: "sent" });
        item.append(make("button", { textContent: "Send", onclick: send }));
    } else if (receipt) {
        item.append(make("button", { textContent: "Receipt", onclick: () => download(receipt) }));
    } else if (!problem) {
        item.append("waiting for its receipt");
    }
    if (inspection.isPending) { item.append(" (saving)"); }
    return item;
}

/** Saves a receipt as a file. */
async function download(receipt) {
    const href = URL.createObjectURL(await fieldpost.image(receipt));
    make("a", { href, download: "receipt.pdf" }).click();
    URL.revokeObjectURL(href);
}

element("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target;
    const photos = form.photo.files.length > 0 ? [await fieldpost.addImage(await scaleImage(form.photo.files[0]))] : [];
    const answers = { "Is it safe?": form.answer.value };
    await fieldpost.put(`/users/${fieldpost.status.email}`, "Inspection", newID(), {
        site: form.site.value, state: "draft", plannedAt: new Date().toISOString(), answers, photos,
    });
    form.reset();
});
