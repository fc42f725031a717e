"""The tasks included in the SDK, implemented by the native ones: chunks, language detection, instructions.

A model is an `evaluand.ChatModel`: any endpoint that implements OpenAI's chat completions protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from evaluand.core.errors import SpecError
from evaluand.core.text.retrieval import count_tokens
from evaluand.interop.pharia.domain import Task
from evaluand.models.chat_model import ChatModel
from evaluand.run.tasks.chunk import Chunk as NativeChunk
from evaluand.run.tasks.detect_language import DetectLanguage as NativeDetectLanguage
from evaluand.run.tasks.instruct import Instruct as NativeInstruct, Instruction
from evaluand.trace.spans import TaskSpan

_EUROPE: Final = """
bg Bulgarian, br Breton, bs Bosnian, ca Catalan, co Corsican, cs Czech, cy Welsh, da Danish, de German, el Greek,
en English, es Spanish, et Estonian, eu Basque, fi Finnish, fo Faroese, fr French, fy Western Frisian, ga Irish,
gd Scottish Gaelic, gl Galician, gv Manx, hr Croatian, hu Hungarian, is Icelandic, it Italian, kl Greenlandic,
kw Cornish, lb Luxembourgish, li Limburgish, lt Lithuanian, lv Latvian, mk Macedonian, mt Maltese,
nb Norwegian Bokmål, nl Dutch, nn Norwegian Nynorsk, no Norwegian, oc Occitan, pl Polish, pt Portuguese, rm Romansh,
ro Romanian, sc Sardinian, se Northern Sami, sk Slovak, sl Slovenian, sq Albanian, sr Serbian, sv Swedish,
uk Ukrainian, wa Walloon, be Belarusian, ru Russian, yi Yiddish, an Aragonese
"""
_ASIA: Final = """
ab Abkhazian, ar Arabic, as Assamese, av Avar, az Azerbaijani, ba Bashkir, bn Bengali, bo Tibetan, ce Chechen,
cv Chuvash, dv Dhivehi, dz Dzongkha, fa Persian, gu Gujarati, he Hebrew, hi Hindi, hy Armenian, id Indonesian,
ii Sichuan Yi, ja Japanese, jv Javanese, ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean, ks Kashmiri,
ku Kurdish, kv Komi, ky Kyrgyz, lo Lao, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, my Burmese, ne Nepali,
or Odia, os Ossetian, pa Punjabi, ps Pashto, sd Sindhi, si Sinhala, su Sundanese, ta Tamil, te Telugu, tg Tajik,
th Thai, tk Turkmen, tl Tagalog, tr Turkish, tt Tatar, ug Uyghur, ur Urdu, uz Uzbek, vi Vietnamese, za Zhuang,
zh Chinese
"""
_AFRICA_AND_FURTHER: Final = """
aa Afar, af Afrikaans, ak Akan, am Amharic, ay Aymara, bi Bislama, bm Bambara, ch Chamorro, cr Cree, ee Ewe, ff Fula,
fj Fijian, gn Guarani, ha Hausa, ho Hiri Motu, ht Haitian Creole, hz Herero, ig Igbo, ik Inupiaq, iu Inuktitut,
kg Kongo, ki Kikuyu, kj Kwanyama, kr Kanuri, lg Ganda, ln Lingala, lu Luba-Katanga, mg Malagasy, mh Marshallese,
mi Maori, na Nauru, nd Northern Ndebele, ng Ndonga, nr Southern Ndebele, nv Navajo, ny Chichewa, oj Ojibwe, om Oromo,
qu Quechua, rn Rundi, rw Kinyarwanda, sg Sango, sm Samoan, sn Shona, so Somali, ss Swati, st Southern Sotho,
sw Swahili, ti Tigrinya, tn Tswana, to Tongan, ts Tsonga, tw Twi, ty Tahitian, ve Venda, wo Wolof, xh Xhosa,
yo Yoruba, zu Zulu
"""
_OLD_AND_MADE: Final = """
ae Avestan, cu Church Slavonic, eo Esperanto, ia Interlingua, ie Interlingue, io Ido, la Latin, pi Pali, sa Sanskrit,
vo Volapük
"""

NAMES: Final[dict[str, str]] = {
    code: name
    for part in (_EUROPE, _ASIA, _AFRICA_AND_FURTHER, _OLD_AND_MADE)
    for code, name in (entry.split(maxsplit=1) for entry in part.split(","))
}


Config = TypeVar("Config")
TextChunk = str


class ChunkInput(BaseModel):
    """A text to be divided."""

    text: str


class ChunkOutput(BaseModel):
    """The chunks of a text; joined, they are the text."""

    chunks: Sequence[TextChunk]


class ChunkWithStartEndIndices(BaseModel):
    """A chunk and its position in the text; `end_index` is exclusive."""

    chunk: TextChunk
    start_index: int
    end_index: int


class ChunkWithIndicesOutput(BaseModel):
    """The chunks of a text and their positions."""

    chunks_with_indices: Sequence[ChunkWithStartEndIndices]


class Chunk(Task[ChunkInput, ChunkOutput]):
    """Divides a text at its pauses into chunks with a maximum number of tokens.

    Args:
        model: an object with `tokenize(text)`; for any other, tokens are those of Llama 2 (the extra `embeddings`).
        max_tokens_per_chunk: the maximum number of tokens.
    """

    def __init__(self, model: Any, max_tokens_per_chunk: int = 512) -> None:
        tokenize = getattr(model, "tokenize", None)
        count = (lambda text: len(tokenize(text))) if tokenize else count_tokens
        self._chunk = NativeChunk(max_tokens_per_chunk, count)

    def do_run(self, input: ChunkInput, task_span: TaskSpan) -> ChunkOutput:
        return ChunkOutput(chunks=self._chunk.do_run(input.text, task_span))


class ChunkWithIndices(Task[ChunkInput, ChunkWithIndicesOutput]):
    """The chunks of `Chunk` and their positions in the text."""

    def __init__(self, model: Any, max_tokens_per_chunk: int = 512) -> None:
        self._chunk = Chunk(model, max_tokens_per_chunk)

    def do_run(self, input: ChunkInput, task_span: TaskSpan) -> ChunkWithIndicesOutput:
        chunks: list[ChunkWithStartEndIndices] = []
        for chunk in self._chunk.run(input, task_span).chunks:
            start = chunks[-1].end_index if chunks else 0
            chunks.append(ChunkWithStartEndIndices(chunk=chunk, start_index=start, end_index=start + len(chunk)))
        return ChunkWithIndicesOutput(chunks_with_indices=chunks)


class LanguageNotSupportedError(SpecError, ValueError):
    """There is no configuration for this language."""


@dataclass(frozen=True)
class Language:
    """A language by its code of ISO 639-1."""

    iso_639_1: str

    def get_name(self) -> str | None:
        """Its English name; None if no language has this code.

        Example:
            >>> Language("de").get_name(), Language("xx").get_name()
            ('German', None)
        """
        return NAMES.get(self.iso_639_1.lower())

    def language_config(self, configs: Mapping[Language, Config]) -> Config:
        """The configuration for this language.

        Raises:
            LanguageNotSupportedError: there is none.
        """
        if self not in configs:
            known = ", ".join(language.iso_639_1 for language in configs)
            message = f"there is no configuration for {self.iso_639_1}; available are: {known or 'none'}"
            raise LanguageNotSupportedError(message)
        return configs[self]


class DetectLanguageInput(BaseModel):
    """A text and its possible languages."""

    text: str
    possible_languages: Sequence[Language]


class DetectLanguageOutput(BaseModel):
    """The language of a text; None if it is not one of the possible languages."""

    best_fit: Language | None


class DetectLanguage(Task[DetectLanguageInput, DetectLanguageOutput]):
    """Detects which of the possible languages a text is in.

    Args:
        threshold: the minimum probability of the language, among all languages.
    """

    def __init__(self, threshold: float = 0.5) -> None:
        self._detect = NativeDetectLanguage(threshold=threshold)

    def do_run(self, input: DetectLanguageInput, task_span: TaskSpan) -> DetectLanguageOutput:
        code = self._detect.do_run(input.text, task_span)
        fit = next((language for language in input.possible_languages if language.iso_639_1 == code), None)
        return DetectLanguageOutput(best_fit=fit)


class InstructInput(BaseModel):
    """An instruction for a model, its input, and the maximum number of tokens of the reply."""

    instruction: str
    input: str | None = None
    response_prefix: str | None = None
    maximum_tokens: int = 128


class CompletionResult(BaseModel):
    """A reply and its finish reason."""

    completion: str | None = None
    finish_reason: str | None = None


class CompleteOutput(BaseModel):
    """A model's reply and its token counts; 0 where the model does not report them."""

    model_version: str
    completions: Sequence[CompletionResult]
    num_tokens_prompt_total: int
    num_tokens_generated: int

    @property
    def completion(self) -> str:
        """The reply."""
        return self.completions[0].completion or ""

    @property
    def generated_tokens(self) -> int:
        """How many tokens the model wrote."""
        return self.num_tokens_generated


class Instruct(Task[InstructInput, CompleteOutput]):
    """A model's reply to an instruction; a reply that the maximum number of tokens cut off is returned as it is.

    A prefix of the reply is sent as the beginning of the model's message, which most servers continue; the output is
    the text after it.
    """

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self._limited: dict[int, ChatModel] = {}

    def do_run(self, input: InstructInput, task_span: TaskSpan) -> CompleteOutput:
        prefix = input.response_prefix or ""
        limit = input.maximum_tokens
        model = self._limited.setdefault(limit, replace(self.model, max_tokens=limit, cut_off="keep"))
        instruction = Instruction(instruction=input.instruction, context=input.input)
        begun = [{"role": "assistant", "content": prefix}] if prefix else []
        found = model.complete([*NativeInstruct(model).messages(instruction), *begun], task_span)
        return CompleteOutput(
            model_version=found.model or model.name,
            completions=[
                CompletionResult(completion=found.text.removeprefix(prefix), finish_reason=found.finish_reason)
            ],
            num_tokens_prompt_total=found.input_tokens or 0,
            num_tokens_generated=found.output_tokens or 0,
        )
