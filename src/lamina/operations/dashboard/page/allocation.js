// Granted and stranded parts of all GPUs over the hours that the command has seen.

import { shape } from "./chart.js";
import { make, replace } from "./elements.js";

const WIDTH = 960;
const HEIGHT = 140;
const LINES = [["memory", "Memory granted", 1], ["compute", "Compute granted", 2], ["stranded", "Memory stranded", 3]];

// Take in the points of an event: [seconds since the epoch, percent of memory, of compute, stranded].
export function extendAllocation(points, change) {
  return change.first ? change.allocation : [...points, ...change.allocation];
}

// What a point says holds until the next one.
export function drawAllocation(place, points, now = Date.now() / 1000) {
  if (!points.length) {
    replace(place, make("p", {}, "Nothing has been recorded yet."));
    return;
  }
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const began = points[0][0];
  const x = (moment) => (WIDTH * (moment - began) / Math.max(60, now - began)).toFixed(1);
  const y = (value) => (HEIGHT - 2 - (HEIGHT - 4) * Math.min(100, value) / 100).toFixed(1);
  for (const [, , column] of LINES) {
    for (const line of steps(points, column, Math.max(now, points.at(-1)[0] + 1))) {
      const written = line.map(([moment, value]) => `${x(moment)},${y(value)}`).join(" ");
      drawing.append(shape("polyline", { class: `line course${column}`, points: written }));
    }
  }
  const keys = LINES.map(([, title, column]) =>
    make("li", {}, make("span", { class: `key course${column}`, "aria-hidden": "true" }), ` ${title}: ${words(points, column)}`));
  replace(place, make("figure", {},
    drawing,
    make("figcaption", {}, `Percent of all GPUs since ${new Date(1000 * began).toLocaleTimeString()}; gaps are not known.`)),
  make("ul", { class: "keys" }, ...keys));
}

function words(points, column) {
  const found = points.map((point) => point[column]).filter((value) => value !== null);
  const last = points.at(-1)[column];
  const text = (value) => `${value.toFixed(1)} %`;
  return `now ${last === null ? "not known" : text(last)}, least ${text(Math.min(...found))}, most ${text(Math.max(...found))}`;
}

function steps(points, column, end) {
  const found = [];
  let open = false;
  points.forEach((point, place) => {
    const value = point[column];
    if (value === null) {
      open = false;
      return;
    }
    if (!open) found.push([]);
    open = true;
    found.at(-1).push([point[0], value], [points[place + 1]?.[0] ?? end, value]);
  });
  return found;
}
