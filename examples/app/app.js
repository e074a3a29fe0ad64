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
    element("status").textContent = `${connection}, ${queued} to send`;
    element("sign-in").hidden = isSignedIn;
    element("visits").hidden = !isSignedIn;
    element("sign-out").hidden = !isSignedIn;
    const rejected = fieldpost.mutations.filter((mutation) => mutation.state === "rejected");
    element("problems").replaceChildren(...rejected.map((mutation) => {
        const item = document.createElement("li");
        const dismiss = document.createElement("button");
        dismiss.textContent = "Dismiss";
        dismiss.addEventListener("click", () => fieldpost.dismiss(mutation));
        item.append(`${mutation.problem.detail} `, dismiss);
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

// 4. Display the visits of this person, now and after each change.
fieldpost.watch("Appointment", { realmPrefix: "/users/" }, (visits) => {
    const sorted = visits.sort((one, other) => one.fields.when.localeCompare(other.fields.when));
    element("list").replaceChildren(...sorted.map((visit) => {
        const item = document.createElement("li");
        const remove = document.createElement("button");
        remove.textContent = "Remove";
        remove.addEventListener("click", () => fieldpost.delete(visit.realm, "Appointment", visit.id));
        const { when, durationMinutes, why } = visit.fields;
        const time = new Date(when).toLocaleString();
        item.append(`${time}, ${durationMinutes} min: ${why} ${visit.isPending ? "(saving) " : ""}`, remove);
        return item;
    }));
});

// 5. Write a visit. It is displayed at once, and sent when the device is online.
element("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target;
    const durationMinutes = form.minutes.valueAsNumber;
    const fields = { when: new Date().toISOString(), durationMinutes, why: form.why.value };
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
