"""A client of the device API for an integration. It needs Python 3.11 and no packages.

It reads `GATEWAY_URL` and `FIELDPOST_KEY` from the environment.
"""

import http.client
import json
import os
import sys
import time
import uuid
from urllib.error import HTTPError
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
        key = setting("FIELDPOST_KEY")
        if not key.isascii():
            raise SystemExit("FIELDPOST_KEY is no key: it has characters other than ASCII")
        self.headers = {"Authorization": "Bearer " + key}
        self.client, self.sequence = str(uuid.uuid4()), 0  # new at each start, so sequence numbers begin at 1

    def send(self, method, path, body=None, content_type="application/json"):
        """Returns the status and the body. Retries while the gateway is unavailable or limits the rate."""
        request = Request(self.url + path, body, self.headers | {"Content-Type": content_type}, method=method)
        wait = 1
        while True:
            after = ""
            try:
                with urlopen(request, timeout=30) as response:
                    return response.status, response.read()
            except HTTPError as error:
                reason, after = str(error), error.headers.get("Retry-After", "")
                try:
                    content = error.read()
                except (OSError, http.client.HTTPException):
                    content = b""
                if error.code not in (429, 500, 502, 503, 504):
                    return error.code, content
                reason += " " + content.decode(errors="replace")[:500]
            except (OSError, http.client.HTTPException) as error:
                reason = str(error)
            delay = min(RETRY_MAX, int(after) if after.isdigit() else wait)
            log(f"{method} {path} failed: {reason}; retrying in {delay} s")
            time.sleep(delay)
            wait = min(RETRY_MAX, wait * 2)

    def download(self, id):
        """Returns a blob's bytes; None if it does not exist, or the objects that refer to it were deleted."""
        status, body = self.send("GET", f"/v1/blobs/{id}")
        if status == 404:
            return None
        return self.expect(status, body, 200)

    def upload(self, id, content):
        """Uploads a blob. A repeated upload of the same bytes has no effect."""
        self.expect(*self.send("PUT", f"/v1/blobs/{id}", content, "application/octet-stream"), 201, 204)

    def patch(self, realm, kind, id, fields, position=None):
        """Writes fields; with a position, only while the object has it. Returns the rejection, or None."""
        self.sequence += 1
        mutation = {"sequence": self.sequence, "realm": realm, "op": "patch", "kind": kind, "id": id, "fields": fields}
        if position is not None:
            mutation["position"] = position
        batch = json.dumps({"clientId": self.client, "mutations": [mutation]}).encode()
        body = self.expect(*self.send("POST", "/v1/mutations", batch), 200)
        return json.loads(body)["results"][0].get("rejected")

    @staticmethod
    def expect(status, body, *statuses):
        if status not in statuses:
            raise SystemExit(f"the gateway responded with status {status}: {body.decode(errors='replace')}")
        return body
