"use strict";
(() => {
  const live = document.getElementById("live");
  const typing = (part) => [...part.querySelectorAll("input, textarea, select")].some(
    (field) => field === document.activeElement || (field.type !== "hidden" && field.defaultValue !== undefined && field.value !== field.defaultValue));

  // The page is made by the server; only what changed on it is put in place, and what is open stays open.
  const refresh = async (ids) => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of ids) {
      const part = document.getElementById(id), now = fresh.getElementById(id);
      if (!part || !now || typing(part)) continue;
      const open = [...part.querySelectorAll("details[open]")].map((one) => one.id).filter(Boolean);
      const filter = part.querySelector("#filter")?.value;
      const focus = document.activeElement?.id;
      part.replaceChildren(...now.childNodes);
      for (const one of open) { const details = document.getElementById(one); if (details) details.open = true; }
      if (filter) part.querySelector("#filter").value = filter;
      if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
    }
    const script = [...document.scripts].find((one) => one.textContent.includes("refoldPage"));
    if (script && ids.includes("report")) { // the report's own script again, for the new content
      const again = document.createElement("script");
      again.textContent = script.textContent;
      script.replaceWith(again);
    }
  };

  let due = false, running = false;
  const soon = async (ids) => {
    due = true;
    if (running) return;
    running = true;
    while (due) {
      due = false;
      const began = performance.now();
      await refresh(ids).catch(() => {});
      const rest = Math.max(400, 9 * (performance.now() - began)); // a long page costs its server a tenth of the time
      await new Promise((done) => setTimeout(done, rest));
    }
    running = false;
  };

  if (live) {
    const source = new EventSource(`${live.dataset.events}?after=${live.dataset.line}`);
    source.addEventListener("saved", (event) => {
      document.getElementById("line").textContent = JSON.parse(event.data).line;
      soon(["live", "report"]);
    });
    source.addEventListener("text", (event) => {
      const text = document.getElementById("text");
      text.hidden = false;
      text.textContent = JSON.parse(event.data).text;
      text.scrollTop = text.scrollHeight;
    });
    source.addEventListener("progress", (event) => {
      const told = JSON.parse(event.data), list = document.getElementById("progress"), id = `progress-${told.call}`;
      let row = document.getElementById(id);
      if (!row) { row = document.createElement("li"); row.id = id; list.append(row); }
      list.hidden = false;
      row.textContent = `${told.call} ${told.tool}: ${told.fraction === null ? "" : `${Math.round(told.fraction * 100)} % `}${told.text}`;
    });
    source.addEventListener("over", () => { source.close(); soon(["live", "report"]); });
  } else for (const id of ["list", "inbox"])
    if (document.getElementById(id)) setInterval(() => { if (!document.hidden) soon([id]); }, 2000);
})();
