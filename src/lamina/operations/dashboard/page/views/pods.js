// The pods that request or hold GPUs, as a table that can be searched and sorted, a page of it at a time.

import { change, link, linkWith } from "../address.js";
import { counted, number } from "../formats.js";
import { OnDemand } from "../ondemand.js";
import { Choice, Search } from "../parts.js";
import { html, memo } from "../rendering.js";
import { COLUMNS, USUAL, stateOf } from "./columns.js";

const ROWS = 100;
const STATES = [["", "all"], ["running", "running"], ["waiting", "waiting"], ["pending", "pending"], ["refused", "refused"], ["deleted", "deleted"]];
// On a narrow screen, where the table has no heads.
const ORDERS = [["", "names"], ...Object.entries(COLUMNS).map(([key, { title }]) => [key, title])];

export function Pods({ known, address: { query } }) {
  const ns = query.ns ?? (known.nodesHidden ? known.ownNamespace : "");
  const found = sorted(matching(known.orderedPods.entries, query, ns), query.sort ?? "");
  const pages = Math.max(1, Math.ceil(found.length / ROWS));
  const page = Math.min(pages, Math.max(1, Math.trunc(Number(query.page)) || 1));
  const rows = found.slice((page - 1) * ROWS, page * ROWS);
  const columns = chosenColumns(query.columns);
  const namespaces = [["", "all"], ...[...new Set([...known.namespaces(), ...(ns ? [ns] : [])])].sort().map((each) => [each, each])];
  const running = rows.filter(({ card }) => card.shares.length).map(({ id }) => id);
  const uses = columns.some((key) => key === "used" || key === "busy");
  return html`
    <h1>Pods</h1>
    <form class="fields" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Search} id="words" label="Words in names of pods, workloads, nodes and reasons" value=${query.q} type=${(text) => change({ q: text, page: "" }, { typing: true })} />
      <${Choice} id="namespace" label="Namespace" value=${ns} options=${namespaces} choose=${(each) => change({ ns: each, page: "" })} />
      <${Choice} id="state" label="State" value=${query.state ?? ""} options=${STATES} choose=${(each) => change({ state: each, page: "" })} />
      <span class="narrow-only"><${Choice} id="order" label="Order" value=${query.sort ?? ""} options=${ORDERS} choose=${(each) => change({ sort: each, page: "" })} /></span>
      <${ColumnChoice} columns=${columns} />
      <output id="shown" for="words namespace state">${counted(found.length, "pod")}</output>
    </form>
    ${found.length ? html`
      <${OnDemand} path=${uses && running.length ? `use?pods=${running.map(encodeURIComponent).join(",")}` : ""} draw=${(use) => html`
        <${Table} rows=${rows} columns=${columns} sort=${query.sort ?? ""} use=${use} known=${known} />`} />
      <${Pages} page=${page} pages=${pages} all=${found.length} />`
    : html`<p class="panel" id="none">${nothing(known, ns, query)}</p>`}`;
}

// The columns in the address, in their order; the usual ones where it names none that exist.
function chosenColumns(text) {
  const named = (text ?? "").split(",").filter((key) => key in COLUMNS);
  return named.length ? Object.keys(COLUMNS).filter((key) => named.includes(key)) : USUAL;
}

function matching(entries, { q = "", state = "" }, ns) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter(({ name, card }) => {
    if ((ns && card.namespace !== ns) || (state && !isIn(card, state))) return false;
    if (!words.length) return true;
    const text = `${name} ${card.workload} ${card.node} ${card.reason}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function isIn(card, state) {
  return state === "waiting" ? card.state === "pending" || card.state === "refused" : card.state === state;
}

// By a column, and against its usual order with a minus before its key. Pods with the same value stay in order of names.
function sorted(entries, sort) {
  const column = COLUMNS[sort.replace(/^-/, "")];
  if (!column) return entries;
  const turn = sort.startsWith("-") ? -1 : 1;
  const values = entries.map((entry) => [column.value(entry.card), entry]);
  return values.sort(([one], [other]) => turn * compared(one, other)).map(([, entry]) => entry);
}

function compared(one, other) {
  if (typeof one === "number") return other - one;
  return one < other ? -1 : one > other ? 1 : 0;
}

function nothing(known, ns, { q, state }) {
  if (!known.loaded.pods) return "Reading the pods ...";
  if (q || state) return html`No pod matches. <a href=${link("pods", [], { ns })}>Show all</a>`;
  return ns ? `No pod in the namespace ${ns} requests or holds a GPU.` : html`No pod requests or holds a GPU. <code>kubectl apply</code> one with a limit of a GPU resource, such as <code>nvidia.com/gpu: 1</code>.`;
}

function ColumnChoice({ columns }) {
  const choose = (key, chosen) => {
    const kept = Object.keys(COLUMNS).filter((each) => (each === key ? chosen : columns.includes(each)));
    if (kept.length) change({ columns: kept.join() === USUAL.join() ? "" : kept.join() });
  };
  return html`
    <details class="choice" aria-label="Columns"><summary>Columns</summary>
      <fieldset><legend class="quiet">Columns</legend>${Object.entries(COLUMNS).map(([key, { title }]) => html`
        <label key=${key}><input type="checkbox" checked=${columns.includes(key)} onChange=${(event) => choose(key, event.target.checked)} /> ${title}</label>`)}</fieldset>
    </details>`;
}

function Table({ rows, columns, sort, use, known }) {
  return html`
    <div class="panel scroll pods" role="region" aria-label="Table of pods" tabindex="0">
      <table>
        <thead><tr>${columns.map((key) => html`<${Head} key=${key} name=${key} sort=${sort} />`)}</tr></thead>
        <tbody id="pod-rows">${rows.map(({ id, card }) => html`
          <${Row} key=${id} card=${card} columns=${columns.join()} use=${use?.[id]} readAt=${use?.[id] ? known.readAt : 0} hidden=${known.nodesHidden} color=${known.colors.of(card.namespace)} />`)}</tbody>
      </table>
    </div>`;
}

function Head({ name, sort }) {
  const sorts = sort === name ? "descending" : sort === `-${name}` ? "ascending" : null;
  const next = sort === name ? `-${name}` : sort === `-${name}` ? "" : name;
  return html`<th scope="col" aria-sort=${sorts}><a href=${linkWith({ sort: next, page: "" })}>${COLUMNS[name].title}<span aria-hidden="true">${sorts === null ? "" : sort === name ? " ▾" : " ▴"}</span></a></th>`;
}

const Row = memo(({ card, columns, ...shown }) => html`
  <tr data-state=${stateOf(card)}>${columns.split(",").map((key) => (key === "pod"
    ? html`<th key=${key} scope="row" data-label=${COLUMNS[key].title}>${COLUMNS[key].cell({ pod: card, ...shown })}</th>`
    : html`<td key=${key} data-label=${COLUMNS[key].title}>${COLUMNS[key].cell({ pod: card, ...shown })}</td>`))}</tr>`);

function Pages({ page, pages, all }) {
  if (pages === 1) return null;
  const to = (each, text) => (each < 1 || each > pages ? html`<span class="quiet">${text}</span>` : html`<a href=${linkWith({ page: each === 1 ? "" : each })}>${text}</a>`);
  return html`
    <nav class="pages" aria-label="Pages">${to(1, "First")} ${to(page - 1, "Previous")}
      <span id="page-rows">${number((page - 1) * ROWS + 1)} to ${number(Math.min(all, page * ROWS))} of ${number(all)}</span>
      ${to(page + 1, "Next")} ${to(pages, "Last")}</nav>`;
}
