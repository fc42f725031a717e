"""Names and files of other systems, over the core. Nothing is computed here.

One package, `pharia`, also has steps of its own, whose results cannot be had from the native steps; their arithmetic is
the core's.
"""
