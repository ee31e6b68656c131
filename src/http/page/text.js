"use strict";
// Texts. What tools write and how they are called is foreign: it gets into the page by `shown` and `textContent` alone.

const $ = (id) => document.getElementById(id);
const LONGEST = 200_000; // characters of a text that are shown

// Without what could overwrite, reorder or hide the rest. Joiners stay: scripts and emoji need them.
const shown = (text) => String(text).replace(/(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (sign) => {
  const code = sign.codePointAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : "\ufffd";
});
const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);
const plural = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
const megabytes = (bytes) => (bytes == null ? "" : `${(bytes / 1e6).toFixed(1)} MB`);
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });

function time(ms) {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

// Numbers stay as they are written: a double would change long ones and drop `.0`.
const asWritten = (_, value, context) =>
  typeof value === "number" && context?.source !== undefined && JSON.rawJSON && String(value) !== context.source
    ? JSON.rawJSON(context.source) : value;
const pretty = (value) => JSON.stringify(value, null, 2) ?? "";

// A text that may be JSON, as people read it.
function laidOut(value) {
  if (typeof value !== "string") return pretty(value);
  try { return pretty(JSON.parse(value, asWritten)); } catch { return value; }
}

function made(name, text, type) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = shown(text);
  if (type) element.className = type;
  return element;
}

function button(text, type, act, label) {
  const element = made("button", text, type);
  element.type = "button";
  element.onclick = act;
  if (label) element.setAttribute("aria-label", shown(label));
  return element;
}

// Sets a text only if it differs: rows are drawn often, and what a person has selected stays.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Brings a part of the page into view, for eyes, keyboards and screen readers.
function goTo(heading) {
  heading.closest("article").scrollIntoView({ block: "nearest" });
  heading.focus({ preventScroll: true });
}

let remarkEnds = 0;
function remark(text) {
  $("remark").hidden = false;
  write($("remark"), shown(text));
  clearTimeout(remarkEnds);
  remarkEnds = setTimeout(() => { $("remark").hidden = true; }, 10_000);
}
const complain = (error) => remark(error.message);
