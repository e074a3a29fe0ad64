import { Fieldpost, newID } from "./fieldpost.js";

const element = (id) => document.getElementById(id);

// 1. Open the store on this device. It connects if a person is signed in.
const fieldpost = await Fieldpost.open({
    onboarding: "http://127.0.0.1:18083",
    gateway: "http://127.0.0.1:18080",
    name: "visits",
});

// 2. Show the status of the connection and of the person's changes.
function showStatus() {
    const { connection, email, queued } = fieldpost.status;
    const isSignedIn = email !== undefined;
    element("status").textContent = `${connection}, ${queued} changes to send`;
    element("sign-in").hidden = isSignedIn;
    element("visits").hidden = !isSignedIn;
    element("sign-out").hidden = !isSignedIn;
    const rejected = fieldpost.mutations.filter((mutation) => mutation.state === "rejected");
    element("problems").replaceChildren(...rejected.map((mutation) => {
        const item = document.createElement("li");
        item.textContent = mutation.problem.detail;
        return item;
    }));
}
fieldpost.addEventListener("status", showStatus);
showStatus();

// 3. Sign a person in: they log in at their organisation's provider, in another tab.
element("sign-in").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
        const signIn = await fieldpost.signIn(event.target.email.value);
        element("login").href = signIn.loginURL;
        element("login").hidden = false;
        await signIn.done;
        element("login").hidden = true;
    } catch (error) {
        element("status").textContent = error.message;
    }
});

// 4. Display the visits of this person, now and after each change.
fieldpost.watch("Appointment", { realmPrefix: "/users/" }, (visits) => {
    const sorted = visits.toSorted((one, other) => one.fields.when.localeCompare(other.fields.when));
    element("list").replaceChildren(...sorted.map((visit) => {
        const item = document.createElement("li");
        const remove = document.createElement("button");
        remove.textContent = "Remove";
        remove.addEventListener("click", () => fieldpost.delete(visit.realm, "Appointment", visit.id));
        const time = new Date(visit.fields.when).toLocaleString();
        item.append(`${time}: ${visit.fields.why} ${visit.isPending ? "(saving) " : ""}`, remove);
        return item;
    }));
});

// 5. Write a visit. It is displayed at once, and sent when the device is online.
element("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target;
    const fields = { when: new Date().toISOString(), durationMinutes: 30, why: form.why.value };
    await fieldpost.put(`/users/${fieldpost.status.email}`, "Appointment", newID(), fields);
    form.reset();
});

// 6. Sign out. Changes that were not sent would be lost.
element("sign-out").addEventListener("click", async () => {
    try {
        await fieldpost.signOut();
    } catch (error) {
        if (error.code !== "queued-mutations") { throw error; }
        if (confirm("Some changes were not sent. Discard them?")) { await fieldpost.signOut({ discard: true }); }
    }
});
