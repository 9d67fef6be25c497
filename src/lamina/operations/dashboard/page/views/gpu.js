// One GPU with its shares.

import { link } from "../address.js";
import { html } from "../rendering.js";
import { GpuCard } from "./node.js";

export function Gpu({ known, address: { path: [uuid = ""] } }) {
  const found = known.gpus.get(uuid);
  if (!found) return html`<h1>GPU ${uuid}</h1><p class="panel">No node has this GPU. <a href=${link("map")}>Map of all GPUs</a></p>`;
  const { gpu, node } = found;
  return html`
    <header class="head">
      <p class="crumbs"><a href=${link("map")}>Map</a> / <a href=${link("node", [node.name])}>${node.name}</a> / GPU</p>
      <h1>GPU ${gpu.index} of ${node.name}</h1>
      <p class="quiet">${gpu.uuid}</p>
    </header>
    <${GpuCard} gpu=${gpu} known=${known} />`;
}
