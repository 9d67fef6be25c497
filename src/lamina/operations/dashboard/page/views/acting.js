// What pods and GPUs have in common when they are looked at: commands, events, and where a history comes from.

import { counted, time } from "../formats.js";
import { Panel } from "../parts.js";
import { Component, html } from "../rendering.js";

export function Commands({ commands }) {
  if (!commands.length) return null;
  return html`
    <${Panel} id="commands" title="Commands">
      <ul class="commands">${commands.map((each) => html`<li key=${each.text}><${Command} ...${each} /></li>`)}</ul>
    <//>`;
}

class Command extends Component {
  state = { copied: false };

  copy = async () => {
    await navigator.clipboard.writeText(this.props.text);
    this.setState({ copied: true });
  };

  render({ text, purpose }, { copied }) {
    return html`
      <span class="quiet">${purpose}</span>
      <span class="command"><code>${text}</code>
        ${navigator.clipboard ? html`<button type="button" onClick=${this.copy} aria-label=${`Copy: ${text}`}>${copied ? "Copied" : "Copy"}</button>` : null}</span>`;
  }
}

export function Events({ events, problem }) {
  return html`
    <${Panel} id="events" title="Events">
      ${problem ? html`<p class="warn">${problem}.</p>` : null}
      ${events.length ? html`<ul class="events">${events.map((each) => html`<${Event} ...${each} />`)}</ul>` : html`<p class="quiet">None lately.</p>`}
    <//>`;
}

function Event({ about, at, type, reason, message, count }) {
  return html`
    <li><span class="quiet">${at === null ? "" : html`<time datetime=${new Date(1000 * at).toISOString()}>${moment(at)}</time>`} ${about}</span>
      <b class=${type === "Warning" ? "warn" : ""}>${reason}</b> ${message}${count > 1 ? html` <span class="quiet">(${counted(count, "time")})</span>` : null}</li>`;
}

// With the day, where it is not today.
export function moment(seconds) {
  const date = new Date(1000 * seconds);
  return date.toDateString() === new Date().toDateString() ? time(seconds) : `${date.toLocaleDateString()} ${time(seconds)}`;
}

export function Source({ history }) {
  if (history.problem) return html`<p class="warn">${history.problem}.</p>`;
  return html`<p class="quiet">${history.source === "prometheus" ? "From Prometheus, of the last six hours." : "What the dashboard has seen since it started, of the last six hours at most."}</p>`;
}
