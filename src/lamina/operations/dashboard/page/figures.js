// The cluster in figures, and what is not known of it.

import { counted, list, make, memory, number, percent, replace } from "./elements.js";

export function drawFigures(place, cluster) {
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
  replace(place, ...Object.entries(figures).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

export function drawWarnings(place, cluster, usageProblem) {
  const warnings = [];
  if (cluster.configuration) warnings.push(`The previous configuration is in force: ${cluster.configuration}`);
  if (cluster.left_out) warnings.push(`${counted(cluster.left_out, "pod")} could not be read.`);
  if (usageProblem) warnings.push(`The use of some containers is not known: ${usageProblem}`);
  replace(place, ...(warnings.length ? [list(warnings)] : []));
}
