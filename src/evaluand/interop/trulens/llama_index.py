"""`TruLlama`, over `evaluand.apps.frameworks.llama_index`."""

from typing import Any, Final

from evaluand.apps.frameworks.llama_index import LlamaIndexApp
from evaluand.interop.trulens import apps
from evaluand.interop.trulens.lens import Lens, Select


class TruLlama(apps.App, LlamaIndexApp):
    """An engine of LlamaIndex, recorded through its instrumentation."""

    @staticmethod
    def select_source_nodes(app: Any = None) -> Lens:  # type: ignore[override]
        """The lens of the nodes that an answer is based on.

        Args:
            app: the engine, an object that has one, or its `TruLlama`; default: the nodes of the app's response.

        Raises:
            SpecError: the app has no engine and no retriever, or several.
        """
        if app is None:
            return _NODES
        native = app if isinstance(app, LlamaIndexApp) else LlamaIndexApp(app)
        nodes: Lens = Lens.of_string(str(LlamaIndexApp.select_source_nodes(native)))
        return nodes

    @staticmethod
    def select_context(app: Any = None) -> Lens:  # type: ignore[override]
        """The lens of the texts of the nodes that an answer is based on; see `select_source_nodes`."""
        texts: Lens = TruLlama.select_source_nodes(app).node.text
        return texts


_NODES: Final[Lens] = Select.RecordRets.source_nodes[:]
