// For researchers: how far the studies are, and their data.

import { ask, download, keptInTab } from "./api.js";
import { byId, complain, element, fill } from "./dom.js";
import { count } from "./words.js";

const EVERY_MS = 5000;
const FILES = [
  ["trials", ["csv", "jsonl"], "a line each trial"],
  ["actions", ["csv", "jsonl"], "every action with its time"],
  ["records", ["jsonl"], "games that replay"],
  ["table", ["csv", "json"], "find rates and steps, with 95 % intervals"],
];
let token = keptInTab.get("admin");
let again = 0;

async function refresh() {
  clearTimeout(again);
  byId("form").hidden = Boolean(token);
  byId("leave").hidden = !token;
  if (!token) return;
  try {
    show(await ask("/api/admin/progress", token));
    keptInTab.set("admin", token);
    complain(byId("trouble"), null);
  } catch (error) {
    complain(byId("trouble"), error);
    if (error.status === 401 || error.status === 403) {
      forget();
      return;
    }
  }
  again = setTimeout(refresh, EVERY_MS);
}

function forget() {
  clearTimeout(again);
  token = null;
  keptInTab.set("admin", null);
  fill(byId("studies"));
  byId("uptime").textContent = "";
  byId("form").hidden = false;
  byId("leave").hidden = true;
}

function show({ studies, live, uptime }) {
  const hours = Math.floor(uptime / 3600);
  const minutes = Math.floor((uptime % 3600) / 60);
  byId("uptime").textContent = `${count(live, "game")} in memory · up ${hours ? `${hours} h ` : ""}${minutes} min`;
  // Links keep the focus of whoever is on them: only the numbers change.
  for (const study of studies) {
    const shown = byId(`study-${study.name}`) ?? section(study);
    fill(shown.querySelector(".numbers"), ...numbers(study));
  }
  if (!studies.length) fill(byId("studies"), element("p", {}, "This server was started without a study."));
}

function section({ name, title, kind }) {
  const link = `${location.origin}/study/${encodeURIComponent(name)}`;
  const files = FILES.map(([file, kinds, about]) => element("li", {}, element("strong", {}, file), " ",
    ...kinds.flatMap((ending) => [saving(name, `${file}.${ending}`, ending), " "]),
    element("span", { className: "quiet" }, about)));
  const made = element("section", { className: "card study", id: `study-${name}` },
    element("h2", {}, title),
    element("p", { className: "quiet" }, `${kind === "seek" ? "Seeking" : "Hiding"} · participants come by `,
      element("a", { href: link }, link)),
    element("div", { className: "numbers" }),
    element("h3", {}, "Data"), element("ul", { className: "files" }, ...files));
  byId("studies").append(made);
  return made;
}

function saving(name, file, ending) {
  const made = element("button", { type: "button", className: "small", "aria-label": `Download ${file}` }, ending);
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await download(`/api/admin/studies/${encodeURIComponent(name)}/${file}`, token, `${name}-${file}`);
    } catch (error) {
      complain(byId("trouble"), error);
    }
    made.disabled = false;
  });
  return made;
}

function numbers({ participants, finished, under_way, trials_done, trials_wanted, sources, kind }) {
  const facts = [["Participants", participants], ["Finished", finished], ["Under way", under_way],
                 ["Trials", `${trials_done} of ${trials_wanted}`]];
  const heads = ["Source", "Places", "Never visible", "Trials", ...(kind === "seek" ? ["Found"] : []), ""];
  const rows = sources.map((each) => element("tr", {},
    ...[each.source, each.places, each.unseeable, `${each.done} of ${each.wanted}`, each.found]
      .slice(0, kind === "seek" ? 5 : 4).map((text) => element("td", {}, text)),
    element("td", {}, element("progress", { max: Math.max(1, each.wanted), value: each.done }))));
  return [
    element("dl", { className: "facts" }, ...facts.map(([what, value]) =>
      element("div", {}, element("dt", {}, what), element("dd", {}, value)))),
    element("div", { className: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))),
      element("tbody", {}, ...rows))),
  ];
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = event.target.token.value.trim();
  event.target.reset();
  refresh();
});
byId("leave").addEventListener("click", forget);
refresh();
