// Turns clicks and drags into questions, asks the server, and shows what it says. All numbers come from the server.
const $ = (id) => document.getElementById(id);
const number = (value) => value === null ? "–" : value.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const release = document.querySelector("input[name=release]").value;
let state = JSON.parse($("state").textContent);
let asked = 0;

const parameters = (change = {}) => {
  const now = { release, q: state.question, show: state.show, by: state.by, confidence: state.confidence,
    interval: state.interval === "guaranteed" ? "guaranteed" : "", colour: state.colour === "uncertainty" ? "uncertainty" : "", bins: $("bins").checked ? "spread" : "",
    window: state.window ? state.window.join("-") : "", node: state.node ?? "", ...change };
  return new URLSearchParams(Object.entries(now).filter(([, value]) => value !== "" && value !== null && value !== undefined));
};

// Under a question that failed stands no answer: the last one is that of another.
const problem = (said) => {
  $("problem").textContent = said;
  document.body.classList.toggle("failed", said !== "");
};

const ask = async (change) => {
  const turn = ++asked;
  document.body.classList.add("busy");
  try {
    const reply = await fetch(`/api/view?${parameters(change)}`);
    const said = await reply.json();
    if (turn !== asked) return;  // A newer question overtook this one.
    if (!reply.ok) throw new Error(said.error);
    state = said;
    problem("");
    show();
    history.replaceState(null, "", `/?${parameters()}`);
  } catch (error) {
    if (turn === asked) problem(error.message);
  } finally {
    if (turn === asked) document.body.classList.remove("busy");
  }
};

const element = (name, text, properties = {}) => Object.assign(document.createElement(name), { textContent: text, ...properties });
const button = (text, act, title = "") => {
  const made = element("button", text, { type: "button", title });
  made.addEventListener("click", act);
  return made;
};

const choose = (spans) => ask({ axis: state.show, cells: spans.map((span) => span.join("-")).join(",") });

const toggle = (start, stop) => {
  // Take the cells out if they are all chosen, else add them.
  const spans = state.conditions[state.show].spans ?? [];
  const inside = spans.some(([a, b]) => a <= start && stop <= b);
  if (!inside) return choose([...spans, [start, stop]]);
  return choose(spans.flatMap(([a, b]) => [[a, Math.min(b, start)], [Math.max(a, stop), b]]).filter(([a, b]) => a < b));
};

const moves = () => {
  const made = [];
  if (state.by) { $("moves").replaceChildren(); return; }
  if (state.kind === "nominal") {
    state.crumbs.forEach((crumb, i) => {
      const last = i === state.crumbs.length - 1;
      const one = button(last ? crumb.name : `${crumb.name} ›`, () => ask({ node: crumb.node }), "Roll up to this group");
      one.disabled = last;
      made.push(one);
    });
  } else {
    const spans = state.conditions[state.show].spans;
    const into = button("Zoom to selection", () => ask({ window: `${spans[0][0]}-${spans.at(-1)[1]}` }));
    into.disabled = !spans;
    const out = button("Zoom out", () => ask({ window: "" }));
    out.disabled = !state.window;
    made.push(into, out);
  }
  $("moves").replaceChildren(...made);
};

const rows = () => {
  $("label").textContent = state.show;
  $("numbers").hidden = !state.rows.length;
  $("rows").replaceChildren(...state.rows.map((row) => {
    const line = document.createElement("tr");
    line.append(element("th", row.label, { scope: "row" }));
    line.append(element("td", number(row.estimate), { className: "number" }));
    if (row.low === null) line.append(element("td", "not measured", { className: "number soft", colSpan: 2 }));
    else for (const value of [row.low, row.high]) line.append(element("td", number(value), { className: row.measured ? "number" : "number soft" }));
    const cell = document.createElement("td");
    const pick = button("choose", () => (state.kind === "nominal" ? toggle(row.start, row.stop) : choose([[row.start, row.stop]])));
    pick.className = "link";
    pick.setAttribute("aria-label", `choose ${row.label}`);
    cell.append(pick);
    if (row.opens) {
      const open = button("open", () => ask({ node: row.node }));
      open.className = "link";
      open.setAttribute("aria-label", `open ${row.label}`);
      cell.append(" ", open);
    }
    line.append(cell);
    return line;
  }));
};

const controls = () => {
  for (const field of document.querySelectorAll("fieldset[data-axis]")) {
    const now = state.conditions[field.dataset.axis];
    field.querySelector("[data-words]").textContent = now.words;
    for (const input of field.querySelectorAll("[data-side]")) input.value = now[input.dataset.side];
    for (const box of field.querySelectorAll("input[type=checkbox]")) {
      const [start, stop] = [Number(box.dataset.start), Number(box.dataset.stop)];
      const spans = now.spans ?? [];
      box.checked = spans.some(([a, b]) => a <= start && stop <= b);
      box.indeterminate = !box.checked && spans.some(([a, b]) => a < stop && start < b);
    }
  }
};

const chart = async () => {
  const shaded = state.by && state.colour === "uncertainty" ? "How far off records may be, by" : "Records by";
  $("caption").textContent = `${shaded} ${state.show}${state.by ? ` and ${state.by}` : ""}`
    + (state.intervals ? `, ${state.intervals}` : "")
    + (state.by || state.kind === "nominal" ? "" : ". Drag over the figure to choose a range.");
  const drawn = await window.drawFigure($("chart"), state.spec, state.by ? "canvas" : "svg");
  const names = Object.keys(drawn.view.getState({ signals: (name) => name === "brush" }).signals ?? {});
  if (names.length) {
    let dragged = null;
    drawn.view.addSignalListener("brush", (_, value) => { dragged = value.start ?? null; });
    $("chart").onpointerup = () => setTimeout(() => {
      if (!dragged) return;
      const [low, high] = dragged;
      const touched = state.rows.filter((row) => row.start < high && low < row.stop);
      dragged = null;
      if (touched.length) choose([[touched[0].start, touched.at(-1).stop]]);
    }, 0);
  } else {
    $("chart").onpointerup = null;
    drawn.view.addEventListener("click", (_, item) => {
      const row = item?.datum;
      if (state.by || row?.start === undefined || row.node === undefined) return;
      const known = state.rows.find((each) => each.node === row.node && each.start === row.start);
      if (known?.opens) ask({ node: known.node }); else if (known) toggle(known.start, known.stop);
    });
  }
  document.documentElement.dataset.drawn = String(asked);
};

const show = () => {
  const said = state.answer;
  const known = said.low !== null;
  const kind = said.measured ? "interval" : "bounds";  // What nobody measured is a guess between bounds.
  Object.assign($("value").dataset, { value: said.value ?? "", low: said.low ?? "", high: said.high ?? "" });
  $("value").textContent = number(said.value);
  $("interval").textContent = (said.measured ? "" : "not measured") + (known
    ? `${said.measured ? "" : "; "}${+(100 * said.confidence).toFixed(6)}% ${kind} ${number(said.low)} to ${number(said.high)}` : "");
  $("caveats").replaceChildren(...said.caveats.map((sentence) => element("p", sentence, { className: "small" })));
  $("method").textContent = known ? said.method : "";
  $("details").textContent = said.details;
  $("measures").hidden = !state.measures.length;
  $("measures").replaceChildren(...state.measures.map((each) => {
    const line = document.createElement("li");
    line.textContent = `${each.name}: mean ${each.mean}, sum ${each.sum}`;
    return line;
  }));
  $("python").textContent = state.python;
  $("q").value = state.question;
  $("show").value = state.show;
  if ($("by")) $("by").value = state.by ?? "";
  $("guaranteed").checked = state.interval === "guaranteed";
  $("shade").hidden = !state.by;
  $("colour").value = state.colour;
  $("download").href = `/download.csv?${parameters({ window: "", node: "" })}`;
  controls();
  moves();
  rows();
  chart();
};

$("ask").addEventListener("submit", (event) => { event.preventDefault(); ask({ q: $("q").value }); });
$("clear").addEventListener("click", () => ask({ q: "", window: "", node: "" }));
$("show").addEventListener("change", () => ask({ show: $("show").value, window: "", node: "" }));
$("by")?.addEventListener("change", () => ask({ by: $("by").value, window: "", node: "" }));
$("guaranteed").addEventListener("change", () => ask({ interval: $("guaranteed").checked ? "guaranteed" : "calibrated" }));
$("bins").addEventListener("change", () => ask({ q: $("q").value }));
$("colour").addEventListener("change", () => ask({ colour: $("colour").value }));
$("confidence").addEventListener("change", () => ask({ confidence: $("confidence").value }));
$("release")?.addEventListener("change", () => { location.href = `/?release=${$("release").value}`; });
for (const field of document.querySelectorAll("fieldset[data-axis]")) {
  field.addEventListener("change", () => {
    const axis = field.dataset.axis;
    if (field.dataset.input === "tree") {
      const boxes = [...field.querySelectorAll("input[type=checkbox]")];
      const spans = boxes.filter((box) => box.checked).map((box) => `${box.dataset.start}-${box.dataset.stop}`);
      ask({ axis, cells: spans.join(",") });
    } else {
      const side = (name) => field.querySelector(`[data-side=${name}]`).value;
      ask({ axis, from: side("from"), to: side("to") });
    }
  });
}
// A group and what is under it go together.
document.addEventListener("click", (event) => {
  const box = event.target;
  if (box.type !== "checkbox" || !box.dataset.axis) return;
  const [start, stop] = [Number(box.dataset.start), Number(box.dataset.stop)];
  for (const each of box.closest("fieldset").querySelectorAll("input[type=checkbox]")) {
    const [a, b] = [Number(each.dataset.start), Number(each.dataset.stop)];
    if (start <= a && b <= stop) each.checked = box.checked;
    else if (a <= start && stop <= b && !box.checked) each.checked = false;
  }
}, true);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", chart);
show();
