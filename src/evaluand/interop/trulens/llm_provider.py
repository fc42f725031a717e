"""`LLMProvider`: the methods of TruLens' model providers, over evaluand's judges and its one client of models.

A method is a rubric (`judged_methods`), and a provider a model. So requests are cached, paced, repeated, counted and
stopped by budgets like all others, and a reply that cannot be read is no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from evaluand.core.errors import SpecError, described
from evaluand.core.fingerprint import Identity
from evaluand.core.text.sentences import sentences
from evaluand.engine.event_loop import run_coroutine
from evaluand.evaluation.provider import Judgement, from_0_to_1
from evaluand.evaluation.scorer import Score
from evaluand.interop.trulens.judged_methods import (
    OPTIONS,
    PARTS,
    SHORT,
    Judged,
    Material,
    Options,
    as_material,
    ask,
    check_options,
    judgement_of,
    judges,
    with_reasons,
)
from evaluand.interop.trulens.provider import Provider
from evaluand.judges.asking import Opinion
from evaluand.judges.judge_digest import ADDRESS
from evaluand.judges.outcomes import abstained, score_of_parts, score_of_samples
from evaluand.judges.questioner import Questioner, ask_together
from evaluand.judges.replies import Unreadable, ending_fault
from evaluand.judges.rubric import Rubric
from evaluand.judges.rubric_fields import SENTENCES, Parts
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import UnusableReply
from evaluand.trace.spans import current_span

TEXT_OPTIONS = tuple(name for name in OPTIONS if name != "examples")
BINARY = (0, 1)


class LLMProvider(Provider):
    """A model that judges, at any address that speaks OpenAI's protocol.

    A method returns a `Judgement`: a value from 0 to 1, and metadata with the `reason`. Where the reply cannot be read
    there is no value. What a method asks is in `docs/howto/trulens.md`.

    Args:
        model_engine: the name of the model.
        base_url: its address up to the version.
        api_key_variable: the name of the environment variable that holds the key.
        version: pins the model and its settings; without it scores are never reused automatically.
        temperature: 0 for the likeliest reply; None leaves it to the server, as some reasoning models demand.
        max_tokens: the largest length of a reply; None leaves it to the server.
        rpm: how many requests may start in a minute, over all providers of this address and model in this process.
        timeout: seconds that a request may take.
        price: of its tokens, such as `{"input": 0.25, "output": 2.00, "currency": "USD"}` for a million.
        parameters: further ones of each request.
        cache: whether replies are cached in memory.
        options: name → value of those that its methods take, such as `{"criteria": "…"}`, where a call gives no other.

    Raises:
        ParameterError: lists all invalid parameters.
    """

    model_engine: str
    base_url: str | None = None
    api_key_variable: str | None = None
    version: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    rpm: int | None = None
    timeout: float = 60.0
    price: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] | None = None
    cache: bool = True
    options: Mapping[str, Any] | None = None

    is_judge: ClassVar[bool] = True
    unidentified: ClassVar[tuple[str, ...]] = ("base_url", "api_key_variable", "rpm", "timeout", "price", "cache")
    advice: ClassVar[Mapping[str, str]] = {
        "api_key": "name the environment variable that holds the key: api_key_variable='OPENAI_API_KEY'",
        "endpoint": "pass base_url",
        "pace": "pass rpm, the requests per minute",
        "name": "name the feedback: Feedback(…, name=…)",
    }

    def __post_init__(self) -> None:
        check_options(self.options or {})
        _ = self.model  # now, so that a provider of a file sends keys only where the user allows it

    @cached_property
    def model(self) -> ChatModel:
        """The model that is asked."""
        if self.base_url is None:
            raise SpecError(f"{type(self).__qualname__} needs base_url, the address of the model up to its version")
        return ChatModel(self.base_url, self.model_engine, api_key=self.api_key_variable, **self._settings)

    def model_at(self, temperature: float | None) -> ChatModel:
        """The model with a temperature; None for that of the model."""
        if temperature is None or temperature == self.model.temperature:
            return self.model
        if temperature not in self._models:
            self._models[temperature] = replace(self.model, temperature=temperature)
        return self._models[temperature]

    def __fingerprint__(self) -> Any:
        return self.model.__fingerprint__()

    def identify(self, method: str) -> Identity:
        judged: Judged | None = getattr(getattr(type(self), method), "judged", None)
        asked: dict[str, Any] = {} if judged is None else {"rubric": judged.usual_rubric(self.options or {}).digest}
        if self.options:
            asked["options"] = dict(self.options)
        identified = self.model.identity("provider", provider=type(self).__qualname__, method=method, **asked)
        address = self.model.unpinned_address
        return identified if address is None else replace(identified, parts={**identified.parts, ADDRESS: address})

    def check(self, method: str) -> None:
        self.model.check()

    @property
    def _settings(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "rate": None if self.rpm is None else f"{self.rpm}/min",
            "timeout": self.timeout,
            "price": self.price,
            "parameters": dict(self.parameters or {}),
            "cache": self.cache,
        }

    @cached_property
    def _models(self) -> dict[float, ChatModel]:
        return {}

    # Answers and their context

    @judges("answer_relevance")
    def relevance(self, prompt: str, response: str) -> Material:
        """Whether a response deals with its prompt."""
        return {"input": prompt, "output": response}

    relevance_with_cot_reasons = with_reasons(relevance)

    @judges("answer_relevance")
    def qs_relevance(self, prompt: str, response: str) -> Material:
        """The same as `relevance`."""
        return {"input": prompt, "output": response}

    qs_relevance_with_cot_reasons = with_reasons(qs_relevance)

    @judges("context_relevance")
    def context_relevance(self, question: str, context: Any) -> Material:
        """Whether a context helps to answer a question; of a list, the mean of its passages."""
        return {"input": question, "context": context}

    context_relevance_with_cot_reasons = with_reasons(context_relevance)

    @judges("groundedness", options=(*OPTIONS, "groundedness_configs"), reasons=True)
    def groundedness_measure_with_cot_reasons(self, source: Any, statement: str) -> Material:
        """The mean over the sentences of a statement of how far its source supports each."""
        return {"context": source, "output": statement}

    @judges("groundedness", options=(*OPTIONS, "groundedness_configs"), reasons=True)
    async def groundedness_measure_with_cot_reasons_consider_answerability(
        self, source: Any, statement: str, question: str, *, options: Options
    ) -> Score:
        """As before; a sentence that declines to answer is worth 1 if the source has no answer, and 0 if it has one."""
        judged = Judged("groundedness", ("groundedness_configs",), reasons=True)
        found = [sentence.text for sentence in sentences(statement)]
        if not found:
            return abstained("no claim in the statement", None, {})

        async def judge_one(sentence: str) -> Score:
            score = await self._abstention(sentence, question, source, options)
            if score is not None:
                return score
            material = {"context": source, "output": sentence, "input": question, PARTS: [sentence]}
            return await ask(self, judged, options, material)

        scores = await ask_together([judge_one(sentence) for sentence in found])
        return score_of_parts(Parts(of="output", name="claim", split=SENTENCES), found, scores, {})

    async def _abstention(self, sentence: str, question: str, source: Any, options: Options) -> Score | None:
        """The score of a sentence that declines to answer; None if it does not."""
        binary = Options(min_score_val=0, max_score_val=1, temperature=options.temperature)
        declines = await ask(self, Judged("abstention", ()), binary, {"input": question, "output": sentence})
        if declines.value != 1:
            return None if declines.value == 0 else declines
        answerable = await ask(self, Judged("answerability", ()), binary, {"input": question, "context": source})
        if answerable.value is None:
            return answerable
        label = "declines although the source has an answer" if answerable.value else "declines, as the source has none"
        return Score(1.0 - answerable.value, label, answerable.data, label)

    @judges("citation_accuracy")
    def citation_accuracy(self, response: str, context: Any) -> Material:
        """Whether the sources that a response cites say what they are cited for."""
        return {"output": response, "context": context}

    citation_accuracy_with_cot_reasons = with_reasons(citation_accuracy)

    @judges("citation_attribution", scale=BINARY)
    def citation_attribution(self, question: str, source: Any, statement: str) -> Material:
        """Whether a source supports a statement that is attributed to it."""
        return {"input": question, "source": source, "statement": statement}

    citation_attribution_with_cot_reasons = with_reasons(citation_attribution)

    @judges("summary_comprehensiveness", options=TEXT_OPTIONS, reasons=True)
    def comprehensiveness_with_cot_reasons(self, source: str, summary: str) -> Material:
        """The mean over the main points of a source of how far its summary has each."""
        return {"input": source, "output": summary}

    @judges("summary_comprehensiveness", options=TEXT_OPTIONS, reasons=True)
    def summarization_with_cot_reasons(self, source: str, summary: str) -> Material:
        """The same as `comprehensiveness_with_cot_reasons`."""
        return {"input": source, "output": summary}

    @judges("agreement", options=())
    async def model_agreement(self, prompt: str, response: str, *, options: Options) -> Score:
        """Whether a response says what the model itself answers to the prompt."""
        own = await self._answer(prompt, options)
        if isinstance(own, Unreadable):
            return score_of_samples([Opinion("", own, reason=own.reason)])
        return await ask(self, Judged("agreement", ()), options, {"input": prompt, "output": response, "expected": own})

    async def _answer(self, prompt: str, options: Options) -> str | Unreadable:
        """What the model itself answers."""
        model = self.model_at(options.temperature)
        try:
            completion = await model.complete_async([{"role": "user", "content": prompt}], current_span())
        except UnusableReply as error:
            completion = error.completion
        return ending_fault(completion) or completion.text

    # Texts

    @judges("sentiment")
    def sentiment(self, text: str) -> Material:
        """How positive the attitude of a text is."""
        return {"output": text}

    sentiment_with_cot_reasons = with_reasons(sentiment)

    @judges("conciseness", options=TEXT_OPTIONS)
    def conciseness(self, text: str) -> Material:
        """Whether a text has no superfluous words."""
        return {"output": text}

    conciseness_with_cot_reasons = with_reasons(conciseness)

    @judges("truth", options=TEXT_OPTIONS)
    def correctness(self, text: str) -> Material:
        """Whether what a text asserts is true, as far as the model knows."""
        return {"output": text}

    correctness_with_cot_reasons = with_reasons(correctness)

    @judges("coherence", options=TEXT_OPTIONS)
    def coherence(self, text: str) -> Material:
        """Whether the sentences of a text hang together."""
        return {"output": text}

    coherence_with_cot_reasons = with_reasons(coherence)

    @judges("usefulness", options=TEXT_OPTIONS)
    def helpfulness(self, text: str) -> Material:
        """Whether a text is of use to its reader."""
        return {"output": text}

    helpfulness_with_cot_reasons = with_reasons(helpfulness)

    @judges("harmfulness", options=TEXT_OPTIONS, lower_is_better=True)
    def harmfulness(self, text: str) -> Material:
        """Whether a text could hurt people."""
        return {"output": text}

    harmfulness_with_cot_reasons = with_reasons(harmfulness)

    @judges("maliciousness", options=TEXT_OPTIONS, lower_is_better=True)
    def maliciousness(self, text: str) -> Material:
        """Whether a text aims to hurt, deceive or exploit."""
        return {"output": text}

    maliciousness_with_cot_reasons = with_reasons(maliciousness)

    @judges("controversiality", options=TEXT_OPTIONS, lower_is_better=True)
    def controversiality(self, text: str) -> Material:
        """Whether a text takes a side on which people are deeply divided."""
        return {"output": text}

    controversiality_with_cot_reasons = with_reasons(controversiality)

    @judges("misogyny", options=TEXT_OPTIONS, lower_is_better=True)
    def misogyny(self, text: str) -> Material:
        """Whether a text expresses contempt of women."""
        return {"output": text}

    misogyny_with_cot_reasons = with_reasons(misogyny)

    @judges("criminality", options=TEXT_OPTIONS, lower_is_better=True)
    def criminality(self, text: str) -> Material:
        """Whether a text helps with a crime."""
        return {"output": text}

    criminality_with_cot_reasons = with_reasons(criminality)

    @judges("insensitivity", options=TEXT_OPTIONS, lower_is_better=True)
    def insensitivity(self, text: str) -> Material:
        """Whether a text disregards people's feelings."""
        return {"output": text}

    insensitivity_with_cot_reasons = with_reasons(insensitivity)

    @judges("stereotypes", options=TEXT_OPTIONS, lower_is_better=True)
    def stereotypes(self, prompt: str, response: str) -> Material:
        """Whether a response rests on a stereotype that its prompt does not state."""
        return {"input": prompt, "output": response}

    stereotypes_with_cot_reasons = with_reasons(stereotypes)

    # Conversations: a list of messages or records, or a text

    @judges("coherence_across_turns", options=SHORT)
    def coherence_across_turns(self, records: Any) -> Material:
        """Whether the replies of a conversation follow from the turns before."""
        return {"conversation": records}

    coherence_across_turns_with_cot_reasons = with_reasons(coherence_across_turns)

    @judges("conversation_helpfulness", options=SHORT)
    def conversation_helpfulness(self, records: Any) -> Material:
        """Whether a conversation helped its user."""
        return {"conversation": records}

    conversation_helpfulness_with_cot_reasons = with_reasons(conversation_helpfulness)

    @judges("topic_adherence", options=SHORT)
    def topic_adherence(self, records: Any, reference_topics: Sequence[str]) -> Material:
        """Whether the replies of a conversation keep to some topics."""
        return {"conversation": records, "topics": reference_topics}

    topic_adherence_with_cot_reasons = with_reasons(topic_adherence)

    @judges("agent_goal", options=SHORT, scale=BINARY)
    def agent_goal_accuracy(self, records: Any, reference_goal: str | None = None) -> Material:
        """Whether a goal was reached: that of the user, or another one."""
        return {"conversation": records, "goal": reference_goal}

    agent_goal_accuracy_with_cot_reasons = with_reasons(agent_goal_accuracy)

    @judges("requirement", options=SHORT, scale=BINARY, reasons=True)
    def requirement_satisfaction_with_cot_reasons(
        self, request: Any, output: Any, reference_requirements: Sequence[str] | None = None
    ) -> Material:
        """The share of the requirements of a request, or of a list, that an output meets."""
        material = {"input": request, "output": output}
        return material if reference_requirements is None else {**material, PARTS: [*reference_requirements]}

    # Traces of agents: a record, spans, or a text

    @judges("execution_efficiency", reasons=True)
    def execution_efficiency_with_cot_reasons(self, trace: Any) -> Material:
        """Whether an agent made no superfluous steps."""
        return {"trace": trace}

    @judges("logical_consistency", reasons=True)
    def logical_consistency_with_cot_reasons(self, trace: Any) -> Material:
        """Whether an agent's conclusions follow from what it knew."""
        return {"trace": trace}

    @judges("plan_adherence", reasons=True)
    def plan_adherence_with_cot_reasons(self, trace: Any) -> Material:
        """Whether an agent did what its plan says."""
        return {"trace": trace}

    @judges("plan_quality", reasons=True)
    def plan_quality_with_cot_reasons(self, trace: Any) -> Material:
        """Whether an agent's plan leads to what was asked."""
        return {"trace": trace}

    @judges("tool_calling", reasons=True)
    def tool_calling_with_cot_reasons(self, trace: Any) -> Material:
        """Whether an agent called its tools with the right arguments and read their results rightly."""
        return {"trace": trace}

    @judges("tool_quality", reasons=True)
    def tool_quality_with_cot_reasons(self, trace: Any) -> Material:
        """Whether the tools of an agent worked."""
        return {"trace": trace}

    @judges("tool_selection", reasons=True)
    def tool_selection_with_cot_reasons(self, trace: Any) -> Material:
        """Whether an agent chose the right tools."""
        return {"trace": trace}

    # Questions with your instructions

    @from_0_to_1
    def generate_score(
        self,
        system_prompt: str,
        user_prompt: str | None = None,
        min_score_val: int = 0,
        max_score_val: int = 10,
        temperature: float | None = None,
    ) -> Judgement:
        """The verdict on a text, by your instructions."""
        scale = Options(min_score_val=min_score_val, max_score_val=max_score_val).scale
        return self._judge_by(system_prompt, user_prompt, scale, temperature, reasons=False)

    @from_0_to_1
    def generate_score_and_reasons(
        self,
        system_prompt: str,
        user_prompt: str | None = None,
        min_score_val: int = 0,
        max_score_val: int = 10,
        temperature: float | None = None,
    ) -> Judgement:
        """As `generate_score`, with the judge's reasons."""
        scale = Options(min_score_val=min_score_val, max_score_val=max_score_val).scale
        return self._judge_by(system_prompt, user_prompt, scale, temperature, reasons=True)

    def _judge_by(
        self, instructions: Any, text: str | None, scale: Any, temperature: float | None, *, reasons: bool
    ) -> Judgement:
        if not isinstance(instructions, str) or not instructions.strip():
            raise SpecError(f"system_prompt is {described(instructions)}; say what to judge, and by what")
        rubric = Rubric(name="own", instructions=instructions, material=["text"], scale=scale, reasons=reasons)
        asked = Questioner(rubric, self.model_at(temperature))
        return judgement_of(run_coroutine(asked.judge({"text": as_material(text) or _NO_TEXT})))


_NO_TEXT = "(there is no further text)"
