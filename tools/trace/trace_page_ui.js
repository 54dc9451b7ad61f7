// SPDX-License-Identifier: BSD-3-Clause
// The page's controls: hover, keys, the report beside the timeline, the comparison table, and a self-test that
// writes what it saw into the document when the address ends in #selftest.

// ------------------------------------------------------------ hover, focus
function describe(s) {
  const group = data.groups[s.g], lines = [`${KIND[s.kind]}, operator ${s.sequence}, chunk ${s.chunk}`,
    `${group.ranks[s.r].name}, ${s.lane >= 1000 ? 'link' : 'lane ' + s.lane}`,
    `${time(s.start - shift(group))} to ${time(s.end - shift(group))}: ${time(s.end - s.start)}`];
  if (s.rows) lines.push(`${s.rows} rows` + (s.bytes ? `, ${bytes(s.bytes)}` : ''));
  if (s.kind === COMM) {
    const length = s.end - s.start, hidden = length - s.exposed;
    if (s.bytes && length > 0) lines.push(`${(s.bytes / length / 1e3).toFixed(2)} GB/s of payload`);
    lines.push(`hidden ${time(hidden)} (${length > 0 ? (100 * hidden / length).toFixed(0) : 0} %), exposed ${time(s.exposed)}`);
    if (s.gemm) {
      const known = causeOf(s);
      lines.push(`starts ${time(s.start - s.gemm.end)} after its gemm` + (known && known[3] > 0 ? `: ${data.causes[known[4]]}` : ''));
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
  aside.append(element('div', percent(mean.hidden), 'big'), element('div', 'of the communication is hidden' + (mean.hidden < -0.05 ? ': slower than one after the other' : ''), 'small'), bar(mean));
  aside.append(table(['Time', 'mean', 'of time'], [
    ['step', time(mean.time), '100 %'], ['ideal', time(mean.ideal), percent(100 * mean.ideal / mean.time)],
    ['gemm alone', time(mean.gemm), ''], ['communication alone', time(mean.comm), ''], ['both at once', time(mean.beside), percent(100 * mean.beside / mean.time)]], 'Times'));
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
  aside.append(table(['Chunk', 'after gemm', 'time', 'exposed'], lines.slice(0, 24).map(c => [(shown.operators > 1 ? c[0] + '.' : '') + c[1] + (c[3] > 0.05 ? ` (${data.causes[c[4]]})` : ''), time(c[3]), time(c[2]), time(c[5])]), 'Collectives'));
  if (lines.length > 24) aside.append(element('div', `and ${lines.length - 24} more`, 'small'));
  aside.append(element('h2', 'Lanes'));
  aside.append(table(['Lane', 'busy', 'idle', 'used'], report.lanes.map(l => [l[0] >= 1000 ? 'link' : `lane ${l[0]}`, time(l[1]), time(l[2]), percent(100 * l[1] / (l[1] + l[2] || 1))]), 'Lanes'));
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
    const cells = r ? [name, time(r.median), (r.median / best).toFixed(3) + ' ×', time(r.mean.ideal), percent(r.mean.hidden), time(r.mean.time - r.mean.ideal), causes[0][0] > 0 ? causes[0][1] : ''] : [name, '', '', '', '', '', ''];
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
    step: step, gemm: text(first(0)), allreduce: text(first(1)), report: $('report').textContent, compare: $('compare').textContent, resources: performance.getEntriesByType('resource').map(e => e.name) };
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
$('legend-cast').hidden = ncasts === 0;
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
