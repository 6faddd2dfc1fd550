"""Forms that web pages send."""

from __future__ import annotations

import pytest

from harebell.management.http.errors import HttpError
from harebell.management.http.forms import Upload, upload_of

TYPE = 'multipart/form-data; boundary="b 1"'


def form(*parts: tuple[str, str], end: str = "--b 1--\r\n") -> bytes:
    texts = [f"--b 1\r\nContent-Disposition: {head}\r\n\r\n{text}\r\n" for head, text in parts]
    return ("".join(texts) + end).encode()


FILE = ('form-data; name="file"; filename="d.json"', '{"queues": []}')


def test_a_body_that_is_no_form_is_the_file() -> None:
    assert upload_of("application/json", b"{}") == Upload(b"{}")
    assert upload_of(None, b"{}") == Upload(b"{}")


def test_the_file_and_where_the_browser_goes_are_read() -> None:
    body = form(FILE, ('form-data; name="redirect"', "../#/import-succeeded"))
    assert upload_of(TYPE, body) == Upload(b'{"queues": []}', "../#/import-succeeded")


def test_a_file_may_have_any_bytes() -> None:
    content = b"\r\n--b\r\n\0\xff--\r\n"
    body = form(("form-data; name=file", "?")).replace(b"?", content)
    assert upload_of(TYPE, body).file == content


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        ("multipart/form-data", form(FILE), "no boundary"),
        (TYPE, form(FILE, end=""), "ends before its last boundary"),
        (TYPE, b"", "ends before its last boundary"),
        (TYPE, form(("form-data", "x")), "has no name"),
        (TYPE, form(('form-data; name="other"', "x")), "no field 'file'"),
        (TYPE, form(*[FILE] * 30), "ends before its last boundary"),
        (TYPE, form(FILE, ('form-data; name="redirect"', "//evil.example/")), "not a path"),
        (TYPE, form(FILE, ('form-data; name="redirect"', "https://evil.example")), "not a path"),
        (TYPE, form(FILE, ('form-data; name="redirect"', "a\r\nset-cookie: x=1")), "not a path"),
    ],
)
def test_a_wrong_form_is_refused(kind: str, body: bytes, says: str) -> None:
    with pytest.raises(HttpError, match=says) as raised:
        upload_of(kind, body)
    assert raised.value.status == 400
