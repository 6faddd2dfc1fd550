"""What is missing for Spark Connect is said in one sentence."""

from __future__ import annotations

import pytest

from harebell.spark.runtime.connect_session import require
from harebell.spark.runtime.java import SessionError


def test_a_missing_module_is_named_with_the_command_that_installs_it() -> None:
    require(["json", "email.message"])
    for missing in ("no_such_module", "no_such_package.module"):
        with pytest.raises(SessionError, match=rf"needs the module {missing}, .* 'pyspark\[conn"):
            require(["json", missing])
