"""A worker that writes a PDF receipt for each inspection that was sent.

    FIELDPOST_KAFKA_BROKERS=127.0.0.1:9092 GATEWAY_URL=http://127.0.0.1:8080 FIELDPOST_KEY=fpk_… \\
        python3 examples/inspections/worker.py ENVIRONMENT

It reads the topic `own.ENVIRONMENT.inspections`, loads the photos, uploads the receipt, and names it in the inspection.
An offset is committed after its message was processed. A message that is repeated has the same effect once:

- The receipt's id is derived from the inspection's content, so an upload is repeated under the same id.
- The fields are written only while the inspection has the message's position. A newer version has its own message.

Start as many workers as there are partitions. They share them as a consumer group.
"""

import io
import json
import signal
import sys
import uuid
from xml.sax.saxutils import escape

from confluent_kafka import Consumer, KafkaException
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Image, Paragraph, SimpleDocTemplate, Spacer

from gateway import Gateway, log, setting

GROUP = "inspection-receipts"
RESULT = ("receipt", "problem", "processed")  # the fields that this worker writes


class Unprintable(Exception):
    """The inspection's person must change something before it can have a receipt."""


def receipt(inspection, photo):
    """Returns the PDF of an inspection. The same content gives the same bytes."""
    styles = getSampleStyleSheet()
    title = "Inspection of " + inspection["plannedAt"][:10]
    story = [Paragraph(title, styles["Title"])]
    for question, answer in inspection["answers"].items():
        story.append(Paragraph(f"{escape(question)} <b>{escape(answer)}</b>", styles["BodyText"]))
    for number, id in enumerate(inspection.get("photos") or [], 1):
        data = photo(id)
        if data is None:
            raise Unprintable(f"Photo {number} was not uploaded.")
        try:
            image = Image(io.BytesIO(data), width=440, height=300, kind="proportional")
        except Exception as error:  # of any image library
            raise Unprintable(f"Photo {number} cannot be read.") from error
        story += [Spacer(1, 12), image]
    file = io.BytesIO()
    # `invariant`: no time and no random id.
    SimpleDocTemplate(file, pagesize=A4, title=title, invariant=1).build(story)
    if file.tell() > 1 << 20:
        raise Unprintable("The receipt is larger than 1 MiB: use fewer or smaller photos.")
    return file.getvalue()


def process(gateway, realm, kind, id, position, inspection):
    content = {name: inspection[name] for name in sorted(inspection) if name not in RESULT}
    version = str(uuid.uuid5(uuid.UUID(id), json.dumps(content)))
    if content["state"] != "sent" or inspection.get("processed") == version:
        return
    result = {"receipt": version, "problem": None, "processed": version}
    try:
        gateway.upload(version, receipt(content, gateway.download))
    except Unprintable as error:
        result |= {"receipt": None, "problem": str(error)}
    written = gateway.patch(realm, kind, id, result, position)
    log(f"{realm}/{kind}/{id} at {position}: " + ((result["problem"] or "receipt") if written else "changed meanwhile"))


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
