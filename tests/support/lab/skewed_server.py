"""A front of an API server as one whose clock is ahead has it: its certificate and its Date are of that clock.

Runs in a node with nothing but the standard library: PORT CERTIFICATE KEY SECONDS-AHEAD API-SERVER.
"""

import http.client
import ssl
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, CERTIFICATE, KEY, AHEAD_S, SERVER = sys.argv[1:6]


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(datetime.now(UTC) + timedelta(seconds=int(AHEAD_S)), usegmt=True)

    def forward(self) -> None:
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        server = http.client.HTTPSConnection(SERVER, context=tls, timeout=300)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "accept-encoding")}
        server.request(self.command, self.path, body, kept)
        answer = server.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward  # noqa: N815 - the names that the library looks for


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
front = ThreadingHTTPServer(("", int(PORT)), Front)
front.socket = context.wrap_socket(front.socket, server_side=True)
front.serve_forever()
