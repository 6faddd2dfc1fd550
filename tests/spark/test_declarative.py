"""Spark's declarative pipelines over queues: the project of the template, run as it is.

`make test` runs it once, as an example (`test_examples`).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from harebell.client.blocking import Channel, connect
from harebell.pipeline.sdp_project import RUN
from tests.cli.conftest import done
from tests.running import RunningBroker, running_broker

ORDERS = 5_000
LIMIT_SECONDS = 400


def publish(channel: Channel, first: int, end: int) -> None:
    bodies = [
        json.dumps({"id": number, "region": ("eu", "us")[number % 2], "total": number % 1000})
        for number in range(first, end)
    ]
    channel.publish_many([body.encode() for body in bodies], routing_key="orders", delivery_mode=2)


def run(project: Path, broker: RunningBroker) -> None:
    command, *arguments = shlex.split(RUN)
    result = subprocess.run(
        [Path(sys.executable).parent / command, *arguments],
        cwd=project,
        env=os.environ
        | {
            "HAREBELL_URL": f"{broker.address()}/%2F",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1_000)
def test_the_project_stores_every_order_once_over_two_runs(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    with (
        running_broker() as broker,
        connect(f"{broker.address()}/%2F", background_heartbeats=True) as connection,
    ):
        made = done(broker, "pipeline", "init", str(project), "--sdp")
        assert made.endswith(f"run it: cd {project} && {RUN}")
        channel = connection.channel()
        for name in ("orders", "large"):
            channel.declare_queue(name, durable=True)
        channel.bind_queue("large", "amq.topic", "#")
        publish(channel, 0, 3_000)
        run(project, broker)
        publish(channel, 3_000, ORDERS)
        run(project, broker)
        assert channel.declare_queue("orders", passive=True).message_count == 0
        large = channel.declare_queue("large", passive=True).message_count
    rows = ds.dataset(project / "spark-warehouse" / "orders", format="parquet").to_table()
    assert sorted(rows.column("id").to_pylist()) == list(range(ORDERS))
    totals = ds.dataset(project / "spark-warehouse" / "totals", format="parquet").to_table()
    assert sorted(totals.column("region").to_pylist()) == ["eu", "us"]
    assert sum(totals.column("count(id)").to_pylist()) == ORDERS
    assert large == sum(number % 1000 > 900 for number in range(ORDERS))
