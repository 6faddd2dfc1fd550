// A chart of a few series over time, drawn by uPlot, with a legend of text.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { bytes, short } from "./format.js";
import { marks } from "./marks.js";
import { useStore } from "./store.js";
import { drawn } from "./theme.js";

// A script before this one has made it; it is half of what its module would be.
const { uPlot } = globalThis;
const HEIGHT = 150;
const FAR = 4;
const COLORS = ["--series-1", "--series-2", "--series-3", "--series-4"];

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Steps of an axis of bytes: 1, 2, 4, ... KiB, MiB and so on.
const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const FINE_CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

// The times below a chart; with seconds where a minute has several.
function clock(splits) {
  const shown = splits.length > 1 && splits[1] - splits[0] < 60 ? FINE_CLOCK : CLOCK;
  return splits.map((time) => shown.format(time * 1000));
}

// All series on one axis of times.
function joined(series) {
  const times = [...new Set(series.flatMap(({ points }) => points.map(([time]) => time)))];
  times.sort((a, b) => a - b);
  const rows = series.map(({ points }) => {
    const known = new Map(points);
    return times.map((time) => known.get(time) ?? null);
  });
  return [times, ...rows];
}

// The limits that are not far above what is shown: others would make a flat line of it.
const near = (limits, high) => limits.filter(({ value }) => value <= Math.max(1, high) * FAR);

function line(plot, colour, from, end) {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...end);
  ctx.stroke();
  ctx.restore();
}

// Limits lie across a chart, and marks stand in it.
function drawLines(plot, limits) {
  const { left, top, width, height } = plot.bbox;
  const [from, end] = [plot.scales.x.min, plot.scales.x.max];
  for (const { value } of limits) {
    const y = Math.round(plot.valToPos(value, "y", true));
    if (y >= top && y <= top + height) line(plot, color("--bad"), [left, y], [left + width, y]);
  }
  for (const { at } of marks.get()) {
    const x = Math.round(plot.valToPos(at, "x", true));
    if (at >= from && at <= end) line(plot, color("--muted"), [x, top], [x, top + height]);
  }
}

function optionsOf(labels, width, format, shown, bounds, onCursor) {
  const text = color("--muted");
  const axis = {
    stroke: text,
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: false, y: false },
      // One crosshair for all charts of a page.
      sync: { key: "page", scales: ["x", null] },
    },
    padding: [8, 28, 0, 0],
    scales: {
      // All charts of a page have the same.
      x: { range: () => shown.current },
      y: {
        range: (_, low, high) => {
          const most = near(bounds.current, high).map(({ value }) => value);
          return [Math.min(0, low ?? 0), Math.max(high || 1, ...most) * 1.1];
        },
      },
    },
    axes: [
      { ...axis, space: 70, size: 24, values: (_, splits) => clock(splits) },
      {
        ...axis,
        size: 58,
        space: 32,
        ...(format === bytes ? { incrs: BINARY } : {}),
        values: (_, splits) => splits.map((each) => format(each)),
      },
    ],
    series: [
      {},
      ...labels.map((label, index) => ({
        label,
        stroke: color(COLORS[index]),
        width: 1.5,
        spanGaps: true,
        points: { show: (plot) => plot.data[0].length < 3, size: 5 },
      })),
    ],
    hooks: {
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
      draw: [(plot) => drawLines(plot, bounds.current)],
    },
  };
}

const NO_LIMITS = [];

// `limits`: [{label, value}, ...] of what is shown.
export function Chart({
  title,
  series,
  window: range,
  format = short,
  limits = NO_LIMITS,
  children,
}) {
  const box = useRef(null);
  const plot = useRef(null);
  const [cursor, setCursor] = useState(null);
  const shade = useStore(drawn);
  const labels = series.map(({ label }) => label).join("\n");
  const data = useMemo(() => joined(series), [series]);
  const latest = useRef(data);
  latest.current = data;
  const span = useRef(range);
  span.current = range;
  const bounds = useRef(limits);
  bounds.current = limits;
  const marked = useStore(marks);
  useEffect(() => {
    const place = box.current;
    const width = () => Math.max(200, place.clientWidth);
    const options = optionsOf(labels.split("\n"), width(), format, span, bounds, setCursor);
    const made = new uPlot(options, latest.current, place);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: width(), height: HEIGHT }));
    watch.observe(place);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [labels, shade, format]);
  const bound = limits.map(({ value }) => value).join(" ");
  useEffect(() => plot.current.setData(data), [data, marked, bound, ...range]);
  const at = cursor ?? data[0].length - 1;
  const shown = data.slice(1).map((row) => format(row[at] ?? null));
  const spoken = series.map(({ label }, index) => `${label} ${shown[index]}`).join(", ");
  return html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <ul class="legend">
        ${series.map(
          ({ label }, index) => html`<li key=${label}>
          <i class=${`swatch swatch-${index + 1}`}></i>${label} <b>${shown[index]}</b>
        </li>`,
        )}
        ${limits.map(
          ({ label, value }) => html`<li key=${label}><i class="mark limit"></i>${label}
          ${" "}<b>${format(value)}</b></li>`,
        )}
      </ul>
    </figcaption>
    <div class="plot" role="img" data-range=${range.join(" ")}
      aria-label=${`${title}: ${spoken}`} ref=${box}></div>
    ${children}
  </figure>`;
}
