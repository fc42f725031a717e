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
    from evaluand.models.reply_cache import Replies as Replies
    from evaluand.models.tools import Tool as Tool
    from evaluand.models.usage import Spending as Spending, spending as spending

__getattr__, __dir__ = lazy_names(__name__)
