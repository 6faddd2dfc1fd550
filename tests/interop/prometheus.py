"""A Prometheus of our own, that scrapes a broker, and `promtool`."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.patience import SECONDS
from tests.ports import free_port

_MISSING = "the tests need {tool}: install it with `apt-get install -y prometheus`"
_CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: broker
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - job_name: queues
    metrics_path: /metrics/detailed
    params: {{family: [queue_coarse_metrics, harebell_queue_ages]}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def tool(name: str) -> str:
    """The path of a tool of Prometheus.

    Raises:
        RuntimeError: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(_MISSING.format(tool=name))
    return found


def fetched(url: str) -> tuple[int, str, str]:
    """Ask for a URL; returns the status, the content type and the body."""
    with urlopen(url, timeout=SECONDS) as answer:
        return answer.status, answer.headers["content-type"], answer.read().decode()


def complaints(text: str) -> list[str]:
    """What `promtool check metrics` has to say about a text.

    Raises:
        AssertionError: the text cannot be parsed.
    """
    done = subprocess.run(
        [tool("promtool"), "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    # 3: it was parsed, and names are not as Prometheus recommends.
    assert done.returncode in (0, 3), done.stderr
    return done.stderr.splitlines()


class Prometheus:
    """A running Prometheus.

    Args:
        url: where it answers.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def _ask(self, path: str, **query: str) -> Any:
        _, _, body = fetched(f"{self._url}/api/v1/{path}?{urlencode(query)}")
        answer = json.loads(body)
        assert answer["status"] == "success", answer
        return answer["data"]

    def targets(self) -> list[dict[str, Any]]:
        """The targets, with the error of the last scrape."""
        found: list[dict[str, Any]] = self._ask("targets")["activeTargets"]
        return found

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Evaluate an expression now: labels and value of each series."""
        result = self._ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in result]

    def wait_until_up(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + SECONDS
        while True:
            try:
                fetched(f"{self._url}/-/ready")
                return
            except (URLError, ConnectionError):
                assert time.monotonic() < until, "Prometheus does not start"
                time.sleep(0.05)


@contextmanager
def prometheus(directory: Path, port: int) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes a broker once a second."""
    config = directory / "prometheus.yml"
    config.write_text(_CONFIG.format(port=port))
    own = free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{own}",
                "--log.level=warn",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            found = Prometheus(f"http://127.0.0.1:{own}")
            found.wait_until_up()
            yield found
        finally:
            process.terminate()
            process.wait(SECONDS)
