// Rules of the clock and of events: from the document to the fields of the form, and back.
"use strict";
const formRules = (form) => {
  const field = (name) => form.querySelector(`[name="${name}"]`);
  const valueOf = (name) => field(name).value.trim();
  const ends = [...field("ends").options].map((one) => one.value);
  const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
  const two = (number) => String(number).padStart(2, "0");
  const duration = formKinds.duration;
  // What a rule has beside its rhythm, and an interval beside its length.
  const kept = ["except", "jitter", "jitter_each"];
  const ofInterval = ["timezone", "starting_at", "skip_first", "tolerance"];
  // The fields that write a part of a rule.
  const parts = ["time", "every", "hours", "span", "weekday", "day", "nth", "weeks", "since", "counts", "event", "delay", "action", "ends", "cron", "due"];

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

  // Every so many weeks, on one weekday at one time.
  const weeksOf = (when) => {
    const found = Object.fromEntries(when.rrule.toUpperCase().split(";").map((part) => part.split("=")));
    const named = days.find((day) => day.slice(0, 2).toUpperCase() === found.BYDAY);
    const isPlain = found.FREQ === "WEEKLY" && Object.keys(found).every((key) => ["FREQ", "INTERVAL", "BYDAY"].includes(key));
    if (!isPlain || !named || typeof when.at !== "string") return null;
    const since = typeof when.starting_at === "string" ? when.starting_at.slice(0, 10) : "";
    return { rhythm: "weeks", weeks: found.INTERVAL ?? "1", weekday: named, time: when.at, since };
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
    let found = null;
    if ("every" in when) found = everyOf(when);
    else if ("after" in when || "on" in when) found = ofEvents(when);
    else if (typeof when.rrule === "string") found = weeksOf(when);
    else if (isLocal.test(when.due_date)) found = { rhythm: "date", due: when.due_date };
    else if (typeof when.cron_rule === "string") found = cronOf(when.cron_rule);
    return found ?? { rhythm: "own" };
  };

  const counted = (rule) => (valueOf("counts") ? { ...rule, from: valueOf("counts") } : rule);
  const isCount = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
  // A number that does not divide an hour is an interval: a cron rule would begin anew each hour.
  const minutes = (number) => {
    if (!isCount(number, 59)) return null;
    if (valueOf("counts") || 60 % number) return counted({ every: number * 60 });
    return { cron_rule: number === 1 ? "* * * * *" : `*/${number} * * * *` };
  };
  const delayed = (source) => (valueOf("delay") ? { after: source, delay: duration.read(valueOf("delay")) } : null);
  const event = (name) => name && (delayed(name) ?? { on: name });
  const end = (action) => {
    const after = valueOf("ends") === "success" ? { action } : { action, ends: valueOf("ends") };
    return action && (delayed(after) ?? { after });
  };
  const weeks = (number) => {
    if (!isCount(number, 999)) return null;
    const rrule = `FREQ=WEEKLY;INTERVAL=${number};BYDAY=${valueOf("weekday").slice(0, 2).toUpperCase()}`;
    const since = valueOf("since");
    return { rrule, at: valueOf("time") || "07:00", ...(since ? { starting_at: since } : {}) };
  };

  // The rule that the fields write; nothing while a part of it is missing.
  const ruleOf = () => {
    const [hour, minute] = (valueOf("time") || "07:00").split(":").map(Number);
    const cron = (rule) => ({ cron_rule: `${minute} ${hour} ${rule}` });
    switch (valueOf("rhythm")) {
      case "minutes": return minutes(Number(valueOf("every")));
      case "hours": return isCount(Number(valueOf("hours")), 8784) ? counted({ every: Number(valueOf("hours")) * 3600 }) : null;
      case "interval": return valueOf("span") && counted({ every: duration.read(valueOf("span")) });
      case "event": return event(valueOf("event"));
      case "end": return end(valueOf("action"));
      case "date": return valueOf("due") && { due_date: valueOf("due") };
      case "cron": return valueOf("cron") && { cron_rule: valueOf("cron") };
      case "hour": return { cron_rule: `${minute} * * * *` };
      case "day": return cron("* * *");
      case "weekdays": return cron("* * mon-fri");
      case "week": return cron(`* * ${valueOf("weekday")}`);
      case "nth": return cron(`* * ${valueOf("weekday")}#${valueOf("nth")}`);
      case "weeks": return weeks(Number(valueOf("weeks")));
      case "month": return cron(`${valueOf("day")} * *`);
      default: return null;
    }
  };

  // With what the rule before had, and this one may have too.
  const written = (before) => {
    const rule = ruleOf();
    if (!rule) return null;
    const zone = before?.timezone ?? valueOf("zone");
    const isOnEvent = "on" in rule || "after" in rule;
    const mayKeep = [...(isOnEvent || rule.due_date ? [] : kept), ...(rule.every && before?.every ? ofInterval : [])];
    const left = Object.fromEntries(mayKeep.filter((key) => before?.[key] !== undefined).map((key) => [key, before[key]]));
    return { ...rule, ...(zone && !isOnEvent && !rule.every ? { timezone: zone } : {}), ...left };
  };

  return { known, parts, written };
};
