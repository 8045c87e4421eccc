// Asks for one mechanism's forecast at a time, so that quick ones are not kept waiting by slow ones.
const $ = (id) => document.getElementById(id);
const mechanisms = JSON.parse($("mechanisms").textContent);
const workloads = [...JSON.parse($("workloads").textContent), "question"];
let turn = 0;

const number = (value, digits = 1) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const error = (value) => (value === null || value === undefined ? "–" : `±${number(value)}`);
// What was simulated carries its spread: the best and the worst run over all made-up populations.
const spread = (said, name) => (said.worst[name] > said.best[name] ? ` (${number(said.best[name])} to ${number(said.worst[name])})` : "");
const cell = (name, text, kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });

const line = (said) => {
  const row = document.createElement("tr");
  const head = cell("th", said.mechanism);
  head.scope = "row";
  row.append(head, ...workloads.map((name) => cell("td", error(said.errors[name]) + spread(said, name), "number")));
  row.append(cell("td", said.epsilon_needed ? String(+said.epsilon_needed.toPrecision(3)) : "–", "number"), cell("td", said.basis, "small"));
  row.dataset.error = said.errors.question ?? said.errors.ranges ?? Infinity;
  return row;
};

const forecast = async () => {
  const mine = ++turn;
  $("problem").textContent = "";
  const form = new FormData($("plan"));
  const rows = [];
  for (const [place, mechanism] of mechanisms.entries()) {
    $("working").textContent = `forecasting ${mechanism} (${place + 1} of ${mechanisms.length}) …`;
    const body = new URLSearchParams([...form.entries(), ["mechanism", mechanism]]);
    const reply = await fetch("/api/plan", { method: "POST", body });
    const said = await reply.json();
    if (mine !== turn) return;
    if (!reply.ok) { $("problem").textContent = said.error; $("working").textContent = ""; return; }
    rows.push(line(said));
    rows.sort((a, b) => Number(a.dataset.error) - Number(b.dataset.error));
    $("rows").replaceChildren(...rows);
    $("results").hidden = false;
  }
  $("working").textContent = "done";
};

const slider = $("slider");
slider.hidden = false;
const follow = () => { const value = Math.log10(Number($("epsilon").value)); if (Number.isFinite(value)) slider.value = value; };
slider.addEventListener("input", () => { $("epsilon").value = String(+(10 ** Number(slider.value)).toPrecision(2)); });
slider.addEventListener("change", forecast);
$("epsilon").addEventListener("input", follow);
$("plan").addEventListener("submit", (event) => { event.preventDefault(); forecast(); });
follow();
