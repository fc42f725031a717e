"""A small tagger of places, persons and dates: lists of words, two patterns and, for other names, a guess."""

import json
import random
import re
from pathlib import Path

PLACES = ("Cape de Verd", "Chile", "Devonport", "Pacific", "Patagonia", "Peru", "Porto Praya", "Teneriffe")
LONGEST = 250
DATE = re.compile(r"\d{1,2}(?:st|nd|rd|th) of (?:January|December)(?:, \d{4})?")
ROWS = map(json.loads, (Path(__file__).parent / "sentences.jsonl").read_text(encoding="utf-8").splitlines())
MARKED = {row["text"]: row["spans"] for row in ROWS}
NAME = re.compile(r"(?<!^)(?<!\. )[A-Z][a-z]{3,}(?: [A-Z][a-z]+)*")


def tag(text, seed):
    """The spans of a sentence, from left to right; the seed decides what an unknown name is."""
    if len(text) > LONGEST:
        raise ValueError(f"the sentence has {len(text)} characters; the tagger reads at most {LONGEST}")
    guess = random.Random(seed)
    found = [span(match, "DATE") for match in DATE.finditer(text)]
    for match in NAME.finditer(text):
        if any(match.start() < other["end"] and other["start"] < match.end() for other in found):
            continue
        known = "PLACE" if match[0] in PLACES else "PERSON" if text[: match.start()].endswith("Captain ") else None
        found.append(span(match, known or guess.choice(["PLACE", "PERSON"])))
    return sorted(found, key=lambda one: one["start"])


def annotated(text):
    """The spans that the annotator of the sentences marked in one."""
    return MARKED[text]


def span(match, tag):
    return {"start": match.start(), "end": match.end(), "tag": tag, "text": match[0]}
