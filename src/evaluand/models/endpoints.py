"""The addresses of models: the services that a short name such as `openai/gpt-5-mini` may begin with.

All but Anthropic and Gemini speak the protocol of OpenAI. A key is always the name of an environment variable.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from evaluand.core.errors import SpecError, alternatives


class Endpoint(NamedTuple):
    """A service.

    Attributes:
        url: up to its version; `${NAME}` is replaced by an environment variable.
        api_key: the variable that holds the key; None for servers without one.
        max_tokens_name: the name under which its chat completions take the largest length of a reply.
        protocol: its own, where it is not chat completions.
        reasoning: a regular expression of the models that refuse every temperature, and whose reasoning counts as
            output tokens.
    """

    url: str
    api_key: str | None = None
    max_tokens_name: str = "max_tokens"
    reasoning: str | None = None
    protocol: str = "chat"


_NEWER_CLAUDE: Final = r"(?!claude-[23]|claude-(?:opus|sonnet|haiku)-4(?:-[0-6])?(?:-\d{8}|-latest)?$).+"

ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "anthropic": Endpoint(
        "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", reasoning=_NEWER_CLAUDE, protocol="anthropic"
    ),
    "azure": Endpoint("${AZURE_OPENAI_ENDPOINT}/openai/v1", "AZURE_OPENAI_API_KEY", "max_completion_tokens"),
    "cohere": Endpoint("https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
    "deepseek": Endpoint("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "gemini": Endpoint("https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", protocol="gemini"),
    "groq": Endpoint("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "huggingface": Endpoint("https://router.huggingface.co/v1", "HF_TOKEN"),
    "llamacpp": Endpoint("http://127.0.0.1:8080/v1"),
    "mistral": Endpoint("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": Endpoint("http://127.0.0.1:11434/v1"),
    "openai": Endpoint(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "max_completion_tokens",
        r"o\d[\w.-]*|gpt-5(-mini|-nano|-pro|-codex)?(-\d{4}-\d\d-\d\d)?",
    ),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Endpoint("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vllm": Endpoint("http://127.0.0.1:8000/v1"),
    "xai": Endpoint("https://api.x.ai/v1", "XAI_API_KEY"),
}
"""Name → service."""

_AZURE: Final = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def read_short_name(text: str) -> dict[str, Any]:
    """The fields of a model from `PROVIDER/NAME` or `URL#NAME`.

    For a model that is known to refuse every temperature, temperature and length are left to the server.

    Raises:
        SpecError: the text names no model.

    Example:
        >>> read_short_name("ollama/llama3.2")
        {'url': 'http://127.0.0.1:11434/v1', 'name': 'llama3.2', 'api_key': None}
        >>> read_short_name("http://127.0.0.1:9000/v1#small")
        {'url': 'http://127.0.0.1:9000/v1', 'name': 'small'}
    """
    if "://" in text:
        url, _, name = text.partition("#")
        if not name:
            raise SpecError(f"model {url!r}: add the name of the model there, as in {url}#NAME")
        return {"url": url, "name": name}
    provider, mark, name = text.partition("/")
    if not mark or not name:
        raise SpecError(f"model {text!r}: write PROVIDER/NAME, such as openai/gpt-5-mini, or URL#NAME")
    if provider not in ENDPOINTS:
        known = f"{alternatives(provider, sorted(ENDPOINTS))}; for any other service write URL#NAME"
        raise SpecError(f"model {text!r}: there is no provider {provider!r}{known}")
    endpoint = ENDPOINTS[provider]
    left = {"temperature": None, "max_tokens": None} if re.fullmatch(endpoint.reasoning or "", name) else {}
    if endpoint.protocol == "anthropic":
        left.pop("max_tokens", None)  # which the protocol needs
    protocol = {} if endpoint.protocol == "chat" else {"protocol": endpoint.protocol}
    return {"url": _fill(endpoint.url, text), "name": name, "api_key": endpoint.api_key} | protocol | left


def max_tokens_name(url: str) -> str:
    """The name under which the chat completions of a service take the largest length of a reply."""
    if is_azure(url):
        return ENDPOINTS["azure"].max_tokens_name
    host = urlsplit(url).hostname
    known = (one for one in ENDPOINTS.values() if urlsplit(one.url).hostname == host)
    return next((one.max_tokens_name for one in known), "max_tokens")


def key_headers(url: str, key: str) -> dict[str, str]:
    """The headers by which services that speak the protocol of OpenAI take a key."""
    return {"api-key": key} if is_azure(url) else {"Authorization": f"Bearer {key}"}


def is_azure(url: str) -> bool:
    """Whether a URL is one of Azure OpenAI, which takes its key in the header `api-key`.

    Example:
        >>> is_azure("https://mine.openai.azure.com/openai/v1"), is_azure("https://api.openai.com/v1")
        (True, False)
    """
    parts = urlsplit(url)
    return (parts.hostname or "").endswith(_AZURE) or "api-version=" in parts.query


def _fill(url: str, model: str) -> str:
    """A URL with the values of the variables in it."""
    if "${" not in url:
        return url
    name = url[url.index("${") + 2 : url.index("}")]
    value = os.environ.get(name, "").strip().rstrip("/")
    if not value:
        raise SpecError(f"model {model!r}: set the environment variable {name} to the address of your resource")
    return url.replace(f"${{{name}}}", value)
