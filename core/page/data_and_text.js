// SPDX-License-Identifier: GPL-3.0-or-later
// Draws the page from its data. Content of a trace enters the document as text, never as markup.
"use strict";

const $ = id => document.getElementById(id);
const MINUS = "\u2212";
const RAMPS = {
  value: ["#ffffff", "#fff7e4", "#ffefc8", "#ffe1a3", "#ffcd80", "#fdb564", "#f89c4e"],
  difference: ["#6fb8aa", "#a4d3ca", "#d6ebe6", "#ffffff", "#ffe6bd", "#fdc680", "#f89c4e"],
};
const LEVELS = 48;
const QUANTITIES = [
  { name: "nll", title: "NLL", unit: "nats", digits: 2, difference: true, meaning: "surprise at the word, \u2212ln p; 0 is certain" },
  { name: "entropy", title: "Entropy", unit: "nats", digits: 2, difference: true, meaning: "how undecided the model was before it" },
  { name: "rank", title: "Rank", digits: 0, log: true, meaning: "place of the word; 1 is the model\u2019s choice" },
  { name: "max_probability", title: "Max probability", digits: 3, difference: true, meaning: "of the likeliest word in its place" },
  { name: "steps", title: "Steps", digits: 0, difference: true, meaning: "steps that predicted it" },
  { name: "flops", title: "FLOPs", si: true, meaning: "operations spent on predicting it" },
];
const state = { sequence: 0, quantity: null, of: "a", pin: -1, hover: -1, marks: true };
let D = null; // the data
let scale = null; // the colour scale
let spans = []; // the elements of the sequence's tokens
let building = 0;

// ---- data ----

async function unpack() {
  const packed = atob($("data").textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const start = 4 + length;
  const types = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, q16: Uint16Array };
  const array = name => {
    const entry = head.arrays[name];
    if (!entry) return null;
    const type = types[entry.type];
    const values = new type(buffer.slice(start + entry.offset, start + entry.offset + entry.count * type.BYTES_PER_ELEMENT));
    if (entry.type !== "q16") return values;
    const numbers = new Float32Array(values.length);
    for (let i = 0; i < values.length; ++i) numbers[i] = values[i] === 65535 ? NaN : entry.low + values[i] * entry.step;
    return numbers;
  };
  const data = { head, text: array("text"), gap: array("gap"), length: array("length"), id: array("id"), word: array("word"), runs: [] };
  const lengths = array("word_length"), wordBytes = array("word_bytes");
  data.words = [];
  for (let i = 0, at = 0; i < lengths.length; at += lengths[i++]) data.words.push(characters(wordBytes.subarray(at, at + lengths[i])));
  head.runs.forEach((run, r) => {
    const own = { info: run, columns: {}, lossBySteps: array(`${r}.nll_by_step`) };
    for (const name of ["nll", "entropy", "max_probability", "rank", "steps", "flops"]) own.columns[name] = array(`${r}.${name}`);
    for (const extra of run.scalars) own.columns[extra.name] = array(`${r}.scalar.${extra.name}`);
    own.candidates = run.candidates ? { words: array(`${r}.candidate`), p: array(`${r}.candidate_p`), ...run.candidates } : null;
    data.runs.push(own);
  });
  let token = 0, text = 0;
  data.sequences = head.sequences.map(s => {
    const sequence = { ...s, first: token, text };
    token += s.tokens; text += s.bytes;
    return sequence;
  });
  return data;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Bytes as text. Bytes that are not a whole character become \xNN. */
function characters(bytes) {
  try { return utf8.decode(bytes); } catch { return Array.from(bytes, b => b > 31 && b < 127 ? String.fromCharCode(b) : "\\x" + b.toString(16).padStart(2, "0")).join(""); }
}

/** Makes characters visible that are invisible, reorder text or break the line. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
const visible = text => text.replace(HIDDEN, c => {
  const code = c.codePointAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
});
/** The text on one line. A leading blank, as many tokens have, becomes a dot. */
const inline = text => visible(text).replaceAll("\n", "\u21b5").replaceAll("\t", "\u21e5").replace(/^ | $/g, "\u00b7").replaceAll(" ", "\u00a0");

/** The texts of a sequence's tokens. A character that several tokens share belongs to the first of them. */
function tokenTexts(sequence) {
  const texts = [], raw = [];
  const bytes = D.text.subarray(sequence.text, sequence.text + sequence.bytes);
  let at = 0, shown = 0;
  for (let t = sequence.first; t < sequence.first + sequence.tokens; ++t) {
    const begin = at + D.gap[t], end = begin + D.length[t];
    if (!sequence.bytes) { texts.push(D.words[D.word[t]] ?? "\u2423"); raw.push(texts.at(-1)); at = 0; continue; }
    let stop = end;
    while (stop > shown && stop < bytes.length && (bytes[stop] & 0xc0) === 0x80) ++stop; // up to the end of the character
    texts.push(stop > shown ? characters(bytes.subarray(Math.min(shown, stop), stop)) : "");
    raw.push(characters(bytes.subarray(begin, end)));
    shown = Math.max(shown, stop);
    at = end;
  }
  return { texts, raw };
}

const sequence = () => D.sequences[state.sequence];
/** A run's value at a word, by its index in the sequence. A prediction's numbers belong to the predicted word. */
function value(r, name, i) {
  const column = D.runs[r].columns[name];
  if (!column || i < 1 || i > D.runs[r].info.reached[state.sequence]) return NaN;
  const v = column[sequence().first + i - 1];
  return name === "rank" && v === 0 ? NaN : v;
}
function shown(i) {
  const name = state.quantity.name;
  if (state.of === "d") return value(0, name, i) - value(1, name, i);
  return value(state.of === "b" ? 1 : 0, name, i);
}

// ---- numbers ----

function number(v, digits = 2, sign = false) {
  if (v === null || v === undefined || Number.isNaN(v)) return "\u2013";
  const text = Math.abs(v).toFixed(digits), zero = !/[1-9]/.test(text);
  return (v < 0 && !zero ? MINUS : sign && !zero ? "+" : "") + text;
}
const grouped = v => Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, "\u2009");
function si(v) {
  if (!(v > 0)) return v === 0 ? "0" : "\u2013";
  const power = Math.min(5, Math.max(0, Math.floor(Math.log10(v) / 3)));
  return (v / 1000 ** power).toPrecision(3) + ["", "\u2009k", "\u2009M", "\u2009G", "\u2009T", "\u2009P"][power];
}
const format = (quantity, v, sign) => quantity.si ? si(v) : number(v, quantity.digits, sign);
function niceCeiling(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 3, 4, 5, 6, 8, 10].map(f => f * power).find(n => n >= v * (1 - 1e-9)) ?? 10 * power;
}

// ---- colours ----

function mix(stops, place) {
  const at = Math.min(Math.max(place, 0), 1) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
  const part = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  return "rgb(" + [0, 1, 2].map(i => Math.round(part(stops[low], i) + (part(stops[low + 1], i) - part(stops[low], i)) * (at - low))).join(",") + ")";
}
const ramp = difference => RAMPS[difference ? "difference" : "value"];

function writeRamps() {
  const rule = (name, stops, i) => `.${name}${i}{background-color:${mix(stops, i / (LEVELS - 1))}}`;
  $("ramps").textContent = Array.from({ length: LEVELS }, (_, i) => rule("v", RAMPS.value, i) + rule("d", RAMPS.difference, i)).join("");
}

function chooseScale() {
  const quantity = state.quantity, difference = state.of === "d", magnitudes = [];
  const runs = D.runs.map((_, r) => r);
  const n = sequence().tokens, stride = Math.max(1, Math.floor(n / 20000));
  for (let i = 1; i < n; i += stride) {
    if (difference) magnitudes.push(Math.abs(shown(i)));
    else for (const r of runs) magnitudes.push(Math.abs(value(r, quantity.name, i)));
  }
  const finite = magnitudes.filter(Number.isFinite).sort((x, y) => x - y);
  const high = finite.length ? finite[Math.floor((finite.length - 1) * .98)] : 1;
  const most = Math.max(...D.runs.map(run => run.info.max_steps), 1);
  if (difference) { const end = niceCeiling(Math.max(high, quantity.name === "max_probability" ? .05 : .5)); scale = { low: -end, high: end }; }
  else if (quantity.name === "steps") scale = { low: 0, high: most };
  else if (quantity.name === "max_probability") scale = { low: 0, high: 1 };
  else if (quantity.name === "nll" || quantity.name === "entropy") scale = { low: 0, high: high > 8 ? niceCeiling(high) : 8 };
  else if (quantity.log) scale = { low: 1, high: Math.max(10, 10 ** Math.ceil(Math.log10(Math.max(high, 1)) - 1e-9)), log: true };
  else scale = { low: 0, high: high > 0 ? niceCeiling(high) : 1 };
}
function place(v) {
  if (Number.isNaN(v)) return NaN;
  return scale.log ? Math.log(v) / Math.log(scale.high) : (v - scale.low) / (scale.high - scale.low);
}
function level(v) {
  const at = place(v);
  return Number.isNaN(at) ? "" : (state.of === "d" ? "d" : "v") + Math.round(Math.min(Math.max(at, 0), 1) * (LEVELS - 1));
}

// ---- the text ----

/** Shows the text in chunks, which end at line ends if possible: the first now, the others between frames. */
function buildText() {
  const box = $("text"), s = sequence(), token = ++building;
  const { texts, raw } = tokenTexts(s);
  s.texts = raw;
  spans = new Array(s.tokens).fill(null);
  box.replaceChildren();
  let i = 0;
  const chunk = () => {
    const part = document.createElement("div");
    part.className = "chunk";
    part.dir = "auto";
    const begin = i;
    for (; i < s.tokens; ++i) {
      if (i - begin > 2500 || (i - begin > 250 && texts[i - 1].endsWith("\n"))) break;
      const span = document.createElement("span");
      span.dataset.i = i;
      const text = visible(texts[i]), lines = text.endsWith("\n") && i + 1 < s.tokens;
      if (/^\n+$/.test(text)) {
        span.textContent = "\u21b5".repeat(text.length);
        span.dataset.brk = "";
        part.append(span, text);
      } else {
        // Put a token's leading blanks before its element. Inside, they would stick out at the end of a line.
        const blanks = /^ *(?=\S)/.exec(text)?.[0] ?? "";
        span.textContent = text.slice(blanks.length, lines ? -1 : undefined);
        part.append(blanks, span, lines ? "\n" : "");
      }
      spans[i] = span;
      dress(i);
    }
    box.append(part);
  };
  chunk();
  const rest = until => { while (i < s.tokens && token === building && (until === undefined || performance.now() < until)) chunk(); };
  box.finish = () => rest();
  const later = () => { rest(performance.now() + 12); if (i < s.tokens && token === building) setTimeout(later); else $("text").dataset.done = token; };
  later();
}

function dress(i) {
  const span = spans[i];
  if (!span) return;
  const brk = span.dataset.brk !== undefined;
  span.className = "t " + level(shown(i)) + (brk ? " brk" : "") + (i === state.pin ? " pin" : "") + (i === state.hover && i !== state.pin ? " here" : "");
  const r = state.of === "b" ? 1 : 0, run = D.runs[r].info, steps = value(r, "steps", i);
  if (run.max_steps > 0 && steps > 0) {
    if (run.max_steps > 6) { span.dataset.share = ""; delete span.dataset.s; span.style.setProperty("--s", steps / run.max_steps); }
    else { span.dataset.s = ""; delete span.dataset.share; span.style.setProperty("--s", steps); }
  } else { delete span.dataset.s; delete span.dataset.share; }
}
function dressAll() { for (let i = 0; i < spans.length; ++i) dress(i); }

function recolour() {
  chooseScale();
  dressAll();
  drawLegend();
}

function drawLegend() {
  const box = $("legend"), q = state.quantity, bar = document.createElement("span");
  bar.className = "ramp";
  bar.style.background = `linear-gradient(90deg, ${ramp(state.of === "d").join(",")})`;
  const [low, high] = q.name === "rank" ? ["1", grouped(scale.high)] : [format(q, scale.low, state.of === "d"), format(q, scale.high, state.of === "d")];
  const meaning = state.of === "d" ? `${q.title} of A less that of B: teal where A is lower` : q.meaning;
  const marks = state.marks && D.runs.some(run => run.info.max_steps > 0) ? ` \u00b7 marks: ${D.runs[0].info.step_unit}s that predicted it` : "";
  box.replaceChildren(low, bar, high + (q.unit ? ` ${q.unit}` : ""), ` \u00b7 ${meaning}${marks}`);
}
