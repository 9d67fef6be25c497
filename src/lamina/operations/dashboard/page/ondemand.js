// What the command sends when a person looks: it is asked at once, and again at intervals.

import { ask } from "./events.js";
import { Component } from "./rendering.js";

const EVERY_MS = 10_000;

// `path` is what is asked, `draw` makes the contents of the answer, which is null before the first one, and of a
// sentence about what is wrong.
export class OnDemand extends Component {
  state = { path: "", found: null, problem: "" };

  componentDidMount() {
    this.timer = setInterval(() => this.load(), EVERY_MS);
    this.load();
  }

  componentDidUpdate(before) {
    if (before.path !== this.props.path) this.load();
  }

  componentWillUnmount() {
    clearInterval(this.timer);
    this.gone = true;
  }

  async load() {
    const { path } = this.props;
    if (!path) return;
    const response = await ask(path);
    const found = response?.ok ? await response.json() : null;
    const problem = response === null ? "No connection to the command." : response.ok ? "" : `${await response.text()}.`;
    // An answer that comes after the next question is of no use.
    if (!this.gone && path === this.props.path) this.setState({ path, found: found ?? (this.state.path === path ? this.state.found : null), problem });
  }

  render({ path, draw }) {
    const { found, problem } = this.state;
    return this.state.path === path ? draw(found, problem) : draw(null, "");
  }
}
