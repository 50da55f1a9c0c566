// SPDX-License-Identifier: GPL-3.0-or-later
// The token, the head, and user actions. Follows data_and_text.js in the page's script.

// ---- the token ----

function cell(row, text, tag = "td") {
  const td = document.createElement(tag);
  td.textContent = text;
  row.append(td);
  return td;
}
function chip(r) {
  const mark = document.createElement("span");
  mark.className = "chip " + "ab"[r];
  mark.textContent = "AB"[r];
  return mark;
}

function drawToken() {
  const i = state.hover >= 0 ? state.hover : state.pin;
  $("inspector").classList.toggle("empty", i < 0);
  $("state").textContent = state.hover >= 0 && state.hover !== state.pin ? "Under the pointer" : i >= 0 ? "Pinned" : "Token";
  const facts = $("facts"), candidates = $("candidates");
  facts.replaceChildren();
  candidates.replaceChildren();
  if (i < 0) { $("word").textContent = ""; $("place").textContent = "Hover over a word; click to pin it; arrows move."; return; }
  const s = sequence();
  $("word").textContent = inline(s.texts[i]) || "\u2205";
  $("place").textContent = `token ${grouped(i)} of ${grouped(s.tokens)} \u00b7 id ${D.id[s.first + i]}` + (i < 1 ? " \u00b7 the first word is predicted by nothing" : "");
  if (i < 1) return;
  const table = document.createElement("tbody"), top = table.insertRow();
  cell(top, "", "th");
  D.runs.forEach((_, r) => cell(top, "", "th").append(chip(r)));
  if (D.runs.length > 1) cell(top, "A " + MINUS + " B", "th");
  const rows = [...quantities(), { name: "nll", title: "Probability", digits: 3, map: v => Math.exp(-v) }];
  for (const q of rows) {
    const values = D.runs.map((_, r) => { const v = value(r, q.name, i); return q.map ? q.map(v) : v; });
    if (values.every(Number.isNaN)) continue;
    const row = table.insertRow();
    cell(row, q.title);
    values.forEach(v => cell(row, format(q, v)));
    if (values.length > 1) cell(row, q.si ? "" : format(q, values[0] - values[1], true));
  }
  facts.append(table);
  D.runs.forEach((_, r) => candidates.append(stepTable(r, i)));
}

/** The candidates for token i at each step. */
function stepTable(r, i) {
  const run = D.runs[r], info = run.info, row = sequence().first + i - 1, box = document.createElement("div");
  box.className = "steps of-" + "ab"[r];
  const loss = run.lossBySteps, c = run.candidates, width = loss ? loss.length / D.id.length : 0;
  if (!loss && !c || i > info.reached[state.sequence]) return box;
  const title = document.createElement("h3"), name = document.createElement("bdi");
  name.textContent = visible(info.name);
  title.append(chip(r), name);
  const table = document.createElement("table"), body = document.createElement("tbody");
  const steps = c ? c.steps : width, stopped = run.columns.steps[row], wanted = sequence().texts[i];
  for (let k = 0; k < steps; ++k) {
    if (k > stopped) {
      const halted = body.insertRow();
      halted.className = "halted";
      cell(halted, steps - k > 1 ? `${info.step_unit} ${k}\u2013${steps - 1}` : `${info.step_unit} ${k}`);
      cell(halted, "did not run").colSpan = 2;
      break;
    }
    const line = body.insertRow();
    if (k === stopped) line.className = "last";
    cell(line, `${info.step_unit} ${k}`);
    const list = document.createElement("div");
    list.className = "cands";
    for (let j = 0; c && j < c.count; ++j) {
      const at = (row * steps + k) * c.count + j, p = c.p[at];
      if (!(p > 0)) break;
      const candidate = document.createElement("span"), word = D.words[c.words[at]] ?? "", bdi = document.createElement("bdi"), share = document.createElement("i");
      candidate.className = "cand" + (word === wanted ? " hit" : "");
      candidate.style.setProperty("--p", p);
      bdi.textContent = inline(word) || "\u2205";
      share.textContent = p < .0095 ? "<1" : Math.round(100 * p);
      candidate.append(bdi, share);
      candidate.title = `${inline(word)}  ${number(100 * p, 1)} %`;
      list.append(candidate);
    }
    cell(line, "").append(list);
    const nll = loss ? loss[row * width + k] : NaN;
    cell(line, Number.isNaN(nll) ? "" : number(nll)).className = "loss";
  }
  table.append(body);
  box.append(title, table);
  return box;
}

// ---- the head ----

function quantities() {
  const scalars = new Map();
  for (const run of D.runs) for (const s of run.info.scalars) scalars.set(s.name, { name: s.name, title: visible(s.title), unit: visible(s.unit), digits: 3, difference: true, meaning: "as recorded" });
  return [...QUANTITIES, ...scalars.values()].filter(q => q.name !== "steps" || D.runs.some(run => run.info.max_steps > 0)).filter(q => D.runs.some(run => run.columns[q.name]));
}

function withInterval(td, estimate, digits, sign = false) {
  const [v, low, high] = estimate ?? [null, null, null], bold = document.createElement("b");
  bold.textContent = number(v, digits, sign);
  td.append(bold);
  if (v === null || low === null || high === null) return;
  const interval = document.createElement("span");
  interval.className = "interval";
  interval.textContent = `${number(low, digits, sign)} to ${number(high, digits, sign)}`;
  td.append(interval);
}

function drawHead() {
  const { head } = D;
  $("trace").textContent = visible(head.trace);
  $("title").textContent = visible(head.title);
  document.title = visible(head.title) + " \u00b7 Ponderscope";
  head.runs.forEach((run, r) => {
    const line = document.createElement("div"), name = document.createElement("b"), about = document.createElement("span"), bdi = document.createElement("bdi");
    line.className = "run";
    bdi.textContent = visible(run.name);
    name.append(bdi);
    about.className = "about";
    const unit = run.max_steps > 0 ? `up to ${run.step_unit} ${run.max_steps}` : "";
    about.textContent = visible([run.architecture, run.method, run.depth_mixing === "none" ? "" : run.depth_mixing, unit, `policy ${run.policy}`, run.scoring, run.dtype, `${grouped(run.tokens)} tokens`, run.complete ? "" : "partial"].filter(Boolean).join(" \u00b7 "));
    line.append(chip(r), name, about);
    $("runs").append(line);
  });
  const table = $("summary"), headRow = table.createTHead().insertRow(), body = table.createTBody(), c = head.comparison;
  cell(headRow, "", "th");
  head.runs.forEach((_, r) => cell(headRow, "", "th").append(chip(r)));
  if (c) cell(headRow, "A " + MINUS + " B", "th");
  const line = (title, estimates, digits, difference, differenceDigits = digits) => {
    if (estimates.every(e => !e || e[0] === null)) return;
    const row = body.insertRow();
    cell(row, title);
    for (const estimate of estimates) withInterval(cell(row, ""), estimate, digits);
    if (c) withInterval(cell(row, ""), difference, differenceDigits, true);
  };
  line("NLL, nats a token", head.runs.map(r => r.nll), 4, c?.difference);
  line("Perplexity", head.runs.map(r => r.perplexity), 2, null);
  if (c) { const row = body.lastElementChild.lastElementChild; withInterval((row.replaceChildren(), row.append("\u00d7 "), row), c.perplexity_ratio, 4); }
  const same = c && head.runs.every(r => r.scored_tokens === c.tokens && r.tokens === head.runs[0].tokens);
  line("Bits a byte", head.runs.map(r => r.bits_per_byte), 4, c?.bits_per_byte_difference);
  if (head.runs.some(r => r.max_steps > 0)) line(`Mean ${head.runs.find(r => r.max_steps > 0).step_unit}s`, head.runs.map(r => r.mean_steps), 3, same ? [head.runs[0].mean_steps[0] - head.runs[1].mean_steps[0], null, null] : null);
  if (head.runs.some(r => r.flops_per_token > 0)) {
    const row = body.insertRow();
    cell(row, "FLOPs a token");
    head.runs.forEach(r => { const b = document.createElement("b"); b.textContent = r.flops_per_token > 0 ? si(r.flops_per_token) : "\u2013"; cell(row, "").append(b); });
    if (c) { const b = document.createElement("b"); b.textContent = same && head.runs.every(r => r.flops_per_token > 0) ? "\u00d7 " + number(head.runs[0].flops_per_token / head.runs[1].flops_per_token, 2) : "\u2013"; cell(row, "").append(b); }
  }
  if (c) {
    const row = body.insertRow();
    cell(row, "B better on");
    const td = cell(row, `${number(100 * c.share_b_better, 1)} % of ${grouped(c.tokens)} tokens`);
    td.colSpan = head.runs.length + 1;
    const correlation = body.insertRow();
    cell(correlation, "Correlation of NLL (Pearson)");
    const both = cell(correlation, number(c.pearson[0], 3));
    both.colSpan = head.runs.length + 1;
  }
  for (const notice of head.notices) { const p = document.createElement("p"); p.className = "notice"; p.textContent = visible(notice); $("notices").append(p); }
  const words = [
    `Numbers stand at the word that they predicted: its NLL is \u2212ln p of it given what stands before. Losses are in nats; perplexity is exp(mean NLL).` + (head.interval ? ` Intervals are ${number(100 * head.interval.level, 0)} % of a bootstrap of ${grouped(head.interval.replicates)} replicates: ${head.interval.drawn}.` : ""),
    "A difference between two runs is a difference between two files. Where a rule was replayed or a token halted, later words saw what it left behind.",
    `Made by ponderscope ${head.program}. This file holds all that it shows and loads nothing.`,
  ];
  for (const text of words) { const p = document.createElement("p"); p.textContent = text; $("footer").append(p); }
}

function drawControls() {
  const select = $("sequence");
  D.sequences.forEach((s, i) => select.add(new Option(`${i + 1}  ${visible(s.title)}`.slice(0, 80), i)));
  $("sequence-label").hidden = D.sequences.length < 2;
  for (const q of quantities()) $("quantity").add(new Option(q.title, q.name));
  const of = $("of");
  of.hidden = D.runs.length < 2;
  for (const [key, label] of [["a", "A"], ["b", "B"], ["d", "A " + MINUS + " B"]]) {
    const button = document.createElement("button");
    button.textContent = label;
    button.dataset.of = key;
    button.addEventListener("click", () => setOf(key));
    of.append(button);
  }
  $("marks").parentElement.hidden = !D.runs.some(run => run.info.max_steps > 0);
}

// ---- user actions ----

function setOf(key) {
  if (key === "d" && !state.quantity.difference) setQuantity("nll", false);
  state.of = D.runs.length < 2 ? "a" : key;
  for (const button of $("of").children) button.setAttribute("aria-pressed", button.dataset.of === state.of);
  recolour();
}
function setQuantity(name, redraw = true) {
  state.quantity = quantities().find(q => q.name === name) ?? quantities()[0];
  $("quantity").value = state.quantity.name;
  if (state.of === "d" && !state.quantity.difference) state.of = "a";
  if (redraw) setOf(state.of);
}
function setSequence(i) {
  if (i < 0 || i >= D.sequences.length) return;
  state.sequence = i;
  state.pin = state.hover = -1;
  $("sequence").value = i;
  chooseScale();
  buildText();
  drawLegend();
  drawToken();
}
function select(kind, i) {
  const before = state[kind];
  if (before === i) return;
  state[kind] = i;
  for (const t of [before, i]) if (t >= 0) dress(t);
  drawToken();
}
function pin(i, follow = true) {
  if (i < 0 || i >= sequence().tokens) return;
  if (!spans[i]) $("text").finish();
  select("pin", i);
  if (follow) spans[i].scrollIntoView({ block: "nearest" });
}
function listen() {
  const text = $("text"), at = event => event.target.closest?.("[data-i]");
  text.addEventListener("mousemove", event => { const span = at(event); select("hover", span ? Number(span.dataset.i) : -1); });
  text.addEventListener("mouseleave", () => select("hover", -1));
  text.addEventListener("click", event => { const span = at(event); if (span) { const i = Number(span.dataset.i); i === state.pin ? select("pin", -1) : pin(i, false); } });
  $("sequence").addEventListener("change", event => setSequence(Number(event.target.value)));
  $("quantity").addEventListener("change", event => setQuantity(event.target.value));
  $("marks").addEventListener("change", event => { state.marks = event.target.checked; text.classList.toggle("marks", state.marks); drawLegend(); });
  window.addEventListener("beforeprint", () => text.finish());
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT"].includes(event.target.tagName)) return;
    const keys = { ArrowRight: () => pin(state.pin + 1), ArrowLeft: () => pin(state.pin - 1), Escape: () => select("pin", -1) };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
}

/** #token=12&of=d&quantity=nll. With this hash, a link can point to a word. */
function wishes() {
  const wish = new URLSearchParams(location.hash.slice(1));
  const of = wish.get("of");
  setQuantity(wish.get("quantity") ?? "nll", false);
  if (D.runs.length > 1 && (of === "b" || of === "d")) state.of = of;
  setSequence(Math.min(Math.max(0, Number(wish.get("text")) || 0), D.sequences.length - 1));
  setOf(state.of);
  if (wish.has("token")) pin(Number(wish.get("token")));
}

(async () => {
  try {
    D = await unpack();
  } catch (error) {
    $("message").textContent = `This page could not be read (${error}); it may be cut off, or the browser too old: take one from 2023 on.`;
    return;
  }
  writeRamps();
  state.quantity = QUANTITIES[0];
  $("message").hidden = true;
  $("page").hidden = false;
  $("text").classList.add("marks");
  drawHead();
  drawControls();
  listen();
  wishes();
  document.body.dataset.ready = "1";
})();
