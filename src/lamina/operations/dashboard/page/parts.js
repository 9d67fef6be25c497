// Small components that several views use.

import { html } from "./rendering.js";

// A sentence, in which commands are between backticks.
export function Words({ text }) {
  return text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}

export function Lines({ lines }) {
  return html`<ul class="lines">${lines.map((line) => html`<li><${Words} text=${line} /></li>`)}</ul>`;
}

// A panel with a heading.
export function Panel({ id, title, note, children }) {
  return html`
    <section class="panel" id=${id} aria-labelledby=${`${id}-title`}>
      <h2 id=${`${id}-title`}>${title}</h2>
      ${note ? html`<p class="quiet">${note}</p>` : null}
      ${children}
    </section>`;
}

// A choice that the address keeps: `options` are [value, text], of which the first is the default.
export function Choice({ id, label, value, options, choose }) {
  const chosen = options.some(([each]) => each === value) ? value : options[0][0];
  return html`
    <span class="field"><label for=${id}>${label}</label>
      <select id=${id} value=${chosen} onChange=${(event) => choose(event.target.value === options[0][0] ? "" : event.target.value)}>
        ${options.map(([each, text]) => html`<option key=${each} value=${each} selected=${each === chosen}>${text}</option>`)}
      </select></span>`;
}

// A field for words to search for.
export function Search({ id, label, value, type }) {
  return html`
    <span class="field grow"><label for=${id}>${label}</label>
      <input id=${id} type="search" autocomplete="off" spellcheck="false" value=${value ?? ""} onInput=${(event) => type(event.target.value)} /></span>`;
}

// What is wrong with a GPU or its node, as a sign with words. Healthy has no sign.
export function Signs({ gpu, node }) {
  return signsOf(gpu, node).map(({ kind, sign, text }) => html`
    <span key=${kind} class=${`sign ${kind}`}><span aria-hidden="true">${sign}</span> ${text}</span>`);
}

export function signsOf(gpu, node) {
  return [
    !gpu.healthy && { kind: "bad", sign: "✕", text: `Unhealthy: ${gpu.reason}` },
    node && !node.ready && { kind: "unknown", sign: "?", text: "Node is not ready" },
    (gpu.cordoned || node?.cordoned) && { kind: "cordoned", sign: "⊘", text: "Cordoned" },
    gpu.stranded && { kind: "stranded", sign: "▨", text: "What is free is stranded" },
  ].filter(Boolean);
}

// The key of a line, drawn as the line is: in a color of the palette with its dashes, or as a class of lines.
export function Key({ color, dash, line = "" }) {
  return html`<svg class=${`key ${line}`} width="30" height="4" style=${color ? `--color: var(${color})` : null} aria-hidden="true"><line class=${`line ${line}`} x2="30" y1="2" y2="2" stroke-dasharray=${dash?.join(" ")} /></svg>`;
}
