// The home page: lists the server's studies.

import { getJson } from "./api.js";
import { byId, element, showError } from "./dom.js";

try {
  const { studies } = await getJson("/api/options");
  byId("studies").hidden = !studies.length;
  for (const { name, title } of studies) {
    const link = element("a", { href: `/study/${encodeURIComponent(name)}` }, title);
    byId("studies").querySelector("ul").append(element("li", {}, link));
  }
} catch (error) {
  showError(byId("error"), error);
}
