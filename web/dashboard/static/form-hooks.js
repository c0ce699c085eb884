// The hooks of an action as rows: when, by what, to whom. The last row is empty, for one more.
"use strict";
const formHooks = (form) => {
  const list = form.querySelector("[data-hooks]");
  const blank = list.querySelector("template");
  const options = (name) => [...blank.content.querySelector(`[data-hook="${name}"]`).options].map((one) => one.value);
  const kinds = options("kind");
  const moments = [...new Set(options("on").map((one) => one.split(":")[0]))];
  const part = (row, name) => row.querySelector(`[data-hook="${name}"]`);
  const kindOf = (hook) => kinds.find((kind) => typeof hook?.[kind] === "string");

  // A hook of a kind that rows cannot show stays in the document, at its place.
  const hooksOf = (found) => moments.flatMap((on) => [].concat(found?.hooks?.[on] ?? []).map((hook) => ({ on, hook })));
  const isShown = ({ hook }) => kindOf(hook) !== undefined;

  const add = ({ on, hook } = {}) => {
    const row = blank.content.firstElementChild.cloneNode(true);
    const kind = kindOf(hook);
    row.hook = hook;
    if (kind) {
      part(row, "on").value = options("on").includes(`${on}:${hook.when}`) ? `${on}:${hook.when}` : on;
      part(row, "kind").value = kind;
      part(row, "to").value = hook[kind];
    }
    list.append(row);
    place(row);
  };
  const place = (row) => {
    const kind = part(row, "kind").selectedOptions[0].dataset;
    part(row, "to").placeholder = kind.like;
    part(row, "to").setAttribute("list", kind.list);
  };
  const rows = () => [...list.querySelectorAll(".hook")];

  const show = (found) => {
    if (list.contains(document.activeElement)) return;
    rows().forEach((row) => row.remove());
    hooksOf(found).filter(isShown).forEach(add);
    add();
  };

  const hookIn = (row) => {
    const [on, when] = part(row, "on").value.split(":");
    const kind = part(row, "kind").value;
    const rest = Object.fromEntries(Object.entries(row.hook ?? {}).filter(([key]) => ![...kinds, "when"].includes(key)));
    return { on, hook: { [kind]: part(row, "to").value.trim(), ...rest, ...(when ? { when } : {}) } };
  };
  const written = (found) => {
    rows().forEach(place);
    if (rows().every((row) => part(row, "to").value)) add();
    const others = hooksOf(found).filter((one) => !isShown(one));
    const mine = rows().filter((row) => part(row, "to").value.trim()).map(hookIn);
    const hooks = { ...found.hooks };
    for (const on of moments) {
      const those = [...others, ...mine].filter((one) => one.on === on).map((one) => one.hook);
      // An empty list of the document may mean that nobody hears of it.
      if (those.length) hooks[on] = those;
      else if (hooks[on]?.length !== 0) delete hooks[on];
    }
    return hooks;
  };

  return { list, show, written };
};
