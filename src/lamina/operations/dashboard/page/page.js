// Keeps the page current: events from the command change what is known, and what changed is drawn again.

import { counted, list, make, memory, number, percent, replace } from "./elements.js";
import { drawDetails, openDetails } from "./details.js";
import { drawNodes } from "./nodes.js";
import { drawTable, drawWaiting } from "./pods.js";

const SILENT_MS = 15_000;
const known = { cluster: null, nodes: {}, pods: {} };
const at = (id) => document.getElementById(id);
let source = null;
let lost = "";
let usageProblem = "";
let heard = 0;

function listen() {
  source = new EventSource("events");
  source.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    if (change.first) Object.assign(known, { nodes: {}, pods: {} });
    known.cluster = change.changes.cluster;
    merge(known.nodes, change.changes.nodes);
    merge(known.pods, change.changes.pods);
    usageProblem = change.usage_problem;
    lost = change.lost || (change.ready ? "" : "the cluster has not been read yet");
    hear(!change.lost);
    draw();
  });
  source.addEventListener("beat", () => hear(false));
  source.addEventListener("error", () => show(
    source.readyState === EventSource.CLOSED
      ? "The command has ended. Start `lamina dashboard` again and open the address that it prints."
      : "No connection to the command. Trying again."));
}

function merge(into, changed) {
  for (const [key, card] of Object.entries(changed)) {
    if (card === null) delete into[key];
    else into[key] = card;
  }
}

function hear(current) {
  heard = Date.now();
  if (current) at("updated").textContent = `Last change ${new Date().toLocaleTimeString()}`;
  show(lost ? `The command cannot follow the cluster: ${lost}. What is shown may be out of date.` : "");
}

// An empty problem is the only state that is live. A status that stays the same is not announced again.
function show(problem) {
  const state = problem ? "lost" : "live";
  const status = at("status");
  if (status.textContent !== (problem || "Live")) status.textContent = problem || "Live";
  status.dataset.state = document.body.dataset.state = state;
}

setInterval(() => {
  if (heard && Date.now() - heard > SILENT_MS) show("The command does not answer. What is shown may be out of date.");
}, 1000);

function open(uid) {
  openDetails(at("details"), uid, known.pods);
}

function draw() {
  if (known.cluster === null) return;
  drawFigures(known.cluster);
  drawWaiting(at("waiting"), known.pods, open);
  drawDetails(at("details"), known.pods);
  drawFiltered();
}

function drawFiltered() {
  const words = at("words").value.trim();
  const nodes = drawNodes(at("node-list"), known.nodes, words, open);
  const pods = drawTable(at("pod-rows"), at("more-pods"), known.pods, words, open);
  const shown = `${counted(nodes, "node")}, ${counted(pods, "pod")}`;
  if (at("shown").textContent !== shown) at("shown").textContent = shown;
}

function drawFigures(cluster) {
  const figures = {
    Nodes: number(cluster.nodes),
    GPUs: `${number(cluster.gpus)}, ${number(cluster.idle_gpus)} idle`,
    "Memory granted": `${percent(cluster.granted_mib, cluster.memory_mib)} of ${memory(cluster.memory_mib)}`,
    "Compute granted": percent(cluster.granted_cores, cluster.cores),
    Stranded: `${memory(cluster.stranded_mib)} on ${counted(cluster.stranded_gpus, "GPU")}`,
    "Unhealthy GPUs": number(cluster.unhealthy_gpus),
    "Cordoned GPUs": number(cluster.cordoned_gpus),
    "Running pods": number(cluster.running_pods),
    "Waiting pods": number(cluster.waiting_pods),
  };
  replace(at("figures"), ...Object.entries(figures).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  const warnings = [];
  if (cluster.configuration) warnings.push(`The previous configuration is in force: ${cluster.configuration}`);
  if (cluster.left_out) warnings.push(`${counted(cluster.left_out, "pod")} could not be read.`);
  if (usageProblem) warnings.push(`The use of some containers is not known: ${usageProblem}`);
  replace(at("warnings"), ...(warnings.length ? [list(warnings)] : []));
}

at("words").addEventListener("input", drawFiltered);
at("filter").addEventListener("submit", (event) => event.preventDefault());
listen();
