"""Style of the page: one text of CSS, by day and by night, on a wide screen, a phone and paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6573; --line: #dde2e9; --wash: #f5f7fa; --paper: #fff;
  --accent: #1f5fa8; --good: #23733f; --bad: #b3261e;
  --c0: #1f5fa8; --c1: #d1603d; --c2: #2f7d50; --c3: #7d5ba6; --c4: #a2760a; --c5: #217f8c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #a2acba; --line: #333b47; --wash: #1d232c;
  --paper: #14181f; --accent: #7db4f0; --good: #6fce90; --bad: #ff8a80;
  --c0: #7db4f0; --c1: #f0916f; --c2: #76cc97; --c3: #bd9fe4; --c4: #dcb14a; --c5: #66c6d3; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; color: var(--ink); background: var(--paper); overflow-wrap: break-word;
  font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 28px 72px; }
h1 { font-size: 31px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; }
h2 { font-size: 23px; line-height: 1.25; margin: 56px 0 4px; padding-top: 24px; border-top: 1px solid var(--line); }
h2 .number { color: var(--accent); margin-right: 0.4em; font-variant-numeric: tabular-nums; }
h3 { font-size: 17px; margin: 34px 0 10px; }
p { margin: 0 0 12px; max-width: 46em; }
a { color: var(--accent); }
.lead { color: var(--soft); font-size: 17px; }
.cited { color: var(--soft); font-size: 15px; }
nav { display: flex; flex-wrap: wrap; gap: 8px; margin: 18px 0 22px; padding: 0; }
nav a { border: 1px solid var(--line); border-radius: 999px; padding: 5px 14px; text-decoration: none;
  font-size: 15px; }
.pair { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(0, 1fr); gap: 28px; align-items: start; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(290px, 1fr)); gap: 14px; margin-bottom: 14px; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; padding: 12px 12px 10px; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; max-width: 680px; margin: 0 auto; }
figure svg text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif !important; }
figure canvas { display: block; width: 100%; border-radius: 4px; }
figure iframe { display: block; width: 100%; border: 0 !important; border-radius: 4px; }
figcaption { color: var(--soft); font-size: 14px; margin-top: 6px; }
.controls { display: flex; gap: 10px; align-items: center; margin-top: 8px; font-size: 14px; color: var(--soft);
  font-variant-numeric: tabular-nums; }
.controls button { font: inherit; color: var(--accent); background: none; border: 1px solid var(--line);
  border-radius: 6px; padding: 3px 12px; min-width: 5.2em; cursor: pointer; }
.controls input { flex: 1; min-width: 0; accent-color: var(--accent); }
.controls output { min-width: 4.5em; text-align: right; }
.side h4 { margin: 0 0 6px; font-size: 13px; text-transform: uppercase; letter-spacing: 0.06em; color: var(--soft); }
.side ul { list-style: none; padding: 0; margin: 0 0 16px; }
.side li { padding: 7px 0 7px 28px; border-top: 1px solid var(--line); position: relative; font-size: 15px; }
.side li:first-child { border-top: 0; }
.says li { padding-left: 14px; border: 0; border-left: 3px solid var(--accent); margin-bottom: 8px; padding-top: 0;
  padding-bottom: 0; }
.checks li::before { content: "✓"; position: absolute; left: 4px; font-weight: 700; color: var(--good); }
.checks li.no::before { content: "✗"; color: var(--bad); }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 16px; margin: 14px 0; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 28px; margin-top: 16px; }
.scroll { overflow-x: auto; margin: 8px 0 16px; }
.about { color: var(--soft); font-size: 14px; max-width: none; margin: 10px 0 0; }
table { border-collapse: collapse; width: 100%; font-size: 15px; }
th, td { text-align: right; padding: 6px 8px; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: pre;
  font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; font-size: 13px; }
th:first-child, td:first-child, .words th, .words td { text-align: left; }
.words td:nth-child(2) { white-space: pre-line; min-width: 15em; }
td.yes { color: var(--good); } td.no { color: var(--bad); font-weight: 700; }
tr.ours td { background: var(--wash); font-weight: 600; }
code { background: var(--wash); border-radius: 4px; padding: 1px 5px; font-size: 0.92em; }
pre { background: var(--wash); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; overflow-x: auto;
  font-size: 14px; line-height: 1.45; }
pre code { background: none; padding: 0; }
footer { margin-top: 52px; padding-top: 16px; border-top: 1px solid var(--line); color: var(--soft); font-size: 14px; }
@media (max-width: 820px) { .pair, .columns { grid-template-columns: minmax(0, 1fr); gap: 18px; } }
@media (max-width: 520px) { main { padding: 24px 14px 48px; } h1 { font-size: 26px; } h2 { font-size: 21px; }
  figure { padding: 8px 6px; } figcaption { padding: 0 4px; } th, td { padding: 6px 7px; font-size: 14px; } }
@media print { figure, tr { break-inside: avoid; } .controls, nav { display: none; } }
"""
