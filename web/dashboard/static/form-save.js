// Save is possible once the preview shows the document as it is, without a fault. A fault is shown
// once its field was left; until then it is something that is still to fill in.
"use strict";
const formSave = (form, text) => {
  const preview = document.getElementById("meaning");
  const saves = form.closest("form").querySelectorAll("[data-save]");
  const why = document.getElementById("why-not");
  const sections = [...form.querySelectorAll("[data-section]")];
  const sectionOf = (path) => sections.find((one) => one.dataset.section.split(" ").includes(path.split(/[.[]/)[0]));
  const left = new Set();
  // Faults that the page came with, or that a stored document has, wait for no field.
  let isAllLeft = "refused" in preview.dataset;
  const isShown = ({ dataset: { fault } }) => isAllLeft || left.has(fault) || left.has(sectionOf(fault));

  const judge = () => {
    const head = preview.querySelector("[data-document]");
    const isCurrent = head?.dataset.document === text.value;
    const faults = [...preview.querySelectorAll("[data-fault]")];
    isAllLeft ||= isCurrent && faults.length > 0 && "stored" in text.dataset && text.value === text.defaultValue;
    for (const one of faults) one.hidden = !isShown(one);
    const shown = faults.filter(isShown);
    if (faults.length) [head.hidden, preview.querySelector("[data-hint]").hidden] = [!shown.length, shown.length > 0];
    const isReady = isCurrent && !faults.length;
    for (const one of saves) one.disabled = !isReady;
    why.textContent = isReady ? "" : reason(isCurrent, faults, shown.length);
  };
  const reason = (isCurrent, faults, count) => {
    if (!isCurrent) return why.dataset.waits;
    if (count) return why.dataset.faults;
    const missing = faults.map((one) => sectionOf(one.dataset.fault));
    const names = sections.filter((one) => missing.includes(one)).map((one) => one.querySelector("legend").textContent);
    return `${why.dataset.missing} ${names.join(", ") || "JSON"}.`;
  };

  form.addEventListener("focusout", ({ target, relatedTarget }) => {
    const section = target.closest("[data-section]");
    const path = target.dataset.path ?? target.dataset.writes;
    if (path) left.add(path);
    // The name of a task is the action's too.
    if ("names" in target.dataset) left.add("name");
    if (section && !section.contains(relatedTarget)) left.add(section);
    judge();
  });
  text.addEventListener("blur", () => { isAllLeft = true; judge(); });
  text.addEventListener("input", judge);
  document.addEventListener("htmx:after:swap", judge);
  judge();
};
