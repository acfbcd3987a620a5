"use strict";
// Theme: the system's until the button is pressed.
const root = document.documentElement, theme = document.getElementById("theme");
const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
theme.hidden = false;
theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
nameTheme();

// Tables: a button in each header sorts, numbers as numbers, empty cells last.
function compare(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    addEventListener("beforeprint", () => head.replaceChildren(button.textContent)); // browsers repeat no buttons on new pages
    addEventListener("afterprint", () => head.replaceChildren(button));
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value;
      const order = (a, b) => (value(a) === "" || value(b) === "" || !down ? 1 : -1) * compare(value(a), value(b));
      body.append(...[...body.rows].sort(order));
    });
  });
}

// Tables that go on to the right or below fade there until they are scrolled to the end.
for (const box of document.querySelectorAll(".edges > .scroll")) {
  const fade = () => {
    const { classList } = box.parentElement;
    classList.toggle("right", box.scrollWidth - box.clientWidth - box.scrollLeft > 2);
    classList.toggle("below", box.scrollHeight - box.clientHeight - box.scrollTop > 2);
  };
  box.addEventListener("scroll", fade, { passive: true });
  new ResizeObserver(fade).observe(box);
  fade();
}

// Marks and lines of tables that stand for the same row of the file light up together.
function light(row, on) {
  for (const each of row ? document.querySelectorAll(`[data-row="${row}"]`) : []) each.classList.toggle("on", on);
}
for (const line of document.querySelectorAll("tr[data-row]")) {
  line.addEventListener("pointerenter", () => light(line.dataset.row, true));
  line.addEventListener("pointerleave", () => light(line.dataset.row, false));
}

// Plots: the mark under or near the pointer, or moved to by arrow keys, tells what it is.
for (const plot of document.querySelectorAll(".plot")) {
  const svg = plot.querySelector("svg"), tip = plot.querySelector(".tip"), marks = [...svg.querySelectorAll(".mark")];
  let current = -1;
  const show = (number) => {
    if (number === current) return;
    marks[current]?.classList.remove("on");
    light(marks[current]?.dataset.row, false);
    current = number;
    tip.hidden = number < 0;
    if (number < 0) return;
    const mark = marks[number];
    mark.classList.add("on");
    light(mark.dataset.row, true);
    tip.textContent = mark.dataset.tip;
    const box = mark.getBoundingClientRect(), here = plot.getBoundingClientRect();
    const left = box.left + box.width / 2 - here.left - tip.offsetWidth / 2;
    const above = box.top - here.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(0, Math.min(left, here.width - tip.offsetWidth))}px`;
    tip.style.top = `${above < -20 ? box.bottom - here.top + 8 : above}px`;
  };
  const nearest = (event) => {
    const under = marks.indexOf(event.target);
    if (under >= 0) return under;
    const here = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / here.width;
    const x = (event.clientX - here.left) * scale, y = (event.clientY - here.top) * scale;
    let best = -1, least = 14 ** 2;
    marks.forEach((mark, number) => {
      const far = mark.cx ? (mark.cx.baseVal.value - x) ** 2 + (mark.cy.baseVal.value - y) ** 2 : Infinity;
      if (far < least) [best, least] = [number, far];
    });
    return best;
  };
  svg.addEventListener("pointermove", (event) => show(nearest(event)));
  svg.addEventListener("pointerdown", (event) => show(nearest(event)));
  plot.addEventListener("pointerleave", () => show(-1));
  plot.addEventListener("blur", () => show(-1));
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") show(-1);
    if (!step || !marks.length) return;
    event.preventDefault();
    show((Math.max(current, step > 0 ? -1 : 0) + step + marks.length) % marks.length);
  });
}

// Code: copied by a button, where the browser lets pages do that.
for (const button of navigator.clipboard ? document.querySelectorAll(".copy") : []) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.nextElementSibling.textContent);
    button.textContent = "Copied";
  });
}
