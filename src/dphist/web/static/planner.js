// Asks for one mechanism's forecast at a time, so that quick ones are not kept waiting by slow ones.
const $ = (id) => document.getElementById(id);
const mechanisms = JSON.parse($("mechanisms").textContent);
const workloads = [...JSON.parse($("workloads").textContent), "question"];
let turn = 0;

const number = (value, digits = 1) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const error = (value) => (value === null || value === undefined ? "–" : `±${number(value)}`);
const cell = (name, text, kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });

const line = (said) => {
  const row = document.createElement("tr");
  const head = cell("th", said.mechanism);
  head.scope = "row";
  row.append(head, ...workloads.map((name) => cell("td", said.shown[name] ?? "–", "number")));
  row.append(cell("td", said.epsilon_needed ? String(+said.epsilon_needed.toPrecision(3)) : "–", "number"), cell("td", said.basis, "small"));
  row.dataset.error = said.errors.question ?? said.errors.ranges ?? Infinity;
  return row;
};

// Pure ε, (ε, δ) and ρ side by side, for the question that matters.
const priced = (said) => {
  const row = document.createElement("tr");
  row.append(Object.assign(cell("th", said.mechanism), { scope: "row" }), ...said.currencies.map((each) => cell("td", each.shown, "number")));
  row.dataset.error = Math.min(...said.currencies.map((each) => each.error ?? Infinity));
  return row;
};

// The limit does not depend on the mechanism; one that could not be forecast may come without it.
const bound = (said) => {
  for (const [name, value] of Object.entries(said.limits)) {
    const place = document.querySelector(`[data-limit="${name}"]`);
    if (place && value !== null) place.textContent = error(value);
  }
  $("currency-head").replaceChildren(...["mechanism", ...said.currencies.map((each) => each.budget)].map((text, i) => Object.assign(cell("th", text, i ? "number" : ""), { scope: "col" })));
  if (said.currencies.some((each) => each.limit !== null)) {
    $("currency-limit").replaceChildren(Object.assign(cell("th", "limit"), { scope: "row" }), ...said.currencies.map((each) => cell("td", error(each.limit), "number")));
  }
};

const asked = async (form, mechanism, epsilon, only = "") => {
  const pairs = [...form.entries()].filter(([key]) => key !== "epsilon");
  const body = new URLSearchParams([...pairs, ["epsilon", epsilon], ["mechanism", mechanism], ["only", only]]);
  const reply = await fetch("/api/plan", { method: "POST", body });
  const said = await reply.json();
  if (!reply.ok) throw new Error(said.error);
  return said;
};

// How the error falls with ε, for the default and for plain noise.
const curve = async (form, mine) => {
  const best = ["auto", "laplace"].filter((name) => mechanisms.includes(name));
  const middle = Number(form.get("epsilon"));
  if (!(middle > 0) || !best.length) return;
  const places = [0.1, 0.3, 1, 3].map((factor) => String(+(middle * factor).toPrecision(2)));
  const points = [];
  for (const epsilon of places) {
    for (const mechanism of best) {
      $("working").textContent = `error against ε: ${mechanism} at ${epsilon} …`;
      const said = await asked(form, mechanism, epsilon, "question");
      if (mine !== turn) return;
      const off = said.errors.question ?? said.errors.ranges;
      // Less than a tenth of a record is no error at all.
      if (off >= 0.1) points.push({ epsilon: Number(epsilon), mechanism, error: off });
    }
  }
  if (!points.length) return;
  $("curve").hidden = false;
  const cellOf = (mechanism, epsilon) => points.find((each) => each.mechanism === mechanism && each.epsilon === Number(epsilon));
  const head = document.createElement("tr");
  head.append(...["ε", ...best].map((name) => Object.assign(cell("th", name), { scope: "col" })));
  $("curve-head").replaceChildren(head);
  $("curve-rows").replaceChildren(...places.map((epsilon) => {
    const row = document.createElement("tr");
    const label = Object.assign(cell("th", epsilon), { scope: "row" });
    row.append(label, ...best.map((mechanism) => cell("td", error(cellOf(mechanism, epsilon)?.error), "number")));
    return row;
  }));
  const allowed = Number(form.get("error"));
  const log = (title, field) => ({ field, type: "quantitative", scale: { type: "log", nice: false }, title });
  drawn = {
    $schema: "https://vega.github.io/schema/vega-lite/v5.json", width: "container", height: 260, data: { values: points },
    layer: [
      { mark: { type: "line", point: true }, encoding: {
        x: { ...log("ε", "epsilon"), axis: { values: places.map(Number), grid: false } },
        y: log("± records", "error"),
        color: { field: "mechanism", type: "nominal", title: null, legend: { orient: "top" } },
        tooltip: [{ field: "mechanism" }, { field: "epsilon", title: "ε" }, { field: "error", format: ",.1f", title: "±" }],
      } },
      ...(allowed > 0 ? [{ data: { values: [{ allowed }] }, mark: { type: "rule", strokeDash: [5, 4], color: "#d9720b" }, encoding: { y: { field: "allowed", type: "quantitative" } } }] : []),
    ],
  };
  await window.drawFigure($("curve-chart"), drawn);
  document.documentElement.dataset.drawn = "yes";
};

let drawn = null;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (drawn) window.drawFigure($("curve-chart"), drawn); });

const forecast = async () => {
  const mine = ++turn;
  $("problem").textContent = "";
  const form = new FormData($("plan"));
  const rows = [], prices = [];
  document.querySelectorAll("[data-limit]").forEach((place) => { place.textContent = "–"; });
  $("currency-limit").replaceChildren();
  try {
    await curve(form, mine);
  } catch (wrong) {
    if (mine === turn) { $("problem").textContent = wrong.message; $("working").textContent = ""; }
    return;
  }
  if (mine !== turn) return;
  for (const [place, mechanism] of mechanisms.entries()) {
    $("working").textContent = `forecasting ${mechanism} (${place + 1} of ${mechanisms.length}) …`;
    let said = null;
    try {
      said = await asked(form, mechanism, form.get("epsilon"));
    } catch (wrong) {
      if (mine === turn) { $("problem").textContent = wrong.message; $("working").textContent = ""; }
      return;
    }
    if (mine !== turn) return;
    rows.push(line(said));
    prices.push(priced(said));
    bound(said);
    for (const each of [rows, prices]) each.sort((a, b) => Number(a.dataset.error) - Number(b.dataset.error));
    $("rows").replaceChildren(...rows);
    $("currency-rows").replaceChildren(...prices);
    $("results").hidden = false;
  }
  if (mine === turn) $("working").textContent = "done";
};

const slider = $("slider");
slider.hidden = false;
const follow = () => { const value = Math.log10(Number($("epsilon").value)); if (Number.isFinite(value)) slider.value = value; };
slider.addEventListener("input", () => { $("epsilon").value = String(+(10 ** Number(slider.value)).toPrecision(2)); });
slider.addEventListener("change", forecast);
$("epsilon").addEventListener("input", follow);
$("plan").addEventListener("submit", (event) => { event.preventDefault(); forecast(); });
follow();
// Begin with the example in the form, so that nobody meets an empty page.
forecast();
