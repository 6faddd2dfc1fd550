// A chart of a few series over time, drawn by uPlot, with a legend of text.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { bytes, short } from "./format.js";
import { useStore } from "./store.js";
import { drawn } from "./theme.js";

// A script before this one has made it; it is half of what its module would be.
const { uPlot } = globalThis;
const HEIGHT = 150;
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

function optionsOf(labels, width, format, shown, onCursor) {
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
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    padding: [8, 28, 0, 0],
    scales: {
      // All charts of a page have the same.
      x: { range: () => shown.current },
      y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.1] },
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
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)] },
  };
}

export function Chart({ title, series, window: range, format = short, children }) {
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
  useEffect(() => {
    const place = box.current;
    const width = () => Math.max(200, place.clientWidth);
    const options = optionsOf(labels.split("\n"), width(), format, span, setCursor);
    const made = new uPlot(options, latest.current, place);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: width(), height: HEIGHT }));
    watch.observe(place);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [labels, shade, format]);
  useEffect(() => plot.current.setData(data), [data, ...range]);
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
      </ul>
    </figcaption>
    <div class="plot" role="img" data-range=${range.join(" ")}
      aria-label=${`${title}: ${spoken}`} ref=${box}></div>
    ${children}
  </figure>`;
}
