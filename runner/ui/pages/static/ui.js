"use strict";
(() => {
  const live = document.getElementById("live");
  const typing = (part) => [...part.querySelectorAll("input, textarea, select")].some(
    (field) => field === document.activeElement || (field.type !== "hidden" && field.defaultValue !== undefined && field.value !== field.defaultValue));

  let due = false, running = false, told = Number(live?.dataset.line), written = -1;

  // The page is made by the server; only what changed on it is put in place, and what is open stays open.
  const refresh = async (ids) => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html", "Refold-Again": "1" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    due ||= live && Number(fresh.getElementById("live").dataset.line) < told; // made a moment before that line
    for (const id of ids) {
      const part = document.getElementById(id), now = fresh.getElementById(id);
      if (!part || !now || typing(part)) continue;
      const open = [...part.querySelectorAll("details[open]")].map((one) => one.id).filter(Boolean);
      const filter = part.querySelector("#filter")?.value;
      const focus = document.activeElement?.id;
      const kept = Number(now.dataset.line) <= written ? [...part.querySelectorAll("#text, #progress")] : [];
      part.replaceChildren(...now.childNodes);
      for (const one of kept) document.getElementById(one.id).replaceWith(one); // only the page was told of it
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

  // A long log is shown in parts: what an address names is looked up where this part does not have it.
  const find = () => {
    const id = location.hash.slice(1), asked = new URLSearchParams({ near: decodeURIComponent(id) });
    if (live && id && !document.getElementById(asked.get("near")) && location.search.slice(1) !== String(asked))
      location.replace(`?${asked}#${id}`);
  };
  addEventListener("hashchange", find);
  find();

  // What is not saved was told after a line, and goes with the next one.
  const unsaved = (id) => {
    const [text, progress] = ["text", "progress"].map((one) => document.getElementById(one));
    if (written < told) {
      text.hidden = progress.hidden = true;
      progress.replaceChildren();
    }
    written = told;
    const part = id === "text" ? text : progress;
    part.hidden = false;
    return part;
  };

  if (live?.dataset.events) {
    const source = new EventSource(`${live.dataset.events}?after=${live.dataset.line}`);
    source.addEventListener("saved", (event) => {
      told = JSON.parse(event.data).line;
      document.getElementById("line").textContent = told;
      soon(["live", "report"]);
    });
    source.addEventListener("text", (event) => {
      const text = unsaved("text");
      text.textContent = JSON.parse(event.data).text;
      text.scrollTop = text.scrollHeight;
    });
    source.addEventListener("progress", (event) => {
      const said = JSON.parse(event.data), list = unsaved("progress"), id = `progress-${said.call}`;
      let row = document.getElementById(id);
      if (!row) { row = document.createElement("li"); row.id = id; list.append(row); }
      row.textContent = `${said.call} ${said.tool}: ${said.fraction === null ? "" : `${Math.round(said.fraction * 100)} % `}${said.text}`;
    });
    source.addEventListener("over", () => { source.close(); soon(["live", "report"]); });
  } else for (const id of ["list", "inbox"])
    if (document.getElementById(id)) setInterval(() => { if (!document.hidden) soon([id]); }, 2000);
})();
