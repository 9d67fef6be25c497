// The form that asks whether pods would fit now.

import { ask } from "../events.js";
import { Lines, Panel } from "../parts.js";
import { Component, html } from "../rendering.js";

export class FitsForm extends Component {
  state = { asked: false, problem: "", answer: null };

  submit = async (event) => {
    event.preventDefault();
    const question = new URLSearchParams(new FormData(event.target));
    this.setState({ asked: true, problem: "", answer: null });
    const response = await ask(`fits?${question}`);
    const ended = { asked: false, problem: "", answer: null };
    if (response === null) this.setState({ ...ended, problem: "No connection to the command." });
    else if (!response.ok) this.setState({ ...ended, problem: `${await response.text()}.` });
    else this.setState({ ...ended, answer: await response.json() });
  };

  render(_, { asked, problem, answer }) {
    return html`
      <${Panel} id="fits-panel" title="Would it fit now?">
        <p class="quiet">Only GPUs and quotas are checked here; <code>lamina fits -f FILE</code> also checks nodes.</p>
        <form id="fits" class="fields" onSubmit=${this.submit}>
          ${FIELDS.map(({ name, label, ...settings }) => html`
            <span class="field" key=${name}><label for=${`fits-${name}`}>${label}</label>
              <input id=${`fits-${name}`} name=${name} type="number" ...${settings} /></span>`)}
          <button class="main">Ask</button>
        </form>
        <div id="fits-answer" role="status">
          ${asked ? html`<p>Asking ...</p>` : null}
          ${problem ? html`<p class="bad">${problem}</p>` : null}
          ${answer ? html`<p class=${answer.fits ? "good" : "warn"}>${answer.fits ? "It fits now." : "It does not fit now."}</p>
            <${Lines} lines=${answer.lines} />` : null}
        </div>
      <//>`;
  }
}

const FIELDS = [
  { name: "pods", label: "Pods", min: 1, max: 1000, defaultValue: 1 },
  { name: "gpus", label: "GPUs of each", min: 1, max: 1024, defaultValue: 1 },
  { name: "memory", label: "Memory of each GPU in MiB", min: 0, placeholder: "all" },
  { name: "cores", label: "Compute of each GPU in percent", min: 0, max: 100, placeholder: "what is left" },
];
