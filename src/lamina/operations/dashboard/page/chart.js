// Small charts of what a share used over the last minutes.

import { counted } from "./elements.js";

const WINDOW_S = 300;
const GAP_S = 20; // No reading for so long leaves a gap in the line.
const WIDTH = 240;
const HEIGHT = 44;

// Take in the readings of an event, and forget what is too old or gone.
export function extend(known, change) {
  known.readAt = change.read_at;
  for (const [uid, shares] of Object.entries(change.use)) {
    const kept = (known.use[uid] ??= {});
    for (const [key, points] of Object.entries(shares)) {
      kept[key] = [...(kept[key] ?? []), ...points].filter(([moment]) => moment > known.readAt - WINDOW_S);
    }
  }
  for (const uid of Object.keys(known.use)) if (!(uid in known.pods)) delete known.use[uid];
}

// The readings of a share as [seconds since the first moment of the window, memory in MiB, percent of GPU time].
export function readings(known, uid, share) {
  const points = known.use[uid]?.[`${share.container} ${share.gpu}`] ?? [];
  return points.map(([moment, used, busy]) => [moment - known.readAt + WINDOW_S, used, busy]);
}

// A chart of values as [second, value], where null is a gap, with the scale from 0 to `top`. `text` names a value.
export function chart(title, values, top, text) {
  const found = values.map(([, value]) => value).filter((value) => value !== null);
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  figure.append(caption);
  if (!found.length) {
    caption.textContent = `${title}: not known`;
    return figure;
  }
  const most = Math.max(...found);
  const now = `now ${text(found.at(-1))}`;
  caption.textContent = `${title}, last ${counted(WINDOW_S / 60, "minute")}: ${now}, most ${text(most)}`;
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const height = Math.max(top, most, 1);
  const limit = y(top, height);
  drawing.append(shape("line", { class: "limit", x1: 0, x2: WIDTH, y1: limit, y2: limit }));
  for (const line of lines(values)) {
    const ends = `${x(line.at(-1)[0])},${HEIGHT} ${x(line[0][0])},${HEIGHT}`;
    const points = line.map(([second, value]) => `${x(second)},${y(value, height)}`).join(" ");
    drawing.append(shape("polygon", { class: "area", points: `${points} ${ends}` }));
    drawing.append(shape("polyline", { class: "line", points }));
  }
  figure.prepend(drawing);
  return figure;
}

// The values without a gap between them.
function lines(values) {
  const found = [];
  let last = null;
  for (const [second, value] of values) {
    if (value === null) continue;
    if (last === null || second - last > GAP_S) found.push([]);
    found.at(-1).push([second, value]);
    last = second;
  }
  // A single reading is a short line, or it could not be seen.
  return found.map((line) => (line.length > 1 ? line : [[line[0][0] - 2, line[0][1]], line[0]]));
}

function x(second) {
  return (WIDTH * second / WINDOW_S).toFixed(1);
}

function y(value, height) {
  return (HEIGHT - (HEIGHT - 2) * value / height - 1).toFixed(1);
}

export function shape(tag, settings) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(settings)) made.setAttribute(name, value);
  return made;
}
