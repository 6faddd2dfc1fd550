"""Write what editors and type checkers know of the methods of AMQP: `tools/method_stubs.py`.

The types of methods are made from the tables of the versions when these are loaded. For each module
of such types this writes a stub beside it, with a class statement for every type. Stubs are no part
of the repository: `tools/setup.sh` writes them, again after a change of the tables.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import msgspec

_V09 = "harebell.wire.v09"
_V010 = "harebell.wire.v010"
_V1 = "harebell.wire.v1"
MODULES = (
    f"{_V09}.methods",
    f"{_V09}.methods_older",
    f"{_V09}.methods_transitional",
    f"{_V010}.structs",
    f"{_V010}.controls",
    f"{_V010}.commands",
    f"{_V1}.composites",
)
_SOURCE = Path(__file__).resolve().parent.parent / "src"
_ORIGINS = {
    "datetime": "datetime",
    "Any": "typing",
    "UUID": "uuid",
    "Method": f"{_V09}.method",
    "Body": f"{_V09}.transitional_types",
    "Command": f"{_V010}.composites",
    "Composite": f"{_V010}.composites",
    "DescribedList": f"{_V1}.described_list",
    "Control": f"{_V010}.composites",
    "Xid": f"{_V010}.structs",
}
"""The modules of what stubs name."""
_LITERALS: dict[object, str] = {dict: "{}", list: "[]"}


def path_of(module: str) -> Path:
    """Where the stub of a module belongs."""
    return _SOURCE / f"{module.replace('.', '/')}.pyi"


def stub_of(module: str) -> str:
    """Return the text of the stub of a module."""
    kinds = [
        kind
        for kind in vars(import_module(module)).values()
        if isinstance(kind, type) and kind.__module__ == module
    ]
    body = "".join(f"\n{line}" for kind in kinds for line in ("", *_class_statement(kind)))
    own = {kind.__name__ for kind in kinds}
    code = re.sub(r'""".*?"""', "", body, flags=re.DOTALL)
    named = _ORIGINS.keys() & set(re.findall(r"\w+", code)) - own
    # `as` makes a name part of the module: callers import Method from it.
    imports = [f"from {_ORIGINS[name]} import {name} as {name}" for name in named]
    return "\n".join(
        ["# Written by tools/method_stubs.py from the tables.", *sorted(imports), body, ""]
    )


def _class_statement(kind: type[msgspec.Struct]) -> Iterator[str]:
    yield f"class {kind.__name__}({kind.__bases__[0].__name__}):"
    purpose = f'"""{kind.__doc__}"""'
    yield from textwrap.wrap(purpose, 100, initial_indent="    ", subsequent_indent="    ")
    defaults = zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True)
    for number, (name, default) in enumerate(defaults):
        if not number:
            yield ""
        factory = getattr(default, "factory", None)
        shown = _LITERALS.get(factory, f"{factory.__name__}()") if factory else repr(default)
        yield f"    {name}: {_annotation(kind.__annotations__[name])} = {shown}"


def _annotation(hint: object) -> str:
    text = hint.__name__ if isinstance(hint, type) else str(hint)
    return re.sub(r"\b(\w+\.)+(?=\w)", "", text)


def main() -> None:
    """Write the stubs."""
    for module in MODULES:
        path_of(module).write_text(stub_of(module), encoding="utf-8")


if __name__ == "__main__":
    main()
