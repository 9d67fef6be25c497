// The health of a GPU over the last hours, as a strip and in words.

import { list, make } from "./elements.js";

const MAX_LINES = 3;
const COLORS = { healthy: "var(--good-strip)", unhealthy: "var(--bad-strip)", unknown: "var(--track)" };
const KEPT_S = 6 * 3600;
const EVERY_MS = 60_000;
const shown = new WeakMap(); // The spans of each strip.

export function drawHealth(spans) {
  if (!spans.length) return [];
  const strip = make("div", { class: "health", role: "img" });
  shown.set(strip, spans);
  paint(strip);
  const lines = spans.map((span, at) => [span, spans[at + 1]]).filter(([span]) => span.state !== "healthy");
  const past = lines.filter(([, next]) => next).slice(-MAX_LINES).map(([span, next]) => sentence(span, next));
  return [strip, ...(past.length ? [list(past)] : [])];
}

// Strips grow with the time, also when nothing happens.
setInterval(() => document.querySelectorAll(".health").forEach(paint), EVERY_MS);

function paint(strip) {
  const spans = shown.get(strip);
  const end = Math.max(Date.now() / 1000, spans.at(-1).since + 1);
  const start = Math.max(spans[0].since, end - KEPT_S);
  const part = (moment) => `${(100 * Math.max(0, moment - start) / (end - start)).toFixed(2)}%`;
  const stops = spans.map((span, at) =>
    `${COLORS[span.state] ?? COLORS.unknown} ${part(span.since)} ${at + 1 < spans.length ? part(spans[at + 1].since) : "100%"}`);
  strip.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const bad = spans.filter((span) => span.state === "unhealthy").length;
  const words = `Health since ${time(start)}: ${bad ? `unhealthy ${bad === 1 ? "once" : `${bad} times`}` : "never unhealthy"}, `
    + `now ${spans.at(-1).state}`;
  strip.setAttribute("aria-label", words);
  strip.title = words;
}

function sentence(span, next) {
  const state = span.state === "unhealthy" ? "Unhealthy" : "Not known";
  return `${state} from ${time(span.since)} to ${time(next.since)}: ${span.reason}`;
}

function time(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
