// One GPU: its shares now and over time, its use and health, the events of its node, and the commands to act.

import { link } from "../address.js";
import { MEMORY_AXIS, commonStart, memory } from "../formats.js";
import { OnDemand } from "../ondemand.js";
import { Panel } from "../parts.js";
import { html } from "../rendering.js";
import { Timeline } from "../timeline.js";
import { Commands, Events, Source, moment } from "./acting.js";
import { GpuCard, READING } from "./node.js";

const MAX_HOLDERS = 40;

export function Gpu({ known, address: { path: [uuid = ""] } }) {
  const found = known.gpus.get(uuid);
  if (!found) return html`<h1>GPU ${uuid}</h1><p class="panel">${known.loaded.nodes ? html`No node has this GPU. <a href=${link("map")}>Map of all GPUs</a>` : READING}</p>`;
  const { gpu, node } = found;
  const now = [gpu.used_mib !== null && `${memory(gpu.used_mib)} in use by all processes`, gpu.busy_percent !== null && `${gpu.busy_percent} % of its time`];
  return html`
    <header class="head">
      <p class="crumbs"><a href=${link("map")}>Map</a> / <a href=${link("node", [node.name])}>${node.name}</a> / GPU</p>
      <h1>GPU ${gpu.index} of ${node.name}</h1>
      <p class="quiet">${[gpu.uuid, ...now].filter(Boolean).join(", ")}</p>
    </header>
    <${GpuCard} gpu=${gpu} known=${known} />
    <${OnDemand} key=${uuid} path=${`gpu?uuid=${encodeURIComponent(uuid)}`} draw=${(details, problem) => html`
      ${details ? html`<${History} history=${details.history} gpu=${gpu} known=${known} />
        <${Commands} commands=${details.commands} /><${Events} events=${details.events} problem=${details.problem} />` : null}
      ${problem ? html`<p class="bad" role="status">${problem}</p>` : null}`} />`;
}

function History({ history, gpu, known }) {
  const times = history.points.map(([at]) => at);
  const column = (place) => history.points.map((point) => point[place]);
  return html`
    <${Panel} id="holders" title="Shares over time"><${Holders} holders=${history.holders} known=${known} /><${Source} history=${history} /><//>
    ${times.length ? html`
      <${Panel} id="use" title="Use over time"><div class="charts">
        <${Timeline} times=${times} text=${memory} axis=${MEMORY_AXIS} top=${gpu.memory_mib} label="Memory in use" series=${[{ title: "In use", values: column(1), color: "--color-0" }]} />
        <${Timeline} times=${times} text=${(value) => `${value} %`} top=${100} label="GPU time" series=${[{ title: "GPU time", values: column(2), color: "--color-3" }]} />
      </div><//>` : null}`;
}

// A row for each share, with a bar from when to when, the newest first.
function Holders({ holders, known }) {
  if (!holders.length) return html`<p class="quiet">No share of it has been held.</p>`;
  const end = Math.max(Date.now() / 1000, ...holders.map(({ until }) => until ?? 0));
  const start = Math.min(...holders.map(({ since }) => since), end - 60);
  const cut = commonStart(holders.map(({ name }) => name));
  const shown = [...holders].sort((one, other) => (other.until ?? Infinity) - (one.until ?? Infinity) || other.since - one.since).slice(0, MAX_HOLDERS);
  const more = holders.length - shown.length;
  return html`
    <ol class="holders">${shown.map((each) => html`<li key=${`${each.pod} ${each.name} ${each.since} ${each.memory_mib}`}>
      <span class="who" title=${each.name}>${name(each, cut, known)}</span>
      <span class="span" aria-hidden="true"><span style=${`--color: ${known.colors.of(each.namespace)}; left: ${part(each.since, start, end)}; right: calc(100% - ${part(each.until ?? end, start, end)})`}></span></span>
      <span class="quiet">${[memory(each.memory_mib), each.cores ? `${each.cores} %` : "", `${moment(each.since)} to ${each.until === null ? "now" : moment(each.until)}`].filter(Boolean).join(", ")}</span></li>`)}</ol>
    ${more > 0 ? html`<p class="quiet">${more} more are not shown.</p>` : null}`;
}

function name({ pod, name: whole, namespace }, cut, known) {
  const text = `${cut ? "…" : ""}${whole.slice(cut)}`;
  if (!known.pods[pod]) return text;
  return html`<a href=${link("pod", [namespace, whole.slice(namespace.length + 1)])} aria-label=${whole}>${text}</a>`;
}

function part(moment, start, end) {
  return `${(100 * (moment - start) / Math.max(1, end - start)).toFixed(2)}%`;
}
