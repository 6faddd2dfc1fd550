"""Read the environment variables of RabbitMQ, such as `RABBITMQ_NODE_PORT`.

Variables of the same prefix that RabbitMQ's server does not know are left alone: programs that use
RabbitMQ have variables such as `RABBITMQ_URL`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harebell.config.advanced_config import ADVANCED_ENDING
from harebell.config.errors import ConfigError
from harebell.config.rabbitmq_conf import conf_files

CONFIG_FILE = "RABBITMQ_CONFIG_FILE"
CONFIG_FILES = "RABBITMQ_CONFIG_FILES"
ADVANCED_FILE = "RABBITMQ_ADVANCED_CONFIG_FILE"
VARIABLES = {
    "RABBITMQ_NODENAME": "node_name",
    "RABBITMQ_NODE_PORT": "port",
    "RABBITMQ_NODE_IP_ADDRESS": "host",
    "RABBITMQ_DEFAULT_USER": "default_user",
    "RABBITMQ_DEFAULT_PASS": "default_pass",
    "RABBITMQ_DEFAULT_PASS_FILE": "default_pass_file",
    "RABBITMQ_DEFAULT_VHOST": "default_vhost",
    "RABBITMQ_MNESIA_BASE": "data_dir",
    "RABBITMQ_MNESIA_DIR": "data_dir",
    "RABBITMQ_LOG_BASE": "log_dir",
    "RABBITMQ_LOGS": "log_file",
    "RABBITMQ_LOG": "log_level",
}
"""Variables with the keys of Harebell that they set; a later variable wins."""
WITHOUT_EFFECT = (
    *("RABBITMQ_CTL_ERL_ARGS", "RABBITMQ_DIST_PORT"),
    *("RABBITMQ_ENABLED_PLUGINS", "RABBITMQ_ENABLED_PLUGINS_FILE"),
    *("RABBITMQ_ERLANG_COOKIE", "RABBITMQ_FEATURE_FLAGS", "RABBITMQ_FEATURE_FLAGS_FILE"),
    *("RABBITMQ_IO_THREAD_POOL_SIZE", "RABBITMQ_KEEP_PID_FILE_ON_EXIT", "RABBITMQ_PID_FILE"),
    *("RABBITMQ_PLUGINS_DIR", "RABBITMQ_PLUGINS_EXPAND_DIR", "RABBITMQ_QUORUM_DIR"),
    *("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "RABBITMQ_SERVER_ERL_ARGS"),
    *("RABBITMQ_SERVER_START_ARGS", "RABBITMQ_STREAM_DIR", "RABBITMQ_USE_LONGNAME"),
    *("RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "RABBITMQ_GENERATED_CONFIG_DIR"),
)
"""Variables of RabbitMQ's server that have no effect in Harebell."""
SILENT = ("RABBITMQ_ENABLED_PLUGINS_FILE", "RABBITMQ_PID_FILE", "RABBITMQ_ERLANG_COOKIE")
"""Variables without an effect and without a warning: images and scripts always set them."""
_CONSOLE = "-"


def named_files(environ: Mapping[str, str]) -> list[Path]:
    """Return the files that variables name: rabbitmq.conf, others, and advanced.config.

    Raises:
        ConfigError: there is no such file.
    """
    paths = []
    if environ.get(CONFIG_FILE):
        path = Path(environ[CONFIG_FILE])
        # RabbitMQ adds the extension where it is left out.
        if path.suffix not in (".conf", ADVANCED_ENDING) and not path.is_file():
            older = path.with_name(path.name + ADVANCED_ENDING)
            newer = path.with_name(path.name + ".conf")
            path = older if older.is_file() and not newer.is_file() else newer
        paths.append(path)
    if environ.get(CONFIG_FILES):
        paths += _several(environ[CONFIG_FILES])
    if environ.get(ADVANCED_FILE):
        path = Path(environ[ADVANCED_FILE])
        if path.suffix != ADVANCED_ENDING and not path.is_file():
            path = path.with_name(path.name + ADVANCED_ENDING)
        paths.append(path)
    return paths


def _several(named: str) -> list[Path]:
    """Return the files of a directory, or those that fit a pattern such as /etc/x/*.conf."""
    path = Path(named)
    if path.is_dir():
        return sorted(path.glob("*.conf")) or conf_files(path)
    if "*" in path.name or "?" in path.name:
        return sorted(path.parent.glob(path.name))
    if path.is_file():
        return [path]
    raise ConfigError(f"{CONFIG_FILES} is {named}: there is no such directory or file")


def settings_of(environ: Mapping[str, str]) -> tuple[dict[str, tuple[str, Any]], list[str]]:
    """Return the settings that the variables give, and warnings about those without an effect.

    Returns:
        the variable and the value by the names of Harebell's settings, and sentences.
    """
    settings: dict[str, tuple[str, Any]] = {}
    for variable, name in VARIABLES.items():
        value = environ.get(variable, "")
        if value:
            settings[name] = (variable, value)
    _logs(settings)
    warnings = [
        f"the environment variable {variable} has no effect in Harebell"
        for variable in WITHOUT_EFFECT
        if environ.get(variable) and variable not in SILENT
    ]
    return settings, warnings


def _logs(settings: dict[str, tuple[str, Any]]) -> None:
    """Translate the values of RABBITMQ_LOGS and RABBITMQ_LOG, which have forms of their own."""
    if "log_file" in settings:
        variable, value = settings["log_file"]
        if value == _CONSOLE:
            settings["log_file"] = (variable, "none")
            settings["log_console"] = (variable, True)
    elif "log_dir" in settings:
        settings["log_file"] = (settings["log_dir"][0], "harebell.log")
    if "log_level" in settings:
        variable, value = settings.pop("log_level")
        levels = {}
        for word in value.split(","):
            category, equals, level = word.strip().partition("=")
            if equals:
                levels[category] = level
            elif not word.strip().startswith(("+", "-")):
                settings["log_level"] = (variable, category)
        if levels:
            settings["log_levels"] = (variable, levels)
