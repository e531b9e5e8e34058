// What needs a person: notes to review, conflicts, quarantine and jobs; the size and cost of the memory; and entities.

import { may } from "./access.js";
import * as api from "./api.js";
import { bar, brief, button, by, count, doing, h, number, sign, when } from "./dom.js";
import { entities } from "./entities.js";
import { named } from "./names.js";
import { quarantine, release } from "./note.js";

const LOOK_AGAIN = 3000;  // milliseconds between two looks at jobs that are not done
const JOBS_SHOWN = 50;
const PAGES = 20;  // of the archive, 100 notes each, in which quarantine is looked for

/** The views beside the memory: a name for people, and what makes its page. */
export const VIEWS = {
  review: ["Review", review], conflicts: ["Conflicts", conflicts], quarantine: ["Quarantine", inQuarantine], jobs: ["Jobs", jobs],
  cost: ["Cost", cost], entities: ["Entities", entities],
};

let next = 0;

/** Show a view. It is read anew after each change, with what `changed()` reads, and jobs as long as there are any. */
export async function showView(name, changed, { quiet = false } = {}) {
  const [title, make] = VIEWS[name], page = by("other");
  clearTimeout(next);
  if (!quiet) page.replaceChildren(h("h1", {}, title), h("p", { class: "soft waiting", role: "status" }, "Reading…"));
  const still = () => !page.hidden && page.dataset.view === name;
  page.dataset.view = name;
  const look = () => showView(name, changed, { quiet: true });
  try {
    const made = await make(() => Promise.all([look(), changed()]));
    if (!still()) return;
    const focused = document.activeElement?.dataset?.keep;
    page.replaceChildren(h("h1", {}, title), ...made);
    for (const place of page.querySelectorAll("[data-name]")) named(place);
    if (focused) page.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
    if (name === "jobs" && page.querySelector(".job")) next = setTimeout(() => { if (still()) look(); }, LOOK_AGAIN);
  } catch (error) {
    if (still()) page.replaceChildren(h("h1", {}, title), h("p", { class: "wrong", role: "alert" }, error.message));
  }
}

/** Numbers on the names of views that have something to do. */
export async function badges() {
  const [waiting, pairs, open] = await Promise.all([api.review(), api.conflicts(), api.jobs()]);
  const told = { review: waiting.notes.length, conflicts: pairs.conflicts.length, jobs: open.jobs.length };
  for (const [name, value] of Object.entries(told)) {
    const badge = document.querySelector(`[data-badge="${name}"]`);
    badge.hidden = value === 0;
    badge.textContent = name === "review" && waiting.cursor ? `${number(value)}+` : number(value);
  }
}

const nothing = (title, text) => [h("div", { class: "nothing" }, h("p", {}, title), h("p", { class: "soft" }, text))];
const hint = (...told) => h("p", { class: "soft" }, told);

function slip(note, change, reason = null) {
  return h("article", { class: "zettel" },
    h("header", {}, sign(note.kind), h("b", {}, note.speaker ?? note.title ?? note.kind), note.occurred_at && when(note.occurred_at)),
    h("p", { class: "says" }, note.content), reason !== null && h("p", { class: "reason" }, reason),
    h("div", { class: "row" }, h("a", { class: "button", href: `#/note/${note.id}` }, "Open"), change));
}

async function review(again) {
  const { notes, cursor } = await api.review();
  if (!notes.length) {
    return nothing("Nothing waits for a review.", "Notes of writers below full trust, and texts that look like instructions, appear here until somebody confirms them.");
  }
  const confirm = note => doing(() => api.act(note.id, "confirm"), "It is confirmed, and can be pinned and summarised.", again);
  const change = note => may("write") && [
    button("Confirm", () => confirm(note), { class: "first", "data-keep": `confirm ${note.id}` }),
    button("Quarantine…", () => quarantine(note, again)),
  ];
  return [hint("Searches find these notes, but they stay out of the core memory, the profile and insights until you confirm them.",
    cursor && ` The first ${count(notes.length, "note")} that wait:`),
  h("div", { class: "slips" }, notes.map(note => slip(note, change(note), doubt(note))))];
}

/** Why a note waits for a review. */
function doubt(note) {
  const flags = note.flags.length > 0 && `looks like instructions (${note.flags.join(", ")})`;
  return [`Trust ${note.trust.toFixed(2)}`, flags].filter(Boolean).join(" · ");
}

async function conflicts(again) {
  const found = (await api.conflicts()).conflicts;
  if (!found.length) {
    return nothing("Nothing contradicts.", "When two notes say otherwise of the same and nobody knows which is right, they stand here.");
  }
  const out = note => may("write") && button("Quarantine…", () => quarantine(note, again));
  const pair = ({ note, other, reason, recorded_at }) => h("section", { class: "pair" },
    hint(reason || "They contradict each other", " · noticed ", when(recorded_at)),
    h("div", { class: "both" }, slip(other, out(other)), h("span", { class: "versus" }, "or"), slip(note, out(note))));
  return [hint("These say otherwise of the same. Add a note that says how it is, or take the wrong one out of play."), ...found.map(pair)];
}

async function inQuarantine(again) {
  const found = [];
  let cursor = null, page = 0;
  do {
    const answer = await api.away(cursor);
    found.push(...answer.notes.filter(note => note.quarantined !== null));
    ({ cursor } = answer);
  } while (cursor !== null && ++page < PAGES);
  if (!found.length && cursor === null) {
    return nothing("Nothing is in quarantine.", "A note that should not take part any more is put here, and can be released again.");
  }
  const free = note => may("write") && button("Release", () => release(note, again), { class: "first" });
  return [hint(`${count(found.length, "note")} that no search finds and no job looks at.`,
    cursor !== null && " There may be more, further back in the archive."),
  h("div", { class: "slips" }, found.map(note => slip(note, free(note), note.quarantined || "No reason was given.")))];
}

const WORK = {
  embed: "vectors for new notes", annotate: "a model reads new notes", link: "near notes are linked", evolve: "notes learn from each other",
  merge: "duplicates become one", reflect: "insights from what is dense", decay: "what nobody needs fades", tune: "useful notes rank higher",
  reembed: "vectors by another embedder", purge: "the end of a delete",
};
const STATES = { failed: "failed", running: "running", queued: "waiting" };  // what needs somebody first

async function jobs(again) {
  const all = (await api.jobs()).jobs, some = state => all.filter(job => job.state === state).length;
  if (!all.length) return nothing("All work is done.", "Notes are linked and improved in the background: what waits, runs or failed.");
  const does = (what, told) => doing(what, told, again);
  const retry = () => does(() => api.retry(), `${count(some("failed"), "job is", "jobs are")} queued again.`);
  const told = Object.entries(STATES).filter(([state]) => some(state)).map(([state, name]) => `${number(some(state))} ${name}`);
  const sorted = Object.keys(STATES).flatMap(state => all.filter(job => job.state === state));
  const retryAll = some("failed") > 0 && may("write") && button("Retry all that failed", retry, { class: "first" });
  return [h("div", { class: "row between" }, hint(told.join(" · ")), retryAll),
    h("ul", { class: "jobs" }, sorted.slice(0, JOBS_SHOWN).map(job => line(job, does))),
    ...(all.length > JOBS_SHOWN ? [hint(`and ${number(all.length - JOBS_SHOWN)} more`)] : [])];
}

function line(job, does) {
  const again = () => does(() => api.retry(job.id), "It is queued again.");
  const cancel = () => does(() => api.cancel(job.id), "It is cancelled: what it was to do is not done.");
  return h("li", { class: `job ${job.state}`, "data-job": job.id },
    h("span", { class: "chip" }, STATES[job.state]),
    h("div", {}, h("b", {}, job.kind), " ", h("span", { class: "soft" }, WORK[job.kind]),
      hint(job.note && ["about ", h("a", { href: `#/note/${job.note}`, "data-name": job.note }, job.note), " · "],
        job.attempts > 0 && `${count(job.attempts, "attempt")} · `, "since ", when(job.run_at, { withTime: true })),
      job.error && h("p", { class: "wrong" }, brief(job.error, 400))),
    h("div", { class: "row" },
      job.state === "failed" && may("write") && button("Retry", again, { "data-keep": `retry ${job.id}` }),
      job.state !== "running" && !["purge", "expire"].includes(job.kind) && may("admin") && button("Cancel", cancel, { "data-keep": `cancel ${job.id}` })));
}

const bytes = value => value < 1e6 ? `${(value / 1e3).toFixed(0)} kB` : `${(value / 1e6).toFixed(1)} MB`;
const dollars = value => `$${value.toFixed(value < 1 ? 4 : 2)}`;
const figure = (value, name, more) => h("div", { class: "figure" }, h("b", {}, value), h("span", {}, name), more && h("small", {}, more));
const figures = (...some) => h("div", { class: "figures" }, some);

async function cost() {
  const [told, usage] = await Promise.all([api.stats(), api.usage()]);
  return [...spent(told), h("h2", {}, "What there is"), figures(
    told.scopes > 1 && figure(number(told.scopes), "scopes", "this is of all of them"),
    figure(number(told.notes), "notes", told.archived > 0 && `and ${number(told.archived)} put away`),
    figure(number(told.events), "events"), figure(number(told.links), "links"), figure(number(told.terms), "Terms"),
    figure(number(told.revisions), "revisions"),
    told.vector_bytes !== undefined && figure(bytes(told.vector_bytes), "of vectors", `each of ${number(told.dimension)} numbers`)),
  ...(told.notes > 0 ? [h("p", { class: "soft" }, bar(told.vectors / told.notes, { class: "wide" }),
    `${Math.round(100 * Math.min(1, told.vectors / told.notes))} % of the notes have their vector`)] : []),
  ...used(usage),
  hint(`Kept in the ${told.store} store · read by ${told.annotator} · vectors by ${told.embedder}`)];
}

/** Which notes of the scope are found and used. */
function used(usage) {
  const list = (title, rows, more) => rows.length === 0 ? [] : [h("h3", {}, title), h("ul", {}, rows.map(row =>
    h("li", {}, h("a", { href: `#/note/${row.note}` }, row.text), " ", h("span", { class: "soft" }, more(row)))))];
  return [h("h2", {}, "Usage"), figures(
    figure(number(usage.searches), "logged searches", `${number(usage.reported)} with known use`),
    figure(number(usage.notes - usage.never_used), "notes used", `${number(usage.never_found)} never found`),
    usage.duplicates.length > 0 && figure(number(usage.duplicates.length), "groups of duplicates"),
    usage.contradictions > 0 && figure(number(usage.contradictions), "contradictions"),
    usage.stale.length > 0 && figure(number(usage.stale.length), "stale insights")),
  ...list("Most used", usage.most_used, row => `used ${number(row.used)}, found ${number(row.found)}`),
  ...list("Never found", usage.unused, () => ""),
  ...list("Derived from notes that have changed", usage.stale, () => "")];
}

/** What a language model has cost, and what is left of its budget. */
function spent({ llm, llm_calls: calls = 0, llm_hits: hits = 0, llm_tokens: tokens = 0, llm_usd: usd = 0, budget = {} }) {
  if (!llm && !calls && !hits) return [h("p", { class: "free" }, h("b", {}, "Nothing."), " No language model is used here.")];
  const left = Object.entries(budget).map(([name, value]) => name === "usd" ? dollars(value) : `${number(value)} ${name}`);
  const saved = calls + hits > 0 && `${Math.round(100 * hits / (calls + hits))} % of all questions cost nothing`;
  return [figures(
    figure(dollars(usd), "spent", "as far as prices are known"), figure(number(calls), "calls"), figure(number(tokens), "tokens"),
    figure(number(hits), "kept answers", saved), left.length > 0 && figure(left[0], "left of the budget", left.slice(1).join(", "))),
  ...(llm ? [hint("Model: ", llm)] : [])];
}
