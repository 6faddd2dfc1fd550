"""What is printed gives no orders to a terminal."""

from __future__ import annotations

import pytest

from harebell.cli.echo import echo


def test_line_ends_stay_and_orders_to_a_terminal_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\tb\nc \x1b[31m")
    echo("d", nl=False)
    echo("e\x9b", err=True)
    out, err = capsys.readouterr()
    assert out == "a\tb\nc \\u001b[31m\nd"
    assert err == "e\\u009b\n"
