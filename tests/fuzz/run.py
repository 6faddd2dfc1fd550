"""Fuzz one target: `python -m tests.fuzz.run TARGET [CORPUS ...] [-max_total_time=60 ...]`.

Options and folders are libFuzzer's. Python code is instrumented so that the fuzzer sees which
ways it takes; compiled kernels are only compared with their twins.
"""

from __future__ import annotations

import inspect
import sys
from types import FunctionType, ModuleType


def _functions(module: ModuleType) -> list[FunctionType]:
    found: list[FunctionType] = []
    for thing in vars(module).values():
        if inspect.isfunction(thing) and thing.__module__ == module.__name__:
            found.append(thing)
        elif inspect.isclass(thing) and thing.__module__ == module.__name__:
            found += [each for each in vars(thing).values() if inspect.isfunction(each)]
    return found


def _instrument(atheris: ModuleType) -> int:
    """Instrument what is fuzzed; returns how many functions."""
    from tests.fuzz.twins import twin

    parts = ("harebell.wire", "harebell.front", "harebell.kernels", "harebell.client.url")
    modules = [twin] + [
        module
        for name, module in list(sys.modules.items())
        if name.startswith((*parts, "harebell.server.config", "harebell.server.settings"))
    ]
    done = 0
    for module in modules:
        for function in _functions(module):
            atheris.instrument_func(function)
            done += 1
    return done


def main() -> None:
    """Fuzz until something fails or the options say that it is enough."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is missing: install it with `pip install -e .[fuzz]`")
    from tests.fuzz import targets

    if len(sys.argv) < 2 or sys.argv[1] not in targets.TARGETS:
        sys.exit(f"name a target: {', '.join(targets.TARGETS)}")
    name = sys.argv.pop(1)
    target = targets.TARGETS[name]
    _instrument(atheris)
    atheris.instrument_func(target)
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
