"""`make interop`: run other people's suites on both brokers, and write docs/reference/interop.md.

It ends with 1 if a test passes on RabbitMQ and not on Harebell, unless the catalogue says why.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys

from harebell.base.version import VERSION
from tests.interop.suites.archives import BUILD, ROOT, CannotFetchError
from tests.interop.suites.catalogue import SUITES, Suite
from tests.interop.suites.fetch import fetch
from tests.interop.suites.outcomes import Outcomes
from tests.interop.suites.page import Comparison, reason, render
from tests.patience import SECONDS

PAGE = ROOT / "docs" / "reference" / "interop.md"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def measure(kind: str, suites: list[Suite]) -> dict[str, Outcomes]:
    """Run suites on one kind of broker, in a network that has nothing but loopback."""
    results = BUILD / f"{kind}-now.json"
    results.unlink(missing_ok=True)
    alone = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    inside = [sys.executable, "-m", "tests.interop.suites.inside", kind, str(results)]
    command = [*alone, *inside, *(suite.label for suite in suites)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=None, check=False)
    if done.returncode != 0 or not results.exists():
        sys.exit(f"make interop: the suites could not be run on {kind}")
    found: dict[str, Outcomes] = json.loads(results.read_text())
    last = BUILD / f"{kind}.json"
    before = json.loads(last.read_text()) if last.exists() else {}
    last.write_text(json.dumps(before | found))
    return found


def _last(kind: str) -> dict[str, Outcomes]:
    """What the last runs came to."""
    path = BUILD / f"{kind}.json"
    if not path.exists():
        sys.exit(f"make interop: there is no {path}: run it without --again first")
    found: dict[str, Outcomes] = json.loads(path.read_text())
    return found


def versions() -> dict[str, str]:
    """What took part, beside the clients."""
    node = subprocess.run(
        ["node", "--version"], timeout=SECONDS, capture_output=True, text=True, check=True
    )
    debian = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Version}", "rabbitmq-server"],
        timeout=SECONDS, capture_output=True, text=True, check=False,
    )  # fmt: skip
    rabbitmq = re.match(r"[\d.]+", debian.stdout)
    return {
        "Harebell": VERSION,
        "RabbitMQ": rabbitmq[0] if rabbitmq else "of an unknown version",
        "Python": platform.python_version(),
        "node": node.stdout.strip().removeprefix("v"),
    }


def main(arguments: list[str]) -> int:
    """Fetch, run, compare, tell."""
    parser = argparse.ArgumentParser(prog="make interop", description=__doc__)
    parser.add_argument("--only", default="", help="suites whose label has this; writes no page")
    parser.add_argument("--again", action="store_true", help="write the page of the last runs")
    options = parser.parse_args(arguments)
    wanted = "" if options.again else options.only
    suites = [suite for suite in SUITES if wanted in suite.label]
    if not suites:
        parser.error(f"no suite has {wanted!r} in its label")
    try:
        for suite in () if options.again else suites:
            _say(f"fetching {suite.label}")
            fetch(suite)
    except CannotFetchError as failed:
        sys.exit(f"make interop: {failed}")
    kinds = ("rabbitmq", "harebell")
    theirs, ours = (_last(kind) if options.again else measure(kind, suites) for kind in kinds)
    comparisons = [Comparison(suite, ours[suite.label], theirs[suite.label]) for suite in suites]
    if not wanted:
        PAGE.write_text(render(comparisons, versions(), datetime.date.today().isoformat()))
        _say(f"wrote {PAGE.relative_to(ROOT)}")
    return verdict(comparisons)


def verdict(comparisons: list[Comparison]) -> int:
    """Tell what needs an explanation; the exit code."""
    code = 0
    for found in comparisons:
        if not found.rabbitmq:
            _say(f"{found.suite.label}: no test was run")
            code = 1
        for test in (*found.worse, *found.better, *found.neither):
            where = "worse than RabbitMQ" if test in found.worse else "not explained"
            if not reason(found.suite, test, better=test in found.better):
                _say(f"{found.suite.label}: {where}: {test}")
                code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
