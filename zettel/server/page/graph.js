// The graph on the page: a camera over the notes, moved by pointer and keys; what is chosen, told to others by events.

import { announce, count, day, nameOf } from "./dom.js";
import { colours, draw, shortName } from "./draw.js";
import { FARTHEST, MARGIN, fitting, isThere, model, next, springs, topics } from "./model.js";
import { Picture } from "./picture.js";

const NEAREST = 6;  // zoom
const NEAR = 1.15;  // at least as near as this to a note that was chosen
export const STEP = 1.25;  // of a zoom by a key or a button
const SLIDES = 300;  // notes; a map of more slides as a picture while it is dragged
const PAN = 60;  // pixels of a step by a key
const REACH = 12;  // pixels around a note that still mean it
const EASE = 0.22;  // share of the way that moving things go in one frame
const WIDEST = 1.8;  // width of the whole by its height, however wide the canvas is
const FLIGHT = 420;  // milliseconds of a flight to a note

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Draws into `canvas`; `onpick(id or null)` is called when somebody chooses a note, or nothing. */
export class Graph {
  #canvas; #context; #colour; #worker; #pick;
  #run = 0; #frame = 0; #flight = null; #settling = false; #aim = null; #stretch = 1; #painted = false; #sliding = false; #picture = null;
  #graph = { nodes: [], edges: [], found: new Map(), keywords: [] };
  #scene = {
    view: { x: 0, y: 0, k: 1 }, ranks: new Map(), hidden: new Set(), moment: null, selected: null, focused: null, topics: [],
    lit: null, center: null,
  };
  #pointers = new Map();

  constructor(canvas, onpick) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#pick = onpick;
    this.#colour = colours();
    this.#scene.shown = node => isThere(node, this.#scene.moment) && !this.#scene.hidden.has(node.kind);
    this.#worker = new Worker(workerAddress());
    this.#worker.onmessage = ({ data }) => this.#moved(data);
    dark.addEventListener("change", () => { this.#colour = colours(); this.redraw(); });
    new ResizeObserver(() => this.#resized()).observe(canvas);
    this.#listen();
    this.#resized();
  }

  /** Show what the server answered: all of it, or, if it is nearly what was there, from where the camera is. */
  show(answer, { stay = false } = {}) {
    const scene = this.#scene, chosen = scene.selected?.id;
    this.#graph = model(answer, this.#graph.found);
    for (const node of this.#graph.nodes) node.name = shortName(nameOf(node.note));
    Object.assign(scene, { focused: null, topics: [], selected: this.#graph.found.get(chosen) ?? null });
    this.#settling = true;
    this.#light();
    if (!stay) this.all(false);
    this.#stretch = scene.width ? Math.sqrt(Math.min(WIDEST, Math.max(1 / WIDEST, scene.width / scene.height))) : 1;
    const wanted = springs(this.#graph, this.#stretch);
    this.#worker.postMessage({ run: ++this.#run, ...wanted }, [wanted.x.buffer, wanted.y.buffer, wanted.ends.buffer, wanted.pull.buffer]);
  }

  has(id) { return this.#graph.found.has(id); }
  get nodes() { return this.#graph.nodes; }
  note(id) { return this.#graph.found.get(id)?.note; }
  /** Where a note lies on the canvas, in pixels: for tests, and for whoever wants to point at it. */
  spot(id) { return this.#toScreen(this.#graph.found.get(id)); }
  get view() { return { ...this.#scene.view }; }
  /** Notes that can be seen as the slider and the legend stand. */
  get shown() { return this.#graph.nodes.filter(this.#scene.shown).length; }

  select(id, { fly = true } = {}) {
    const scene = this.#scene;
    scene.selected = this.#graph.found.get(id) ?? null;
    scene.focused = null;
    this.#light();
    const { selected } = scene;
    if (fly && selected) this.#look(() => ({ x: selected.tx, y: selected.ty, k: Math.max(scene.view.k, NEAR) }), true);
    this.redraw();
  }

  /** Hits get their places as numbers; without any, all notes are equal. */
  rank(ids) {
    this.#scene.ranks = new Map(ids.map((id, place) => [id, place + 1]));
    this.#light();
    const { lit, center } = this.#scene;
    if (!center) this.#look(() => this.#fitting(lit ? [...lit] : this.#graph.nodes), true);
    this.redraw();
  }

  at(moment) {
    this.#scene.moment = moment;
    this.redraw();
  }

  shows(kind) { return !this.#scene.hidden.has(kind); }

  toggle(kind, shown) {
    if (shown) this.#scene.hidden.delete(kind);
    else this.#scene.hidden.add(kind);
    this.redraw();
  }

  /** Everything in sight. */
  all(fly = true) {
    this.#look(() => this.#fitting(this.#graph.nodes), fly);
  }

  /** Turn the camera to what `aim()` gives, and keep it there while notes find their places, until somebody moves it. */
  #look(aim, fly) {
    this.#aim = aim;
    if (fly) this.#fly(aim());
    else Object.assign(this.#scene.view, aim());
    this.redraw();
  }

  #fitting(nodes) {
    const { view, width, height } = this.#scene;
    return nodes.length && width ? fitting(nodes, width, height) : { ...view };
  }

  zoom(factor, x = this.#scene.width / 2, y = this.#scene.height / 2) {
    const { view, width, height } = this.#scene, k = Math.min(NEAREST, Math.max(FARTHEST, view.k * factor));
    const dx = x - width / 2, dy = y - height / 2;
    this.#let();
    Object.assign(view, { x: view.x + dx / view.k - dx / k, y: view.y + dy / view.k - dy / k, k });
    this.redraw();
  }

  pan(dx, dy) {
    const { view } = this.#scene;
    this.#let();
    view.x -= dx / view.k;
    view.y -= dy / view.k;
    this.#sliding = this.#graph.nodes.length > SLIDES;
    this.#schedule();
  }

  /** Somebody moves the camera: it goes nowhere by itself any more. */
  #let() {
    this.#aim = this.#flight = null;
  }

  redraw() {
    this.#sliding = false;
    this.#picture = null;
    this.#schedule();
  }

  #schedule() {
    if (!this.#frame) this.#frame = requestAnimationFrame(now => this.#draw(now));
  }

  #draw(now) {
    this.#frame = 0;
    let moving = false;
    if (this.#flight) moving = this.#flying(now);
    if (this.#settling) {
      this.#settling = false;
      for (const node of this.#graph.nodes) {
        const dx = node.tx - node.x, dy = node.ty - node.y;
        if (Math.abs(dx) + Math.abs(dy) < 0.05) continue;
        node.x += dx * EASE;
        node.y += dy * EASE;
        this.#settling = true;
      }
      if (this.#aim && !this.#flight) this.#follow();
    }
    if (!this.#scene.width) return;
    const scene = { ...this.#scene, nodes: this.#graph.nodes, edges: this.#graph.edges };
    if (this.#sliding && !this.#settling) this.#slide(scene);
    else draw(this.#context, scene, this.#colour);
    if (!this.#painted && this.#graph.nodes.length) {
      this.#painted = true;
      performance.mark("graph");
    }
    if (moving || this.#settling) this.redraw();
  }

  #slide(scene) {
    if (this.#picture?.put(this.#context, scene.view)) return;
    this.#picture = new Picture(scene, this.#colour);
    this.#picture.put(this.#context, scene.view);
  }

  #follow() {
    const { view } = this.#scene, to = this.#aim(), share = calm.matches ? 1 : EASE;
    for (const axis of ["x", "y", "k"]) view[axis] += (to[axis] - view[axis]) * share;
  }

  #moved({ run, x, y, last }) {
    if (run !== this.#run || (calm.matches && !last)) return;
    const dragged = [...this.#pointers.values()].map(one => one.node);
    this.#graph.nodes.forEach((node, row) => {
      if (dragged.includes(node)) return;
      node.tx = x[row] * this.#stretch;
      node.ty = y[row] / this.#stretch;
      if (calm.matches) [node.x, node.y] = [node.tx, node.ty];
    });
    if (last) {
      this.#scene.topics = topics(this.#graph);
      this.#canvas.dataset.settled = run;
    }
    this.#settling = true;
    this.redraw();
  }

  #fly(to) {
    if (calm.matches) Object.assign(this.#scene.view, to);
    else this.#flight = { from: { ...this.#scene.view }, to, start: performance.now() };
    this.redraw();
  }

  #flying(now) {
    const { from, to, start } = this.#flight, t = Math.min(1, Math.max(0, (now - start) / FLIGHT)), eased = 1 - (1 - t) ** 3;
    for (const axis of ["x", "y", "k"]) this.#scene.view[axis] = from[axis] + (to[axis] - from[axis]) * eased;
    if (t === 1) this.#flight = null;
    return t < 1;
  }

  /** What stands out: a note that is pointed at or chosen with its neighbours, or the hits. */
  #light() {
    const scene = this.#scene, center = scene.focused ?? scene.selected;
    scene.center = center;
    if (center) scene.lit = new Set([center, ...center.edges.flatMap(({ a, b }) => [a, b])]);
    else {
      const hits = [...scene.ranks.keys()].map(id => this.#graph.found.get(id)).filter(Boolean);
      scene.lit = hits.length ? new Set(hits) : null;
    }
  }

  #focus(node) {
    if (node === this.#scene.focused) return;
    this.#scene.focused = node;
    this.#light();
    this.redraw();
  }

  #resized() {
    const { clientWidth: width, clientHeight: height } = this.#canvas, ratio = Math.min(devicePixelRatio || 1, 2);
    Object.assign(this.#scene, { width, height, ratio });
    this.#canvas.width = width * ratio;
    this.#canvas.height = height * ratio;
    if (this.#aim) Object.assign(this.#scene.view, this.#aim());
    if (width) this.#draw(performance.now());  // a canvas is empty after it got another size: drawn before anybody sees that
  }

  #toScreen(node) {
    const { view, width, height } = this.#scene;
    return { x: (node.x - view.x) * view.k + width / 2, y: (node.y - view.y) * view.k + height / 2 };
  }

  #under(x, y) {
    let best = null, least = REACH;
    for (const node of this.#graph.nodes) {
      if (!this.#scene.shown(node)) continue;
      const spot = this.#toScreen(node), apart = Math.hypot(spot.x - x, spot.y - y) - node.r * this.#scene.view.k * 0.6;
      if (apart < least) [best, least] = [node, apart];
    }
    return best;
  }

  #listen() {
    const canvas = this.#canvas, pointers = this.#pointers;
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      const node = pointers.size ? null : this.#under(event.offsetX, event.offsetY);
      pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY, node, way: 0 });
    });
    canvas.addEventListener("pointermove", event => {
      const held = pointers.get(event.pointerId), { offsetX: x, offsetY: y } = event;
      if (!held) {
        const node = this.#under(x, y);
        canvas.classList.toggle("over", node !== null);
        return this.#focus(node);
      }
      this.#dragged(held, x, y);
    });
    const released = event => {
      const held = pointers.get(event.pointerId);
      pointers.delete(event.pointerId);
      this.redraw();
      if (event.type === "pointerup" && held?.way < 5 && !pointers.size) this.#pick(held.node?.id ?? null);
    };
    canvas.addEventListener("pointerup", released);
    canvas.addEventListener("pointercancel", released);
    canvas.addEventListener("pointerleave", () => { if (!canvas.matches(":focus-visible")) this.#focus(null); });
    canvas.addEventListener("dblclick", () => this.all());
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / (event.ctrlKey ? 120 : 420)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", event => this.#key(event));
    canvas.addEventListener("blur", () => this.#focus(null));
  }

  #dragged(held, x, y) {
    const dx = x - held.x, dy = y - held.y, others = [...this.#pointers.values()].filter(one => one !== held);
    held.way += Math.abs(dx) + Math.abs(dy);
    if (others.length) {  // two fingers: the one that rests is the middle
      const [rest] = others, before = Math.hypot(held.x - rest.x, held.y - rest.y), after = Math.hypot(x - rest.x, y - rest.y);
      if (before > 1) this.zoom(after / before, rest.x, rest.y);
      this.pan(dx / 2, dy / 2);
    } else if (held.node) {
      const { k } = this.#scene.view, { node } = held;
      this.#let();
      node.x += dx / k;
      node.y += dy / k;
      [node.tx, node.ty] = [node.x, node.y];
      this.redraw();
    } else if (held.way >= 5) this.pan(dx, dy);
    held.x = x;
    held.y = y;
  }

  #key(event) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }, way = ways[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (way && event.shiftKey) {
      this.pan(-way[0] * PAN, -way[1] * PAN);
      this.redraw();
    } else if (way) this.#walk(way);
    else if (event.key === "Enter" && this.#scene.focused) this.#pick(this.#scene.focused.id);
    else if (event.key === "+" || event.key === "=") this.zoom(STEP);
    else if (event.key === "-") this.zoom(1 / STEP);
    else if (event.key === "0") this.all();
    else return;
    event.preventDefault();
  }

  /** The next note in a direction, from the one that has the focus, else from the middle. */
  #walk([dx, dy]) {
    const here = this.#scene.focused ?? this.#scene.selected, from = here ?? this.#scene.view;
    const best = next(this.#graph.nodes.filter(node => node !== here && this.#scene.shown(node)), from, [dx, dy]);
    if (!best) return;
    this.#focus(best);
    const spot = this.#toScreen(best), { width, height, view } = this.#scene;
    const inside = Math.min(spot.x, spot.y, width - spot.x, height - spot.y) > MARGIN;
    if (!inside) this.#look(() => ({ x: best.tx, y: best.ty, k: view.k }), true);
    const { note } = best;
    const said = [note.kind, note.speaker, note.occurred_at && day(note.occurred_at), nameOf(note), count(best.degree, "link")];
    announce(said.filter(Boolean).join(", "));
  }
}

/** The layout's worker. Where the page takes no plain addresses as scripts, by the one policy that it knows. */
function workerAddress() {
  const address = new URL("layout.js", import.meta.url).href;
  return window.trustedTypes?.createPolicy("zettel", { createScriptURL: one => one }).createScriptURL(address) ?? address;
}
