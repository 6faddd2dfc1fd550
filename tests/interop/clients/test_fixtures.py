"""The tests of the page about testing: pika, aio-pika, Celery, Dramatiq and FastStream."""

from __future__ import annotations

import pytest

from tests.docs.markdown import ROOT, read

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

PAGE = ROOT / "docs/guides/testing.md"


def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    blocks = [block.text for block in read(PAGE).blocks if block.language == "python"]
    text = "\n\n".join(blocks)
    pytester.makepyfile(text)
    result = pytester.runpytest_subprocess(
        "-p", "no:schemathesis", "-p", "no:cacheprovider", "--strict-markers"
    )
    result.assert_outcomes(passed=text.count("def test_"))
