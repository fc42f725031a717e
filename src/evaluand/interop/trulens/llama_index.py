"""`TruLlama`, over `evaluand.apps.llama_index`."""

from __future__ import annotations

from typing import Any

from evaluand.apps.llama_index import LlamaIndexApp
from evaluand.interop.trulens import apps
from evaluand.interop.trulens.lens import Lens, Select


class TruLlama(apps.App, LlamaIndexApp):
    """An engine of LlamaIndex, recorded through its instrumentation."""

    @staticmethod
    def select_source_nodes() -> Lens:  # type: ignore[override]
        """The lens of the nodes that an answer is made of."""
        nodes: Lens = Select.RecordRets.source_nodes[:]
        return nodes

    @staticmethod
    def select_context(app: Any = None) -> Lens:  # type: ignore[override]
        """The lens of the texts of these nodes.

        Args:
            app: is not needed: it is the same for all engines.
        """
        texts: Lens = Select.RecordRets.source_nodes[:].node.text
        return texts
