// Series for charts from the samples that the API has, which come with the newest first.
import { useMemo } from "preact/hooks";

// [[seconds, value], ...] of a level.
function levels(details, scale = 1) {
  return (details?.samples ?? [])
    .map(({ sample, timestamp }) => [timestamp / 1000, sample * scale])
    .reverse();
}

// [[seconds, per second], ...] of a counter.
function rates(details) {
  const points = levels(details);
  return points.slice(1).map(([time, total], index) => {
    const [before, smaller] = points[index];
    return [time, Math.max(0, (total - smaller) / (time - before))];
  });
}

// The lines of a chart, from {label: details}; they are new only when the object is.
function useSeries(object, lines, points) {
  const read = () =>
    Object.entries(lines).map(([label, details]) => ({ label, points: points(details) }));
  return useMemo(read, [object]);
}

export const useLevels = (object, lines) => useSeries(object, lines, levels);
export const useRates = (object, lines) => useSeries(object, lines, rates);

export const RANGES = [
  { label: "1 minute", age: 60, step: 5 },
  { label: "10 minutes", age: 600, step: 5 },
  { label: "1 hour", age: 3600, step: 60 },
  { label: "24 hours", age: 86400, step: 1800 },
];

// [from, to] in seconds: what all charts of a page show of a range, up to the newest sample.
export function windowOf(range, ...samples) {
  const newest = samples.map((details) => details?.samples?.[0]?.timestamp ?? 0);
  const to = Math.max(...newest) / 1000 || Date.now() / 1000;
  return [to - range.age, to];
}

// The query that asks for samples of a range, for each of some kinds.
export function sampled(range, ...kinds) {
  return kinds.map((kind) => `${kind}_age=${range.age}&${kind}_incr=${range.step}`).join("&");
}
