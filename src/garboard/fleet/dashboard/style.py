"""The style of the dashboard: light and dark, wide and narrow."""

DASHBOARD_STYLE = """\
:root { --back: #f6f7f9; --card: #fff; --ink: #1b2330; --soft: #5b6676; --line: #d9dee6; --accent: #2f5fb3;
  --code: #eef1f5; --failed: #b3261e; --retrying: #b4540a; --waiting: #8a5a00; --initializing: #4d6fa8;
  --provisioning: #2f5fb3; --deleting: #6b5b7b; --ready: #1f7a45; --standby: #3f7f7a; --claimed: #5a4bb3;
  --installed: #35705a; }
@media (prefers-color-scheme: dark) { :root { --back: #12161c; --card: #1a2028; --ink: #e4e9f0; --soft: #9aa6b6;
  --line: #313a46; --accent: #86adf2; --code: #242c37; --failed: #ff8a80; --retrying: #ffab70; --waiting: #e6b455;
  --initializing: #9db7e0; --provisioning: #86adf2; --deleting: #b9a6cf; --ready: #62cf8f; --standby: #7fc7c1;
  --claimed: #b0a5ff; --installed: #86c9b0; } }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; justify-content: space-between;
  background: var(--card); border-bottom: 1px solid var(--line); padding: .7rem 1.25rem; }
.title { display: flex; flex-wrap: wrap; gap: .2rem .9rem; align-items: baseline; min-width: 0; }
h1 { font-size: 1.3rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .6rem; }
p { margin: .25rem 0; overflow-wrap: anywhere; }
a { color: var(--accent); }
.where, .soft, .count, .left, .none, .narrowed { color: var(--soft); font-size: .88rem; font-weight: 400; }
.under { display: block; }
#state { font-size: .85rem; color: var(--soft); }
#state::before { content: ""; display: inline-block; width: .6rem; height: .6rem; border-radius: 50%;
  margin-right: .4rem; background: var(--soft); }
#state[data-state="live"]::before { background: var(--ready); }
#state[data-state="lost"] { color: var(--failed); font-weight: 600; }
#state[data-state="lost"]::before { background: var(--failed); }
input, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line);
  border-radius: 6px; padding: .3rem .6rem; max-width: 100%; }
button { cursor: pointer; } button:hover { border-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
label { color: var(--soft); font-size: .88rem; }
#sign-in { max-width: 34rem; margin: 3rem auto; padding: 1rem 1.5rem 1.5rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; }
#sign-in h2 { margin-top: .3rem; } #sign-in input { width: 100%; margin: .3rem 0 .8rem; }
#refusal { color: var(--failed); font-weight: 600; }
main { padding: 1rem 1.25rem 3rem; max-width: 100rem; margin: 0 auto; }
.stages { display: flex; flex-wrap: wrap; gap: .5rem; }
.chip { display: grid; text-decoration: none; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-top: 4px solid var(--stage, var(--soft)); border-radius: 6px; padding: .3rem .8rem; min-width: 5.2rem; }
.chip:hover { border-color: var(--accent); border-top-color: var(--stage, var(--soft)); }
.chip[aria-current] { box-shadow: 0 0 0 2px var(--accent); }
.chip .number { font-size: 1.35rem; font-weight: 600; line-height: 1.2; } .chip .name { color: var(--soft);
  font-size: .82rem; }
.failed { --stage: var(--failed); } .retrying { --stage: var(--retrying); } .waiting { --stage: var(--waiting); }
.initializing { --stage: var(--initializing); } .provisioning { --stage: var(--provisioning); }
.deleting { --stage: var(--deleting); } .ready { --stage: var(--ready); } .standby { --stage: var(--standby); }
.claimed { --stage: var(--claimed); } .installed { --stage: var(--installed); }
rect { fill: var(--stage); }
.bar { display: block; width: 100%; height: 7px; border-radius: 4px; margin: .7rem 0 .2rem; background: var(--line); }
td .bar { height: 6px; margin: .25rem 0 .15rem; min-width: 8rem; }
.badge { display: inline-block; font-size: .8rem; font-weight: 600; color: var(--stage, var(--soft));
  border: 1px solid currentColor; border-radius: 999px; padding: 0 .5rem; white-space: nowrap; }
table { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { border-top: 0; color: var(--soft); font-size: .8rem; font-weight: 600; overflow-wrap: normal; }
tbody th { font-weight: 600; min-width: 9rem; }
td.note { min-width: 12rem; } td.short b { color: var(--waiting); }
td ul { margin: 0; padding-left: 1.1rem; }
time { white-space: nowrap; }
details { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--failed);
  border-radius: 0 6px 6px 0; margin: 0 0 .5rem; padding: .35rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; } summary b { color: var(--failed); }
pre { background: var(--code); border-radius: 6px; padding: .6rem .8rem; margin: .4rem 0; max-height: 32rem;
  overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 12.5px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
code { background: var(--code); border-radius: 4px; padding: .05rem .3rem; font-size: .9em; }
.troubles { background: var(--card); border: 1px solid var(--line); border-left: 5px solid var(--failed);
  border-radius: 0 6px 6px 0; padding: .4rem 1rem; margin-bottom: 1rem; }
.troubles h2 { margin: .2rem 0; font-size: 1rem; color: var(--failed); } .troubles ul { margin: .2rem 0; }
@media (max-width: 50rem) { thead { display: none; } table, tbody, tr, th, td { display: block; width: 100%; }
  main { padding: .8rem .7rem 2rem; } header { padding: .6rem .7rem; }
  table { border: 0; background: none; }
  tr { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin-bottom: .6rem;
    padding: .4rem 0; }
  th, td { border-top: 0; padding: .15rem .8rem; }
  td { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .5rem; }
  td::before { content: attr(data-label); color: var(--soft); font-size: .8rem; padding-top: .1rem; }
  td.empty { display: none; }
  #narrow { width: 100%; display: flex; gap: .4rem; align-items: center; } #text { flex: 1; min-width: 0; } }
@media print { header form, .stages { display: none; } details { break-inside: avoid; } }
"""
