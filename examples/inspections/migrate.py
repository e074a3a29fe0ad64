"""Converts the export of a Realm app to objects of Fieldpost.

    python3 migrate.py objects EXPORT > objects.jsonl   # lines for `fieldpost import objects`
    GATEWAY_URL=… FIELDPOST_KEY=fpk_… python3 migrate.py photos EXPORT

EXPORT is a folder with the lines of `mongoexport --jsonFormat=relaxed` for each class. `people.json` next to this
program has the e-mail address of each user id. Both commands can be repeated until people use the app: the export wins.
Ids of objects are derived from those of Realm. Ids of photos also from `secret` in EXPORT, which is created once: a
person who could guess an id could read the photo.
"""

import base64
import json
import pathlib
import sys
import uuid

from gateway import Gateway, log

COMMON = ("Site", "Equipment", "Part", "Checklist")
OWNED = ("Inspection", "Finding", "Measurement", "Comment")
LINKS = ("site", "checklist", "inspection", "equipment", "finding", "fits")
PEOPLE = json.loads(pathlib.Path(__file__).with_name("people.json").read_text())


def new_id(*names):
    """Returns the id of an object or photo: the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "https://realm.example/" + "/".join(names)))


def converted(name, value):
    """Returns a field's value."""
    if isinstance(value, list):
        return [converted(name, element) for element in value]
    if not isinstance(value, dict):
        return value
    if "$oid" in value:
        return new_id(value["$oid"]) if name in LINKS else value["$oid"]
    if "$date" in value:
        return value["$date"]
    if "$numberDecimal" in value:
        return value["$numberDecimal"]
    return {member: converted(member, inner) for member, inner in value.items()}


def documents(folder, kind):
    with open(pathlib.Path(folder, kind + ".json"), encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def realm(kind, document):
    return "/common" if kind in COMMON else "/users/" + PEOPLE[document["owner_id"]]


def objects(folder):
    for kind in COMMON + OWNED:
        for document in documents(folder, kind):
            fields = {
                name: converted(name, value)
                for name, value in document.items()
                if name not in ("_id", "owner_id", "photos") and value is not None
            }
            line = {"realm": realm(kind, document), "kind": kind, "id": new_id(document["_id"]["$oid"])}
            print(json.dumps(line | {"fields": fields}, ensure_ascii=False))


def photos(folder):
    """Uploads each inspection's photos, then names them in the inspection that was imported before."""
    gateway = Gateway()
    secret = pathlib.Path(folder, "secret")
    if not secret.exists():
        secret.write_text(str(uuid.uuid4()))
    for document in documents(folder, "Inspection"):
        source = document["_id"]["$oid"]
        ids = []
        for number, photo in enumerate(document["photos"]):
            ids.append(new_id(secret.read_text(), source, str(number)))
            gateway.upload(ids[-1], base64.b64decode(photo["$binary"]["base64"]))
        if ids:
            rejection = gateway.patch(realm("Inspection", document), "Inspection", new_id(source), {"photos": ids})
            log(f"{new_id(source)}: " + (rejection["detail"] if rejection else f"{len(ids)} photos"))


if __name__ == "__main__":
    commands = {"objects": objects, "photos": photos}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        print("usage: migrate.py objects|photos EXPORT", file=sys.stderr)
        sys.exit(2)
    commands[sys.argv[1]](sys.argv[2])
