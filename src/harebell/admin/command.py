'''Describe a command once: the command line, the control socket and the HTTP API serve it.

A command is a function with a decorator, in a file of `harebell.admin.commands`:

    @QUEUES.command(
        "DELETE /api/queues/{vhost}/{name}/contents",
        tag=MANAGEMENT,
        done="queue '{name}' in vhost '{vhost}' was purged",
    )
    def purge(context: AdminContext, name: str, vhost: InVhost = "/") -> Row:
        """Drop all messages of a queue that are ready."""
        ...

Everything else is read from the function: its name is the verb, its docstring the help, and its
parameters after the first are the arguments of the command, with their types and defaults. A
parameter without an `Argument` is positional on the command line. A command that may take long
returns `Slices` of its answer, and shares the event loop with everything else. A command with many
rows returns a `RowStream` (`harebell.admin.streaming`), which has to be its annotation.

The command line reads these files for its help, and has to start fast: they import only `base` and
`admin` at their top, and the rest of Harebell inside functions.
'''

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from harebell.admin.catalog import column_names
from harebell.admin.long_text import LongText
from harebell.admin.place import EVERYWHERE, HERE, ROWS, VHOST

if TYPE_CHECKING:
    from harebell.admin.catalog import Noun

Row = dict[str, Any]
"""An answer, as JSON has it."""

ANYBODY = ""
MANAGEMENT = "management"
MONITORING = "monitoring"
POLICYMAKER = "policymaker"
ADMINISTRATOR = "administrator"
"""Tags of users, as in RabbitMQ: who may run a command over HTTP. ANYBODY is every user with one of
these tags. The control socket is for the user who runs the broker, and asks for none."""


class Form(Enum):
    """How the command line writes an argument."""

    PLAIN = "plain"
    """As a word; a flag without a value for a boolean."""
    WORDS = "words"
    """A list, with commas between its members."""
    JSON = "json"
    """A value in JSON."""
    TABLE = "table"
    """A table: `-a name=text` or `-a name:=JSON` for each member."""
    SECRET = "secret"  # noqa: S105
    """A word, or a line of standard input."""


class Argument(NamedTuple):
    """What the command line says of an argument; the type comes from the annotation.

    Args:
        help: the help of its flag; "" for a positional argument.
        metavar: stands for its value in the help.
        form: how it is written.
        short: a short flag.
        off: the flag for False, where True is the default.
        choices: the only values it may have.
        example: a value in JSON, for errors.
        over_http: the default over HTTP, where it is another.
        body: whether it is the whole body of a request over HTTP.
        long: whether it may have many MB over HTTP: a long one comes as a `LongText`.
    """

    help: str = ""
    metavar: str | None = None
    form: Form = Form.PLAIN
    short: str | None = None
    off: str | None = None
    choices: tuple[str, ...] = ()
    example: str = ""
    over_http: Any = None
    body: bool = False
    long: bool = False


class Parameter(NamedTuple):
    """An argument of a command.

    Args:
        name: its name, also in JSON: that of the parameter, without a "_" at its end.
        keyword: the name of the function's parameter.
        type: of its value.
        default: its value where none is given; `REQUIRED` if there has to be one.
        argument: how the command line writes it.
    """

    name: str
    keyword: str
    type: Any
    default: Any
    argument: Argument


class CommandRoute(NamedTuple):
    """A route of a command over HTTP: its method, the template of its path, and what it does."""

    method: str
    path: str
    summary: str


REQUIRED = inspect.Parameter.empty

Sentence = Callable[[Mapping[str, Any]], str]

_LOOKS = frozenset(
    (
        *("queues.counters", "queues.get", "exchanges.publish", "exchanges.explain"),
        *("policies.preview", "operator-policies.preview"),
        *("bindings.list", "limits.list", "stages.list", "streams.list-super", "users.list"),
        *("transactions.list", "definitions.try", "service.figures", "users.state"),
        *("sql.ask", "sql.cancel"),
    )
)
"""Commands that administer nothing, and are no routes for GET alone."""


@dataclass(eq=False)
class Command:
    """A command.

    Args:
        noun: what it is about.
        verb: its name beside the noun.
        run: executes it in the broker: gets an `AdminContext` and the arguments, and returns the
            answer, or `Slices` of it where it may take long, or a `RowStream`.
        summary: what it does, in a sentence.
        tag: which users may run it over HTTP.
        http: its routes, each as "METHOD /api/path/{argument}", or with a sentence for this route:
            "METHOD /api/path: What the request does."
        row: the columns of its answer, for a list: their names, or a `TypedDict`.
        shown: columns of a list that are shown unless others are asked for; () for all of them.
        done: the sentence for people when it is done: a template, or a function. Both get the
            arguments and the members of the answer.
        what: the plural of what a list has.
        status: the status of a successful answer over HTTP. 0 for the usual one: 200 for GET, 201
            or 204 for PUT (by the member "made" of the answer), 204 for others.
        hidden: whether it is left out of the command line.
        own_place: where it runs in a cluster; "" for the place of most commands of its kind.
        merge: how the answers of several owners become one.
    """

    noun: Noun
    verb: str
    run: Callable[..., Any]
    summary: str
    tag: str
    http: tuple[str, ...]
    row: InitVar[type | Iterable[str]] = ()
    shown: tuple[str, ...] = ()
    done: str | Sentence = ""
    what: str = ""
    status: int = 0
    hidden: bool = False
    own_place: str = ""
    merge: str = ROWS

    def __post_init__(self, row: type | Iterable[str]) -> None:
        self.columns = column_names(row)
        self.chooses = bool(self.shown and self.what)
        self.shown = self.shown or self.columns
        self._fields: Any = None
        self._keywords: dict[str, str] = {}

    @property
    def name(self) -> str:
        """Its name on the control socket, such as "queues.purge"."""
        return f"{self.noun.name}.{self.verb}"

    @cached_property
    def parameters(self) -> list[Parameter]:
        """Its arguments, in their order."""
        hints = get_type_hints(self.run, include_extras=True)
        _, *given = inspect.signature(self.run).parameters.values()
        return [_parameter(each, hints[each.name]) for each in given]

    @cached_property
    def vhost_parameter(self) -> Parameter | None:
        """The argument that names a vhost; None if it has none."""
        names = ("vhost", "name") if self.noun.of_vhosts else ("vhost",)
        return next((each for each in self.parameters if each.name in names), None)

    @cached_property
    def place(self) -> str:
        """Where it runs in a cluster with several stores; see `harebell.admin.place`."""
        if self.own_place:
            return self.own_place
        vhost = self.vhost_parameter
        if vhost is not None and vhost.default not in (None, ""):
            return VHOST
        return self.noun.place or (HERE if vhost is None else EVERYWHERE)

    def vhost_of(self, arguments: Mapping[str, Any]) -> str:
        """Return the vhost that the arguments of `run` name; "" if they name none."""
        parameter = self.vhost_parameter
        return "" if parameter is None else arguments.get(parameter.keyword) or ""

    def fields_of(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a request with these arguments of `run`."""
        return {
            each.name: str(value) if isinstance(value, LongText) else value
            for each in self.parameters
            if (value := arguments.get(each.keyword, REQUIRED)) is not REQUIRED
        }

    @cached_property
    def routes(self) -> list[CommandRoute]:
        """Its routes over HTTP."""
        routes = []
        for each in self.http:
            route, _, own = each.partition(": ")
            method, _, path = route.partition(" ")
            routes.append(CommandRoute(method, path, own or self._summary_for(path)))
        return routes

    def _summary_for(self, path: str) -> str:
        """Say in a sentence what a request does, without words of the command line."""
        names = re.findall(r"{(\w+)}", path)
        if self.what and names:
            return f"List the {self.what} of a {names[-1].removesuffix('name') or self.noun.name}."
        sentence = first_sentence(self.summary)
        for name in names:
            sentence = re.sub(rf"\b{name.upper()}\b", f"`{name}`", sentence)
        return sentence

    @property
    def reads(self) -> bool:
        """Whether it changes nothing: over HTTP, it is there for GET alone."""
        return bool(self.http) and all(each.startswith("GET ") for each in self.http)

    @property
    def acts(self) -> bool:
        """Whether it is an administrative act, which the audit trail has."""
        return not self.reads and self.name not in _LOOKS

    @property
    def streams(self) -> bool:
        """Whether its answer is a `RowStream`."""
        return self.run.__annotations__.get("return") == "RowStream"

    @property
    def holds(self) -> bool:
        """Whether its answer is `HeldRows`."""
        return self.run.__annotations__.get("return") == "Slices[HeldRows]"

    def arguments_of(self, fields: Mapping[str, Any], *, strict: bool = True) -> dict[str, Any]:
        """Check the fields of a request; returns the keyword arguments for `run`.

        Args:
            fields: the values by the names of the arguments.
            strict: False to accept texts for numbers and booleans.

        Raises:
            msgspec.ValidationError: one of them is missing, unknown, of a wrong type, or no choice.
        """
        import msgspec

        for each in self.parameters:
            if each.argument.long and isinstance(text := fields.get(each.name), LongText):
                return {
                    **self.arguments_of({**fields, each.name: ""}, strict=strict),
                    each.keyword: text,
                }

        if self._fields is None:
            fields_of_struct = [
                (each.name, each.type)
                if each.default is REQUIRED
                else (each.name, each.type, each.default)
                for each in self.parameters
            ]
            self._keywords = {each.name: each.keyword for each in self.parameters}
            self._fields = msgspec.defstruct(
                self.verb, fields_of_struct, kw_only=True, forbid_unknown_fields=True
            )
        checked = msgspec.convert(fields, self._fields, strict=strict)
        for each in self.parameters:
            choices, value = each.argument.choices, getattr(checked, each.name)
            if choices and value is not None and value not in choices:
                known = ", ".join(filter(None, choices))
                raise msgspec.ValidationError(
                    f"{each.name} is '{value[:40]}': it is one of {known}"
                )
        return {keyword: getattr(checked, name) for name, keyword in self._keywords.items()}

    def sentence(self, given: Mapping[str, Any], answer: Any) -> str:
        """Return the sentence that the command line prints at its end."""
        outcome = {**given, **answer} if isinstance(answer, dict) else given
        return self.done.format_map(outcome) if isinstance(self.done, str) else self.done(outcome)


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    argument = Argument()
    if hasattr(hint, "__metadata__"):
        hint, argument = hint.__origin__, hint.__metadata__[0]
    return Parameter(parameter.name.rstrip("_"), parameter.name, hint, parameter.default, argument)


def documentation(run: Callable[..., Any]) -> str:
    """The docstring of a function, without its indentation."""
    return inspect.getdoc(run) or ""


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    return text.partition("\n")[0].partition(". ")[0].removesuffix(".") + "."


def plural(count: int, word: str) -> str:
    """A count and the word for what is counted, such as "1 batch" or "2 queues"."""
    ending = "" if count == 1 else "es" if word.endswith("ch") else "s"
    return f"{count} {word}{ending}"
