// Draws every figure of a page with Vega, in the page's own colours, and again when light turns to dark.
const look = () => {
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name).trim());
  const text = { labelColor: ink, titleColor: ink };
  return {
    background: "transparent",
    axis: { ...text, gridColor: line, tickColor: line, domainColor: line },
    legend: text,
    view: { stroke: null },
  };
};

// Expressions are interpreted, not compiled, so that the page needs no right to evaluate text as code.
const drawFigure = (place, spec, renderer = "svg") =>
  window.vegaEmbed(place, spec, { actions: false, ast: true, renderer, config: look() });

window.drawFigure = drawFigure;

const drawAll = () => {
  for (const data of document.querySelectorAll("script[data-figure]")) {
    drawFigure(document.getElementById(data.dataset.figure), JSON.parse(data.textContent))
      .then(() => { document.documentElement.dataset.drawn = "yes"; });
  }
};
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
