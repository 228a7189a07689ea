'use strict';
// The script of the report: charts with one cursor and one zoom, copy buttons, the theme.
// The page is complete without it. What is drawn was decided when the page was written; here
// it is unpacked, drawn, and counted over what is zoomed to.

(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById('data').textContent);
  const all = [];
  const HEIGHT = 200;

  window.addEventListener('error', (event) => { root.dataset.error = event.message; });

  // ---- small parts ----

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const colour = (role) => getComputedStyle(root).getPropertyValue(`--${role}`).trim();

  // [5, [7, 3]] stands for 5, 7, 7, 7.
  const unpack = (packed) =>
    packed.flatMap((cell) => (Array.isArray(cell) ? Array(cell[1]).fill(cell[0]) : [cell]));

  const instants = (packed) => {
    let at = 0;
    return unpack(packed).map((step) => (at += step));
  };

  const number = (value) => {
    if (value === null || value === undefined) return '–';
    const size = Math.abs(value);
    const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    return value.toLocaleString('en-US', { maximumFractionDigits: digits });
  };

  const clock = (ms) => new Date(ms).toISOString().slice(0, 19).replace('T', ' ');

  // The least value that so many percent of all do not exceed, as the writer of the page counts.
  const percentiles = (values) => {
    const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
    if (sorted.length === 0) return null;
    const at = (percent) => sorted[Math.max(Math.ceil((sorted.length * percent) / 100) - 1, 0)];
    return [at(50), at(95), at(99), sorted[sorted.length - 1]];
  };

  // Recordings joined in time have holes: no line is drawn across them.
  const holes = (times) => {
    const steps = times.slice(1).map((time, index) => time - times[index]);
    const usual = [...steps].sort((a, b) => a - b)[steps.length >> 1];
    return steps.flatMap((step, index) => (step > 5 * usual ? [index] : []));
  };

  const merged = (windows) => {
    const one = [];
    for (const [from, to] of [...windows].sort((a, b) => a[0] - b[0])) {
      const last = one.at(-1);
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else one.push([from, to]);
    }
    return one;
  };

  // ---- one chart ----

  class Chart {
    constructor(group, times, object, spec) {
      this.group = group;
      this.spec = spec;
      this.windows = object.windows;
      this.columns = spec.series.map((series) => unpack(series.values));
      this.times = times;
      this.place = make('div', { className: 'plot' });
      this.rows = spec.series.map((series, index) => this.row(series, index));
      this.element = make('figure', { className: 'chart' },
        make('figcaption', {}, make('b', { textContent: spec.title }), ` ${spec.unit}`),
        this.place, this.table());
    }

    draw() {
      this.plot = new uPlot(this.options(), [this.times, ...this.columns], this.place);
      this.count();
    }

    options() {
      const right = this.spec.series.find((series) => series.right !== '');
      const axes = [axis({ space: 80, incrs: STEPS, values: times_of_day }), axis({ size: 56, values: labels })];
      if (right) axes.push(axis({ scale: 'right', side: 1, size: 56, values: labels, grid: { show: false } }));
      return {
        width: this.width(),
        height: HEIGHT,
        padding: [18, right ? 0 : 28, 0, 0],
        ms: 1,
        tzDate: (at) => uPlot.tzDate(new Date(at), 'Etc/UTC'),
        legend: { show: false },
        cursor: {
          drag: { x: true, y: false, setScale: false },
          sync: { key: this.group.key, filters: { sub: (event) => event === 'mousemove' || event === 'mouseleave' } },
          bind: { dblclick: () => () => { this.group.reset(); return null; } },
          points: { size: 7 },
        },
        scales: { x: { time: true }, y: { range: fromZero }, right: { range: fromZero } },
        axes,
        series: [{}, ...this.spec.series.map((series) => line(series, this.times, this.group.holes))],
        hooks: {
          drawClear: [(plot) => this.shade(plot)],
          setSelect: [(plot) => this.selected(plot)],
          setCursor: [(plot) => this.show(plot.cursor.idx)],
        },
      };
    }

    width() {
      return Math.max(this.place.clientWidth, 200);
    }

    // The windows of the findings lie behind the lines; where they overlap they are one.
    shade(plot) {
      const { ctx, bbox } = plot;
      const dot = uPlot.pxRatio;
      const x = (time) =>
        Math.min(Math.max(plot.valToPos(time, 'x', true), bbox.left), bbox.left + bbox.width);
      ctx.save();
      ctx.fillStyle = colour('window');
      for (const [from, to] of merged(this.windows)) {
        if (x(to) > x(from)) ctx.fillRect(x(from), bbox.top, Math.max(x(to) - x(from), 2 * dot), bbox.height);
      }
      ctx.font = `${11 * dot}px system-ui, sans-serif`;
      ctx.fillStyle = colour('bad');
      for (const [place, [from, to, finding]] of this.windows.entries()) {
        const beside = this.windows.slice(0, place).filter(([begin]) => x(begin) === x(from)).length;
        if (x(to) > x(from)) ctx.fillText(finding, x(from) + (4 + 14 * beside) * dot, bbox.top - 4 * dot);
      }
      ctx.restore();
    }

    selected(plot) {
      const { left, width } = plot.select;
      if (width < 4) return;
      const range = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
      plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      this.group.zoom(...range);
    }

    // ---- its table: the value under the cursor, and percentiles of what is seen ----

    table() {
      const heads = ['', 'at cursor', 'P50', 'P95', 'P99', 'max'];
      const head = make('tr', {}, ...heads.map((text) => make('th', { scope: 'col', textContent: text })));
      return make('table', { className: 'legend' },
        make('thead', {}, head), make('tbody', {}, ...this.rows.map((row) => row.element)));
    }

    row(series, index) {
      const swatch = make('i', { className: `swatch ${series.role}` });
      const toggle = make('button', { type: 'button' }, swatch, series.name);
      toggle.setAttribute('aria-pressed', 'true');
      toggle.addEventListener('click', () => this.toggle(index, toggle));
      const cells = Array.from({ length: 5 }, () => make('td', { textContent: '–' }));
      return { cells, element: make('tr', {}, make('th', { scope: 'row' }, toggle), ...cells) };
    }

    toggle(index, button) {
      const shown = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(shown));
      this.plot.setSeries(index + 1, { show: shown });
    }

    show(at) {
      this.rows.forEach(({ cells }, index) => {
        cells[0].textContent = number(at === null || at === undefined ? null : this.columns[index][at]);
      });
    }

    count() {
      const { from, to } = this.group.range();
      const begin = this.times.findIndex((time) => time >= from);
      const end = this.times.findLastIndex((time) => time <= to) + 1;
      const whole = begin === 0 && end === this.times.length;
      this.spec.series.forEach((series, index) => {
        const seen = () => percentiles(this.columns[index].slice(Math.max(begin, 0), end));
        const values = (whole ? series.percentiles : seen()) ?? [];
        const about = !whole && this.group.host.bucket > 1 ? '≈ ' : '';
        this.rows[index].cells.slice(1).forEach((cell, place) => {
          cell.textContent = place in values ? about + number(values[place]) : '–';
        });
      });
    }
  }

  const fromZero = (plot, low, high) => [0, high > 0 ? high * 1.08 : 1];

  const labels = (plot, values) => {
    const notation = Math.max(...values) < 1e5 ? 'standard' : 'compact';
    return values.map((value) => value.toLocaleString('en-US', { notation }));
  };

  const [SECOND, MINUTE, HOUR, DAY] = [1e3, 60e3, 3600e3, 86400e3];
  const STEPS = [[SECOND, 1, 2, 5, 10, 15, 30], [MINUTE, 1, 2, 5, 10, 15, 30], [HOUR, 1, 2, 3, 6, 12],
    [DAY, 1, 2, 7, 14, 28]].flatMap(([unit, ...counts]) => counts.map((count) => count * unit));

  // Hours and minutes, seconds where they matter, and below them the day where it begins.
  const times_of_day = (plot, values, index, space, step) => values.map((value, place) => {
    const [day, time] = clock(value).split(' ');
    const is_new = place === 0 || clock(values[place - 1]).slice(0, 10) !== day;
    return time.slice(0, step < MINUTE ? 8 : 5) + (is_new ? `\n${day}` : '');
  });

  const axis = (more = {}) => ({
    stroke: () => colour('muted'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: () => colour('line'), width: 1 },
    ticks: { stroke: () => colour('line'), width: 1 },
    ...more,
  });

  // Layers may be equal: GAVG shows behind DAVG, KAVG through QAVG.
  const line = (series, times, broken) => ({
    label: series.name,
    scale: series.right === '' ? 'y' : 'right',
    stroke: () => colour(series.role),
    gaps: (plot, place, from, to, gaps) => {
      const at = (index) => Math.round(plot.valToPos(times[index], 'x', true));
      const inside = broken.filter((index) => index >= from && index < to);
      inside.forEach((index) => uPlot.addGap(gaps, at(index), at(index + 1)));
      return gaps.sort((a, b) => a[0] - b[0]);
    },
    width: (series.limit || times.length > 400 ? 1.25 : 2) * (series.role === 'gavg' ? 2 : 1),
    dash: series.limit || series.role === 'qavg' ? [5, 4] : series.right === '' ? undefined : [2, 3],
    paths: series.limit ? uPlot.paths.stepped({ align: -1 }) : undefined,
    points: { show: (plot) => !series.limit && plot.data[0].length < 40, size: 5 },
  });

  // ---- the charts of a host ----

  const HELP = 'Drag over a chart to zoom all of them; double-click to see everything. ' +
    'The window of a finding is shaded and bears its number.';

  class Group {
    constructor(place, index) {
      this.place = place;
      this.host = data.hosts[index];
      this.key = `host-${index}`;
      this.times = instants(this.host.times);
      this.holes = holes(this.times);
      this.plots = make('div', { className: 'plots', tabIndex: 0 });
      this.plots.setAttribute('role', 'group');
      this.plots.setAttribute('aria-label',
        'Charts. Plus and minus zoom, the arrow keys move, zero shows everything.');
      this.plots.addEventListener('keydown', (event) => this.key_pressed(event));
      place.append(this.toolbar(), this.plots);
      this.choose(0);
      new ResizeObserver(() => this.fit()).observe(this.plots);
    }

    toolbar() {
      this.select = make('select', { id: `${this.key}-object` },
        ...this.host.objects.map((object, index) =>
          make('option', { value: index, textContent: `${object.kind} ${object.name}` })));
      this.select.addEventListener('change', () => this.choose(Number(this.select.value)));
      this.reset_button = make('button', { type: 'button', className: 'quiet reset', textContent: 'Show everything', disabled: true });
      this.reset_button.addEventListener('click', () => this.reset());
      this.seen = make('output');
      const label = make('label', { textContent: 'Show ' }, this.select);
      const help = make('p', { className: 'note', textContent: HELP });
      return make('div', { className: 'toolbar' }, label, this.reset_button, this.seen, help);
    }

    choose(index) {
      this.charts?.forEach((chart) => chart.plot.destroy());
      const object = this.host.objects[index];
      this.select.value = index;
      const [times, columns] = [this.times, object.charts];
      this.charts = columns.map((spec) => new Chart(this, times, object, spec));
      this.plots.replaceChildren(...this.charts.map((chart) => chart.element));
      this.charts.forEach((chart) => chart.draw());
      this.apply();
    }

    full() {
      const last = this.times.length - 1;
      const pad = last === 0 ? 1000 : 0;
      return { from: this.times[0] - pad, to: this.times[last] + pad };
    }

    range() {
      return this.zoomed ?? this.full();
    }

    zoom(from, to) {
      const full = this.full();
      const zoomed = { from: Math.max(from, full.from), to: Math.min(to, full.to) };
      if (zoomed.to <= zoomed.from) return;
      const whole = zoomed.from === full.from && zoomed.to === full.to;
      this.zoomed = whole ? undefined : zoomed;
      this.apply();
    }

    reset() {
      this.zoomed = undefined;
      this.apply();
    }

    apply() {
      const { from, to } = this.range();
      this.charts.forEach((chart) => {
        chart.plot.setScale('x', { min: from, max: to });
        chart.count();
      });
      this.reset_button.disabled = this.zoomed === undefined;
      this.seen.textContent = `${clock(from)} to ${clock(to)} UTC`;
    }

    fit() {
      this.charts.forEach((chart) => chart.plot.setSize({ width: chart.width(), height: HEIGHT }));
    }

    key_pressed(event) {
      const { from, to } = this.range();
      const [span, step] = [to - from, (to - from) / 4];
      const act = {
        '+': () => this.zoom(from + step, to - step),
        '-': () => this.zoom(from - span / 2, to + span / 2),
        'ArrowLeft': () => this.move(-step),
        'ArrowRight': () => this.move(step),
        '0': () => this.reset(),
        'Escape': () => this.reset(),
      }[event.key];
      if (act && event.target === this.plots) {
        act();
        event.preventDefault();
      }
    }

    move(by) {
      const [{ from, to }, full] = [this.range(), this.full()];
      const bounded = Math.min(Math.max(by, full.from - from), full.to - to);
      this.zoom(from + bounded, to + bounded);
    }

    // A finding's window with some of what was before and after.
    show(at, from, to) {
      const found = this.host.places.find(([place]) => place === at);
      this.choose(found ? found[1] : 0);
      const margin = (to - from) / 4;
      this.zoom(from - margin, to + margin);
      this.place.scrollIntoView({ block: 'start' });
      this.plots.focus({ preventScroll: true });
    }
  }

  // ---- buttons ----

  const copy = async (button) => {
    const text = button.previousElementSibling.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      document.execCommand('copy');
    }
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  };

  const THEMES = ['auto', 'light', 'dark'];
  const set_theme = (theme) => {
    root.dataset.theme = theme;
    document.getElementById('theme').textContent = `Theme: ${theme}`;
    all.forEach((group) => group.charts.forEach((chart) => chart.plot.redraw(false)));
  };

  const wire = () => {
    const on = (selector, act) => document.querySelectorAll(selector).forEach((button) => {
      button.hidden = false;
      button.addEventListener('click', () => act(button));
    });
    on('button.copy', copy);
    on('button.show', ({ dataset }) =>
      all[Number(dataset.host)].show(dataset.at, Number(dataset.from), Number(dataset.to)));
    on('#theme', () => {
      const next = (THEMES.indexOf(root.dataset.theme ?? 'auto') + 1) % THEMES.length;
      set_theme(THEMES[next]);
    });
    const repaint = () => set_theme(root.dataset.theme ?? 'auto');
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  };

  // Paper is light, and narrower than most windows.
  const print = () => {
    let theme = 'auto';
    window.addEventListener('beforeprint', () => {
      theme = root.dataset.theme ?? 'auto';
      set_theme('light');
      document.querySelectorAll('details').forEach((one) => { one.open = true; });
      all.forEach((group) => group.charts.forEach((chart) => chart.plot.setSize({ width: 660, height: HEIGHT })));
    });
    window.addEventListener('afterprint', () => {
      set_theme(theme);
      all.forEach((group) => group.fit());
    });
  };

  document.querySelectorAll('.charts').forEach((place) => {
    const index = Number(place.dataset.host);
    all[index] = new Group(place, index);
  });
  wire();
  print();
  root.dataset.charts = document.querySelectorAll('.chart canvas').length;
})();
