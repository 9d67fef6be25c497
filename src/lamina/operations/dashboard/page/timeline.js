// A chart over time with axes and a cursor, drawn by uPlot, and its figures as text for who does not see it.

import { time } from "./formats.js";
import { Key } from "./parts.js";
import { Component, html } from "./rendering.js";

const DARK = window.matchMedia("(prefers-color-scheme: dark)");

function heightFor(width) {
  return Math.round(Math.max(200, Math.min(340, 0.25 * width)));
}

// Under the axis, so that no two of them look the same.
function ticks(moments) {
  const second = moments.length > 1 && moments[1] - moments[0] < 60 ? "2-digit" : undefined;
  return moments.map((each) => new Date(1000 * each).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second }));
}

const ONE_S = 30; // Before and after a single reading, which is a point and no line.

// `times` are seconds since the epoch, `series` lines as { title, values, color, dash }, with null for what is not
// known; `text` names a value, `axis` is how uPlot writes those at the axis where that differs, `top` is the value at the
// top, or null for that of the highest.
export class Timeline extends Component {
  componentDidMount() {
    this.observer = new ResizeObserver(([entry]) => this.fit(entry.contentRect.width));
    this.observer.observe(this.place);
    DARK.addEventListener("change", this.redraw);
    this.redraw();
  }

  componentDidUpdate(before) {
    const shape = ({ times, series, top }) => JSON.stringify([times.length === 1, series.map(({ title, color, dash }) => [title, color, dash]), top]);
    if (shape(before) === shape(this.props)) this.chart.setData(this.data());
    else this.redraw();
  }

  componentWillUnmount() {
    DARK.removeEventListener("change", this.redraw);
    this.observer.disconnect();
    this.chart?.destroy();
  }

  data() {
    return [this.props.times, ...this.props.series.map(({ values }) => values)];
  }

  fit(width) {
    if (width > 0 && this.chart && Math.round(width) !== this.chart.width) this.chart.setSize({ width: Math.round(width), height: heightFor(width) });
  }

  redraw = () => {
    this.chart?.destroy();
    const { times, series, top = null, text } = this.props;
    const colors = getComputedStyle(this.place);
    const color = (name) => colors.getPropertyValue(name).trim();
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    this.chart = new window.uPlot({
      width: Math.max(100, Math.round(this.place.clientWidth)),
      height: heightFor(this.place.clientWidth),
      scales: { x: { range: (_, least, most) => (most > least ? [least, most] : [least - ONE_S, least + ONE_S]) }, y: { range: (_, least, most) => [0, top ?? Math.max(1, most * 1.1)] } },
      axes: [{ ...axis, space: 80, size: 28, values: (_, moments) => ticks(moments) }, { ...axis, size: 68, values: (_, values) => values.map(text), ...this.props.axis }],
      series: [{}, ...series.map(({ title, color: name, dash }) => ({
        label: title, stroke: color(name), width: 2, dash, value: (_, value) => (value === null ? "not known" : text(value)),
        paths: window.uPlot.paths.stepped({ align: 1 }), points: { show: times.length === 1 },
      }))],
      cursor: { y: false, points: { size: 6 } },
      legend: { show: false },
    }, this.data(), this.place);
    this.chart.root.setAttribute("aria-hidden", "true");
  };

  render({ times, series, text, label }) {
    const since = times.length ? `, since ${time(times[0])}` : "";
    return html`
      <figure class="timeline">
        <div ref=${(place) => { this.place = place ?? this.place; }}></div>
        <figcaption>${label}${since}</figcaption>
        <ul class="keys">${series.map((each) => html`
          <li key=${each.title}><${Key} color=${each.color} dash=${each.dash} />
            ${" "}${each.title}: ${extremes(each.values, text)}</li>`)}</ul>
      </figure>`;
  }
}

function extremes(values, text) {
  const found = values.filter((value) => value !== null);
  if (!found.length) return "not known";
  const last = values.at(-1);
  return `now ${last === null ? "not known" : text(last)}, least ${text(Math.min(...found))}, most ${text(Math.max(...found))}`;
}
