// The first page: where to go.

import { ask } from "./api.js";
import { byId, complain, element } from "./dom.js";

try {
  const { studies } = await ask("/api/options");
  byId("studies").hidden = !studies.length;
  for (const { name, title } of studies) {
    const link = element("a", { href: `/study/${encodeURIComponent(name)}` }, title);
    byId("studies").querySelector("ul").append(element("li", {}, link));
  }
} catch (error) {
  complain(byId("trouble"), error);
}
