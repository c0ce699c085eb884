// How fields write values of a document, and how people read them: durations, lists, arguments.
"use strict";
// A number that JavaScript would write in another way, such as 1.0 or one of twenty digits.
class NumberAsWritten extends Number {
  #raw;
  constructor(written) {
    super(written);
    this.#raw = JSON.rawJSON(written);
  }
  toString() { return this.#raw.rawJSON; }
  toJSON() { return this.#raw; }
}
const readJSON = (text) => {
  const isPlain = (number) => String(Number(number)) === number;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g) ?? [];
  if (tokens.every((one) => one.startsWith('"') || isPlain(one))) return JSON.parse(text);
  // An old browser cannot keep them, and fails here: the document is changed as JSON.
  return JSON.parse(text, (_, value, { source }) => (typeof value !== "number" || isPlain(source) ? value : new NumberAsWritten(source)));
};

const formKinds = (() => {
  const words = (value) => value.split(",").map((one) => one.trim()).filter(Boolean);
  const listed = (value) => [].concat(value ?? []);
  const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

  // "PT1H30M" is "1 h 30 min". What is no duration stays as it is written, and the page says why.
  const units = [["W", "week", "weeks"], ["D", "day", "days"], ["H", "h", "h"], ["M", "min", "min"], ["S", "s", "s"]];
  const iso = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/;
  const spoken = [/^w(?:eeks?)?$/, /^d(?:ays?)?$/, /^h(?:rs?|ours?)?$/, /^m(?:ins?|inutes?)?$/, /^s(?:ecs?|econds?)?$/];
  const fromDuration = (value) => {
    const parts = typeof value === "string" && value.match(iso);
    if (!parts) return typeof value === "number" ? fromDuration(`PT${value}S`) : value;
    const named = units.map(([, one, more], at) => parts[at + 1] && `${parts[at + 1]} ${parts[at + 1] === "1" ? one : more}`);
    return named.filter(Boolean).join(" ");
  };
  const toDuration = (text) => {
    const parts = [...text.toLowerCase().matchAll(/(\d+)\s*([a-z]+)/g)];
    const rest = text.toLowerCase().replace(/(\d+)\s*([a-z]+)/g, "").replace(/\band\b|[\s,]/g, "");
    const places = parts.map(([, , unit]) => spoken.findIndex((one) => one.test(unit)));
    const isOrdered = places.every((place, at) => place >= 0 && (at === 0 || place > places[at - 1]));
    if (!parts.length || rest || !isOrdered) return text;
    const written = parts.map(([, count], at) => `${Number(count)}${units[places[at]][0]}`);
    const clock = places.findIndex((place) => place > 1);
    if (clock < 0) return `P${written.join("")}`;
    return `P${written.slice(0, clock).join("")}T${written.slice(clock).join("")}`;
  };

  // A value of an argument: a number, true, false and null as JSON writes them; all else is a text,
  // also a number that would not stay as it is written, such as 12e345678, a part of a hash.
  const fromScalar = (value) => (typeof value === "string" && !/[,="[{]/.test(value) && toScalar(value) === value ? value : JSON.stringify(value));
  const toScalar = (text) => {
    try {
      const value = readJSON(text);
      return value instanceof NumberAsWritten ? text : value;
    } catch { return text; }
  };
  const toJSON = (text, bracket) => {
    if (!text.startsWith(bracket)) return undefined;
    try { return readJSON(text); } catch { return text; }
  };
  const toValues = (text) => toJSON(text, "[") ?? words(text).map(toScalar);
  const toNamed = (text) => {
    const written = toJSON(text, "{");
    if (written !== undefined) return written;
    const pairs = words(text).map((one) => one.match(/^([^=]+?)\s*=\s*(.*)$/));
    return pairs.every(Boolean) ? Object.fromEntries(pairs.map(([, name, value]) => [name, toScalar(value)])) : text;
  };
  // In words if they can be read back; else as JSON.
  const shown = (value, text, read) => (isSame(read(text), value) ? text : JSON.stringify(value));
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  // A program and its arguments, with quotes as in a shell.
  const toArguments = (text) => [...text.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)]
    .map(([one]) => one.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single));
  const quoted = (one) => (/^[^\s"']+$/.test(one) ? one : one.includes('"') ? `'${one}'` : `"${one}"`);

  return {
    text: { show: (value) => (isObject(value) ? "" : value), read: (value) => value },
    number: { show: (value) => value, read: (value) => (value === "" ? "" : Number(value)) },
    // The document counts attempts; people count what follows the first one.
    retries: { show: (value) => (value > 1 ? value - 1 : ""), read: (value) => (Number(value) > 0 ? Number(value) + 1 : "") },
    list: { show: (value) => listed(value).join(", "), read: (value) => words(value) },
    duration: { show: fromDuration, read: toDuration },
    durations: { show: (value) => listed(value).map(fromDuration).join(", "), read: (value) => words(value).map(toDuration) },
    // Of exceptions, dates and calendars are fields of their own. What else there is stays.
    dates: {
      show: (value) => listed(value).filter((one) => typeof one === "string").join(", "),
      read: (value, before) => [...words(value), ...listed(before).filter((one) => typeof one !== "string")],
    },
    calendars: {
      show: (value) => listed(value).map((one) => one?.calendar).filter((one) => typeof one === "string").join(", "),
      read: (value, before) => [
        ...listed(before).filter((one) => typeof one?.calendar !== "string"),
        ...words(value).map((calendar) => ({ calendar })),
      ],
    },
    // One argument: a text is written as it is, unless JSON would read it as another value.
    value: { show: (value) => (typeof value === "string" && toScalar(value) === value ? value : JSON.stringify(value)), read: toScalar },
    values: { show: (value) => (Array.isArray(value) ? shown(value, value.map(fromScalar).join(", "), toValues) : value), read: toValues },
    named: {
      show: (value) => (isObject(value) ? shown(value, Object.entries(value).map(([name, one]) => `${name}=${fromScalar(one)}`).join(", "), toNamed) : value),
      read: toNamed,
    },
    argv: { show: (value) => listed(value).map(String).map(quoted).join(" "), read: toArguments },
  };
})();
