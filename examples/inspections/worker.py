"""A worker that writes a PDF receipt for each inspection that was sent.

    FIELDPOST_KAFKA_BROKERS=127.0.0.1:9092 GATEWAY_URL=http://127.0.0.1:8080 FIELDPOST_KEY=fpk_… \\
        python3 examples/inspections/worker.py ENVIRONMENT

It reads the topic `own.ENVIRONMENT.inspections`, loads the photos, uploads the receipt, and names it in the inspection.
An offset is committed after its message was processed. A message that is repeated has the same effect once:

- The fields are written only while the inspection has the message's position. A newer version has its own message.
- `processed` names the version of the content that has a receipt, or a reason why there is none.

Start as many workers as there are partitions. They share them as a consumer group.
"""

import io
import json
import signal
import sys
import uuid
from xml.sax.saxutils import escape

from confluent_kafka import Consumer, KafkaException
from PIL import Image as Picture
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Image, Paragraph, SimpleDocTemplate, Spacer

from gateway import Gateway, log, setting

GROUP = "inspection-receipts"
PIXELS_MAX = 20_000_000  # of a photo, because they are decoded in memory
RESULT = ("receipt", "problem", "processed")  # the fields that this worker writes


class Unprintable(Exception):
    """The inspection's person must change something before it can have a receipt."""


def receipt(inspection, photo):
    """Returns the PDF of an inspection."""
    styles = getSampleStyleSheet()
    title = "Inspection of " + inspection["plannedAt"][:10]
    story = [Paragraph(title, styles["Title"])]
    for question, answer in inspection["answers"].items():
        story.append(Paragraph(f"{escape(question)} <b>{escape(answer)}</b>", styles["BodyText"]))
    for number, id in enumerate(inspection.get("photos") or [], 1):
        data = photo(id)
        if data is None:
            raise Unprintable(f"Photo {number} was not uploaded.")
        story += [Spacer(1, 12), picture(number, data)]
    file = io.BytesIO()
    SimpleDocTemplate(file, pagesize=A4, title=title).build(story)
    if file.tell() > 1 << 20:
        raise Unprintable("The receipt is larger than 1 MiB: use fewer or smaller photos.")
    return file.getvalue()


def picture(number, data):
    """Returns a photo that was decoded, so that the document can be made of it."""
    try:
        photo = Picture.open(io.BytesIO(data))
        if photo.width * photo.height > PIXELS_MAX:
            raise Unprintable(f"Photo {number} has more than {PIXELS_MAX} pixels.")
        photo.load()
        return Image(io.BytesIO(data), width=440, height=300, kind="proportional")
    except (OSError, SyntaxError, ValueError, Picture.DecompressionBombError) as error:
        raise Unprintable(f"Photo {number} cannot be read.") from error


def process(gateway, realm, kind, id, position, inspection):
    content = {name: inspection[name] for name in sorted(inspection) if name not in RESULT}
    version = str(uuid.uuid5(uuid.UUID(id), json.dumps(content)))
    if content["state"] != "sent" or inspection.get("processed") == version:
        return
    result = {"receipt": None, "problem": None, "processed": version}
    try:
        pdf = receipt(content, gateway.download)
        # Random: a person could guess another id, and upload their own document under it.
        result["receipt"] = str(uuid.uuid4())
        gateway.upload(result["receipt"], pdf)
    except Unprintable as error:
        result["problem"] = str(error)
    rejection = gateway.patch(realm, kind, id, result, position)
    outcome = rejection["detail"] if rejection else result["problem"] or "receipt"
    log(f"{realm}/{kind}/{id} at {position}: {outcome}")


def handle(gateway, message):
    """Processes a message. A tombstone has no value: the inspection was deleted."""
    headers = {name: value.decode() for name, value in message.headers() or []}
    if message.value() is None:
        return
    realm, kind, id = headers["ce_subject"].rsplit("/", 2)
    process(gateway, realm, kind, id, int(headers["fieldpost-position"]), json.loads(message.value()))


def run(environment):
    gateway = Gateway()
    consumer = Consumer(
        {
            "bootstrap.servers": setting("FIELDPOST_KAFKA_BROKERS"),
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # The partitions of a worker that was killed are assigned to another one after this time.
            "session.timeout.ms": 6000,
        }
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit())  # at any moment: the message is delivered again
    consumer.subscribe([f"own.{environment}.inspections"])
    try:
        while True:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                if message.error().fatal():
                    raise KafkaException(message.error())
                log(f"Kafka: {message.error()}")
                continue
            handle(gateway, message)
            try:
                consumer.commit(message, asynchronous=False)
            except KafkaException as error:  # the partition has another worker, which processes the message again
                log(f"Kafka: {error}")
    finally:
        consumer.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: worker.py ENVIRONMENT", file=sys.stderr)
        sys.exit(2)
    run(sys.argv[1])
