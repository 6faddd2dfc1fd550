"""`harebell pipeline`: check and run pipeline files, and watch running pipelines."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harebell.cli.formats import takes_json
from harebell.cli.piping import master_flag, metrics_flag, pipeline, run_all, sentences
from harebell.cli.progress import Progress
from harebell.cli.shipped import ACTIONS
from harebell.cli.verb import Failure, WrongUsage, echo, echo_json
from harebell.pipeline.limits import PIPELINE_STOP_SECONDS

if TYPE_CHECKING:
    from harebell.pipeline.spec.description import Description

assert ACTIONS, "importing them made them actions of the group"
_FILE = click.Path(dir_okay=False, path_type=Path)
_SET = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="What ${NAME} in the file stands for; else the environment says. May be repeated.",
)
_JSON = takes_json()


def _variables(settings: tuple[str, ...]) -> dict[str, str]:
    variables = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise WrongUsage(f"--set wants NAME=VALUE, not {each!r}")
        variables[name] = value
    return variables


def _checked(file: Path, settings: tuple[str, ...]) -> Description:
    from harebell.pipeline.checking import check as check_file

    return check_file(file, _variables(settings))


@pipeline.command()
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE...")
@_SET
def check(files: tuple[Path, ...], settings: tuple[str, ...]) -> None:
    """Say what is wrong with pipelines, without Spark and without a broker."""
    wrong: list[str] = []
    for file in files:
        try:
            with sentences():
                pipelines = _checked(file, settings)
        except WrongUsage as error:
            wrong.append(error.message)
        else:
            echo(f"{file}: pipeline {pipelines.name} is fine")
    if wrong:
        raise WrongUsage("\n".join(wrong))


@pipeline.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--sdp", is_flag=True, help="For Spark's own declarative pipelines. Required.")
def init(directory: Path, *, sdp: bool) -> None:
    """Make a project that reads a queue and runs as it is."""
    from harebell.pipeline.errors import PipelineError
    from harebell.pipeline.sdp_project import RUN, make_project

    if not sdp:
        raise WrongUsage(
            "say --sdp for a project of Spark's own declarative pipelines; a pipeline of Harebell "
            "is one file: see docs/guides/pipelines.md"
        )
    try:
        files = make_project(directory)
    except PipelineError as error:
        raise WrongUsage(str(error)) from None
    for each in files:
        echo(f"made {each}")
    echo(f"run it: cd {directory} && {RUN}")


@pipeline.command()
@click.argument("file", type=_FILE)
@_SET
@click.option("--svg", "as_svg", is_flag=True, help="Print a drawing of it instead, as SVG.")
def explain(file: Path, settings: tuple[str, ...], as_svg: bool) -> None:
    """Say what a pipeline will do, without Spark and without a broker."""
    from harebell.pipeline.spec.explaining import explain as explained
    from harebell.pipeline.spec.lineage import drawing

    with sentences():
        described = _checked(file, settings)
    if as_svg:
        echo(drawing(described), nl=False)
    else:
        echo(explained(described))


@pipeline.command()
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE...")
@_SET
@master_flag
@metrics_flag
def run(
    files: tuple[Path, ...], settings: tuple[str, ...], master: str | None, metrics: str | None
) -> None:
    """Run pipelines in one driver, until they end or are stopped."""
    with sentences():
        pipelines = [_checked(file, settings) for file in files]
    run_all(pipelines, master, metrics)


@pipeline.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """Print the pipelines that run on this machine, and how those ended that ran before."""
    from harebell.pipeline.registry import default_directory, states

    with sentences():
        pipelines = states(default_directory())
    if as_json:
        echo_json([asdict(state) for state in pipelines])
        return
    from harebell.pipeline.sinks.console import table

    rows = [
        (each.name, each.state, each.batch if each.batch >= 0 else "", each.rows, _lag(each.lag))
        for each in pipelines
    ]
    for line in table(("name", "state", "batch", "rows", "behind"), rows):
        echo(line)


def _lag(lag: dict[str, int]) -> str:
    return str(sum(lag.values())) if lag else ""


@pipeline.command()
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600.0),
    default=1.0,
    metavar="SECONDS",
    help="How often the states are read.  [default: 1]",
)
@click.option("--once", is_flag=True, help="Print the states once, and end.")
def watch(interval: float, once: bool) -> None:
    """Show the pipelines of this machine live, until Ctrl-C; without a terminal, once."""
    from harebell.pipeline.registry import default_directory, states
    from harebell.pipeline.watching import COLUMNS, LiveTable, in_order, row_of

    directory = default_directory()
    if once or not sys.stdout.isatty():
        from harebell.pipeline.sinks.console import table

        with sentences():
            rows = [row_of(state) for state in in_order(states(directory))]
        for line in table(COLUMNS, rows):
            echo(line)
        return
    try:
        from rich.live import Live
    except ImportError:
        raise Failure("this needs rich: pip install 'harebell[spark]'") from None
    with sentences(), Live(LiveTable(states(directory)), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(interval)
            live.update(LiveTable(states(directory)), refresh=True)


@pipeline.command()
@click.argument("name")
@_JSON
def status(name: str, as_json: bool) -> None:
    """Print all that is known of one pipeline; fails if it failed or was lost."""
    from harebell.pipeline.registry import default_directory, state_of

    with sentences():
        state = state_of(default_directory(), name)
    if as_json:
        echo_json(asdict(state))
    else:
        for key, value in asdict(state).items():
            if value != "" and value is not False:
                echo(f"{key}: {_value(key, value)}")
    if state.state in ("failed", "lost"):
        raise Failure(f"pipeline {name} {_END[state.state]}")


@pipeline.command()
def metrics() -> None:
    """Print the metrics of all pipelines on this machine, as Prometheus reads them."""
    from harebell.pipeline.registry import default_directory, states
    from harebell.pipeline.run.metrics import exposition

    with sentences():
        echo(exposition(states(default_directory())), nl=False)


_END = {"failed": "has failed", "lost": "was lost: its process died"}


def _value(key: str, value: Any) -> str:
    if key in ("started", "updated"):
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(value))
    if isinstance(value, dict):
        if not value:
            return "unknown" if key == "lag" else "nothing"
        return ", ".join(f"{name} {count}" for name, count in value.items())
    if key == "batch_seconds":
        return f"{value:.3f}"
    return f"{value:.0f}" if isinstance(value, float) else str(value)


@pipeline.command()
@click.argument("name")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=PIPELINE_STOP_SECONDS * 2,
    metavar="SECONDS",
    help=f"How long to wait for its end.  [default: {PIPELINE_STOP_SECONDS * 2:g}]",
)
def stop(name: str, timeout: float) -> None:
    """Let a pipeline finish its micro-batch and end; others in the same driver end with it."""
    from harebell.pipeline.registry import alive, default_directory, state_of

    directory = default_directory()
    with sentences():
        state = state_of(directory, name)
    if not alive(directory, name):
        raise Failure(f"pipeline {name} does not run: {state.state}")
    os.kill(state.pid, signal.SIGTERM)
    until = time.monotonic() + timeout
    with Progress(f"stopping pipeline {name}"):
        while alive(directory, name):
            if time.monotonic() > until:
                raise Failure(f"pipeline {name} is stopping and has not ended yet")
            time.sleep(0.05)
    echo(f"pipeline {name} has ended")
