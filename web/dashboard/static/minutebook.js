// Keys, the viewer's zone, and small conveniences. Every page works without this file.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.cookie.split("; ").some((one) => one.startsWith("mb_zone="));
  if (zone && !known) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `mb_zone=${zone}; path=${root}/; max-age=31536000; samesite=lax${secure}`;
    // A browser that keeps no cookies would reload for ever.
    if (zone !== "UTC" && document.cookie.includes("mb_zone=") && document.querySelector("time")) location.reload();
  }

  // Keys: `g a` and the like go to a page, `?` lists them, `j` and `k` move.
  const pages = { o: "/", a: "/actions", r: "/operations", s: "/apps", h: "/health" };
  const help = document.getElementById("keys");
  let went = 0;
  // The keys work over the help that lists them too: a browser takes a moment to close it.
  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");
  const move = (by) => {
    help?.close();
    const rows = [...document.querySelectorAll("[data-row] a.name")];
    const at = rows.indexOf(document.activeElement);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (next) next.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && event.target.matches("input[type=search]")) move(1);
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const isGoing = event.timeStamp - went < 1500;
    went = 0;
    if (isGoing && pages[event.key]) location.href = root + pages[event.key];
    else if (event.key === "g") went = event.timeStamp;
    else if (event.key === "?" && help) help.showModal();
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
  });

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (target.closest("[data-keys]") && help) help.showModal();
    const copied = target.closest("[data-copy]");
    if (copied) {
      const source = document.getElementById(copied.dataset.copy);
      const done = () => { copied.textContent = copied.dataset.done; };
      // A page over plain HTTP has no clipboard, but a selection that can be copied.
      getSelection().selectAllChildren(source);
      if (navigator.clipboard) navigator.clipboard.writeText(source.textContent).then(done);
      else if (document.execCommand("copy")) done();
    }
  });

  // A change that cannot be undone names what it changes, and asks.
  document.addEventListener("submit", (event) => {
    const asks = event.submitter?.dataset.asks;
    // Of all that match the server asks.
    if (asks && !event.target.elements.all?.checked) {
      const names = [...document.querySelectorAll("input[data-pick]:checked")].map((one) => one.dataset.name);
      const more = names.length > 20 ? [event.submitter.dataset.more.replace("{count}", names.length - 20)] : [];
      if (!window.confirm([asks, ...names.slice(0, 20), ...more].join("\n"))) event.preventDefault();
      // Without scripts the server asks.
      else event.target.insertAdjacentHTML("beforeend", '<input type="hidden" name="sure" value="1">');
    }
  });

  // Keep relative times up to date, and show the run that the page announced.
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const relative = (seconds) => {
    const [unit, size] = units.find(([, one]) => Math.abs(seconds) >= one) ?? units[3];
    const span = `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
    return (seconds >= 0 ? document.body.dataset.in : document.body.dataset.ago).replace("{span}", span);
  };
  const loaded = Date.now();
  const isBusy = () => document.querySelector("form[data-guard], dialog[open], input:focus, input[data-pick]:checked");
  setInterval(() => {
    if (document.hidden) return;
    const now = Date.now();
    for (const one of document.querySelectorAll("time[datetime]")) {
      const shown = one.querySelector(".rel");
      const text = relative((Date.parse(one.dateTime) - now) / 1000);
      if (shown && shown.textContent !== text) shown.textContent = text;
    }
    const due = document.querySelector("[data-due] time");
    const at = due ? Date.parse(due.dateTime) : Infinity;
    if (at > loaded && now > at + 3000 && !isBusy()) location.reload();
  }, 1000);

  // The selected rows, and changes that are not stored.
  const count = () => {
    const bar = document.querySelector(".chosen");
    if (!bar) return;
    bar.querySelector("[data-count]").textContent = document.querySelectorAll("input[data-pick]:checked").length;
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) {
      document.querySelectorAll("input[data-pick]").forEach((one) => { one.checked = event.target.checked; });
    }
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
    count();
  });
  count();
  // A chart that is wider than the screen begins at the present, and stays where it is moved to.
  const begun = new WeakSet();
  const scrollToNow = () => document.querySelectorAll(".scroll:has(svg)").forEach((box) => {
    if (begun.has(box)) return;
    begun.add(box);
    const now = box.querySelector(".now");
    const spare = box.scrollWidth - box.clientWidth;
    if (spare > 0) box.scrollLeft = now ? spare * parseFloat(now.getAttribute("x1")) / 100 : spare;
  });
  scrollToNow();
  document.addEventListener("htmx:after:swap", scrollToNow);

  let dirty = false;
  document.addEventListener("input", (event) => { dirty ||= Boolean(event.target.closest("form[data-guard]")); });
  document.addEventListener("submit", (event) => { if (event.target.matches("form[data-guard]")) dirty = false; });
  window.addEventListener("beforeunload", (event) => { if (dirty) event.preventDefault(); });
})();
