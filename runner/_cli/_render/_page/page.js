
"use strict";
(() => {
  window.refoldPage?.abort(); // where the page is shown live, this runs again for its new content
  window.refoldPage = new AbortController();
  const { signal } = window.refoldPage;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const filter = document.getElementById("filter");
  const counted = document.getElementById("counted");
  const unfold = document.getElementById("unfold");
  const nothing = document.getElementById("nothing");
  const rows = all("#rows > *");
  const items = all("#rows > .item");
  const lines = all("#lines > .item");
  const words = new Map(); // what an item says, in lower case, found out when first asked
  let show = "";

  const says = (item) => {
    if (!words.has(item)) words.set(item, item.textContent.toLowerCase());
    return words.get(item);
  };

  // An item matches when it holds every word; an ask stays while one of its calls does, so that a call keeps its turn.
  const apply = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (item) => wanted.every((word) => says(item).includes(word));
    const found = items.filter((item) => (!show || item.dataset.is.split(" ").includes(show)) && matches(item));
    const turns = new Set(found.filter((item) => item.dataset.is.startsWith("call")).map((item) => item.dataset.turn));
    const kept = new Set(found);
    if (wanted.length || show)
      for (const item of items)
        if (item.dataset.is.startsWith("ask") && turns.has(item.dataset.turn)) kept.add(item);
    for (const item of items) item.hidden = !kept.has(item);
    let below = false; // whether anything is left below a heading, seen from the end
    for (const row of [...rows].reverse()) {
      if (row.classList.contains("item")) below ||= !row.hidden;
      else {
        row.hidden = !below && Boolean(wanted.length || show);
        if (row.classList.contains("gap") || !rows[rows.indexOf(row) - 1]?.classList.contains("gap")) below = false;
      }
    }
    for (const line of lines) line.hidden = !matches(line);
    counted.textContent = wanted.length || show ? `${found.length} of ${items.length}` : `${items.length} rows`;
    nothing.hidden = found.length > 0;
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a page that was opened as a file may not use the clipboard, but for what is selected
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden && filter) { filter.value = ""; pick(""); }
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView();
  };

  const pick = (name) => {
    show = name;
    for (const chip of all("[data-show]")) chip.setAttribute("aria-pressed", String(chip.dataset.show === name));
    apply();
  };

  document.addEventListener("click", (event) => {
    const id = event.target.closest(".id");
    if (id) {
      event.preventDefault(); // inside a summary it would open the item
      copy(id.textContent).then(() => {
        id.classList.add("copied");
        setTimeout(() => id.classList.remove("copied"), 1200);
      });
    }
    const chip = event.target.closest("[data-show]");
    if (chip) pick(chip.dataset.show);
  }, { signal });
  addEventListener("hashchange", openTarget, { signal });

  let before = [];
  addEventListener("beforeprint", () => {
    before = items.filter((item) => !item.open);
    for (const item of before) item.open = true;
  }, { signal });
  addEventListener("afterprint", () => { for (const item of before) item.open = false; }, { signal });

  if (filter) {
    let due;
    filter.addEventListener("input", () => { clearTimeout(due); due = setTimeout(apply, 80); });
    unfold.addEventListener("click", () => {
      const open = unfold.textContent === "open all";
      for (const item of items) if (!item.hidden) item.open = open;
      unfold.textContent = open ? "close all" : "open all";
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && document.activeElement !== filter) { event.preventDefault(); filter.focus(); }
      if (event.key === "Escape" && document.activeElement === filter) { filter.value = ""; apply(); }
    }, { signal });
    apply();
  }
  openTarget();
})();
