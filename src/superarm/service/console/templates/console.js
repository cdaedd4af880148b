// Keeps the page up to date: it is fetched anew every two seconds, as it was rendered.
// Nothing here makes markup; without this script everything works, by hand.
const pulse = document.getElementById("pulse");
let busy = false;

async function refresh() {
  if (busy) return;
  busy = true;
  try {
    const reply = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
    if (reply.status === 401 || reply.status === 403) { location.reload(); return; }
    if (!reply.ok) throw new Error(String(reply.status));
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      const typing = part.contains(document.activeElement) && document.activeElement.matches("input, select");
      if (!next || typing || next.innerHTML === part.innerHTML) continue;
      const open = [...part.querySelectorAll("details")].map((box) => box.open);
      part.replaceChildren(...next.childNodes);
      part.querySelectorAll("details").forEach((box, n) => { box.open = open[n] ?? false; });
    }
    pulse.textContent = "live";
    pulse.dataset.state = "live";
  } catch {
    pulse.textContent = "out of touch; trying again";
    pulse.dataset.state = "lost";
  } finally {
    busy = false;
  }
}

if (document.querySelector("[data-live]")) {
  setInterval(() => { if (!document.hidden) refresh(); }, 2000);
}

// Whoever chooses a problem or a segment need not press a button as well.
for (const choice of document.querySelectorAll("#problem, [data-submit]")) {
  choice.addEventListener("change", () => choice.form.submit());
}

// "/" finds an arm, "n" and "p" turn the pages of the table.
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("find")?.focus(); }
  if (event.key === "n") document.querySelector("#arms a[rel=next]")?.click();
  if (event.key === "p") document.querySelector("#arms a[rel=prev]")?.click();
});
