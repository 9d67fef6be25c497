// What is known of the cluster: events change it, and views show it.

import { Colors } from "./colors.js";
import { Ordered } from "./order.js";
import { merge } from "./patches.js";

export class Known {
  constructor() {
    this.lost = "";
    this.usageProblem = "";
    this.ownNamespace = "";
    this.nodesHidden = false;
    this.changedAt = 0;
    this.colors = new Colors();
    this.forget();
  }

  forget() {
    this.cluster = null;
    this.nodes = {}; // Cards by name.
    this.pods = {}; // Cards by UID.
    this.gpus = new Map(); // By UUID, as { gpu, node }: the card, and that of its node.
    this.orderedNodes = new Ordered((node) => node.name);
    this.orderedPods = new Ordered((pod) => `${pod.namespace}/${pod.name}`);
    this.loaded = { nodes: false, pods: false }; // Those of a large cluster come after its figures.
    this.attention = []; // What to look at, as { kind, text, link: { view, id }, since }.
    this.waiting = []; // Pods by reason, as { title, state, reason, ways_out, count, pods: [[uid, name], ...] }.
    this.readAt = 0; // When metrics were read last.
    this.allocation = []; // [seconds, percent of memory, of compute, stranded], of which null is not known.
  }

  // Take in a `change` of the server.
  take(change) {
    if (change.first) this.forget();
    for (const name of change.holders ?? []) this.colors.of(name); // The same each time that the page is opened.
    const { cluster, nodes, pods } = change.changes;
    this.cluster = cluster;
    this.#takeNodes(nodes);
    merge(this.pods, pods);
    this.orderedNodes.take(cardsOf(this.nodes, nodes));
    this.orderedPods.take(cardsOf(this.pods, pods));
    this.attention = change.attention ?? this.attention;
    this.waiting = change.waiting ?? this.waiting;
    this.loaded = change.loaded;
    this.readAt = change.read_at;
    this.allocation = [...this.allocation, ...change.allocation];
    this.ownNamespace = change.namespace;
    this.nodesHidden = change.nodes_hidden;
    this.usageProblem = change.usage_problem;
    this.lost = change.lost || (change.ready ? "" : "the cluster has not been read yet");
    this.changedAt = Date.now();
  }

  // All namespaces with a pod, in order.
  namespaces() {
    return [...new Set(Object.values(this.pods).map((pod) => pod.namespace))].sort();
  }

  // The card of a pod by its name, as [UID, card]; undefined if there is none.
  podNamed(namespace, name) {
    const found = this.orderedPods.entries.find(({ card }) => card.namespace === namespace && card.name === name);
    return found && [found.id, found.card];
  }

  #takeNodes(nodes) {
    const changed = Object.keys(nodes);
    for (const name of changed) for (const gpu of this.nodes[name]?.gpus ?? []) this.gpus.delete(gpu.uuid);
    merge(this.nodes, nodes);
    for (const name of changed) for (const gpu of this.nodes[name]?.gpus ?? []) this.gpus.set(gpu.uuid, { gpu, node: this.nodes[name] });
  }
}

// The whole cards of what changed; null for what is gone.
function cardsOf(cards, changed) {
  return Object.fromEntries(Object.keys(changed).map((id) => [id, cards[id] ?? null]));
}
