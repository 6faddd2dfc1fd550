"""Translate the declaring verbs of the client into requests to the management node.

queue.declare            PUT /queues/Q; GET if it is passive           the client generates names
queue.delete, purge      DELETE /queues/Q, DELETE /queues/Q/messages
exchange.declare, delete PUT, DELETE /exchanges/X
queue.bind               POST /bindings
queue.unbind             DELETE /bindings/src=X;dstq=Q;key=K;args=, where an answer to
                         GET /bindings names bindings with arguments
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harebell.client.errors import UnsupportedByVersion, closed_channel
from harebell.client.protocol.v1.addresses import queue_address, quoted
from harebell.client.protocol.v1.management import Request, to_value
from harebell.wire.v09 import methods as m

VERSION = "1-0"
_NOT_FOUND = 404


class RequestPlan(NamedTuple):
    """The request of a verb.

    Args:
        request: what is asked.
        reply: the reply of 0-9-1, of the body of the answer; or another plan, which goes on.
    """

    request: Request
    reply: Callable[[Any], m.Method | RequestPlan]


def plan(method: m.Method, name: Callable[[], str]) -> RequestPlan:
    """Return the request for a method of 0-9-1.

    Args:
        method: one that the verbs of a channel send.
        name: generates names for queues without one.

    Raises:
        UnsupportedByVersion: 1.0 has no equivalent.
    """
    if isinstance(method, m.QueueDeclare):
        return _declare_queue(method, method.queue or name())
    make = _PLANS.get(type(method))
    if make is None:
        raise UnsupportedByVersion(VERSION, method.NAME)
    made: RequestPlan = make(method)
    return made


def _refuse(flag: bool, thing: str) -> None:
    if flag:
        raise UnsupportedByVersion(VERSION, thing)


def _declare_queue(method: m.QueueDeclare, queue: str) -> RequestPlan:
    def reply(found: Any) -> m.Method:
        return m.QueueDeclareOk(
            queue=queue,
            message_count=_count(found, "message_count"),
            consumer_count=_count(found, "consumer_count"),
        )

    if method.passive:
        return RequestPlan(Request("GET", queue_address(queue)), reply)
    body = {
        "durable": method.durable,
        "exclusive": method.exclusive,
        "auto_delete": method.auto_delete,
        "arguments": method.arguments,
    }
    return RequestPlan(Request("PUT", queue_address(queue), body), reply)


def _declare_exchange(method: m.ExchangeDeclare) -> RequestPlan:
    _refuse(method.passive, "passive declaration of an exchange")
    body = {
        "type": method.type,
        "durable": method.durable,
        "auto_delete": method.auto_delete,
        "internal": method.internal,
        "arguments": method.arguments,
    }
    request = Request("PUT", f"/exchanges/{quoted(method.exchange)}", body)
    return RequestPlan(request, lambda answer: m.ExchangeDeclareOk())


def _delete_exchange(method: m.ExchangeDelete) -> RequestPlan:
    _refuse(method.if_unused, "exchange.delete with if-unused")
    request = Request("DELETE", f"/exchanges/{quoted(method.exchange)}")
    return RequestPlan(request, lambda answer: m.ExchangeDeleteOk())


def _delete_queue(method: m.QueueDelete) -> RequestPlan:
    _refuse(method.if_unused, "queue.delete with if-unused")
    _refuse(method.if_empty, "queue.delete with if-empty")
    return RequestPlan(
        Request("DELETE", queue_address(method.queue)),
        lambda answer: m.QueueDeleteOk(message_count=_count(answer, "message_count")),
    )


def _purge(method: m.QueuePurge) -> RequestPlan:
    return RequestPlan(
        Request("DELETE", f"{queue_address(method.queue)}/messages"),
        lambda answer: m.QueuePurgeOk(message_count=_count(answer, "message_count")),
    )


class _Binding(NamedTuple):
    """The ends of a binding.

    Args:
        source: an exchange.
        kind: "queue" or "exchange".
        destination: its name.
    """

    source: str
    kind: str
    destination: str


def _ends(method: Any) -> _Binding:
    if isinstance(method, m.QueueBind | m.QueueUnbind):
        return _Binding(method.exchange, "queue", method.queue)
    return _Binding(method.source, "exchange", method.destination)


def _bind(method: m.QueueBind | m.ExchangeBind) -> RequestPlan:
    source, kind, destination = _ends(method)
    body = {
        "source": source,
        f"destination_{kind}": destination,
        "binding_key": method.routing_key,
        "arguments": dict(method.arguments),
    }
    done = m.QueueBindOk() if kind == "queue" else m.ExchangeBindOk()
    return RequestPlan(Request("POST", "/bindings", body), lambda answer: done)


def _unbind(method: m.QueueUnbind | m.ExchangeUnbind) -> RequestPlan:
    source, kind, destination = _ends(method)
    end, key = f"dst{kind[0]}", quoted(method.routing_key)
    done = m.QueueUnbindOk() if kind == "queue" else m.ExchangeUnbindOk()

    def remove(path: str) -> RequestPlan:
        return RequestPlan(Request("DELETE", path), lambda answer: done)

    if not method.arguments:
        return remove(f"/bindings/src={quoted(source)};{end}={quoted(destination)};key={key};args=")
    arguments = to_value(dict(method.arguments))

    def chosen(bindings: Any) -> RequestPlan:
        for binding in bindings if isinstance(bindings, list) else ():
            if binding.get("arguments") == arguments:
                return remove(str(binding["location"]))
        raise closed_channel(_NOT_FOUND, f"no binding of {destination!r} has these arguments")

    query = f"src={quoted(source)}&{end}={quoted(destination)}&key={key}"
    return RequestPlan(Request("GET", f"/bindings?{query}"), chosen)


def _count(answer: Any, name: str) -> int:
    count = answer.get(name) if isinstance(answer, dict) else None
    return int(count) if isinstance(count, int) else 0


_PLANS: dict[type[m.Method], Callable[[Any], RequestPlan]] = {
    m.ExchangeDeclare: _declare_exchange,
    m.ExchangeDelete: _delete_exchange,
    m.ExchangeBind: _bind,
    m.ExchangeUnbind: _unbind,
    m.QueueBind: _bind,
    m.QueueUnbind: _unbind,
    m.QueueDelete: _delete_queue,
    m.QueuePurge: _purge,
}
