"""What the HTTP API answers to a web page and to tools beside its commands."""

from __future__ import annotations

import msgspec

from harebell.base.version import VERSION
from tests.unit.management.http.asking import Api

SECRET = "a secret of the login"


def test_the_version_and_the_way_to_the_document_need_no_login(api: Api) -> None:
    answer = api.ask("GET", "/api/version", user=None)
    assert (answer.status, answer.json) == (200, VERSION)
    for path in ("/api", "/api/"):
        moved = api.ask("GET", path, user=None)
        assert (moved.status, moved.headers["location"]) == (301, "/api/openapi.json")
    assert api.ask("DELETE", "/api/version", user=None).status == 405


def test_the_page_of_the_command_line_says_how_to_get_rabbitmqadmin(api: Api) -> None:
    page = api.ask("GET", "/cli/", user=None)
    assert page.status == 200
    assert b"pip install ./packaging/rabbitmq-compat" in page.body
    script = api.ask("GET", "/cli/rabbitmqadmin", user=None)
    assert script.status == 404, "a script must not be saved that is none"
    assert b"pip install ./packaging/rabbitmq-compat" in script.body


def test_a_login_of_a_web_page_gets_a_cookie_that_logs_nobody_in(api: Api) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = api.ask(
        "POST", "/api/login", b"username=guest&password=guest", user=None, headers=form
    )
    assert answer.status == 200, answer
    name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
    assert name == "auth"
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    cookie = {"cookie": f"auth={value}"}
    assert api.ask("GET", "/api/whoami", user=None, headers=cookie).status == 401
    basic = {"authorization": f"Basic {value}"}
    assert api.ask("GET", "/api/whoami", user=None, headers=basic).json["name"] == "guest"


def test_a_wrong_login_of_a_web_page_is_refused_and_repeats_nothing(api: Api) -> None:
    for body, status in (
        (f"username=guest&password={SECRET}".encode(), 401),
        (f"username=a%3Ab&password={SECRET}".encode(), 400),
        (b"\xff", 400),
        (b"", 401),
    ):
        answer = api.ask("POST", "/api/login", body, user=None)
        assert answer.status == status, answer
        assert "set-cookie" not in answer.headers
        assert SECRET.encode() not in answer.body
    assert api.ask("GET", "/api/login", user=None).status == 405


def test_definitions_are_uploaded_by_a_form_and_downloaded_by_a_link(api: Api) -> None:
    queue = {"name": "of a form", "vhost": "/", "durable": True, "auto_delete": False}
    document = msgspec.json.encode({"queues": [{**queue, "arguments": {}}]})
    body = (
        b'--b\r\ncontent-disposition: form-data; name="file"; filename="d.json"\r\n\r\n'
        + document
        + b'\r\n--b\r\ncontent-disposition: form-data; name="redirect"\r\n\r\n../#/import-succeeded'
        + b"\r\n--b--\r\n"
    )
    form = {"content-type": "multipart/form-data; boundary=b"}
    sent = api.ask("POST", "/api/definitions", body, headers=form)
    assert (sent.status, sent.headers["location"]) == (303, "../#/import-succeeded")
    assert api.get("/api/queues/%2F/of%20a%20form")["durable"] is True
    login = "Z3Vlc3Q6Z3Vlc3Q%3D"
    link = f"/api/definitions?auth={login}&download=my%20broker.json"
    got = api.ask("GET", link, user=None)
    assert got.status == 200
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''my%20broker.json"
    assert "of a form" in [each["name"] for each in got.json["queues"]]
    assert api.ask("GET", f"/api/queues?auth={login}", user=None).status == 401


def test_all_configuration_is_another_name_of_the_definitions(api: Api) -> None:
    assert api.get("/api/all-configuration")["queues"] == api.get("/api/definitions")["queues"]


def test_the_effective_configuration_has_every_key_and_no_secret(api: Api) -> None:
    found = api.get("/api/config/effective")
    assert found["management_port"] == api.port
    assert "guest" not in str(found["default_pass"])
    user = api.user("watcher", "monitoring")
    assert api.ask("GET", "/api/config/effective", user=user).status == 401


def test_tables_of_erlang_and_sessions_of_amqp_1_0_are_answered_truthfully(api: Api) -> None:
    (node,) = api.get("/api/nodes")
    tables = api.get(f"/api/nodes/{node['name']}/memory/ets")
    assert tables == {"ets_tables_memory": {"total": 0}}
    assert api.ask("GET", "/api/nodes/other/memory/ets").status == 404
    assert api.ask("GET", "/api/connections/nobody/sessions").status == 404
