// The health of a GPU over the last hours, as a strip and in words.

import { time } from "./formats.js";
import { html } from "./rendering.js";

const MAX_LINES = 3;
const COLORS = { healthy: "var(--good-strip)", unhealthy: "var(--bad-strip)", unknown: "var(--track)" };
const KEPT_S = 6 * 3600;

// `now` is in seconds since the epoch. Strips grow with it, also when nothing happens.
export function Health({ spans, now = Date.now() / 1000 }) {
  if (!spans.length) return null;
  const past = spans.map((span, at) => [span, spans[at + 1]])
    .filter(([span, next]) => next && span.state !== "healthy").slice(-MAX_LINES);
  const words = sentence(spans, now);
  return html`
    <div class="health" role="img" aria-label=${words} title=${words} style=${`background: ${gradient(spans, now)}`}></div>
    ${past.length ? html`<ul class="lines">${past.map(([span, next]) => html`<li>${line(span, next)}</li>`)}</ul>` : null}`;
}

function bounds(spans, now) {
  const end = Math.max(now, spans.at(-1).since + 1);
  return [Math.max(spans[0].since, end - KEPT_S), end];
}

function gradient(spans, now) {
  const [start, end] = bounds(spans, now);
  const part = (moment) => `${(100 * Math.max(0, moment - start) / (end - start)).toFixed(2)}%`;
  const stops = spans.map((span, at) =>
    `${COLORS[span.state] ?? COLORS.unknown} ${part(span.since)} ${at + 1 < spans.length ? part(spans[at + 1].since) : "100%"}`);
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

function sentence(spans, now) {
  const bad = spans.filter((span) => span.state === "unhealthy").length;
  return `Health since ${time(bounds(spans, now)[0])}: ${bad ? `unhealthy ${bad === 1 ? "once" : `${bad} times`}` : "never unhealthy"}, `
    + `now ${spans.at(-1).state}`;
}

function line(span, next) {
  const state = span.state === "unhealthy" ? "Unhealthy" : "Not known";
  return `${state} from ${time(span.since)} to ${time(next.since)}: ${span.reason}`;
}
