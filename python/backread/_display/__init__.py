"""How backread's objects look in a notebook: small documents of HTML, with nothing to run or load.

Layers, each of which imports only those before it::

    words, style <- markup <- records, reports, bubbles, progress_bar

What is drawn was written by strangers. Text is escaped, characters that steer a terminal or turn
the direction of what stands beside them are shown or kept in, addresses become links where they are
plain http or https, and no picture is fetched. The colours are those of the page around, with a
tint that shows on light and on dark; without the style, as in a notebook that is not trusted, the
same stands there as plain tables and lines.
"""
