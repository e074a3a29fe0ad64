"""Receivers of notices for tests: a mail server, a webhook receiver and push services, with TLS.

usage: receivers.py FOLDER

FOLDER/secret has the signing key of webhooks. The program writes FOLDER/certificate.pem, the certificate of all
receivers, and FOLDER/received, a line of JSON for each message. Once all receivers listen, FOLDER/ports has their ports
and a browser's subscription. Signatures are verified by the packages standardwebhooks and cryptography, messages are
decrypted by http_ece. APNs and FCM are in push_services.py.

The address of a request or an e-mail selects a fault:
  /hook?status=503&times=2&retry=1   responds 503 twice, with Retry-After, then 204; likewise /push
  /hook?hold=1                       accepts the first request, and never responds
  busy@…, nobody@…, hold@…           gets 451 once, always 550, and no response the first time
"""
import asyncio
import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import http_ece
import push_services
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from standardwebhooks import Webhook

folder, parent = sys.argv[1], os.getppid()
lock, counts = threading.Lock(), Counter()


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


browser = ec.generate_private_key(ec.SECP256R1())
browser_point = browser.public_key().public_bytes(
    serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
browser_secret = bytes(range(16))


def received(**what):
    with lock, open(f"{folder}/received", "a") as file:
        file.write(json.dumps(what) + "\n")


def count(key):
    with lock:
        counts[key] += 1
        return counts[key]


def vapid_claims(header):
    """Verifies a token with the key of the same header, and returns its claims."""
    parts = dict(part.strip().split("=", 1) for part in header.removeprefix("vapid ").split(","))
    head, claims, signature = parts["t"].split(".")
    raw = unbase64url(signature)
    der = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unbase64url(parts["k"]))
    key.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    return json.loads(unbase64url(claims)) | {"key": parts["k"]}


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        address = urllib.parse.urlsplit(self.path)
        wishes = dict(urllib.parse.parse_qsl(address.query))
        number = count(self.path)
        status = 204 if number > int(wishes.get("times", 1 << 30)) else int(wishes.get("status", 204))
        what = {"path": self.path, "status": status, "headers": {k.lower(): v for k, v in self.headers.items()}}
        try:
            if address.path.startswith("/hook"):
                with open(f"{folder}/secret") as file:
                    secret = file.read().strip()
                Webhook(secret).verify(body, what["headers"])
                received(kind="webhook", text=body.decode(), **what)
            else:
                claims = vapid_claims(self.headers["authorization"])
                text = http_ece.decrypt(body, private_key=browser, auth_secret=browser_secret, version="aes128gcm")
                received(kind="push", text=text.decode(), claims=json.dumps(claims), **what)
        except Exception as error:
            received(kind="malformed", text=repr(error), **what)
            status = 400
        if wishes.get("hold") and number == 1:
            time.sleep(3600)
        self.send_response(status)
        if "retry" in wishes:
            self.send_header("retry-after", wishes["retry"])
        if 300 <= status < 400:
            self.send_header("location", wishes["to"])
        self.send_header("content-length", "0")
        self.end_headers()


class Mailbox:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 5.1.1 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        address = envelope.rcpt_tos[0]
        received(
            kind="mail", path=address, sender=envelope.mail_from, text=envelope.original_content.decode(),
            status=250, isTLS=server.transport.get_extra_info("ssl_object") is not None,
            login=getattr(session, "user", None), headers={})
        number = count(address)
        if address.startswith("hold@") and number == 1:
            await asyncio.sleep(3600)
        return "451 4.3.0 busy" if address.startswith("busy@") and number == 1 else "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    session.user = data.login.decode()
    return AuthResult(success=data.login == b"fieldpost" and data.password == b"post", handled=False)


class Post(Controller):
    """A mail server with its own port: `starttls` requires a login, `plain` has no TLS."""

    def __init__(self, sort, context):
        self.options = {"hostname": "receivers"}
        if sort == "starttls":
            self.options |= {
                "tls_context": context, "require_starttls": True, "authenticator": authenticate, "auth_required": True}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        super().__init__(
            Mailbox(), hostname="127.0.0.1", port=port, ssl_context=context if sort == "tls" else None)

    def factory(self):
        return SMTP(self.handler, **self.options)


def main():
    key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=receivers", "-addext",
         "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    web = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    web.daemon_threads = True
    web.socket = context.wrap_socket(web.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=web.serve_forever, daemon=True).start()

    ports = {"web": web.server_address[1]} | push_services.start(folder, certificate, key, received)
    for sort in ["starttls", "tls", "plain"]:
        while sort not in ports:
            try:
                post = Post(sort, context)
                post.start()
                ports[sort] = post.port
            except OSError:
                pass  # another process took the port
    ports |= {"p256dh": base64url(browser_point), "auth": base64url(browser_secret)}
    with open(f"{folder}/ports.new", "w") as file:
        json.dump(ports, file)
    os.rename(f"{folder}/ports.new", f"{folder}/ports")
    # Exit together with the parent process, even if it crashed.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


main()
