"""A client of the device API for an integration. It needs Python 3.11 and no packages.

It reads `GATEWAY_URL` and `FIELDPOST_KEY` from the environment.
"""

import json
import os
import sys
import time
import uuid
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

RETRY_MAX = 60  # seconds


def log(text):
    print(text, file=sys.stderr, flush=True)


def setting(name):
    """Returns the value of an environment variable."""
    if name not in os.environ:
        raise SystemExit(f"{name} is not set")
    return os.environ[name]


class Gateway:
    """The device API, as an integration."""

    def __init__(self):
        self.url = setting("GATEWAY_URL")
        self.headers = {"Authorization": "Bearer " + setting("FIELDPOST_KEY")}
        self.client, self.sequence = str(uuid.uuid4()), 0  # new at each start, so sequence numbers begin at 1

    def send(self, method, path, body=None, content_type="application/json"):
        """Returns the status and the body. Retries while the gateway is unavailable or limits the rate."""
        request = Request(self.url + path, body, self.headers | {"Content-Type": content_type}, method=method)
        wait = 1
        while True:
            try:
                with urlopen(request, timeout=30) as response:
                    return response.status, response.read()
            except HTTPError as error:
                if error.code not in (429, 500, 502, 503, 504):
                    return error.code, error.read()
                reason, after = str(error), error.headers.get("Retry-After", "")
            except (URLError, OSError) as error:
                reason, after = str(error), ""
            delay = min(RETRY_MAX, int(after) if after.isdigit() else wait)
            log(f"the gateway is unavailable ({reason}); retrying in {delay} s")
            time.sleep(delay)
            wait = min(RETRY_MAX, wait * 2)

    def download(self, id):
        """Returns a blob's bytes; None if it does not exist, or the objects that refer to it were deleted."""
        status, body = self.send("GET", f"/v1/blobs/{id}")
        if status == 404:
            return None
        return self.expect(status, body, 200)

    def upload(self, id, content):
        """Uploads a blob. Returns without a change if an earlier attempt has stored one with this id."""
        status, body = self.send("PUT", f"/v1/blobs/{id}", content, "application/octet-stream")
        if status != 409 or problem_type(body) != "blob-taken":
            self.expect(status, body, 201, 204)

    def patch(self, realm, kind, id, fields, position=None):
        """Writes fields. With a position, returns False if the object has another one, and writes nothing."""
        self.sequence += 1
        mutation = {"sequence": self.sequence, "realm": realm, "op": "patch", "kind": kind, "id": id, "fields": fields}
        if position is not None:
            mutation["position"] = position
        batch = json.dumps({"clientId": self.client, "mutations": [mutation]}).encode()
        body = self.expect(*self.send("POST", "/v1/mutations", batch), 200)
        rejection = json.loads(body)["results"][0].get("rejected")
        if rejection and not rejection["type"].endswith(":version-conflict"):
            raise SystemExit(f"the gateway rejected the fields of {realm}/{kind}/{id}: {rejection}")
        return not rejection

    @staticmethod
    def expect(status, body, *statuses):
        if status not in statuses:
            raise SystemExit(f"the gateway responded with status {status}: {body.decode(errors='replace')}")
        return body


def problem_type(body):
    """Returns the name of a problem in application/problem+json."""
    return json.loads(body).get("type", "").rpartition(":")[2]
