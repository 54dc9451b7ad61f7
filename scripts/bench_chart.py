# SPDX-License-Identifier: BSD-3-Clause
"""The chart of the overlap benchmark as SVG: time / ideal against link speed, one panel for each M.

Lines differ in dash and marker as well as in colour, so that it can be printed in grey.
"""
import math
from xml.sax.saxutils import escape

SERIES = [  # key, name, colour, dash, marker
    ("serial", "serial: one gemm, then one collective", "#767676", "7 4", "square"),
    ("loop", "loop: hand-written, its best chunk count", "#b85600", "2 3", "triangle"),
    ("auto", "auto: starlin", "#0060a8", "", "circle"),
]
PANEL_W, PANEL_H = 250, 190
WIDE = 720  # of the only panel
LEFT, TOP, GAP_X, GAP_Y = 58, 92, 34, 62
STYLE = """text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#222;font-size:12px}
.title{font-size:16px;font-weight:600}.note{fill:#555}.panel{font-weight:600}.tick{fill:#444;font-size:11px}
.grid{stroke:#e2e2e2}.ideal{stroke:#222;stroke-width:1.2}.line{fill:none;stroke-width:2;stroke-linejoin:round}"""


def marker(kind, x, y, colour):
    if kind == "square":
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" fill="#fff" stroke="{colour}" ' \
               'stroke-width="1.6"/>'
    if kind == "triangle":
        return f'<path d="M{x:.1f} {y - 4.5:.1f}l4.5 8h-9z" fill="#fff" stroke="{colour}" stroke-width="1.6"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.8" fill="{colour}" stroke="#fff" stroke-width="0.8"/>'


def text(x, y, content, anchor="start", css="", extra=""):
    css = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{css}{extra}>{escape(content)}</text>'


class Scale:
    """Link speeds on a logarithmic axis, time / ideal on a linear one; the same for all panels."""

    def __init__(self, rows, width):
        self.width = width
        self.speeds = sorted({row["gbps"] for row in rows})
        values = [row[f"{key}_us"] / row["ideal_us"] for row in rows for key, *_ in SERIES if row[f"{key}_us"]]
        # one bad point must not flatten all the others: beyond `top`, lines leave the panel
        self.top = min(3.0, max(1.2, math.ceil(max(values) * 10 + 0.5) / 10))
        self.bottom = max(0.5, min(0.95, math.floor(min(values) * 20 - 0.2) / 20))
        self.step = 0.2 if self.top - self.bottom > 0.8 else 0.1

    def x(self, gbps):
        low, high = math.log(self.speeds[0]), math.log(self.speeds[-1])
        return self.width * (0.5 if high == low else 0.06 + 0.88 * (math.log(gbps) - low) / (high - low))

    def y(self, value):
        return PANEL_H * (self.top - value) / (self.top - self.bottom)


def axes(scale, first_column):
    out = []
    value = math.ceil(scale.bottom / scale.step - 1e-9) * scale.step
    while value <= scale.top + 1e-9:
        y = scale.y(value)
        out.append(f'<path class="{"ideal" if abs(value - 1) < 1e-9 else "grid"}" d="M0 {y:.1f}h{scale.width}"/>')
        if first_column:
            out.append(text(-8, y + 4, f"{value:.1f}", "end", "tick"))
        value += scale.step
    for gbps in scale.speeds:
        x = scale.x(gbps)
        out.append(f'<path stroke="#999" d="M{x:.1f} {PANEL_H}v4"/>')
        out.append(text(x, PANEL_H + 17, f"{gbps:g}", "middle", "tick"))
    return out


def panel(rows, scale, clip):
    out = []
    for key, name, colour, dash, shape in SERIES:
        points = [(scale.x(row["gbps"]), row[f"{key}_us"] / row["ideal_us"]) for row in rows if row[f"{key}_us"]]
        path = "M" + "L".join(f"{x:.1f} {scale.y(value):.1f}" for x, value in points)
        if not points:
            continue
        out.append(f'<path class="line" clip-path="url(#{clip})" stroke="{colour}" stroke-dasharray="{dash or "none"}" '
                   f'd="{path}"><title>{escape(name)}</title></path>')
        for x, value in points:
            if value <= scale.top:
                out.append(marker(shape, x, scale.y(value), colour))
            else:  # beyond the panel: the figure instead
                out.append(text(x, 11, f"↑{value:.1f}", "middle", "tick"))
    return out


def legend(y):
    out, x = [], LEFT
    for _, name, colour, dash, shape in SERIES:
        out.append(f'<path class="line" stroke="{colour}" stroke-dasharray="{dash or "none"}" d="M{x} {y}h34"/>')
        out.append(marker(shape, x + 17, y, colour))
        out.append(text(x + 41, y + 4, name))
        x += 41 + 6.3 * len(name) + 26
    return out, x


def draw(rows, about):
    """SVG text. rows: results with gbps, m and the times; about: the machine."""
    ms = sorted({row["m"] for row in rows})
    columns = min(3, len(ms))
    lines = -(-len(ms) // columns)
    panel_w = WIDE if columns == 1 else PANEL_W
    scale = Scale(rows, panel_w)
    key, legend_end = legend(68)
    width = max(LEFT + columns * panel_w + (columns - 1) * GAP_X + 22, legend_end)
    height = TOP + lines * (PANEL_H + GAP_Y) + 26
    first = rows[0]
    on_gpu = first["k"] >= 8192 and about["gpus"]
    where = about["gpus"][0].split(",")[0] if on_gpu else f"{about['cpu']}, {about['cores']} cores"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
           f'height="{height:.0f}" role="img"><style>{STYLE}</style>',
           '<title>Time / ideal against link speed</title>',
           f'<defs><clipPath id="in"><rect y="0" width="{panel_w}" height="{PANEL_H}"/></clipPath></defs>',
           f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
           text(LEFT, 26, "A row-parallel linear layer: time / ideal against link speed", css="title"),
           text(LEFT, 46, f"{first['dtype']}, N={first['n']}, K={first['k']}; {where}; modelled link; "
                          "ideal = the longer of gemm and collective, each alone", css="note"), *key]
    for i, m in enumerate(ms):
        x, y = LEFT + (i % columns) * (panel_w + GAP_X), TOP + 22 + (i // columns) * (PANEL_H + GAP_Y)
        of_m = sorted((row for row in rows if row["m"] == m), key=lambda row: row["gbps"])
        out.append(f'<g transform="translate({x} {y})">')
        out.append(text(0, -9, f"M = {m}", css="panel"))
        out += axes(scale, i % columns == 0) + panel(of_m, scale, "in")
        out.append("</g>")
    middle = TOP + 22 + PANEL_H / 2
    for line in range(lines):
        y = middle + line * (PANEL_H + GAP_Y)
        out.append(text(18, y, "time / ideal", "middle", "note", f' transform="rotate(-90 18 {y:.1f})"'))
    centre = LEFT + (columns * panel_w + (columns - 1) * GAP_X) / 2
    out.append(text(centre, height - 22, "link speed in GB/s (logarithmic)", "middle", "note"))
    out.append("</svg>\n")
    return "\n".join(out)
