"""The model providers of TruLens: where each finds its model.

All are asked with evaluand's own client, so what does not speak OpenAI's protocol is reached through a gateway that
does, such as a LiteLLM proxy: `base_url`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from pydantic import Field

from evaluand.core.errors import SpecError
from evaluand.evaluation.provider import Judgement, from_0_to_1, lower_is_better
from evaluand.interop.trulens.langchain_models import chain_model
from evaluand.interop.trulens.llm_provider import LLMProvider
from evaluand.interop.trulens.moderation import Moderation
from evaluand.models.chat_model import ChatModel
from evaluand.models.endpoints import ENDPOINTS, read_short_name

_CORTEX: Final = "https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1"


class OpenAI(LLMProvider):
    """Models of OpenAI, or of any server that speaks its protocol.

    Args:
        base_url: of another server; the key of OpenAI is not sent there unless `api_key_variable` names it.
        moderation_engine: the classifier that the methods `moderation_…` ask.

    Example:
        >>> OpenAI(model_engine="small", base_url="http://127.0.0.1:8080/v1").model
        ChatModel(name='small', version=None)
        >>> OpenAI(api_key="sk-…")
        Traceback (most recent call last):
        evaluand.ParameterError: api_key: is no parameter of OpenAI; name the environment variable that ...
    """

    model_engine: str = "gpt-4o-mini"
    moderation_engine: str = "omni-moderation-latest"

    @cached_property
    def model(self) -> ChatModel:
        return _model_at(self, "openai", self.model_engine)

    @cached_property
    def moderation(self) -> Moderation:
        """The classifier of unsuitable texts."""
        return Moderation(
            model=self.moderation_engine,
            version=self.version,
            url=self.model.url,
            api_key_variable=self.model.api_key,
            timeout=self.timeout,
            rate=None if self.rpm is None else f"{self.rpm}/min",
            cache=self.cache,
        )

    @from_0_to_1
    @lower_is_better
    def moderation_harassment(self, text: str) -> Judgement:
        """How likely a text insults or pursues somebody, by OpenAI's classifier."""
        return self.moderation.probability(text, "harassment")

    @from_0_to_1
    @lower_is_better
    def moderation_harassment_threatening(self, text: str) -> Judgement:
        """How likely a text insults and threatens somebody, by OpenAI's classifier."""
        return self.moderation.probability(text, "harassment/threatening")

    @from_0_to_1
    @lower_is_better
    def moderation_hate(self, text: str) -> Judgement:
        """How likely a text attacks a group of people, by OpenAI's classifier."""
        return self.moderation.probability(text, "hate")

    @from_0_to_1
    @lower_is_better
    def moderation_hatethreatening(self, text: str) -> Judgement:
        """How likely a text attacks and threatens a group of people, by OpenAI's classifier."""
        return self.moderation.probability(text, "hate/threatening")

    @from_0_to_1
    @lower_is_better
    def moderation_selfharm(self, text: str) -> Judgement:
        """How likely a text encourages people to hurt themselves, by OpenAI's classifier."""
        return self.moderation.probability(text, "self-harm")

    @from_0_to_1
    @lower_is_better
    def moderation_sexual(self, text: str) -> Judgement:
        """How likely a text is sexual, by OpenAI's classifier."""
        return self.moderation.probability(text, "sexual")

    @from_0_to_1
    @lower_is_better
    def moderation_sexualminors(self, text: str) -> Judgement:
        """How likely a text sexualises minors, by OpenAI's classifier."""
        return self.moderation.probability(text, "sexual/minors")

    @from_0_to_1
    @lower_is_better
    def moderation_violence(self, text: str) -> Judgement:
        """How likely a text depicts violence, by OpenAI's classifier."""
        return self.moderation.probability(text, "violence")

    @from_0_to_1
    @lower_is_better
    def moderation_violencegraphic(self, text: str) -> Judgement:
        """How likely a text depicts violence in detail, by OpenAI's classifier."""
        return self.moderation.probability(text, "violence/graphic")


class AzureOpenAI(OpenAI):
    """Models of OpenAI at Azure.

    Args:
        deployment_name: the name of the deployment.
        base_url: of the resource, such as `https://mine.openai.azure.com/openai/v1`; default: that of the environment
            variable AZURE_OPENAI_ENDPOINT.
    """

    deployment_name: str = Field(kw_only=False)
    model_engine: str = ""

    @cached_property
    def model(self) -> ChatModel:
        return _model_at(self, "azure", self.deployment_name)


class Cohere(LLMProvider):
    """Models of Cohere, at its address for OpenAI's protocol."""

    model_engine: str = "command-a-03-2025"

    @cached_property
    def model(self) -> ChatModel:
        return _model_at(self, "cohere", self.model_engine)


class LiteLLM(LLMProvider):
    """Models by their names in LiteLLM.

    Args:
        model_engine: such as `gpt-4o-mini`, `ollama/llama3.2` or `bedrock/amazon.nova-lite-v1:0`.
        base_url: of a LiteLLM proxy, which reaches all of them; without it, those that speak OpenAI's protocol.
        completion_kwargs: further parameters of each request.

    Example:
        >>> LiteLLM(model_engine="ollama/llama3.2").model.url
        'http://127.0.0.1:11434/v1'
        >>> LiteLLM(model_engine="bedrock/amazon.nova-lite-v1:0")
        Traceback (most recent call last):
        evaluand.SpecError: LiteLLM: bedrock/… does not speak OpenAI's protocol here; pass base_url, ...
    """

    model_engine: str = "gpt-4o-mini"
    completion_kwargs: Mapping[str, Any] | None = None

    @cached_property
    def model(self) -> ChatModel:
        service, mark, name = self.model_engine.partition("/")
        if self.base_url is not None or not mark:
            return _model_at(self, "openai", self.model_engine)
        if service not in ENDPOINTS:
            raise _needs_gateway(self, f"{service}/…", "a LiteLLM proxy, which knows this name")
        return _model_at(self, service, name)

    @property
    def _settings(self) -> dict[str, Any]:
        settings = super()._settings
        return settings | {"parameters": {**settings["parameters"], **(self.completion_kwargs or {})}}


class Bedrock(LLMProvider):
    """Models of Amazon Bedrock.

    Args:
        model_id: such as `amazon.nova-lite-v1:0`.
        base_url: of a gateway with OpenAI's protocol; required.
    """

    model_id: str = "amazon.nova-lite-v1:0"
    model_engine: str = "Bedrock"

    @cached_property
    def model(self) -> ChatModel:
        if self.base_url is None:
            raise _needs_gateway(self, "Bedrock", "a LiteLLM proxy, or Bedrock's own for models that have one")
        return _model_at(self, "bedrock", self.model_id)


class Cortex(LLMProvider):
    """Models of Snowflake Cortex.

    Args:
        base_url: `https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1`, which speaks OpenAI's protocol, or that of
            a gateway; required.
    """

    advice: ClassVar[Mapping[str, str]] = {
        **LLMProvider.advice,
        "snowpark_session": f"pass base_url={_CORTEX!r} and api_key_variable",
    }

    model_engine: str = "llama3.3-70b"

    @cached_property
    def model(self) -> ChatModel:
        if self.base_url is None:
            raise _needs_gateway(self, "a session of Snowflake", _CORTEX)
        return _model_at(self, "cortex", self.model_engine)


class Langchain(LLMProvider):
    """A language model of LangChain.

    Temperature, length, key and address are those of the LangChain object. It cannot be stored, so it judges while an
    app records, or in an evaluation, and not in deferred mode.

    Args:
        chain: the chat model.
        model_engine: its name, for identity and prices.
    """

    chain: Any = Field(kw_only=False, repr=False)
    model_engine: str = ""
    temperature: float | None = None
    max_tokens: int | None = None

    unidentified: ClassVar[tuple[str, ...]] = (*LLMProvider.unidentified, "chain")

    @cached_property
    def model(self) -> ChatModel:
        name = self.model_engine or getattr(self.chain, "model_name", None) or getattr(self.chain, "model", None)
        return chain_model(self.chain, str(name or type(self.chain).__name__), **self._settings)

    def model_at(self, temperature: float | None) -> ChatModel:
        if temperature is not None:
            raise SpecError("temperature is that of the chat model of LangChain; set it there")
        return self.model


LangChain = Langchain


def _model_at(provider: LLMProvider, service: str, name: str) -> ChatModel:
    """A model at a service, or at another address."""
    if provider.base_url is not None:
        return ChatModel(provider.base_url, name, api_key=provider.api_key_variable, **provider._settings)
    place, settings = read_short_name(f"{service}/{name}"), provider._settings
    place["api_key"] = provider.api_key_variable or place["api_key"]
    for setting in place.keys() & settings.keys():  # what this model is known to refuse
        if settings[setting] == getattr(LLMProvider, setting):
            del settings[setting]
    return ChatModel(**{**place, **settings})


def _needs_gateway(provider: LLMProvider, what: str, such_as: str) -> SpecError:
    problem = f"{type(provider).__qualname__}: {what} does not speak OpenAI's protocol here"
    return SpecError(f"{problem}; pass base_url, the address of a gateway that does, such as {such_as}")
