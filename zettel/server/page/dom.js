// Elements made by hand. Whatever is a text becomes a text node: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  back: "M15 5l-7 7 7 7",
  close: "M6 6l12 12M18 6L6 18",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  key: "M8 15a4 4 0 1 1 3.5-6H21v4h-3v3h-4v-3h-2.5A4 4 0 0 1 8 15z",
  minus: "M5 12h14",
  pause: "M8 5v14M16 5v14",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c.8-4 3.8-6 7.5-6s6.7 2 7.5 6",
  play: "M8 5l11 7-11 7z",
  plus: "M12 5v14M5 12h14",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5",
};

/** An element with attributes (`onclick` and the like are listeners, false and null are left out) and children. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(3).filter(child => child !== null && child !== undefined && child !== false));
  return made;
}

export function icon(name) {
  const made = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  for (const [key, value] of [["viewBox", "0 0 24 24"], ["aria-hidden", "true"], ["class", "icon"]]) made.setAttribute(key, value);
  path.setAttribute("d", ICONS[name]);
  made.append(path);
  return made;
}

/** The sign of a kind, in the shape that the graph draws it in. */
export function sign(kind) {
  return h("i", { class: `sign ${kind}`, "aria-hidden": "true" });
}

export const by = id => document.getElementById(id);

export const button = (label, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, label);
export const terms = words => h("span", { class: "terms" }, words.map(word => h("span", { class: "term" }, word)));

/** Widths are set on the element: a strict policy takes no style attributes. */
export function bar(share, attributes = {}) {
  const made = h("span", { ...attributes, class: `bar ${attributes.class ?? ""}` }, h("span"));
  made.firstChild.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return made;
}

const dayFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const timeFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
const numberFormat = new Intl.NumberFormat("en-GB");

export const day = moment => dayFormat.format(new Date(moment));
export const number = value => numberFormat.format(value);
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** A moment as people write it, exactly in its title; times are UTC everywhere. */
export function when(moment, { withTime = false } = {}) {
  const exactly = `${moment.replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)$/, "")} UTC`;
  return h("time", { datetime: moment, title: exactly }, (withTime ? timeFormat : dayFormat).format(new Date(moment)));
}

export function brief(text, most = 80) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** What a note is called where there is one line for it. */
export const nameOf = note => note.title || note.caption || brief(note.content ?? "", 60) || note.id;

/** Say something to whoever listens instead of looking. */
export function announce(text) {
  by("said").textContent = text;
}

let gone = 0;
/** A line at the foot of the page that goes by itself. */
export function toast(text, { wrong = false } = {}) {
  const line = by("toast");
  line.replaceChildren(text);
  line.classList.toggle("wrong", wrong);
  line.hidden = false;
  clearTimeout(gone);
  gone = setTimeout(() => { line.hidden = true; }, wrong ? 9000 : 5000);
}

/** Do something that changes the memory, tell that it is done or what was wrong, and show what became of it. */
export async function doing(does, told, again) {
  try {
    await does();
    toast(told);
  } catch (error) {
    toast(error.message, { wrong: true });
  }
  await again();
}

/** Ask before something is changed. Gives what was typed ("" without a field), or null if it was called off. */
export function confirmed({ title, text, does, field = null }) {
  const dialog = by("confirm");
  const typed = field && h("input", { type: "text", id: "confirm-field", maxlength: "500", autocomplete: "off" });
  const no = h("button", { type: "button", onclick: () => dialog.close("") }, "Not now");
  dialog.replaceChildren(h("form", { method: "dialog" },
    h("h2", { id: "confirm-title" }, title), h("p", {}, text),
    typed && h("label", { for: "confirm-field" }, field), typed,
    h("div", { class: "row" }, no, h("button", { class: "first", value: "yes" }, does))));
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise(resolve => dialog.addEventListener("close",
    () => resolve(dialog.returnValue === "yes" ? typed?.value.trim() ?? "" : null), { once: true }));
}
