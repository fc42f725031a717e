"""Messages to a model: texts and images, as data that every protocol can write.

A message is a mapping with `role` and `content`. The content is a text, or a list of parts:

    {"type": "text", "text": "What is this?"}
    {"type": "image", "image": …}              the bytes of an image, its path, or a URL

Other parts, and further keys of a message such as `tool_calls`, are sent as they are.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evaluand.core.errors import TaskError, kind_of
from evaluand.core.files.regular import read_regular_file

LARGEST_IMAGE: Final = 20 << 20
"""The largest size of an image that services accept, in bytes."""


def read_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as data, with images as data URLs.

    Raises:
        TaskError: a message or an image is invalid; the error names its place.

    Example:
        >>> read_messages([{"role": "user", "content": "Hello"}])
        [{'role': 'user', 'content': 'Hello'}]
    """
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise _fault("the conversation", f"is {kind_of(messages)}; give a list of messages")
    if not messages:
        raise _fault("the conversation", "has no message")
    return [_read_message(message, f"message {place}") for place, message in enumerate(messages, 1)]


def text_of_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """All texts of a conversation, to estimate its length."""
    return "\n".join(text for message in messages for text in _texts(message.get("content")))


def add_instruction(messages: Sequence[Mapping[str, Any]], instruction: str) -> list[dict[str, Any]]:
    """The messages with an instruction at the end of the last message of the user, or in a separate message."""
    changed = [dict(message) for message in messages]
    last = changed[-1]
    if last["role"] != "user":
        return [*changed, {"role": "user", "content": instruction}]
    content = last["content"]
    if isinstance(content, str):
        last["content"] = f"{content}\n\n{instruction}"
    else:
        last["content"] = [*content, {"type": "text", "text": instruction}]
    return changed


def split_instructions(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The instructions among messages, wherever they stand, and the turns of the conversation."""
    split: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = [], []
    for message in messages:
        split[message["role"] not in ("system", "developer")].append(message)
    return split


def image_of(part: Mapping[str, Any]) -> str | None:
    """The address of the image in a part of a message, also in the form of OpenAI; None if it has none."""
    image = part.get("image_url") if part["type"] == "image_url" else part.get("image")
    image = image.get("url") if isinstance(image, Mapping) else image
    return image if isinstance(image, str) else None


def split_data_url(image: str) -> tuple[str, str | None]:
    """The type of an image and its content in base64; without content if it is an address.

    Example:
        >>> split_data_url("data:image/png;base64,iVBO"), split_data_url("https://example.org/cat.png")
        (('image/png', 'iVBO'), ('', None))
    """
    head, mark, content = image.partition(";base64,")
    return (head.removeprefix("data:"), content) if mark and head.startswith("data:") else ("", None)


def _read_message(message: Any, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise _fault(where, f"is {kind_of(message)}; give an object with role and content")
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise _fault(where, "has no role; give system, user or assistant")
    if isinstance(content, str) or (content is None and "tool_calls" in message):
        return dict(message)
    if isinstance(content, Mapping) or not isinstance(content, Sequence) or isinstance(content, bytes):
        raise _fault(where, f"has {kind_of(content)} as content; give a text, or a list of parts")
    parts = [_read_part(part, f"{where}, part {place}") for place, part in enumerate(content, 1)]
    return {**message, "content": parts}


def _read_part(part: Any, where: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise _fault(where, "has no type; give text or image")
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        raise _fault(where, "has no text")
    if part["type"] == "image":
        return {"type": "image", "image": _image_url(part.get("image"), where)}
    return dict(part)


def _image_url(image: Any, where: str) -> str:
    if isinstance(image, str) and image.startswith(("data:", "https://", "http://")):
        return image
    if isinstance(image, str | os.PathLike):
        try:
            image = read_regular_file(Path(image), LARGEST_IMAGE, follow_link=True)
        except OSError as error:
            raise _fault(where, f"{os.fspath(image)}: {error.strerror or error}") from None
    if not isinstance(image, bytes | bytearray):
        raise _fault(where, f"has {kind_of(image)} as image; give bytes, a path or a URL")
    content = bytes(image)
    # what is no image is refused, so that a path in a dataset cannot send any other file
    kind = next((kind for begins, kind in _KINDS.items() if content.startswith(begins)), None)
    if kind is None or (kind == "image/webp" and content[8:12] != b"WEBP"):
        raise _fault(where, "is not an image; give PNG, JPEG, GIF or WebP")
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or () if isinstance(part, Mapping) and isinstance(part.get("text"), str)]


def _fault(where: str, problem: str) -> TaskError:
    return TaskError(f"{where} {problem}", code="messages")


_KINDS: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
