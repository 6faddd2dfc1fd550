"""An object store that speaks as much of S3 as pyarrow needs, with its objects in memory."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.quiet_server import QuietServer

BUCKET = "bucket"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


class ObjectStore(QuietServer):
    """The store.

    Attributes:
        objects: their bytes, by their keys.
        room: bytes that it takes before it refuses; -1 for no limit.
        answers: while it is not set, requests wait for it.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = itertools.count(1)
        self.room = -1
        self.answers = threading.Event()
        self.answers.set()

    @property
    def query(self) -> str:
        """What follows the address of a place in it."""
        return f"scheme=http&endpoint_override=127.0.0.1:{self.server_address[1]}&region=eu"


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectStore

    def _handle(self) -> None:
        body = self._body()
        self.server.answers.wait()
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            body = _unchunked(body)
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query, True).items()}
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        assert bucket == BUCKET
        if not key:
            self._bucket(query, body)
        else:
            self._object(key, query, body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _bucket(self, query: dict[str, str], body: bytes) -> None:
        objects = self.server.objects
        if "delete" in query:
            for key in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                objects.pop(key, None)
            self._answer(200, f"{_HEAD}<DeleteResult></DeleteResult>".encode())
        elif self.command == "HEAD":
            self._answer(200)
        else:
            self._list(query.get("prefix", ""), query.get("delimiter", ""))

    def _list(self, prefix: str, delimiter: str) -> None:
        rows, common = [], set()
        for key, content in sorted(self.server.objects.items()):
            if not key.startswith(prefix):
                continue
            first, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if cut:
                common.add(prefix + first + cut)
                continue
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        rows += [
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in sorted(common)
        ]
        text = (
            f"{_HEAD}<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>false</IsTruncated>"
            f"<KeyCount>{len(rows)}</KeyCount>{''.join(rows)}</ListBucketResult>"
        )
        self._answer(200, text.encode())

    def _object(self, key: str, query: dict[str, str], body: bytes) -> None:
        store = self.server
        if self.command in ("HEAD", "GET"):
            self._get(key)
        elif self.command == "DELETE":
            store.objects.pop(key, None)
            self._answer(204)
        elif "uploads" in query:
            number = str(next(store.numbers))
            store.uploads[number] = {}
            name = "InitiateMultipartUploadResult"
            self._answer(200, f"{_HEAD}<{name}><UploadId>{number}</UploadId></{name}>".encode())
        elif store.room >= 0 and sum(map(len, store.objects.values())) + len(body) > store.room:
            self._refuse(507, "InsufficientStorage")
        elif "partNumber" in query:
            store.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._answer(200, b"", {"ETag": '"part"'})
        elif "uploadId" in query:
            parts = store.uploads.pop(query["uploadId"])
            store.objects[key] = b"".join(parts[number] for number in sorted(parts))
            name = "CompleteMultipartUploadResult"
            self._answer(200, f'{_HEAD}<{name}><ETag>"all"</ETag></{name}>'.encode())
        elif source := self.headers.get("x-amz-copy-source"):
            store.objects[key] = store.objects[unquote(source).lstrip("/").partition("/")[2]]
            text = f'{_HEAD}<CopyObjectResult><ETag>"copy"</ETag></CopyObjectResult>'
            self._answer(200, text.encode())
        else:
            store.objects[key] = body
            self._answer(200, b"", {"ETag": '"whole"'})

    def _get(self, key: str) -> None:
        content = self.server.objects.get(key)
        if content is None:
            self._refuse(404, "NoSuchKey")
            return
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        headers = {"ETag": '"it"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if found is None:
            self._answer(200, content, headers)
            return
        first, last = int(found[1]), min(int(found[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        self._answer(206, content[first : last + 1], headers)

    def _refuse(self, status: int, code: str) -> None:
        text = f"{_HEAD}<Error><Code>{code}</Code><Message>no</Message></Error>"
        self._answer(status, text.encode())

    def _answer(
        self, status: int, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - of http.server

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _unchunked(body: bytes) -> bytes:
    """The content of a body in chunks with signatures (aws-chunked)."""
    found, at = b"", 0
    while at < len(body):
        line = body.index(b"\r\n", at)
        size = int(body[at:line].partition(b";")[0], 16)
        if not size:
            break
        found += body[line + 2 : line + 2 + size]
        at = line + 2 + size + 2
    return found


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A store on 127.0.0.1 with an empty bucket."""
    with ObjectStore() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
