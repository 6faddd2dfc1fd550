"""advanced.config has Erlang terms, and sets what rabbitmq.conf could set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.config import Config, ConfigError, read_configuration
from harebell.config.erlang_terms import Atom, TermError, Tuple, read_term

EXAMPLE = """\
%% -*- mode: erlang -*-
[
 {rabbit, [
   {tcp_listeners, [5673, {"127.0.0.1", 5674}]},   % two of them
   {ssl_listeners, []},
   {loopback_users, [<<"ann">>]},
   {default_user, <<"ann">>},
   {default_pass, <<"p% w">>},
   {default_vhost, <<"/orders">>},
   {default_permissions, [<<"^c">>, <<"^w">>, <<"^r">>]},
   {default_user_tags, [administrator, monitoring]},
   {vm_memory_high_watermark, {absolute, "1GB"}},
   {disk_free_limit, 50000000},
   {heartbeat, 30},
   {channel_max, 16#ff},
   {consumer_timeout, undefined},
   {auth_mechanisms, ['PLAIN', 'AMQPLAIN']},
   {auth_backends, [rabbit_auth_backend_internal]},
   {log, [{console, [{enabled, true}, {level, debug}]},
          {file, [{file, "rabbit.log"}, {level, warning}]},
          {categories, [{connection, [{level, error}]}]}]},
   {delegate_count, 16},
   {cluster_name, undefined}
 ]},
 {rabbitmq_management, [{listener, [{port, 1234}, {ip, "127.0.0.1"}]},
                        {path_prefix, "/m"}]},
 {kernel, [{net_ticktime, 60}]}
].
"""


def read(directory: Path, text: str) -> Any:
    path = directory / "advanced.config"
    path.write_text(text)
    return read_configuration({}, {}, path)


def test_a_file_as_users_have_it_is_honoured(tmp_path: Path) -> None:
    found = read(tmp_path, EXAMPLE)
    config, path = found.config, tmp_path / "advanced.config"
    assert (config.host, config.port) == ("::", 5673)
    assert config.listen == (("amqp", "127.0.0.1", 5674),)
    assert config.loopback_users == ("ann",)
    assert (config.default_user, config.default_pass) == ("ann", "p% w")
    assert config.default_vhost == "/orders"
    assert (config.default_permissions_configure, config.default_permissions_read) == ("^c", "^r")
    assert config.default_user_tags == ("administrator", "monitoring")
    assert (config.memory_high_watermark, config.disk_free_limit) == (10**9, 50_000_000)
    assert (config.heartbeat, config.channel_max, config.consumer_timeout) == (30, 255, 0)
    assert config.auth_mechanisms == ("PLAIN", "AMQPLAIN")
    assert (config.log_console, config.log_console_level) == (True, "debug")
    assert (config.log_file, config.log_file_level) == ("rabbit.log", "warning")
    assert config.log_levels == {"connection": "error"}
    assert (config.management_port, config.management_host) == (1234, "127.0.0.1")
    assert config.management_path_prefix == "/m"
    assert found.warnings == [
        f"{path}, line 27: kernel.net_ticktime has no effect in Harebell: Harebell has no "
        "counterpart of this application",
        f"{path}, line 22: rabbit.delegate_count has no effect in Harebell: it is about the Erlang "
        "runtime, and Harebell runs on Python",
    ]
    assert found.places["heartbeat"].shown == f"{path}, line 14: rabbit.heartbeat"


def test_it_takes_precedence_over_rabbitmq_conf(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text("heartbeat = 10\nframe_max = 8192\n")
    (tmp_path / "advanced.config").write_text("[{rabbit, [{heartbeat, 30}]}].\n")
    found = read_configuration({}, {}, tmp_path)
    assert (found.config.heartbeat, found.config.frame_max) == (30, 8192)
    assert [file.name for file in found.files] == ["rabbitmq.conf", "advanced.config"]


def test_variables_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "my.config").write_text("[{rabbit, [{heartbeat, 30}]}].\n")
    for variable in ("RABBITMQ_ADVANCED_CONFIG_FILE", "RABBITMQ_CONFIG_FILE"):
        for name in ("my", "my.config"):
            environ = {variable: str(tmp_path / name)}
            assert read_configuration({}, environ).config.heartbeat == 30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{rabbit, [{default_pass, {encrypted, <<"Zm9v">>}}]}].', "line 1: rabbit.default_pass"),
        (
            '[{rabbit, [{ssl_options,\n [{password, {encrypted, <<"Zm9v">>}}]}]}].',
            "line 1: rabbit.ssl_options is an encrypted value, which Harebell cannot decrypt",
        ),
        ('[{rabbit, [{heartbeat, <<"soon">>}]}].', "line 1: rabbit.heartbeat must be a whole"),
        ("[\n{rabbit, [}].", "line 2: this is not a list of Erlang terms: a } is not expected"),
        ("[{rabbit, 3}].", "is not a configuration: write a list of applications"),
        ("{rabbit, []}.", "is not a configuration"),
        ("[{rabbit, []}]", "a . is missing"),
        ("fun() -> ok end.", "'(' is not expected"),
        ("[" * 100, "nested more than"),
    ],
)
def test_a_mistake_names_the_file_the_line_and_the_setting(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "advanced.config"))
    assert said in str(caught.value)
    assert "Zm9v" not in str(caught.value)


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    for text in ("", "% nothing\n", "[].\n"):
        assert read(tmp_path, text).config == Config()


def test_a_value_of_another_form_is_a_warning(tmp_path: Path) -> None:
    found = read(tmp_path, "[{rabbit, [{heartbeat, {a, b, c}}, {unheard, 3}, plain]}].")
    assert [sentence.partition("advanced.config")[2] for sentence in found.warnings] == [
        ", line 1: rabbit.heartbeat has no effect in Harebell: its value has a form that is not "
        "read",
        ": a member of rabbit is no setting: it is ignored",
        ", line 1: rabbit.unheard is unknown and has no effect",
    ]


TERMS = st.recursive(
    st.one_of(
        st.integers(),
        st.sampled_from([0.5, -1.25, 1e10]),
        st.sampled_from([Atom("true"), Atom("a b"), Atom("x@y")]),
        st.text(st.characters(codec="utf-8", exclude_characters="\0")),
        st.binary().map(lambda data: data.hex().encode()),
    ),
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(Tuple)),
    max_leaves=20,
)


def written(term: Any) -> str:
    """A term as Erlang prints it."""
    if isinstance(term, Atom):
        return f"'{term}'"
    if isinstance(term, str):
        return '"' + term.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(term, bytes):
        return f'<<"{term.decode()}">>'
    if isinstance(term, Tuple):
        return "{" + ", ".join(written(each) for each in term) + "}"
    if isinstance(term, list):
        return "[" + ",\n".join(written(each) for each in term) + "]"
    return f"{term:f}" if isinstance(term, float) else str(term)


@given(TERMS)
def test_what_erlang_prints_is_read_as_it_was(term: Any) -> None:
    assert read_term(f"% c\n{written(term)}.\n") == term


@given(st.text("[]{}<>\"'.,:#%a1 \n\\|/"))
def test_any_text_is_read_or_refused(text: str) -> None:
    line = 1
    try:
        read_term(text)
    except TermError as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 1
