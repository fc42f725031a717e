"""`TruChain`, over `evaluand.apps.frameworks.langchain`."""

from typing import Any

from evaluand.apps.frameworks.langchain import RETRIEVE, LangChainApp, LangChainRecordingSession
from evaluand.core.selector import Selector
from evaluand.interop.trulens import apps
from evaluand.interop.trulens.lens import Lens


class Recording(apps.Recording, LangChainRecordingSession):
    """The records of a chain."""


class TruChain(apps.App, LangChainApp):
    """A chain of LangChain, recorded through its callbacks."""

    def record(self, *, tags: str | None = None, meta: Any = None) -> Recording:
        return Recording(self, self.tags if tags is None else tags, meta)

    @staticmethod
    def select_context(app: Any = None) -> Lens | Selector:  # type: ignore[override]
        """The selector of the texts that the app's retriever returned.

        Args:
            app: the chain, or its `TruChain`; default: the texts of all retrievers, whatever the app.

        Raises:
            SpecError: the app has no retriever, or several.
        """
        if app is None:
            return Selector(f"$.__record__.app..['{RETRIEVE}'][*].rets[*].page_content")
        native = app if isinstance(app, LangChainApp) else LangChainApp(app)
        lens: Lens = Lens.of_string(str(LangChainApp.select_context(native)))
        return lens
