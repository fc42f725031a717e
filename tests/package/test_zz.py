import os
from support.pages import run_page
import pytest
PAGES = os.environ["PAGES"].split()
@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path):
    run_page(page, tmp_path, ["dataset: {path: questions.jsonl, input: question, expected: answer, attributes: [topic]}","tasks:","scorers:","metrics:"])
