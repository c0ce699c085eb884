"use strict";
// The hooks of an action as rows: when, by what, to whom. The last row is empty, for one more.
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
    hooksOf(found).filter(({ hook }) => kindOf(hook)).forEach(add);
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
    const others = hooksOf(found).filter(({ hook }) => !kindOf(hook));
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

// The arguments of a task as fields, where a worker reports its parameters: `city`, `limit=5`.
const formTask = (form) => {
  const box = form.querySelector("[data-parameters]");
  const blank = box.querySelector("template");
  const given = ["args", "kwargs"].map((one) => form.querySelector(`[data-path="operations.celery_task.${one}"]`));
  const { show: shown, read } = formKinds.value;
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  // The parameters of a task, each with its place among the arguments without a name, or without one.
  const parametersOf = ({ task }) => {
    const option = [...form.querySelectorAll("#tasks option")].find((one) => one.value === task);
    const texts = option?.dataset.takes ? JSON.parse(option.dataset.takes) : [];
    const marks = ["/", "*"];
    const star = texts.findIndex((one) => one.startsWith("*"));
    // A parameter that has no name for callers is written among the arguments.
    if (texts.includes("/")) return [];
    return texts.filter((one) => !marks.includes(one) && !one.startsWith("*")).map((one) => {
      const [name, ...rest] = one.split("=");
      const place = texts.indexOf(one);
      return { name, place: star < 0 || place < star ? place : undefined, byDefault: rest.length ? rest.join("=") : null };
    });
  };
  const ofStep = (found) => found?.operations?.celery_task;
  // What fields cannot show is left to the arguments as a whole.
  const isCovered = ({ args = [], kwargs = {} }, parameters) => Array.isArray(args) && isObject(kwargs)
    && ![...args, ...Object.values(kwargs)].some((one) => one instanceof NumberAsWritten)
    && args.length <= parameters.filter(({ place }) => place !== undefined).length
    && Object.keys(kwargs).every((name) => parameters.some((one) => one.name === name && !(one.place < args.length)));

  const draw = (parameters) => {
    box.querySelectorAll("label").forEach((one) => one.remove());
    for (const { name, place, byDefault } of parameters) {
      const label = blank.content.firstElementChild.cloneNode(true);
      const input = label.querySelector("input");
      label.querySelector("span").textContent = name;
      input.placeholder = byDefault ?? input.dataset.required;
      Object.assign(input.dataset, { argument: name, ...(place === undefined ? {} : { place }) });
      box.append(label);
    }
  };

  const show = (found) => {
    const task = ofStep(found);
    const parameters = isObject(task) ? parametersOf(task) : [];
    const fits = parameters.length > 0 && isCovered(task, parameters);
    if (!box.contains(document.activeElement)) draw(parameters);
    box.hidden = !fits;
    for (const one of given) one.closest("label").hidden = fits;
    for (const one of box.querySelectorAll("input")) {
      const { argument, place } = one.dataset;
      const value = task.args?.length > place ? task.args[place] : task.kwargs?.[argument];
      if (one !== document.activeElement) one.value = value === undefined ? "" : shown(value);
    }
  };

  // The fields write every argument with its name.
  const write = (found, { dataset: { argument }, value }) => {
    const { args = [], kwargs = {}, ...task } = ofStep(found);
    const placed = parametersOf(task).filter(({ place }) => place < args.length).map(({ name, place }) => [name, args[place]]);
    const named = { ...Object.fromEntries(placed), ...kwargs, [argument]: read(value.trim()) };
    if (!value.trim()) delete named[argument];
    found.operations.celery_task = { ...task, ...(Object.keys(named).length ? { kwargs: named } : {}) };
  };

  return { show, write };
};
