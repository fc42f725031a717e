"""Prepares README.md for package indexes, where its relative links and images would lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):
    """Sets the long description of the package while it is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = resolve_links(text, metadata.get("urls", {}))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def resolve_links(text: str, urls: Mapping[str, str]) -> str:
    """Make relative links absolute, as far as `[project.urls]` says where their targets are; else keep their text only.

    Args:
        text: Markdown with links relative to the root of the repository.
        urls: `Documentation` is the address of the built site, `Source` that of the files.
    """

    def resolve(link: re.Match[str]) -> str:
        mark, label, target = link.groups()
        if "://" in target or target.startswith("#"):
            return link[0]
        address = _address(target, urls)
        if address:
            return f"{mark}[{label}]({address})"
        return "" if mark else label

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", resolve, text)


def _address(target: str, urls: Mapping[str, str]) -> str | None:
    site, source = (urls.get(name, "").rstrip("/") for name in ("Documentation", "Source"))
    if site and target.startswith("docs/images/"):
        return f"{site}/_images/{target.removeprefix('docs/images/')}"
    if site and target.startswith("docs/") and ".md" in target:
        return f"{site}/{target.removeprefix('docs/').replace('.md', '.html')}"
    return f"{source}/{target}" if source else None
