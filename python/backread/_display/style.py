"""The style of the HTML: no rule reaches beyond an element of class ``backread``.

Colours are inherited, with translucent tints, so that text is readable in light and dark themes.
Selectors repeat the class where they must win over a notebook's own rules for tables.
"""

from __future__ import annotations

_BASE = """
.backread{color:inherit;font-family:inherit;line-height:1.45;max-width:100%;\
overflow-wrap:anywhere}
.backread .br-quiet{font-weight:400;opacity:.75}
.backread .br-tall{border-bottom:1px dashed rgba(128,128,128,.8);max-height:26.8em;overflow:auto}
.backread.backread a:link,.backread.backread a:visited{color:inherit;text-decoration:underline}
"""

TABLES_RULES = f"""{_BASE}
.backread .br-scroll{{max-height:34em;overflow:auto}}
.backread.backread table{{border:0;border-collapse:collapse;color:inherit;font:inherit;\
font-variant-numeric:tabular-nums;margin:.2em 0;table-layout:auto}}
.backread.backread caption{{caption-side:top;color:inherit;font-weight:600;padding:.25em .7em;\
text-align:start}}
.backread.backread tbody tr,.backread.backread thead tr{{background:none;border:0}}
.backread.backread th,.backread.backread td{{border:0;\
border-top:1px solid rgba(128,128,128,.3);max-width:44em;overflow-wrap:anywhere;\
padding:.2em .7em;text-align:left;vertical-align:top;white-space:pre-wrap}}
.backread.backread th{{font-weight:600;min-width:6em}}
.backread.backread th.br-words{{overflow-wrap:break-word}}
.backread.backread thead th{{min-width:0;white-space:nowrap}}
.backread.backread tbody th{{opacity:.8}}
.backread.backread .br-page td{{white-space:pre}}
.backread.backread .br-page td.br-long{{max-width:24em;min-width:20em;white-space:pre-wrap}}
.backread.backread .br-number{{text-align:right;white-space:nowrap}}
.backread .br-mark{{border:1px solid;border-radius:1em;display:inline-block;font-weight:600;\
padding:0 .6em;white-space:nowrap}}
.backread .br-proved{{background:rgba(40,160,80,.2);border-color:rgba(40,160,80,.8)}}
.backread .br-unproved{{background:rgba(225,130,20,.22);border-color:rgba(225,130,20,.9)}}
.backread .br-open{{background:rgba(128,128,128,.15);border-color:rgba(128,128,128,.7)}}
.backread summary{{cursor:pointer;padding:.2em .7em}}
.backread code{{background:rgba(128,128,128,.15);border-radius:.25em;color:inherit;\
padding:0 .3em}}
"""
"""The rules of `TABLES`, for a style sheet."""

TABLES = f"<style>{TABLES_RULES}</style>"

CHAT_RULES = f"""{_BASE}
.backread.br-chat{{max-width:46em}}
.backread .br-head h1{{font-size:1.3em;margin:.2em 0}}
.backread .br-head{{border-bottom:1px solid rgba(128,128,128,.3);padding:.2em 0 .4em}}
.backread .br-day,.backread .br-note{{margin:.7em 0 .3em;text-align:center}}
.backread .br-message{{align-items:flex-start;display:flex;flex-direction:column;margin:.3em 0}}
.backread .br-operator{{align-items:flex-end}}
.backread .br-automatic,.backread .br-other{{align-items:center}}
.backread .br-who{{max-width:78%;font-size:.9em;margin:.4em .8em 0}}
.backread .br-bubble{{background:rgba(128,128,128,.17);border:1px solid transparent;\
border-radius:1em;border-end-start-radius:.2em;box-sizing:border-box;max-width:78%;\
overflow-wrap:anywhere;padding:.35em .8em}}
.backread .br-operator .br-bubble{{background:rgba(50,125,255,.2);border-end-end-radius:.2em;\
border-end-start-radius:1em}}
.backread .br-automatic .br-bubble,.backread .br-other .br-bubble{{background:none;\
border:1px dashed rgba(128,128,128,.8);border-radius:.6em}}
.backread .br-body{{white-space:pre-wrap}}
.backread .br-file{{display:block;margin-top:.2em}}
.backread .br-when{{display:block;font-size:.8em;opacity:.75;text-align:end}}
"""
"""The rules of `CHAT`, for a style sheet."""

CHAT = f"<style>{CHAT_RULES}</style>"

BAR = f"""<style>{_BASE}
.backread progress{{accent-color:rgb(50,125,255);height:1em;margin-inline-end:.6em;\
vertical-align:middle;width:16em}}
.backread.br-progress{{font-variant-numeric:tabular-nums}}
</style>"""

DOCUMENT = """<style>
:root{color-scheme:light dark}
body{background:Canvas;color:CanvasText;font-family:system-ui,sans-serif;margin:1em auto;\
max-width:46em;padding:0 1em}
@media print{.br-message{break-inside:avoid}}
</style>"""
"""The page around a saved document; its colours are the reader's, light or dark."""
