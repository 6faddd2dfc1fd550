"""What `make interop` reads, compares and writes; the suites themselves run only there."""

from __future__ import annotations

import fcntl
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from tests.docs.markdown import rows
from tests.interop.suites import outcomes
from tests.interop.suites.__main__ import PAGE, verdict
from tests.interop.suites.archives import CannotFetchError, alone, unpack
from tests.interop.suites.catalogue import SUITES
from tests.interop.suites.page import Comparison, render

_JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="t.a" name="good"/>
<testcase classname="t.a" name="bad"><failure message="no">why</failure></testcase>
<testcase classname="t.a" name="broken"/>
<testcase classname="t.a" name="broken"><error message="in its clean-up"/></testcase>
<testcase classname="t.a" name="not run"><skipped/></testcase>
</testsuite></testsuites>"""

_NODE = """{"name":"one","passed":true,"why":""}
what a test prints
{"name":"one","passed":false,"why":"no"}"""

_VOWS = """{"0":"subject","1":"a"}
{"0":"vow","1":{"title":"holds","context":"it","status":"honored","exception":null}}
{"0":"vow","1":{"title":"breaks","context":"it","status":"errored","exception":"no"}}"""

_QPID = """Error on tearDown:
{"T.good": "passed", "T.bad": "_queue.Empty", "T.other": "skipped"}"""


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (outcomes.from_junit, _JUNIT, {"t.a.good": True, "t.a.bad": False, "t.a.broken": False}),
        (outcomes.from_node, _NODE, {"one": True, "one (2)": False}),
        (outcomes.from_vows, _VOWS, {"it holds": True, "it breaks": False}),
        (outcomes.from_node, "", {}),
        (outcomes.from_qpid, _QPID, {"T.good": True, "T.bad": False}),
        (outcomes.from_qpid, "it died", {}),
    ],
)
def test_each_runners_report_is_read(read: object, text: str, found: outcomes.Outcomes) -> None:
    assert callable(read)
    assert read(text) == found


def _archive(path: Path) -> str:
    with tarfile.open(path, "w:gz") as archive:
        about = tarfile.TarInfo("client-1.0/tests/test_it.py")
        about.size = 4
        archive.addfile(about, io.BytesIO(b"pass"))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_archive_is_unpacked_without_its_outer_directory(tmp_path: Path) -> None:
    path = tmp_path / "client.tgz"
    unpack(path, _archive(path), tmp_path / "source")
    assert (tmp_path / "source" / "tests" / "test_it.py").read_text() == "pass"


def test_an_archive_with_another_hash_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "client.tgz"
    _archive(path)
    with pytest.raises(
        CannotFetchError, match=r"client\.tgz has the SHA-256 [0-9a-f]{64}, expected"
    ):
        unpack(path, "0" * 64, tmp_path / "source")
    assert not (tmp_path / "source").exists()


def test_a_client_is_made_ready_by_one_at_a_time(tmp_path: Path) -> None:
    home = tmp_path / "interop" / "client"
    for _ in range(2):
        with alone(home), home.with_name("client.lock").open("w") as other:
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert not home.exists()


def test_a_test_that_passes_on_rabbitmq_alone_needs_a_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    suite = SUITES[0]
    same = Comparison(suite, {"a": True}, {"a": True})
    worse = Comparison(suite, {"a": True}, {"a": True, "nobody knows why": True})
    assert verdict([same]) == 0
    assert verdict([same, worse]) == 1
    said = capsys.readouterr().out
    assert said == f"{suite.label}: worse than RabbitMQ: nobody knows why\n"
    assert (worse.worse, worse.better, worse.neither, worse.tests) == (
        ["nobody knows why"], [], [], 2,
    )  # fmt: skip


def test_a_suite_in_which_nothing_ran_is_no_success() -> None:
    assert verdict([Comparison(SUITES[0], {}, {})]) == 1


def test_the_page_has_a_row_with_counts_for_every_suite_and_one_for_every_difference() -> None:
    ours, theirs = {"a": True, "b": True, "c|d": False}, {"a": True, "b": False, "c|d": False}
    page = render([Comparison(SUITES[0], ours, theirs)], {"Harebell": "1"}, "2026-11-21")
    label = SUITES[0].label
    assert f"| {label} | 3 | 1 | 2 |" in page
    assert f"| {label} | b | Harebell |" in page
    assert f"| {label} | c\\|d | neither |" in page


def test_the_page_in_the_documentation_tells_of_every_suite_and_no_difference_lacks_a_reason() -> (
    None
):
    table = [row for row in rows(PAGE.read_text()) if len(row) == 4]
    counts = {row[0]: row[1:] for row in table if row[1].isdigit()}
    assert set(counts) == {suite.label for suite in SUITES}
    for tests, theirs, ours in counts.values():
        assert int(tests) >= int(theirs) > 0
        assert int(tests) >= int(ours) > 0
    others = [row for row in table if row[2] in ("RabbitMQ", "Harebell", "neither")]
    assert all(row[3] for row in others)
    assert len(others) >= sum(int(tests) - int(ours) for tests, _, ours in counts.values())
