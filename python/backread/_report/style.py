"""The report's style sheet: light, dark and print, from 400 pixels on."""

from __future__ import annotations

# The colours of a chart are by Okabe and Ito, who chose them for all kinds of colour vision, where
# they have a contrast of 3:1 with the page (WCAG 2.2, 1.4.11), and lighter ones of theirs in dark.
STYLE = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1c2127;--quiet:#59636e;
--line:#d8dde3;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#767d86;--heat:0,114,178;
--good:#0b6b4a;--good-back:#e3f4ec;--warn:#8a4b00;--warn-back:#fdf0dc}
@media screen and (prefers-color-scheme:dark){:root{--page:#14171b;--card:#1d2126;--text:#e8ebee;
--quiet:#a5adb6;--line:#373d45;--c0:#56b4e9;--c1:#e69f00;--c2:#2cc295;--c3:#9aa3ad;
--heat:86,180,233;--good:#7fdcb6;--good-back:#16352a;--warn:#f3c27a;--warn-back:#3a2c14}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"Noto Sans",sans-serif;margin:0;overflow-wrap:anywhere}
main,header,footer{margin:0 auto;max-width:1180px;padding:0 20px}
header{padding-top:28px}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .2em}
h2{font-size:1.12rem;line-height:1.3;margin:0 0 .2em}
p{margin:.3em 0}
.quiet{color:var(--quiet)}
.note{color:var(--quiet);font-size:.9rem;margin:0 0 .7em}
.state{border-left:5px solid;border-radius:4px;margin:14px 0;padding:10px 14px}
.state p{margin:0}
.good{background:var(--good-back);border-color:var(--good);color:var(--good)}
.warn{background:var(--warn-back);border-color:var(--warn);color:var(--warn)}
.state details{color:var(--text);margin-top:6px}
.tiles{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));margin:16px 0;
padding:0}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:8px;display:flex;
flex-direction:column;padding:12px 14px}
.tiles dt{color:var(--quiet);font-size:.85rem;order:1}
.tiles dd{margin:0}
.tiles dd.big{font-size:1.4rem;font-variant-numeric:tabular-nums;font-weight:650;line-height:1.2}
.tiles dd.more{color:var(--quiet);font-size:.82rem;order:2}
.cards{display:grid;gap:16px;grid-template-columns:repeat(2,minmax(0,1fr))}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;min-width:0;
padding:16px 18px}
section.full{grid-column:1/-1}
.legend{display:flex;flex-wrap:wrap;font-size:.88rem;gap:2px 18px;list-style:none;margin:0 0 4px;
padding:0}
.legend svg{border-radius:2px;height:.75em;margin-right:.2em;width:.75em}
.chart{display:block;height:auto;width:100%}
.chart text{fill:var(--quiet);font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
sans-serif}
.chart .line{stroke:var(--line)}
.colour-0{fill:var(--c0)}.colour-1{fill:var(--c1)}.colour-2{fill:var(--c2)}.colour-3{fill:var(--c3)}
.chart rect:hover{opacity:.75}
.bar{display:block;margin:2px 0}
details{margin-top:8px}
summary{color:var(--quiet);cursor:pointer;font-size:.9rem;width:max-content;max-width:100%}
summary:focus-visible,.scroll:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
.scroll{overflow:auto}
.long .scroll,details .scroll{max-height:28rem}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;width:100%}
th,td{border-bottom:1px solid var(--line);padding:4px 10px 4px 0;text-align:left;
vertical-align:top}
thead th{font-weight:600;vertical-align:bottom}
tbody th{font-weight:400;min-width:7em}
.number{text-align:right;white-space:nowrap}
tr:last-child>*{border-bottom:0}
.heat th,.heat td{border:0;font-size:.78rem;padding:0;white-space:nowrap}
.heat table{border-collapse:separate;border-spacing:2px;min-width:860px;table-layout:fixed}
.heat td{border-radius:3px;height:28px;text-align:center;vertical-align:middle}
.heat thead th{font-weight:400;text-align:center}
.heat td:first-child,.heat th:first-child{width:6.6em}
.heat tbody th{color:var(--quiet);min-width:0;padding-right:8px;vertical-align:middle}
.heat .h0{color:var(--quiet)}
.heat .h1{background:rgba(var(--heat),.10)}.heat .h2{background:rgba(var(--heat),.22)}
.heat .h3{background:rgba(var(--heat),.36)}.heat .h4{background:rgba(var(--heat),.52)}
.heat .h5{background:rgba(var(--heat),.72)}.heat .h6{background:rgb(var(--heat))}
.heat .h5{color:#08121a}.heat .h6{color:#fff}
@media screen and (prefers-color-scheme:dark){.heat .h6{color:#08121a}}
form{align-items:end;display:flex;flex-wrap:wrap;gap:8px 16px;margin:0 0 14px}
label{color:var(--quiet);display:grid;font-size:.85rem}
a{color:inherit;text-decoration-color:var(--c0)}
input,select,button{font:inherit;max-width:100%;padding:3px 8px}
footer{color:var(--quiet);font-size:.85rem;padding-bottom:28px;padding-top:16px}
@media (max-width:860px){.cards{grid-template-columns:minmax(0,1fr)}}
@media (max-width:620px){main,header,footer{padding-left:12px;padding-right:12px}
header{padding-top:16px}section{padding:12px}h1{font-size:1.35rem}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}
.wide{display:none}.narrow{display:block}}
@media print{:root{color-scheme:light;--page:#fff;--good-back:#fff;--warn-back:#fff}
@page{margin:14mm}
html,body{font-size:11px}
main,header,footer{max-width:none;padding-left:0;padding-right:0}
.tiles{gap:8px;grid-template-columns:repeat(6,minmax(0,1fr))}
.tiles div{padding:8px}
.tiles dd.big{font-size:1rem}
.cards{gap:10px;grid-template-columns:repeat(2,minmax(0,1fr))}
section{padding:10px 12px}
th,td{padding:2px 8px 2px 0}
section,.tiles div,.state{break-inside:avoid}
section.long{break-inside:auto}
tr{break-inside:avoid}
rect,.heat td{print-color-adjust:exact;-webkit-print-color-adjust:exact}
.heat table{border-spacing:1px}
.heat th,.heat td{font-size:7.5px;height:20px}
.long .scroll,details .scroll{max-height:none}
.scroll{overflow:visible}
.heat table{min-width:0}.wide{display:block}.narrow{display:none}
details:not([open]){display:none}}
"""
