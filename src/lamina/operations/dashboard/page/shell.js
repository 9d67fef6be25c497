// What surrounds every view: the name, the views, whether what is shown is current, and warnings.

import { link } from "./address.js";
import { counted } from "./formats.js";
import { Lines } from "./parts.js";
import { Component, html } from "./rendering.js";
import { Gpu } from "./views/gpu.js";
import { MapView } from "./views/map.js";
import { Node } from "./views/node.js";
import { Overview } from "./views/overview.js";
import { Pod } from "./views/pod.js";
import { Pods } from "./views/pods.js";
import { WhatIf } from "./views/whatif.js";

// By the first word of the address: the view, its title, and the view in the navigation that it belongs to.
const VIEWS = {
  overview: { view: Overview, title: () => "Overview", nodes: true },
  map: { view: MapView, title: () => "Map", nodes: true },
  node: { view: Node, title: ([name]) => `Node ${name}`, of: "map", nodes: true },
  gpu: { view: Gpu, title: ([uuid]) => `GPU ${uuid}`, of: "map", nodes: true },
  pods: { view: Pods, title: () => "Pods" },
  pod: { view: Pod, title: ([namespace, name]) => `Pod ${namespace}/${name}`, of: "pods" },
  "what-if": { view: WhatIf, title: () => "What if", nodes: true },
};
const NAVIGATION = ["overview", "map", "pods", "mine", "what-if"];

// The name of the view for an address. Who may not see nodes has pods alone.
export function viewOf(address, nodesHidden) {
  const name = address.view in VIEWS ? address.view : "overview";
  return nodesHidden && VIEWS[name].nodes ? "pods" : name;
}

export class Shell extends Component {
  render({ known, address, problem }) {
    const name = viewOf(address, known.nodesHidden);
    const { view: View, title, of = name } = VIEWS[name];
    return html`
      <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
      <header class="top">
        <a class="brand" href=${link("overview")}><img src="icon.svg" alt="" width="22" height="22" />Lamina</a>
        <nav aria-label="Views">
          ${NAVIGATION.filter((each) => !(known.nodesHidden && VIEWS[each]?.nodes)).map((each) => html`
            <${Entry} key=${each} name=${each} own=${known.ownNamespace} current=${current(of, address, known.ownNamespace)} />`)}
        </nav>
        <p id="status" role="status" data-state=${problem ? "lost" : "live"}>${problem || "Live"}</p>
        <p id="updated">${known.changedAt ? `Last change ${new Date(known.changedAt).toLocaleTimeString()}` : ""}</p>
      </header>
      <main id="main" tabindex="-1" data-view=${name}>
        <${Warnings} known=${known} />
        ${known.cluster === null ? html`<h1>${title(address.path)}</h1>` : html`<${View} known=${known} address=${address} />`}
      </main>`;
  }

  componentDidMount() {
    this.componentDidUpdate({});
  }

  // A new view begins at its top, for the eye and for screen readers.
  componentDidUpdate(before) {
    const { known, address, problem } = this.props;
    const name = viewOf(address, known.nodesHidden);
    document.body.dataset.state = problem ? "lost" : "live";
    document.title = `${VIEWS[name].title(address.path)} - Lamina`;
    if (!before.address || place(before.address) === place(address)) return;
    window.scrollTo(0, 0);
    document.getElementById("main").focus({ preventScroll: true });
  }
}

// The entry of the navigation for a view: "My pods" is Pods of the own namespace.
function current(name, { view, query }, own) {
  return name === "pods" && view === "pods" && own && query.ns === own ? "mine" : name;
}

function Entry({ name, own, current: shown }) {
  const mine = name === "mine";
  return html`
    <a id=${`to-${name}`} href=${mine ? link("pods", [], { ns: own }) : link(name)} aria-current=${name === shown ? "page" : null}>
      ${mine ? "My pods" : VIEWS[name].title([])}</a>`;
}

function place({ view, path }) {
  return [view, ...path].join("/");
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function Warnings({ known: { cluster, usageProblem } }) {
  if (cluster === null) return null;
  const warnings = [
    cluster.configuration && `The previous configuration is in force: ${cluster.configuration}`,
    cluster.left_out && `${counted(cluster.left_out, "pod")} could not be read.`,
    usageProblem && `The use of some containers is not known: ${usageProblem}`,
  ].filter(Boolean);
  return html`<div id="warnings">${warnings.length ? html`<${Lines} lines=${warnings} />` : null}</div>`;
}
