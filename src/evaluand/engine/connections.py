"""Connections to HTTP services: pooled, through the proxy of the environment, with the certificates of the system.

aiohttp carries the protocol ([why](docs/design/0019-http-client.md)). Three things it does not do:

    an idle connection   is used again only if nothing has arrived on it since its last answer: neither its end, which
                         would lose the request, nor data, which would be taken for the answer to the next request
    the proxy            is that of the environment, without the credentials in `.netrc`
    the certificates     are those of the system on macOS and Windows too, where OpenSSL knows none
"""

import os
import select
import ssl
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import ContentEncodingError
from multidict import CIMultiDict
from yarl import URL

from evaluand._version import __version__
from evaluand.core.errors import SpecError
from evaluand.core.secret_hosts import reaches_this_machine
from evaluand.engine.rate_limit import sent

_IDLE: Final = 4.0  # seconds; many servers close a connection after five, among them uvicorn and Node
_LONGEST_FIELD: Final = 1 << 16  # bytes of a header
_LONGEST_REASON: Final = 300  # characters
_OTHER_FILES: Final = 100  # that a process has open, besides connections

_BUNDLES: Final = (  # certificates of distributions other than that for which Python was built
    "/etc/ssl/cert.pem",  # Alpine, Arch, Fedora, RHEL 9
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora 44, RHEL 11
    "/etc/pki/tls/cert.pem",  # earlier ones of these
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu
    "/etc/ssl/ca-bundle.pem",  # SUSE
)

_used: WeakSet[Any] = WeakSet()  # the transports of connections that have carried a request


class NoConnection(Exception):
    """No connection could be opened."""


class ConnectionLost(Exception):
    """The connection ended, or carried something else than HTTP, before the answer was complete."""


class BadEncoding(Exception):
    """The answer cannot be unpacked."""


def open_session(url: URL, headers: Mapping[str, str]) -> aiohttp.ClientSession:
    """A session for requests to one service, in the running loop.

    It has no cookies, since no answer may depend on an earlier one, and no time limits, which policies set.

    Raises:
        SpecError: as of `proxy_of`.
    """
    all_headers = CIMultiDict({"Accept": "application/json", "User-Agent": f"evaluand/{__version__}"})
    all_headers.update(headers)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            ssl=_trust() if url.scheme == "https" else True,
            limit=_most_connections(),
            keepalive_timeout=_IDLE,
        ),
        headers=all_headers,
        request_class=_Request,
        cookie_jar=_NoCookies(),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        proxy=proxy_of(url),
        max_line_size=_LONGEST_FIELD,
        max_field_size=_LONGEST_FIELD,
    )


def proxy_of(url: URL) -> str | None:
    """The proxy that `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the system, name for a URL.

    None for this machine itself: elsewhere `127.0.0.1` is another one, which must not see what is sent.

    Raises:
        SpecError: it is a proxy of another protocol than HTTP.
    """
    if reaches_this_machine(url.raw_host or ""):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.raw_host or ""):
        return None
    scheme, mark, _ = proxy.partition("://")
    if not mark:
        return f"http://{proxy}"
    if scheme not in ("http", "https"):  # the rest may hold a password
        name = url.scheme if proxies.get(url.scheme) else "all"
        message = f"the proxy in {name.upper()}_PROXY has the scheme {scheme}; give one with http, or add "
        raise SpecError(f"{message}{url.raw_host} to NO_PROXY")
    return proxy


@asynccontextmanager
async def answer_to(
    session: aiohttp.ClientSession, method: str, url: URL, content: bytes, content_type: str
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Sends a request and gives its answer, of which the body is still to be read; redirects are not followed.

    Raises:
        NoConnection: with the reason, like the others.
        ConnectionLost: also while the block reads the body.
        BadEncoding: so.
    """
    headers = {"Content-Type": content_type, "Content-Length": str(len(content))}
    while True:
        try:
            body = aiohttp.AsyncIterablePayload(_body(content))
            async with session.request(method, url, data=body, headers=headers, allow_redirects=False) as answer:
                yield answer
            return
        except _StaleConnection:
            continue  # with the next connection
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
            raise NoConnection(_reason(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            encoding = _encoding_fault(error)
            raise (BadEncoding(encoding) if encoding else ConnectionLost(_reason(error))) from None


async def _body(content: bytes) -> AsyncIterator[bytes]:
    """The body of one request, which reports to the rate limit when it is sent, so that a slow answer delays no other.

    It can be read once only, so aiohttp never repeats a request by itself.
    """
    yield content
    sent()


class _StaleConnection(Exception):
    """An idle connection cannot be used again; the request was not sent."""


class _Request(aiohttp.ClientRequest):
    """A request that is not sent through an idle connection on which something has arrived.

    Where it ends before its body is sent, so does the connection.
    """

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        transport, protocol = conn.transport, conn.protocol
        if transport in _used and (protocol is None or protocol.should_close or _is_readable(transport)):
            raise _StaleConnection  # at which aiohttp closes it
        _used.add(transport)
        return await super().send(conn)

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: aiohttp.connector.Connection, content_length: int | None = None
    ) -> None:
        transport = conn.transport
        try:
            await super().write_bytes(writer, conn, content_length)
        except BaseException:
            if transport is not None:
                transport.abort()  # a closed one stays until the server has read the rest of the body
            raise


class _NoCookies(aiohttp.DummyCookieJar):
    """Keeps no cookie, and does not warn of those that cannot be read."""

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        """Does nothing."""


def _is_readable(transport: Any) -> bool:
    """Whether something has arrived on a connection that the event loop has not read yet."""
    socket = transport.get_extra_info("socket")
    if socket is None or socket.fileno() < 0:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([socket], [], [], 0)[0])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def _encoding_fault(error: BaseException | None) -> str | None:
    """Why an answer could not be unpacked, if that caused an error."""
    while error is not None:
        if isinstance(error, ContentEncodingError):
            return error.message
        error = error.__cause__
    return None


def _reason(error: Exception) -> str:
    """Why a connection failed, on one line; without the URL, which may hold a secret."""
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy of the environment: {_system_reason(error)}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy of the environment answers {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientResponseError):
        return " ".join(error.message.split())[:_LONGEST_REASON]
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer is incomplete"
    return _system_reason(error)


def _system_reason(error: Exception) -> str:
    if not isinstance(error, OSError):
        return "the connection was closed"
    if error.errno is None or isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientConnectorDNSError):
        return error.strerror or "the connection was closed"  # their numbers are others
    return os.strerror(error.errno)


def _trust() -> ssl.SSLContext:
    """Trust in the certificates of the system, or in those of `SSL_CERT_FILE` and `SSL_CERT_DIR`."""
    named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    if sys.platform in ("darwin", "win32") and not named:
        import truststore

        context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = ssl.create_default_context()  # reads these variables itself
        if not named and ssl.get_default_verify_paths().cafile is None:
            bundle = next(filter(os.path.isfile, _BUNDLES), None)
            if bundle is not None:
                context.load_verify_locations(bundle)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _most_connections() -> int:
    """How many connections may be open at once; 0 is any number. Further requests wait for one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 0
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if files == resource.RLIM_INFINITY else max(files - _OTHER_FILES, files // 2)
