// Persons, organisations, places and things: their facts, their timeline, and who is named together with them.

import { may } from "./access.js";
import * as api from "./api.js";
import { button, count, doing, h, number, when } from "./dom.js";

const SHOWN = 200;
const WHO = { user: "a person", reflect: "the model", rule: "a rule" };

/** The view of all entities, most named first; each opens in its place. */
export async function entities(again) {
  const { entities: found, cursor } = await api.entities(SHOWN);
  if (!found.length) {
    return [h("div", { class: "nothing" }, h("p", {}, "No entity is named."), h("p", { class: "soft" }, "Persons, organisations, places and things appear here as soon as notes name them."))];
  }
  return [h("p", { class: "soft" }, `The ${count(found.length, "entity", "entities")} that most notes name${cursor ? ", of more" : ""}.`),
    h("div", { class: "entities" }, found.map(entity => entry(entity, again)))];
}

function entry(entity, again) {
  const inside = h("div", {}, h("p", { class: "soft waiting" }, "Reading…"));
  const made = h("details", { "data-entity": entity.name }, h("summary", {},
    h("b", {}, entity.name), " ", h("span", { class: "soft" },
      [entity.kind, entity.aliases.length && `also ${entity.aliases.join(", ")}`, count(entity.notes, "note")].filter(Boolean).join(" · "))), inside);
  made.addEventListener("toggle", async () => {
    if (!made.open) return;
    try {
      inside.replaceChildren(...details(await api.entity(entity.name), again));
    } catch (error) {
      inside.replaceChildren(h("p", { class: "wrong", role: "alert" }, error.message));
    }
  });
  return made;
}

const section = (title, rows) => rows.length === 0 ? [] : [h("h3", {}, title), h("ul", {}, rows)];
const link = (id, text) => h("a", { href: `#/note/${id}` }, text);

function details(entity, again) {
  const split = ([one, other]) => doing(() => api.split(one, other), `${one} and ${other} are two entities now.`, again);
  const merges = entity.merges.map(({ names, by, reason }) => h("li", {}, names.join(" = "),
    h("span", { class: "soft" }, ` by ${WHO[by]}${reason ? `: ${reason}` : ""} `), may("write") && button("Split", () => split(names))));
  const facts = entity.facts.map(fact => h("li", {}, h(fact.current ? "span" : "s", {}, link(fact.note, fact.text)), " ",
    fact.valid_from && h("span", { class: "soft" }, "from ", when(fact.valid_from)),
    fact.valid_to && h("span", { class: "soft" }, " until ", when(fact.valid_to))));
  const timeline = entity.timeline.map(note => h("li", {}, when(note.occurred_at), " ", link(note.id, note.content)));
  const near = entity.neighbors.map(({ name, count: together }) => h("li", {}, button(name, () => open(name)), ` ${number(together)}`));
  return [...section("Names", merges), ...section("Facts", facts), ...section("Timeline", timeline), ...section("Named together", near)];
}

/** Open the entry of another entity, if the page shows it. */
function open(name) {
  const made = document.querySelector(`[data-entity="${CSS.escape(name)}"]`);
  if (!made) return;
  made.open = true;
  made.scrollIntoView({ block: "nearest" });
  made.querySelector("summary").focus();
}
