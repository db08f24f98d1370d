"""How a page looks: on screens wide and narrow, light and dark, and on paper."""

from __future__ import annotations

# Lines and bars: the colours of Okabe and Ito, which people with any colour vision tell apart; on dark ground lighter.
LIGHT_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0559a", "#c98500", "#3f9fe0", "#5b5b5b", "#8c4a1f")
DARK_COLOURS = ("#4fb3f0", "#ff8a4c", "#2cc79a", "#e69fd0", "#f0b93a", "#9fd3ff", "#b9bfc7", "#d8a07a")

_LOOK = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue","Noto Sans","DejaVu Sans",sans-serif}
header,main,footer{max-width:1200px;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.75rem}
h1{margin:0;font-size:1.9rem;line-height:1.2;letter-spacing:-.02em;overflow-wrap:anywhere}
h2{margin:0 0 .9rem;font-size:1.15rem;letter-spacing:-.01em}
h3{margin:1.2rem 0 .5rem;font-size:.95rem}
.kicker{margin:0 0 .3rem;color:var(--dim);font-size:.85rem}
.kicker b{color:var(--accent)}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:1rem 0 .25rem;font-size:.88rem}
a{color:var(--accent);text-decoration:none}
a:hover{text-decoration:underline}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
section{margin:1rem 0;padding:1.25rem 1.4rem 1.4rem;background:var(--card);border:1px solid var(--edge);
border-radius:12px}
footer{padding-top:.5rem;padding-bottom:2rem;color:var(--dim);font-size:.85rem}
.badge{display:inline-block;vertical-align:.3em;margin-left:.3rem;padding:.1rem .6rem;border-radius:99px;
font-size:.78rem;font-weight:600;letter-spacing:0;line-height:1.5;white-space:nowrap}
td .badge{vertical-align:baseline;margin-left:0}
.good{color:var(--good);background:var(--good-ground)}
.busy{color:var(--busy);background:var(--busy-ground)}
.bad{color:var(--bad);background:var(--bad-ground)}
.warning{margin:0 0 1rem;padding:.65rem .9rem;border-radius:8px;border-left:4px solid var(--busy);
background:var(--busy-ground);overflow-wrap:anywhere}
.lead{margin:0 0 1rem;font-size:1.05rem}
.note,.dim{color:var(--dim)}
.note{margin:.4rem 0 .6rem;font-size:.88rem;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,10.5rem),1fr));gap:.75rem}
.tile{padding:.8rem 1rem;border-radius:10px;background:var(--raised)}
.tile h3{margin:0;color:var(--dim);font-weight:500;font-size:.85rem}
.tile .value{margin:.1rem 0;font-size:1.75rem;font-weight:650;line-height:1.2;letter-spacing:-.02em;
font-variant-numeric:tabular-nums}
.tile .value small{font-size:.85rem;font-weight:400;letter-spacing:0;color:var(--dim)}
.tile .remark{margin:0;color:var(--dim);font-size:.82rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr));
gap:.25rem 2rem;margin:1.1rem 0 0}
.facts div{display:flex;gap:.8rem;min-width:0}
.facts dt{flex:0 0 5.2rem;color:var(--dim)}
.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1.4rem 2rem;
align-items:end}
.grid:empty{display:none}
.grid+.scroll,.scroll+.grid{margin-top:1.2rem}
figure{margin:0;min-width:0;break-inside:avoid}
.chart{max-width:46rem}
.chart figcaption{display:flex;flex-wrap:wrap;align-items:baseline;gap:.15rem .9rem;margin-bottom:.55rem}
.kind{color:var(--dim);font-size:.8rem}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:0;padding:0;list-style:none;
font-size:.84rem;color:var(--soft)}
.legend li,.run{display:inline-flex;align-items:center;gap:.4rem;min-width:0;overflow-wrap:anywhere}
.legend i,.run i{flex:none;width:1.15rem;height:0;border-top:3px solid var(--c);border-radius:2px}
.legend .d1 i,.run.d1 i{border-top-style:dashed}
.legend .d2 i,.run.d2 i{border-top-style:dotted}
.legend .faint i{opacity:.35}
.legend .best-mark i{border-top:2px dotted var(--soft)}
.legend.blocks i{width:.8rem;height:.8rem;border:0;border-radius:3px;background:var(--c)}
.legend small{color:var(--dim)}
.plot{display:grid;grid-template-columns:3rem minmax(0,1fr);grid-template-rows:13.5rem 1.35rem 1.2rem;
font-size:.76rem;color:var(--dim);font-variant-numeric:tabular-nums}
.ys,.xs{position:relative}
.ys span{position:absolute;right:.6rem;transform:translateY(50%);line-height:1;white-space:nowrap}
.xs{grid-column:2;margin-top:.35rem}
.xs span{position:absolute;transform:translateX(-50%);line-height:1;white-space:nowrap}
.unit{grid-column:2;text-align:center}
svg{display:block;width:100%;height:100%;overflow:visible}
svg path{fill:none;vector-effect:non-scaling-stroke}
.rule{stroke:var(--edge);stroke-width:1}
.mark{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:2 4}
.line{stroke:var(--c);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.line.d1{stroke-dasharray:7 5}
.line.d2{stroke-dasharray:2 5}
.line.faint{stroke-width:1.1;opacity:.4}
.dots{stroke:var(--c);stroke-width:5.5;stroke-linecap:round}
.spot rect{fill:transparent}
.spot:hover rect{fill:var(--accent);opacity:.1}
#tip{position:fixed;z-index:9;pointer-events:none;max-width:20rem;padding:.45rem .65rem;border-radius:8px;
background:var(--ink);color:var(--card);font-size:.8rem;line-height:1.45;white-space:pre-line;overflow-wrap:anywhere;
font-variant-numeric:tabular-nums}
.bar{display:flex;height:2.1rem;margin:.4rem 0 .6rem;border-radius:7px;overflow:hidden;gap:2px}
.bar span{display:flex;align-items:center;justify-content:center;min-width:2px;background:var(--c)}
.bar em{padding:0 .45em;border-radius:99px;font-style:normal;font-size:.78rem;font-weight:600;background:var(--card);
color:var(--ink)}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem;width:100%}
th,td{padding:.38rem .75rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--edge);
unicode-bidi:isolate}
thead th{color:var(--dim);font-weight:500;font-size:.83rem;vertical-align:bottom}
tbody th{font-weight:500}
bdi,code{overflow-wrap:anywhere}
th,td{overflow-wrap:break-word}
.numbers td:not(.words){white-space:nowrap}
td{min-width:4.5rem}
tbody th{min-width:6rem}
tbody tr:last-child>*{border-bottom:0}
tbody tr:hover>*{background-color:var(--raised)}
.numbers td,.numbers thead th:not(:first-child){text-align:right;font-variant-numeric:tabular-nums}
.numbers td.words{text-align:left}
.numbers th:has(.words){text-align:left!important}
.shares{align-self:start}
.narrow{width:auto;min-width:min(100%,26rem)}
.beside{table-layout:fixed;min-width:max(100%,calc(var(--columns)*8.5rem))}
.beside thead th:first-child{width:10rem}
.beside td:not(.words){white-space:normal}
.beside thead th{color:var(--ink);font-size:.9rem}
.best{font-weight:700;color:var(--good)}
.best::after{content:" ★";font-size:.8em}
.differs{background:var(--mark)}
.gauge{background:linear-gradient(to right,var(--gauge) calc(var(--share)*100%),transparent 0) no-repeat .75rem 100%/
calc(100% - 1.5rem) 3px}
code,pre{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{margin:.5rem 0 0;padding:.8rem 1rem;max-height:24rem;overflow:auto;border-radius:8px;background:var(--raised);
white-space:pre-wrap;overflow-wrap:anywhere}
details{margin-top:.9rem}
summary{cursor:pointer;color:var(--accent);font-size:.9rem}
details[open] summary{margin-bottom:.5rem}
.split{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));
gap:1.2rem 2.5rem;align-items:start}
.split h3{margin-top:0}
.split:has(.confusion th:nth-child(11)){grid-template-columns:minmax(0,1fr)}
.matrix figcaption{display:flex;gap:1.2rem;color:var(--dim);font-size:.83rem;margin-bottom:.4rem}
.matrix .axis{margin:0}
.confusion{width:auto;font-variant-numeric:tabular-nums;border-collapse:separate;border-spacing:2px}
.confusion th,.confusion td{border:0}
.confusion thead th span{display:block;max-width:6rem;max-height:9rem;overflow:hidden;text-overflow:ellipsis}
.confusion:has(th:nth-child(8)) thead th span{writing-mode:vertical-rl;white-space:nowrap}
.confusion tbody th{max-width:11rem;padding:.2rem .5rem;color:var(--soft);font-size:.83rem;vertical-align:middle}
.confusion thead th{padding:.2rem .3rem;text-align:center}
.confusion tbody td{min-width:2.4rem;height:2.4rem;padding:.15rem .35rem;border-radius:5px;text-align:center;
vertical-align:middle;overflow-wrap:normal;
background:color-mix(in srgb,var(--tint) calc(var(--share)*100%),var(--raised))}
.confusion tbody .wrong{--tint:var(--s1)}
.confusion tbody .right{--tint:var(--s0)}
.confusion .strong{color:var(--card);font-weight:600}
.zero{opacity:.35}
.pixels{display:block;width:100%;max-width:32rem;height:auto;image-rendering:pixelated;border:1px solid var(--edge);
border-radius:6px;background:var(--raised)}
.samples{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.2rem,1fr));gap:.9rem}
.samples figure{overflow:hidden;border:1px solid var(--edge);border-radius:10px;background:var(--raised)}
.samples img,.blank{display:block;width:100%;height:8.6rem;object-fit:contain;background:var(--ground)}
.samples.wide{grid-template-columns:repeat(auto-fill,minmax(18rem,1fr))}
.boxed{display:block;width:100%;height:auto;max-height:24rem;background:var(--ground)}
.blank{display:flex;align-items:center;justify-content:center;color:var(--dim);font-size:.8rem}
.samples figcaption{padding:.5rem .65rem .6rem;font-size:.84rem;line-height:1.35}
.samples p{margin:0;overflow-wrap:anywhere}
.samples small{color:var(--dim)}
.samples .place{color:var(--dim);font-size:.76rem}
.truth{font-weight:600}
.ethogram{display:grid;grid-template-columns:minmax(3rem,max-content) minmax(0,1fr);column-gap:.7rem;
margin:1.3rem 0 1.6rem;font-size:.8rem}
.ethogram figcaption,.ethogram .note{grid-column:1/-1;display:flex;gap:.9rem;align-items:baseline;font-size:.95rem;
overflow-wrap:anywhere}
.ethogram .lanes{position:relative;min-width:clamp(4rem,14vw,9rem)}
.ethogram .lanes span{position:absolute;right:0;max-width:100%;transform:translateY(-50%);line-height:1.1;
text-align:right;color:var(--soft);overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.ethogram .xs{min-height:1.3rem;color:var(--dim);font-variant-numeric:tabular-nums}
.ethogram .xs span:first-child{transform:none}
.ethogram .lane{fill:var(--raised)}
.ethogram .spot:hover .lane{fill:var(--edge)}
.ethogram .strip{fill:var(--c)}
.ethogram .truth-strip{fill:var(--soft)}
.ethogram .unlabelled{fill:var(--edge)}
.legend.blocks .truth-mark{background:var(--soft)}
.legend.blocks .unlabelled-mark{background:var(--edge)}
.wrong .answer{font-weight:600;color:var(--bad)}
@media (max-width:600px){
body{font-size:14px}
header,main,footer{padding-left:.7rem;padding-right:.7rem}
section{padding:1rem .9rem}
h1{font-size:1.5rem}
.tiles{grid-template-columns:1fr 1fr}
.tile{padding:.6rem .75rem}
.tile .value{font-size:1.35rem}
th,td{padding:.35rem .5rem}
.beside{min-width:max(100%,calc(var(--columns)*7.5rem))}
.beside thead th:first-child{width:7rem}
}
@media print{
body{background:#fff;font-size:11px}
nav,.skip,#tip{display:none}
section{border:0;padding:.4rem 0;break-inside:auto}
.tile .value{font-size:1.4rem}
.bar,.confusion td,.gauge,.differs,.tile,.badge,.legend i,.ethogram{
  print-color-adjust:exact;-webkit-print-color-adjust:exact}
.scroll,pre{overflow:visible;max-height:none}
tr,.tile,.samples figure{break-inside:avoid}
h2{break-after:avoid}
}
"""

_LIGHT = """--ground:#f4f6f8;--card:#fff;--raised:#f4f6f9;--edge:#dfe4ea;--ink:#1a2029;--soft:#3d4754;--dim:#5d6875;
--accent:#0067a3;--good:#00694c;--good-ground:#dcf3ea;--busy:#8a5200;--busy-ground:#fdf1da;--bad:#b03a00;
--bad-ground:#fde6db;--mark:#fff0cc;--gauge:#7db9dd"""

_DARK = """--ground:#12161b;--card:#1a2027;--raised:#222a33;--edge:#333d49;--ink:#e9edf2;--soft:#c3cbd5;--dim:#9aa5b2;
--accent:#6bbcf5;--good:#4ad6a7;--good-ground:#12372c;--busy:#f2bd55;--busy-ground:#3a2d12;--bad:#ff9a66;
--bad-ground:#41231a;--mark:#453713;--gauge:#3d7ba6"""


def _colours(colours: tuple[str, ...]) -> str:
    return ";".join(f"--s{slot}:{colour}" for slot, colour in enumerate(colours))


def _slots() -> str:
    """The classes of lines, and: over an item of a legend, the other lines step back."""
    count = range(len(LIGHT_COLOURS))
    looks = "".join(f".s{slot}{{--c:var(--s{slot})}}" for slot in count)
    others = "".join(
        f".chart:has(.legend .s{slot}.d{dash}:hover) :is(.line,.dots):not(.s{slot}.d{dash}){{opacity:.12}}"
        for slot in count
        for dash in range(3)
    )
    return looks + others


STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT};{_colours(LIGHT_COLOURS)}}}\n"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_DARK};{_colours(DARK_COLOURS)}}}}}\n"
    f"{_LOOK}{_slots()}\n"
)
