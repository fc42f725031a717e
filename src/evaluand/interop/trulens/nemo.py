"""`TruRails`, also called `NeMo`, over `evaluand.apps.frameworks.nemo_guardrails`."""

from typing import Any

from evaluand.apps.frameworks.nemo_guardrails import RETRIEVE, NeMoApp, NeMoRecordingSession
from evaluand.core.selector import Selector
from evaluand.interop.trulens import apps
from evaluand.interop.trulens.lens import Lens


class Recording(apps.Recording, NeMoRecordingSession):
    """The records of rails."""


class TruRails(apps.App, NeMoApp):
    """The `LLMRails` of NeMo Guardrails, recorded through their methods."""

    def record(self, *, tags: str | None = None, meta: Any = None) -> Recording:
        return Recording(self, self.tags if tags is None else tags, meta)

    @staticmethod
    def select_context(app: Any = None) -> Lens | Selector:  # type: ignore[override]
        """The selector of the texts that the knowledge base found.

        Args:
            app: the rails, or their `TruRails`; default: the texts of any knowledge base, whatever the app.

        Raises:
            SpecError: the app has no knowledge base.
        """
        if app is None:
            return Selector(f"$.__record__.app..['{RETRIEVE}'][*].rets[*].body")
        native = app if isinstance(app, NeMoApp) else NeMoApp(app)
        lens: Lens = Lens.of_string(str(NeMoApp.select_context(native)))
        return lens


NeMo = TruRails
