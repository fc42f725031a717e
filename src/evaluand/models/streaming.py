"""A reply piece by piece, as it arrives."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from evaluand.core.errors import SpecError
from evaluand.models.completion import Completion


class TextStream:
    """The pieces of a reply, in an event loop; `completion` is the complete answer, available at the end.

    The request is sent when the first piece is requested. It is abandoned if the iteration stops early.

    Raises:
        TaskError: as in `ChatModel.complete`, at the point at which the pieces end.
    """

    def __init__(self, ask: Callable[[Callable[[str], None]], Awaitable[Completion]]) -> None:
        self._ask = ask
        self._completion: Completion | None = None

    @property
    def completion(self) -> Completion:
        """The complete answer.

        Raises:
            SpecError: it has not arrived yet.
        """
        if self._completion is None:
            raise SpecError("the reply is not complete; read all of its pieces first")
        return self._completion

    async def __aiter__(self) -> AsyncIterator[str]:
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        asking = asyncio.ensure_future(self._ask(pieces.put_nowait))
        asking.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            self._completion = await asking
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
