"""Limits of memory and disk, TLS, and what the broker has of its machine."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harebell_rabbitmq_compat.exits import DATA, VerbFailed, WrongArguments
from harebell_rabbitmq_compat.verb import ANY, CTL, DIAGNOSTICS, Call, Report, Result, verb
from harebell_rabbitmq_compat.verbs.health import certificates_of

_MASK = "********"
_SECRETS = ("PASS", "SECRET", "COOKIE", "TOKEN", "DEFAULT_USERS")
_FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


def _number(text: str) -> float:
    """Return a number.

    Raises:
        WrongArguments: it is none.
    """
    try:
        return float(text)
    except ValueError:
        raise WrongArguments("Bad argument.", DATA) from None


def _check_size(key: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        from harebell.config.settings import BY_NAME

        try:
            BY_NAME[key].read(text)
        except ValueError:
            raise WrongArguments("Bad argument.", DATA) from None

    return check


# --- limits ---------------------------------------------------------------------------------------


def _check_memory(call: Call) -> None:
    first, *rest = call.arguments
    if first == "absolute":
        if not rest:
            raise WrongArguments("not enough arguments.")
        _check_size("memory_high_watermark")(rest[0])
        return
    if rest:
        raise WrongArguments("too many arguments.")
    if not 0 <= _number(first) <= 1:
        raise WrongArguments(
            "Bad argument: The threshold should be a fraction between 0.0 and 1.0", DATA
        )


@verb(
    "<fraction> | absolute <value>",
    arguments=(1, 2),
    tools=CTL,
    check=_check_memory,
    banner=lambda call: (
        f"Setting memory threshold on {call.node.name} to {call.arguments[1]} bytes ..."
        if call.arguments[0] == "absolute"
        else f"Setting memory threshold on {call.node.name} to {call.arguments[0]} ..."
    ),
)
def set_vm_memory_high_watermark(call: Call) -> None:
    """Set the memory above which publishers wait, until a restart or a reload."""
    call.ask("config.set", key="memory_high_watermark", value=call.arguments[-1])


def _check_disk(call: Call) -> None:
    first, *rest = call.arguments
    if first == "mem_relative":
        if not rest:
            raise WrongArguments("not enough arguments.")
        if _number(rest[0]) < 0:
            raise WrongArguments("Bad argument.", DATA)
        return
    if rest:
        raise WrongArguments("too many arguments.")
    _check_size("disk_free_limit")(first)


@verb(
    "<disk_limit> | mem_relative <fraction>",
    arguments=(1, 2),
    tools=CTL,
    check=_check_disk,
    banner=lambda call: (
        f"Setting disk free limit on {call.node.name} to {call.arguments[1]} times the total RAM "
        "..."
        if call.arguments[0] == "mem_relative"
        else f"Setting disk free limit on {call.node.name} to {call.arguments[0]} bytes ..."
    ),
)
def set_disk_free_limit(call: Call) -> None:
    """Set the free disk space below which publishers wait, until a restart or a reload."""
    from harebell.config import machine_memory_bytes

    value = call.arguments[-1]
    if call.arguments[0] == "mem_relative":
        value = str(int(float(value) * machine_memory_bytes()))
    call.ask("config.set", key="disk_free_limit", value=value)


# --- TLS ------------------------------------------------------------------------------------------


@verb(tools=DIAGNOSTICS, state=ANY, banner="Listing all TLS versions supported by the runtime...")
def tls_versions(call: Call) -> Result:
    """Print the versions of TLS that the broker serves."""
    known = call.ask("config.effective")["tls_min_version"]
    versions = ["tlsv1.3", *(["tlsv1.2"] if known == "tlsv1.2" else [])]
    return Report("\n".join(versions), versions=versions)


def _check_format(call: Call) -> None:
    if call.flags.get("format", "openssl") != "openssl":
        raise WrongArguments("Bad argument: cipher suites are printed in the format openssl", DATA)


@verb(
    "[--format <openssl>] [--all]",
    tools=DIAGNOSTICS,
    state=ANY,
    check=_check_format,
    banner="Listing available cipher suites in OpenSSL format",
)
def cipher_suites(call: Call) -> Result:
    """Print the cipher suites that the broker offers; with --all those of its OpenSSL."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    chosen = call.ask("config.effective").get("tls_ciphers", "none")
    if call.flags.get("all"):
        context.set_ciphers("ALL")
    elif chosen != "none":
        context.set_ciphers(chosen)
    names = [str(each["name"]) for each in context.get_ciphers()]
    return Report("\n".join(names), cipher_suites=names)


@verb(tools=DIAGNOSTICS, banner="Certificates of node {node} ...")
def certificates(call: Call) -> Result:
    """Print until when the certificates of listeners are valid."""
    rows = certificates_of(call)
    text = "\n".join(
        f"Interface: {row['interface']}, port: {row['port']}, certificate expires on: "
        f"{row['certfile_expires_on']}"
        for row in rows
    )
    return Report(text or "#{}", certificates=rows)


# --- the process and its machine ------------------------------------------------------------------


def _of_process(call: Call, name: str) -> list[str]:
    """Return the parts of a file in /proc of the broker's process.

    Raises:
        VerbFailed: the process belongs to another user, or the system has no /proc.
    """
    path = Path("/proc", str(call.node.overview()["pid"]), name)
    try:
        octets = path.read_bytes()
    except OSError as error:
        raise VerbFailed(f"cannot read {path}: {error.strerror or error}") from None
    return [part.decode(errors="replace") for part in octets.split(b"\0") if part]


@verb(
    tools=DIAGNOSTICS,
    state=ANY,
    banner="Listing RabbitMQ-specific environment variables defined on node {node}...",
)
def os_env(call: Call) -> Result:
    """Print the variables that the process was started with, without secrets."""
    variables: dict[str, str] = {}
    for line in sorted(_of_process(call, "environ")):
        name, _, value = line.partition("=")
        if name.startswith(("RABBITMQ_", "HAREBELL_")):
            hidden = any(word in name.upper() for word in _SECRETS)
            variables[name] = _MASK if hidden and not name.endswith("_FILE") else value
    text = "\n".join(f"{name}={value}" for name, value in variables.items())
    return Report(text, node=call.node.name, result="ok", variables=variables)


@verb(tools=DIAGNOSTICS, state=ANY, banner="Command line arguments of node {node} ...")
def command_line_arguments(call: Call) -> Result:
    """Print the command that the process was started with."""
    words = _of_process(call, "cmdline")
    return Report(shlex.join(words), command_line_arguments=words, node=call.node.name)


@verb(
    tools=DIAGNOSTICS, state=ANY, banner="Asking node {node} to report its network interfaces ..."
)
def list_network_interfaces(call: Call) -> Result:
    """Print the interfaces of the machine with their addresses."""
    name = call.node.overview()["node"]
    addresses = {interface: _addresses(interface) for _, interface in socket.if_nameindex()}
    parts = [
        "\n".join([f"Interface {interface}", "", *(f"{key}: {text}" for key, text in rows), ""])
        for interface, rows in sorted(addresses.items())
    ]
    shown: dict[str, Any] = {}
    for interface, rows in addresses.items():
        members: dict[str, list[str]] = {}
        for key, text in rows:
            members.setdefault(key, []).append(text)
        shown[interface] = members
    message = f"Node {name} reported network interfaces"
    return Report("\n".join(parts), interfaces=shown, message=message, result="ok")


_SIOCGIFADDR = 0x8915
_SIOCGIFNETMASK = 0x891B
_ADDRESS_AT = slice(20, 24)


def _addresses(interface: str) -> list[tuple[str, str]]:
    """Return the addresses of an interface, as Linux has them."""
    import fcntl

    rows: list[tuple[str, str]] = []
    request = interface.encode()[:15].ljust(256, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        for key, number in (("addr", _SIOCGIFADDR), ("netmask", _SIOCGIFNETMASK)):
            try:
                answer = fcntl.ioctl(link.fileno(), number, request)
            except OSError:
                break  # it has no address of IPv4
            rows.append((key, socket.inet_ntoa(answer[_ADDRESS_AT])))
    try:
        known = Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines()
        hardware = Path(f"/sys/class/net/{interface}/address").read_text(encoding="ascii").strip()
    except OSError:
        return rows
    for line in known:
        digits, _, _, _, _, owner = line.split()
        if owner == interface:
            rows.append(("addr", socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))))
    return [*rows, ("hwaddr", hardware.upper())]


@verb(
    "<hostname> [--address-family <ipv4 | ipv6>] [--offline]",
    tools=DIAGNOSTICS,
    state=ANY,
    check=lambda call: _check_family(call),
    banner=lambda call: (
        f"Resolving hostname {call.arguments[0]} to {_family(call)} addresses..."
        if call.flags.get("offline")
        else f"Asking node {call.node.name} to resolve hostname {call.arguments[0]} to "
        f"{_family(call).replace('ip', 'IP')} addresses..."
    ),
)
def resolve_hostname(call: Call) -> Result:
    """Print the addresses of a host, as this machine resolves it."""
    host, family = call.arguments[0], _FAMILIES[_family(call)]
    try:
        infos = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
    except OSError:
        raise VerbFailed(
            "Hostname does not resolve (resolution failed with an nxdomain)", DATA
        ) from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in infos))
    return Report("\n".join(addresses), address_family=_family(call), addresses=addresses)


def _family(call: Call) -> str:
    return str(call.flags.get("address-family", "ipv4")).lower()


def _check_family(call: Call) -> None:
    if _family(call) not in _FAMILIES:
        raise WrongArguments(f"unsupported IP address family {_family(call)}", DATA)


@verb(
    "[--offline]",
    tools=DIAGNOSTICS,
    state=ANY,
    banner="Asking node {node} for its effective hostname resolver (inetrc) configuration...",
)
def resolver_info(call: Call) -> Result:
    """Print how hosts are resolved: as the C library of the system does."""
    call.node.overview()
    rows = {
        "Lookup order": "native",
        "Hosts file": "/etc/hosts",
        "Resolver conf file": "/etc/resolv.conf",
        "Cache size": "",
    }
    lines = [f"{key}: {value}" for key, value in rows.items()]
    text = "\n".join(
        [
            *("Runtime Hostname Resolver (inetrc) Settings", "", *lines, ""),
            *("inetrc File Host Entries", "", "(none)"),
        ]
    )
    return Report(text, lookup=["native"], hosts_file="/etc/hosts", result="ok")
