"""Arguments that many commands have: one text for each, on the command line and over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from harebell.admin.command import Argument, Form

InVhost = Annotated[str, Argument("The vhost it is in.", "NAME")]
OnlyVhost = Annotated[str | None, Argument("Only those of this vhost.", "NAME")]
Durable = Annotated[
    bool,
    Argument(
        "Whether it survives a restart.  [default: durable]", off="transient", over_http=False
    ),
]
Table = Annotated[
    dict[str, Any],
    Argument("An argument: name=text or name:=JSON. May be repeated.", form=Form.TABLE),
]
NO_ARGUMENTS: dict[str, Any] = {}
