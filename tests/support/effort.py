"""How many examples properties have that take long, since each example is put to every metric there is."""

from hypothesis import settings

FEW_EXAMPLES = max(settings().max_examples // 8, 5)
"""Of the quick and of the thorough profile of `conftest.py`."""
