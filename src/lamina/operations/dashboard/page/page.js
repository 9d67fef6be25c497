// Keeps the page current: events from the command change what is known, and what changed is drawn again.

import { drawAllocation, extendAllocation } from "./allocation.js";
import { extend } from "./chart.js";
import { drawDetails, openDetails } from "./details.js";
import { counted } from "./elements.js";
import { listen } from "./events.js";
import { drawFigures, drawWarnings } from "./figures.js";
import { drawMine, drawNamespaces } from "./mine.js";
import { drawNodes } from "./nodes.js";
import { Ordered } from "./order.js";
import { merge } from "./patches.js";
import { drawTable, drawWaiting } from "./pods.js";
import { replayDumps } from "./replay.js";
import { answerQuestions } from "./whatif.js";

const SILENT_MS = 15_000;
const known = { cluster: null, readAt: 0, ...nothing() };
const at = (id) => document.getElementById(id);
let lost = "";
let usageProblem = "";
let ownNamespace = "";
let nodesHidden = false;
let heard = 0;

function take(kind, change) {
  if (kind === "beat") {
    hear(false);
    return;
  }
  if (change.first) Object.assign(known, nothing());
  known.cluster = change.changes.cluster;
  merge(known.nodes, change.changes.nodes);
  merge(known.pods, change.changes.pods);
  known.orderedNodes.take(cardsOf(known.nodes, change.changes.nodes));
  known.orderedPods.take(cardsOf(known.pods, change.changes.pods));
  extend(known, change);
  known.allocation = extendAllocation(known.allocation, change);
  ownNamespace = change.namespace;
  nodesHidden = change.nodes_hidden;
  usageProblem = change.usage_problem;
  lost = change.lost || (change.ready ? "" : "the cluster has not been read yet");
  hear(!change.lost);
  draw();
}

function nothing() {
  const orderedPods = new Ordered((pod) => `${pod.namespace}/${pod.name}`);
  return { nodes: {}, pods: {}, use: {}, allocation: [], orderedNodes: new Ordered((node) => node.name), orderedPods };
}

function cardsOf(cards, changed) {
  return Object.fromEntries(Object.keys(changed).map((id) => [id, cards[id] ?? null]));
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

// The address names the view: #pods, or #pods/NAMESPACE, is "My pods", and everything else the cluster.
function view() {
  const [name, namespace] = location.hash.slice(1).split("/");
  return name === "pods" || nodesHidden ? { namespace: name === "pods" && namespace ? decoded(namespace) : ownNamespace } : { namespace: null };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function draw() {
  const { namespace } = view();
  const mine = namespace !== null;
  at("cluster-view").hidden = mine;
  at("pods-view").hidden = !mine;
  at("skip").hidden = mine;
  at("to-cluster").hidden = nodesHidden;
  for (const [id, current] of [["to-cluster", !mine], ["to-pods", mine]]) {
    if (current) at(id).setAttribute("aria-current", "page");
    else at(id).removeAttribute("aria-current");
  }
  if (known.cluster === null) return;
  drawWarnings(at("warnings"), known.cluster, usageProblem);
  drawDetails(at("details"), known.pods);
  if (mine) drawPods(namespace);
  else drawCluster();
}

function drawPods(namespace) {
  drawNamespaces(at("namespace"), known.pods, namespace);
  drawMine(at("my-pods"), at("more-of-mine"), known, namespace, open);
}

function drawCluster() {
  drawFigures(at("figures"), known.cluster);
  drawAllocation(at("allocation"), known.allocation);
  drawWaiting(at("waiting"), known.orderedPods, open);
  drawFiltered();
}

function drawFiltered() {
  const words = at("words").value.trim();
  const nodes = drawNodes(at("node-list"), known.orderedNodes, words, open);
  const pods = drawTable(at("pod-rows"), at("more-pods"), known.orderedPods, words, open);
  const shown = `${counted(nodes, "node")}, ${counted(pods, "pod")}`;
  if (at("shown").textContent !== shown) at("shown").textContent = shown;
}

answerQuestions(at("fits"), at("fits-answer"));
replayDumps(at("replay"), at("replay-answer"));
at("words").addEventListener("input", drawFiltered);
at("namespace").addEventListener("change", (event) => {
  location.hash = `pods/${encodeURIComponent(event.target.value)}`;
});
window.addEventListener("hashchange", draw);
at("filter").addEventListener("submit", (event) => event.preventDefault());
draw();
listen(take, show);
