// The time slider: how many notes began to be true when, and a moment to look at the memory from.

import { by, day, h, icon } from "./dom.js";

const BARS = 72;
const STEPS = 400;  // places of the slider
const PLAYED = 9000;  // milliseconds in which all of it goes by
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** `onmove(moment)` gets milliseconds, or null at the right end: as it is now. */
export class Time {
  #move; #from = 0; #to = 0; #playing = 0;

  constructor(onmove) {
    this.#move = onmove;
    this.bars = h("div", { class: "bars", "aria-hidden": "true" });
    this.slider = h("input", { type: "range", min: 0, max: STEPS, value: STEPS, step: 1, id: "as-of", "aria-label": "As of" });
    this.label = h("output", { for: "as-of" });
    this.player = h("button", { type: "button", class: "quiet round", onclick: () => this.#playing ? this.#stop() : this.#play() });
    this.slider.addEventListener("input", () => { this.#stop(); this.#tell(); });
    this.slider.addEventListener("keydown", event => { if (event.key === "Escape") { this.slider.value = STEPS; this.#tell(); } });
    by("time").append(this.player, h("div", { class: "track" }, this.bars, this.slider), this.label);
    this.#stop();
  }

  /** The times of these notes are what the slider spans. */
  span(nodes) {
    const times = nodes.map(node => node.from).filter(moment => moment !== null);
    const seen = times.length < 2 ? null : this.moment;
    by("time").hidden = times.length < 2;
    this.#from = Math.min(...times);
    this.#to = Math.max(...times, ...nodes.map(node => node.to ?? -Infinity));
    if (this.#to === this.#from) this.#to++;
    const place = seen === null ? STEPS : Math.round((seen - this.#from) / (this.#to - this.#from) * STEPS);
    this.slider.value = seen === null ? STEPS : Math.min(place, STEPS - 1);  // the same moment, as nearly as can be
    const heights = new Array(BARS).fill(0);
    const bar = moment => Math.min(BARS - 1, Math.floor((moment - this.#from) / (this.#to - this.#from) * BARS));
    for (const moment of times) heights[bar(moment)]++;
    const most = Math.max(...heights);
    this.bars.replaceChildren(...heights.map(count => {
      const one = h("i", {});
      one.style.height = `${count ? 12 + 88 * Math.sqrt(count / most) : 0}%`;
      return one;
    }));
    this.#tell();
  }

  /** Milliseconds, or null for now. */
  get moment() {
    const place = Number(this.slider.value);
    return place === STEPS ? null : Math.round(this.#from + (this.#to - this.#from) * place / STEPS);
  }

  #tell() {
    const { moment } = this, place = Number(this.slider.value);
    const text = moment === null ? "now" : day(moment);
    this.label.value = text;
    this.slider.setAttribute("aria-valuetext", text);
    this.slider.classList.toggle("past", moment !== null);
    [...this.bars.children].forEach((one, nth) => one.classList.toggle("later", nth / BARS * STEPS >= place));
    this.#move(moment);
  }

  #show(name, label) {
    this.player.replaceChildren(icon(name));
    this.player.setAttribute("aria-label", label);
    this.player.title = label;
  }

  #play() {
    const start = performance.now(), from = this.moment === null ? 0 : Number(this.slider.value);
    this.#show("pause", "Stop");
    const step = now => {
      const place = Math.min(STEPS, from + (now - start) / PLAYED * STEPS);
      const shown = calm.matches ? Math.floor(place / 40) * 40 : Math.floor(place);
      if (place === STEPS || shown !== Number(this.slider.value)) {
        this.slider.value = place === STEPS ? STEPS : shown;
        this.#tell();
      }
      if (place === STEPS) this.#stop();
      else this.#playing = requestAnimationFrame(step);
    };
    this.#playing = requestAnimationFrame(step);
  }

  #stop() {
    cancelAnimationFrame(this.#playing);
    this.#playing = 0;
    this.#show("play", "Play the memory from its beginning");
  }
}
