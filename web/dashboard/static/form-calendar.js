// Rules of the calendar (RFC 5545): from the text to the fields of the form, and back.
"use strict";
const formCalendar = (() => {
  const days = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
  const working = days.slice(0, 5).join(",");
  const units = { DAILY: "days", WEEKLY: "weeks", MONTHLY: "months", YEARLY: "years" };
  // What may stand beside FREQ, INTERVAL and an end.
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

  const endOf = ({ COUNT: count, UNTIL: until }) => {
    if (count !== undefined) return /^\d+$/.test(count) && until === undefined ? { end: "count", count } : null;
    if (until === undefined) return { end: "" };
    const date = until.match(/^(\d{4})(\d\d)(\d\d)$/);
    return date && { end: "until", until: date.slice(1).join("-") };
  };

  // The fields of a rule; null if they cannot say all of it.
  const show = (text) => {
    const pairs = text.toUpperCase().replace(/\s|^RRULE:/g, "").replace(/;$/, "").split(";").map((one) => one.split("="));
    const { FREQ, INTERVAL: interval = "1", ...rest } = Object.fromEntries(pairs);
    const unit = units[FREQ];
    const allowed = unit && [...parts[unit], "COUNT", "UNTIL"];
    if (!unit || !/^[1-9]\d{0,3}$/.test(interval) || !Object.keys(rest).every((key) => allowed.includes(key))) return null;
    const end = endOf(rest);
    if (unit === "weeks") {
      const weekdays = rest.BYDAY?.split(",") ?? [];
      return end && weekdays.every((one) => days.includes(one)) ? { unit, interval, weekdays, ...end } : null;
    }
    const month = rest.BYMONTH ?? "";
    const named = daysOf(rest);
    return end && named && /^(1?\d)?$/.test(month) ? { unit, interval, month, ...named, ...end } : null;
  };

  const daysFrom = ({ nth, kind, dates }) => {
    if (!nth) return dates ? [`BYMONTHDAY=${dates.replace(/[\s,]+/g, ",").replace(/^,|,$/g, "")}`] : [];
    if (kind === "day") return [`BYMONTHDAY=${nth}`];
    return kind === "working" ? [`BYDAY=${working}`, `BYSETPOS=${nth}`] : [`BYDAY=${nth}${kind}`];
  };

  // The rule that the fields say.
  const read = (said) => {
    const { unit, interval, weekdays, month, end, count, until } = said;
    const made = [`FREQ=${Object.keys(units).find((one) => units[one] === unit)}`];
    if (interval !== "1") made.push(`INTERVAL=${interval}`);
    if (unit === "weeks" && weekdays.length) made.push(`BYDAY=${weekdays.join(",")}`);
    if (unit === "years" && month) made.push(`BYMONTH=${month}`);
    if (unit === "months" || unit === "years") made.push(...daysFrom(said));
    if (end === "count") made.push(`COUNT=${count}`);
    if (end === "until") made.push(`UNTIL=${until.replaceAll("-", "")}`);
    return made.join(";");
  };

  return { show, read };
})();
