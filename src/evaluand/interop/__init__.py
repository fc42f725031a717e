"""Names and files of other systems, over the core. Nothing is computed here.

`pharia` also implements the steps of its SDKs, which differ from the native ones; the arithmetic is the core's.
"""
