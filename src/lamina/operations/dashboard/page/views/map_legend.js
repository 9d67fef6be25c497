// What the colors and signs of the map mean.

import { html, memo } from "../rendering.js";
import { shorten } from "../formats.js";
import { holder } from "./cell.js";

const MAX_NAMES = 12;
const SIGNS = [["bad", "✕", "unhealthy"], ["unknown", "?", "node not ready"], ["cordoned", "⊘", "cordoned"]];

export function Legend({ known, color }) {
  return html`<${Drawn} names=${names(known, color)} known=${known} />`;
}

const Drawn = memo(({ names: text, known }) => {
  const all = text ? text.split("\n") : [];
  const more = all.length - MAX_NAMES;
  return html`
    <ul class="keys legend" aria-label="Legend">
      ${all.slice(0, MAX_NAMES).map((name) => html`
        <li key=${name} title=${name}><span class="swatch" style=${`--color: ${known.colors.of(name)}`} aria-hidden="true"></span> ${shorten(name, 28)}</li>`)}
      ${more > 0 ? html`<li class="quiet">and ${more} more</li>` : null}
      <li><span class="used-key" aria-hidden="true"></span> memory used</li>
      <li><span class="stranded-key" aria-hidden="true"></span> free but stranded</li>
      ${SIGNS.map(([kind, sign, words]) => html`<li key=${kind}><span class=${`sign ${kind}`} aria-hidden="true">${sign}</span> ${words}</li>`)}
    </ul>`;
});

// The holders with most GPUs, one in each line: a text stays equal while nothing changes.
function names(known, color) {
  const counts = new Map();
  for (const { card } of known.orderedNodes.entries) {
    for (const gpu of card.gpus) {
      for (const part of gpu.parts) {
        const name = holder(part, color);
        if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
  }
  return [...counts].sort(([one, many], [other, most]) => most - many || (one < other ? -1 : 1)).map(([name]) => name).join("\n");
}
