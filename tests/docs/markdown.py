"""Reads what the documentation tests need from a markdown file: titles, fenced blocks, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"(`{3,})\s*(\S*)\s*$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        language: the word behind the fence.
        line: where its text begins, counted from 1.
        text: what it contains.
    """

    language: str
    line: int
    text: str


@dataclass(frozen=True)
class Document:
    """A markdown file.

    Args:
        path: the file.
        blocks: its fenced blocks, in order.
        prose: its lines outside of blocks, those inside replaced by empty ones.
    """

    path: Path
    blocks: tuple[Block, ...]
    prose: tuple[str, ...]

    @property
    def name(self) -> str:
        """The path from the root of the project."""
        return str(self.path.relative_to(ROOT))

    def titles(self, level: int = 1) -> list[str]:
        """The headings of one level."""
        mark = "#" * level + " "
        return [line.removeprefix(mark).strip() for line in self.prose if line.startswith(mark)]

    def section(self, title: str) -> str:
        """The prose below a heading of the second level, up to the next one."""
        begin = self.prose.index(f"## {title}")
        end = next(
            (n for n in range(begin + 1, len(self.prose)) if self.prose[n].startswith("## ")),
            len(self.prose),
        )
        return "\n".join(self.prose[begin + 1 : end])

    def links(self) -> list[str]:
        """Where it links to, without what a browser does itself."""
        found = _LINK.findall("\n".join(self.prose))
        return [link.partition("#")[0] for link in found if "://" not in link]


def rows(text: str) -> list[list[str]]:
    """The cells of the table rows in some prose, without the headings."""
    found = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    rules = [n for n, cells in enumerate(found) if all(set(cell) <= set("-:") for cell in cells)]
    skipped = {*rules, *(n - 1 for n in rules)}
    return [cells for n, cells in enumerate(found) if n not in skipped]


def read(path: Path) -> Document:
    """Read a markdown file."""
    blocks: list[Block] = []
    prose: list[str] = []
    fence, language, begin, inside = "", "", 0, list[str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, language, begin, inside = mark[1], mark[2], number + 1, []
            prose.append("")
        elif fence and line.strip() == fence:
            blocks.append(Block(language, begin, "\n".join(inside)))
            fence = ""
            prose.append("")
        elif fence:
            inside.append(line)
            prose.append("")
        else:
            prose.append(line)
    assert not fence, f"{path}: the block of line {begin} does not end"
    return Document(path, tuple(blocks), tuple(prose))


def documents() -> list[Document]:
    """Every markdown file of the project that people read."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return [read(path) for path in sorted(paths)]
