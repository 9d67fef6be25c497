// Preact and htm as the views use them. Texts become text nodes, never markup: names come from tenants.

import { Component, Fragment, h, render } from "./lib/preact.module.js";
import htm from "./lib/htm.module.js";

export const html = htm.bind(h);
export { Component, Fragment, render };

// The same component, drawn again only when one of its properties is another value. Cards of what has not changed stay
// the same objects, so thousands of them cost nothing.
export function memo(draw) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const names = Object.keys(next);
      return names.length !== Object.keys(this.props).length || names.some((name) => next[name] !== this.props[name]);
    }

    render(props) {
      return draw(props);
    }
  };
}
