// Draws the report from the data that the page holds. Everything that comes from the data reaches the
// page as text nodes or numbers, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const runs = data.runs;
  const dashes = ["", "7 3", "2 3", "9 3 2 3", "", "7 3", "2 3", "9 3 2 3"];
  const state = { axis: "t", loss: "test_loss", hidden: new Set(), run: 0, cursor: null };
  const byId = (id) => document.getElementById(id);

  // ---- Elements

  const svgSpace = byId("space").namespaceURI;
  const svgNames = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title", "defs",
    "marker", "clipPath"]);
  function el(name, attributes, ...children) {
    const node = svgNames.has(name) ? document.createElementNS(svgSpace, name)
                                    : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined) continue;
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return node;
  }
  const replace = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter(Boolean));
  const colour = (run) => `var(--run-${run % 8})`;
  const runName = (run) => runs[run].summary.name || `run ${run + 1}`;
  const plural = (n, word) => `${n.toLocaleString("en-US")} ${word}${n === 1 ? "" : "s"}`;

  // ---- Numbers

  const none = "\u2013";
  const isNumber = (v) => typeof v === "number" && Number.isFinite(v);
  const three = (v) => (v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : v.toFixed(0));
  function bytesText(v) {
    if (!isNumber(v)) return none;
    const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let unit = 0;
    while (v >= 999.5 && unit < 6) { v /= 1000; ++unit; }
    return `${unit ? three(v) : v.toFixed(0)} ${units[unit]}`;
  }
  function timeText(v) {
    if (!isNumber(v)) return none;
    if (v < 0) return `-${timeText(-v)}`;
    if (v === 0) return "0 s";
    if (v < 999.5e-9) return `${(v * 1e9).toFixed(0)} ns`;
    if (v < 999.5e-6) return `${three(v * 1e6)} \u00b5s`;
    if (v < 0.9995) return `${three(v * 1e3)} ms`;
    if (v < 99.95) return `${three(v)} s`;
    const s = Math.round(v);
    const two = (n) => String(n).padStart(2, "0");
    if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
    return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  }
  function rateText(v) {
    if (!isNumber(v)) return none;
    const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let unit = 0;
    while (v >= 999.95 && unit < 4) { v /= 1000; ++unit; }
    return `${Number(v.toPrecision(4))} ${units[unit]}`;
  }
  const percentText = (v, digits = 1) => (isNumber(v) ? `${(100 * v).toFixed(digits)} %` : none);
  const countText = (v) => (isNumber(v) ? v.toLocaleString("en-US") : none);
  const plainText = (v) => (isNumber(v) ? String(Number(v.toPrecision(4))) : none);
  function propertyText(property, v) {
    if (/rate/.test(property)) return rateText(v);
    if (/delay|jitter|burst/.test(property)) return timeText(v);
    if (/loss|duplicate|corrupt|reorder/.test(property)) return percentText(v, 2);
    return plainText(v);
  }

  // Round numbers that divide [low, high] into about `count` parts.
  function ticks(low, high, count) {
    if (!(high > low)) return [low];
    const raw = (high - low) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const list = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) list.push(i * step);
    return list;
  }
  // One unit for a whole axis, so that ticks read alike.
  function axisUnit(axis, high) {
    const units = axis === "bytes"
      ? [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"], [1e15, "PB"]]
      : [[1e-9, "ns"], [1e-6, "\u00b5s"], [1e-3, "ms"], [1, "s"], [60, "min"], [3600, "h"]];
    let best = units[0];
    for (const unit of units) if (high >= unit[0] * (unit[0] >= 60 ? 5 : 1.5)) best = unit;
    return { scale: best[0], name: best[1] };
  }
  const tickText = (v) => String(Number(v.toPrecision(6)));

  // ---- Verdict

  const order = ["faithful", "degraded", "invalid"];
  const badge = (grade) => el("span", { class: `grade ${grade}` }, grade);

  function drawVerdict() {
    const single = runs.length === 1;
    const parts = [];
    if (!single) {
      const counts = order.map((g) => [g, runs.filter((r) => r.verdict.grade === g).length]);
      const text = counts.filter(([, n]) => n).map(([g, n]) => `${n} ${g}`).join(", ");
      parts.push(el("p", {}, `${plural(runs.length, "run")}: ${text || "none"}.`));
    }
    runs.forEach((run, i) => {
      const reasons = run.verdict.findings.filter((f) => f.effect !== "faithful");
      const remarks = run.verdict.findings.filter((f) => f.effect === "faithful");
      const list = (findings) => el("ul", {},
        findings.map((f) => el("li", { class: f.effect }, f.text)));
      parts.push(el("div", { class: `verdict${single ? " single" : ""}` },
        el("div", { class: "head" }, badge(run.verdict.grade),
          single ? null : el("strong", {}, runName(i)),
          el("span", {}, reasons.length ? plural(reasons.length, "reason")
                                        : "nothing found that speaks against it"),
          run.complete ? null : el("span", { class: "grade invalid" }, "incomplete")),
        reasons.length ? list(reasons) : null,
        remarks.length ? el("details", { open: single }, el("summary", {}, "What else was looked at"),
          list(remarks)) : null));
    });
    const assumptions = [...new Set(runs.flatMap((r) => r.verdict.assumptions))];
    if (assumptions.length)
      parts.push(el("details", { class: "note", open: single },
        el("summary", {}, "What the figures assume"),
        el("ul", {}, assumptions.map((a) => el("li", {}, a)))));
    replace(byId("verdict"), parts);
  }

  // ---- Summary

  const kinds = [["activation", "Activ."], ["gradient", "Grad."], ["parameter", "Param."],
    ["scalar", "Scalar"]];
  const columns = [
    ["Run", (s) => s.name, "The run's name in the experiment."],
    ["Strategy", (s) => s.strategy, "The training algorithm."],
    ["Verdict", (s) => badge(s.verdict), "Whether the run may be believed; reasons above."],
    ["Accuracy", (s) => percentText(s.accuracy),
      "On the test set, of the parameters at the last evaluation."],
    ["Loss", (s) => (isNumber(s.loss) ? s.loss.toFixed(4) : none),
      "The lowest objective loss of all evaluations; without evaluations, the mean over the nodes of each one's last training loss."],
    ["Emulated", (s) => timeText(s.emulated_seconds), "From the start barrier to the end of the run."],
    ["Host", (s) => timeText(s.host_seconds), "Wall time on the host, of everything."],
    ["Iterations", (s) => countText(s.iterations),
      "Steps that all nodes take together, plus asynchronous updates; for gradient-free runs, evaluations."],
    ["Evals", (s) => countText(s.evaluations), "Evaluations of the objective that the strategy made."],
    ["Images fwd", (s) => countText(s.samples_forward), "Images passed forward, summed over the nodes' own counts."],
    ["Images bwd", (s) => countText(s.samples_backward), "Images passed backward, likewise."],
    ["Wire", (s) => bytesText(s.wire_bytes), "Bytes that left the nodes, by the links' counters, framing included."],
    ...kinds.map(([kind, head]) => [head, (s) => (s.bytes[kind] ? bytesText(s.bytes[kind]) : "0"),
      `Payload of ${kind} messages, summed over the senders.`]),
    ["Uncharged", (s) => percentText(s.uncharged_ratio, 2),
      "Share of the nodes' host work that took no emulated time."],
  ];
  const textColumns = new Set(["Run", "Strategy", "Verdict"]);
  const secondary = new Set(["Host", "Images fwd", "Images bwd", "Uncharged"]);

  function fillTable(table, list) {
    const cls = (head) => (textColumns.has(head) ? "text" : null);
    replace(table,
      el("thead", {}, el("tr", {}, list.map(([head]) =>
        el("th", { scope: "col", class: cls(head) }, head)))),
      el("tbody", {}, runs.map((run) => el("tr", {}, list.map(([head, text], c) =>
        (c === 0 ? el("th", { scope: "row", class: "name", title: run.summary.name }, text(run.summary))
                 : el("td", { class: head === "Strategy" ? "text name" : cls(head) },
                     text(run.summary))))))));
  }
  function drawSummary() {
    fillTable(byId("summary"), columns.filter(([head]) => !secondary.has(head)));
    fillTable(byId("more"), columns.filter(([head], i) => i === 0 || secondary.has(head)));
    replace(byId("columns"), el("dl", { class: "columns" },
      columns.map(([head, , what]) => [el("dt", {}, head), el("dd", {}, what)])));
    if (data.remark) {
      byId("remark").textContent = data.remark;
      byId("remark").hidden = false;
    }
  }

  // ---- Events of the timeline: the same one in several runs is one event here.

  const events = [];
  runs.forEach((run, r) => run.timeline.forEach((event) => {
    const key = JSON.stringify([event.name, event.target, event.planned]);
    let known = events.find((e) => e.key === key);
    if (!known) {
      known = { ...event, key, number: events.length + 1, of: [] };
      events.push(known);
    }
    known.of[r] = event;
  }));
  events.sort((a, b) => a.begin - b.begin);
  events.forEach((event, i) => { event.number = i + 1; });

  // ---- Curves

  const shown = () => runs.map((_, i) => i).filter((i) => !state.hidden.has(i));
  const series = (run, which) => {
    const curve = runs[run].curves[which];
    return { run, name: curve.name, x: curve[state.axis], y: curve.values };
  };

  // The last point at or before x; -1 before the first.
  function indexAt(xs, x) {
    let low = 0, high = xs.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (xs[mid] <= x) low = mid + 1; else high = mid;
    }
    return low - 1;
  }

  function drawEventsOnCurves(plot, sx, box, domain) {
    if (state.axis === "t") {
      let lastLabel = -1e9;
      for (const event of events) {
        if (event.begin > domain) continue;
        const from = sx(event.begin);
        const to = sx(Math.min(event.end ?? event.begin, domain));
        const name = `${event.number}. ${event.name}: ${event.what}`;
        if (to - from > 0.5)
          plot.append(el("rect", { class: "band", x: from, y: box.top, width: to - from,
            height: box.height }, el("title", {}, name)));
        plot.append(el("line", { class: "mark", x1: from, x2: from, y1: box.top,
          y2: box.top + box.height }, el("title", {}, name)));
        if (from - lastLabel > 14) {
          plot.append(el("text", { class: "mark-name", x: from + 3, y: box.top + 11 }, event.number));
          lastLabel = from;
        }
      }
      return;
    }
    // Over bytes, an event is at another place for each run.
    for (const r of shown())
      for (const event of events) {
        if (!event.of[r]) continue;
        const x = sx(event.of[r].begin_bytes);
        const y = box.top + box.height;
        plot.append(el("path", { d: `M${x} ${y}l-4 -8h8z`, fill: colour(r) },
          el("title", {}, `${event.number}. ${event.name} in ${runName(r)}`)));
      }
  }

  function drawChart(figure, which, title, format, percent) {
    const list = shown().map((r) => series(r, which)).filter((s) => s.x.length);
    const names = [...new Set(list.map((s) => s.name))];
    const caption = el("figcaption", {}, el("b", {}, title),
      names.length && which === "own_loss" ? ` (${names.join("; ")})` : "");
    if (!list.length) {
      replace(figure, caption, el("p", { class: "note" },
        "Nothing to draw: no run that is shown recorded it."));
      return;
    }
    const width = Math.max(figure.clientWidth || 520, 240), height = 270;
    const box = { left: 46, top: 8, width: width - 46 - 14, height: height - 8 - 40 };
    const xMax = Math.max(...list.map((s) => s.x[s.x.length - 1])) || 1;
    let yMin = Infinity, yMax = -Infinity;
    for (const s of list) for (const v of s.y) { yMin = Math.min(yMin, v); yMax = Math.max(yMax, v); }
    const pad = (yMax - yMin || Math.abs(yMax) || 1) * 0.06;
    yMin = yMin >= 0 ? Math.max(0, yMin - pad) : yMin - pad;
    yMax = percent ? Math.min(1, yMax + pad) : yMax + pad;
    const sx = (v) => box.left + (v / xMax) * box.width;
    const sy = (v) => box.top + box.height * (1 - (v - yMin) / (yMax - yMin || 1));
    const unit = axisUnit(state.axis, xMax);

    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, tabindex: 0,
      role: "img", "aria-label": `${title} of ${plural(list.length, "run")}. Arrow keys move the read-out.` });
    const yTicks = ticks(yMin, yMax, 5);
    for (const v of yTicks)
      svg.append(el("line", { class: "grid", x1: box.left, x2: box.left + box.width, y1: sy(v), y2: sy(v) }),
        el("text", { x: box.left - 6, y: sy(v) + 4, "text-anchor": "end" },
          percent ? `${tickText(Math.round(v * 1000) / 10)}` : tickText(v)));
    for (const v of ticks(0, xMax / unit.scale, Math.max(3, box.width / 80)))
      svg.append(el("text", { x: sx(v * unit.scale), y: box.top + box.height + 16,
        "text-anchor": "middle" }, tickText(v)));
    svg.append(el("line", { class: "base", x1: box.left, x2: box.left + box.width,
      y1: box.top + box.height, y2: box.top + box.height }));
    svg.append(el("text", { x: box.left + box.width / 2, y: height - 6, "text-anchor": "middle" },
      `${state.axis === "t" ? "emulated time" : "bytes on the wire"} (${unit.name})`));
    const plot = el("g", {});
    svg.append(plot);
    drawEventsOnCurves(plot, sx, box, xMax);
    for (const s of list) {
      const path = s.x.map((x, i) => `${i ? "L" : "M"}${sx(x).toFixed(1)} ${sy(s.y[i]).toFixed(1)}`).join("");
      plot.append(el("path", { class: "curve", d: path, style: `stroke:${colour(s.run)}`,
        "stroke-dasharray": dashes[s.run % 8] || null }));
      const last = s.x.length - 1;
      plot.append(el("circle", { class: "dot", cx: sx(s.x[last]), cy: sy(s.y[last]), r: 3.5,
        style: `fill:${colour(s.run)}` }));
    }
    const cursor = el("g", {});
    svg.append(cursor);
    const readout = el("p", { class: "readout", "aria-live": "polite" });

    const show = (x) => {
      cursor.replaceChildren();
      if (x === null) {
        replace(readout, el("span", {}, "Point at the curves, or use the arrow keys, to read values."));
        return;
      }
      cursor.append(el("line", { class: "cursor", x1: sx(x), x2: sx(x), y1: box.top,
        y2: box.top + box.height }));
      const parts = [el("span", {}, state.axis === "t" ? timeText(x) : bytesText(x))];
      for (const s of list) {
        const i = indexAt(s.x, x * (1 + 1e-12));
        if (i < 0) continue;
        cursor.append(el("circle", { class: "dot", cx: sx(s.x[i]), cy: sy(s.y[i]), r: 4,
          style: `fill:${colour(s.run)}` }));
        parts.push(el("span", { style: `color:${colour(s.run)}` }, `${runName(s.run).slice(0, 28)} `,
          el("b", {}, format(s.y[i])), i === s.x.length - 1 ? " (last)" : ""));
      }
      replace(readout, parts);
    };
    const move = (x) => {
      state.cursor = x === null ? null : Math.min(Math.max(x, 0), xMax);
      charts.forEach((chart) => chart(state.cursor));
    };
    svg.addEventListener("pointermove", (e) => {
      const at = svg.getBoundingClientRect();
      move((((e.clientX - at.left) * width) / at.width - box.left) / box.width * xMax);
    });
    svg.addEventListener("pointerleave", () => move(null));
    svg.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (!step) return;
      e.preventDefault();
      move((state.cursor ?? 0) + (step * xMax) / 50);
    });
    replace(figure, caption, svg, readout);
    charts.push(show);
    show(null);
  }

  let charts = [];
  function drawCurves() {
    charts = [];
    drawChart(byId("chart-accuracy"), "accuracy", "Test accuracy (%)", (v) => percentText(v), true);
    drawChart(byId("chart-loss"), state.loss, state.loss === "test_loss" ? "Test loss" : "Loss",
      (v) => v.toPrecision(4), false);
    const straight = runs.filter((r) => r.byte_readings < 2).length;
    byId("curve-note").textContent = state.axis === "bytes"
      ? `Bytes that left the nodes, by the links' own counters${straight
        ? "; where a run has one reading only, bytes are taken to grow evenly over its time"
        : ", linear between readings"}. Triangles: events of the timeline.`
      : events.length ? "Numbered marks and bands: events of the timeline, listed below." : "";
  }

  function drawLegend() {
    replace(byId("legend"), runs.map((_, i) => el("label", {},
      el("input", { type: "checkbox", checked: !state.hidden.has(i), onchange: (e) => {
        if (e.target.checked) state.hidden.delete(i); else state.hidden.add(i);
        drawCurves();
      } }),
      el("svg", { width: 26, height: 10, "aria-hidden": "true" }, el("line", { x1: 1, x2: 25, y1: 5, y2: 5,
        style: `stroke:${colour(i)};stroke-width:2.5`, "stroke-dasharray": dashes[i % 8] || null })),
      el("span", { class: "name", title: runName(i) }, runName(i)))));
  }

  // ---- Timeline

  function drawTimeline() {
    const root = byId("timeline");
    if (!events.length) {
      replace(root, el("p", { class: "note" }, "Nothing was changed while the runs went on."));
      return;
    }
    const end = Math.max(...runs.map((r) => r.summary.emulated_seconds), 1e-9);
    const width = Math.max(root.clientWidth || 900, 260), row = 22, left = 28, right = 14;
    const height = events.length * row + 26;
    const sx = (v) => left + (v / end) * (width - left - right);
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, role: "img",
      "aria-label": "Events of the timeline over emulated time; the list below says the same in words" });
    const unit = axisUnit("t", end);
    for (const v of ticks(0, end / unit.scale, Math.max(3, width / 110)))
      svg.append(el("line", { class: "grid", x1: sx(v * unit.scale), x2: sx(v * unit.scale), y1: 0,
        y2: height - 24 }), el("text", { x: sx(v * unit.scale), y: height - 8, "text-anchor": "middle" },
        `${tickText(v)} ${unit.name}`));
    events.forEach((event, i) => {
      const y = i * row + 4;
      const from = sx(event.begin), to = sx(event.end ?? (/kill|restart/.test(event.type) ? event.begin : end));
      svg.append(el("text", { class: "mark-name", x: 4, y: y + 12 }, event.number),
        el("rect", { class: "bar", x: from, y: y + 1, width: Math.max(to - from, 3), height: row - 8, rx: 2 },
          el("title", {}, event.what)));
    });
    const lateness = (e) => (Math.abs(e.begin - e.planned) > 1e-6
      ? `, planned for ${timeText(e.planned)}` : "");
    replace(root, svg, el("ul", { class: "events" }, events.map((e) => el("li", {},
      el("b", {}, `${e.number}. ${e.name}`), ` ${e.what || e.type}${e.target ? ` (${e.target})` : ""}: `,
      `at ${timeText(e.begin)}${lateness(e)}${isNumber(e.end) ? ` until ${timeText(e.end)}` : ""}`,
      runs.length > 1 && e.of.filter(Boolean).length < runs.length
        ? `; reached by ${e.of.map((x, r) => (x ? runName(r) : null)).filter(Boolean).join(", ")}` : "",
      "."))));
  }

  // ---- Gantt

  const lanes = [["compute", 0, 13], ["send", 14, 7], ["wait", 22, 5]];
  const laneOf = { compute: lanes[0], pause: lanes[0], send: lanes[1], wait: lanes[2] };

  function drawGantt() {
    const root = byId("gantt");
    const run = runs[state.run];
    const rows = run.spans.rows;
    if (!rows.length) {
      replace(root, el("p", { class: "note" }, "No spans were recorded."));
      return;
    }
    const names = run.spans.names;
    const first = rows[0][0];
    const last = rows.reduce((m, r) => Math.max(m, r[1]), first);
    const all = Math.max(last - first, 1e-9);
    const start = rows[Math.min(rows.length - 1, 160)][1] - first;
    let view = { from: first, length: Math.min(all, Math.max(start, all / 200)) };
    const count = Math.max(run.nodes.length, 1);
    const longest = Math.max(...run.nodes.map((n) => n.name.length), 4);
    const width = Math.max(root.clientWidth || 900, 260), rowHeight = 33;
    const left = Math.min(Math.max(longest * 7 + 10, 48), width < 500 ? 84 : 150), right = 12;
    const height = count * rowHeight + 24, plotWidth = width - left - right;
    const svg = el("svg", { class: "pan", viewBox: `0 0 ${width} ${height}`, width: "100%", height,
      tabindex: 0, role: "img", "aria-label":
        "What each node did over emulated time. Arrow keys move, plus and minus zoom." });
    const overview = el("svg", { viewBox: `0 0 ${width} 20`, width: "100%", height: 20, "aria-hidden": "true" });
    const range = el("span", {});
    const readout = el("p", { class: "readout", "aria-live": "off" });

    function draw() {
      const sx = (v) => left + ((v - view.from) / view.length) * plotWidth;
      const parts = [];
      const unit = axisUnit("t", view.length);
      for (const v of ticks(view.from / unit.scale, (view.from + view.length) / unit.scale,
        Math.max(2, plotWidth / 110)))
        parts.push(el("line", { class: "grid", x1: sx(v * unit.scale), x2: sx(v * unit.scale), y1: 0,
          y2: height - 22 }), el("text", { x: Math.min(sx(v * unit.scale), width - 30), y: height - 7,
          "text-anchor": "middle" }, `${tickText(v)} ${unit.name}`));
      for (const event of events) {
        const mine = event.of[state.run];
        if (!mine) continue;
        const from = Math.max(sx(mine.begin), left), to = Math.min(sx(mine.end ?? mine.begin), width - right);
        if (to > from)
          parts.push(el("rect", { class: "band", x: from, y: 0, width: to - from, height: height - 22 },
            el("title", {}, event.what)));
      }
      run.nodes.forEach((node, n) => {
        const y = n * rowHeight;
        const fits = Math.floor((left - 8) / 7);
        parts.push(el("line", { class: "grid", x1: 0, x2: width, y1: y + rowHeight - 1, y2: y + rowHeight - 1 }),
          el("text", { class: "strong", x: 0, y: y + 19 }, node.name.length > fits
            ? `${node.name.slice(0, Math.max(fits - 1, 1))}\u2026` : node.name, el("title", {}, node.name)));
      });
      const filled = new Map();  // (node, lane) to the pixel up to which it is drawn
      rows.forEach((span, i) => {
        const [begin, end, node, category] = span;
        if (end < view.from || begin > view.from + view.length) return;
        const from = Math.max(sx(begin), left), to = Math.min(sx(end), width - right);
        const lane = laneOf[names[category]] || lanes[2];
        const key = node * 8 + lane[1];
        if (to - from < 0.4 && (filled.get(key) ?? -1) > to - 0.4) return;
        filled.set(key, Math.max(to, from + 0.6));
        parts.push(el("rect", { class: laneOf[names[category]] ? names[category] : "other",
          x: from.toFixed(2), y: node * rowHeight + 2 + lane[1], width: Math.max(to - from, 0.6).toFixed(2),
          height: lane[2], "data-span": i }));
      });
      svg.replaceChildren(...parts);
      const ox = (v) => left + ((v - first) / all) * plotWidth;
      overview.replaceChildren(el("rect", { class: "plain", x: left, y: 4, width: plotWidth, height: 12, rx: 3 }),
        el("rect", { class: "window", x: ox(view.from), y: 2, width: Math.max((view.length / all) * plotWidth, 3),
          height: 16, rx: 3 }));
      range.textContent = `${timeText(view.from)} \u2013 ${timeText(view.from + view.length)}`;
    }
    function look(from, length) {
      length = Math.min(Math.max(length, all * 1e-5), all);
      view = { from: Math.min(Math.max(from, first), first + all - length), length };
      draw();
    }
    const zoom = (factor, at = 0.5) =>
      look(view.from + view.length * (1 - factor) * at, view.length * factor);
    const button = (text, label, act) => el("button", { type: "button", "aria-label": label, title: label,
      onclick: act }, text);

    svg.addEventListener("keydown", (e) => {
      const act = { ArrowLeft: () => look(view.from - view.length / 4, view.length),
        ArrowRight: () => look(view.from + view.length / 4, view.length), "+": () => zoom(0.5),
        "=": () => zoom(0.5), "-": () => zoom(2), 0: () => look(first, all) }[e.key];
      if (!act) return;
      e.preventDefault();
      act();
    });
    svg.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      const at = svg.getBoundingClientRect();
      zoom(e.deltaY > 0 ? 1.25 : 0.8, Math.min(Math.max((e.clientX - at.left - left) / plotWidth, 0), 1));
    }, { passive: false });
    let drag = null;
    svg.addEventListener("pointerdown", (e) => {
      drag = { x: e.clientX, from: view.from };
      svg.setPointerCapture(e.pointerId);
    });
    svg.addEventListener("pointerup", () => { drag = null; });
    svg.addEventListener("pointercancel", () => { drag = null; });
    svg.addEventListener("pointermove", (e) => {
      if (drag) {
        const scale = width / svg.getBoundingClientRect().width;
        look(drag.from - (((e.clientX - drag.x) * scale) / plotWidth) * view.length, view.length);
        return;
      }
      const index = e.target.getAttribute && e.target.getAttribute("data-span");
      if (index === null || index === undefined) return;
      const [begin, end, node, category, name] = rows[Number(index)];
      replace(readout, el("span", {}, el("b", {}, run.nodes[node].name), ` ${names[category]}: ${names[name]}`),
        el("span", {}, `from ${begin.toFixed(6)} s, for ${timeText(end - begin)}`));
    });
    overview.addEventListener("pointerdown", (e) => {
      const at = overview.getBoundingClientRect();
      const share = ((e.clientX - at.left) * (width / at.width) - left) / plotWidth;
      look(first + share * all - view.length / 2, view.length);
    });
    const key = (name, text) => el("span", { class: "key" },
      el("i", { style: `background:var(--${name})` }), text);
    replace(root, el("div", { class: "toolbar" },
      button("\u2190", "Earlier", () => look(view.from - view.length / 2, view.length)),
      button("\u2192", "Later", () => look(view.from + view.length / 2, view.length)),
      button("+", "Zoom in", () => zoom(0.5)), button("\u2212", "Zoom out", () => zoom(2)),
      button("All", "Show all", () => look(first, all)), range),
    el("p", { class: "note" }, key("compute", "compute"), key("send", "send"), key("wait", "wait"),
      key("pause", "pause")), svg, overview, readout,
    el("p", { class: "note" }, `${rows.length < run.spans.total
      ? `The first ${countText(rows.length)} of ${countText(run.spans.total)} spans, up to ${timeText(last)}; trace.json has all of them and opens in Perfetto. `
      : `All ${countText(rows.length)} spans. `}Drag to move, Ctrl and wheel to zoom.`));
    replace(readout, el("span", {}, "Point at a bar to read it."));
    draw();
  }

  // ---- Topology

  function check(link, property) {
    return link && link.checks.find((c) => c.property === property);
  }
  function linkText(link) {
    if (!link) return "";
    const said = [];
    for (const property of ["rate", "delay", "loss"]) {
      const c = check(link, property);
      if (!c || !isNumber(c.asked) || (property === "loss" && c.asked === 0)) continue;
      said.push((property === "loss" ? "loss " : "") + propertyText(property, c.asked));
    }
    return said.join(", ") || "not checked";
  }

  function drawTopology() {
    const root = byId("topology");
    const run = runs[state.run];
    const nodeNames = new Set(run.nodes.map((n) => n.name));
    const hubs = new Set(run.links.flatMap((l) => [l.from, l.to]).filter((n) => n && !nodeNames.has(n)));
    const link = (from, to) => run.links.find((l) => l.from === from && l.to === to);
    if (!run.nodes.length) {
      replace(root, el("p", { class: "note" }, "The records name no node."));
      return;
    }
    if (hubs.size !== 1) {
      // No star: the table below has the figures; here, who has what speed.
      replace(root, el("p", {}, `${plural(run.nodes.length, "node")}: ${run.nodes.map((n) =>
        `${n.name}${isNumber(n.speed) ? ` (speed ${plainText(n.speed)})` : ""}`).join(", ")}.`));
      return;
    }
    const hub = [...hubs][0];
    const width = Math.max(root.clientWidth || 900, 260), row = 58;
    const narrow = width < 520, card = narrow ? 96 : 190, hubWidth = narrow ? 34 : 74;
    const height = run.nodes.length * row + 6;
    const drawn = Math.min(width, 820), x0 = card + 6, x1 = drawn - hubWidth - 6;
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, role: "img",
      "aria-label": `A star of ${plural(run.nodes.length, "node")} around ${hub}; the table below has its figures` });
    svg.append(el("rect", { class: "plain", x: drawn - hubWidth, y: 4, width: hubWidth, height: height - 8, rx: 6 }),
      narrow ? el("text", { class: "strong", "text-anchor": "middle",
        transform: `translate(${drawn - hubWidth / 2 + 4} ${height / 2}) rotate(-90)` }, hub.slice(0, 20))
             : el("text", { class: "strong", "text-anchor": "middle", x: drawn - hubWidth / 2, y: height / 2 + 4 },
               hub.slice(0, 10)));
    const letters = Math.floor((card - 14) / 7.2);
    run.nodes.forEach((node, n) => {
      const y = n * row + 4;
      const name = node.name.length > letters ? `${node.name.slice(0, letters - 1)}\u2026` : node.name;
      const busy = isNumber(node.busy) && run.summary.emulated_seconds > 0
        ? node.busy / run.summary.emulated_seconds : null;
      const facts = [isNumber(node.speed) ? `speed ${plainText(node.speed)}` : null,
        busy === null ? null : `${percentText(busy, 0)} busy`].filter(Boolean);
      svg.append(el("rect", { class: "plain", x: 1, y, width: card, height: row - 10, rx: 6 }),
        el("text", { class: "strong", x: 9, y: y + 19 }, name, el("title", {}, node.name)),
        el("text", { x: 9, y: y + 36 }, narrow ? facts[facts.length - 1] || "" : facts.join(", ")));
      [[link(node.name, hub), y + 18, 1], [link(hub, node.name), y + 42, -1]].forEach(([l, ly, way]) => {
        const [a, b] = way > 0 ? [x0, x1] : [x1, x0];
        const off = l && l.checks.some((c) => c.verdict && c.verdict !== "ok" && c.verdict !== "none asked"
          && !c.verdict.startsWith("not measured"));
        svg.append(el("line", { class: "arrow", x1: a, x2: b - way * 6, y1: ly, y2: ly,
          style: off ? "stroke:var(--warn)" : null }),
        el("path", { class: "head", d: `M${b} ${ly}l${-way * 8} -4v8z`, style: off ? "fill:var(--warn)" : null }),
        el("text", { x: (x0 + x1) / 2, y: ly - 4, "text-anchor": "middle" }, linkText(l) + (off ? " (off)" : "")));
      });
    });
    replace(root, svg);
  }

  function drawLinks() {
    const run = runs[state.run];
    const root = byId("links");
    if (!run.links.length) {
      replace(root, el("p", { class: "note" }, "No link was checked and no link reported what it carried."));
      return;
    }
    const head = ["Link", "Property", "Asked", "Applied", "Measured", "Verdict", "Burst", "Packets",
      "Bytes", "Dropped"];
    const text = new Set(["Link", "Property", "Verdict"]);
    // In the order of the nodes, each node's way out before its way in.
    const place = (l) => {
      const from = run.nodes.findIndex((n) => n.name === l.from);
      const to = run.nodes.findIndex((n) => n.name === l.to);
      return from >= 0 ? 2 * from : to >= 0 ? 2 * to + 1 : Infinity;
    };
    const ordered = run.links.map((l) => [place(l), l]).sort((a, b) => a[0] - b[0] || 0);
    const rows = ordered.flatMap(([, l]) => {
      const burst = check(l, "burst");
      const told = l.checks.filter((c) => c !== burst && c.verdict !== "none asked");
      const checks = told.length ? told : [{ property: none, verdict: "not checked" }];
      const once = (i, ...cells) => (i === 0 ? cells.map((c) => el("td", { rowspan: checks.length }, c)) : []);
      return checks.map((c, i) => el("tr", {},
        i === 0 ? el("th", { scope: "rowgroup", rowspan: checks.length, class: "name", title: l.name },
          l.name.replace("->", " \u2192 ")) : null,
        el("td", { class: "text" }, c.property),
        ["asked", "applied", "measured"].map((k) => el("td", {}, propertyText(c.property, c[k]))),
        el("td", { class: `text ${c.verdict === "ok" ? "" : !c.verdict || /^not /.test(c.verdict)
          ? "unmeasured" : "off"}` }, c.verdict || "not measured"),
        once(i, burst ? timeText(burst.applied) : none, countText(l.packets), bytesText(l.bytes),
          countText(l.dropped))));
    });
    replace(root, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Link figures" },
      el("table", {}, el("thead", {}, el("tr", {}, head.map((h) =>
        el("th", { scope: "col", class: text.has(h) ? "text" : null }, h)))), el("tbody", {}, rows))),
    el("p", { class: "note" }, "Asked: what the experiment says. Applied: what the kernel read back. "
      + "Measured: with packets of our own, before the run. Burst: line time of the longest super-packet."));
  }

  // ---- Traffic

  let trafficKind = "all";
  function drawTraffic() {
    const run = runs[state.run];
    const root = byId("traffic");
    const present = [...new Set(run.traffic.map((t) => t.kind))];
    if (!present.length) {
      replace(root, el("p", { class: "note" }, "No traffic was counted."));
      return;
    }
    if (trafficKind !== "all" && !present.includes(trafficKind)) trafficKind = "all";
    const sum = new Map();
    for (const t of run.traffic)
      if (trafficKind === "all" || t.kind === trafficKind) {
        const key = `${t.from} ${t.to}`;
        const cell = sum.get(key) || { bytes: 0, messages: 0 };
        cell.bytes += t.bytes;
        cell.messages += t.messages;
        sum.set(key, cell);
      }
    const most = Math.max(1, ...[...sum.values()].map((c) => c.bytes));
    const total = (kind) => run.traffic.filter((t) => kind === "all" || t.kind === kind)
      .reduce((s, t) => s + t.bytes, 0);
    const select = el("select", { id: "kind", onchange: (e) => { trafficKind = e.target.value; drawTraffic(); byId("kind").focus(); } },
      ["all", ...present].map((k) => el("option", { value: k, selected: k === trafficKind },
        `${k === "all" ? "all kinds" : k} (${bytesText(total(k))})`)));
    replace(root, el("div", { class: "toolbar" }, el("label", { for: "kind" }, "Kind"), select),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Traffic matrix" }, el("table", { style: "min-width:0" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "text" }, "from \\ to"),
          run.nodes.map((n) => el("th", { scope: "col", class: "name" }, n.name)))),
        el("tbody", {}, run.nodes.map((from, f) => el("tr", {}, el("th", { scope: "row", class: "name" }, from.name),
          run.nodes.map((to, t) => {
            const cell = sum.get(`${f} ${t}`);
            const td = el("td", { class: "heat", title: cell ? `${plural(cell.messages, "message")}` : null },
              cell ? bytesText(cell.bytes) : f === t ? "" : none);
            td.style.setProperty("--share", cell ? (0.06 + 0.4 * (cell.bytes / most)).toFixed(3) : "0");
            return td;
          })))))),
      el("p", { class: "note" }, "Payload that the row's node sent to the column's: message headers and tensors, without framing."));
  }

  // ---- Sources

  function drawSource() {
    const facts = (entries) => el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, entries.map(([k, v]) =>
      el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, v))))));
    const same = runs.every((r) => r.experiment === runs[0].experiment);
    const parts = (same ? runs.slice(0, 1) : runs).filter((r) => r.experiment).map((r) => el("details", {},
      el("summary", {}, same || runs.length === 1 ? "The experiment, every default filled in"
        : `The experiment of ${r.summary.name}`), el("pre", { tabindex: 0 }, r.experiment)));
    runs.forEach((r, i) => {
      const entries = [["seed", r.summary.seed], ["engine", r.engine || none], ["cost", r.cost || none],
        ["profile", r.summary.profile_hash || none], ["ended because", r.ended || none],
        ["command line", r.command_line.join(" ") || none],
        ...Object.entries(r.versions), ...Object.entries(r.host).map(([k, v]) => [`host ${k}`, v])];
      parts.push(el("details", {}, el("summary", {}, runs.length > 1 ? `Versions and host of ${runName(i)}`
        : "Versions and host"), facts(entries)));
    });
    replace(byId("source"), parts);
  }

  // ---- The page

  function drawSubtitle() {
    const uniq = (list) => [...new Set(list.filter((v) => v !== "" && v !== null && v !== undefined))];
    const parts = [plural(runs.length, "run")];
    const engines = uniq(runs.map((r) => r.engine)), costs = uniq(runs.map((r) => r.cost));
    const seeds = uniq(runs.map((r) => r.summary.seed));
    if (runs.length === 1) parts[0] = runs[0].summary.strategy || "one run";
    if (engines.length) parts.push(`engine ${engines.join(", ")}`);
    if (costs.length) parts.push(`cost ${costs.join(", ")}`);
    if (seeds.length) parts.push(`seed${seeds.length > 1 ? "s" : ""} ${seeds.join(", ")}`);
    byId("subtitle").textContent = parts.join(" \u00b7 ");
  }
  function drawRun() { drawGantt(); drawTopology(); drawLinks(); drawTraffic(); }
  function drawWide() { drawCurves(); drawTimeline(); if (runs.length) { drawGantt(); drawTopology(); } }

  function isDark() {
    const set = document.documentElement.dataset.theme;
    return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  });
  for (const input of document.querySelectorAll("input[name=axis]"))
    input.addEventListener("change", () => { state.axis = input.value; state.cursor = null; drawCurves(); });
  for (const input of document.querySelectorAll("input[name=loss]"))
    input.addEventListener("change", () => { state.loss = input.value; drawCurves(); });

  drawSubtitle();
  drawVerdict();
  drawSummary();
  drawLegend();
  if (!runs.some((r) => r.curves.test_loss.t.length) && runs.some((r) => r.curves.own_loss.t.length)) {
    state.loss = "own_loss";
    document.querySelector("input[name=loss][value=own_loss]").checked = true;
  }
  if (runs.length > 1) {
    replace(byId("run"), runs.map((_, i) => el("option", { value: i }, runName(i))));
    byId("run").addEventListener("change", (e) => { state.run = Number(e.target.value); drawRun(); });
    byId("picker").hidden = false;
  }
  drawCurves();
  drawTimeline();
  if (runs.length) drawRun();
  drawSource();

  let drawnAt = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === drawnAt) return;
    drawnAt = document.documentElement.clientWidth;
    drawWide();
  });
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

  const points = runs.reduce((n, r) => n + Object.values(r.curves).reduce((m, c) => m + c.t.length, 0), 0);
  const spans = runs.reduce((n, r) => n + r.spans.rows.length, 0);
  document.documentElement.dataset.ready = `runs=${runs.length} points=${points} spans=${spans}`;
})();
