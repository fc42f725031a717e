"""Where the page is served, under which address browsers know it, and how they log in."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final
from urllib.parse import urlsplit

from evaluand.core.errors import SpecError
from evaluand.core.files.regular import read_regular_file
from evaluand.report.page.access import Access

LOOPBACK: Final = "127.0.0.1"
_HEADER: Final = "header:"
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_TOKEN: Final = re.compile(r"[!-~]{16,512}")
_MOST_BYTES: Final = 4096
_PORTS: Final = {"http": 80, "https": 443}
_OF_BROWSERS: Final = (
    *("accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-length"),
    *("content-type", "cookie", "dnt", "host", "origin", "pragma", "priority", "range", "referer", "upgrade"),
    *("upgrade-insecure-requests", "user-agent", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"),
)
"""Headers that say nothing about who asks: browsers send them, and proxies, for everybody."""


@dataclass(frozen=True)
class Login:
    """How browsers log in: by a token, or at a proxy that names the user in a header."""

    token: str | None = None
    header: str | None = None


@dataclass(frozen=True)
class Address:
    """Where a server listens, and what its visitors type.

    Attributes:
        host: an IP address of this machine.
        port: 0 for a free one.
        url: scheme, host and port that browsers see, without a path; None if they see `host` and the port.
        login: None if only the printed link opens the page.
    """

    host: str = LOOPBACK
    port: int = 0
    url: str | None = None
    login: Login | None = None

    def find_origins(self, port: int) -> list[str]:
        """What browsers may call this server, once its port is known; the first is for links."""
        if self.url is not None:
            return [self.url]
        shown = f"[{self.host}]" if ":" in self.host else self.host
        names = [shown, "localhost"] if is_loopback(self.host) else [shown]
        return [f"http://{name}{'' if port == _PORTS['http'] else f':{port}'}" for name in names]

    @property
    def is_overheard(self) -> bool:
        """Whether what browsers send and read crosses a network as plain text."""
        host = self.host if self.url is None else urlsplit(self.url).hostname or ""
        is_local = host == "localhost" or (_is_ip(host) and is_loopback(host))
        return not is_local and not (self.url or "").startswith("https:")

    def make_access(self, port: int) -> Access:
        """Who is let in, once the port is known."""
        origins, login = self.find_origins(port), self.login or Login()
        hosts = [urlsplit(origin).netloc for origin in origins]
        return Access(hosts, origins, login.token, login.header)


def choose_address(host: str, port: int, url: str | None, auth: str | None) -> Address:
    """The address that options ask for.

    Raises:
        SpecError: one of them cannot be, or the page would be open to a network.
    """
    host = _check_host(host)
    login = None if auth is None else read_login(auth)
    if login is None and not is_loopback(host):
        raise SpecError(
            f"--host {host} lets other machines in; say who may read the page: --auth FILE with a token, "
            "or --auth header:NAME for a proxy that logs people in"
        )
    if url is None and ipaddress.ip_address(host).is_unspecified:
        raise SpecError(f"--host {host} is every address of this machine; say which one browsers use: --url URL")
    return Address(host, port, None if url is None else check_url(url), login)


def _is_ip(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether an IP address is reached from this machine alone."""
    return ipaddress.ip_address(host).is_loopback


def _check_host(host: str) -> str:
    if host == "localhost":
        return LOOPBACK
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise SpecError(
            f"--host {host!r} is not an IP address of this machine, such as 0.0.0.0; the name goes into --url"
        ) from None


def check_url(text: str) -> str:
    """Scheme, host and port of an address, as browsers write them.

    Raises:
        SpecError: it is none, or has more parts.

    Example:
        >>> check_url("HTTPS://Eval.Example.org:443/")
        'https://eval.example.org'
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        host = host.encode("idna").decode() if not host.isascii() else host
    except ValueError:
        host, port = "", None
    is_plain = re.fullmatch(r"[a-z0-9.-]+|[0-9a-f:.]+", host) and not host.endswith(".")
    if not is_plain or parts.scheme not in _PORTS or parts.username is not None or parts.password is not None:
        raise SpecError(f"--url {text!r} is not an address such as https://eval.example.org")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise SpecError(
            f"--url {text!r} has a path; give only the scheme and the host, such as https://eval.example.org"
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{'' if port in (None, _PORTS[parts.scheme]) else f':{port}'}"


def read_login(auth: str) -> Login:
    """How browsers log in, by `--auth FILE` or `--auth header:NAME`.

    Raises:
        SpecError: others can read the file, or what it holds is no token; or the header says nothing of who asks.
    """
    if not auth.startswith(_HEADER):
        return Login(token=_read_token(Path(auth)))
    name = auth.removeprefix(_HEADER)
    if not _HEADER_NAME.fullmatch(name):
        raise SpecError(f"--auth {auth!r} names no header; write --auth header:X-Forwarded-User")
    if name.lower() in _OF_BROWSERS or name.lower().startswith("sec-"):
        raise SpecError(f"--auth {auth}: anybody sends {name}; name a header that only the proxy sets for a user")
    return Login(header=name)


def _read_token(path: Path) -> str:
    make = f"make one with `umask 077; openssl rand -hex 32 > {quote(str(path))}`"
    try:
        state = path.stat()
        content = read_regular_file(path, _MOST_BYTES, follow_link=True)
    except FileNotFoundError:
        raise SpecError(f"{path}: there is no such file; {make}") from None
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}; give --auth a file with a token") from None
    if hasattr(os, "getuid"):
        if state.st_uid not in (os.getuid(), 0):
            raise SpecError(f"{path}: is a file of somebody else; {make}")
        if stat.S_IMODE(state.st_mode) & 0o077:
            raise SpecError(f"{path}: others can read the token; `chmod 600 {quote(str(path))}` and choose a new one")
    token = content.decode("ascii", "replace").strip()
    if not _TOKEN.fullmatch(token):
        raise SpecError(f"{path}: a token is one line of 16 to 512 ASCII characters without blanks; {make}")
    return token
