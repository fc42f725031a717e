"""Feedback functions that other processes can import."""

from __future__ import annotations


def length(text: str) -> float:
    return float(len(text))


def same(question: str, answer: str) -> float:
    return float(question.upper() == answer)
