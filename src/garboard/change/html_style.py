"""The style of the page of a plan: light and dark, and on paper."""

STYLE = """\
:root { --back: #f6f7f9; --card: #fff; --ink: #1b2330; --soft: #5b6676; --line: #d9dee6; --accent: #2f5fb3;
  --ok: #1f7a45; --note: #8a5a00; --stop: #b3261e; --added: #e3f5e9; --added-ink: #11572e; --removed: #fde8e6;
  --removed-ink: #8c1d16; --code: #eef1f5; }
@media (prefers-color-scheme: dark) { :root { --back: #12161c; --card: #1a2028; --ink: #e4e9f0; --soft: #9aa6b6;
  --line: #313a46; --accent: #86adf2; --ok: #62cf8f; --note: #e6b455; --stop: #ff8a80; --added: #143524;
  --added-ink: #9ae6b8; --removed: #40201f; --removed-ink: #ffb4ad; --code: #242c37; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p { margin: .25rem 0; overflow-wrap: anywhere; }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
code { background: var(--code); border-radius: 4px; padding: .05rem .3rem; overflow-wrap: anywhere; }
.verdict { border-left: 5px solid var(--soft); background: var(--card); padding: .6rem .9rem; font-weight: 600;
  border-radius: 0 6px 6px 0; }
.verdict.allowed { border-color: var(--ok); } .verdict.advice { border-color: var(--note); }
.verdict.blocked { border-color: var(--stop); }
.facts { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1rem 0 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .9rem; }
.facts dt { color: var(--soft); font-size: .8rem; } .facts dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.made, footer { color: var(--soft); font-size: .85rem; } footer { margin-top: 2rem; border-top: 1px solid var(--line); }
.attribute, .node, .object { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .8rem 1rem; margin: 0 0 .75rem; }
.attribute { border-left: 5px solid var(--soft); } .attribute.allowed { border-left-color: var(--ok); }
.attribute.advice { border-left-color: var(--note); } .attribute.blocked { border-left-color: var(--stop); }
.badge, .restart, .assumed { font-size: .78rem; font-weight: 600; border: 1px solid currentColor; border-radius: 999px;
  padding: .05rem .55rem; white-space: nowrap; }
.allowed .badge { color: var(--ok); } .advice .badge { color: var(--note); } .blocked .badge { color: var(--stop); }
.restart { color: var(--note); } .assumed { color: var(--soft); font-weight: 400; }
.values del { text-decoration: none; color: var(--soft); } .values ins { text-decoration: none; font-weight: 600; }
.arrow { color: var(--soft); font-size: .85rem; }
.route span { color: var(--soft); font-size: .85rem; } .route pre { margin: .2rem 0 0; }
.timeline { list-style: none; margin: 0; padding: 0 0 0 1.6rem; border-left: 3px solid var(--line);
  counter-reset: part; }
.timeline > li { position: relative; counter-increment: part; }
.timeline > li::before { content: counter(part); position: absolute; left: -2.5rem; top: .7rem; width: 1.7rem;
  height: 1.7rem; border-radius: 50%; background: var(--accent); color: var(--card); font-weight: 700;
  font-size: .85rem;
  display: grid; place-items: center; }
.object::before { border-radius: 5px !important; }
.steps { list-style: none; margin: 0; padding: 0; }
.steps > li { border-top: 1px solid var(--line); padding: .5rem 0; } .steps > li:first-child { border-top: 0; }
.title { font-weight: 600; } .title code { font-weight: 400; } .cause { color: var(--soft); font-size: .9rem; }
summary { cursor: pointer; margin: .35rem 0; overflow-wrap: anywhere; }
pre { background: var(--code); border-radius: 6px; padding: .6rem .8rem; margin: 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.diff span { display: block; } .diff { white-space: pre-wrap; }
.diff .added { background: var(--added); color: var(--added-ink); }
.diff .removed { background: var(--removed); color: var(--removed-ink); }
.diff .place, .diff .name { color: var(--soft); }
@media print { :root { --back: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --accent: #333;
  --ok: #14532d; --note: #6b4500; --stop: #8c1d16; --added: #eaf6ee; --added-ink: #11572e; --removed: #fbeceb;
  --removed-ink: #8c1d16; --code: #f4f4f4; }
  main { max-width: none; padding: 0; } body { font-size: 11pt; } code, pre { font-size: 9pt; }
  .attribute, .object, .steps > li { break-inside: avoid; } h2, h3, summary { break-after: avoid; }
  * { print-color-adjust: exact; } }
"""
