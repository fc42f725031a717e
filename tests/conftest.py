"""What all tests share."""

from hypothesis import settings

# How long one example takes depends on who else uses the machine; a deadline would fail tests at random.
settings.register_profile("evaluand", deadline=None)
settings.load_profile("evaluand")
