"""The fixtures, in runs of pytest of their own."""

from __future__ import annotations

import pytest

PASSING = """
import pika
import pytest

pytestmark = pytest.mark.harebell(heartbeat=9, channel_max=20)

def parameters(broker):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    found = connection._impl.params
    connection.close()
    return found.heartbeat, found.channel_max

@pytest.mark.harebell(heartbeat=11)
def test_process(harebell_broker):
    assert parameters(harebell_broker) == (11, 20)

def test_virtual(harebell_virtual):
    assert parameters(harebell_virtual) == (9, 20)
    harebell_virtual.advance(3600)

def test_both(harebell_broker, harebell_virtual):
    assert harebell_broker.port != harebell_virtual.port
"""
FAILING = """
def test_wrong(harebell_virtual):
    assert harebell_virtual.published

def test_process(harebell_broker):
    assert harebell_broker.url == ""
"""
SETTING = """
import pytest

@pytest.mark.harebell(hartbeat=9)
def test_wrong(harebell_virtual):
    pass

@pytest.mark.harebell(heartbeat="often")
def test_process(harebell_broker):
    pass
"""


def run(pytester: pytest.Pytester, text: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess(
        "-p", "no:schemathesis", "-p", "no:cacheprovider", "--strict-markers"
    )


def test_both_fixtures_start_brokers_with_the_settings_of_the_marks(
    pytester: pytest.Pytester,
) -> None:
    run(pytester, PASSING).assert_outcomes(passed=3)


def test_the_log_is_shown_with_a_test_that_fails(pytester: pytest.Pytester) -> None:
    result = run(pytester, FAILING)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*log of harebell*", "*started TCP listener on 127.0.0.1*"])
    assert result.stdout.str().count("log of harebell") == 2


def test_a_broker_that_does_not_start_says_why(pytester: pytest.Pytester) -> None:
    result = run(pytester, SETTING)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*hartbeat is no setting: did you mean heartbeat*"])
    result.stdout.fnmatch_lines(["*did not start (exit code 2)*"])


def test_the_plugin_imports_no_broker_before_a_test_asks_for_one(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        "import sys\n"
        "def test_light():\n"
        "    assert not [name for name in sys.modules if name.startswith('harebell.server')]\n"
    )
    pytester.runpytest_subprocess(
        "-p", "no:schemathesis", "-p", "no:cacheprovider"
    ).assert_outcomes(passed=1)
