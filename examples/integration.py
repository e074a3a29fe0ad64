"""An integration: it does for an environment without a back end (`--backend none`) what an adapter would.

    GATEWAY_URL=http://127.0.0.1:8080 FIELDPOST_KEY=fpk_… python3 examples/integration.py

It follows the environment's realms and entries in one stream, fills the realms of new people, and answers entries.
Python 3.11 suffices, without packages. It ends when a mutation is rejected for another reason than its position, or
when the gateway is away: let it be started again. One such program at a time answers an environment's entries.
"""

import datetime
import json
import os
import uuid
from urllib.request import Request, urlopen

URL = os.environ["GATEWAY_URL"]
HEADERS = {"Authorization": "Bearer " + os.environ["FIELDPOST_KEY"], "Content-Type": "application/json"}
KINDS = ["Realms", "TimeEntry", "TimeEntryStatus"]

client = str(uuid.uuid4())  # new with each start, so that its sequences begin at 1
sequence = 0
answered = {}  # entry → the time of its newest line, and the id of that line: the version that is answered


def post(path, body):
    return urlopen(Request(URL + path, json.dumps(body).encode(), HEADERS))


def named(name):
    """An id made of a name: the same one in every run, so that what is written again stays one object."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "https://books.example/" + name))


def mutation(realm, op, kind, id, fields=None, position=None):
    mutation = {"realm": realm, "op": op, "kind": kind, "id": id}
    if fields is not None:
        mutation["fields"] = fields
    if position is not None:
        mutation["position"] = position
    return mutation


def write(*mutations):
    """False: somebody has changed an object since it was read. What it is now comes with the stream."""
    global sequence
    for one in mutations:
        sequence += 1
        one["sequence"] = sequence
    answer = json.load(post("/v1/mutations", {"clientId": client, "mutations": mutations}))
    rejections = [result["rejected"] for result in answer["results"] if "rejected" in result]
    if any(not rejection["type"].endswith(":position-passed") for rejection in rejections):
        raise SystemExit(rejections)
    return not rejections


def initialise(registration, person, realm):
    """Writes what a person may report on. Call it again when that has changed."""
    catalogue, root, context, template = map(named, ("catalogue", "root", "project", "template"))
    tree = "/catalogues/" + catalogue
    node = {"name": "Roof", "referenceId": "P1", "parent": root}
    choice = {"name": "Project", "required": True, "sections": [{"name": "All", "rootNode": root}]}
    work = {"name": "Project time", "type": "project", "reportingContexts": [context]}
    user = {"email": person, "name": person, "catalogue": catalogue, "reportingTemplates": [template]}
    write(
        mutation(tree, "put", "ReportingTreeNode", root, {"name": "projects"}),
        mutation(tree, "put", "ReportingTreeNode", named("P1"), node),
        mutation(realm, "put", "ReportingContext", context, choice),
        mutation(realm, "put", "ReportingTemplate", template, work),
        mutation(realm, "put", "User", named(person), user),
        mutation("/users", "patch", "Realms", registration, {"isInitialized": True}),
    )


def submit(realm, id, position, entry):
    """Answers an entry as it was read at `position`. Here a back end would be called: look the entry up in it before
    you write it a second time."""
    if entry.get("deleteRequested"):
        write(mutation(realm, "delete", "TimeEntry", id, position=position))
        return
    content = {name: entry[name] for name in sorted(entry) if name not in ("status", "statusAt", "backendId")}
    version = named(id + json.dumps(content))
    if not entry.get("submitRequested") or answered.get(id, ("", ""))[1] == version:
        return
    problem = None if entry.get("reporting") else "Project is missing"
    answer = {"status": "invalid"} if problem else {"status": "released", "backendId": "B-" + id[:8]}
    answer["statusAt"] = time_after(entry.get("statusAt"))
    if write(mutation(realm, "patch", "TimeEntry", id, answer, position)):
        answered[id] = answer["statusAt"], version
        line = {"entry": id, "status": answer["status"], "timestamp": answer["statusAt"], "message": problem}
        write(mutation(realm, "put", "TimeEntryStatus", version, line))


def time_after(last):
    """Now, but later than the entry's last line: the newest line tells its status."""
    last = datetime.datetime.fromisoformat(last or "2000-01-01T00:00Z") + datetime.timedelta(milliseconds=1)
    return max(last, datetime.datetime.now(datetime.timezone.utc)).isoformat(timespec="milliseconds")


def follow(cursor):
    """Reads a stream to its end: the present state first, then what changes. Returns the cursor to go on from."""
    entries = {}  # those that have changed since the last checkpoint
    with post("/v1/sync", {"all": True, "kinds": KINDS, "cursor": cursor, "live": True}) as lines:
        for line in lines:
            ((sort, value),) = json.loads(line).items()
            for object in value.get("list", []):
                kind, id, fields = object["kind"], object["id"], object.get("fields")
                if kind == "TimeEntry":  # the last one counts; one that was deleted has no fields
                    entries[id] = value["realm"], id, object["position"], fields or {}
                elif kind == "Realms" and fields and not fields.get("isInitialized"):
                    initialise(id, fields["userId"], fields["path"])
                elif kind == "TimeEntryStatus" and fields:
                    newest = fields["timestamp"], id
                    answered[fields["entry"]] = max(answered.get(fields["entry"], newest), newest)
            if sort in ("checkpoint", "keepalive"):  # what came until here belongs together
                for entry in entries.values():
                    submit(*entry)
                cursor, entries = value["cursor"], {}
    return cursor


if __name__ == "__main__":
    cursor = None
    while True:
        cursor = follow(cursor)
