"use strict";
// The page's state is `played`: one entry for each sentence that was answered. Everything else on
// the page is drawn from it and from the data.

const DATA = JSON.parse(document.getElementById("data").textContent);
const METHODS = DATA.methods; // name (of the scores), label, kind: explainer or floor
const MEASURES = { mass: "mass accuracy", roc: "ROC-AUC" };
const LEVEL = 0.005; // scores that differ by less are level

const at = (id) => document.getElementById(id);
let current = 0; // the sentence on the page
let marks = []; // 0 or 1 for each of its words
let played = []; // {sentence, marks, scores: {name: {mass, roc}}}

// ---- scores: the same definitions as lib/metrics/mass_accuracy.py

/** The share of the absolute weight that lies on the words of the mask. */
function massAccuracy(weights, mask) {
  let all = 0, hit = 0;
  weights.forEach((weight, i) => { all += Math.abs(weight); hit += mask[i] * Math.abs(weight); });
  return all > 0 && mask.includes(1) ? hit / all : NaN;
}

/** The chance that a word of the mask has more weight than another, ties counting one half. */
function rocAuc(weights, mask) {
  const sizes = weights.map(Math.abs);
  let sum = 0, pairs = 0;
  sizes.forEach((inside, i) => sizes.forEach((outside, j) => {
    if (!mask[i] || mask[j]) return;
    pairs += 1;
    sum += inside > outside ? 1 : inside === outside ? 0.5 : 0;
  }));
  return pairs ? sum / pairs : NaN;
}

function scoresOf(sentence, weights) {
  return { mass: massAccuracy(weights, sentence.mask), roc: rocAuc(weights, sentence.mask) };
}

/** Everybody's scores on a sentence, the reader's under the name "You". */
function everybody(sentence, own) {
  const scores = { You: scoresOf(sentence, own) };
  METHODS.forEach(({ name }) => { scores[name] = scoresOf(sentence, sentence.scores[name]); });
  return scores;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Means over what was played, and how often the reader was ahead, level and behind. */
function means(measure) {
  const players = [{ name: "You", label: "You", kind: "you" }, ...METHODS];
  return players.map((player) => {
    const gaps = played.map(({ scores }) => scores.You[measure] - scores[player.name][measure]);
    return {
      ...player,
      mass: mean(played.map(({ scores }) => scores[player.name].mass)),
      roc: mean(played.map(({ scores }) => scores[player.name].roc)),
      ahead: gaps.filter((gap) => gap > LEVEL).length,
      level: gaps.filter((gap) => Math.abs(gap) <= LEVEL).length,
      behind: gaps.filter((gap) => gap < -LEVEL).length,
    };
  });
}

// ---- small helpers for drawing

/** An element with attributes and children; text is never read as HTML. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

const shown = (number) => number.toFixed(2);
const measure = () => document.querySelector("input[name=measure]:checked").value;
const byMeasure = (a, b) => b[measure()] - a[measure()] || (a.kind === "you" ? -1 : b.kind === "you" ? 1 : 0);
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Words coloured by their scores; a screen reader hears the three largest instead. */
function coloured(words, weights, mask) {
  const largest = Math.max(...weights.map(Math.abs)) || 1;
  const total = weights.reduce((sum, weight) => sum + Math.abs(weight), 0) || 1;
  const order = words.map((_, i) => i).filter((i) => weights[i] !== 0)
    .sort((a, b) => Math.abs(weights[b]) - Math.abs(weights[a])).slice(0, 3);
  const heard = order.map((i) => `${words[i]} ${Math.round(100 * Math.abs(weights[i]) / total)} %` +
    (weights[i] < 0 ? " against" : ""));
  const seen = element("span", { "aria-hidden": "true" });
  words.forEach((word, i) => {
    const kind = `word${weights[i] < 0 ? " against" : ""}${mask[i] ? " truth" : ""}`;
    const strength = (Math.abs(weights[i]) / largest).toFixed(3);
    seen.append(element("span", { class: kind, style: `--s:${strength}`, title: weights[i] }, word), " ");
  });
  return [element("span", { class: "sr" }, `Most weight: ${heard.join(", ")}.`), seen];
}

function cell(kind, label, ...children) {
  const attributes = { role: "cell", class: kind };
  if (label) attributes["data-label"] = label;
  return element("td", attributes, ...children);
}

function table(id, heads, rows) {
  const line = element("tr", { role: "row" });
  heads.forEach(([text, kind]) =>
    line.append(element("th", { role: "columnheader", scope: "col", class: kind }, text)));
  const body = element("tbody", { role: "rowgroup" }, ...rows);
  at(id).replaceChildren(element("thead", { role: "rowgroup" }, line), body);
}

function rowOf({ label, kind }, ...cells) {
  const head = element("th", { role: "rowheader", scope: "row" }, label);
  if (kind === "floor") head.append(element("small", {}, "never looks at the model"));
  return element("tr", { role: "row", class: kind }, head, ...cells);
}

const bar = (value) => element("span", { class: "bar", style: `--v:${value.toFixed(3)}`, "aria-hidden": "true" });

// ---- the sentence to mark

function drawTask() {
  const sentence = DATA.sentences[current];
  marks = sentence.words.map(() => 0);
  at("task-head").textContent = `Sentence ${current + 1} of ${DATA.sentences.length}`;
  at("said").replaceChildren("The model read this sentence and answered: it is about ",
    element("b", {}, DATA.classes[sentence.target]), ". Which words must have decided?");
  at("words").replaceChildren(...sentence.words.map((word, i) => {
    const button = element("button",
      { type: "button", "aria-pressed": "false", tabindex: i ? "-1" : "0" }, word);
    button.addEventListener("click", () => toggle(i));
    return button;
  }));
  at("how").hidden = at("show").hidden = false;
  at("answer").hidden = at("next").hidden = true;
  at("status").textContent = "";
}

function toggle(i) {
  marks[i] = 1 - marks[i];
  at("words").children[i].setAttribute("aria-pressed", String(Boolean(marks[i])));
  stopAt(i);
  at("status").textContent = "";
}

/** The word that Tab reaches; the arrow keys move it. */
function stopAt(i) {
  [...at("words").children].forEach((button, k) => { button.tabIndex = k === i ? 0 : -1; });
}

function move(event) {
  const words = [...at("words").children], here = words.indexOf(document.activeElement);
  const steps = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1,
    Home: 0, End: words.length - 1 };
  if (here < 0 || !(event.key in steps)) return;
  event.preventDefault();
  const there = (steps[event.key] + words.length) % words.length;
  stopAt(there);
  words[there].focus();
}

// ---- the answer

function answer() {
  if (!marks.includes(1)) {
    at("status").textContent = "Mark at least one word first.";
    return;
  }
  const sentence = DATA.sentences[current];
  played.push({ sentence, marks: [...marks], scores: everybody(sentence, marks) });
  [...at("words").children].forEach((button, i) => {
    button.disabled = true;
    button.classList.toggle("changed", Boolean(sentence.mask[i]));
  });
  at("how").hidden = at("show").hidden = true;
  at("answer").hidden = at("next").hidden = at("sofar").hidden = false;
  at("next").textContent = current + 1 < DATA.sentences.length ? "Next sentence" : "See how you did";
  drawAnswer();
  drawMeans();
  at("answer-head").focus();
}

function drawAnswer() {
  const { sentence, scores } = played.at(-1);
  const { words, mask } = sentence;
  const hits = marks.filter((mark, i) => mark && mask[i]).length;
  const truth = mask.filter(Boolean).length;
  at("answer-head").textContent = `You found ${hits} of the ${plural(truth, "changed word")}`;
  const others = marks.filter(Boolean).length - hits;
  const wrong = others ? `${plural(others, "word")} that you marked did not change.` : "Every word that you marked is one of them.";
  const changed = words.filter((_, i) => mask[i]).join(", ");
  at("verdict").textContent = `Changed: ${changed}. ${wrong} Your mass accuracy is ${shown(scores.You.mass)}, your ROC-AUC ${shown(scores.You.roc)}.`;
  at("forms").replaceChildren(...sentence.forms.map((form, k) => {
    const line = element("span", {});
    form.forEach((word, i) => line.append(
      element("span", { class: mask[i] ? "word truth" : "word" }, word), " "));
    return element("div", { class: "form" }, element("b", {}, DATA.forms[k]), line);
  }));
  at("probabilities").replaceChildren(...sentence.probabilities.map((chance, k) =>
    element("div", { class: "chance" }, element("b", {}, DATA.forms[k]), bar(chance),
      element("span", { class: "number" }, shown(chance)))));
  drawRanking();
}

function drawRanking() {
  const { sentence, marks: own, scores } = played.at(-1);
  const players = [{ name: "You", label: "You", kind: "you", weights: own },
    ...METHODS.map((method) => ({ ...method, weights: sentence.scores[method.name] }))];
  const ranked = players.map((player) => ({ ...player, ...scores[player.name] })).sort(byMeasure);
  table("ranking", [["who", ""], ["weight on each word", ""], [MEASURES.mass, "number"], [MEASURES.roc, "number"]],
    ranked.map((player) => rowOf(player,
      cell("said", "", ...coloured(sentence.words, player.weights, sentence.mask)),
      cell("number", MEASURES.mass, shown(player.mass)), cell("number", MEASURES.roc, shown(player.roc)))));
}

// ---- everything so far

function drawMeans() {
  const rows = means(measure()).sort(byMeasure), you = rows.find(({ kind }) => kind === "you");
  const n = plural(played.length, "sentence"), over = played.length === DATA.sentences.length;
  at("sofar-head").textContent = over ? `The end: means over all ${n}` : `So far: means over ${n}`;
  const explainers = rows.filter(({ kind }) => kind === "explainer");
  const below = explainers.filter((row) => row[measure()] < you[measure()] - LEVEL).length;
  const rule = rows.find(({ name }) => name === "First pronoun");
  at("summary").textContent = `By ${MEASURES[measure()]} you are ahead of ${below} of the ` +
    `${explainers.length} explainers. Always the first pronoun, which never looks at the model, has a ` +
    `mass accuracy of ${shown(rule.mass)} and a ROC-AUC of ${shown(rule.roc)}.` + (over && rule.mass > 0.95 ?
      " So a high mass accuracy alone does not show that a method explains a model." : "");
  const drawn = (label, value) => [cell("drawn", label, bar(value)), cell("number", "", shown(value))];
  table("means", [["who", ""], [MEASURES.mass, ""], ["", ""], [MEASURES.roc, ""], ["", ""], ["you ahead, level, behind", ""]],
    rows.map((row) => rowOf(row, ...drawn(MEASURES.mass, row.mass), ...drawn(MEASURES.roc, row.roc),
      cell("ahead", row.kind === "you" ? "" : "you:", row.kind === "you" ? "" :
        `ahead ${row.ahead}, level ${row.level}, behind ${row.behind}`))));
}

function next() {
  if (current + 1 < DATA.sentences.length) {
    current += 1;
    drawTask();
    at("task").scrollIntoView();
    at("task-head").focus({ preventScroll: true });
  } else {
    at("next").hidden = true;
    at("sofar").scrollIntoView();
    at("sofar-head").focus({ preventScroll: true });
  }
}

function again() {
  current = 0;
  played = [];
  at("sofar").hidden = true;
  drawTask();
  at("task").scrollIntoView();
  at("task-head").focus({ preventScroll: true });
}

/** What was marked and what it scored, a line a sentence, as CSV. */
function csv() {
  const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
  const lines = played.map(({ sentence, marks: own, scores }) => [sentence.row_id,
    quoted(sentence.words.join(" ")), own.join(""), sentence.mask.join(""), scores.You.mass, scores.You.roc]);
  return [["row_id", "sentence", "marks", "mask", "MA", "roc_auc"], ...lines].map((line) => line.join(",")).join("\n") + "\n";
}

function save() {
  const link = element("a", { download: "marks.csv",
    href: URL.createObjectURL(new Blob([csv()], { type: "text/csv" })) });
  link.click();
  URL.revokeObjectURL(link.href);
}

at("words").addEventListener("keydown", move);
at("show").addEventListener("click", answer);
at("next").addEventListener("click", next);
at("again").addEventListener("click", again);
at("save").addEventListener("click", save);
at("measure").addEventListener("change", () => { drawMeans(); drawRanking(); });
drawTask();
