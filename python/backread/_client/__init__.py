"""The client, and the listings that it gives.

Modules whose frames say nothing to a caller set ``__tracebackhide__``: in pytest, an error ends at
the caller's line. IPython reads the name in functions only, and always shows the last frame.
"""
