"""Check before an INSERT that its exchange or queue exists.

The write itself would find this out only after all rows are staged, in the words of a micro-batch.
"""

from __future__ import annotations

import shlex

from harebell.client import blocking
from harebell.client.errors import AMQPError, NotFound
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.spec.description import Route


def check_target(route: Route, url: URL) -> None:
    """Check that an exchange exists, or for the default exchange the queue.

    Any other trouble with the broker is left to the write, which waits and retries where that
    helps.

    Raises:
        PipelineError: it does not exist.
    """
    queue = None if route.exchange else route.routing_key
    # Every row names its queue in the column routing_key: only the write sees them.
    if not route.exchange and not queue:
        return
    try:
        with blocking.connect(url) as connection:
            channel = connection.channel()
            if queue:
                channel.declare_queue(queue, passive=True)
            else:
                channel.declare_exchange(route.exchange, passive=True)
    except NotFound:
        kind, name = ("queue", queue) if queue else ("exchange", route.exchange)
        command = shlex.join([*_vhost(url.vhost), str(name)])
        raise PipelineError(
            f"there is no {kind} {name!r} in the virtual host {url.vhost!r} at {url.address}, and "
            f"nothing was published: harebell {kind}s declare {command}"
        ) from None
    except AMQPError:
        return


def _vhost(name: str) -> list[str]:
    return [] if name == "/" else ["--vhost", name]
