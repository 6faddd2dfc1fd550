"""Read a form with a file, as web pages upload definitions.

content-type: multipart/form-data; boundary=B

--B
content-disposition: form-data; name="file"; filename="definitions.json"

{"queues": ...}
--B--
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harebell.management.http.errors import bad_request

_FORM = "multipart/form-data"
_MAX_PARTS = 20
_LOCAL = re.compile(r"(?!//)[\w./#?=&%~-]+", re.ASCII)
"""A path on this server."""


class Upload(NamedTuple):
    """A file that a form has.

    Args:
        file: the content of the field `file`.
        redirect: the path that the browser is sent to afterwards; "" for none.
    """

    file: bytes
    redirect: str = ""


def upload_of(content_type: str | None, body: bytes) -> Upload:
    """Return the file of a body, which is a form, or the file itself.

    Raises:
        HttpError: 400, the form has no field `file`, or cannot be read.
    """
    # Imported with the first upload, and not at the start of a broker.
    from email.message import Message

    head = Message()
    head["content-type"] = content_type or ""
    if head.get_content_type() != _FORM:
        return Upload(body)
    boundary = head.get_boundary()
    if not boundary:
        raise bad_request("the form has no boundary in its content-type")
    fields = _fields(body, boundary.encode("latin-1", "replace"))
    if "file" not in fields:
        raise bad_request("the form has no field 'file'")
    redirect = fields.get("redirect", b"").decode("ascii", "replace")
    if redirect and not _LOCAL.fullmatch(redirect):
        raise bad_request("the field 'redirect' is not a path of this server")
    return Upload(fields["file"], redirect)


def _fields(body: bytes, boundary: bytes) -> dict[str, bytes]:
    """Return the fields of a form."""
    from email.message import Message

    fields = {}
    _preamble, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, _MAX_PARTS)
    if not parts or not parts[-1].startswith(b"--"):
        raise bad_request("the form ends before its last boundary")
    for part in parts[:-1]:
        head, separator, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        disposition = Message()
        for line in head.decode("utf-8", "replace").split("\r\n"):
            field, _, value = line.partition(":")
            if field.strip().lower() == "content-disposition":
                disposition["content-disposition"] = value.strip()
        name = disposition.get_param("name", header="content-disposition")
        if not separator or not isinstance(name, str):
            raise bad_request("a part of the form has no name")
        fields[name] = content
    return fields
