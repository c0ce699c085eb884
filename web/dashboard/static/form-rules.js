"use strict";
// Rules of the calendar (RFC 5545): from the text to the fields of the form, and back.
const formCalendar = (() => {
  const days = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
  const working = days.slice(0, 5).join(",");
  const units = { DAILY: "days", WEEKLY: "weeks", MONTHLY: "months", YEARLY: "years" };
  // What may stand beside FREQ and INTERVAL.
  const parts = { days: [], weeks: ["BYDAY"], months: ["BYMONTHDAY", "BYDAY", "BYSETPOS"], years: ["BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"] };
  const isNth = (text) => /^([1-4]|-1)$/.test(text);

  // Which days of a month: numbers, or the nth of some kind; null for what no field shows.
  const daysOf = ({ BYMONTHDAY: dates, BYDAY: named, BYSETPOS: nth }) => {
    if (dates === undefined && named === undefined && nth === undefined) return { nth: "", dates: "" };
    if (dates !== undefined) {
      if (named !== undefined || nth !== undefined) return null;
      if (dates === "-1") return { nth: "-1", kind: "day" };
      return /^\d{1,2}(,\d{1,2})*$/.test(dates) ? { nth: "", dates: dates.replaceAll(",", ", ") } : null;
    }
    if (nth !== undefined) {
      const kind = named === working ? "working" : days.find((one) => one === named);
      return kind && isNth(nth) ? { nth, kind } : null;
    }
    const one = named.match(/^([1-4]|-1)([A-Z]{2})$/);
    return one && days.includes(one[2]) ? { nth: one[1], kind: one[2] } : null;
  };

  // The fields of a rule; null if they cannot say all of it.
  const show = (text) => {
    const pairs = text.toUpperCase().replace(/\s|^RRULE:/g, "").replace(/;$/, "").split(";").map((one) => one.split("="));
    const { FREQ, INTERVAL: interval = "1", ...rest } = Object.fromEntries(pairs);
    const unit = units[FREQ];
    if (!unit || !/^[1-9]\d{0,3}$/.test(interval) || !Object.keys(rest).every((key) => parts[unit].includes(key))) return null;
    if (unit === "weeks") {
      const weekdays = rest.BYDAY?.split(",") ?? [];
      return weekdays.every((one) => days.includes(one)) ? { unit, interval, weekdays } : null;
    }
    const month = rest.BYMONTH ?? "";
    const named = daysOf(rest);
    return named && /^([1-9]|1[0-2])?$/.test(month) ? { unit, interval, month, ...named } : null;
  };

  const daysFrom = ({ nth, kind, dates }) => {
    if (!nth) return dates ? [`BYMONTHDAY=${dates.replace(/[\s,]+/g, ",").replace(/^,|,$/g, "")}`] : [];
    if (kind === "day") return [`BYMONTHDAY=${nth}`];
    return kind === "working" ? [`BYDAY=${working}`, `BYSETPOS=${nth}`] : [`BYDAY=${nth}${kind}`];
  };

  // The rule that the fields say.
  const read = (said) => {
    const { unit, interval, weekdays, month } = said;
    const made = [`FREQ=${Object.keys(units).find((one) => units[one] === unit)}`];
    if (interval !== "1") made.push(`INTERVAL=${interval}`);
    if (unit === "weeks" && weekdays.length) made.push(`BYDAY=${weekdays.join(",")}`);
    if (unit === "years" && month) made.push(`BYMONTH=${month}`);
    if (unit === "months" || unit === "years") made.push(...daysFrom(said));
    return made.join(";");
  };

  return { show, read };
})();

// Every kind of rule: from the document to the fields of the form, and back.
const formRules = (form) => {
  const field = (name) => form.querySelector(`[name="${name}"]`);
  const valueOf = (name) => field(name).value.trim();
  const boxes = [...form.querySelectorAll("[name=weekday]")];
  const days = boxes.map((one) => one.value);
  const ticked = () => days.filter((_, at) => boxes[at].checked);
  const tick = (weekdays) => { for (const one of boxes) one.checked = weekdays.includes(one.value); };
  const code = (day) => day.slice(0, 2).toUpperCase();
  const working = days.slice(0, 5);
  const ends = [...field("ends").options].map((one) => one.value);
  const duration = formKinds.duration;
  // What a rule has beside its rhythm, and an interval beside its length.
  const kept = ["except", "jitter", "jitter_each"];
  const ofInterval = ["timezone", "starting_at", "tolerance"];
  // All that fields can show, or keep, of a rule of each kind.
  const keys = {
    every: ["from", ...kept, ...ofInterval], after: ["delay"], on: [], rrule: ["at", "timezone", "starting_at", ...kept],
    due_date: ["timezone"], cron_rule: ["timezone", ...kept],
  };
  // The fields that write a part of a rule.
  const parts = ["time", "every", "each", "since", "interval", "unit", "which", "kind", "dates", "month", "rrule", "times", "counts", "event", "delay", "action", "ends", "cron", "due"];

  // The days that a rhythm begins with.
  const begin = (rhythm) => tick({ day: days, weekdays: working }[rhythm] ?? []);

  // Every day, Monday to Friday, or some: what the ticked boxes make of it.
  const name = (rule) => {
    const { rhythm, weekdays, ...texts } = known(rule);
    const isText = ["cron", "rrule"].includes(valueOf("rhythm"));
    // The text of the rule that is chosen next is that of this one.
    for (const one of ["cron", "rrule", "times"]) if (!isText && texts[one] !== undefined) field(one).value = texts[one];
    if (weekdays?.length && ["day", "weekdays", "week"].includes(valueOf("rhythm"))) field("rhythm").value = rhythm;
  };

  // Seconds, or a duration of days, hours, minutes and seconds.
  const secondsOf = (value) => {
    if (Number.isInteger(value)) return value;
    const found = typeof value === "string" && value.match(/^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/);
    return found ? [86400, 3600, 60, 1].reduce((sum, size, at) => sum + size * Number(found[at + 1] ?? 0), 0) : 0;
  };

  const everyOf = (when) => {
    const seconds = secondsOf(when.every);
    if (!seconds || !["grid", "end"].includes(when.from ?? "grid")) return null;
    const each = [3600, 60, 1].find((size) => seconds % size === 0);
    return { rhythm: "every", every: String(seconds / each), each: String(each), counts: when.from === "end" ? "end" : "" };
  };

  // The first day, in the zone of the rule: a stored document writes the instant.
  const dayOf = ({ starting_at: at, timezone: timeZone }) => {
    if (typeof at !== "string" || !/[zZ]|[+-]\d\d:\d\d$/.test(at)) return typeof at === "string" ? at.slice(0, 10) : "";
    try { return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(new Date(at)); } catch { return at.slice(0, 10); }
  };

  // The fields of the calendar where they can say all of the rule; else its text.
  const calendarOf = (when) => {
    const text = { rhythm: "rrule", rrule: when.rrule, times: [].concat(when.at ?? []).join(", "), since: dayOf(when) };
    const said = formCalendar.show(when.rrule);
    if (!said || typeof when.at !== "string") return text;
    const { weekdays = [], nth: which, ...rest } = said;
    return { ...text, ...rest, rhythm: "calendar", weekdays: days.filter((one) => weekdays.includes(code(one))), which, time: when.at };
  };

  const ofEvents = (when) => {
    const source = when.after ?? when.on;
    const names = [].concat(source?.ends ?? "success");
    const isEnd = typeof source?.action === "string" && Object.keys(source).every((key) => ["action", "ends"].includes(key)) && names.length === 1 && ends.includes(names[0]);
    const delay = when.after && when.delay ? duration.show(when.delay) : "";
    if (isEnd) return { rhythm: "end", action: source.action, ends: names[0], delay };
    return typeof source === "string" ? { rhythm: "event", event: source, delay } : null;
  };

  // The days of `mon-fri`, `1,3` or `*`; null for what no box shows, such as `mon#2`. In a range
  // cron's Sunday is the first day, as 0 or `sun`, or the last, as 7: `0-7` is every day.
  const weekdaysOf = (text) => {
    if (text === "*") return days;
    const at = (name) => (/^[0-7]$/.test(name) ? (Number(name) + 6) % 7 : days.indexOf(name));
    const ranges = text.split(",").map((one) => one.split("-").map(at));
    if (/(sun|0)-|-(sun|0)/.test(text) || ranges.some((one) => one.length > 2 || one.includes(-1) || one[0] > one.at(-1))) return null;
    return days.filter((_, day) => ranges.some(([first, last = first]) => first <= day && day <= last));
  };
  const isBelow = (text, end) => /^\d{1,2}$/.test(text) && Number(text) < end;
  const cronOf = (cron) => {
    const text = { rhythm: "cron", cron };
    const [minute, hour, day, month, weekday, ...more] = cron.trim().toLowerCase().split(/\s+/);
    if (more.length || day !== "*" || month !== "*" || weekday === undefined) return text;
    const step = minute === "*" ? "1" : minute.match(/^\*\/(\d+)$/)?.[1];
    if (step) return hour === "*" && weekday === "*" && step < 60 && 60 % step === 0 ? { ...text, rhythm: "every", every: step, each: "60", counts: "" } : text;
    const weekdays = weekdaysOf(weekday);
    if (!weekdays || !isBelow(minute, 60) || !isBelow(hour, 24)) return text;
    const rhythm = weekdays.length === 7 ? "day" : String(weekdays) === String(working) ? "weekdays" : "week";
    return { ...text, rhythm, weekdays, time: [hour, minute].map((one) => one.padStart(2, "0")).join(":") };
  };

  // The fields of a rule; a rule that they cannot express stays as it is.
  const known = (when) => {
    const isLocal = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;
    if (when === null || typeof when !== "object" || Array.isArray(when)) return { rhythm: "own" };
    if (Object.keys(when).every((key) => key === "timezone")) return { rhythm: "" };
    const kind = Object.keys(keys).find((key) => key in when);
    if (!Object.keys(when).every((key) => key === kind || keys[kind]?.includes(key))) return { rhythm: "own" };
    let found = null;
    if ("every" in when) found = everyOf(when);
    else if ("after" in when || "on" in when) found = ofEvents(when);
    else if (typeof when.rrule === "string") found = calendarOf(when);
    else if (isLocal.test(when.due_date)) found = { rhythm: "date", due: when.due_date };
    else if (typeof when.cron_rule === "string") found = cronOf(when.cron_rule);
    return found ?? { rhythm: "own" };
  };

  // A number that does not divide an hour is an interval: a cron rule would begin anew each hour.
  // What is stored as another rule becomes no cron rule, which would forget where it begins.
  const every = (number, size, from, before) => {
    const mayBeCron = Object.keys(before ?? {}).every((key) => ["cron_rule", ...keys.cron_rule].includes(key));
    if (mayBeCron && size === 60 && !from && number < 60 && 60 % number === 0) return { cron_rule: number === 1 ? "* * * * *" : `*/${number} * * * *` };
    return { every: number * size, ...(from ? { from } : {}) };
  };
  const daily = (weekdays) => {
    const [hour, minute] = valueOf("time") ? valueOf("time").split(":").map(Number) : ["", ""];
    const on = weekdays.length === 7 ? "*" : String(weekdays) === String(working) ? "mon-fri" : weekdays.join(",");
    return { cron_rule: `${minute} ${hour} * * ${on}`.trim() };
  };
  const delay = () => (valueOf("delay") ? { delay: duration.read(valueOf("delay")) } : {});
  const event = (name) => (valueOf("delay") ? { after: name, ...delay() } : { on: name });
  const end = (ends, before) => ({ [before?.on && !valueOf("delay") ? "on" : "after"]: { action: valueOf("action"), ...(ends === "success" ? {} : { ends }) }, ...delay() });
  // The same first day stays the instant that it is.
  const begun = (rule, before) => {
    const since = valueOf("since");
    if (!since) return rule;
    return { ...rule, starting_at: before?.starting_at && dayOf(before) === since ? before.starting_at : since };
  };
  const calendar = (before) => {
    const said = Object.fromEntries(["unit", "interval", "month", "kind", "dates"].map((name) => [name, valueOf(name)]));
    const rrule = formCalendar.read({ ...said, weekdays: ticked().map(code), nth: valueOf("which") });
    return begun({ rrule, at: valueOf("time") }, before);
  };
  const ofText = (before) => {
    const times = valueOf("times").split(",").map((one) => one.trim()).filter(Boolean);
    return begun({ rrule: valueOf("rrule"), ...(times.length ? { at: times.length > 1 ? times : times[0] } : {}) }, before);
  };

  // The rule that the fields write, also while a part of it is missing: what cannot be read is
  // refused, and no earlier rule is saved in its place. Nothing if the rule is written as JSON.
  const ruleOf = (before) => {
    switch (valueOf("rhythm")) {
      case "": return {};
      case "day": case "weekdays": case "week": return daily(ticked());
      case "every": return every(Number(valueOf("every")), Number(valueOf("each")), valueOf("counts") || (before?.from === "grid" ? "grid" : ""), before);
      case "date": return { due_date: valueOf("due") };
      case "calendar": return calendar(before);
      case "cron": return { cron_rule: valueOf("cron") };
      case "rrule": return ofText(before);
      case "end": return end(valueOf("ends"), before);
      case "event": return event(valueOf("event"));
      default: return null;
    }
  };

  // A rule with what the one before, as the form showed it first, had and this one may have too.
  const written = (before) => {
    const rule = ruleOf(before);
    if (!rule) return null;
    const isInterval = "every" in rule;
    const zone = before?.timezone ?? (isInterval ? "" : valueOf("zone"));
    const isOnEvent = "on" in rule || "after" in rule;
    const mayKeep = [...(isOnEvent || rule.due_date ? [] : kept), ...(isInterval && before?.every ? ofInterval : [])];
    const left = Object.fromEntries(mayKeep.filter((key) => before?.[key] !== undefined).map((key) => [key, before[key]]));
    // The dates of `except` are those of its zone.
    const needsZone = !isOnEvent && (!isInterval || left.except !== undefined);
    return { ...rule, ...(zone && needsZone ? { timezone: zone } : {}), ...left };
  };

  return { known, parts, begin, tick, name, written };
};
