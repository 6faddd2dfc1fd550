"""Conversations of AMQP 1.0 in any order: nothing is left, and both implementations agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.conversations1 import conversation1, conversation1_seeds

ROOT = Path(__file__).parents[2]
COUNT = 60
_ASKED = (
    "import json; from tests.fuzz.conversations1 import conversation1_seeds, told; "
    f"print(json.dumps(told(conversation1_seeds({COUNT}))))"
)


@pytest.mark.parametrize("number", range(COUNT))
def test_a_conversation_ends_in_answers_and_leaves_nothing(number: int) -> None:
    conversation1(conversation1_seeds(COUNT)[number])


def test_compiled_and_python_broker_give_the_same_answers() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", _ASKED],
            cwd=ROOT,
            env={**os.environ, "HAREBELL_IMPL": implementation},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for implementation in ("", "python")
    ]
    native, python = (json.loads(each) for each in said)
    assert native == python
    assert len(native) == COUNT
