// One GPU of the map as one element: from the bottom up what is granted, in the colors of who holds it, and at the edge
// what is used.

import { link } from "../address.js";
import { compute, memory } from "../formats.js";
import { signsOf } from "../parts.js";
import { html } from "../rendering.js";

export function cell(gpu, node, known, color) {
  const signs = signsOf(gpu, node);
  const sign = signs.find(({ kind }) => kind !== "stranded"); // Which is hatched.
  return html`
    <a key=${gpu.uuid} class="cell" href=${link("gpu", [gpu.uuid])} tabindex="-1" data-gpu=${gpu.uuid} data-kind=${sign?.kind} data-sign=${sign?.sign}
      aria-label=${`${node.name} GPU ${gpu.index}: ${sentence(gpu, signs)}`} style=${`background-image: ${drawing(gpu, known, color)}`}></a>`;
}

// Granted, used and health in words.
function sentence(gpu, signs) {
  const granted = `${memory(gpu.taken_mib)} of ${memory(gpu.capacity_mib)} granted`;
  const used = known(gpu.used_mib) ? `, ${memory(gpu.used_mib)} used` : "";
  return `${gpu.parts.length ? granted : "idle"}${used}; ${signs.length ? signs.map(({ text }) => text).join("; ") : "healthy"}`;
}

function known(amount) {
  return amount !== null && amount !== undefined;
}

// Who holds a part, as the name that decides its color. It is empty for claims, and for pods that may not be shown.
export function holder({ namespace, workload, name }, by) {
  return by === "workload" && namespace ? `${namespace}/${workload || name.slice(namespace.length + 1)}` : namespace;
}

// Part of the GPU's memory that a part of it has. Time slices have the same part each.
export function portion(gpu, part) {
  return part.unlimited ? 1 / gpu.parts.length : Math.min(1, part.memory_mib / Math.max(1, gpu.capacity_mib));
}

// The parts of a GPU in the colors of their holders, and what is used and stranded, as a background.
function drawing(gpu, known, by) {
  const stops = [];
  let from = 0;
  for (const part of gpu.parts) {
    const to = Math.min(100, from + 100 * portion(gpu, part));
    stops.push(`${known.colors.of(holder(part, by))} ${from.toFixed(1)}% ${to.toFixed(1)}%`);
    from = to;
  }
  const used = gpu.used_mib ? Math.min(100, 100 * gpu.used_mib / Math.max(1, gpu.capacity_mib)).toFixed(1) : 0;
  // What is free is hatched where none of the pods of the cluster fits in.
  const free = gpu.stranded
    ? `linear-gradient(to top, var(--track) ${from.toFixed(1)}%, transparent ${from.toFixed(1)}%), repeating-linear-gradient(135deg, var(--edge) 0 1px, transparent 1px 4px)`
    : "none, none";
  const line = used ? `linear-gradient(to top, var(--ink) ${used}%, var(--track) ${used}%)` : "none";
  return `${line}, linear-gradient(to top, ${[...stops, `transparent ${from.toFixed(1)}%`, "transparent"].join(", ")}), ${free}`;
}

// What a part holds, in words. Time slices have no memory and no compute of their own, and the compute of MIG devices
// is that of their profile.
export function held(gpu, part) {
  if (part.unlimited) return "memory and compute shared by time slices";
  const used = part.used_mib === null ? [] : [`${memory(part.used_mib)} in use`];
  if (gpu.mode === "mig" && !part.cores) return [memory(part.memory_mib), ...part.instances, ...used].join(", ");
  return [memory(part.memory_mib), `${compute(part)} compute`, ...part.instances, ...used].join(", ");
}
