# Hooks of schemathesis (see deploy/test) for rules that a schema cannot express.
import json
import struct
import zlib

import jsonschema_rs
import schemathesis
from hypothesis import strategies

# Images have the structure of their format, which no schema of bytes can express. Their pixels are random.
def jpeg(pixels):
    return b"\xff\xd8\xff\xc0\x00\x02\xff\xda\x00\x02" + pixels.replace(b"\xff", b"\xff\x00") + b"\xff\xd9"


def png(pixels):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes(13)) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def webp(pixels):
    chunk = b"VP8L" + struct.pack("<I", len(pixels)) + pixels + bytes(len(pixels) % 2)
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


for image in (jpeg, png, webp):
    schemathesis.openapi.media_type(f"image/{image.__name__}", strategies.binary(max_size=500).map(image))


@schemathesis.hook
def before_load_schema(context, raw_schema):
    # Schemathesis cannot generate values for so many conditions: the fields of mutations are arbitrary. Errors in them
    # reject single mutations, not the whole request.
    del raw_schema["components"]["schemas"]["Mutation"]["allOf"]
    # The environment of the test declares no kinds.
    raw_schema["components"]["schemas"]["KindName"]["anyOf"].pop()


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if not isinstance(body, dict):
        return
    # Responses are read completely: do not request a live stream.
    if body.get("live") is True:
        body["live"] = False
    # Sequences increase by one, and are written without a decimal point.
    mutations = body.get("mutations")
    if isinstance(mutations, list) and mutations and all(isinstance(m, dict) for m in mutations):
        first = mutations[0].get("sequence")
        if all(isinstance(m.get("sequence"), (int, float)) and m["sequence"] >= 1 for m in mutations):
            for number, mutation in enumerate(mutations):
                mutation["sequence"] = min(int(first), 10**15) + number


@schemathesis.check
def every_line_has_its_shape(ctx, response, case):
    if "application/x-ndjson" not in str(response.headers.get("content-type")):
        return
    document = case.operation.schema.raw_schema
    line_schema = {"$ref": "#/components/schemas/Line", "components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(line_schema)
    lines = response.content.splitlines()
    assert lines, "the stream has no line"
    for line in lines:
        validator.validate(json.loads(line))
    assert "checkpoint" in json.loads(lines[-1]), "the stream ends without a checkpoint"
