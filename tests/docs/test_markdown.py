"""The reader that the documentation tests stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown import Block, read, rows
from tests.docs.shell import steps

TEXT = """# Title

[one](a.md#part) and [two](https://example.org/)

```console
$ echo 1
1
$ echo 2
```

## Below

| a | b |
|---|---|
| `1` | # no title |

```
# no title either
```
"""


def test_blocks_titles_links_and_tables_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(TEXT)
    document = read(path)
    assert document.titles() == ["Title"]
    assert document.titles(2) == ["Below"]
    assert document.links() == ["a.md"]
    assert document.blocks == (
        Block("console", 6, "$ echo 1\n1\n$ echo 2"),
        Block("", 18, "# no title either"),
    )
    assert rows(document.section("Below")) == [["`1`", "# no title"]]


def test_a_block_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# Title\n\n```sh\nls\n")
    with pytest.raises(AssertionError, match="the block of line 4 does not end"):
        read(path)


def test_the_commands_of_a_console_have_their_output() -> None:
    first, second = steps(Block("console", 6, "$ echo 1\n1\n$ echo 2"))
    assert (first.command, first.line, first.output) == ("echo 1", 6, ["1"])
    assert (second.command, second.line, second.output) == ("echo 2", 8, [])


def test_the_commands_of_a_script_lose_their_comments() -> None:
    found = steps(Block("sh", 1, "# first\nmake run   # starts\n\nmake test"))
    assert [step.command for step in found] == ["make run", "make test"]
