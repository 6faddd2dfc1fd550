"""The page about metrics has every family, a reason for each metric that is missing, and alerts."""

from __future__ import annotations

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

from harebell.management.metrics import families
from tests.docs.markdown import ROOT, read, rows

PAGE = ROOT / "docs/reference/metrics.md"
ALERTS = ROOT / "packaging/prometheus/harebell-alerts.yml"
_NAME = re.compile(r"\b(?:rabbitmq|harebell)_\w+")
_SUFFIX = re.compile(r"_(bucket|sum|count)$")


def written() -> set[str]:
    """The names of all metrics, of which the page has a row each."""
    return {row[0].strip("`") for row in rows(read(PAGE).section("Metrics"))}


def of_rabbitmq() -> set[str]:
    """The names of RabbitMQ's metrics."""
    lines = (ROOT / "tests/docs/metrics-of-rabbitmq.txt").read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_every_metric_of_rabbitmq_is_served_or_has_a_reason_on_the_page() -> None:
    served = {re.sub("^rabbitmq_cluster_", "rabbitmq_", name) for name in written()}
    left = of_rabbitmq() - served
    reasons = {
        pattern: why
        for names, why in rows(read(PAGE).section("Differences from RabbitMQ"))
        for pattern in re.findall("`(rabbitmq_[^`]+)`", names)
    }
    for name in sorted(left):
        assert any(fnmatch(name, pattern) for pattern in reasons), f"{name} is nowhere"
    for pattern, why in reasons.items():
        assert why
        assert any(fnmatch(name, pattern) for name in left), f"{pattern} stands for nothing"


def test_every_family_has_its_row_and_the_other_way_round() -> None:
    named = [row[0].strip("`") for row in rows(read(PAGE).section("Families"))]
    assert named == list(families.FAMILIES)
    text = read(PAGE).section("Families")
    assert all(f"`{family}`" in text for family in families.EMPTY)


def test_alerts_and_examples_use_metrics_that_exist() -> None:
    known = {*written(), "rabbitmq_cluster_permanent_id", *families.FAMILIES}
    known |= {name.replace("_", "_detailed_", 1) for name in known}
    labels = {"rabbitmq_cluster", "rabbitmq_node", "rabbitmq_endpoint", "rabbitmq_version"}
    for path in (ALERTS, PAGE):
        for name in _NAME.findall(path.read_text(encoding="utf-8")):
            if name.endswith("_"):  # a prefix
                continue
            if path == PAGE and name in of_rabbitmq():
                continue
            assert name in known | labels or _SUFFIX.sub("", name) in known, (path.name, name)


def test_prometheus_accepts_the_alerts_and_the_configuration_of_the_guide(tmp_path: Path) -> None:
    blocks = [
        block
        for block in read(ROOT / "docs/guides/monitoring.md").blocks
        if block.text.startswith("# prometheus.yaml")
    ]
    assert len(blocks) == 1
    (tmp_path / "prometheus.yaml").write_text(blocks[0].text)
    shutil.copy(ALERTS, tmp_path)
    # `check config` checks the files of rules too. A missing promtool fails here.
    subprocess.run(
        ["promtool", "check", "config", str(tmp_path / "prometheus.yaml")],
        check=True,
        capture_output=True,
        timeout=60,
    )
