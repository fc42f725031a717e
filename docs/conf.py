"""How `make docs` builds the site. Why it is built this way: design/0011-the-documentation-site.md."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

import api_pages
from pygments.lexers.special import TextLexer

from evaluand import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
ROOT_PAGES = {
    "ARCHITECTURE.md": "architecture",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
}
"""Pages that stay where people expect them in the repository → their page of the site."""

project = "evaluand"
author = copyright = "The evaluand authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["**/.evaluand"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = [
    "myst.header",  # the pages of the repository's root begin at any level
    "ref.python",  # annotations name classes without their module, such as the Dataset of two rooms
]

default_role = "code"  # docstrings write `names` in single backticks
autodoc_mock_imports = api_pages.OPTIONAL
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False  # else an attribute without one shows that of `dict`
add_module_names = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # fields of named tuples are described once
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"evaluand {release}"
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # excerpts are fetched, which browsers refuse for files
html_theme_options = {"navigation_with_keys": True}


def link_to_site(text: str, folder: Path, docname: str) -> str:
    """Point the links of a page to where their targets are in the site.

    Args:
        text: the page's Markdown.
        folder: the folder that its links are relative to.
        docname: the page of the site.
    """
    here = (DOCS / docname).parent

    def move(link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        path = (folder / target).resolve()
        if path.parent == ROOT and path.name in ROOT_PAGES:
            path = DOCS / "project" / f"{ROOT_PAGES[path.name]}.md"
        return f"]({os.path.relpath(path, here)}{anchor})"

    return re.sub(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", move, text)


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Take a page of the repository's root in place of its stub, and adapt links."""
    folder, text = (DOCS / docname).parent, source[0]
    for file, page in ROOT_PAGES.items():
        if docname == f"project/{page}":
            folder, text = ROOT, (ROOT / file).read_text(encoding="utf-8")
    source[0] = link_to_site(text, folder, docname)


def setup(app: Sphinx) -> None:
    app.add_lexer("csv", TextLexer)
    api_pages.write_pages(DOCS / "reference" / "api")
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", api_pages.to_restructured_text)
