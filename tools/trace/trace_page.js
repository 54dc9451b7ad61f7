// SPDX-License-Identifier: BSD-3-Clause
// The page's behaviour: model, drawing, controls (hover, keys, the report beside the timeline, the comparison
// table), and a self-test that writes what it saw into the document when the address ends in #selftest. Times are microseconds from each timeline's first instant; the visible range counts
// from the start of the chosen step, so that timelines under each other compare. Drawing touches only what is
// visible: lanes by scroll position, spans by binary search.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const KIND = ['gemm', 'collective', 'rowwise'], COMM = 1, ROWWISE = 2, LINK = 1000; // names of stages come with the data
const ROW = { group: 30, rank: 24, lane: 28, gap: 10 }, AXIS = 26, LEFT = 92;
const canvas = $('canvas'), view = $('view'), context = canvas.getContext('2d');
let rows = [], height = 0, width = 0, range = { first: 0, last: 1 }, selected = null, hovered = null, active = 0;
let colour = {}, pattern = {}, waiting = false, step = -1; // step -1: everything

// ---------------------------------------------------------------- figures
function time(us) {
  const size = Math.abs(us);
  if (size >= 1e6) return (us / 1e6).toFixed(3) + ' s';
  if (size >= 1e3) return (us / 1e3).toFixed(size >= 1e5 ? 1 : size >= 1e4 ? 2 : 3) + ' ms';
  return (Math.abs(us) < 0.05 ? 0 : us).toFixed(size >= 100 ? 0 : 1) + ' µs';
}
function percent(value, digits = 1) { return value === null ? '-' : (Math.abs(value) < 0.5 / 10 ** digits ? 0 : value).toFixed(digits) + ' %'; }
function bytes(n) {
  const unit = ['B', 'KiB', 'MiB', 'GiB'];
  let i = 0;
  while (n >= 1024 && i < 3) { n /= 1024; i++; }
  return (i ? n.toFixed(1) : n) + ' ' + unit[i];
}
function busy(spans) { // when anything is computed
  const out = [];
  for (const s of spans.filter(s => s.kind !== COMM).sort((a, b) => a.start - b.start)) {
    const last = out[out.length - 1];
    if (last && s.start <= last[1]) last[1] = Math.max(last[1], s.end);
    else out.push([s.start, s.end]);
  }
  return out;
}
function lowerBound(array, value, key) { // first index whose key is above value
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(array[middle]) > value) high = middle; else low = middle + 1;
  }
  return low;
}
function parts(s, work) { // a collective cut into hidden and exposed parts
  const out = [];
  let at = s.start;
  for (let i = lowerBound(work, s.start, w => w[1]); i < work.length && work[i][0] < s.end; i++) {
    const first = Math.max(work[i][0], s.start), last = Math.min(work[i][1], s.end);
    if (first > at) out.push([at, first, false]);
    out.push([first, last, true]);
    at = last;
  }
  if (at < s.end) out.push([at, s.end, false]);
  return out;
}

// ------------------------------------------------------------------ model
function laneName(lane) { return lane < LINK ? 'lane ' + lane : lane > LINK ? 'link ' + (lane - LINK) : 'link'; }
let nspans = 0, nrowwise = 0;
data.groups.forEach((group, g) => {
  group.causeOf = new Map();
  if (group.report) for (const c of group.report.collectives) group.causeOf.set(c[0] + '.' + c[1], c);
  group.ranks.forEach((rank, r) => {
    rank.spans = rank.spans.map(a => ({ g, r, kind: a[0], lane: a[1], sequence: a[2], chunk: a[3], grid: a[4], ready: a[5],
      launch: a[6], start: a[7], end: a[8], bytes: a[9], rows: a[10], op: data.names[a[11]], stage: data.names[a[12]] }));
    rank.work = busy(rank.spans);
    const chunks = new Map(), lanes = new Map();
    for (const s of rank.spans) {
      nspans++;
      const key = s.sequence + '.' + s.chunk;
      if (!chunks.has(key)) chunks.set(key, []);
      chunks.get(key).push(s);
      if (s.kind === ROWWISE) nrowwise++;
      if (!lanes.has(s.lane)) lanes.set(s.lane, []);
      lanes.get(s.lane).push(s);
    }
    for (const stages of chunks.values()) {
      stages.sort((x, y) => x.start - y.start);
      stages.forEach((s, i) => {
        s.before = i ? stages[i - 1] : null; s.next = stages[i + 1] || null;
        if (s.kind !== COMM) return;
        s.parts = parts(s, rank.work);
        s.exposed = s.parts.reduce((sum, p) => sum + (p[2] ? 0 : p[1] - p[0]), 0);
      });
    }
    rank.lanes = [...lanes.keys()].sort((a, b) => a - b).map(lane => {
      const spans = lanes.get(lane).sort((a, b) => a.start - b.start);
      let until = -Infinity;
      spans.forEach((s, i) => { until = Math.max(until, s.end); s.until = until; s.index = i; });
      return { lane, link: lane >= LINK, spans, name: laneName(lane) };
    });
    rank.last = Math.max(0, ...rank.lanes.map(l => l.spans.length ? l.spans[l.spans.length - 1].until : 0));
  });
  group.last = Math.max(1, ...group.ranks.map(rank => rank.last));
  const steps = group.report ? group.report.steps : [];
  group.typical = steps.map((s, i) => i).sort((a, b) => steps[a].time - steps[b].time)[steps.length >> 1] || 0;
});
function shift(group) { // where the chosen step begins
  const steps = group.report ? group.report.steps : [];
  return step < 0 || !steps.length ? 0 : steps[Math.min(step, steps.length - 1)].start;
}
function layout() { // lanes grow into the room there is
  rows = [];
  const nranks = data.groups.reduce((n, g) => n + g.ranks.length, 0);
  const nlanes = data.groups.reduce((n, g) => n + g.ranks.reduce((m, rank) => m + rank.lanes.length, 0), 0);
  const fixed = AXIS + 4 + nranks * (ROW.rank + ROW.gap) + (data.groups.length > 1 ? data.groups.length * ROW.group : 0);
  ROW.lane = Math.max(28, Math.min(52, Math.floor((view.clientHeight - fixed) / Math.max(1, nlanes))));
  let y = AXIS + 4;
  const add = (type, values) => { rows.push({ type, y, h: ROW[type], ...values }); y += ROW[type]; };
  data.groups.forEach((group, g) => {
    if (data.groups.length > 1) add('group', { g });
    group.ranks.forEach((rank, r) => {
      add('rank', { g, r });
      for (const lane of rank.lanes) add('lane', { g, r, lane });
      y += ROW.gap;
    });
  });
  height = y;
}
const limits = () => ({ first: Math.min(0, ...data.groups.map(g => -shift(g))), last: Math.max(...data.groups.map(g => g.last - shift(g))) });
function setRange(first, last) {
  const limit = limits(), most = (limit.last - limit.first) * 1.1;
  const length = Math.min(Math.max(last - first, 0.5), most);
  first = Math.max(limit.first - length * 0.5, Math.min(first, limit.last - length * 0.5));
  range = { first, last: first + length };
  redraw();
}
function fit() {
  let last = 0;
  for (const group of data.groups) {
    const steps = group.report ? group.report.steps : [];
    last = Math.max(last, step < 0 || !steps.length ? group.last : steps[Math.min(step, steps.length - 1)].time);
  }
  setRange(-0.01 * last, last * 1.03);
  $('all').disabled = step < 0;
}
function chooseStep(k) {
  const most = Math.max(...data.groups.map(g => g.report ? g.report.steps.length : 0)) - 1;
  if (most < 0) return;
  step = Math.max(0, Math.min(k, most));
  fit();
  say(`Step ${step + 1} of ${most + 1}`);
}

// ---------------------------------------------------------------- drawing
function makePattern(base, edge, draw) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const c = tile.getContext('2d');
  c.fillStyle = base; c.fillRect(0, 0, 8, 8);
  c.strokeStyle = c.fillStyle = edge;
  draw(c);
  return context.createPattern(tile, 'repeat');
}
function slash(c) { c.beginPath(); c.moveTo(-1, 9); c.lineTo(9, -1); c.moveTo(-1, 1); c.lineTo(1, -1); c.moveTo(7, 9); c.lineTo(9, 7); c.stroke(); }
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'panel', 'text', 'muted', 'line', 'gemm', 'gemm-edge', 'hidden', 'hidden-edge', 'exposed', 'exposed-edge', 'rowwise', 'rowwise-edge', 'focus'])
    colour[name] = style.getPropertyValue('--' + name).trim();
  pattern.gemm = colour.gemm;
  pattern.hidden = makePattern(colour.hidden, colour['hidden-edge'], c => { c.lineWidth = 0.6; slash(c); });
  pattern.exposed = makePattern(colour.exposed, colour['exposed-edge'], c => { c.lineWidth = 1.1; slash(c); c.translate(8, 0); c.scale(-1, 1); slash(c); });
  pattern.rowwise = makePattern(colour.rowwise, colour['rowwise-edge'], c => { c.fillRect(1, 1, 1.5, 1.5); c.fillRect(5, 5, 1.5, 1.5); });
}
const xOf = (t, g) => LEFT + (t - shift(data.groups[g]) - range.first) * (width - LEFT) / (range.last - range.first);
function redraw() {
  if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); }
}
function resize() {
  const ratio = window.devicePixelRatio || 1;
  width = view.clientWidth;
  const h = view.clientHeight;
  layout();
  canvas.width = width * ratio; canvas.height = h * ratio;
  canvas.style.height = h + 'px';
  $('spacer').style.height = Math.max(0, height - h) + 'px';
  draw();
}
function draw() {
  const ratio = window.devicePixelRatio || 1, top = view.scrollTop, h = view.clientHeight;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colour.bg; context.fillRect(0, 0, width, h);
  context.font = '12px ' + getComputedStyle(document.body).fontFamily;
  context.textBaseline = 'middle';
  const ticks = axisTicks();
  context.strokeStyle = colour.line; context.lineWidth = 1; context.beginPath();
  for (const t of ticks) { const x = Math.round(tickX(t)) + 0.5; context.moveTo(x, AXIS); context.lineTo(x, h); }
  context.stroke();
  let drawn = 0;
  for (const row of rows) {
    const y = row.y - top;
    if (y + row.h < AXIS || y > h) continue;
    if (row.type === 'lane') drawn += drawLane(row, y); else drawHead(row, y);
  }
  drawArrows(top, h);
  drawAxis(ticks);
  return drawn;
}
const tickX = t => LEFT + (t - range.first) * (width - LEFT) / (range.last - range.first);
function axisTicks() {
  const rough = (range.last - range.first) / Math.max(2, (width - LEFT) / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = power * [1, 2, 5, 10].find(f => f * power >= rough), ticks = [];
  for (let i = Math.ceil(range.first / size); i * size <= range.last; i++) ticks.push(i * size);
  return ticks;
}
function drawAxis(ticks) {
  context.fillStyle = colour.bg; context.fillRect(0, 0, width, AXIS);
  context.fillStyle = colour.muted; context.textAlign = 'center';
  for (const t of ticks) if (tickX(t) > LEFT - 2 && tickX(t) < width - 24) context.fillText(time(t), tickX(t), AXIS / 2);
  context.textAlign = 'left';
  context.fillText(step < 0 ? 'time' : 'step ' + (step + 1), 18, AXIS / 2);
  context.strokeStyle = colour.line; context.beginPath(); context.moveTo(0, AXIS + 0.5); context.lineTo(width, AXIS + 0.5); context.stroke();
}
function drawHead(row, y) {
  const group = data.groups[row.g];
  context.textAlign = 'left'; context.fillStyle = row.type === 'group' ? colour.text : colour.muted;
  const font = context.font;
  if (row.type === 'group') context.font = '600 14px ' + getComputedStyle(document.body).fontFamily;
  let text = row.type === 'group' ? group.title : group.ranks[row.r].name;
  if (row.type === 'group' && group.report)
    text += `  ·  ${time(group.report.median)}, ${group.report.mean.hidden === null ? 'nothing to hide' : percent(group.report.mean.hidden, 0) + ' hidden'}`;
  const middle = y + row.h / 2 + (row.type === 'group' ? 0 : 2);
  const ink = context.fillStyle;
  context.fillStyle = colour.bg; context.fillRect(0, middle - 9, 22 + context.measureText(text).width, 18);
  context.fillStyle = ink; context.fillText(text, 18, middle);
  context.font = font;
}
function label(text, x0, x1, y) {
  const from = Math.max(x0, LEFT), room = Math.min(x1, width) - from;
  const w = context.measureText(text).width;
  if (w + 10 > room) return false;
  context.fillStyle = colour.bg; context.globalAlpha = 0.78;
  context.fillRect(from + 3, y - 8, w + 5, 16);
  context.globalAlpha = 1;
  context.fillStyle = colour.text; context.textAlign = 'left'; context.fillText(text, from + 5.5, y + 0.5);
  return true;
}
function box(x0, x1, y, h, name, least) { // `least`: a lone span stays visible, crowded ones keep their share
  x0 = Math.max(x0, LEFT); x1 = Math.min(x1, width + 2);
  context.fillStyle = pattern[name]; context.fillRect(x0, y, Math.max(x1 - x0, least), h);
  if (x1 - x0 > 3) { context.strokeStyle = colour[name + '-edge']; context.lineWidth = 1; context.strokeRect(x0 + 0.5, y + 0.5, x1 - x0 - 1, h - 1); }
}
function drawLane(row, y) {
  const spans = row.lane.spans, base = shift(data.groups[row.g]), pad = 3, h = row.h - 2 * pad;
  context.fillStyle = colour.panel; context.fillRect(LEFT, y + pad, width - LEFT, h);
  let drawn = 0, until = -Infinity;
  const first = lowerBound(spans, range.first + base, s => s.until);
  const visible = [];
  for (let i = first; i < spans.length && spans[i].start <= range.last + base; i++) visible.push(spans[i]);
  if (visible.length > (width - LEFT) / 2) { drawDense(row, visible, y + pad, h); drawn = visible.length; visible.length = 0; }
  if (row.lane.link && visible.length < 400) for (const s of visible) drawWait(s, y + row.h / 2);
  for (const s of visible) {
    drawn++;
    for (const part of s.parts || [[s.start, s.end, null]]) {
      const name = s.kind === COMM ? (part[2] ? 'hidden' : 'exposed') : KIND[s.kind];
      const x0 = xOf(part[0], row.g), x1 = xOf(part[1], row.g);
      if (x1 < LEFT || x0 > width) continue;
      box(x0, x1, y + pad, h, name, x0 - until > 2 ? 1 : 0.05);
      until = x1;
    }
    const x0 = xOf(s.start, row.g), x1 = xOf(s.end, row.g);
    if (x1 - x0 > 26 && x1 > LEFT) {
      const long = `${s.stage} ${s.chunk}`;
      label(long, x0, x1, y + row.h / 2) || label(`${s.chunk}`, x0, x1, y + row.h / 2);
    }
    if (s === selected || s === hovered) {
      context.strokeStyle = s === selected ? colour.focus : colour.text; context.lineWidth = 2;
      context.strokeRect(Math.max(x0, LEFT) - 1, y + pad - 1, Math.max(x1 - Math.max(x0, LEFT), 1) + 2, h + 2);
    }
  }
  context.fillStyle = colour.bg; context.fillRect(0, y, LEFT, row.h);
  context.fillStyle = colour.text; context.textAlign = 'left'; context.fillText(row.lane.name, 30, y + row.h / 2);
  return drawn;
}
function causeOf(s) { // what the report says of a collective; it knows one rank
  const group = data.groups[s.g];
  return s.r === group.report_rank ? group.causeOf.get(s.sequence + '.' + s.chunk) : null;
}
function drawDense(row, visible, y, h) { // more spans than pixels: each column shows the shares of its time
  const n = Math.ceil(width - LEFT), shares = { gemm: new Float32Array(n), hidden: new Float32Array(n), exposed: new Float32Array(n), rowwise: new Float32Array(n) };
  for (const s of visible)
    for (const part of s.parts || [[s.start, s.end, null]]) {
      const share = shares[s.kind === COMM ? (part[2] ? 'hidden' : 'exposed') : KIND[s.kind]];
      const x0 = Math.max(0, xOf(part[0], row.g) - LEFT), x1 = Math.min(n, xOf(part[1], row.g) - LEFT);
      for (let x = Math.floor(x0); x < x1; x++) share[x] += Math.min(x + 1, x1) - Math.max(x, x0);
    }
  const below = new Float32Array(n);
  for (const name of ['exposed', 'hidden', 'gemm', 'rowwise']) {
    context.beginPath();
    for (let x = 0; x < n; x++) {
      const part = Math.min(shares[name][x], 1 - below[x]) * h;
      if (part > 0) context.rect(LEFT + x, y + h - below[x] * h - part, 1, part);
      below[x] += part / h;
    }
    context.fillStyle = pattern[name]; context.fill();
  }
}
function drawWait(s, y) {
  if (s.kind !== COMM || !s.before || s.start - s.before.end < 1e-3) return;
  const x0 = Math.max(LEFT, xOf(s.before.end, s.g)), x1 = xOf(s.start, s.g);
  if (x1 - x0 < 4) return;
  context.strokeStyle = colour.muted; context.lineWidth = 1.2; context.setLineDash([4, 3]);
  context.beginPath(); context.moveTo(x0, y); context.lineTo(x1, y); context.stroke();
  context.setLineDash([]);
  const known = causeOf(s), text = 'waits ' + time(s.start - s.before.end);
  (known && label(`${time(s.start - s.before.end)}: ${data.causes[known[4]]}`, x0, x1, y)) || label(text, x0, x1, y);
}
function rowOf(s) { return rows.find(row => row.type === 'lane' && row.g === s.g && row.r === s.r && row.lane.lane === s.lane); }
function drawArrows(top, h) {
  for (const s of [selected, hovered]) {
    if (!s) continue;
    for (const [one, two] of [[s.before, s], [s, s.next]]) if (one && two && (one.kind === COMM) !== (two.kind === COMM)) drawArrow(one, two, top, h);
  }
}
function drawArrow(one, two, top, h) {
  const from = rowOf(one), to = rowOf(two), x0 = xOf(one.end, one.g), x1 = xOf(two.start, two.g);
  const y0 = from.y + from.h / 2 - top, y1 = to.y + 3 - top;
  if (x1 < LEFT || x0 > width || y1 < AXIS || y0 > h) return;
  context.strokeStyle = context.fillStyle = colour.text; context.lineWidth = 1.4;
  context.beginPath(); context.moveTo(x0, y0); context.bezierCurveTo(x0 + 14, y1, x1, y0, x1, y1); context.stroke();
  context.beginPath(); context.moveTo(x1, y1); context.lineTo(x1 - 4, y1 - 7); context.lineTo(x1 + 4, y1 - 7); context.fill();
}

// ------------------------------------------------------------ hover, focus
function describe(s) {
  const group = data.groups[s.g], lines = [`${s.stage}, ${s.op} ${s.sequence}, chunk ${s.chunk}`,
    `${group.ranks[s.r].name}, ${laneName(s.lane)}`,
    `${time(s.start - shift(group))} to ${time(s.end - shift(group))}: ${time(s.end - s.start)}`];
  if (s.rows) lines.push(`${s.rows} rows` + (s.bytes ? `, ${bytes(s.bytes)}` : ''));
  if (s.kind === COMM) {
    const length = s.end - s.start, hidden = length - s.exposed;
    if (s.bytes && length > 0) lines.push(`${(s.bytes / length / 1e3).toFixed(2)} GB/s of payload`);
    lines.push(`hidden ${time(hidden)} (${length > 0 ? (100 * hidden / length).toFixed(0) : 0} %), exposed ${time(s.exposed)}`);
    if (s.before) {
      const known = causeOf(s);
      lines.push(`starts ${time(s.start - s.before.end)} after its ${s.before.stage}` + (known && known[3] > 0 ? `: ${data.causes[known[4]]}` : ''));
    }
  } else if (s.start - s.ready > 0.05) lines.push(`started ${time(s.start - s.ready)} after its inputs were ready`);
  if (s.grid) lines.push(`${s.grid} CTAs`);
  return lines.join('\n');
}
function say(text) { $('status').textContent = text; }
function hit(x, y) {
  y += view.scrollTop;
  const row = rows.find(o => o.type === 'lane' && y >= o.y && y < o.y + o.h);
  if (!row || x < LEFT) return null;
  const scale = (range.last - range.first) / (width - LEFT), slack = 2 * scale;
  const t = range.first + (x - LEFT) * scale + shift(data.groups[row.g]);
  let best = null, distance = slack;
  for (let i = lowerBound(row.lane.spans, t - slack, s => s.until); i < row.lane.spans.length; i++) {
    const s = row.lane.spans[i];
    if (s.start > t + slack) break;
    const d = t < s.start ? s.start - t : t > s.end ? t - s.end : 0;
    if (d <= distance) { best = s; distance = d; if (d === 0) break; }
  }
  return best;
}
function hover(x, y) {
  const s = hit(x, y), tip = $('tip'), box = view.getBoundingClientRect();
  if (s !== hovered) { hovered = s; redraw(); }
  tip.hidden = !s;
  if (!s) return;
  tip.textContent = describe(s);
  const left = Math.min(box.left + x + 14, innerWidth - tip.offsetWidth - 8);
  const below = box.top + y + 18;
  tip.style.left = Math.max(4, left) + 'px';
  tip.style.top = (below + tip.offsetHeight > innerHeight - 8 ? box.top + y - tip.offsetHeight - 10 : below) + 'px';
}
function select(s) {
  if (!s) return;
  selected = s;
  const base = shift(data.groups[s.g]), length = range.last - range.first;
  if (s.end - base < range.first || s.start - base > range.last) setRange((s.start + s.end) / 2 - base - length / 2, (s.start + s.end) / 2 - base + length / 2);
  const row = rowOf(s);
  if (row.y - AXIS < view.scrollTop) view.scrollTop = row.y - AXIS - 30;
  else if (row.y + row.h > view.scrollTop + view.clientHeight) view.scrollTop = row.y + row.h - view.clientHeight + 10;
  if (s.g !== active) showReport(s.g);
  say(describe(s).replace(/\n/g, ' · '));
  redraw();
}
function neighbour(by) {
  if (!selected) { const row = rows.find(o => o.type === 'lane' && o.lane.spans.length); select(row && firstVisible(row)); return; }
  select(rowOf(selected).lane.spans[selected.index + by]);
}
function firstVisible(row) {
  const i = lowerBound(row.lane.spans, range.first + shift(data.groups[row.g]), s => s.until);
  return row.lane.spans[Math.min(i, row.lane.spans.length - 1)];
}
function otherLane() {
  const lanes = rows.filter(o => o.type === 'lane' && o.lane.spans.length);
  if (!lanes.length) return;
  const row = lanes[(selected ? lanes.indexOf(rowOf(selected)) + 1 : 0) % lanes.length];
  const at = selected ? selected.start - shift(data.groups[selected.g]) + shift(data.groups[row.g]) : -Infinity;
  const i = lowerBound(row.lane.spans, at, s => s.until);
  select(row.lane.spans[Math.min(i, row.lane.spans.length - 1)]);
}
function zoom(factor, at) {
  if (at === undefined) at = (range.first + range.last) / 2;
  setRange(at - (at - range.first) * factor, at + (range.last - at) * factor);
}
function pan(part) { const by = part * (range.last - range.first); setRange(range.first + by, range.last + by); }
const KEYS = 'Arrows pan · + − zoom · , . previous and next task · ; next lane · n p steps · 0 everything · t light or dark · Esc nothing selected · mouse: wheel zooms, Shift+wheel and dragging pan';
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = { '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), '0': everything, n: () => chooseStep(step + 1),
    p: () => chooseStep(step - 1), t: toggleTheme, '?': () => say(KEYS), ',': () => neighbour(-1), '.': () => neighbour(1), ';': otherLane,
    Escape: () => { selected = null; $('tip').hidden = true; redraw(); } };
  if (document.activeElement === view) Object.assign(actions, { ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
    ArrowUp: () => { view.scrollTop -= 60; }, ArrowDown: () => { view.scrollTop += 60; }, Home: () => setRange(limits().first, limits().first + range.last - range.first),
    End: () => setRange(limits().last - (range.last - range.first), limits().last) });
  const action = actions[event.key];
  if (action) { action(); event.preventDefault(); }
}
function everything() { step = -1; fit(); }
function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  readColours(); redraw();
}
function toggleTheme() { applyTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'); }

// ----------------------------------------------------------------- report
function element(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}
function table(head, body, caption) {
  const t = element('table');
  if (caption) t.setAttribute('aria-label', caption);
  const tr = t.appendChild(element('thead')).appendChild(element('tr'));
  for (const text of head) tr.appendChild(element('th', text)).scope = 'col';
  const tbody = t.appendChild(element('tbody'));
  for (const cells of body) {
    const line = tbody.appendChild(element('tr', undefined, cells.className));
    for (const text of cells) line.appendChild(text instanceof Node ? element('td') : element('td', text)).append(...(text instanceof Node ? [text] : []));
  }
  return t;
}
const FILLS = ['45deg', '135deg', '90deg', '0deg'];
function bar(mean) {
  const e = element('div', undefined, 'bar'), total = mean.ideal + mean.exposed.reduce((sum, v) => sum + Math.max(v, 0), 0);
  const parts = [['ideal', mean.ideal, 'var(--gemm)']];
  mean.exposed.forEach((v, cause) => { if (v > 0) parts.push([data.causes[cause], v, `repeating-linear-gradient(${FILLS[cause % 4]}, var(--exposed-edge) 0 1.5px, var(--exposed) 1.5px ${4 + 2 * (cause % 3)}px)`]); });
  for (const [name, v, background] of parts) {
    const i = e.appendChild(element('i'));
    i.style.cssText = `flex: ${v / total} 0 0; background: ${background}`;
    i.title = `${name}: ${time(v)}`;
  }
  e.setAttribute('role', 'img');
  e.setAttribute('aria-label', parts.map(p => `${p[0]} ${time(p[1])}`).join(', '));
  return e;
}
function showReport(g) {
  active = g;
  const aside = $('report'), group = data.groups[g], report = group.report;
  aside.replaceChildren();
  if (data.groups.length > 1) aside.append(element('h2', group.title));
  if (!report) { aside.append(element('p', 'This timeline has no report.', 'small')); return; }
  const mean = report.mean, beyond = mean.time - mean.ideal;
  aside.append(element('div', mean.hidden === null ? '–' : percent(mean.hidden), 'big'), element('div', mean.hidden === null ? 'there is nothing to hide' : 'of the communication is hidden' + (mean.hidden < -0.05 ? ': slower than one after the other' : ''), 'small'), bar(mean));
  aside.append(table(['Time', 'mean', 'of time'], [
    ['step', time(mean.time), '100 %'], ['ideal', time(mean.ideal), percent(100 * mean.ideal / mean.time)],
    ['computing alone', time(mean.compute), ''], ['communication alone', time(mean.comm), ''], ['both at once', time(mean.beside), percent(100 * mean.beside / mean.time)]], 'Times'));
  aside.append(element('div', `${report.steps.length} steps: min ${time(report.min)}, median ${time(report.median)}, max ${time(report.max)}`, 'small'));
  if (mean.slowdown > 0) aside.append(element('div', `gemms run at ${(100 / mean.slowdown).toFixed(0)} % of their speed beside a collective`, 'small'));
  aside.append(element('h2', `Beyond the ideal: ${time(beyond)}`));
  const causes = mean.exposed.map((v, cause) => [data.causes[cause], time(v), mean.time > 0 ? percent(100 * v / mean.time) : '', v])
    .filter(c => Math.abs(c[3]) >= 0.05).sort((a, b) => b[3] - a[3]).map(c => c.slice(0, 3));
  const sum = ['sum', time(beyond), percent(100 * beyond / mean.time)];
  sum.className = 'sum';
  aside.append(table(['Cause', 'mean', 'of time'], [...causes, sum], 'Causes'));
  const shown = report.steps[Math.min(Math.max(step, 0) || group.typical, report.steps.length - 1)];
  const lines = report.collectives.filter(c => shown && c[0] >= shown.sequence && c[0] < shown.sequence + shown.operators);
  aside.append(element('h2', 'Collectives of one step'));
  aside.append(table(['Chunk', 'waited', 'time', 'exposed'], lines.slice(0, 24).map(c => [(shown.operators > 1 ? c[0] + '.' : '') + c[1] + (c[3] > 0.05 ? ` (${data.causes[c[4]]})` : ''), time(c[3]), time(c[2]), time(c[5])]), 'Collectives'));
  if (lines.length > 24) aside.append(element('div', `and ${lines.length - 24} more`, 'small'));
  aside.append(element('h2', 'Lanes'));
  aside.append(table(['Lane', 'busy', 'idle', 'used'], report.lanes.map(l => [laneName(l[0]), time(l[1]), time(l[2]), percent(100 * l[1] / (l[1] + l[2] || 1))]), 'Lanes'));
  aside.append(element('h2', 'Configuration'));
  aside.append(element('div', `${report.rows.length} chunk${report.rows.length === 1 ? '' : 's'}: ${report.rows.join(', ')} rows` + (report.ctas ? `; collectives on ${report.ctas} CTAs` : ''), 'small'));
  if (report.fallback) aside.append(element('div', 'Not as asked: ' + report.fallback, 'small'));
  aside.append(element('div', report.configuration || group.subtitle, 'small'));
  if (data.groups.length > 1) compare();
}
function compare() {
  const best = Math.min(...data.groups.map(g => g.report ? g.report.median : Infinity));
  const body = data.groups.map((group, g) => {
    const name = element('button', group.title), r = group.report;
    name.onclick = () => showReport(g);
    const causes = r ? r.mean.exposed.map((v, i) => [v, data.causes[i]]).sort((a, b) => b[0] - a[0]) : [];
    const cells = r ? [name, time(r.median), (r.median / best).toFixed(3) + ' ×', time(r.mean.ideal), r.mean.hidden === null ? '–' : percent(r.mean.hidden), time(r.mean.time - r.mean.ideal), causes[0][0] > 0 ? causes[0][1] : ''] : [name, '', '', '', '', '', ''];
    cells.className = g === active ? 'chosen' : '';
    return cells;
  });
  $('compare').hidden = false;
  $('compare').replaceChildren(table(['Timeline', 'median', 'to best', 'ideal', 'hidden', 'beyond ideal', 'mostly because'], body, 'Comparison'));
}

// ------------------------------------------------------------------ start
function selfTest() { // what a test wants to know, as JSON in the document
  const first = kind => rows.flatMap(o => o.type === 'lane' ? o.lane.spans : []).find(s => s.kind === kind);
  const at = s => { const row = rowOf(s); select(s); draw(); return [(Math.max(xOf(s.start, s.g), LEFT) + Math.min(xOf(s.end, s.g), width)) / 2, row.y + row.h / 2 - view.scrollTop]; };
  const text = s => { if (!s) return ''; hover(...at(s)); return $('tip').hidden ? '' : $('tip').textContent; };
  const result = { groups: data.groups.length, ranks: data.groups.map(g => g.ranks.length), lanes: rows.filter(o => o.type === 'lane').length, spans: nspans,
    step: step, gemm: text(first(0)), collective: text(first(1)), report: $('report').textContent, compare: $('compare').textContent, resources: performance.getEntriesByType('resource').map(e => e.name) };
  everything(); view.scrollTop = 0; draw();
  const begin = performance.now(), n = 20;
  let drawn = 0;
  for (let i = 0; i < n; i++) { pan(0.01); drawn = Math.max(drawn, draw()); }
  result.draw_ms = (performance.now() - begin) / n; result.drawn = drawn;
  const before = range.last - range.first; zoom(0.5); result.zoomed = (range.last - range.first) / before;
  view.focus(); result.focus = document.activeElement === view;
  const position = range.first; view.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })); result.panned = range.first > position;
  toggleTheme(); result.theme = document.documentElement.dataset.theme; toggleTheme();
  const pre = element('pre', JSON.stringify(result)); pre.id = 'selftest'; document.body.append(pre);
}
$('title').textContent = data.title;
$('subtitle').textContent = data.groups.length === 1 ? data.groups[0].subtitle : `${data.groups.length} timelines on one scale`;
$('legend-rowwise').hidden = nrowwise === 0;
const dark = matchMedia('(prefers-color-scheme: dark)');
applyTheme(dark.matches ? 'dark' : 'light');
dark.addEventListener('change', () => applyTheme(dark.matches ? 'dark' : 'light'));
if (data.groups.some(g => g.report && g.report.steps.length)) step = data.groups[0].typical;
showReport(0);
resize(); fit();
new ResizeObserver(() => resize()).observe(view);
view.addEventListener('scroll', redraw);
view.addEventListener('wheel', event => {
  event.preventDefault();
  const scale = (range.last - range.first) / (width - LEFT), sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (sideways) { const by = (event.deltaX || event.deltaY) * scale; setRange(range.first + by, range.last + by); }
  else zoom(Math.exp(event.deltaY * 0.0015), range.first + (event.clientX - view.getBoundingClientRect().left - LEFT) * scale);
}, { passive: false });
let drag = null;
view.addEventListener('pointerdown', event => {
  drag = { x: event.clientX, y: event.clientY, first: range.first, last: range.last, top: view.scrollTop, moved: false };
  view.setPointerCapture(event.pointerId);
});
view.addEventListener('pointermove', event => {
  const box = view.getBoundingClientRect();
  if (!drag) return hover(event.clientX - box.left, event.clientY - box.top);
  drag.moved = drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 3;
  if (!drag.moved) return;
  view.classList.add('dragging'); $('tip').hidden = true;
  const by = (drag.x - event.clientX) * (drag.last - drag.first) / (width - LEFT);
  setRange(drag.first + by, drag.last + by);
  view.scrollTop = drag.top + drag.y - event.clientY;
});
view.addEventListener('pointerup', event => {
  const box = view.getBoundingClientRect();
  if (drag && !drag.moved) { const s = hit(event.clientX - box.left, event.clientY - box.top); selected = s; if (s) select(s); else redraw(); }
  drag = null; view.classList.remove('dragging');
});
view.addEventListener('pointerleave', () => { hovered = null; $('tip').hidden = true; redraw(); });
document.addEventListener('keydown', key);
$('previous').onclick = () => chooseStep(step - 1);
$('next').onclick = () => chooseStep(step + 1);
$('all').onclick = everything;
$('in').onclick = () => zoom(0.7);
$('out').onclick = () => zoom(1 / 0.7);
$('theme').onclick = toggleTheme;
$('help').onclick = () => say(KEYS);
say(KEYS);
if (location.hash === '#selftest') selfTest();
