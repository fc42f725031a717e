"""The glossary is in order, and each entry leads to a page."""

from __future__ import annotations

import re

from support.places import ROOT_FOLDER

GLOSSARY = ROOT_FOLDER / "docs/glossary.md"


def sections() -> dict[str, dict[str, str]]:
    """Letter → word → entry, in the order of the page."""
    _, *parts = re.split(r"^## ", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part[0]: dict(re.findall(r"^- \*\*(.+?)\*\*: (.+(?:\n  .+)*)", part, flags=re.MULTILINE)) for part in parts}


def test_words_are_in_alphabetical_order_below_their_letter() -> None:
    words = [word for section in sections().values() for word in section]
    assert words == sorted(words, key=str.lower)
    assert list(sections()) == sorted(sections())
    assert [word for letter, section in sections().items() for word in section if word[0] != letter] == []


def test_an_entry_links_to_a_page() -> None:
    assert [word for section in sections().values() for word, entry in section.items() if "](" not in entry] == []


def test_every_link_of_the_glossary_and_the_page_on_public_names_leads_to_a_file() -> None:
    for page in (GLOSSARY, ROOT_FOLDER / "docs/reference/public.md"):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (page.parent / link).is_file(), link
