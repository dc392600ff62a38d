"""How backread's objects look in a notebook: small documents of HTML, with nothing to run or load.

Layers, each of which imports only those before it::

    words, style <- markup <- records, reports, bubbles, progress_bar <- mirrors

The values come from untrusted users. Text is escaped, terminal control characters are made visible,
text direction is isolated, only plain http and https addresses become links, and no picture is
fetched. Colours are inherited from the page, with tints that work in light and dark themes; without
the style, as in an untrusted notebook, the same content shows as plain tables and lines.
"""
