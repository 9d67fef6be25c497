// A small chart without axes, of values as [place, value], of which null is not known.

import { html } from "./rendering.js";

// `from` and `to` are the places at its ends, `top` the value at its top, `gap` the distance that breaks the line,
// `limit` a value with a dashed line. What it says is in `label`, for screen readers and as a tooltip.
export function Spark({ values, from, to, top, gap, limit = null, label, width = 120, height = 28, color = "var(--accent)" }) {
  const x = (at) => (width * (at - from) / Math.max(1e-9, to - from)).toFixed(1);
  const y = (value) => (height - 1 - (height - 2) * Math.min(1, value / Math.max(1e-9, top))).toFixed(1);
  const lines = pieces(values, gap);
  return html`
    <svg class="spark" role="img" aria-label=${label} viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" style=${`--color: ${color}`}>
      <title>${label}</title>
      ${limit === null ? null : html`<line class="limit" x1="0" x2=${width} y1=${y(limit)} y2=${y(limit)} />`}
      ${lines.map((line) => html`
        <polygon class="area" points=${[...line.map(([at, value]) => `${x(at)},${y(value)}`), `${x(line.at(-1)[0])},${height}`, `${x(line[0][0])},${height}`].join(" ")} />
        <polyline class="line" points=${line.map(([at, value]) => `${x(at)},${y(value)}`).join(" ")} />`)}
    </svg>`;
}

// The values without a gap between them. A single value is a short line, or it could not be seen.
export function pieces(values, gap) {
  const found = [];
  let last = null;
  for (const [at, value] of values) {
    if (value === null) {
      last = null;
      continue;
    }
    if (last === null || at - last > gap) found.push([]);
    found.at(-1).push([at, value]);
    last = at;
  }
  return found.map((line) => (line.length > 1 ? line : [[line[0][0] - gap / 10, line[0][1]], line[0]]));
}
