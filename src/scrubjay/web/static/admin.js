// The researchers' page: progress and data of the studies.

import { download, getJson, tabStorage } from "./api.js";
import { byId, element, showError } from "./dom.js";
import { count } from "./words.js";

const REFRESH_MS = 5000;
const FILES = [
  ["participants", ["csv", "jsonl"], "completion codes, platform ids, consent, bonuses"],
  ["bonuses", ["txt"], "for bulk payment: participant ids and amounts"],
  ["answers", ["csv", "jsonl"], "the questionnaires"],
  ["trials", ["csv", "jsonl"], "one row per trial"],
  ["actions", ["csv", "jsonl"], "every action with its time"],
  ["focus", ["csv", "jsonl"], "when participants’ windows lost the focus"],
  ["records", ["jsonl"], "games that can be replayed"],
  ["table", ["csv", "json"], "find rates and steps, with 95 % confidence intervals"],
];
let token = tabStorage.get("admin");
let timer = 0;

async function refresh() {
  clearTimeout(timer);
  byId("form").hidden = Boolean(token);
  byId("leave").hidden = !token;
  if (!token) return;
  try {
    const progress = await getJson("/api/admin/progress", token);
    show(progress);
    tabStorage.set("admin", token);
    showError(byId("error"), progress.problem);
  } catch (error) {
    showError(byId("error"), error);
    if (error.status === 401 || error.status === 403) {
      signOut();
      return;
    }
  }
  timer = setTimeout(refresh, REFRESH_MS);
}

function signOut() {
  clearTimeout(timer);
  token = null;
  tabStorage.set("admin", null);
  byId("studies").replaceChildren();
  byId("uptime").textContent = "";
  byId("form").hidden = false;
  byId("leave").hidden = true;
}

function show({ studies, live, uptime }) {
  const hours = Math.floor(uptime / 3600);
  const minutes = Math.floor((uptime % 3600) / 60);
  byId("uptime").textContent = `${count(live, "game")} in memory · up ${hours ? `${hours} h ` : ""}${minutes} min`;
  // Replace only numbers that have changed, so that links, buttons and tables keep the keyboard focus.
  for (const study of studies) {
    const node = byId(`study-${study.name}`) ?? addStudy(study);
    const changed = JSON.stringify(study);
    if (node.dataset.shown === changed) continue;
    node.dataset.shown = changed;
    node.querySelector(".numbers").replaceChildren(...numbers(study));
  }
  if (!studies.length) byId("studies").replaceChildren(element("p", {}, "This server was started without a study."));
}

function addStudy({ name, title, kind, pilot, served }) {
  const link = `${location.origin}/study/${encodeURIComponent(name)}`;
  const files = FILES.map(([file, extensions, about]) => element("li", {}, element("strong", {}, file), " ",
    ...extensions.flatMap((extension) => [downloadButton(name, `${file}.${extension}`, extension), " "]),
    element("span", { className: "quiet" }, about)));
  const node = element("section", { className: "card study", id: `study-${name}` },
    element("h2", {}, served ? title : `${title} (${name})`),
    element("p", { className: "quiet" }, `${kind === "seek" ? "Seeking" : "Hiding"}${pilot ? " · pilot" : ""} · `,
      ...(served ? ["link for participants: ", element("a", { href: link }, link)] : ["not served now; its data are kept"])),
    element("div", { className: "numbers" }),
    element("h3", {}, "Data"), element("ul", { className: "files" }, ...files));
  byId("studies").append(node);
  return node;
}

function downloadButton(name, file, text) {
  const button = element("button", { type: "button", className: "small", "aria-label": `Download ${file}` }, text);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await download(`/api/admin/studies/${encodeURIComponent(name)}/${file}`, token, `${name}-${file}`);
    } catch (error) {
      showError(byId("error"), error);
    }
    button.disabled = false;
  });
  return button;
}

function numbers({ participants, finished, declined, under_way, trials_done, trials_wanted, sources, kind }) {
  const facts = [["Participants", participants], ["Finished", finished], ["In progress", under_way],
                 ["Declined", declined],
                 ["Trials", `${trials_done} of ${trials_wanted}`]];
  const headings = ["Source", "Places", "Never visible", "Trials", ...(kind === "seek" ? ["Found"] : []), "Progress"];
  const rows = sources.map((source) => element("tr", {},
    ...[source.source, source.places, source.unseeable, `${source.done} of ${source.wanted}`, source.found]
      .slice(0, kind === "seek" ? 5 : 4).map((text) => element("td", {}, text)),
    element("td", {}, element("progress", { max: Math.max(1, source.wanted), value: source.done,
      "aria-label": "Trials done" }))));
  return [
    element("dl", { className: "facts" }, ...facts.map(([term, value]) =>
      element("div", {}, element("dt", {}, term), element("dd", {}, value)))),
    element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Trials by source" }, element("table", {},
      element("thead", {}, element("tr", {}, ...headings.map((heading) => element("th", {}, heading)))),
      element("tbody", {}, ...rows))),
  ];
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = event.target.token.value.trim();
  event.target.reset();
  refresh();
});
byId("leave").addEventListener("click", signOut);
refresh();
