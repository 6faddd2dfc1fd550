"""`harebell shell`: commands and SQL at one prompt, on a real terminal and from a script."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harebell.cli.last_result import LastResult
from harebell.cli.shell.command_lines import CommandLines
from harebell.cli.shell.completing import Completer
from harebell.cli.shell.history import History
from harebell.client.blocking import connect
from tests.cli.conftest import Result, run_harebell
from tests.ports import free_port
from tests.running import RunningBroker, command, environment, running_broker
from tests.spark.typed import Terminal, terminal

ESCAPE = "\x1b]0;owned\x07\x9b2J"
SHOWN = "\\u001b]0;owned\\u0007\\u009b2J"
PROMPT = "harebell> "


def script(broker: RunningBroker, text: str, *words: str) -> Result:
    return run_harebell("shell", "--url", str(broker.data_dir), *words, stdin=text.encode())


@contextmanager
def typing(broker: RunningBroker, state: Path, *words: str) -> Iterator[Terminal]:
    """A shell on a terminal, at its first prompt."""
    env = environment({"XDG_STATE_HOME": str(state), "TERM": "xterm", "INPUTRC": os.devnull})
    line = [command(), "shell", *(words or ("--url", str(broker.data_dir)))]
    with terminal(line, env, state) as shell:
        shell.until(PROMPT)
        yield shell


# --- scripts --------------------------------------------------------------------------------------


def test_commands_and_statements_of_a_script_run_in_order(own: RunningBroker) -> None:
    text = (
        "# what this is for\n\nqueues declare jobs\npublish one -r jobs\n"
        "list queues name messages\n"
        "SELECT queue,\n  count(*) AS messages\nFROM queue('jobs') GROUP BY queue;\n"
        "queue show jobs --json\nSELECT 2 AS last_one"
    )
    done = script(own, text)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    row = json.loads(lines.pop(-3))
    assert (row["name"], row["messages"]) == ("jobs", 1)
    assert lines == [
        "queue 'jobs' in vhost '/' was declared",
        "1 message published to queue 'jobs' and confirmed",
        *("name  messages", "jobs  1", "queue  messages", "jobs   1", "last_one", "2"),
    ]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("queues purge none", 1, "no queue 'none' in vhost '/'"),
        ("queus list", 2, "No verb 'queus': did you mean queues?"),
        ("queues lst", 2, "No action 'lst': did you mean list?"),
        ("queues purge 'none", 2, "no closing quotation in this line"),
        ("SELECT nope FROM queue('kept');", 1, "there is no column 'nope'"),
        ("SELEC 1;", 2, "No verb 'SELEC'"),
        ("DELETE FROM queue('kept) WHERE true;", 2, "a quotation or a comment of this statement"),
        ("\\wach", 2, "there is no \\wach: did you mean \\watch?"),
        ("\\watch", 2, "there is no line yet that \\watch could repeat"),
        ("\\last", 2, "the last line has printed no rows"),
        ("\\use", 2, "write \\use VHOST"),
        ("users add ann", 2, "there is no password"),
        ("shell", 2, "this is the shell"),
        ("health --url /no/broker", 1, "ended with exit code 1"),
    ],
)
def test_the_first_line_that_fails_ends_a_script_and_is_named(
    broker: RunningBroker, line: str, code: int, said: str
) -> None:
    done = script(broker, f"# first\n{line}\nqueues declare after-a-failure\n")
    error = done.stderr.decode()
    assert (done.returncode, "Traceback" in error) == (code, False), error
    assert "line 2" in error
    assert said in error
    assert b"after-a-failure" not in script(broker, "queues list name").stdout


def test_input_that_is_closed_or_no_text_is_no_traceback(broker: RunningBroker) -> None:
    for verb in ("shell", "sql"):
        closed = subprocess.run(
            ["bash", "-c", f"{command()} {verb} <&-"],
            capture_output=True,
            env=environment(),
            timeout=60,
            check=False,
        )
        assert (closed.returncode, closed.stderr) == (0, b"")
    done = run_harebell("shell", stdin=b"# one\nqueues declare \xff\n")
    assert (done.returncode, done.stderr) == (2, b"Error: line 2: this is not UTF-8\n")
    done = run_harebell("shell", stdin=b"harebell\n")
    assert (done.returncode, done.stderr) == (0, b"")
    done = run_harebell("sql", stdin=b"SELECT '\xff'")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_rows_are_shown_again_as_a_table_csv_or_json(own: RunningBroker) -> None:
    text = (
        "queues declare jobs\nqueues list name messages\n\\last\n\\last csv\n\\last json\n"
        "SELECT 1 AS a, 'x,y' AS b;\n\\last csv\nqueues show jobs\n\\last json\n"
    )
    done = script(own, text)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[1:6] == ["name  messages", "jobs  0", "name  messages", "jobs  0", "name,messages"]
    assert lines[6:8] == ["jobs,0", '{"name":"jobs","messages":0}']
    assert lines[8:12] == ["a  b", "1  x,y", "a,b", '1,"x,y"']
    assert json.loads(lines[-1])["durability"] == "fsync"


def test_a_line_is_repeated_as_often_as_watch_says(own: RunningBroker) -> None:
    done = script(own, "queues list name messages\n\\watch 0.1 3\nSELECT 1 AS a;\n\\watch 0.1 2\n")
    assert done.stdout.decode().splitlines() == ["name  messages"] * 4 + ["a", "1"] * 3
    wrong = script(own, "queues list\n\\watch nan\n")
    assert (wrong.returncode, b"write \\watch SECONDS" in wrong.stderr) == (2, True)


def test_a_question_asks_for_the_rows_of_the_line_before(own: RunningBroker) -> None:
    text = (
        "queues declare jobs\nqueues declare idle\npublish x -r jobs\n"
        "queues list name messages arguments policy\n"
        "SELECT name, messages * 2 AS twice FROM last WHERE messages > 0;\n"
        "SELECT max(twice) AS most, count(*) AS n FROM last l JOIN queue('jobs') ON true;\n"
        "queues show jobs\nSELECT durable, arguments, owner FROM last;\n"
    )
    done = script(own, text)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[6:10] == ["name  twice", "jobs  2", "most  n", "2     1"]
    assert lines[-2:] == ["durable  arguments  owner", "true     {}"]
    wrong = script(own, "SELECT * FROM last;", "--engine", "duckdb")
    assert b"does not know the table last" in wrong.stderr


def test_use_chooses_the_vhost_of_commands_messages_and_statements(own: RunningBroker) -> None:
    text = (
        "vhosts add inner\npermissions set guest --vhost inner '.*' '.*' '.*'\n"
        "SELECT 1 AS before;\n\\use inner\nqueues declare q\npublish hello -r q\n"
        "SELECT CAST(value AS STRING) AS body FROM queue('q');\nget --requeue -q q\n"
        "queues list --vhost / name\nqueues list vhost name\n\\use /\nqueues list vhost name\n"
    )
    done = script(own, text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines()[-8:] == [
        *("1 message published to queue 'q' and confirmed", "body", "hello", "hello"),
        *("name", "vhost  name", "inner  q", "vhost  name"),
    ]


def test_the_shell_shows_what_its_user_may_see_and_no_more() -> None:
    http = free_port()
    with running_broker("--management-port", str(http)) as broker:
        text = (
            "users add least pw --tags management\nvhosts add hidden\n"
            "queues declare secret-queue --vhost hidden\nqueues declare open\n"
            "permissions set least '^$' '^$' '^$'\n"
        )
        assert script(broker, text).returncode == 0
        url = f"http://least:pw@127.0.0.1:{http}"
        listed = run_harebell("shell", "--url", url, stdin=b"queues list name\n\\last csv\n")
        assert b"secret-queue" not in listed.stdout
        assert run_harebell("queues", "list", "name", "--url", url).stdout in listed.stdout
        refused = run_harebell("shell", "--url", url, stdin=b"queues declare mine\n")
        assert (refused.returncode, b"Traceback" in refused.stderr) == (1, False)
        lines = CommandLines(url, LastResult())
        assert lines.completed(["queues", "show"], "") == ["open"]
        assert lines.completed(["users", "delete"], "") == []


# --- on a terminal --------------------------------------------------------------------------------


def test_tab_completes_commands_options_names_and_columns(
    own: RunningBroker, tmp_path: Path
) -> None:
    assert script(own, "queues declare alpha-one\nqueues declare beta\n").returncode == 0
    with typing(own, tmp_path) as shell:
        shell.type("queu\tli\t\n")
        assert "alpha-one" in shell.until(PROMPT)
        shell.type("queues show alp\t--js\t\n")
        assert '"name":"alpha-one"' in shell.until(PROMPT)
        shell.type("show queue bet\t--json\n")
        assert '"name":"beta"' in shell.until(PROMPT)
        shell.type("SELECT max(routi\t) AS found FROM queue('be\t);\n")
        assert "found\r\nnull" in shell.until(PROMPT)
        shell.type("--hel\t\n")
        assert "Run a broker." in shell.until(PROMPT)
        shell.type("queues\n")
        assert "Error" not in shell.until(PROMPT)
        shell.type("\\tim\t\n")
        assert "timing is on" in shell.until(PROMPT)
        shell.type("\x04")
        assert shell.process.wait(60) == 0


def test_without_a_broker_tab_offers_no_names_and_commands_say_one_sentence(tmp_path: Path) -> None:
    with running_broker() as broker:
        pass
    with typing(broker, tmp_path) as shell:
        shell.type("queues purge x\t\n")
        said = shell.until(PROMPT)
        assert "Error: no broker runs on the data directory" in said
        shell.type("SELECT * FROM queue('\t');\n")
        said += shell.until(PROMPT)
        assert "Error: " in said
        assert "Traceback" not in said


def test_tab_asks_for_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("harebell.cli.which_broker._asked_password", asked.append)
    lines = CommandLines(f"http://guest@127.0.0.1:{free_port()}", LastResult())
    assert (lines.completed(["queues", "show"], ""), asked) == ([], [])


def test_ten_thousand_queues_are_offered_at_once(own: RunningBroker, tmp_path: Path) -> None:
    names = ["one", *(f"many-{number:05}" for number in range(10_000))]
    queues = [{"name": name, "vhost": "/", "durable": True} for name in names]
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"queues": queues}))
    assert script(own, f"definitions import {file}\n").returncode == 0
    completer = Completer(CommandLines(str(own.data_dir), LastResult()), lambda: "")
    assert len(completer.offered("queues show many-", "many-")) == 10_000
    assert completer.offered("queues show many-0999", "many-0999")[-1] == "many-09999"
    assert completer.offered("SELECT * FROM queue('on", "on") == ["one"]


def test_watch_redraws_until_ctrl_c_and_outlives_the_broker(tmp_path: Path) -> None:
    with running_broker() as broker, typing(broker, tmp_path) as shell:
        shell.type("queues declare watched\n")
        shell.until(PROMPT)
        shell.type("queues list name\n")
        shell.until(PROMPT)
        shell.type("\\watch 0.1\n")
        for _ in range(3):
            assert "queues list name  every 0.1 s" in shell.until("watched\x1b[K\r\n\x1b[J")
        broker.process.kill()
        said = shell.until("Error: ")
        said += shell.until("no broker runs on the data directory")
        assert "Traceback" not in said
        shell.type("\x03")
        shell.until("cancelled")
        shell.until(PROMPT)
        shell.type("quit\n")
        assert shell.process.wait(60) == 0


def test_watch_shows_no_more_lines_than_the_terminal_has(
    own: RunningBroker, tmp_path: Path
) -> None:
    script(own, "".join(f"queues declare many-{number}\n" for number in range(60)))
    with typing(own, tmp_path) as shell:
        shell.type("queues list name\n")
        shell.until(PROMPT)
        shell.type("\\watch 0.1 2\n")
        shown = shell.until(PROMPT)
        screens = shown.split("\x1b[H")[1:]
        assert len(screens) == 2
        assert all(len(each.splitlines()) <= 25 for each in screens)
        assert re.search(r"\.\.\. \d+ lines more", screens[1])


def test_names_do_not_speak_to_the_terminal(own: RunningBroker, tmp_path: Path) -> None:
    with connect(own.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("q" + ESCAPE)
        channel.publish(("body" + ESCAPE).encode(), routing_key="q" + ESCAPE)
    with typing(own, tmp_path) as shell:
        for line in ("queues list name", "\\last csv", "\\last json", "\\watch 0.1 1"):
            shell.type(f"{line}\n")
            shown = shell.until(PROMPT)
            assert SHOWN in shown
            assert "\x1b]0" not in shown
        shell.type("queues show q\t\n")
        assert "\x1b]0" not in shell.until(PROMPT)
        shell.type("\\use v\x16\x1b[2J\n")  # Ctrl-V: the next key as it is
        shell.until("harebell v\\u001b[2J> ")


def test_lines_are_remembered_but_for_those_with_a_password(
    own: RunningBroker, tmp_path: Path
) -> None:
    secret = "sesame" + "123"
    typed = (
        *("queues list", f"users add ann {secret}", f"add user bob {secret}"),
        *(f"user add carl {secret}", f"usrs add dora {secret}", f"users ad eva {secret}"),
        *(f"users authenticate ann {secret}", f"queues list --url http://ann:{secret}@127.0.0.1:1"),
        *(f"SELECT '{secret}' AS password;", f"users add 'x {secret}", "SELECT 1;"),
    )
    with typing(own, tmp_path) as shell:
        for line in typed:
            shell.type(f"{line}\n")
            shell.until(PROMPT)
        shell.type("\x04")
        assert shell.process.wait(60) == 0
    file = tmp_path / "harebell" / "shell_history"
    assert file.read_text() == "queues list\nSELECT 1;\n"
    assert file.stat().st_mode & 0o777 == 0o600
    with typing(own, tmp_path) as shell:
        shell.type("\x1b[A\n")  # the arrow up
        assert "SELECT 1;" in shell.until(PROMPT)


@pytest.fixture
def long_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """A file of 5,000 lines, which is shortened when the history begins."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    history = History("shell_history")
    history.file.parent.mkdir()
    history.file.write_text("".join(f"queues show q{number}\n" for number in range(5_000)))
    return history


def test_a_file_of_lines_does_not_grow_for_ever(long_history: History) -> None:
    long_history.begin()
    lines = long_history.file.read_text().splitlines()
    assert (len(lines), lines[-1]) == (1_000, "queues show q4999")
    assert long_history.file.stat().st_mode & 0o777 == 0o600


def test_a_line_that_another_shell_adds_while_the_file_is_shortened_stays(
    long_history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = long_history
    replace, flock = History._replace, fcntl.flock
    waits = threading.Event()
    add = History("shell_history").add
    other = threading.Thread(target=add, args=("users list",), daemon=True)

    def locking(number: int, how: int) -> None:
        if threading.current_thread() is other:
            waits.set()
        flock(number, how)

    def replacing(shortened: History, lines: list[str]) -> None:
        """The other shell has opened the file, and waits for it."""
        other.start()
        assert waits.wait(30)
        with history.file.open() as file, pytest.raises(BlockingIOError):
            flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        replace(shortened, lines)

    monkeypatch.setattr(fcntl, "flock", locking)
    monkeypatch.setattr(History, "_replace", replacing)
    history.begin()
    other.join(30)
    lines = history.file.read_text().splitlines()
    assert (len(lines), lines[-2:]) == (1_001, ["queues show q4999", "users list"])


def test_ctrl_c_ends_a_statement_and_the_shell_goes_on(own: RunningBroker, tmp_path: Path) -> None:
    with connect(own.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("jobs")
        channel.publish_many([b"%d" % n for n in range(3_000)], routing_key="jobs")
    amqp = f"{own.address()}/%2F"
    with typing(own, tmp_path, "--url", amqp) as shell:
        many = ", ".join(f"queue('jobs') AS {name}" for name in "abcd")
        shell.type(f"SELECT count(*) FROM {many} WHERE a.value <> d.value;\n")
        shell.until("a.value <> d.value;")
        shell.until("cancelled", again="\x03")
        shell.until(PROMPT)
        shell.type("SELECT 40 + 2;\n")
        assert "42" in shell.until(PROMPT)


def test_statements_are_watched_in_the_prompt_of_sql_as_well(
    own: RunningBroker, tmp_path: Path
) -> None:
    env = environment({"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm"})
    line = [command(), "sql", "--url", f"{own.address()}/%2F"]
    with terminal(line, env, tmp_path) as shell:
        shell.until(PROMPT)
        shell.type("SELECT 40 + 2\n  AS answer;\n")
        shell.until(PROMPT)
        shell.type("\\watch 0.1\n")
        for _ in range(3):
            shell.until("SELECT 40 + 2 AS answer  every 0.1 s")
            shell.until("42")
        shell.type("\x03")
        shell.until("cancelled")
        shell.until(PROMPT)
        shell.type("\\last csv\n")
        assert "answer\r" in shell.until(PROMPT)
        shell.type("queues list;\n")
        assert "Error: " in shell.until(PROMPT)
        shell.type("exit;\n")
        assert shell.process.wait(60) == 0
    assert "SELECT 40 + 2" in (tmp_path / "harebell" / "sql_history").read_text()


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        *(("SELECT 1", True), ("select 1", True), ("(SELECT 1)", True), ("EXPLAIN SELECT 1", True)),
        *(("show tables", True), ("DELETE FROM queue('q')", True), ("MOVE FROM queue('q')", True)),
        *(("explain -e x", False), ("show queue q", False), ("delete queue q", False)),
        *(("queues list", False), ("anything", False), ("clear policy p", False)),
    ],
)
def test_a_line_is_a_command_or_a_statement_by_its_first_words(line: str, statement: bool) -> None:
    assert CommandLines.is_statement(line) is statement
