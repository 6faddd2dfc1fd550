"""Pages of the documentation site that are made from the code: commands, routes, classes, options.

The pages of docs/reference explain and are compared with the code by tests; these have everything
that the code says of itself, each time the site is built.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
import msgspec

from harebell.admin.catalog import commands
from harebell.cli.main import harebell
from harebell.client import aio, blocking
from harebell.management.http.openapi import document
from harebell.management.http.routes import routes_of

_OPTIONS = """# Options of the Spark connector

In Spark the names are written as in [spark.md](../guides/spark.md) and
[spark-sink.md](../guides/spark-sink.md): `starting` is `startingOffsets`, for example. Here they
are as the connector has read them.

## Reading

```{eval-rst}
.. autoclass:: harebell.spark.options.source_options.Options
   :no-members:
```

## Writing

```{eval-rst}
.. autoclass:: harebell.spark.options.sink_options.SinkOptions
   :no-members:
```
"""


_COMMON = ("Message", "Recovery")
"""Classes that both APIs have."""


def generated_pages() -> dict[str, str]:
    """Markdown by the name of its file."""
    return {
        "client-library.md": "\n".join(_client()),
        "commands.md": "\n".join(_commands()),
        "http-routes.md": "\n".join(_routes()),
        "spark-options.md": _OPTIONS,
    }


def _client() -> Iterator[str]:
    """The classes and functions of the client library, from their docstrings."""
    yield "# The client library\n"
    yield "Explained in [client.md](../guides/client.md).\n"
    for title, module in (("asyncio", aio), ("Blocking", blocking)):
        yield f"## {title}: {module.__name__}\n"
        for name in sorted(module.__all__):
            kind = "class" if inspect.isclass(getattr(module, name)) else "function"
            once = ":no-index:" if name in _COMMON and module is blocking else ""
            yield _directive(f"auto{kind}", f"{module.__name__}.{name}", once)
    yield "## Errors\n"
    yield _directive("automodule", "harebell.client.errors")


def _directive(name: str, argument: str, option: str = "") -> str:
    return f"```{{eval-rst}}\n.. {name}:: {argument}\n   {option}\n```\n"


def _commands() -> Iterator[str]:
    """The help of every verb, as `harebell VERB --help` prints it."""
    yield "# Help of every command\n"
    yield "Explained in [cli.md](../reference/cli.md).\n"
    context = click.Context(harebell, info_name="harebell", max_content_width=100)
    yield from _help(harebell, context, 2)


def _help(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                inner = click.Context(below, context, name, max_content_width=100)
                yield from _help(below, inner, min(level + 1, 4))


def _routes() -> Iterator[str]:
    """Every route with its parameters, as /api/openapi.json describes it."""
    yield "# Routes of the HTTP API\n"
    yield "The broker serves the same as `/api/openapi.json`.\n"
    yield "Explained in [http-api.md](../reference/http-api.md).\n"
    for path, methods in document(routes_of(commands()), "")["paths"].items():
        yield f"## {path}\n".replace("{", "\\{")
        for method, operation in methods.items():
            yield f"**{method.upper()}**: {operation['summary']} {operation['description']}\n"
            yield from _parameters(operation)


def _parameters(operation: dict[str, object]) -> Iterator[str]:
    rows = [
        (each["name"], each["in"], each.get("required", False), each["schema"])
        for each in operation.get("parameters", [])
    ]
    body = operation.get("requestBody")
    if body:
        schema = next(iter(body["content"].values()))["schema"]
        needed = schema.get("required", [])
        rows += [
            (name, "body", name in needed, kind)
            for name, kind in schema.get("properties", {}).items()
        ]
    if rows:
        yield "| parameter | where | required | type |\n|---|---|---|---|"
        for name, place, required, kind in rows:
            shown = kind.get("type") or msgspec.json.encode(kind).decode() if kind else "any"
            yield f"| `{name}` | {place} | {'yes' if required else ''} | {shown} |".replace(
                "  ", " "
            )
        yield ""
