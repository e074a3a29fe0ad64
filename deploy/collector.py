"""A receiver of spans for tests: OTLP over HTTP as JSON, parsed with the published messages of opentelemetry-proto.

usage: collector.py FOLDER

FOLDER/port has its port once it listens. Each accepted span is a line of JSON in FOLDER/spans, with the attributes of
its resource and its own. An invalid message, or one with an unknown field, gets 400, with the reason in FOLDER/refused.
FOLDER/answers, if it exists, has a line for each of the next requests that gets another response: a status, followed by
a header, or by the body if it starts with "{".
"""
import base64
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

folder, parent = sys.argv[1], os.getppid()
lock = threading.Lock()


def values(attributes):
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


def identifier(read, length):
    # The JSON encoding has hexadecimal digits here, which the library decodes as base64.
    text = base64.b64encode(read).decode()
    if not re.fullmatch("[0-9a-f]{%d}" % length, text) or set(text) == {"0"}:
        raise ValueError(f"not an id of {length} digits: {text}")
    return text


def spans(body):
    message = json_format.Parse(body, ExportTraceServiceRequest())
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                if not span.name or span.end_time_unix_nano < span.start_time_unix_nano or not span.start_time_unix_nano:
                    raise ValueError(f"not a span: {span}")
                yield {
                    "resource": values(resource.resource.attributes),
                    "scope": scope.scope.name,
                    "trace": identifier(span.trace_id, 32),
                    "span": identifier(span.span_id, 16),
                    "parent": identifier(span.parent_span_id, 16) if span.parent_span_id else None,
                    "name": span.name,
                    "kind": Span.SpanKind.Name(span.kind),
                    "status": Status.StatusCode.Name(span.status.code),
                    "message": span.status.message,
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": {key: str(value) for key, value in values(span.attributes).items()},
                }


def next_answer():
    path = f"{folder}/answers"
    with lock:
        lines = open(path).read().splitlines() if os.path.exists(path) else []
        if not lines:
            return None
        with open(path, "w") as file:
            file.write("".join(line + "\n" for line in lines[1:]))
        return lines[0]


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, header=None, body=b"{}"):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if header:
            self.send_header(*header.split(": ", 1))
        self.end_headers()
        self.wfile.write(body)

    def note(self, name, what):
        with lock, open(f"{folder}/{name}", "a") as file:
            file.write(json.dumps(what) + "\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.note("requests", {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}})
        status, _, rest = (next_answer() or "200").partition(" ")
        try:
            if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/json":
                raise ValueError(f"{self.path} {self.headers['Content-Type']}")
            found = list(spans(body))
        except Exception as error:
            self.note("refused", f"{error}")
            return self.answer(400)
        if status == "200":
            for span in found:
                self.note("spans", span)
        if rest.startswith("{"):
            self.answer(int(status), body=rest.encode())
        else:
            self.answer(int(status), header=rest or None)


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(f"{folder}/port.new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(f"{folder}/port.new", f"{folder}/port")
# Exit together with the parent process.
while os.getppid() == parent:
    time.sleep(1)
