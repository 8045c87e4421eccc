// Draws every figure of a page with Vega, in the page's own colours, and again when light turns to dark.
const look = () => {
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
  const text = { labelColor: ink, titleColor: ink };
  return {
    background: "transparent",
    axis: { ...text, gridColor: line, tickColor: line, domainColor: line },
    legend: text,
    text: { color: ink },
    view: { stroke: null },
  };
};

// Expressions are interpreted, not compiled, so that the page needs no right to evaluate text as code.
// The place is named and its numbers stand in a table; a screen reader need not walk through every mark of the drawing.
const drawFigure = async (place, spec, renderer = "svg") => {
  const drawn = await window.vegaEmbed(place, spec, { actions: false, ast: true, renderer, config: look() });
  place.querySelector("svg")?.setAttribute("aria-hidden", "true");
  return drawn;
};

window.drawFigure = drawFigure;

const drawAll = () => {
  for (const data of document.querySelectorAll("script[data-figure]")) {
    const sure = document.querySelector(`script[data-sure="${data.dataset.figure}"]`);
    const chosen = document.body.classList.contains("guaranteed") && sure ? sure : data;
    drawFigure(document.getElementById(data.dataset.figure), JSON.parse(chosen.textContent))
      .then(() => { document.documentElement.dataset.drawn = "yes"; });
  }
};
drawAll();
// A report has both kinds of intervals in it, and a switch between them.
const guaranteed = document.querySelector("#guaranteed[type=checkbox]:not([name])");
guaranteed?.addEventListener("change", () => {
  document.body.classList.toggle("guaranteed", guaranteed.checked);
  drawAll();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
