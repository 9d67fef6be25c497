// The form that replays a cluster dump: today's placement against that of policies.

import { ask } from "../events.js";
import { counted } from "../formats.js";
import { Key, Lines, Panel } from "../parts.js";
import { Component, html } from "../rendering.js";

const WIDTH = 960;
const HEIGHT = 140;
const MAX_REASONS = 10;

export class ReplayForm extends Component {
  state = { asked: false, problem: "", answer: null };

  submit = async (event) => {
    event.preventDefault();
    const [file] = event.target.elements.dump.files;
    this.setState({ asked: true, problem: "", answer: null });
    const response = await ask("replay", { method: "POST", body: file });
    const ended = { asked: false, problem: "", answer: null };
    if (response === null) this.setState({ ...ended, problem: "No connection to the command." });
    else if (response.status === 405) this.setState({ ...ended, problem: "This dashboard replays no dumps. Run `lamina dashboard` on your machine." });
    else if (!response.ok) this.setState({ ...ended, problem: `${await response.text()}.` });
    else this.setState({ ...ended, answer: await response.json() });
  };

  render(_, { asked, problem, answer }) {
    return html`
      <${Panel} id="replay-panel" title="What would Lamina make of a cluster?">
        <p class="quiet">Replays the pods of a dump, which <code>kubectl get nodes,pods -A -o json</code> writes, on its
          nodes: their placement today, and that of policies. <code>lamina simulate</code> has more options. The file does
          not leave this machine.</p>
        <form id="replay" class="fields" onSubmit=${this.submit}>
          <span class="field"><label for="dump">Dump</label>
            <input id="dump" name="dump" type="file" accept=".json,.yaml,.yml" required /></span>
          <button class="main">Replay</button>
        </form>
        <div id="replay-answer" role="status">
          ${asked ? html`<p>Replaying ...</p>` : null}
          ${problem ? html`<p class="bad">${problem}</p>` : null}
          ${answer ? html`<${Answer} ...${answer} />` : null}
        </div>
      <//>`;
  }
}

function Answer({ size, notes, results }) {
  return html`
    <p>${size} were replayed.</p>
    ${notes.length ? html`<${Lines} lines=${notes} />` : null}
    <${Results} results=${results} />
    <${Course} title="Allocated" results=${results} column=${1} whole="all GPUs" />
    <${Course} title="Stranded" results=${results} column=${2} whole="what is free" />
    ${results.filter(({ reasons }) => reasons.length).map((each) => html`<${Reasons} key=${each.policy} ...${each} />`)}`;
}

function percent(value) {
  return `${value.toFixed(1)} %`;
}

function Results({ results }) {
  return html`
    <table>
      <thead><tr>${["Policy", "Allocated", "Stranded", "Pods placed", "Pods that wait"].map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
      <tbody>${results.map((each) => html`
        <tr><th scope="row">${each.policy}</th><td>${percent(each.allocated)}</td><td>${percent(each.stranded)}</td>
          <td>${each.placed}</td><td>${each.waiting}</td></tr>`)}</tbody>
    </table>`;
}

function Course({ title, results, column, whole }) {
  const most = Math.max(1, ...results.flatMap(({ points }) => points.map(([pods]) => pods)));
  const line = ({ points }) => [[0, 0, 0], ...points].map((point) => {
    const y = HEIGHT - 2 - (HEIGHT - 4) * Math.min(100, point[column]) / 100;
    return `${(WIDTH * point[0] / most).toFixed(1)},${y.toFixed(1)}`;
  }).join(" ");
  return html`
    <figure>
      <svg class="course" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        ${results.map((each, place) => html`<polyline class=${`line course${place + 1}`} points=${line(each)} />`)}
      </svg>
      <figcaption>${title} in percent of ${whole}, as the pods come from the oldest to the newest.</figcaption>
    </figure>
    <ul class="keys">${results.map(({ policy }, place) => html`
      <li><${Key} line=${`course${place + 1}`} /> ${policy}</li>`)}</ul>`;
}

function Reasons({ policy, reasons }) {
  const lines = reasons.slice(0, MAX_REASONS).map(([reason, count]) => `${counted(count, "pod")}: ${reason}`);
  const more = reasons.length - MAX_REASONS;
  return html`<h3>Why pods wait: ${policy}</h3>
    <${Lines} lines=${more > 0 ? [...lines, counted(more, "more reason")] : lines} />`;
}
