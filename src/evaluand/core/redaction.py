"""Recognises passwords, keys and tokens by their names, and hides them from files and logs.

Names are read word by word, however they are written: `openai_api_key`, `openaiApiKey`, `X-API-Key`. Some words always
mean a credential (`password`, `secret`, `authorization`, `cookie` …). `key` and `token` also have harmless meanings
(`sort_key`, `max_tokens`, a word of a text), so the other words of the name decide. If those do not decide, the name
means a credential in a configuration, and data in the inputs and outputs of a call.

What is stored or logged about an error goes through `redact`, at the places where it becomes a text to store: messages,
stack traces, what a program wrote to stderr, reasons of failed scores. It searches for the values of the environment
variables whose names mean credentials, for values in use (`use_secret`), and for the forms of passwords and tokens.
Inputs and outputs of calls are data and stay as they are. What is part of an identity goes by names and forms alone
(`redact_command`), so that it is the same on all machines.
"""

import base64
import html
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus

HIDDEN: Final = "***"

_ISSUED: Final = (
    r"(?:api|access|secret|private|signing|encryption|account)keys?$|(?:api|access|auth|refresh|session)tokens?$"
)
_CREDENTIALS: Final = re.compile(
    rf"password|passwd|passphrase|pwd$|secrets?$|credential|authorization|bearer$|{_ISSUED}"
)
"""Words that always mean a credential; `apikey` and `clientsecret` are also written as one word."""

_IN_CONFIGURATIONS: Final = frozenset(("auth", "oauth", "cookie", "cookies", "jwt", "pat", "key", "token"))
_QUALIFIED: Final = frozenset(("key", "keys", "token", "tokens"))
_WITH_CREDENTIALS: Final = frozenset(
    (
        "access", "account", "api", "auth", "bearer", "bot", "client", "csrf", "encryption", "hf", "id", "jwt",
        "master", "personal", "private", "refresh", "secret", "service", "session", "signing", "ssh",
        "subscription", "xsrf",
    )
)  # fmt: skip
"""With one of these words, `key` and `token` mean a credential."""

_HARMLESS: Final = frozenset(
    (
        "answer", "cache", "chat", "column", "context", "dict", "document", "field", "foreign", "group",
        "history", "index", "input", "label", "map", "memory", "message", "metadata", "object", "output",
        "partition", "primary", "prompt", "public", "question", "record", "row", "sort", "text", "bos", "cls",
        "end", "eos", "first", "last", "mask", "max", "min", "n", "next", "num", "pad", "sep", "special", "has",
        "is", "start", "stop", "total", "unk",
    )
)  # fmt: skip
"""With one of these words, `key` and `token` are harmless."""

_SHOWN: Final = r"(?!\$\{\w+\})"
"""The name of a variable in place of its value says which credential it was."""
_PARAMETER: Final = re.compile(
    rf"([?&][\w.-]*(?:auth|token|secret|password|key|sig|signature)=){_SHOWN}[^&#\s'\"]+", re.IGNORECASE
)
_SCHEME: Final = re.compile(
    r"(authorization\W{1,4}(?:(?:header|value)\W{1,4})*|[\"'](?=\w+\s+[^\s'\",]+[\"']))?"
    rf"(\b(?:bearer|basic)\s+){_SHOWN}([^\s'\",]{{3,}})",
    re.IGNORECASE,
)
"""A scheme of authorization and what follows; first what shows that it is the value of a header."""
_IN_PROSE: Final = re.compile(
    r"auth|authentication|authorisation|authorization|access|credential|credentials|error|fault|"
    r"header|headers|idea|key|keys|login|model|realm|scheme|schemes|token|tokens|url|user|"
    r"and|are|but|can|cannot|for|has|may|must|nor|not|only|was|were|will|with",
    re.IGNORECASE,
)
"""Words that follow `bearer` and `basic` in prose; any other word may be a credential."""
_PUNCTUATION: Final = "()[].:;!?=…"

TOKEN: Final = (
    r"(?<![A-Za-z0-9])(?-i:"
    r"sk-(?:proj|svcacct|admin|ant|or|lf)-[\w-]{8,}"  # OpenAI, Anthropic, OpenRouter, Langfuse
    r"|sk-(?=[\w-]{0,200}[A-Za-z0-9]{16})[\w-]+"  # OpenAI, DeepSeek and others
    r"|[prs]k_(?:live|test)_\w{8,}|sk_[0-9a-f]{32,}"  # Stripe, ElevenLabs
    r"|(?:hf|gsk|gh[oprsu]|npm|r8|fw)_[A-Za-z0-9]{16,}"  # Hugging Face, Groq, GitHub, npm, Replicate, Fireworks
    r"|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeoprs]-\d[\w-]{5,}"  # GitHub, GitLab, Slack
    r"|AIza[\w-]{30,}|A[KS]IA[A-Z0-9]{16}\b"  # Google, AWS
    r"|(?:xai|csk|pplx)-[A-Za-z0-9]{16,}|nvapi-[\w-]{16,}"  # xAI, Cerebras, Perplexity, NVIDIA
    r"|eyJ[\w-]{8,1000}+\.eyJ[\w-]{1,8000}+\.[\w-]*"
    r")"
)
"""Tokens with the prefix and form of their issuer, and JSON Web Tokens, as a pattern; in time linear in the text."""
_TOKEN: Final = re.compile(TOKEN)

_SUFFIXES: Final = frozenset(("data", "env", "header", "headers", "id", "str", "string", "text", "value"))
"""What follows a name without changing what it names: `access_key_id`, `api_key_2`."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PASSWORD_IN_URL: Final = re.compile(r"(\w://[^/@\s:]*:)[^/@\s]+(?:@[^/@\s'\"<>,;]*)*@")
"""A password in a URL, up to the last `@` before the path."""
_TOKEN_IN_URL: Final = re.compile(
    r"(\w://)(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{16,200}(?=(?::[^/@\s]*)?@)", re.ASCII
)
"""A user of a URL that is a token: at least 16 letters and digits."""
_WEBHOOK: Final = re.compile(
    r"(//hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
    r"|//(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/"
    r"|//[\w.-]{1,80}\.webhook\.office\.com/webhookb2/|//outlook\.office\.com/webhook/"
    r"|//api\.telegram\.org/(?:file/)?bot(?=\d)|//hooks\.zapier\.com/hooks/catch/|//maker\.ifttt\.com/trigger/"
    r"|//open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v\d/hook/)[^\s'\"<>?#,;{}()]+"
)
"""URLs that are credentials as a whole: of Slack, Discord, Teams, Telegram, Zapier, IFTTT and Feishu."""
_PRIVATE_KEY: Final = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    r"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END [A-Z0-9 ]{0,60}-----"
    r"|(?:(?:\\+[nr]|\s)++[A-Za-z0-9+/=]{16,}+)++(?:(?:\\+[nr]|\s)++[A-Za-z0-9+/=]+)?)"
)
"""The block of a private key; without its end, the lines that look like base64."""
_COOKIE: Final = re.compile(
    r"(cookie2?\\*(?:[\"']?\s*[:=]|[\"']\s*,)\s*b?\\*[\"']?)[\w!#$%&*+.^`|~-]+=[^;,\s\"'\\]*"
    r"(?:;[ \t]*[\w!#$%&*+.^`|~-]+(?:=[^;,\"'\\\r\n]*)?)*",
    re.IGNORECASE,
)
"""The value of the header `Cookie` or `Set-Cookie`."""
_USER_OPTION: Final = re.compile(
    r"((?<!\S)[\"'\[(]?(?:-u|--(?:proxy-)?user)(?:\s|=|[\"'],?\s)[\"']?(?!\d+:\d+\b)[^\s:=\"'/]+:)(?!//)[^\s\"',]+"
)
"""`-u user:password`, as curl has it; two numbers are a user and a group."""
_SECRET_OPTION: Final = re.compile(
    rf"(?<![\w-])(--?([A-Za-z][\w-]{{0,60}})(?:\s|[\"'],\s?)(\\*[\"']?)){_SHOWN}(?![-{{<\[])([^\s\"',]+)"
)
"""An option and the next argument."""
_MYSQL_OPTION: Final = re.compile(
    r"((?:\b(?:mysql|mariadb)[\w-]{0,20}|\bsshpass)\b[^\n|&;]{0,200}?\s[\"']?-p)(?=\S)([^\s\"',]+)"
)
"""`-ppassword` of the programs of MySQL and MariaDB, and of sshpass."""
_WITH_SHORT_PASSWORD: Final = re.compile(r"mysql|mariadb|sshpass$")
_NAMING_USER: Final = frozenset(("-u", "--user", "--proxy-user"))
_AFTER_OPTION: Final = re.compile(
    r"a|an|and|are|argument|as|at|be|but|by|can|cannot|could|does|expected|expects|for|from|has|have|if|in|instead|"
    r"into|invalid|is|it|missing|must|needs|no|not|of|on|only|option|or|parameter|required|requires|should|takes|"
    r"than|that|the|then|this|to|value|via|was|were|when|where|which|will|with|without|you|your",
    re.IGNORECASE,
)
"""Words that follow the name of an option in prose."""
_URL: Final = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_PAIR: Final = re.compile(
    r"\b([\w-]{0,40}?(?:pass|pwd|secret|credential|authorization|key|token)[\w-]{0,40})"
    rf"(\\{{0,3}}[\"']?\s*[=:]\s*(?:b?(\\{{0,3}}[\"']))?(?:(?:bearer|basic|token)\s+)?+){_SHOWN}"
    r"((?(3)(?![\s{])(?:(?!\3)[^\r\n\\]|(?!\3)\\.)+(?=\3)|(?!))|[^;&,\s\"'{}]+)",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_secret(name: str, *, strict: bool = False) -> bool:
    """Whether a name means a credential.

    Args:
        name: the name of a parameter, an attribute or a header.
        strict: exclude names that may be harmless: `key`, `token`, `auth`, `cookie`.

    Example:
        >>> [is_secret(name) for name in ("openaiApiKey", "api_keys", "pwd", "max_tokens", "sort_key", "monkey")]
        [True, True, True, False, False, False]
        >>> is_secret("token"), is_secret("token", strict=True), is_secret("access_token", strict=True)
        (True, False, True)
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if any(_CREDENTIALS.search(word) for word in words):
        return True
    while len(words) > 1 and words[-1] in _SUFFIXES:
        words.pop()
    if not words:
        return False
    last, others = words[-1], _WITH_CREDENTIALS.intersection(words[:-1])
    if last in _QUALIFIED and others:
        return True
    if strict or _HARMLESS.intersection(words[:-1]):
        return False
    return last in _IN_CONFIGURATIONS


@lru_cache(maxsize=4096)
def is_secret_variable(name: str) -> bool:
    """Whether the name of an environment variable means a credential.

    Example:
        >>> [is_secret_variable(name) for name in ("OPENAI_API_KEY", "HF_TOKEN", "DB_PASS", "PWD", "LANG")]
        [True, True, True, False, False]
    """
    return name not in _FOLDERS and (is_secret(name) or name.upper().endswith(("_PASS", "_PW")))


def is_hidden(name: str, value: Any, *, strict: bool = False) -> bool:
    """Whether a value is hidden because its name means a credential."""
    return value is not None and type(value) is not bool and is_secret(name, strict=strict)


def without_passwords(text: str) -> str:
    """A text of a configuration with `***` in place of passwords in URLs and of values with a secret name.

    Example:
        >>> without_passwords("postgres://me:word@host/db"), without_passwords("Server=x;Password=word;")
        ('postgres://me:***@host/db', 'Server=x;Password=***;')
    """
    text = _TOKEN_IN_URL.sub(rf"\1{HIDDEN}", without_password(text)) if "://" in text else text
    return _PAIR.sub(_hide_pair, text) if "=" in text or ":" in text else text


def redact(text: str) -> str:
    """A text about an error as it may be stored and logged: without the values of credentials.

    The value of an environment variable becomes `${NAME}`, any other credential `***`. Eight characters in a row of a
    value are found as they are, in JSON, Python, HTML, a URL, base64 and hexadecimal digits; all if it is broken into
    lines.

    Example:
        >>> os.environ["MODELS_TOKEN"] = "tea/for-two"
        >>> redact("401: tea/for-two, tea%2Ffor-two")
        '401: ${MODELS_TOKEN}, ${MODELS_TOKEN}'
        >>> redact("connect postgres://me:word@host failed")
        'connect postgres://me:***@host failed'
    """
    find = _redact if len(text) <= _CACHED else _redact.__wrapped__
    return find(text, _secret_variables(), len(_in_use))


def use_secret(value: str, shown: str = HIDDEN) -> None:
    """Has `redact` search for a value in this process: of a parameter, or of a variable whatever its name.

    Args:
        shown: what takes its place, such as `${NAME}`.
    """
    if len(value) >= SHORTEST:
        _in_use.setdefault(value, shown)


def holds_secret(text: str) -> bool:
    """Whether a text holds the value of a credential of an environment variable, or one that is in use."""
    return hide_values(text, variable_values() | _in_use) != text


def hide_values(text: str, values: Mapping[str, str]) -> str:
    """A text in which each value is replaced by its placeholder, in every form in which it may be written.

    Any `LEAST` characters in a row of a value are hidden, since a text may have been cut; in time linear in the text.
    Of a URL only those of its user and path are, or of its host if it has neither: other URLs have the rest in common.

    Example:
        >>> hide_values("got …two-and-a-bisc, tea/for", {"tea/for-two-and-a-biscuit": "***"})
        'got …***, tea/for'
    """
    joined = "".join(text.split()) if "\n" in text and values else ""
    for value, shown in sorted(values.items(), key=lambda item: -len(item[0])):  # one may be part of another
        if value in joined and len(value) >= LEAST:
            text = _wrapped_form(value).sub(shown.replace("\\", r"\\"), text)
        for written in written_forms(value) if len(value) < LEAST or "://" in value else ():
            text = text.replace(written, shown)
    windows, pieces = _windows(tuple(values.items()))
    parts, done = list[str](), 0
    for at in (at for at in range(0, len(text), _STEP) if text[at : at + _PIECE] in pieces):
        for start in range(max(at - _STEP + 1, done), at + 1):
            if shown := windows.get(text[start : start + LEAST], ""):
                end = start + LEAST
                while text[end - LEAST + 1 : end + 1] in windows:
                    end += 1
                parts += (text[done:start], shown)
                done = end
                break
    return "".join([*parts, text[done:]])


_STEP: Final = 4
_PIECE: Final = 5
"""Characters of a piece: one that begins at a multiple of `_STEP` is within any `LEAST` characters."""


@lru_cache(maxsize=32)
def _windows(values: tuple[tuple[str, str], ...]) -> tuple[Mapping[str, str], frozenset[str]]:
    """All `LEAST` characters in a row of values, each with its placeholder; and the pieces of which one is in each."""
    windows: dict[str, str] = {}
    for value, shown in sorted(values, key=lambda item: -len(item[0])):
        for form in (form for part in _telling_parts(value) for form in written_forms(part)):
            for start in range(len(form) - LEAST + 1):
                windows.setdefault(form[start : start + LEAST], shown)
    windows = {window: shown for window, shown in windows.items() if "://" not in window}
    return windows, frozenset(window[start : start + _PIECE] for window in windows for start in range(_STEP))


def _telling_parts(value: str) -> list[str]:
    """The parts of a secret that identify it, if long enough: all of it, or user and path of a URL, else its host."""
    url = _HOST.fullmatch(value)
    parts = [value] if url is None else [url["user"] or "", url["path"]]
    long_enough = [part for part in parts if len(part) >= LEAST]
    return long_enough if url is None or long_enough else [host for host in [url["host"]] if len(host) >= LEAST]


_HOST: Final = re.compile(
    r"[A-Za-z][\w+.-]*://(?P<user>[^/@\s]*@)?(?P<host>[^/?#@\s]*?)(?:\.[^/?#@.\s]*)?(?P<path>[/?#].*|)"
)
"""A URL; its host is without the last name, which is that of a country or kind."""


@lru_cache(maxsize=512)
def _wrapped_form(value: str) -> re.Pattern[str]:
    """A value that may be broken into lines."""
    return re.compile(r"(?:[ \t]*\r?\n[ \t]*)?".join(map(re.escape, value)))


@lru_cache(maxsize=512)
def written_forms(value: str) -> tuple[str, ...]:
    """The forms in which a value may be written, longest first: in JSON, Python, HTML, a URL, base64, hex."""
    quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
    forms = {value, html.escape(value), value.replace("\\", "\\\\").replace("'", "\\'")}
    forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    forms |= quoted | {re.sub(r"%..", lambda found: found[0].lower(), text) for text in quoted}
    if not value.isascii():
        raw = value.encode("utf-8", "surrogateescape")
        forms |= {form for written in (ascii(value), repr(raw)) for form in _unquoted_forms(written)}
    if len(value) >= LEAST:
        digits = value.encode("utf-8", "surrogateescape").hex()
        forms |= {digits, digits.upper()}
    return tuple(sorted(forms | {*_base64_forms(value)}, key=len, reverse=True))


def _unquoted_forms(literal: str) -> tuple[str, str]:
    """The text of a literal of Python without quotation marks, and within one that has the other marks."""
    text = literal.removeprefix("b")[1:-1]
    return text, text.replace("\\'", "'").replace("'", "\\'")


def _base64_forms(value: str) -> Iterator[str]:
    """The digits of a value within base64, such as that of a user and a password, by its place in three bytes."""
    raw = value.encode("utf-8", "surrogateescape")
    for before, cut in ((0, 0), (1, 2), (2, 3)) if len(raw) >= LEAST else ():
        encoded = base64.b64encode(b"\0" * before + raw).decode()
        core = encoded[cut : (before + len(raw)) * 4 // 3]  # the digits that no neighbour influences
        yield from (core, core.replace("+", "-").replace("/", "_"))


@lru_cache(maxsize=256)
def _redact(text: str, named: tuple[tuple[str, str], ...], in_use: int) -> str:
    """The text without credentials; many calls fail with the same message."""
    return redact_message(hide_values(text, _values_of(named) | _in_use))


def variable_values() -> dict[str, str]:
    """The values of the environment variables whose names mean credentials, each with `${NAME}`."""
    return _values_of(_secret_variables())


def _secret_variables() -> tuple[tuple[str, str], ...]:
    return tuple((name, os.environ.get(name, "")) for name in os.environ if is_secret_variable(name))


def _values_of(named: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {value.strip(): f"${{{name}}}" for name, value in named if _is_value(value.strip())}


def _is_value(value: str) -> bool:
    """Whether the value of a variable is searched for: long enough, and no path, of which parts stand in many texts."""
    return len(value) >= LEAST and not (os.path.isabs(value) and os.path.exists(os.sep.join(value.split(os.sep)[:2])))


SHORTEST: Final = 4
"""Characters of the shortest value in use that is searched for; shorter ones occur by chance."""
LEAST: Final = 8
"""Characters of the shortest value of a variable that is only known by its name, and of the shortest part of one."""
_CACHED: Final = 4000
"""Characters of the longest text whose redacted form is remembered."""
_FOLDERS: Final = frozenset(("PWD", "OLDPWD"))
_in_use: Final[dict[str, str]] = {}


def redact_message(text: str) -> str:
    """The message of an error with `***` in place of passwords, secret parameters of URLs, bearer and other tokens.

    Example:
        >>> redact_message("503 of https://host/?key=abc"), redact_message("sent Bearer ab12")
        ('503 of https://host/?key=***', 'sent Bearer ***')
        >>> redact_message("basic auth failed")
        'basic auth failed'
    """
    text = _PARAMETER.sub(rf"\1{HIDDEN}", without_passwords(_hide_blocks(text)))
    text = _hide_options(text) if "-" in text else text
    return _TOKEN.sub(HIDDEN, _SCHEME.sub(_hide_token, text))


def _hide_blocks(text: str) -> str:
    """The text without private keys, cookies and webhooks, which have spaces or slashes."""
    text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text) if "PRIVATE KEY" in text else text
    text = _COOKIE.sub(rf"\1{HIDDEN}", text) if "ookie" in text or "COOKIE" in text else text
    return _WEBHOOK.sub(rf"\1{HIDDEN}", text) if "://" in text else text


def _hide_options(text: str) -> str:
    """The text of a command without the credentials that follow its options."""
    if "-u" in text:
        text = _USER_OPTION.sub(rf"\1{HIDDEN}", text)
    if "mysql" in text or "mariadb" in text or "sshpass" in text:
        text = _MYSQL_OPTION.sub(rf"\1{HIDDEN}", text)
    return _SECRET_OPTION.sub(_hide_option, text)


def _hide_option(found: re.Match[str]) -> str:
    before, name, _, value = found.groups()
    is_prose = _AFTER_OPTION.fullmatch(value.strip(_PUNCTUATION)) is not None
    return found[0] if is_prose or not (is_secret(name, strict=True) or name == "token") else f"{before}{HIDDEN}"


def redact_command(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command with `***` in place of credentials: of options such as `--api-key`, and in texts.

    It goes by names and forms alone, so that it is the same on all machines.

    Example:
        >>> redact_command(["bot", "--api-key", "abc", "--token=x1", "--max-tokens", "8", "PASSWORD=word"])
        ['bot', '--api-key', '***', '--token=***', '--max-tokens', '8', 'PASSWORD=***']
    """
    redacted, hides, names_user = list[str](), False, False
    program = os.path.basename(arguments[0]) if arguments else ""
    for argument in arguments:
        name, mark, _ = argument.partition("=")
        option = name.startswith("-")
        secret = is_secret(name, strict=True) or name == "--token"
        if hides and not option:
            redacted.append(HIDDEN)
        elif secret and mark:
            redacted.append(f"{name}={HIDDEN}")
        elif names_user and not option and ":" in argument:
            redacted.append(f"{argument.partition(':')[0]}:{HIDDEN}")
        elif argument[2:] and argument.startswith("-p") and _WITH_SHORT_PASSWORD.match(program):
            redacted.append(f"-p{HIDDEN}")
        else:
            redacted.append(redact_message(argument))
        names_user = argument in _NAMING_USER
        hides = option and secret and not mark
    return redacted


def use_secret_arguments(arguments: Sequence[str]) -> None:
    """Has `redact` search for the credentials in the arguments of a command."""
    for argument, redacted in zip(arguments, redact_command(arguments), strict=True):
        if redacted.endswith(HIDDEN) and argument.startswith(redacted.removesuffix(HIDDEN)):
            use_secret(argument.removeprefix(redacted.removesuffix(HIDDEN)))


def without_password(url: str) -> str:
    """A text with `***` in place of the passwords of its URLs."""
    return _PASSWORD_IN_URL.sub(rf"\1{HIDDEN}@", url)


def is_url_with_password(text: str) -> bool:
    """Whether a text is one URL with a password, and nothing else."""
    return "://" in text and _URL.fullmatch(text) is not None and without_password(text) != text


def issued_in(value: Any, name: str) -> str | None:
    """The path of a text that a service has issued, by its name (`api_key`, `access_token` …) or its form, or None.

    A `password` or `secret` may be data, such as the word that a chat bot must not reveal.

    Example:
        >>> issued_in({"api_key": "x"}, "parameters"), issued_in({"secret": "x"}, "parameters")
        ('parameters.api_key', None)
    """
    for path, part in _parts_of(value, name):
        words = "".join(_WORDS.findall(path.rpartition(".")[2])).lower()
        if part and isinstance(part, str) and (re.search(_ISSUED, words) or _TOKEN.search(part)):
            return path
    return None


def has_token(value: Any) -> bool:
    """Whether any text in data has the form of a token of a known issuer."""
    parts = _parts_of(value, "")
    return any(_TOKEN.search(path) or (isinstance(part, str) and _TOKEN.search(part)) for path, part in parts)


def _parts_of(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Plain data and all that is in them, each with its path, in which items of lists have that of their list."""
    yield path, value
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _parts_of(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _parts_of(item, path)


def _hide_token(found: re.Match[str]) -> str:
    header, scheme, token = found.groups(default="")
    prose = not header and _IN_PROSE.fullmatch(token.strip(_PUNCTUATION)) is not None
    return found[0] if prose else f"{header}{scheme}{HIDDEN}"


def _hide_pair(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{HIDDEN}" if is_secret(found[1], strict=True) else found[0]
