// Names for what the theme leaves without one, and keys for what scrolls.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary:has(.toctree-toggle)")) {
    const page = summary.closest("li").querySelector("a").textContent.trim();
    summary.setAttribute("aria-label", `pages below ${page}`);
  }
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
  window.MathJax?.startup?.promise?.then(() => {
    for (const formula of document.querySelectorAll("mjx-container[display]")) {
      if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
    }
  });
});
