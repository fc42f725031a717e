"""Where the project's own files are, and golden files that may lie next to the checkout."""

from pathlib import Path

ROOT_FOLDER = Path(__file__).resolve().parents[2]
SUPPORT_FOLDER = Path(__file__).parent
VECTORS_FOLDER = ROOT_FOLDER.parent / "shared" / "vectors"
DATA_FOLDER = ROOT_FOLDER.parent / "shared" / "data"
