"""Gates as JUnit XML, which build servers show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(results: Sequence[Mapping[str, Any]]) -> bytes:
    """A test suite with a case for each gate and evaluation.

    Args:
        results: with `gate`, `subject`, `passed` and `message`.

    Example:
        >>> junit_xml([{"gate": "accuracy >= 1", "subject": "bot", "passed": True, "message": "1"}]).count(b"<testcase")
        1
    """
    failed = sum(not result["passed"] for result in results)
    suite = ElementTree.Element("testsuite", name="evaluand", tests=str(len(results)), failures=str(failed))
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", name=_xml(result["gate"]), classname=_xml(result["subject"]))
        if result["passed"]:
            ElementTree.SubElement(case, "system-out").text = _xml(result["message"])
        else:
            failure = ElementTree.SubElement(case, "failure", message=_xml(result["message"]))
            failure.text = _xml(f"{result['gate']}\n{result['message']}")
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
