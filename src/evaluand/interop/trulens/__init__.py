"""The names of TruLens over the core: selectors, feedback functions, apps and their records, providers.

Each name is loaded on first use.
"""

from typing import TYPE_CHECKING

from evaluand.interop.names import interop_names
from evaluand.interop.trulens.missing_names import REPLACEMENTS

if TYPE_CHECKING:
    from evaluand.interop.trulens.aggregator import GroundTruthAggregator as GroundTruthAggregator
    from evaluand.interop.trulens.apps import (
        App as App,
        AppDefinition as AppDefinition,
        TruApp as TruApp,
        TruBasicApp as TruBasicApp,
        TruCustomApp as TruCustomApp,
        TruVirtual as TruVirtual,
        instrument as instrument,
    )
    from evaluand.interop.trulens.feedback import (
        Feedback as Feedback,
        FeedbackCall as FeedbackCall,
        FeedbackCombinations as FeedbackCombinations,
        FeedbackMode as FeedbackMode,
        FeedbackOnMissingParameters as FeedbackOnMissingParameters,
        FeedbackResult as FeedbackResult,
        FeedbackResultStatus as FeedbackResultStatus,
        InvalidSelector as InvalidSelector,
        SkipEval as SkipEval,
    )
    from evaluand.interop.trulens.guardrails import (
        block_input as block_input,
        block_output as block_output,
        context_filter as context_filter,
    )
    from evaluand.interop.trulens.huggingface_inference import HuggingfaceInference as HuggingfaceInference
    from evaluand.interop.trulens.judged_methods import (
        Criteria as Criteria,
        GroundednessConfigs as GroundednessConfigs,
        OutputSpace as OutputSpace,
    )
    from evaluand.interop.trulens.langchain import TruChain as TruChain
    from evaluand.interop.trulens.lens import (
        Collect as Collect,
        GetAttribute as GetAttribute,
        GetIndex as GetIndex,
        GetIndices as GetIndices,
        GetItem as GetItem,
        GetItemOrAttribute as GetItemOrAttribute,
        GetItems as GetItems,
        GetSlice as GetSlice,
        JSONPath as JSONPath,
        Lens as Lens,
        Select as Select,
        all_objects as all_objects,
        all_queries as all_queries,
    )
    from evaluand.interop.trulens.llama_index import TruLlama as TruLlama
    from evaluand.interop.trulens.llm_provider import LLMProvider as LLMProvider
    from evaluand.interop.trulens.models import (
        AzureOpenAI as AzureOpenAI,
        Bedrock as Bedrock,
        Cohere as Cohere,
        Cortex as Cortex,
        LangChain as LangChain,
        Langchain as Langchain,
        LiteLLM as LiteLLM,
        OpenAI as OpenAI,
    )
    from evaluand.interop.trulens.nemo import NeMo as NeMo, TruRails as TruRails
    from evaluand.interop.trulens.provider import Provider as Provider
    from evaluand.interop.trulens.providers import (
        GroundTruthAgreement as GroundTruthAgreement,
        HuggingFace as HuggingFace,
        Huggingface as Huggingface,
        HuggingfaceLocal as HuggingfaceLocal,
    )
    from evaluand.interop.trulens.records import (
        Cost as Cost,
        Method as Method,
        Perf as Perf,
        Record as Record,
        RecordAppCall as RecordAppCall,
        RecordAppCallMethod as RecordAppCallMethod,
    )
    from evaluand.interop.trulens.runs import Mode as Mode, Run as Run, RunConfig as RunConfig, RunStatus as RunStatus
    from evaluand.interop.trulens.virtual import VirtualApp as VirtualApp, VirtualRecord as VirtualRecord

__getattr__, __dir__ = interop_names(__name__, REPLACEMENTS)
