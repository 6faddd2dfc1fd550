"""Every route and verb of RabbitMQ 4.3's HTTP API is served here, or a reason says why not.

A name in braces is any segment of a path.
"""

from __future__ import annotations

import pytest

from harebell.admin.catalog import commands
from harebell.management.http.errors import HttpError
from harebell.management.http.open_paths import LOGIN, open_answer
from harebell.management.http.routes import Routes

WHOLE = "GET PUT DELETE"
SERVED = {
    "/api/version": "GET",
    "/api/login": "POST",
    "/api/overview": "GET",
    "/api/cluster-name": "GET PUT",
    "/api/nodes": "GET",
    "/api/nodes/{node}": "GET",
    "/api/nodes/{node}/memory": "GET",
    "/api/nodes/{node}/memory/relative": "GET",
    "/api/nodes/{node}/memory/ets": "GET",
    "/api/nodes/{node}/memory/ets/relative": "GET",
    "/api/nodes/{node}/memory/ets/{filter}": "GET",
    "/api/nodes/{node}/memory/ets/{filter}/relative": "GET",
    "/api/extensions": "GET",
    "/api/all-configuration": "GET POST",
    "/api/definitions": "GET POST",
    "/api/definitions/{vhost}": "GET POST",
    "/api/parameters": "GET",
    "/api/parameters/{component}": "GET",
    "/api/parameters/{component}/{vhost}": "GET",
    "/api/parameters/{component}/{vhost}/{name}": WHOLE,
    "/api/global-parameters": "GET",
    "/api/global-parameters/{name}": WHOLE,
    "/api/policies": "GET",
    "/api/policies/{vhost}": "GET",
    "/api/policies/{vhost}/{name}": WHOLE,
    "/api/operator-policies": "GET",
    "/api/operator-policies/{vhost}": "GET",
    "/api/operator-policies/{vhost}/{name}": WHOLE,
    "/api/vhost-limits": "GET",
    "/api/vhost-limits/{vhost}": "GET",
    "/api/vhost-limits/{vhost}/{name}": "PUT DELETE",
    "/api/connections": "GET",
    "/api/connections/{connection}": "GET DELETE",
    "/api/connections/username/{username}": "GET DELETE",
    "/api/connections/{connection}/channels": "GET",
    "/api/connections/{connection}/sessions": "GET",
    "/api/channels": "GET",
    "/api/channels/{channel}": "GET",
    "/api/consumers": "GET",
    "/api/consumers/{vhost}": "GET",
    "/api/exchanges": "GET",
    "/api/exchanges/{vhost}": "GET",
    "/api/exchanges/{vhost}/{exchange}": WHOLE,
    "/api/exchanges/{vhost}/{exchange}/publish": "POST",
    "/api/exchanges/{vhost}/{exchange}/bindings/source": "GET",
    "/api/exchanges/{vhost}/{exchange}/bindings/destination": "GET",
    "/api/queues": "GET",
    "/api/queues/detailed": "GET",
    "/api/queues/{vhost}": "GET",
    "/api/queues/{vhost}/{queue}": WHOLE,
    "/api/queues/{vhost}/{queue}/bindings": "GET",
    "/api/queues/{vhost}/{queue}/contents": "DELETE",
    "/api/queues/{vhost}/{queue}/get": "POST",
    "/api/queues/{vhost}/{queue}/actions": "POST",
    "/api/queues/quorum/{vhost}/{queue}/replicas/add": "POST",
    "/api/queues/quorum/{vhost}/{queue}/replicas/delete": "DELETE",
    "/api/queues/quorum/replicas/on/{node}/grow": "POST",
    "/api/queues/quorum/replicas/on/{node}/shrink": "DELETE",
    "/api/queues/quorum/{vhost}/{queue}/status": "GET",
    "/api/bindings": "GET",
    "/api/bindings/{vhost}": "GET",
    "/api/bindings/{vhost}/e/{source}/{type}/{destination}": "GET POST",
    "/api/bindings/{vhost}/e/{source}/{type}/{destination}/{props}": "GET DELETE",
    "/api/vhosts": "GET",
    "/api/vhosts/{vhost}": WHOLE,
    "/api/vhosts/{vhost}/deletion/protection": "POST DELETE",
    "/api/vhosts/{vhost}/start/{node}": "POST",
    "/api/vhosts/{vhost}/permissions": "GET",
    "/api/vhosts/{vhost}/topic-permissions": "GET",
    "/api/vhosts/{vhost}/connections": "GET",
    "/api/vhosts/{vhost}/channels": "GET",
    "/api/users": "GET",
    "/api/users/bulk-delete": "POST",
    "/api/users/without-permissions": "GET",
    "/api/users/{user}": WHOLE,
    "/api/users/{user}/permissions": "GET",
    "/api/users/{user}/topic-permissions": "GET",
    "/api/user-limits": "GET",
    "/api/user-limits/{user}": "GET",
    "/api/user-limits/{user}/{name}": "PUT DELETE",
    "/api/feature-flags": "GET",
    "/api/feature-flags/{name}/enable": "PUT",
    "/api/deprecated-features": "GET",
    "/api/deprecated-features/used": "GET",
    "/api/whoami": "GET",
    "/api/permissions": "GET",
    "/api/permissions/{vhost}/{user}": WHOLE,
    "/api/topic-permissions": "GET",
    "/api/topic-permissions/{vhost}/{user}": WHOLE,
    "/api/topic-permissions/{vhost}/{user}/{exchange}": "DELETE",
    "/api/aliveness-test/{vhost}": "GET",
    "/api/healthchecks/node": "GET",
    "/api/healthchecks/node/{node}": "GET",
    "/api/health/checks/alarms": "GET",
    "/api/health/checks/local-alarms": "GET",
    "/api/health/checks/metadata-store/initialized": "GET",
    "/api/health/checks/metadata-store/initialized/with-data": "GET",
    "/api/health/checks/certificate-expiration/{within}/{unit}": "GET",
    "/api/health/checks/port-listener/{port}": "GET",
    "/api/health/checks/protocol-listener/{protocols}": "GET",
    "/api/health/checks/virtual-hosts": "GET",
    "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/": "GET",
    "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/": "GET",
    "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{p}": "GET",
    "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{p}": "GET",
    "/api/health/checks/node-is-quorum-critical": "GET",
    "/api/health/checks/is-in-service": "GET",
    "/api/health/checks/below-node-connection-limit": "GET",
    "/api/health/checks/ready-to-serve-clients": "GET",
    "/api/health/checks/reached-target-cluster-size": "GET",
    "/api/reset": "DELETE",
    "/api/reset/{node}": "DELETE",
    "/api/rebalance/queues": "POST",
    "/api/auth/attempts/{node}": "GET DELETE",
    "/api/auth/attempts/{node}/source": "GET DELETE",
    "/api/auth/hash_password/{password}": "GET",
    "/api/config/effective": "GET",
}
NOT_SERVED = {
    ("GET", "/api/js/oidc-oauth/bootstrap.js"): "part of RabbitMQ's web page",
    ("GET", "/api/users/{user}/queues"): "RabbitMQ 3.10 does not have it to compare with",
}
ROUTES = Routes(commands())


def is_served(method: str, path: str) -> bool:
    """Whether a route of a command or an open path answers a method of a path."""
    segments = [each for each in path.split("/") if each]
    if segments == LOGIN:
        return method == "POST"
    try:
        if open_answer(method, segments, "") is None:
            ROUTES.find(method, segments)
    except HttpError:
        return False
    return True


@pytest.mark.parametrize(
    ("method", "path"), [(verb, path) for path, verbs in SERVED.items() for verb in verbs.split()]
)
def test_a_route_of_rabbitmq_is_served(method: str, path: str) -> None:
    assert is_served(method, path)


@pytest.mark.parametrize(("method", "path"), NOT_SERVED)
def test_a_route_that_is_not_served_has_a_reason(method: str, path: str) -> None:
    assert not is_served(method, path), f"served now, no longer {NOT_SERVED[method, path]}"
