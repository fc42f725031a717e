"""Where the project's own files are, and golden files that may lie next to the checkout."""

from pathlib import Path

import pytest

ROOT_FOLDER = Path(__file__).resolve().parents[2]
SUPPORT_FOLDER = Path(__file__).parent
VECTORS_FOLDER = ROOT_FOLDER.parent / "shared" / "vectors"
DATA_FOLDER = ROOT_FOLDER.parent / "shared" / "data"


def missing(path: Path) -> str:
    """Why tests of recorded results are skipped where they do not lie beside the checkout."""
    return f"needs {path.relative_to(ROOT_FOLDER.parent)} beside the checkout: results of others, not published with it"


def needs(path: Path) -> pytest.MarkDecorator:
    """Skips tests where recorded results do not lie beside the checkout."""
    return pytest.mark.skipif(not path.exists(), reason=missing(path))
