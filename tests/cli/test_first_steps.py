"""What a new user sees: the first lines of a broker on a terminal, and the demo."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from harebell.cli.demo.bad_day import PLANTED
from harebell.cli.demo.flights import AIRPORTS, flights
from harebell.client.blocking import connect
from tests.cli.conftest import done, run_harebell
from tests.cli.terminal import terminal
from tests.running import RunningBroker, command, environment, running_broker

_SECONDS = 120


def test_a_broker_on_a_terminal_says_where_its_page_is_and_what_to_try(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with terminal("serve", "--port", "0", "--data-dir", data, directory=tmp_path) as shown:
        text = shown.read_until("Ctrl-C ends the broker.")
        assert re.search(r"web page  http://127\.0\.0\.1:\d+/\n", text), text
        tried = [line.strip() for line in text.splitlines() if line.startswith("  harebell")]
        assert len(tried) == 3
        done = subprocess.run(
            tried[0].replace("harebell ", f"{command()} "),
            shell=True,
            capture_output=True,
            env=environment(),
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert shown.press_ctrl_c() == 0
        assert "Traceback" not in shown.text


def test_a_broker_that_is_no_terminal_says_what_it_always_said() -> None:
    with running_broker() as broker:
        assert "Server startup complete" in broker.log.splitlines()
        assert "web page" not in broker.log


def test_the_demo_answers_with_a_picture(tmp_path: Path) -> None:
    file = tmp_path / "answer.svg"
    result = run_harebell("demo", "--no-spark", "--picture", str(file))
    text = result.stdout.decode()
    assert result.returncode == 0, result.stderr
    assert "routed 27,004 messages" in text
    assert "from 4 minutes at 5:00 to 47 at 22:00 (Newark)" in text
    drawing = ElementTree.parse(file).getroot()
    lines = [each for each in drawing.iter() if each.tag.endswith("polyline")]
    assert len(lines) == len(AIRPORTS)
    assert {"Newark", "Kennedy", "LaGuardia"} <= {each.text for each in drawing.iter()}


def test_the_demo_ends_cleanly_with_ctrl_c(tmp_path: Path) -> None:
    with terminal("demo", "--no-spark", "--seconds", "60", directory=tmp_path) as shown:
        shown.read_until(r"flights .*[1-9]%")
        assert shown.press_ctrl_c() == 130
        assert "Traceback" not in shown.text
    with terminal("demo", "--no-spark", "--seconds", "0", directory=tmp_path) as shown:
        text = shown.read_until("Ctrl-C ends it.")
        page = re.search(r"http://localhost:\d+/", text)
        assert page is not None
        assert shown.press_ctrl_c() == 0
        assert (tmp_path / "harebell-demo.svg").exists()


def test_each_problem_of_a_bad_day_is_found_within_a_minute_and_nothing_else() -> None:
    result = run_harebell("demo", "--bad-day")
    text = result.stdout.decode()
    assert result.returncode == 0, (text, result.stderr)
    for rule, name in PLANTED:
        assert re.search(rf"^{rule} +{name}: ", text, re.M), text
    assert f"\n{len(PLANTED)} things need you: all was found in " in text


def test_the_demo_names_a_place_that_it_cannot_write(tmp_path: Path) -> None:
    result = run_harebell("demo", "--picture", str(tmp_path / "none" / "x.svg"))
    assert result.returncode == 1
    assert b"name another with --picture" in result.stderr


def test_the_flights_are_those_of_the_data_set() -> None:
    found = [json.loads(flight.body) for flight in flights()]
    assert len(found) == 27_004
    assert {flight["origin"] for flight in found} == set(AIRPORTS)
    assert sum(flight["dep_delay"] is None for flight in found) == 521
    first = {"day": 1, "hour": 5, "carrier": "UA", "flight": 1545, "origin": "EWR"}
    assert found[0] == first | {"dest": "IAH", "dep_delay": 2, "distance": 1400}


def test_a_job_is_followed_on_a_terminal(broker: RunningBroker, tmp_path: Path) -> None:
    for queue in ("left.side", "right.side"):
        done(broker, "queues", "declare", queue)
    with connect(broker.address()) as link:
        link.channel().publish_many([b"1", b"2", b"3"], routing_key="left.side")
    words = ("queues", "move", "left.side", "body < 3", "--to-queue", "right.side")
    place = ("--data-dir", str(broker.data_dir))
    with terminal(*words, *place, directory=tmp_path) as shown:
        text = shown.read_until(r"job \d+ is done: 2 of 2 messages")
        assert shown.process.wait(_SECONDS) == 0
        assert "Traceback" not in text
