"""Serve the web interface: `management/web/`, which knows the broker only by its HTTP API.

    GET /                          index.html, asked for again each time (ETag)
    GET /web/<hash of all>/<file>  a script or a style, which never changes under its address

The page runs nothing but its own scripts: its policy for content allows no other source, no inline
script but the import map (by its hash), and no text that becomes markup.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING

from harebell.management.http.answer import Answer
from harebell.management.http.errors import not_allowed
from harebell.management.json_rows import encode

if TYPE_CHECKING:
    from harebell.management.http.sign_in import SignIn

FILES = Path(__file__).resolve().parent.parent / "web"
"""The files of the web interface."""
_INDEX = "index.html"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",
}
_IMPORT_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)
_PRELOADS = b"<!-- preloads -->"
_FIRST = ("app.js", "pages/overview.js")
"""The scripts that the first page begins with; those of other pages load when these are opened."""
_IMPORTS = re.compile(r'\bfrom ?"([^"]+)"')
_LIBRARIES = re.compile(r'"([^"]+)": "\./web/([^"]+)"')
_SIGN_IN = b"{sign-in}"
_LINK = b'"web/'
"""The start of the addresses in the page that get the hash."""
_READS = ("GET", "HEAD", "OPTIONS")
_POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-{hash}'; style-src 'self'; "
    "img-src 'self' data:; connect-src {reached}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_GUARDS = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)


class WebPage:
    """The web interface.

    Args:
        prefix: the start of all paths, such as "/rabbit"; "" for none.
        sign_in: where people sign in beside the page's own form.
        policy: the content security policy that the operator has configured; None for its own.
    """

    def __init__(self, prefix: str, sign_in: SignIn, policy: str | None = None) -> None:
        self._prefix = prefix
        self._sign_in = sign_in
        self._policy = policy

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """The files by their names, with "/"; they are read at the first request."""
        return {
            path.relative_to(FILES).as_posix(): path.read_bytes()
            for path in sorted(FILES.rglob("*"))
            if path.is_file() and path.suffix in _KINDS
        }

    @cached_property
    def _hash(self) -> str:
        digest = sha256()
        for name, content in self._files.items():
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:16]

    @cached_property
    def _first(self) -> list[str]:
        """The scripts of the first page, with all that they import."""
        libraries = dict(_LIBRARIES.findall(self._files[_INDEX].decode()))
        found = list(_FIRST)
        for script in found:
            for name in _IMPORTS.findall(self._files[script].decode()):
                path = libraries.get(name) or normpath(join(dirname(script), name))
                if path in self._files and path not in found:
                    found.append(path)
        return found

    @cached_property
    def _index(self) -> Answer:
        """The page, whose links have the hash and name its scripts, so that all load at once."""
        # Imported here, as few brokers are looked at: it has the names of 2,200 letters.
        from html import escape

        base = f"web/{self._hash}/"
        preloads = "\n".join(
            f'<link rel="modulepreload" href="{escape(base + name)}">' for name in self._first
        )
        body = self._files[_INDEX].replace(_LINK, f'"{base}'.encode())
        body = body.replace(b'"./web/', f'"./{base}'.encode())
        body = body.replace(_PRELOADS, preloads.encode())
        settings = escape(encode(self._sign_in.settings).decode())
        body = body.replace(_SIGN_IN, settings.encode())
        imports = _IMPORT_MAP.search(body)
        digest = b64encode(sha256(imports[1]).digest()).decode() if imports else ""
        reached = " ".join(("'self'", *self._sign_in.origins))
        own = _POLICY.format(hash=digest, reached=reached)
        policy = own if self._policy is None else self._policy
        tag = f'"{sha256(body + policy.encode()).hexdigest()[:16]}"'
        headers = (
            ("content-type", _KINDS[".html"]),
            ("content-security-policy", policy),
            ("cache-control", "no-cache"),
            ("etag", tag),
            *_GUARDS,
        )
        return Answer(200, headers, (body,), constant=True)

    def answer(self, method: str, raw_path: bytes, etags: str | None) -> Answer | None:
        """Return the answer of a path of the web interface; None for all other paths.

        Args:
            method: the HTTP method.
            raw_path: the path, as it was sent.
            etags: the header `if-none-match`.

        Raises:
            HttpError: 405.
        """
        path = raw_path.partition(b"?")[0].decode("latin-1")
        if path and path == self._prefix:
            answer = Answer(301, (("location", f"{path}/"),))
        elif path in (f"{self._prefix}/", f"{self._prefix}/{_INDEX}"):
            answer = self._index
            if etags is not None and dict(answer.headers)["etag"] in etags:
                answer = Answer(304, answer.headers)
        else:
            file = self._file(path)
            if file is None:
                return None
            answer = file
        if method not in _READS:
            raise not_allowed(method, list(_READS))
        return answer

    def _file(self, path: str) -> Answer | None:
        start = f"{self._prefix}/web/"
        if not path.startswith(start):
            return None
        key, _, name = path.removeprefix(start).partition("/")
        body = self._files.get(name)
        if key != self._hash or body is None or name == _INDEX:
            return None
        headers = (
            ("content-type", _KINDS[Path(name).suffix]),
            ("cache-control", "public, max-age=31536000, immutable"),
            *_GUARDS,
        )
        return Answer(200, headers, (body,), constant=True)
