// Who looks, and at whose memory: the key that the server asks for, its right, and the scope among those it opens.

import * as api from "./api.js";
import { button, by, h, icon } from "./dom.js";

const DEFAULT = "the default scope";

export const scopeName = scope => api.PARTS.filter(part => scope?.[part]).map(part => scope[part]).join(" / ") || DEFAULT;
const same = (one, other) => api.PARTS.every(part => (one?.[part] ?? null) === (other?.[part] ?? null));

const RIGHTS = ["read", "write", "admin"];  // each includes those before it

let asking = null, right = "read";

/** Read the right of the key in the scope. */
export async function takeRight() {
  ({ right } = await api.right());
}

/** Whether the key has a right: the page shows no controls that the server would refuse. */
export const may = wanted => RIGHTS.indexOf(right) >= RIGHTS.indexOf(wanted);

/** Ask for a key, once for all requests that want one; whether there is one to try now. */
export function askForKey(wrong) {
  asking ??= new Promise(resolve => {
    const dialog = by("panel");
    const field = h("input", { type: "password", id: "key-field", autocomplete: "off", placeholder: "zk_…", required: true });
    dialog.replaceChildren(h("form", { method: "dialog" }, h("h2", { id: "panel-title" }, "A key, please"),
      h("p", {}, "This server opens its memories by key. It is kept in this tab until you close it."),
      wrong && h("p", { class: "wrong", role: "alert" }, wrong), h("label", { for: "key-field" }, "Key"), field,
      h("div", { class: "row" },
        button("Not now", () => dialog.close("")),
        h("button", { class: "first", value: "yes" }, "Open"))));
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      const given = dialog.returnValue === "yes" ? field.value.trim() : "";
      asking = null;
      if (given) api.keepKey(given);
      showKey();
      resolve(given !== "");
    }, { once: true });
    if (!dialog.open) dialog.showModal();
  });
  return asking;
}

/** The button that asks for another key; there is none where nobody asked for a first one. */
export function showKey() {
  by("key").hidden = !api.key();
}

/** Take the scope of last time, if the key still opens it, else the first there is; none other than the one just `chosen`. */
export async function takeScope(chosen = false) {
  const { scopes } = await api.scopes(), kept = api.scope();
  if (!chosen && !(kept && (scopes.some(one => same(one, kept)) || !scopes.length))) api.keepScope(scopes[0] ?? {});
  by("scope").replaceChildren(icon("person"), h("span", {}, scopeName(api.scope())));
  by("scope").setAttribute("aria-label", `Whose memory: ${scopeName(api.scope())}`);
}

/** The panel in which a scope is chosen or named; `chosen()` is called when it changed. */
export async function chooseScope(chosen) {
  const dialog = by("panel"), { scopes } = await api.scopes(), now = api.scope();
  const take = scope => {
    dialog.close();
    if (same(scope, api.scope())) return;
    api.keepScope(scope);
    chosen();
  };
  const field = part => h("input", { type: "text", name: part, value: now?.[part] ?? "", autocomplete: "off" });
  const fields = api.PARTS.map(part => h("label", {}, part, field(part)));
  const named = h("form", { class: "named" }, fields, h("button", { type: "submit" }, "Look there"));
  named.addEventListener("submit", event => {
    event.preventDefault();
    const given = new FormData(named);
    take(Object.fromEntries(api.PARTS.filter(part => given.get(part)).map(part => [part, given.get(part)])));
  });
  const parts = scope => api.PARTS.filter(part => scope[part]).map(part => `${part} ${scope[part]}`).join(" · ");
  const choice = scope => button([h("b", {}, scopeName(scope)), h("small", {}, parts(scope))], () => take(scope),
    { class: "quiet", "aria-pressed": String(same(scope, now)) });
  dialog.replaceChildren(h("div", { class: "form" }, h("h2", { id: "panel-title" }, "Whose memory?"),
    h("ul", { class: "scopes" }, scopes.map(scope => h("li", {}, choice(scope)))),
    h("details", {}, h("summary", {}, "Another one by name"), named),
    h("div", { class: "row" }, button("Close", () => dialog.close()))));
  dialog.showModal();
}
