// The form of an action, in step with its document: each field reads and writes a place of the JSON.
"use strict";
(() => {
  const text = document.getElementById("text");
  const form = document.getElementById("fields");
  if (!text || !form) return;
  const field = (name) => form.querySelector(`[name="${name}"]`);
  const steps = [...form.querySelectorAll("[data-step]")];
  const placed = [...form.querySelectorAll("[data-path]")];
  const rules = formRules(form);
  const hooks = formHooks(form);
  const task = formTask(form);
  const json = document.getElementById("as-json");
  const kindOf = (one) => formKinds[one.dataset.kind ?? "text"];

  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const read = () => {
    try {
      const found = readJSON(text.value);
      return isObject(found) ? found : null;
    } catch { return null; }
  };

  // Fields of a place in the document: `policy.retry.max_attempts`.
  const at = (found, path) => path.split(".").reduce((place, key) => place?.[key], found);
  const isEmpty = (value) => value === "" || value === undefined || (typeof value === "object" && value !== null && !Object.keys(value).length);
  const putAt = (place, [key, ...rest], value) => {
    const made = isObject(place) ? { ...place } : {};
    made[key] = rest.length ? putAt(made[key], rest, value) : value;
    // A step without parameters is a step.
    if (isEmpty(made[key]) && !(key in stepsByName && rest.length)) delete made[key];
    return made;
  };
  const stepsByName = Object.fromEntries(steps.map((one) => [one.dataset.step, one]));

  // What the fields wrote stays in them, also while it is no rule yet.
  let wrote = null;
  // The rule that the fields did not write, with what they changed beside its rhythm.
  let before = {};
  const showRule = (when) => {
    if (JSON.stringify(when) === wrote) return;
    before = isObject(when) ? { ...when } : {};
    const known = rules.known(when);
    if (known.weekdays) rules.tick(known.weekdays);
    for (const name of ["rhythm", ...rules.parts]) if (known[name] !== undefined) field(name).value = known[name];
    // A rule that needs no zone keeps the field: the next one may.
    if (when?.timezone !== undefined) field("zone").value = when.timezone;
  };

  const show = (found) => {
    form.hidden = found === null;
    if (!found) { json.open = true; return; }
    showRule(found.when);
    const operations = isObject(found.operations) ? found.operations : {};
    for (const one of steps) {
      one.checked = one.dataset.step in operations && operations[one.dataset.step] !== false;
      if (one.checked) one.closest("details")?.setAttribute("open", "");
    }
    for (const one of placed) {
      if (one !== document.activeElement) one.value = kindOf(one).show(at(found, one.dataset.path)) ?? "";
    }
    hooks.show(found);
    task.show(found);
    shape(found);
  };

  // Only the fields that the rhythm and the steps need.
  const shape = (found) => {
    const rhythm = field("rhythm").value;
    const isFor = ({ dataset }) => dataset.for?.split(" ").includes(rhythm);
    const isIf = ({ dataset }) => {
      const [name, ...values] = dataset.if?.split(" ") ?? [];
      return name && rhythm === "calendar" && values.includes(field(name).value || "none");
    };
    for (const one of form.querySelectorAll("[data-for], [data-if]")) one.hidden = !isFor(one) && !isIf(one);
    // Of a list, each rule has its own.
    if (Array.isArray(found?.when)) field("zone").closest("label").hidden = true;
    for (const one of form.querySelectorAll("[data-of-step]")) one.hidden = !stepsByName[one.dataset.ofStep].checked;
    const sends = steps.some((one) => one.checked && "sends" in one.dataset) || rhythm === "event";
    form.querySelector("[data-whom]").hidden = !sends && isEmpty(found?.recipients);
  };

  const choose = (found, { dataset, checked }) => {
    const { step, example } = dataset;
    const operations = isObject(found.operations) ? { ...found.operations } : {};
    // Some steps must be the only one.
    const others = steps.filter((one) => one.dataset.step !== step && ("alone" in dataset || "alone" in one.dataset));
    if (checked) for (const one of others) delete operations[one.dataset.step];
    if (checked) operations[step] = readJSON(example);
    else delete operations[step];
    found.operations = operations;
  };

  // An action that has no name yet is named after its task: `shop.tasks.close_day` is "close day".
  let suggested = "";
  const suggest = (found, { dataset, value }) => {
    if (!("names" in dataset) || (found.name && found.name !== suggested)) return;
    suggested = value.trim().split(/[./]/).pop().replaceAll("_", " ");
    found.name = suggested;
  };

  const write = (changed) => {
    const found = read();
    if (!found) return;
    if (changed.dataset.path) {
      const path = changed.dataset.path.split(".");
      const made = putAt(found, path, kindOf(changed).read(changed.value.trim(), at(found, changed.dataset.path)));
      if (path[0] in made) found[path[0]] = made[path[0]];
      else delete found[path[0]];
      if (path[0] === "when") before[path[1]] = found.when?.[path[1]];
      if (path[0] === "name") found.name = changed.value;
      suggest(found, changed);
    } else if (changed.dataset.argument) task.write(found, changed);
    else if (changed.dataset.step) choose(found, changed);
    else if (hooks.list.contains(changed)) {
      found.hooks = hooks.written(found);
      if (isEmpty(found.hooks)) delete found.hooks;
    } else if (changed.name === "zone") {
      found.when = { ...found.when, timezone: changed.value };
      if (!changed.value) delete found.when.timezone;
      before.timezone = found.when.timezone;
    } else {
      if (changed.name === "rhythm") rules.begin(changed.value);
      shape(found);
      const rule = rules.written(before);
      if (!rule) return;
      found.when = rule;
      rules.name(rule);
    }
    put(found);
  };
  const put = (found) => {
    wrote = JSON.stringify(found.when);
    text.value = JSON.stringify(found, null, 2);
    text.dispatchEvent(new Event("input", { bubbles: true }));
  };

  form.closest("[hidden]")?.removeAttribute("hidden");
  form.addEventListener("input", (event) => { event.stopPropagation(); write(event.target); });
  text.addEventListener("input", () => show(read()));
  json.open = read() === null;
  show(read());
  formSave(form, text);
})();
