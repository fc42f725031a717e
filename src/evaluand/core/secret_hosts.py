"""Which environment variables may be sent to which hosts, as the user of this machine decides.

An experiment file or a stored definition can name any variable and any host, as in
`headers: {X: "${AWS_SECRET_ACCESS_KEY}"}`. So a variable that such a file names is sent only to hosts that one of these
allows, none of which comes with a file:

    the table below            well-known keys, each for the host of its issuer
    secrets.yaml               in the user's settings (`evaluand.core.user`): NAME: [host, …]
    $EVALUAND_SECRETS          for jobs without such settings: NAME=host,NAME=host

A host is a name with an optional port, `models.example:8443`, and means https. `http://models.example` allows that host
without encryption. A loopback host must be allowed too, since any user of a machine can serve one of its ports; without
a port it means all ports, over http and https.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from evaluand.core.errors import SpecError
from evaluand.core.files.regular import read_regular_file
from evaluand.core.user import config_folder, write_private

VARIABLE: Final = "EVALUAND_SECRETS"
_MOST_BYTES: Final = 1 << 20
_PORTS: Final = {"https": 443, "http": 80}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")

WELL_KNOWN: Final[Mapping[str, str]] = {
    "ANTHROPIC_API_KEY": "api.anthropic.com",  # platform.claude.com/docs/en/api/overview
    "COHERE_API_KEY": "api.cohere.ai",  # docs.cohere.com/docs/compatibility-api
    "DEEPSEEK_API_KEY": "api.deepseek.com",  # api-docs.deepseek.com
    "GEMINI_API_KEY": "generativelanguage.googleapis.com",  # ai.google.dev/gemini-api/docs/openai
    "GROQ_API_KEY": "api.groq.com",  # console.groq.com/docs/openai
    "HF_TOKEN": "router.huggingface.co",  # huggingface.co/docs/inference-providers
    "MISTRAL_API_KEY": "api.mistral.ai",  # docs.mistral.ai/api
    "OPENAI_API_KEY": "api.openai.com",  # platform.openai.com/docs/api-reference/authentication
    "OPENROUTER_API_KEY": "openrouter.ai",  # openrouter.ai/docs/api-reference/authentication
    "TOGETHER_API_KEY": "api.together.xyz",  # docs.together.ai/docs/openai-api-compatibility
    "XAI_API_KEY": "api.x.ai",  # docs.x.ai/docs/api-reference
}
"""Variable → the only host of its issuer."""


@dataclass(frozen=True)
class Host:
    """A host that may receive a variable.

    Attributes:
        name: in lower case and ASCII, without a dot at its end; an IPv6 address without brackets.
        port: None is the scheme's own port, or any port of a loopback host.
        scheme: None is https, or either one of a loopback host.

    Example:
        >>> Host.parse("models.example").includes("https://models.example/v1")
        True
        >>> Host.parse("models.example").includes("http://models.example/v1")
        False
    """

    name: str
    port: int | None = None
    scheme: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `host`, `host:port` or `scheme://host:port`.

        Raises:
            SpecError: the text is no host.
        """
        scheme, mark, rest = text.strip().rpartition("://")
        rest = rest.removesuffix("/") if mark else rest
        if _is_ipv6(rest):
            rest = f"[{rest}]"
        try:
            parts = urlsplit(f"//{rest}")
            name, port = _encode_name(parts.hostname or ""), parts.port
        except ValueError:
            name, port, parts = "", None, urlsplit("")
        if (mark and scheme not in _PORTS) or parts.netloc != rest or "@" in rest or not _is_host(name):
            raise SpecError(f"{text!r} is no host; write its name alone, such as api.openai.com or 127.0.0.1:8080")
        return cls(name, port, scheme or None)

    def includes(self, url: str) -> bool:
        """Whether a URL leads to this host."""
        scheme, name, port = address_of(url)
        if name != self.name:
            return False
        if is_loopback(name):
            return self.scheme in (None, scheme) and self.port in (None, port)
        allowed = self.scheme or "https"
        return scheme == allowed and port == (self.port or _PORTS[allowed])

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name and (self.port or self.scheme) else self.name
        return f"{f'{self.scheme}://' if self.scheme else ''}{name}{f':{self.port}' if self.port else ''}"


class Permission(NamedTuple):
    """A host that may receive a variable, and where that is written: `built in`, `settings` or `environment`."""

    name: str
    host: Host
    source: str


def permissions() -> list[Permission]:
    """All permissions of this user, by variable.

    Raises:
        SpecError: the settings or the environment variable are invalid.
    """
    found = [Permission(name, Host(host), "built in") for name, host in WELL_KNOWN.items()]
    found += [Permission(name, host, "settings") for name, hosts in read_settings().items() for host in hosts]
    found += [Permission(name, host, "environment") for name, host in _environment()]
    return sorted(found, key=lambda one: one.name)


def refusal(name: str, url: str, allowed: list[Permission]) -> str | None:
    """Why a variable that a file names is not sent to a URL, in one sentence; None if it may be sent.

    Args:
        allowed: a result of `permissions`.
    """
    if any(one.name == name and one.host.includes(url) for one in allowed):
        return None
    scheme, host, port = address_of(url)
    usual = is_loopback(host) or _PORTS.get(scheme) == port
    where = Host(host, None if usual and not is_loopback(host) else port, "http" if is_exposed(url) else None)
    command = f"evaluand secrets allow {name} {quote(str(where))}"
    if is_exposed(url):
        return f"{name} is not sent to {where} without encryption; use https, or accept that with: {command}"
    return f"{name} is not sent to {where}, which you have not allowed; if you trust this host: {command}"


def is_exposed(url: str) -> bool:
    """Whether others can read what is sent: over http, and not to this machine."""
    scheme, host, _ = address_of(url)
    return scheme == "http" and not is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether only this machine has a host, however its address is written.

    Example:
        >>> [is_loopback(host) for host in ("localhost", "a.localhost", "127.1", "::ffff:127.0.0.1", "0.0.0.0")]
        [True, True, True, True, False]
    """
    address = _address(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


def reaches_this_machine(host: str) -> bool:
    """Whether who asks a host asks this machine: at `0.0.0.0` it answers, too."""
    address = _address(host)
    return is_loopback(host) or (address is not None and address.is_unspecified)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is, also in the short forms `127.1` and `2130706433`; None for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    return getattr(address, "ipv4_mapped", None) or address


def address_of(url: str) -> tuple[str, str, int | None]:
    """The scheme, the host as a client encodes it, and the port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, _encode_name(parts.hostname or ""), parts.port or _PORTS.get(parts.scheme)


def _encode_name(name: str) -> str:
    """A host's name in ASCII, as in `xn--mnchen-3ya.example`, without the dot that ends an absolute name."""
    try:
        name = name if name.isascii() else _encode_idna(name)
    except UnicodeError:  # no host has this name
        return name
    absolute = name.removesuffix(".")
    return name if re.fullmatch(r"[0-9.]+", absolute) else absolute  # an address has no dot at its end


def _encode_idna(name: str) -> str:
    try:
        import idna  # which comes with the HTTP client, and is newer than the codec of Python
    except ImportError:
        return name.encode("idna").decode()
    return idna.encode(name).decode()


def settings_file() -> Path:
    """The file with the permissions of this user."""
    return config_folder() / "secrets.yaml"


def read_settings() -> dict[str, list[Host]]:
    """The hosts of each variable in the user's settings.

    Raises:
        SpecError: the file is invalid, or cannot be read.
    """
    path = settings_file()
    try:
        text = read_regular_file(path, _MOST_BYTES, follow_link=True).decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SpecError(f"{path}: cannot be read: {reason}") from None
    import yaml

    from evaluand.core.files.bounded_yaml import BoundedLoader

    try:
        document = yaml.compose(text, Loader=BoundedLoader)  # makes no values, of which some have other faults
    except (yaml.YAMLError, RecursionError):
        raise SpecError(f"{path}: not YAML; write NAME: [host]") from None
    if document is None:
        return {}
    if not isinstance(document, yaml.MappingNode):
        raise SpecError(f"{path}: must be a mapping; write NAME: [host]")
    allowed: dict[str, list[Host]] = {}
    for key, entries in document.value:
        name = check_name(_text_of(key), path)
        if name in allowed:
            raise SpecError(f"{path}: {name} occurs twice; write all of its hosts in one list")
        allowed[name] = _read_hosts(name, entries, path)
    return allowed


def write_settings(hosts: Mapping[str, list[Host]]) -> None:
    """Replaces the permissions in the user's settings.

    Raises:
        SpecError: the file cannot be written.
    """
    path = settings_file()
    lines = [f"{name}: {[str(host) for host in each]}\n" for name, each in sorted(hosts.items()) if each]
    try:
        os.replace(write_private(path, "".join(lines).encode()), path)
    except OSError as error:
        raise SpecError(f"{path}: cannot be written: {error.strerror}") from None


def check_name(name: Any, where: object = "") -> str:
    """The name of an environment variable.

    Raises:
        SpecError: it is none. The message does not show it, since it may be the secret itself.
    """
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    place = f"{where}: " if where else ""
    raise SpecError(f"{place}NAME must be the name of an environment variable, such as OPENAI_API_KEY, not its value")


class FileText(str):
    """A text that a file wrote and not the user's own code; it remains one when its owner is copied with changes."""

    __slots__ = ()


@contextmanager
def reading_file() -> Iterator[None]:
    """What is created in the block is defined by a file; see `mark_origin`."""
    token = _reading_file.set(True)
    try:
        yield
    finally:
        _reading_file.reset(token)


def mark_origin(text: str) -> str:
    """The text, as a `FileText` if a file is being read.

    Example:
        >>> with reading_file():
        ...     url = mark_origin("https://models.example")
        >>> is_of_file(url), is_of_file("https://models.example")
        (True, False)
    """
    return FileText(text) if _reading_file.get() and isinstance(text, str) else text


def is_of_file(*texts: object) -> bool:
    """Whether any of the texts was written by a file."""
    return any(isinstance(text, FileText) for text in texts)


def _environment() -> Iterator[tuple[str, Host]]:
    for entry in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        name, mark, host = entry.partition("=")
        if not mark:
            raise SpecError(f"{VARIABLE}: write NAME=host, several of them with commas between")
        try:
            yield check_name(name.strip()), Host.parse(host)
        except SpecError as error:
            raise SpecError(f"{VARIABLE}: {error}") from None


def _read_hosts(name: str, entries: Any, path: Path) -> list[Host]:
    """The hosts in a node of YAML."""
    nodes = entries.value if (entries.id, entries.tag) == ("sequence", f"{_YAML}seq") else [entries]
    texts = [text for text in map(_text_of, nodes) if text is not None]
    if len(texts) < len(nodes):
        raise SpecError(f"{path}: {name}: write a list of hosts, such as [api.openai.com]")
    try:
        return [Host.parse(text) for text in texts]
    except SpecError as error:
        raise SpecError(f"{path}: {name}: {error}") from None


def _text_of(node: Any) -> str | None:
    """The text of a node of YAML; None of a number, a date, a list and so on."""
    return str(node.value) if (node.id, node.tag) == ("scalar", f"{_YAML}str") else None


_YAML: Final = "tag:yaml.org,2002:"


def _is_host(name: str) -> bool:
    return _HOST.fullmatch(name) is not None or _is_ipv6(name)


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


_reading_file: ContextVar[bool] = ContextVar("_reading_file", default=False)
