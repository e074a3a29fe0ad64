"""Acme's own system: employees record minutes on tasks. It keeps nothing after its end.

    ACME_TOKEN=secret python3 examples/acme-adapter/acme.py 18400

It needs Python 3.11 and no packages. Port 0 selects a free port. The first line of the output is the address.
"""

import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

TASKS = [{"number": 17, "name": "roof"}, {"number": 23, "name": "cellar"}]
rows = {}  # number → row
lock = threading.Lock()


class Refusal(Exception):
    """A request that Acme refuses, with the reason."""


def save(row, number):
    """Validates a row and stores it under its number."""
    if row.get("task") not in [task["number"] for task in TASKS]:
        raise Refusal(f"there is no task {row.get('task')}")
    names = ["employee", "day", "task", "note", "minutes"]
    rows[number] = {"number": number, "isApproved": False} | {name: row[name] for name in names}
    return {"rows": [rows[number]]}


def respond(method, path, body):
    if (method, path) == ("GET", "/tasks"):
        return {"tasks": TASKS}
    match = re.fullmatch(r"/employees/([^/]+)/rows(?:/(\d+))?", path)
    if not match:
        raise Refusal(f"there is no {method} {path}")
    employee, number = unquote(match[1]), int(match[2] or 0)
    if method == "GET" and not number:
        return {"rows": [row for row in rows.values() if row["employee"] == employee]}
    if method == "POST" and not number:
        return save(body | {"employee": employee}, max(rows, default=0) + 1)
    row = rows.get(number)
    if not row or row["employee"] != employee or row["isApproved"]:
        raise Refusal("there is no such row, or it is approved")
    if method == "PUT":
        return save(body | {"employee": employee}, number)
    return {"rows": [rows.pop(number)]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = 200, {}
        if self.headers.get("Authorization") != "Bearer " + os.environ["ACME_TOKEN"]:
            status, answer = 401, {"text": "wrong token"}
        else:
            try:
                with lock:
                    answer = respond(self.command, self.path, json.loads(body or "{}"))
            except (Refusal, KeyError, ValueError) as error:
                status, answer = 400, {"text": str(error)}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = handle_request

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
