// Questions about what is not there yet: whether pods would fit now, and what policies make of another cluster.

import { FitsForm } from "./fits.js";
import { ReplayForm } from "./replay.js";
import { html } from "../rendering.js";

export function WhatIf() {
  return html`
    <h1>What if</h1>
    <${FitsForm} />
    <${ReplayForm} />`;
}
