"""An OTLP/HTTP receiver in a process of its own: prints its port, then writes each request into a file as JSON."""

from __future__ import annotations

import gzip
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        document = MessageToDict(request)
        for resource, reported in zip(request.resource_spans, document["resourceSpans"], strict=True):
            for scope, below in zip(resource.scope_spans, reported["scopeSpans"], strict=True):
                for span, each in zip(
                    scope.spans, below["spans"], strict=True
                ):  # OTLP writes ids in hexadecimal digits
                    each |= {"traceId": span.trace_id.hex(), "spanId": span.span_id.hex()}
                    if span.parent_span_id:
                        each["parentSpanId"] = span.parent_span_id.hex()
        with Path(sys.argv[1]).open("ab") as file:
            file.write(orjson.dumps(document) + b"\n")
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
