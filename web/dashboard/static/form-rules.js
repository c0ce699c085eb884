// Rules of the clock and of events: from the document to the fields of the form, and back.
"use strict";
const formRules = (form) => {
  const field = (name) => form.querySelector(`[name="${name}"]`);
  const valueOf = (name) => field(name).value.trim();
  const boxes = [...form.querySelectorAll("[name=byday]")];
  const ticked = () => boxes.filter((one) => one.checked).map((one) => one.value);
  const ends = [...field("ends").options].map((one) => one.value);
  const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
  const two = (number) => String(number).padStart(2, "0");
  const duration = formKinds.duration;
  // What a rule has beside its rhythm, and an interval beside its length.
  const kept = ["except", "jitter", "jitter_each"];
  const ofInterval = ["timezone", "starting_at", "tolerance"];
  // The fields that write a part of a rule.
  const parts = ["time", "every", "hours", "span", "weekday", "day", "nth", "since", "interval", "unit", "byday", "which", "kind", "dates", "month", "stop", "count", "until", "rrule", "times", "counts", "event", "delay", "action", "ends", "cron", "due"];

  // Seconds, or a duration of days, hours, minutes and seconds.
  const secondsOf = (value) => {
    if (Number.isInteger(value)) return value;
    const found = typeof value === "string" && value.match(/^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/);
    return found ? [86400, 3600, 60, 1].reduce((sum, size, at) => sum + size * Number(found[at + 1] ?? 0), 0) : 0;
  };

  const everyOf = (when) => {
    const seconds = secondsOf(when.every);
    const isKnown = Object.keys(when).every((key) => ["every", "from", ...kept, ...ofInterval].includes(key));
    if (!seconds || !isKnown) return null;
    const counts = when.from === "end" ? "end" : "";
    if (seconds % 3600 === 0) return { rhythm: "hours", hours: String(seconds / 3600), counts };
    if (seconds % 60 === 0 && seconds < 3600) return { rhythm: "minutes", every: String(seconds / 60), counts };
    return { rhythm: "interval", span: duration.show(when.every), counts };
  };

  // The first day, in the zone of the rule: a stored document writes the instant.
  const dayOf = ({ starting_at: at, timezone: timeZone }) => {
    if (typeof at !== "string" || !/[zZ]|[+-]\d\d:\d\d$/.test(at)) return typeof at === "string" ? at.slice(0, 10) : "";
    try { return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(new Date(at)); } catch { return at.slice(0, 10); }
  };

  // The fields of the calendar where they can say all of the rule; else its text.
  const calendarOf = (when) => {
    const since = dayOf(when);
    const isKnown = Object.keys(when).every((key) => ["rrule", "at", "timezone", "starting_at", ...kept].includes(key));
    const text = { rhythm: "rrule", rrule: when.rrule, times: [].concat(when.at ?? []).join(", "), since, isBeyond: true };
    const said = formCalendar.show(when.rrule);
    if (!isKnown || !said || typeof when.at !== "string") return text;
    const { unit, interval, weekdays = [], month, nth: which, kind, dates, end: stop, count, until } = said;
    return { ...text, rhythm: "calendar", unit, interval, byday: weekdays, month, which, kind, dates, stop, count, until, time: when.at, isBeyond: false };
  };

  const ofEvents = (when) => {
    const source = when.after ?? when.on;
    const names = [].concat(source?.ends ?? "success");
    const isEnd = typeof source?.action === "string" && names.length === 1 && ends.includes(names[0]);
    const delay = when.after && when.delay ? duration.show(when.delay) : "";
    if (isEnd) return { rhythm: "end", action: source.action, ends: names[0], delay };
    return typeof source === "string" ? { rhythm: "event", event: source, delay } : null;
  };

  const cronOf = (written) => {
    const cron = { rhythm: "cron", cron: written };
    const [minute, hour, day, month, weekday, ...more] = written.trim().toLowerCase().split(/\s+/);
    const step = minute?.match(/^\*\/(\d+)$/);
    if (more.length || month !== "*" || weekday === undefined) return cron;
    const rest = day === "*" && weekday === "*";
    if (rest && hour === "*" && (step || minute === "*")) return { rhythm: "minutes", every: step ? step[1] : "1", cron: written };
    const isBelow = (text, end) => /^\d+$/.test(text) && Number(text) < end;
    if (!isBelow(minute, 60)) return cron;
    if (rest && hour === "*") return { ...cron, rhythm: "hour", time: `00:${two(minute)}` };
    if (!isBelow(hour, 24)) return cron;
    const timed = { ...cron, time: `${two(hour)}:${two(minute)}` };
    if (rest) return { ...timed, rhythm: "day" };
    if (day === "*" && ["mon-fri", "1-5"].includes(weekday)) return { ...timed, rhythm: "weekdays" };
    const named = days.includes(weekday) ? weekday : days[Number(weekday) % 7];
    if (day === "*" && named) return { ...timed, rhythm: "week", weekday: named };
    const nth = weekday.match(/^([a-z]{3})(?:#([1-5l])|l)$/);
    if (day === "*" && nth) return { ...timed, rhythm: "nth", weekday: nth[1], nth: (nth[2] ?? "L").toUpperCase() };
    if (isBelow(day, 32) && weekday === "*") return { ...timed, rhythm: "month", day };
    return cron;
  };

  // The fields of a rule; a rule that they cannot express stays as it is.
  const known = (when) => {
    const isLocal = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;
    if (when === null || typeof when !== "object" || Array.isArray(when)) return { rhythm: "own" };
    if (Object.keys(when).every((key) => key === "timezone")) return { rhythm: "" };
    let found = null;
    if ("every" in when) found = everyOf(when);
    else if ("after" in when || "on" in when) found = ofEvents(when);
    else if (typeof when.rrule === "string") found = calendarOf(when);
    else if (isLocal.test(when.due_date)) found = { rhythm: "date", due: when.due_date };
    else if (typeof when.cron_rule === "string") found = cronOf(when.cron_rule);
    return found ?? { rhythm: "own" };
  };

  const counted = (rule) => (valueOf("counts") ? { ...rule, from: valueOf("counts") } : rule);
  const isCount = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
  // A number that does not divide an hour is an interval: a cron rule would begin anew each hour.
  const minutes = (number) => {
    if (valueOf("counts") || !isCount(number, 59) || 60 % number) return counted({ every: number * 60 });
    return { cron_rule: number === 1 ? "* * * * *" : `*/${number} * * * *` };
  };
  const delayed = (source) => (valueOf("delay") ? { after: source, delay: duration.read(valueOf("delay")) } : null);
  const event = (name) => delayed(name) ?? { on: name };
  const end = (action) => {
    const after = valueOf("ends") === "success" ? { action } : { action, ends: valueOf("ends") };
    return delayed(after) ?? { after };
  };
  // The same first day stays the instant that it is.
  const begun = (rule, before) => {
    const since = valueOf("since");
    if (!since) return rule;
    return { ...rule, starting_at: before?.starting_at && dayOf(before) === since ? before.starting_at : since };
  };
  const calendar = (before) => {
    const said = { weekdays: ticked(), month: valueOf("month"), nth: valueOf("which"), kind: valueOf("kind"), dates: valueOf("dates"), end: valueOf("stop") };
    const rrule = formCalendar.read({ ...said, unit: valueOf("unit"), interval: valueOf("interval"), count: valueOf("count"), until: valueOf("until") });
    return begun({ rrule, at: valueOf("time") }, before);
  };
  const ofText = (before) => {
    const times = valueOf("times").split(",").map((one) => one.trim()).filter(Boolean);
    return begun({ rrule: valueOf("rrule"), ...(times.length ? { at: times.length > 1 ? times : times[0] } : {}) }, before);
  };

  // The rule that the fields write, also while a part of it is missing: what cannot be read is
  // refused, and no earlier rule is saved in its place. Nothing if the rule is written as JSON.
  const ruleOf = (before) => {
    const [hour, minute] = valueOf("time") ? valueOf("time").split(":").map(Number) : ["", ""];
    const cron = (rule) => ({ cron_rule: `${minute} ${hour} ${rule}`.trim() });
    switch (valueOf("rhythm")) {
      case "minutes": return minutes(Number(valueOf("every")));
      case "": return {};
      case "hours": return counted({ every: Number(valueOf("hours")) * 3600 });
      case "interval": return counted({ every: duration.read(valueOf("span")) });
      case "event": return event(valueOf("event"));
      case "end": return end(valueOf("action"));
      case "date": return { due_date: valueOf("due") };
      case "cron": return { cron_rule: valueOf("cron") };
      case "hour": return { cron_rule: `${minute} * * * *`.trim() };
      case "day": return cron("* * *");
      case "weekdays": return cron("* * mon-fri");
      case "week": return cron(`* * ${valueOf("weekday")}`);
      case "nth": return cron(`* * ${valueOf("weekday")}#${valueOf("nth")}`);
      case "calendar": return calendar(before);
      case "rrule": return ofText(before);
      case "month": return cron(`${valueOf("day")} * *`);
      default: return null;
    }
  };

  // A rule with what the one before had, and this one may have too.
  const dressed = (rule, before) => {
    const zone = before?.timezone ?? valueOf("zone");
    const isOnEvent = "on" in rule || "after" in rule;
    const mayKeep = [...(isOnEvent || rule.due_date ? [] : kept), ...(rule.every && before?.every ? ofInterval : [])];
    const left = Object.fromEntries(mayKeep.filter((key) => before?.[key] !== undefined).map((key) => [key, before[key]]));
    return { ...rule, ...(zone && !isOnEvent && !rule.every ? { timezone: zone } : {}), ...left };
  };
  const written = (before) => {
    const rule = ruleOf(before);
    return rule ? dressed(rule, before) : null;
  };
  const tick = (weekdays) => { for (const one of boxes) one.checked = weekdays.includes(one.value); };

  return { known, parts, tick, written };
};
