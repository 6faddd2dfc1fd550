"""The files of the web interface, as the broker serves them."""

from __future__ import annotations

import gzip
import hashlib
import re
import shlex
import tomllib
from base64 import b64encode

import click

from harebell.admin.catalog import NOUNS
from harebell.cli.main import harebell
from harebell.management.http.web_page import FILES
from tests.unit.management.http.asking import Api, Response, running_api

OURS = sorted(
    path for path in FILES.rglob("*") if path.suffix == ".js" and path.parent.name != "vendor"
)
COLUMNS = 100
VERBS = {("pipeline", "run")}
"""Commands that are none of the administration of a broker."""
FIRST_PAGE_BYTES = 120_000
"""Transferred until the overview is there."""


def links(page: Response) -> list[str]:
    """The addresses of the files that a page loads."""
    return re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())


def test_the_page_and_its_files_need_no_login(api: Api) -> None:
    page = api.ask("GET", "/", user=None)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    key = links(page)[0].split("/")[1]
    for script in OURS:
        name = script.relative_to(FILES).as_posix()
        file = api.ask("GET", f"/web/{key}/{name}", user=None)
        assert file.status == 200, name
        assert file.body == script.read_bytes()


def test_the_first_page_asks_for_its_own_scripts_alone_in_few_bytes(api: Api) -> None:
    packed = {"accept-encoding": "gzip"}
    page = api.ask("GET", "/", user=None, headers=packed)
    found = re.findall(r'(?:href|src)="([^"]+)"', gzip.decompress(page.body).decode())
    named = {link.split("/", 2)[2] for link in found}
    assert named >= {"app.js", "pages/overview.js", "vendor/preact.mjs", "lib/poll.js"}
    assert not named & {"pages/queues.js", "pages/topology.js", "lib/graph.js"}
    files = [api.ask("GET", f"/{link}", user=None, headers=packed) for link in set(found)]
    assert {file.status for file in files} == {200}
    assert sum(len(file.body) for file in (page, *files)) <= FIRST_PAGE_BYTES


def test_the_page_allows_no_scripts_but_its_own_and_no_frame(api: Api) -> None:
    page = api.ask("GET", "/", user=None)
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    (inline,) = re.findall(rb"<script type=\"importmap\">(.*?)</script>", page.body)
    digest = b64encode(hashlib.sha256(inline).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy


def test_the_page_is_asked_for_again_and_its_files_never(api: Api) -> None:
    page = api.ask("GET", "/", user=None)
    assert page.headers["cache-control"] == "no-cache"
    known = {"if-none-match": page.headers["etag"]}
    again = api.ask("GET", "/", user=None, headers=known)
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == page.headers["etag"]
    file = api.ask("GET", f"/{links(page)[-1]}", user=None)
    assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert file.headers["x-content-type-options"] == "nosniff"


def test_files_are_compressed_for_browsers(api: Api) -> None:
    link = next(link for link in links(api.ask("GET", "/", user=None)) if "uPlot.iife" in link)
    asked = {"accept-encoding": "gzip"}
    file = api.ask("GET", f"/{link}", user=None, headers=asked)
    assert file.headers["content-encoding"] == "gzip"
    assert gzip.decompress(file.body) == (FILES / "vendor/uPlot.iife.min.js").read_bytes()


def test_other_paths_and_methods_are_answered_as_before(api: Api) -> None:
    key = links(api.ask("GET", "/", user=None))[0].split("/")[1]
    for path in (
        *("/web", "/web/", f"/web/{key}", f"/web/{key}/", "/web/0123456789abcdef/app.js"),
        *(f"/web/{key}/nothing.js", f"/web/{key}/index.html", "/nothing"),
        *(f"/web/{key}/../web_page.py", f"/web/{key}/%2e%2e/http/web_page.py"),
    ):
        assert api.ask("GET", path, user=None).status == 404, path
    refused = api.ask("POST", "/", user=None)
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    head = api.ask("HEAD", "/", user=None)
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) > 1000
    assert api.ask("GET", "/api/whoami", user=None).status == 401


def test_a_prefix_is_before_the_page_and_its_files() -> None:
    with running_api("--management-path-prefix", "/rabbit") as api:
        moved = api.ask("GET", "/rabbit", user=None)
        assert (moved.status, moved.headers["location"]) == (301, "/rabbit/")
        page = api.ask("GET", "/rabbit/", user=None)
        assert page.status == 200
        for link in links(page)[:3]:
            assert api.ask("GET", f"/rabbit/{link}", user=None).status == 200
        assert api.ask("GET", "/", user=None).status == 404


def test_a_configured_policy_replaces_that_of_the_page() -> None:
    policy = "default-src 'self' 'unsafe-inline'"
    with running_api("--management-csp-policy", policy) as api:
        page = api.ask("GET", "/", user=None)
        assert page.headers["content-security-policy"] == policy


def test_libraries_are_those_that_were_published() -> None:
    vendor = FILES / "vendor"
    listed = tomllib.loads((vendor / "versions.toml").read_text())
    files = {each["name"]: each for library in listed.values() for each in library["files"]}
    there = {path.name for path in vendor.iterdir()} - {"versions.toml"}
    assert there == set(files)
    for name, each in files.items():
        digest = hashlib.sha256((vendor / name).read_bytes()).hexdigest()
        assert digest == each["sha256"], f"{name} is not the published {each['published']}"
    for name, library in listed.items():
        licences = [each for each in library["files"] if each["published"] == "LICENSE"]
        assert licences, f"the licence of {name} is missing"


def test_scripts_of_ours_are_short_say_why_they_exist_and_write_no_markup() -> None:
    assert OURS
    for path in OURS:
        text = path.read_text()
        assert text.startswith("// "), f"{path} does not say why it exists"
        assert text.endswith("\n")
        for number, line in enumerate(text.splitlines(), start=1):
            assert len(line) <= COLUMNS, f"{path}:{number} is too wide"
            assert line == line.rstrip(), f"{path}:{number} ends with a space"
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{path} has {word}"
        assert "dangerouslySetInnerHTML" not in text, path


def test_commands_that_the_page_names_exist() -> None:
    named = set()
    for script in OURS:
        named |= set(re.findall(r"harebell ([a-z][a-z-]*) ([a-z][a-z-]*) ", script.read_text()))
    assert named >= {("users", "tags"), ("permissions", "set")}
    for noun, verb in sorted(named - VERBS):
        assert verb in NOUNS[noun].commands, f"harebell {noun} {verb}"


def test_the_commands_that_fill_empty_lists_can_be_typed_as_they_are() -> None:
    text = (FILES / "lib" / "empty.js").read_text()
    named = re.findall(r"""["`]harebell (.*)["`],""", text)
    assert len(named) > 5
    for line in named:
        command, rest = harebell, shlex.split(line)
        context = click.Context(command, info_name="harebell")
        while isinstance(command, click.Group):
            _, found, rest = command.resolve_command(context, rest)
            assert found is not None, line
            command = found
            context = click.Context(command, parent=context)
        command.make_context(line, rest)
