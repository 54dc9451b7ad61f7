// SPDX-License-Identifier: BSD-3-Clause
// The page's behaviour. Times are microseconds from each timeline's first instant; the visible range counts
// from the start of the chosen step, so that timelines under each other compare. Drawing touches only what is
// visible: lanes by scroll position, spans by binary search.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const KIND = ['gemm', 'allreduce', 'cast'], COMM = 1;
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
function percent(value, digits = 1) { return (Math.abs(value) < 0.5 / 10 ** digits ? 0 : value).toFixed(digits) + ' %'; }
function bytes(n) {
  const unit = ['B', 'KiB', 'MiB', 'GiB'];
  let i = 0;
  while (n >= 1024 && i < 3) { n /= 1024; i++; }
  return (i ? n.toFixed(1) : n) + ' ' + unit[i];
}
function union(spans, kind) {
  const out = [];
  for (const s of spans.filter(s => s.kind === kind).sort((a, b) => a.start - b.start)) {
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
function pieces(s, gemms) { // a collective cut into hidden and exposed parts
  const out = [];
  let at = s.start;
  for (let i = lowerBound(gemms, s.start, g => g[1]); i < gemms.length && gemms[i][0] < s.end; i++) {
    const first = Math.max(gemms[i][0], s.start), last = Math.min(gemms[i][1], s.end);
    if (first > at) out.push([at, first, false]);
    out.push([first, last, true]);
    at = last;
  }
  if (at < s.end) out.push([at, s.end, false]);
  return out;
}

// ------------------------------------------------------------------ model
let nspans = 0, ncasts = 0;
data.groups.forEach((group, g) => {
  group.causeOf = new Map();
  if (group.report) for (const c of group.report.collectives) group.causeOf.set(c[0] + '.' + c[1], c);
  group.ranks.forEach((rank, r) => {
    rank.spans = rank.spans.map(a => ({ g, r, kind: a[0], lane: a[1], sequence: a[2], chunk: a[3], grid: a[4], ready: a[5],
      launch: a[6], start: a[7], end: a[8], bytes: a[9], rows: a[10] }));
    rank.gemms = union(rank.spans, 0);
    const gemmOf = new Map(), lanes = new Map();
    for (const s of rank.spans) {
      nspans++;
      if (s.kind === 0) gemmOf.set(s.sequence + '.' + s.chunk, s);
      if (s.kind === 2) ncasts++;
      if (!lanes.has(s.lane)) lanes.set(s.lane, []);
      lanes.get(s.lane).push(s);
    }
    for (const s of rank.spans) {
      if (s.kind !== COMM) continue;
      s.pieces = pieces(s, rank.gemms);
      s.exposed = s.pieces.reduce((sum, p) => sum + (p[2] ? 0 : p[1] - p[0]), 0);
      s.gemm = gemmOf.get(s.sequence + '.' + s.chunk);
    }
    rank.lanes = [...lanes.keys()].sort((a, b) => a - b).map(lane => {
      const spans = lanes.get(lane).sort((a, b) => a.start - b.start);
      let until = -Infinity;
      spans.forEach((s, i) => { until = Math.max(until, s.end); s.until = until; s.index = i; });
      return { lane, link: lane >= 1000, spans, name: lane >= 1000 ? 'link' : 'lane ' + lane };
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
  for (const name of ['bg', 'panel', 'text', 'muted', 'line', 'gemm', 'gemm-edge', 'hidden', 'hidden-edge', 'exposed', 'exposed-edge', 'cast', 'cast-edge', 'focus'])
    colour[name] = style.getPropertyValue('--' + name).trim();
  pattern.gemm = colour.gemm;
  pattern.hidden = makePattern(colour.hidden, colour['hidden-edge'], c => { c.lineWidth = 0.6; slash(c); });
  pattern.exposed = makePattern(colour.exposed, colour['exposed-edge'], c => { c.lineWidth = 1.1; slash(c); c.translate(8, 0); c.scale(-1, 1); slash(c); });
  pattern.cast = makePattern(colour.cast, colour['cast-edge'], c => { c.fillRect(1, 1, 1.5, 1.5); c.fillRect(5, 5, 1.5, 1.5); });
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
    text += `  ·  ${time(group.report.median)}, ${percent(group.report.mean.hidden, 0)} hidden`;
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
    for (const piece of s.pieces || [[s.start, s.end, null]]) {
      const name = s.kind === COMM ? (piece[2] ? 'hidden' : 'exposed') : KIND[s.kind];
      const x0 = xOf(piece[0], row.g), x1 = xOf(piece[1], row.g);
      if (x1 < LEFT || x0 > width) continue;
      box(x0, x1, y + pad, h, name, x0 - until > 2 ? 1 : 0.05);
      until = x1;
    }
    const x0 = xOf(s.start, row.g), x1 = xOf(s.end, row.g);
    if (x1 - x0 > 26 && x1 > LEFT) {
      const long = `${s.kind === COMM ? 'allreduce' : KIND[s.kind]} ${s.chunk}`;
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
  const n = Math.ceil(width - LEFT), shares = { gemm: new Float32Array(n), hidden: new Float32Array(n), exposed: new Float32Array(n), cast: new Float32Array(n) };
  for (const s of visible)
    for (const piece of s.pieces || [[s.start, s.end, null]]) {
      const share = shares[s.kind === COMM ? (piece[2] ? 'hidden' : 'exposed') : KIND[s.kind]];
      const x0 = Math.max(0, xOf(piece[0], row.g) - LEFT), x1 = Math.min(n, xOf(piece[1], row.g) - LEFT);
      for (let x = Math.floor(x0); x < x1; x++) share[x] += Math.min(x + 1, x1) - Math.max(x, x0);
    }
  const below = new Float32Array(n);
  for (const name of ['exposed', 'hidden', 'gemm', 'cast']) {
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
  if (!s.gemm || s.start - s.gemm.end < 1e-3) return;
  const x0 = Math.max(LEFT, xOf(s.gemm.end, s.g)), x1 = xOf(s.start, s.g);
  if (x1 - x0 < 4) return;
  context.strokeStyle = colour.muted; context.lineWidth = 1.2; context.setLineDash([4, 3]);
  context.beginPath(); context.moveTo(x0, y); context.lineTo(x1, y); context.stroke();
  context.setLineDash([]);
  const known = causeOf(s), text = 'waits ' + time(s.start - s.gemm.end);
  (known && label(`${time(s.start - s.gemm.end)}: ${data.causes[known[4]]}`, x0, x1, y)) || label(text, x0, x1, y);
}
function rowOf(s) { return rows.find(row => row.type === 'lane' && row.g === s.g && row.r === s.r && row.lane.lane === s.lane); }
function drawArrows(top, h) {
  for (const s of [selected, hovered]) {
    if (!s) continue;
    const comm = s.kind === COMM ? s : data.groups[s.g].ranks[s.r].spans.find(o => o.kind === COMM && o.gemm === s);
    if (!comm || !comm.gemm) continue;
    const from = rowOf(comm.gemm), to = rowOf(comm), x0 = xOf(comm.gemm.end, s.g), x1 = xOf(comm.start, s.g);
    const y0 = from.y + from.h / 2 - top, y1 = to.y + 3 - top;
    if (x1 < LEFT || x0 > width || y1 < AXIS || y0 > h) continue;
    context.strokeStyle = context.fillStyle = colour.text; context.lineWidth = 1.4;
    context.beginPath(); context.moveTo(x0, y0); context.bezierCurveTo(x0 + 14, y1, x1, y0, x1, y1); context.stroke();
    context.beginPath(); context.moveTo(x1, y1); context.lineTo(x1 - 4, y1 - 7); context.lineTo(x1 + 4, y1 - 7); context.fill();
  }
}
