"""Language models: the client that tasks and judges share, the cache of replies, and what requests cost."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.models.chat_model import ChatModel as ChatModel
    from evaluand.models.completion import (
        Completion as Completion,
        CutOff as CutOff,
        ToolCall as ToolCall,
        UnusableReply as UnusableReply,
    )
    from evaluand.models.prices import Price as Price, PriceTable as PriceTable
    from evaluand.models.reply_cache import Replies as Replies
    from evaluand.models.tools import Tool as Tool
    from evaluand.models.usage import Spending as Spending, report_usage as report_usage, spending as spending
    from evaluand.models.usage_total import UsageTotal as UsageTotal

__getattr__, __dir__ = lazy_names(__name__)
