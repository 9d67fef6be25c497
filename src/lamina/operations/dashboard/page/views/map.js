// Every GPU of the cluster as a cell: what is granted and to whom, what is used, and its health.

import { change, link } from "../address.js";
import { commonStart, counted, ending } from "../formats.js";
import { Choice, Search } from "../parts.js";
import { Component, html, memo } from "../rendering.js";
import { cell } from "./cell.js";
import { GROUPS, STATES, grouped, shown } from "./map_groups.js";
import { Legend } from "./map_legend.js";
import { keepOneStop, moveFocus } from "./map_keys.js";
import { Tip } from "./map_tip.js";
import { READING } from "./node.js";

const COLORS = [["namespace", "namespace"], ["workload", "workload"]];
const SIZES = [["large", 48], ["medium", 800]]; // Up to so many GPUs; more are small.
const TILES = { large: [43, 20, 102], medium: [22, 20, 72], small: [11, 12, 48] }; // At least so wide for each GPU, and around them, and high.
const NAME = 72; // At least so wide is the name of a node.
const ABOVE = 180; // At least so high is what is above the first row.
const TILES_AT_ONCE = 100;
const IDLE_MS = 300; // A page that is never idle draws them too.
const LETTERS = { large: 6, medium: 3.2, small: 1.3 }; // Of the name of a node, for each GPU in a row.

export class MapView extends Component {
  // The first nodes are drawn at once, as many as a window has room for, and the others little by little.
  state = { pointed: null, more: 0 };

  componentDidMount() {
    this.componentDidUpdate();
  }

  componentDidUpdate() {
    keepOneStop(this.base.parentElement);
    if (this.waiting || this.drawn >= this.tiles) return;
    this.waiting = requestIdleCallback(() => {
      this.waiting = null;
      this.setState(({ more }) => ({ more: more + TILES_AT_ONCE }));
    }, { timeout: IDLE_MS });
  }

  componentWillUnmount() {
    cancelIdleCallback(this.waiting);
  }

  point = (event) => {
    const cell = event.target.closest?.(".cell") ?? null;
    if (cell !== this.state.pointed) this.setState({ pointed: cell });
  };

  leave = () => this.setState({ pointed: null });

  render({ known, address: { query } }, { pointed, more }) {
    const color = query.color === "workload" ? "workload" : "namespace";
    const nodes = shown(known, query);
    const gpus = nodes.reduce((sum, { gpus: found }) => sum + found.length, 0);
    const [size] = SIZES.find(([, most]) => gpus <= most) ?? ["small"];
    const columns = Math.min(8, Math.max(1, ...nodes.map(({ gpus: found }) => found.length)));
    const groups = grouped(nodes, query.group);
    this.tiles = groups.reduce((sum, group) => sum + group.nodes.length, 0);
    this.drawn = fitting(size, columns) + more;
    let before = 0;
    for (const group of groups) [group.drawn, before] = [this.drawn - before, before + group.nodes.length];
    return html`
      <h1>Map</h1>
      <form class="fields" role="search" onSubmit=${(event) => event.preventDefault()}>
        <${Search} id="words" label="Nodes, GPUs and pods whose name contains" value=${query.q} type=${(q) => change({ q }, { typing: true })} />
        <${Choice} id="state" label="Show" value=${query.state} options=${STATES} choose=${(state) => change({ state })} />
        <${Choice} id="group" label="Group by" value=${query.group} options=${GROUPS} choose=${(group) => change({ group })} />
        <${Choice} id="color" label="Color by" value=${query.color} options=${COLORS} choose=${(each) => change({ color: each })} />
        <output id="shown" for="words state">${counted(nodes.length, "node")}, ${counted(gpus, "GPU")}</output>
      </form>
      <${Legend} known=${known} color=${color} />
      <div class="map" data-size=${size} style=${`--columns: ${columns}`} onKeyDown=${moveFocus} onMouseOver=${this.point}
        onFocusIn=${this.point} onFocusOut=${this.leave} onMouseLeave=${this.leave}>
        ${groups.map((group) => html`
          <${Group} key=${group.title} ...${group} known=${known} color=${color} letters=${Math.max(8, Math.floor(columns * LETTERS[size]))} />`)}
        ${gpus ? null : html`<p class="panel">${nothing(known)}</p>`}
      </div>
      <${Tip} cell=${pointed} known=${known} />`;
  }
}

// How many tiles a window has room for at most.
function fitting(size, columns) {
  const [each, around, height] = TILES[size];
  const inRow = Math.ceil(window.innerWidth / (Math.max(NAME, columns * each) + around));
  return inRow * Math.ceil(Math.max(height, window.innerHeight - ABOVE) / height);
}

function nothing({ cluster, loaded }) {
  if (!loaded.nodes) return READING;
  return cluster.gpus ? "No GPU matches." : "No node with GPUs has reported yet.";
}

function Group({ title, nodes, drawn, known, color, letters }) {
  const start = commonStart(nodes.map(({ card }) => card.name));
  const gpus = nodes.reduce((sum, { gpus: found }) => sum + found.length, 0);
  return html`
    <section class="map-group" aria-label=${title}>
      ${title === "All nodes" ? null : html`<h2>${title} <span class="quiet">${counted(nodes.length, "node")}, ${counted(gpus, "GPU")}</span></h2>`}
      <ul class="tiles">${nodes.slice(0, Math.max(0, drawn)).map(({ card, gpus: found }) => html`
        <${Tile} key=${card.name} card=${card} gpus=${found} name=${ending(card.name.slice(start), letters)} known=${known} color=${color} />`)}</ul>
    </section>`;
}

const Tile = memo(({ card, gpus, name, known, color }) => html`
  <li class="tile" data-state=${card.ready ? (card.cordoned ? "cordoned" : null) : "not-ready"}>
    <a class="name" href=${link("node", [card.name])} tabindex="-1" aria-label=${`Node ${card.name}`} title=${card.name}>${name}</a>
    <span class="cells">${gpus.map((gpu) => cell(gpu, card, known, color))}</span>
  </li>`);
