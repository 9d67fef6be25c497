// What a cell of the map stands for, next to it. Screen readers have the same in its name and on the page of the GPU.

import { counted, memory, percent, shorten } from "../formats.js";
import { Signs } from "../parts.js";
import { html } from "../rendering.js";
import { held } from "./cell.js";

const WIDTH = 340;
const HEIGHT = 220;
const MAX_PARTS = 6;

export function Tip({ cell, known }) {
  const found = cell && known.gpus.get(cell.dataset.gpu);
  if (!found) return null;
  const { gpu, node } = found;
  const more = gpu.parts.length - MAX_PARTS;
  return html`
    <div class="tip" aria-hidden="true" style=${position(cell.getBoundingClientRect())}>
      <b>${shorten(node.name, 36)} GPU ${gpu.index}</b> <span class="quiet">${gpu.model}</span>
      <div>${memory(gpu.taken_mib)} of ${memory(gpu.capacity_mib)} granted, ${percent(gpu.taken_cores, gpu.cores_capacity)} of compute</div>
      <div>Used: ${memory(gpu.used_mib)}</div>
      <${Signs} gpu=${gpu} node=${node} />
      ${gpu.parts.slice(0, MAX_PARTS).map((part) => html`
        <div class="of"><span class="swatch" style=${`--color: ${known.colors.of(part.namespace)}`}></span>
          ${" "}${shorten(part.name, 40)} <span class="quiet">${held(gpu, part)}</span></div>`)}
      ${more > 0 ? html`<div class="quiet">${counted(more, "more share")}</div>` : null}
    </div>`;
}

function position({ left, bottom, top }) {
  const x = Math.max(8, Math.min(left, window.innerWidth - WIDTH - 8));
  const y = bottom + HEIGHT < window.innerHeight ? `top: ${bottom + 6}px` : `bottom: ${window.innerHeight - top + 6}px`;
  return `left: ${x}px; ${y}`;
}
