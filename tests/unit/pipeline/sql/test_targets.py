"""An INSERT into what does not exist says so before any row is staged."""

from __future__ import annotations

import subprocess

import pytest

from harebell.client import blocking
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.spec.description import Route
from harebell.pipeline.sql.explained_errors import with_near_queue
from harebell.pipeline.sql.targets import check_target
from tests.running import command, environment, running_broker


def test_a_missing_queue_or_exchange_is_named_with_how_to_declare_it() -> None:
    with running_broker() as broker, blocking.connect(broker.url) as connection:
        url = URL.parse(broker.url)
        connection.channel().declare_queue("orders")
        for route in (Route("", "orders"), Route("amq.topic"), Route("", None)):
            check_target(route, url)
        with pytest.raises(PipelineError) as failed:
            check_target(Route("", "orderz"), url)
        sentence = with_near_queue(str(failed.value), url)
        assert sentence.startswith("there is no queue 'orderz' in the virtual host '/' at ")
        assert "harebell queues declare orderz" in sentence
        assert sentence.endswith("; did you mean 'orders'?")
        with pytest.raises(PipelineError, match=r"exchange 'my e'.*exchanges declare 'my e'$"):
            check_target(Route("my e", "orders"), url)


def test_a_statement_that_goes_on_is_refused_before_spark_starts() -> None:
    with running_broker() as broker, blocking.connect(broker.url) as connection:
        connection.channel().declare_queue("orders")
        done = subprocess.run(
            [command(), "sql", "INSERT INTO queue('order') SELECT * FROM STREAM queue('orders')"],
            env=environment({"HAREBELL_URL": broker.url}),
            capture_output=True,
            text=True,
            timeout=60.0,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: there is no queue 'order' in the virtual host '/' at ")
    assert done.stderr.endswith("harebell queues declare order; did you mean 'orders'?\n")
