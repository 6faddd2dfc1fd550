"""A parser of the text format that was written from its description, to check the writer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", re.DOTALL)
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)', re.DOTALL)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_SUFFIXES = ("_bucket", "_sum", "_count")

Sample = tuple[str, dict[str, str], float]


@dataclass
class Parsed:
    """What a text has: types by name, and samples in order."""

    types: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)

    def values(self, name: str, **labels: str) -> list[float]:
        """The values of the samples of that name that have these labels."""
        return [
            value
            for sample, found, value in self.samples
            if sample == name and labels.items() <= found.items()
        ]

    def one(self, name: str, **labels: str) -> float:
        """The value of the only such sample."""
        found = self.values(name, **labels)
        assert len(found) == 1, (name, labels, found)
        return found[0]


def parse(text: str) -> Parsed:
    """Parse a text.

    Raises:
        AssertionError: it breaks a rule of the format.
    """
    found = Parsed()
    current = ""
    finished: set[str] = set()
    for line in text.removesuffix("\n").split("\n") if text else []:
        if line.startswith("#"):
            _, word, name, rest = line.split(" ", 3)
            if name != current:
                assert name not in finished, f"{name} is in two places"
                finished.add(current)
                current = name
            if word == "TYPE":
                found.types[name] = rest
            else:
                assert word == "HELP", line
            continue
        match = _LINE.fullmatch(line)
        assert match is not None, line
        name, inner, value = match[1], match[2] or "", match[3]
        bare = name
        if found.types.get(current) == "histogram":
            bare = next((name.removesuffix(s) for s in _SUFFIXES if name.endswith(s)), name)
        assert bare == current, f"{name} is not below its type"
        labels = {label: _plain(raw) for label, raw in _LABEL.findall(inner)}
        assert inner == "" or "".join(m[0] for m in _LABEL.finditer(inner)) == inner, line
        found.samples.append((name, labels, float(value)))
    seen = [(name, tuple(sorted(labels.items()))) for name, labels, _ in found.samples]
    assert len(seen) == len(set(seen)), "a sample is there twice"
    return found


def _plain(raw: str) -> str:
    return re.sub(r"\\.", lambda match: _ESCAPES[match[0]], raw)
