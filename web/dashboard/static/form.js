// The form of an action, in step with its document: each field reads and writes a place of the JSON.
"use strict";
(() => {
  const text = document.getElementById("text");
  const form = document.getElementById("fields");
  if (!text || !form) return;
  const field = (name) => form.querySelector(`[name="${name}"]`);
  const steps = [...form.querySelectorAll("[data-step]")];
  const ends = [...field("ends").options].map((one) => one.value);
  const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
  const two = (number) => String(number).padStart(2, "0");
  const words = (value) => value.split(",").map((one) => one.trim()).filter(Boolean);

  const read = () => {
    try {
      const found = JSON.parse(text.value);
      return found && typeof found === "object" && !Array.isArray(found) ? found : null;
    } catch { return null; }
  };

  // Seconds, or a duration of days, hours, minutes and seconds.
  const secondsOf = (value) => {
    if (Number.isInteger(value)) return value;
    const parts = typeof value === "string" && value.match(/^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/);
    return parts ? [86400, 3600, 60, 1].reduce((sum, size, at) => sum + size * Number(parts[at + 1] ?? 0), 0) : 0;
  };

  // Every so many weeks, on one weekday at one time.
  const weeksOf = (when) => {
    const parts = Object.fromEntries(when.rrule.toUpperCase().split(";").map((part) => part.split("=")));
    const named = days.find((day) => day.slice(0, 2).toUpperCase() === parts.BYDAY);
    const isPlain = parts.FREQ === "WEEKLY" && Object.keys(parts).every((key) => ["FREQ", "INTERVAL", "BYDAY"].includes(key));
    if (!isPlain || !named || typeof when.at !== "string") return { rhythm: "own" };
    const since = typeof when.starting_at === "string" ? when.starting_at.slice(0, 10) : "";
    return { rhythm: "weeks", weeks: parts.INTERVAL ?? "1", weekday: named, time: when.at, since };
  };

  // What a rule has beside its rhythm.
  const kept = ["except", "jitter", "jitter_each"];

  // The rhythm of a cron rule, if the form can express it.
  const rhythmOf = (when) => {
    const seconds = secondsOf(when?.every);
    const isPlain = seconds && Object.keys(when).every((key) => ["every", "timezone", "from", ...kept].includes(key));
    const counts = when?.from === "end" ? "end" : "";
    if (isPlain && seconds % 3600 === 0) return { rhythm: "hours", hours: String(seconds / 3600), counts };
    if (isPlain && seconds % 60 === 0 && seconds < 3600) return { rhythm: "minutes", every: String(seconds / 60), counts };
    const source = when?.after ?? when?.on;
    const names = [].concat(source?.ends ?? "success");
    const isEnd = typeof source?.action === "string" && names.length === 1 && ends.includes(names[0]);
    if (isEnd) return { rhythm: "end", action: source.action, ends: names[0], delay: when.delay ?? "" };
    if (typeof when?.on === "string") return { rhythm: "event", event: when.on, delay: "" };
    if (typeof when?.after === "string") return { rhythm: "event", event: when.after, delay: when.delay ?? "" };
    if (typeof when?.rrule === "string") return weeksOf(when);
    if (typeof when?.cron_rule !== "string") return { rhythm: "own" };
    const rule = when.cron_rule.trim().toLowerCase();
    const [minute, hour, day, month, weekday, ...more] = rule.split(/\s+/);
    const step = minute?.match(/^\*\/(\d+)$/);
    if (more.length || month !== "*") return { rhythm: "own" };
    const rest = day === "*" && weekday === "*";
    if (rest && hour === "*" && (step || minute === "*")) return { rhythm: "minutes", every: step ? step[1] : "1" };
    const isBelow = (text, end) => /^\d+$/.test(text) && Number(text) < end;
    if (!isBelow(minute, 60)) return { rhythm: "own" };
    if (rest && hour === "*") return { rhythm: "hour", time: `00:${two(minute)}` };
    if (!isBelow(hour, 24)) return { rhythm: "own" };
    const time = `${two(hour)}:${two(minute)}`;
    if (rest) return { rhythm: "day", time };
    if (day === "*" && ["mon-fri", "1-5"].includes(weekday)) return { rhythm: "weekdays", time };
    const named = days.includes(weekday) ? weekday : days[Number(weekday) % 7];
    if (day === "*" && named) return { rhythm: "week", time, weekday: named };
    const nth = weekday.match(/^([a-z]{3})(?:#([1-5l])|l)$/);
    if (day === "*" && nth) return { rhythm: "nth", time, weekday: nth[1], nth: (nth[2] ?? "L").toUpperCase() };
    if (isBelow(day, 32) && weekday === "*") return { rhythm: "month", time, day };
    return { rhythm: "own" };
  };

  // A number that does not divide an hour is an interval: a cron rule would begin anew each hour.
  const counted = (rule) => (field("counts").value ? { ...rule, from: field("counts").value } : rule);
  const minutesOf = (number, counts) => {
    if (!Number.isInteger(number) || number < 1 || number > 59) return null;
    if (counts) return counted({ every: number * 60 });
    if (number === 1) return "* * * * *";
    return 60 % number ? { every: number * 60 } : `*/${number} * * * *`;
  };

  const eventOf = (event, delay) => {
    if (!event) return null;
    return delay ? { after: event, delay } : { on: event };
  };

  const endOf = (action, state, delay) => {
    if (!action) return null;
    const after = state === "success" ? { action } : { action, ends: state };
    return delay ? { after, delay } : { after };
  };

  // Fields of a place in the document: `policy.retry.max_attempts`.
  const placed = [...form.querySelectorAll("[data-path]")];
  const at = (found, path) => path.split(".").reduce((place, key) => place?.[key], found);
  const kinds = {
    text: { show: (value) => value, read: (value) => value },
    number: { show: (value) => value, read: (value) => (value === "" ? "" : Number(value)) },
    flag: { show: (value) => (value ? "true" : ""), read: (value) => (value === "true" ? true : "") },
    list: { show: (value) => [].concat(value ?? []).join(", "), read: (value) => words(value) },
    // Entries that are objects stay as they are.
    texts: {
      show: (value) => [].concat(value ?? []).filter((one) => typeof one === "string").join(", "),
      read: (value, before) => [...words(value), ...[].concat(before ?? []).filter((one) => typeof one !== "string")],
    },
    // Hooks of other kinds stay as they are.
    mail: {
      show: (value) => [].concat(value ?? []).map((one) => one?.mail).filter((one) => typeof one === "string").join(", "),
      read: (value, before) => [
        ...[].concat(before ?? []).filter((one) => typeof one?.mail !== "string"),
        ...words(value).map((mail) => ({ mail })),
      ],
    },
  };
  const isEmpty = (value) => value === "" || value === undefined || (typeof value === "object" && !Object.keys(value).length);
  const putAt = (place, [key, ...rest], value) => {
    const made = { ...place };
    made[key] = rest.length ? putAt(made[key], rest, value) : value;
    if (isEmpty(made[key])) delete made[key];
    return made;
  };

  const everyWeeks = (weeks, since) => {
    if (!Number.isInteger(weeks) || weeks < 1) return null;
    const rrule = `FREQ=WEEKLY;INTERVAL=${weeks};BYDAY=${field("weekday").value.slice(0, 2).toUpperCase()}`;
    const zone = read()?.when?.timezone ?? field("zone").value;
    return { rrule, at: field("time").value || "07:00", ...(zone ? { timezone: zone } : {}), ...(since ? { starting_at: since } : {}) };
  };

  const ruleOf = () => {
    const [hour, minute] = (field("time").value || "07:00").split(":").map(Number);
    switch (field("rhythm").value) {
      case "hours": return Number(field("hours").value) > 0 ? counted({ every: Number(field("hours").value) * 3600 }) : null;
      case "event": return eventOf(field("event").value.trim(), field("delay").value.trim());
      case "end": return endOf(field("action").value.trim(), field("ends").value, field("delay").value.trim());
      case "minutes": return minutesOf(Number(field("every").value), field("counts").value);
      case "hour": return `${minute} * * * *`;
      case "day": return `${minute} ${hour} * * *`;
      case "weekdays": return `${minute} ${hour} * * mon-fri`;
      case "week": return `${minute} ${hour} * * ${field("weekday").value}`;
      case "nth": return `${minute} ${hour} * * ${field("weekday").value}#${field("nth").value}`;
      case "weeks": return everyWeeks(Number(field("weeks").value), field("since").value);
      case "month": return `${minute} ${hour} ${field("day").value} * *`;
      default: return null;
    }
  };

  const show = (found) => {
    form.hidden = found === null;
    if (!found) return;
    const set = (name, value) => { if (field(name) !== document.activeElement) field(name).value = value ?? ""; };
    set("name", found.name);
    set("owner", found.owner);
    const known = rhythmOf(found.when);
    // While a person types a part of the rule, an unfinished part does not change the rhythm.
    const isWriting = ["time", "every", "hours", "weekday", "day", "nth", "weeks", "since", "counts", "event", "delay", "action", "ends"].includes(document.activeElement?.name);
    if (!isWriting) set("rhythm", known.rhythm);
    if (known.time) set("time", known.time);
    if (known.every) set("every", known.every);
    if (known.hours) set("hours", known.hours);
    set("counts", known.counts);
    if (known.event !== undefined) { set("event", known.event); set("delay", known.delay); }
    if (known.action !== undefined) { set("action", known.action); set("ends", known.ends); set("delay", known.delay); }
    if (known.weekday) set("weekday", known.weekday);
    if (known.day) set("day", known.day);
    if (known.nth) set("nth", known.nth);
    if (known.weeks) { set("weeks", known.weeks); set("since", known.since); }
    set("zone", found.when?.timezone);
    const operations = found.operations && typeof found.operations === "object" ? found.operations : {};
    for (const one of steps) one.checked = one.dataset.step in operations && operations[one.dataset.step] !== false;
    set("groups", [].concat(found.recipients?.groups ?? []).join(", "));
    set("users", [].concat(found.recipients?.users ?? []).join(", "));
    for (const one of placed) {
      if (one !== document.activeElement) one.value = kinds[one.dataset.kind ?? "text"].show(at(found, one.dataset.path)) ?? "";
    }
    shape();
  };

  // Only the fields that the rhythm needs.
  const shape = () => {
    const rhythm = field("rhythm").value;
    for (const one of form.querySelectorAll("[data-for]")) one.hidden = !one.dataset.for.split(" ").includes(rhythm);
  };

  const write = (changed) => {
    const found = read();
    if (!found) return;
    const put = (place, key, value) => { if (value === "" || value === undefined) delete place[key]; else place[key] = value; };
    if (changed.dataset.path) {
      const path = changed.dataset.path.split(".");
      const value = kinds[changed.dataset.kind ?? "text"].read(changed.value.trim(), at(found, changed.dataset.path));
      Object.assign(found, putAt(found, path, value));
      if (!putAt(found, path, value)[path[0]]) delete found[path[0]];
    } else if (changed.name === "name") found.name = changed.value;
    else if (changed.name === "owner") put(found, "owner", changed.value);
    else if (changed.dataset.step) {
      found.operations = { ...found.operations };
      const { step, template, example } = changed.dataset;
      if (changed.checked) found.operations[step] = template ? { template } : JSON.parse(example);
      else delete found.operations[changed.dataset.step];
    } else if (changed.name === "groups" || changed.name === "users") {
      found.recipients = { ...found.recipients };
      const named = words(changed.value);
      put(found.recipients, changed.name, named.length ? named : undefined);
      if (!Object.keys(found.recipients).length) delete found.recipients;
    } else if (changed.name === "zone") {
      found.when = { ...found.when };
      put(found.when, "timezone", changed.value);
    } else {
      shape();
      const rule = ruleOf();
      if (rule === null) return;
      const zone = found.when?.timezone ?? field("zone").value;
      // They stay when the rhythm changes; single instants and events have none.
      const isOfClock = typeof rule === "string" || rule.every || rule.rrule;
      const left = Object.fromEntries(kept.filter((key) => isOfClock && found.when?.[key]).map((key) => [key, found.when[key]]));
      found.when = typeof rule === "string" ? { cron_rule: rule, ...(zone ? { timezone: zone } : {}), ...left } : { ...rule, ...left };
    }
    text.value = JSON.stringify(found, null, 2);
    text.dispatchEvent(new Event("input", { bubbles: true }));
  };

  form.closest("[hidden]")?.removeAttribute("hidden");
  form.addEventListener("input", (event) => { event.stopPropagation(); write(event.target); });
  text.addEventListener("input", () => show(read()));
  show(read());
})();
