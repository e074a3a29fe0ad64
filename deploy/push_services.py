"""Emulators of Apple Push Notification service and Firebase Cloud Messaging for tests, with TLS.

They follow the vendors' documents. Apple: "Sending notification requests to APNs", "Establishing a token-based
connection to APNs", "Handling notification responses from APNs". Google: "projects.messages", "ErrorCode", "Using
OAuth 2.0 for Server to Server Applications". APNs speaks only HTTP/2 (h2), whose connections carry several requests.

`start` writes FOLDER/apns.p8 and FOLDER/account.json, the sender's keys. FOLDER/faults is JSON, read at each request:

  {"tokens": {"TOKEN": [{"status": 410, "reason": "Unregistered"}, {}, {"status": 429, "retryAfter": 60}]},
   "apnsIssuedAfter": 1800000000, "fcmRevokedCount": 1}

The first request for a device gets the first fault, and so on; `{}` and later requests are accepted. `"hold": true` is
a request without a response, `"drop": true` a connection that ends. `tokens` may also name "oauth", the requests for
access tokens. Provider tokens issued before `apnsIssuedAfter` have expired, and the first `fcmRevokedCount` access
tokens too.
"""
import base64
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import h2.config
import h2.connection
import h2.events
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

TOPIC, TEAM, KEY_ID, PROJECT = "com.example.app", "DEF123GHIJ", "ABC123DEFG", "example-app"
EMAIL, SCOPE = "push@example-app.iam.gserviceaccount.com", "https://www.googleapis.com/auth/firebase.messaging"
PAYLOAD_MAX = 4096


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def token_parts(token):
    """Returns header, claims, signed bytes and signature of a JSON web token."""
    head, claims, signature = token.split(".")
    return json.loads(unbase64url(head)), json.loads(unbase64url(claims)), f"{head}.{claims}".encode(), unbase64url(
        signature)


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


class Refusal(Exception):
    """A response other than 200."""

    def __init__(self, status, reason, **more):
        self.status, self.reason, self.more = status, reason, more


class Faults:
    def __init__(self, folder):
        self.path, self.lock, self.counts = f"{folder}/faults", threading.Lock(), Counter()

    def read(self):
        try:
            with open(self.path) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def next(self, token):
        """Returns the fault of the next request for a device."""
        with self.lock:
            number = self.counts[token]
            self.counts[token] += 1
        faults = self.read().get("tokens", {}).get(token, [])
        return faults[number] if number < len(faults) else {}


class Apple:
    """APNs: requests are checked as Apple documents it."""

    def __init__(self, faults, received):
        self.faults, self.received = faults, received
        self.key = ec.generate_private_key(ec.SECP256R1())

    def authenticate(self, headers):
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme != "bearer":
            raise Refusal(403, "MissingProviderToken")
        try:
            head, claims, signed, raw = token_parts(token)
            if head["alg"] != "ES256" or head["kid"] != KEY_ID or claims["iss"] != TEAM or len(raw) != 64:
                raise ValueError
            signature = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
            self.key.public_key().verify(signature, signed, ec.ECDSA(hashes.SHA256()))
        except (ValueError, KeyError, InvalidSignature):
            raise Refusal(403, "InvalidProviderToken")
        if claims["iat"] < self.faults.read().get("apnsIssuedAfter", 0):
            raise Refusal(403, "ExpiredProviderToken")
        return claims

    def check(self, headers, body):
        if headers.get("apns-topic") != TOPIC:
            raise Refusal(400, "TopicDisallowed" if "apns-topic" in headers else "MissingTopic")
        if headers.get("apns-push-type") != "alert":
            raise Refusal(400, "InvalidPushType")
        try:
            if str(uuid.UUID(headers["apns-id"])) != headers["apns-id"]:
                raise ValueError
        except ValueError:
            raise Refusal(400, "BadMessageId")
        if not headers["apns-expiration"].isdigit():
            raise Refusal(400, "BadExpirationDate")
        if headers["apns-priority"] not in ("1", "5", "10"):
            raise Refusal(400, "BadPriority")
        if not 1 <= len(headers["apns-collapse-id"].encode()) <= 64:
            raise Refusal(400, "BadCollapseId")
        if len(body) > PAYLOAD_MAX:
            raise Refusal(413, "PayloadTooLarge")
        if "aps" not in json.loads(body):
            raise Refusal(400, "PayloadEmpty")

    def respond(self, headers, body):
        """Returns status, headers and body of a response; `None` for no response, `False` for the connection's end."""
        device = headers[":path"].removeprefix("/3/device/")
        status, reason, more, claims = 200, None, {}, None
        try:
            if headers[":method"] != "POST":
                raise Refusal(405, "MethodNotAllowed")
            if device == headers[":path"]:
                raise Refusal(404, "BadPath")
            claims = self.authenticate(headers)
            self.check(headers, body)
            if not re.fullmatch("[0-9a-f]{64}", device):
                raise Refusal(400, "BadDeviceToken")
            more = self.faults.next(device)
            status, reason = more.get("status", 200), more.get("reason")
        except Refusal as refusal:
            status, reason = refusal.status, refusal.reason
        except (KeyError, ValueError) as error:
            status, reason = 400, f"malformed: {error!r}"
        kind = "apns" if status == 200 or reason and not reason.startswith("malformed") else "malformed"
        self.received(
            kind=kind, path=device, status=status, text=body.decode(), claims=json.dumps(claims),
            headers={name: value for name, value in headers.items() if not name.startswith(":")})
        if more.get("hold"):
            return None
        if more.get("drop"):
            return False
        fields = [(":status", str(status)), ("apns-id", headers.get("apns-id", str(uuid.uuid4())))]
        if "retryAfter" in more:
            fields.append(("retry-after", str(more["retryAfter"])))
        if status == 200:
            return fields, b""
        failure = {"reason": reason} | ({"timestamp": int(time.time() * 1000)} if status == 410 else {})
        return fields + [("content-type", "application/json")], json.dumps(failure).encode()


class Http2Connection:
    """One connection with its requests. Bytes come in and go out; it has no socket."""

    def __init__(self, service):
        self.service, self.requests, self.isOpen = service, {}, True
        self.protocol = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.protocol.initiate_connection()

    def receive(self, data):
        for event in self.protocol.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.requests[event.stream_id] = (dict(event.headers), bytearray())
            elif isinstance(event, h2.events.DataReceived):
                self.requests[event.stream_id][1].extend(event.data)
                self.protocol.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.respond(event.stream_id)
            elif isinstance(event, h2.events.ConnectionTerminated):
                self.isOpen = False

    def respond(self, stream):
        headers, body = self.requests.pop(stream)
        response = self.service.respond(headers, bytes(body))
        if response is False:
            self.isOpen = False
        elif response:
            fields, body = response
            self.protocol.send_headers(stream, fields, end_stream=not body)
            if body:
                self.protocol.send_data(stream, body, end_stream=True)

    def serve(self, peer):
        peer.sendall(self.protocol.data_to_send())
        while self.isOpen and (data := peer.recv(65536)):
            self.receive(data)
            if self.isOpen:
                peer.sendall(self.protocol.data_to_send())


class Firebase:
    """FCM, and the server of Google that issues its access tokens."""

    def __init__(self, faults, received):
        self.faults, self.received, self.lock, self.count = faults, received, threading.Lock(), 0
        self.key = rsa.generate_private_key(65537, 2048)
        self.url = ""

    def account(self):
        return {
            "type": "service_account", "project_id": PROJECT, "private_key_id": "1f2e3d", "private_key": pem(self.key),
            "client_email": EMAIL, "client_id": "1", "token_uri": self.url + "/token"}

    def grant(self, body):
        """Returns an access token (RFC 7523)."""
        fault = self.faults.next("oauth")
        status, response = 200, {}
        try:
            fields = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
            head, claims, signed, signature = token_parts(fields["assertion"])
            self.key.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
            if (fields["grant_type"], head["alg"]) != ("urn:ietf:params:oauth:grant-type:jwt-bearer", "RS256"):
                raise ValueError("grant type")
            if (claims["iss"], claims["scope"], claims["aud"]) != (EMAIL, SCOPE, self.url + "/token"):
                raise ValueError(f"claims {claims}")
            if claims["exp"] - claims["iat"] > 3600:
                raise ValueError("lifetime")
            if "status" in fault:
                status, response = fault["status"], {"error": fault.get("reason", "internal_failure")}
            else:
                with self.lock:
                    self.count += 1
                    token = f"ya29.{self.count}"
                response = {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}
        except (ValueError, KeyError, InvalidSignature) as error:
            status, response = 400, {"error": "invalid_grant", "error_description": repr(error)}
        self.received(
            kind="oauth" if status != 400 or "status" in fault else "malformed", path="/token", status=status,
            text=json.dumps(response), headers={})
        return status, response, fault

    def authenticate(self, headers):
        token = re.fullmatch(r"Bearer ya29\.([0-9]+)", headers.get("authorization", ""))
        if not token or int(token[1]) <= self.faults.read().get("fcmRevokedCount", 0):
            raise Refusal(401, "UNAUTHENTICATED", isGeneral=True)

    def check(self, path, body):
        """Returns the registration token. Google rejects unknown names."""
        if path != f"/v1/projects/{PROJECT}/messages:send":
            raise Refusal(404, "NOT_FOUND", isGeneral=True)
        if set(body) != {"message"} or not set(body["message"]) <= {"token", "data", "notification", "android", "apns"}:
            raise Refusal(400, "INVALID_ARGUMENT", isGeneral=True)
        message = body["message"]
        data, android, apple = message.get("data", {}), message.get("android", {}), message.get("apns", {})
        if not all(isinstance(value, str) for value in data.values()) or set(data) & {"from", "message_type"}:
            raise ValueError("data")
        if not set(android) <= {"priority", "ttl", "collapse_key"} or android.get("priority") not in ("NORMAL", "HIGH"):
            raise ValueError("android")
        if not re.fullmatch(r"[0-9]+s", android["ttl"]) or int(android["ttl"][:-1]) > 28 * 86400:
            raise ValueError("ttl")
        if not set(apple) <= {"headers", "payload"} or "aps" not in apple["payload"]:
            raise ValueError("apns")
        payload = json.dumps(apple["payload"], ensure_ascii=False, separators=(",", ":"))
        if sum(len(text.encode()) for item in [*data.items(), [payload]] for text in item) > PAYLOAD_MAX:
            raise Refusal(400, "INVALID_ARGUMENT")
        return message["token"]

    def send(self, path, headers, body):
        status, code, more, token = 200, None, {}, ""
        try:
            self.authenticate(headers)
            token = self.check(path, json.loads(body))
            more = self.faults.next(token)
            status, code = more.get("status", 200), more.get("reason")
        except Refusal as refusal:
            status, code, more = refusal.status, refusal.reason, refusal.more
        except (KeyError, ValueError) as error:
            status, code = 400, f"malformed: {error!r}"
        kind = "fcm" if status == 200 or code and not code.startswith("malformed") else "malformed"
        self.received(kind=kind, path=token or path, status=status, text=body.decode(), headers=headers)
        if status == 200:
            return status, {"name": f"projects/{PROJECT}/messages/{uuid.uuid4()}"}, more
        failure = {"code": status, "message": "-", "status": code}
        if code and not more.get("isGeneral"):
            failure["details"] = [
                {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}]
        return status, {"error": failure}, more

    def handler(self):
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if self.path == "/token":
                    status, response, fault = service.grant(body)
                else:
                    status, response, fault = service.send(self.path, headers, body)
                if fault.get("hold"):
                    time.sleep(3600)
                if fault.get("drop"):
                    self.close_connection = True
                    return
                content = json.dumps(response).encode()
                self.send_response(status)
                if "retryAfter" in fault:
                    self.send_header("retry-after", str(fault["retryAfter"]))
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler


def secured(certificate, key, *protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def serve_apple(service, context):
    """Returns the port. Each connection has a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(peer):
        try:
            with context.wrap_socket(peer, server_side=True) as secure:
                if secure.selected_alpn_protocol() == "h2":
                    Http2Connection(service).serve(secure)
        except OSError:
            pass  # the client ended it

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def start(folder, certificate, key, received):
    """Starts both services, and returns their ports."""
    faults = Faults(folder)
    apple, firebase = Apple(faults, received), Firebase(faults, received)
    web = ThreadingHTTPServer(("127.0.0.1", 0), firebase.handler())
    web.daemon_threads = True
    web.socket = secured(certificate, key).wrap_socket(web.socket, server_side=True, do_handshake_on_connect=False)
    firebase.url = f"https://127.0.0.1:{web.server_address[1]}"
    threading.Thread(target=web.serve_forever, daemon=True).start()
    for name, text in [("apns.p8", pem(apple.key)), ("account.json", json.dumps(firebase.account()))]:
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
    return {"apns": serve_apple(apple, secured(certificate, key, "h2")), "fcm": web.server_address[1]}
