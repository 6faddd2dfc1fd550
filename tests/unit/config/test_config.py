"""Where a broker's configuration comes from, and what is said when some of it is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harebell.config import (
    Config,
    ConfigError,
    default_data_dir,
    load,
    machine_memory_bytes,
    memory_bytes,
    read_configuration,
)
from harebell.config.settings import BY_NAME, SETTINGS, switch


def write(directory: Path, text: str) -> Path:
    path = directory / "harebell.toml"
    path.write_text(text)
    return path


def refusal(**sources: Any) -> str:
    sources.setdefault("environ", {})
    with pytest.raises(ConfigError) as caught:
        load(**sources)
    return str(caught.value)


def test_without_any_source_the_defaults_hold() -> None:
    assert load(environ={}) == Config()
    assert Config().host == "127.0.0.1"
    assert Config().port == 5672


def test_flags_win_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, 'port = 1001\nheartbeat = 11\nlog_level = "error"\n')
    environ = {"HAREBELL_PORT": "1002", "HAREBELL_HEARTBEAT": "12"}
    config = load({"port": "1003", "host": None}, environ, file)
    assert (config.port, config.heartbeat, config.log_level) == (1003, 12, "error")
    assert config.host == "127.0.0.1"


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path, "port = 1004\n")
    assert load(environ={"HAREBELL_CONFIG": str(file)}).port == 1004


def test_every_setting_is_a_field_of_the_configuration_and_the_other_way_round() -> None:
    assert list(BY_NAME) == list(Config.__struct_fields__)


def test_every_default_is_accepted_by_its_own_reader() -> None:
    config = Config()
    for setting in SETTINGS:
        default = getattr(config, setting.name)
        if default is not None:
            assert setting.read(default) == default, setting.name


def test_a_password_has_no_flag_and_is_not_shown() -> None:
    assert BY_NAME["default_pass"].flag is None
    config = load(environ={"HAREBELL_DEFAULT_PASS": "sesame"})
    assert config.default_pass == "sesame"
    assert "sesame" not in repr(config)
    assert "sesame" not in refusal(environ={"HAREBELL_DEFAULT_PASS": "sesame" * 50})


@pytest.mark.parametrize(
    ("name", "wrong", "allowed"),
    [
        ("port", "amqp", "a whole number from 0 to 65535, or none, not 'amqp'"),
        ("port", "65536", "a whole number from 0 to 65535, or none, not '65536'"),
        ("port", "-1", "a whole number"),
        ("port", "1_000", "a whole number"),
        ("heartbeat", "1.5", "a whole number"),
        ("channel_max", "0", "a whole number from 1 to 65535"),
        ("frame_max", "4095", "a size from 4096 to"),
        ("frame_max", "4 parsecs", "a size from 4096 to"),
        ("handshake_timeout_seconds", "nan", "a number of seconds from 0.1 to 3600"),
        ("handshake_timeout_seconds", "soon", "a number of seconds from 0.1 to 3600"),
        ("consumer_timeout", "-1", "a whole number from 0 to 315360000000"),
        ("default_queue_type", "priority", "one of classic, quorum, stream"),
        ("memory_high_watermark", "1.5", "a share of the machine's memory"),
        ("memory_high_watermark", "-1", "a share of the machine's memory"),
        ("memory_high_watermark", "200%", "a share of the machine's memory"),
        ("log_level", "verbose", "one of debug, info, warning, error"),
        ("loop", "gevent", "one of auto, uvloop, asyncio"),
        ("host", "local host", "a host name or an IP address"),
        ("host", "", "a host name or an IP address"),
        ("default_user", "", "text of 1 to 255 bytes"),
        ("data_dir", " ", "the path of a directory"),
        ("data_dir", "/tmp/" + "long" * 100, "a path that can be used (File name too long)"),
        ("data_dir", "~no-such-user/data", "a path that can be used (there is no such home)"),
        ("tls_cert", "/tmp/" + "long" * 100, "a path that can be used (File name too long)"),
        ("tls_cert", "no/such/file.pem", "there is no file"),
    ],
)
def test_a_wrong_value_is_refused_with_its_source_and_what_is_allowed(
    name: str, wrong: str, allowed: str
) -> None:
    from_flag = refusal(flags={name: wrong})
    assert from_flag.startswith(f"{BY_NAME[name].flag} must be ")
    assert allowed in from_flag
    from_environment = refusal(environ={BY_NAME[name].variable: wrong})
    assert from_environment.startswith(f"the environment variable {BY_NAME[name].variable} must ")
    assert allowed in from_environment


@pytest.mark.parametrize("value", ["true", "[5672]", "5672.0", "{ a = 1 }", "1979-05-27"])
def test_a_wrong_type_in_the_file_is_refused_with_file_and_line(tmp_path: Path, value: str) -> None:
    file = write(tmp_path, f'host = "127.0.0.1"\n\nport = {value}\n')
    text = refusal(config_file=file)
    assert text.startswith(
        f"{file}, line 3: port must be a whole number from 0 to 65535, or none, not "
    )


@pytest.mark.parametrize("name", list(BY_NAME))
@pytest.mark.parametrize("value", ["true", "[]", "{}", "1979-05-27", "nan"])
def test_no_type_in_the_file_is_more_than_a_sentence(tmp_path: Path, name: str, value: str) -> None:
    if BY_NAME[name].read is switch and value == "true":
        value = "1"
    empty = {"[]": (), "{}": {}}.get(value)
    if empty is not None and isinstance(getattr(Config(), name), type(empty)):
        config = load(environ={}, config_file=write(tmp_path, f"{name} = {value}\n"))
        assert getattr(config, name) == empty
        return
    text = refusal(config_file=write(tmp_path, f"{name} = {value}\n"))
    assert f"line 1: {name} must be " in text


def test_an_unknown_key_in_the_file_names_the_nearest_one(tmp_path: Path) -> None:
    file = write(tmp_path, "heartbeat = 5\nhandshake_timeout = 3\n")
    assert refusal(config_file=file) == (
        f"{file}, line 2: the key handshake_timeout is unknown: "
        "did you mean handshake_timeout_seconds?"
    )


def test_an_unknown_table_in_the_file_is_a_short_error_when_no_key_is_near(tmp_path: Path) -> None:
    text = refusal(config_file=write(tmp_path, "\n[warehouses]\nnodes = 3\n"))
    assert "line 2: the key warehouses is unknown: it is none of the" in text
    assert len(text) < 300


def test_an_unknown_variable_names_the_nearest_one() -> None:
    assert refusal(environ={"HAREBELL_PROT": "1"}) == (
        "the environment variable HAREBELL_PROT is unknown: did you mean HAREBELL_PORT?"
    )


def test_variables_of_other_programs_and_purposes_are_left_alone() -> None:
    environ = {
        "PORT": "no",
        "HAREBELL_IMPL": "python",
        "HAREBELL_URL": "amqp://localhost",
        "HAREBELL_SERVICE_HOST": "10.0.0.1",
        "HAREBELL_SERVICE_PORT_AMQP": "5672",
        "HAREBELL_PORT_5672_TCP_ADDR": "10.0.0.1",
        "HAREBELL_TEST_SEED": "1",
    }
    assert load(environ=environ) == Config()


def test_the_port_that_kubernetes_sets_is_explained() -> None:
    text = refusal(environ={"HAREBELL_PORT": "tcp://10.0.0.1:5672"})
    assert "Kubernetes" in text
    assert "enableServiceLinks" in text


@pytest.mark.parametrize(
    ("text", "line"),
    [("port = 1\nhost = \n", 2), ("port = 1\nport = 2\n", 2), ('a = "', 1), ("[a\n", 1)],
)
def test_invalid_toml_is_refused_with_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    file = write(tmp_path, text)
    assert refusal(config_file=file).startswith(f"{file}, line {line}: not valid TOML: ")


def test_a_file_that_is_not_text_or_not_there_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"port = \xff\n")
    assert refusal(config_file=binary) == f"{binary} is not a TOML file: byte 7 is not UTF-8"
    missing = tmp_path / "missing.toml"
    assert refusal(config_file=missing) == (
        f"cannot read the configuration file {missing}: No such file or directory"
    )
    assert str(tmp_path) in refusal(config_file=tmp_path)


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        ("4096", 4096),
        ("64KiB", 65_536),
        ("64 kib", 65_536),
        ("1MB", 1_000_000),
        ("1.5MiB", 1572864),
    ],
)
def test_sizes_may_have_units(text: str, octets: int) -> None:
    assert load({"frame_max": text}, {}).frame_max == octets


@pytest.mark.parametrize(
    ("written", "octets"),
    [
        *(("0.5", 500), ("50%", 500), (0.5, 500), ("1", 1000), (1, 1000)),
        *(("64KiB", 65_536), (123, 123), ("0", 0), (0, 0), (0.0, 0)),
        *(("0.0000001", 0), ("1e-2", 10)),
    ],
)
def test_the_watermark_is_a_share_or_a_size(written: str | float, octets: int) -> None:
    config = load({"memory_high_watermark": written}, {})
    assert memory_bytes(config.memory_high_watermark, machine_bytes=1000) == octets


def test_a_container_limits_the_memory_that_is_shared(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    machine = machine_memory_bytes(str(tmp_path / "missing"))
    assert machine == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit.write_text("max\n")
    assert machine_memory_bytes(str(limit)) == machine
    limit.write_text("1048576\n")
    assert machine_memory_bytes(str(limit)) == 1_048_576


def test_the_data_directory_follows_the_xdg_rules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert default_data_dir() == tmp_path / ".local" / "share" / "harebell"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/invalid")
    assert default_data_dir() == tmp_path / ".local" / "share" / "harebell"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert Config().data_dir == tmp_path / "xdg" / "harebell"


def test_a_data_directory_is_made_absolute_and_may_not_be_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load({"data_dir": "here"}, {}).data_dir == tmp_path / "here"
    (tmp_path / "file").touch()
    assert "must be a directory" in refusal(flags={"data_dir": str(tmp_path / "file")})


def test_tls_wants_its_port_its_certificate_and_its_key(tmp_path: Path) -> None:
    pem = tmp_path / "some.pem"
    pem.touch()
    both = {"tls_cert": str(pem), "tls_key": str(pem)}
    assert refusal(flags=both) == "tls_cert is set but tls_port is not: set tls_port to serve TLS"
    assert "tls_cert is not" in refusal(flags={"tls_port": "5671"})
    assert "tls_key is not" in refusal(flags={"tls_port": "5671", "tls_cert": str(pem)})
    assert "both 5672" in refusal(flags={"tls_port": "5672", **both})
    assert load({"tls_port": "0", "port": "0", **both}, {}).tls_cert == str(pem)
    required = {"tls_port": "0", "tls_fail_if_no_peer_cert": "true", **both}
    assert "set tls_ca" in refusal(flags=required)
    unchecked = {"tls_ca": str(pem), "tls_verify": "verify_none"}
    assert "tls_verify to verify_peer" in refusal(flags={**required, **unchecked})
    assert "must be a list of ciphers" in refusal(flags={"tls_ciphers": "NONSENSE"})


def test_a_broker_listens_somewhere() -> None:
    text = "port is none, and neither tls_port nor listen is set: set one of them"
    assert refusal(flags={"port": "none"}) == text
    assert load({"port": "off", "listen": "amqp://127.0.0.1:1"}, {}).port is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "0.0.0.0", "fe80::1%eth0"])
def test_hosts_are_names_or_addresses(host: str) -> None:
    assert load({"host": host}, {}).host == host


def test_the_brackets_of_an_ipv6_address_may_stay() -> None:
    assert load({"host": "[::1]"}, {}).host == "::1"


@pytest.mark.parametrize(
    "text",
    [
        'compat.product = "Other"\nlog.level = "error"\n',
        '[compat]\nproduct = "Other"\n[log]\nlevel = "error"\n',
        'compat_product = "Other"\nlog_level = "error"\n',
    ],
)
def test_a_key_may_be_written_with_dots_or_in_tables(tmp_path: Path, text: str) -> None:
    config = load(environ={}, config_file=write(tmp_path, text))
    assert (config.compat_product, config.log_level) == ("Other", "error")


def test_an_interceptor_has_the_name_that_rabbitmq_gives_it(tmp_path: Path) -> None:
    key = "message_interceptors.incoming.set_header_timestamp.overwrite"
    config = load(environ={}, config_file=write(tmp_path, f"{key} = false\n"))
    assert config.message_interceptors_incoming_set_header_timestamp_overwrite is False
    assert config.message_interceptors_incoming_set_header_routing_node_overwrite is None
    key = "message_interceptors.outgoing.timestamp.enabled"
    config = load(environ={}, config_file=write(tmp_path, f"{key} = true\n"))
    assert config.message_interceptors_outgoing_timestamp_enabled


def test_an_unknown_key_in_a_table_is_named_with_the_table(tmp_path: Path) -> None:
    text = refusal(config_file=write(tmp_path, '\n[compat]\nversoin = "3.13.7"\n'))
    assert "line 2: the key compat.versoin is unknown" in text


def test_the_largest_message_has_the_name_that_rabbitmq_gives_it_as_well(tmp_path: Path) -> None:
    file = write(tmp_path, "max_message_size = 1000\n")
    assert load(environ={}, config_file=file).message_max_bytes == 1000
    assert load(environ={"HAREBELL_MAX_MESSAGE_SIZE": "2000"}).message_max_bytes == 2000


@pytest.mark.parametrize("wrong", ["3", "three", "3.13.7-rc1", ""])
def test_a_version_that_clients_could_not_take_apart_is_refused(wrong: str) -> None:
    text = refusal(environ={"HAREBELL_COMPAT_VERSION": wrong})
    assert "must be a version such as 3.13.7" in text


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "harebell.toml"
    path.write_text('heartbeat = "soon"\nunheard = 3\nport = 70000\nlog_level = "info"\n')
    with pytest.raises(ConfigError) as caught:
        read_configuration({"frame_max": "x", "host": None}, {"HAREBELL_CHANNEL_MAX": "many"}, path)
    lines = str(caught.value).split("\n  ")
    assert lines[0] == "5 problems:"
    for line, said in zip(
        lines[1:],
        (
            "heartbeat must be",
            "unheard is unknown",
            "port must be",
            "CHANNEL_MAX must",
            "frame-max",
        ),
        strict=True,
    ):
        assert said in line


def test_all_lines_of_rabbitmqs_files_that_are_wrong_are_said(tmp_path: Path) -> None:
    path = tmp_path / "rabbitmq.conf"
    path.write_text(
        "heartbeat = soon\nthis is no setting\nlog.console = maybe\n"
        "listeners.tcp.default = x\nauth_backends.1 = unheard\nvhost_max = 3\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_configuration({}, {}, path)
    for number in (1, 2, 3, 4, 5):
        assert str(caught.value).count(f"line {number}: ") == 1, number


@pytest.mark.parametrize(
    "source",
    [
        "--config",
        "HAREBELL_CONFIG",
        "RABBITMQ_CONFIG_FILE",
        "RABBITMQ_CONFIG_FILES",
        "RABBITMQ_ADVANCED_CONFIG_FILE",
        "RABBITMQ_CONF_ENV_FILE",
        "CREDENTIALS_DIRECTORY",
    ],
)
def test_a_path_that_the_system_does_not_look_at_is_refused_by_name(source: str) -> None:
    # As one in a directory that this user may not search; root, who runs tests, may search all.
    path = "/etc/" + "x" * 300
    text = refusal(config_file=path) if source == "--config" else refusal(environ={source: path})
    assert text.startswith("cannot read "), text
    assert path in text
    assert text.endswith("File name too long")


def test_ports_and_certificates_that_do_not_fit_are_all_said() -> None:
    flags = {"port": "none", "tls_ca": __file__, "tls_fail_if_no_peer_cert": "true"}
    with pytest.raises(ConfigError) as caught:
        read_configuration({**flags, "tls_verify": "verify_none"}, {}, "none")
    assert len(caught.value.problems) == 3
