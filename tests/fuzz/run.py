"""Fuzz one target: `python -m tests.fuzz.run TARGET [CORPUS ...] [-max_total_time=60 ...]`.

Options and directories are libFuzzer's. Python code is instrumented so that the fuzzer sees which
ways it takes; compiled kernels are only compared with their twins.

To instrument everything takes longer than a short run. `python -m tests.fuzz.run --many LOG` does
it once: each line that it reads is a list of arguments in JSON, for a process of their own that
writes to LOG, and is answered with that process's exit code.
"""

from __future__ import annotations

import inspect
import json
import os
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
        if name.startswith((*parts, "harebell.config", "harebell.config.settings"))
    ]
    done = 0
    for module in modules:
        for function in _functions(module):
            atheris.instrument_func(function)
            done += 1
    return done


def _fuzz(atheris: ModuleType, arguments: list[str]) -> None:
    """Fuzz the target that is named first; ends the process."""
    from tests.fuzz import targets

    if not arguments or arguments[0] not in targets.TARGETS:
        sys.exit(f"name a target: {', '.join(targets.TARGETS)}")
    target = targets.TARGETS[arguments[0]]
    atheris.instrument_func(target)
    atheris.Setup([sys.argv[0], *arguments[1:]], target)
    atheris.Fuzz()


def _fuzz_many(atheris: ModuleType, log: str) -> None:
    """Fuzz in a process of its own whatever is asked for, one after the other."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            _fuzz(atheris, json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def main() -> None:
    """Fuzz until something fails or the options say that it is enough."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is missing: install it with `pip install -e .[fuzz]`")
    from tests.fuzz import targets  # noqa: F401  # what is loaded is instrumented

    _instrument(atheris)
    if sys.argv[1:2] == ["--many"] and sys.argv[2:]:
        _fuzz_many(atheris, sys.argv[2])
    else:
        _fuzz(atheris, sys.argv[1:])


if __name__ == "__main__":
    main()
