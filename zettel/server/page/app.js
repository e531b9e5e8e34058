// The page: which view is shown, what the keys do, and the search that all views come from.

import * as api from "./api.js";
import { askForKey, chooseScope, may, showKey, takeRight, takeScope } from "./access.js";
import { brief, button, by, count, h, icon, sign, toast, when } from "./dom.js";
import { add } from "./edit.js";
import { Graph, STEP } from "./graph.js";
import { item } from "./hits.js";
import { forgetNames, namesBy } from "./names.js";
import { isThere } from "./model.js";
import { hideNote, showNote } from "./note.js";
import { Time } from "./time.js";
import { VIEWS, badges, showView } from "./upkeep.js";
import { asked } from "./words.js";

const HITS = 12, MOST_NOTES = 2000, HOPS = 2, LATEST = 12;
const KINDS = { episodic: "what happened", semantic: "facts", procedural: "how to act", insight: "insights" };
const KEYS = [
  ["/", "ask"], ["g", "into the graph"], ["↑ ↓ ← →", "from note to note, in the graph and among hits"], ["Enter", "open the note"],
  ["+ − 0", "nearer, farther, all, in the graph"], ["Shift with arrows", "move the map"], ["t", "the time slider"],
  ["n", "add a note", "write"], ["e", "edit the open note", "write"],
  ["1 … 7", "the views"], ["Esc", "close the note, or clear the search"], ["?", "this list"],
];

const narrow = matchMedia("(max-width: 820px)");  // as in the style sheet
let question = "", asOf = null, asking = null, drawing = null;
let drawn = { around: null, cursor: null, last: true };  // last: it reaches to the note that arrived last
let pages = [null];  // cursors of the pages of the graph that were seen

export const graph = new Graph(by("graph"), id => { location.hash = id ? `#/note/${id}` : "#/"; });
const time = new Time(moment => {
  const moved = moment !== asOf;
  asOf = moment;
  graph.at(moment);
  if (moved) later(() => question ? find(question) : latest());
});

let waiting = 0;
function later(does) {
  clearTimeout(waiting);
  waiting = setTimeout(does, 300);
}

// ------------------------------------------------------------------------------------------------------------- the graph

/** Draw all notes (a page of them), or those around one. */
async function show(around = null, cursor = null, { stay = false } = {}) {
  drawing?.abort();
  drawing = new AbortController();
  const query = around ? { around, hops: HOPS } : { limit: MOST_NOTES, cursor };
  let answer;
  try {
    answer = await api.graph(query, drawing.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    throw error;
  }
  drawn = { around, cursor, last: !around && !answer.cursor };
  graph.show(answer, { stay });
  time.span(graph.nodes);
  by("empty").hidden = answer.notes.length > 0;
  by("empty").replaceChildren(h("b", {}, "Nothing is remembered here yet."), " Add something, and it shows up.");
  by("graph").setAttribute("data-notes", answer.notes.length);
  extent(answer);
  legend();
  if (!question) latest();
}

/** What the graph shows, and the way to more of it. */
function extent(answer) {
  const place = by("around"), told = text => h("span", { class: "chip" }, text);
  const turn = (label, to) => button(label, () => attempt(show(null, to)), { class: "chip" });
  place.replaceChildren();
  if (drawn.around) return place.append(told(`${count(answer.notes.length, "note")} around one`), turn("Show all", null));
  if (!answer.cursor && pages.length === 1) return;
  const here = pages.indexOf(drawn.cursor);
  if (answer.cursor && !pages.includes(answer.cursor)) pages.push(answer.cursor);
  place.append(told(`${count(answer.notes.length, "note")}, by arrival`));
  if (here > 0) place.append(turn("Earlier", pages[here - 1]));
  if (answer.cursor) place.append(turn("Later", answer.cursor));
}

function legend() {
  const there = new Set(graph.nodes.map(node => node.kind));
  by("legend").replaceChildren(...Object.entries(KINDS).filter(([kind]) => there.has(kind)).map(([kind, told]) => {
    const box = h("input", { type: "checkbox", checked: graph.shows(kind) });
    box.addEventListener("change", () => graph.toggle(kind, box.checked));
    return h("label", { title: kind }, box, sign(kind), told);
  }));
}

// ------------------------------------------------------------------------------------------------------------ the search

async function find(text) {
  question = text.trim();
  clearTimeout(waiting);
  asking?.abort();
  by("memory").classList.toggle("asked", question !== "");
  if (!question) return clear();
  asking = new AbortController();
  const { signal } = asking;
  by("told").textContent = "Searching…";
  try {
    const as_of = asOf === null ? null : new Date(asOf).toISOString();
    const { hits } = await api.search({ question, k: HITS, explain: true, ...(as_of ? { as_of } : {}) }, signal);
    by("hits").replaceChildren(...hits.map((hit, place) => item(hit, place + 1, question)));
    by("told").replaceChildren(hits.length ? count(hits.length, "hit") : "Nothing in this memory answers that.");
    if (as_of) by("told").append(", as of ", when(as_of));
    current();
    graph.rank(hits.map(hit => hit.note.id));
    if (hits.length && !location.hash.startsWith("#/note/")) graph.select(null, { fly: false });
  } catch (error) {
    if (error.name === "AbortError") return;
    by("told").textContent = "";
    by("hits").replaceChildren(h("li", { class: "wrong", role: "alert" }, error.message));
  }
}

function clear() {
  question = "";
  by("question").value = "";
  by("memory").classList.remove("asked");
  graph.rank([]);
  latest();
}

/** What arrived last of what is on the map, and was there then, as long as nobody asks. */
function latest() {
  const notes = graph.nodes.filter(node => isThere(node, asOf)).map(node => node.note).sort((a, b) => b.seq - a.seq).slice(0, LATEST);
  by("told").textContent = !notes.length ? "" : drawn.last ? "Lately remembered" : "The latest on the map";
  by("hits").replaceChildren(...notes.map(note => h("li", { class: "hit", "data-note": note.id },
    h("a", { href: `#/note/${note.id}`, class: "slip" },
      h("span", { class: "by" }, sign(note.kind), h("b", {}, note.speaker ?? note.kind), note.occurred_at && when(note.occurred_at)),
      h("span", { class: "says" }, brief(note.content, 200))))));
}

// ------------------------------------------------------------------------------------------------------------- the views

const viewed = () => location.hash.split("/")[1] ?? "";
const reads = view => Object.hasOwn(VIEWS, view);

async function route() {
  const view = viewed(), id = decodeURIComponent(location.hash.split("/")[2] ?? ""), reading = reads(view);
  by("memory").hidden = reading;
  by("other").hidden = !reading;
  for (const one of document.querySelectorAll("nav a")) {
    if (one.hash === (reading ? `#/${view}` : "#/")) {
      one.setAttribute("aria-current", "page");
      one.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else one.removeAttribute("aria-current");
  }
  document.title = reading ? `${VIEWS[view][0]} · zettel` : "zettel";
  if (reading) {
    hideNote();
    by("other").focus({ preventScroll: true });
    return showView(view, changed);
  }
  current(id);
  if (view !== "note" || !id) {
    hideNote();
    return graph.select(null);
  }
  graph.select(id);
  if (!graph.has(id) && pages.length > 1) attempt(show(id).then(() => graph.select(id)));  // it is on another page
  await showNote(id, { stems: asked(question), changed, removed, around: lookAround });
}

/** Mark the hit whose note is open. */
function current(id = location.hash.split("/")[2] ?? "") {
  for (const one of document.querySelectorAll("#hits [aria-current]")) one.removeAttribute("aria-current");
  document.querySelector(`#hits [data-note="${CSS.escape(id)}"] .slip`)?.setAttribute("aria-current", "true");
}

/** Draw what is around a note; where there is room for one thing only, that is the graph then. */
async function lookAround(id) {
  await attempt(show(id));
  if (narrow.matches) location.hash = "#/";
  else graph.select(id, { fly: false });
  by("graph").scrollIntoView({ block: "nearest" });
}

/** After a note was changed: the graph, the hits and the numbers are read anew. */
async function changed() {
  forgetNames();
  await attempt(Promise.all([show(drawn.around, drawn.cursor, { stay: true }), question ? find(question) : null, badges()]));
}

/** Show a note that was added. */
async function added(id) {
  await changed();
  location.hash = `#/note/${id}`;
}

/** After a note was deleted: nothing shows it any more. */
async function removed(id) {
  location.hash = "#/";
  if (drawn.around === id) drawn = { around: null, cursor: null, last: true };
  await changed();
  by("question").focus();
}

async function attempt(work) {
  try {
    return await work;
  } catch (error) {
    toast(error.message, { wrong: true });
  }
}

async function start({ chosen = false } = {}) {
  hideNote();
  pages = [null];
  await takeScope(chosen);
  showKey();
  await takeRight();
  by("add").hidden = !may("write");
  const map = show();
  if (reads(viewed())) await route();  // it waits for no graph
  await map;
  if (!reads(viewed())) await route();
  await badges();
}

// -------------------------------------------------------------------------------------------------------------- the keys

function help() {
  const dialog = by("panel");
  const typed = keys => keys.split(" ").map(one => [/^(with|…)$/.test(one) ? one : h("kbd", {}, one), " "]);
  dialog.replaceChildren(h("div", { class: "form" }, h("h2", { id: "panel-title" }, "Keys"),
    h("dl", { class: "keys" }, KEYS.filter(([, , right = "read"]) => may(right))
      .map(([keys, does]) => [h("dt", {}, typed(keys)), h("dd", {}, does)])),
    h("div", { class: "row" }, button("Close", () => dialog.close(), { class: "first" }))));
  dialog.showModal();
}

function pressed(event) {
  const typing = event.target.matches("input:not([type=range], [type=checkbox])"), { key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (key === "Escape") {
    if (!by("note").hidden) location.hash = "#/";
    else if (question || by("question").value) clear();
    return;
  }
  if ((key === "ArrowDown" || key === "ArrowUp") && event.target.closest("#question, #hits")) return along(event);
  if (typing) return;
  const views = ["", ...Object.keys(VIEWS)];
  const does = { "/": () => into("question"), g: () => into("graph"), t: () => into("as-of"), "?": help,
    n: may("write") ? () => by("add").click() : null, e: by("edit") ? () => by("edit").click() : null,
    ...Object.fromEntries(views.map((view, nth) => [String(nth + 1), () => { location.hash = `#/${view}`; }])) }[key];
  if (!does) return;
  event.preventDefault();
  does();
}

function into(id) {
  if (by("memory").hidden) location.hash = "#/";
  by("memory").hidden = false;
  by(id).focus();
  by(id).select?.();
}

/** Up and down among the hits, and from the question into them. */
function along(event) {
  const slips = [...document.querySelectorAll("#hits .slip")], now = slips.indexOf(document.activeElement);
  const next = event.key === "ArrowDown" ? slips[now + 1] : slips[now - 1] ?? by("question");
  if (!next) return;
  event.preventDefault();
  next.focus();
}

// ------------------------------------------------------------------------------------------------------------- the start

function furnish() {
  by("views").append(...[["", "Memory"], ...Object.entries(VIEWS).map(([view, [title]]) => [view, title])]
    .map(([view, title]) => h("a", { href: `#/${view}` }, title, h("span", { class: "badge", "data-badge": view, hidden: true }))));
  const icons = { go: "search", clear: "close", "zoom-in": "plus", "zoom-out": "minus", "zoom-all": "fit", key: "key" };
  for (const [id, name] of Object.entries(icons)) by(id).append(icon(name));
  const camera = { "zoom-in": () => graph.zoom(STEP), "zoom-out": () => graph.zoom(1 / STEP), "zoom-all": () => graph.all() };
  for (const [id, does] of Object.entries(camera)) by(id).addEventListener("click", does);
  namesBy(id => graph.note(id));
  api.whenKeyIsWanted(askForKey);
  by("ask").addEventListener("submit", event => { event.preventDefault(); find(by("question").value); });
  by("question").addEventListener("input", event => { if (!event.target.value) clear(); });
  by("clear").addEventListener("click", () => { clear(); by("question").focus(); });
  by("scope").addEventListener("click", () => attempt(chooseScope(() => attempt(start({ chosen: true })))));
  by("add").prepend(icon("plus"));
  by("add").addEventListener("click", () => attempt(add(added)));
  by("keys-help").addEventListener("click", help);
  by("key").addEventListener("click", async () => {
    if (await askForKey("")) location.reload();
  });
  addEventListener("keydown", pressed);
  addEventListener("hashchange", () => attempt(route()));
}

furnish();
attempt(start());
