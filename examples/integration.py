"""An integration that serves an environment without a back end (`--backend none`), instead of an adapter.

    GATEWAY_URL=http://127.0.0.1:8080 FIELDPOST_KEY=fpk_… python3 examples/integration.py

It follows the environment's realms and entries in one stream, fills the realms of new people, and processes entries.
It needs Python 3.11 and no packages. It exits if a mutation is rejected, except by its version check, or if the gateway
is unavailable: have a supervisor restart it. Run one instance per environment.
"""

import datetime
import json
import os
import uuid
from urllib.request import Request, urlopen

from picker import problems

URL = os.environ["GATEWAY_URL"]
HEADERS = {"Authorization": "Bearer " + os.environ["FIELDPOST_KEY"], "Content-Type": "application/json"}
KINDS = ["Realms", "TimeEntry", "TimeEntryStatus"]

client = str(uuid.uuid4())  # new at each start, so sequence numbers begin at 1
sequence = 0
answered = {}  # entry → time and ids of its newest log lines; one of the ids identifies the processed version


def post(path, body):
    return urlopen(Request(URL + path, json.dumps(body).encode(), HEADERS))


def named(name):
    """Returns an id derived from a name: it is the same in every run, so a repeated write updates the same object."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "https://books.example/" + name))


def mutation(realm, op, kind, id, fields=None, position=None):
    mutation = {"realm": realm, "op": op, "kind": kind, "id": id}
    if fields is not None:
        mutation["fields"] = fields
    if position is not None:
        mutation["position"] = position
    return mutation


def write(*mutations):
    """Returns False if an object has changed since it was read. The stream delivers its new version."""
    global sequence
    for one in mutations:
        sequence += 1
        one["sequence"] = sequence
    answer = json.load(post("/v1/mutations", {"clientId": client, "mutations": mutations}))
    rejections = [result["rejected"] for result in answer["results"] if "rejected" in result]
    if any(not rejection["type"].endswith(":version-conflict") for rejection in rejections):
        raise SystemExit(rejections)
    return not rejections


CATALOGUE, ROOT, ROOF, CONTEXT, TEMPLATE = map(named, ("catalogue", "root", "P1", "project", "template"))
CHOICES = {  # the fields of the reporting choices, by kind and id; the same for all people
    "ReportingTreeNode": {ROOT: {"name": "projects"}, ROOF: {"name": "Roof", "referenceId": "P1", "parent": ROOT}},
    "ReportingContext": {
        CONTEXT: {"name": "Project", "required": True, "sections": [{"name": "All", "rootNode": ROOT}]}
    },
    "ReportingTemplate": {TEMPLATE: {"name": "Project time", "type": "project", "reportingContexts": [CONTEXT]}},
}


def initialise(registration, person, realm):
    """Writes a person's reporting choices. Call it again when they change."""
    user = {"email": person, "name": person, "catalogue": CATALOGUE, "reportingTemplates": [TEMPLATE]}
    choices = [
        mutation("/catalogues/" + CATALOGUE if kind == "ReportingTreeNode" else realm, "put", kind, id, fields)
        for kind, objects in CHOICES.items()
        for id, fields in objects.items()
    ]
    write(
        *choices,
        mutation(realm, "put", "User", named(person), user),
        mutation("/users", "patch", "Realms", registration, {"isInitialized": True}),
    )


def submit(realm, id, position, entry):
    """Processes an entry as it was read at `position`. Call your back end here: before you retry a write, look the
    entry up there."""
    if entry.get("deleteRequested"):
        write(mutation(realm, "delete", "TimeEntry", id, position=position))
        return
    content = {name: entry[name] for name in sorted(entry) if name not in ("status", "statusAt", "backendId")}
    version = named(id + json.dumps(content))
    if not entry.get("submitRequested") or version in answered.get(id, ("", []))[1]:
        return
    reasons = [problem["message"] for problem in problems(entry, CHOICES)]
    answer = {"status": "invalid"} if reasons else {"status": "released", "backendId": "B-" + id[:8]}
    answer["statusAt"] = time_after(entry.get("statusAt"))
    if write(mutation(realm, "patch", "TimeEntry", id, answer, position)):
        store_answer(id, answer["statusAt"], version)
        line = {"entry": id, "status": answer["status"], "timestamp": answer["statusAt"]}
        ids = [version] + [named(version + reason) for reason in reasons[1:]]
        lines = zip(ids, reasons or [None])
        write(*(mutation(realm, "put", "TimeEntryStatus", id, line | {"message": reason}) for id, reason in lines))


def store_answer(entry, time, line):
    """Stores the ids of an entry's newest log lines, which have the same time."""
    newest, lines = answered.get(entry, ("", []))
    if time >= newest:
        answered[entry] = time, [line] + (lines if time == newest else [])


def time_after(last):
    """Returns the current time, or one later than the entry's last log line: the newest line has its status."""
    last = datetime.datetime.fromisoformat(last or "2000-01-01T00:00Z") + datetime.timedelta(milliseconds=1)
    return max(last, datetime.datetime.now(datetime.timezone.utc)).isoformat(timespec="milliseconds")


def follow(cursor):
    """Reads a stream to its end: current state first, then changes. Returns the cursor to resume from."""
    entries = {}  # entries that changed since the last checkpoint
    with post("/v1/sync", {"all": True, "kinds": KINDS, "cursor": cursor, "live": True}) as lines:
        for line in lines:
            ((sort, value),) = json.loads(line).items()
            for object in value.get("list", []):
                kind, id, fields = object["kind"], object["id"], object.get("fields")
                if kind == "TimeEntry":  # the latest version counts; a deleted one has no fields
                    entries[id] = value["realm"], id, object["position"], fields or {}
                elif kind == "Realms" and fields and not fields.get("isInitialized"):
                    initialise(id, fields["userId"], fields["path"])
                elif kind == "TimeEntryStatus" and fields:
                    store_answer(fields["entry"], fields["timestamp"], id)
            if sort in ("checkpoint", "keepalive"):  # everything up to here is consistent
                for entry in entries.values():
                    submit(*entry)
                cursor, entries = value["cursor"], {}
    return cursor


if __name__ == "__main__":
    cursor = None
    while True:
        cursor = follow(cursor)
