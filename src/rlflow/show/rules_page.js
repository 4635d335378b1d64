// The page of a library: its rules by families, each with its picture and its certificate, to search in.

const families = new Map();
for (const [id, rule] of Object.entries(page.rules)) families.set(rule.family, [...(families.get(rule.family) ?? []), id]);

function entry(id) {
  const rule = page.rules[id];
  const summary = element("summary", {}, element("b", {}, rule.name), " ", element("span", { class: "faint mono" }, rule.equation));
  const made = lazy(summary, () => rulePicture(id));
  made.id = id;
  made.dataset.text = [id, rule.name, rule.equation, rule.condition].join(" ").toLowerCase();
  return made;
}

const sections = [...families].map(([family, ids]) => section(family, `${family}: ${plural(ids.length, "rule")}`, ...ids.map(entry)));
const status = element("span", { class: "faint", role: "status" });
const field = element("input", { type: "search", placeholder: "name, operator or id", "aria-label": "search", oninput: () => search(field.value) });

// What has all words stays; a family without any goes.
function search(text) {
  const words = text.trim().toLowerCase().split(/\s+/);
  let found = 0;
  for (const made of sections) {
    const entries = [...made.querySelectorAll("details")];
    for (const one of entries) one.hidden = !words.every((word) => one.dataset.text.includes(word));
    const left = entries.filter((one) => !one.hidden).length;
    made.hidden = left === 0;
    found += left;
  }
  status.textContent = plural(found, "rule");
}

// An address that ends in #id shows that rule.
function open() {
  const wanted = document.getElementById(location.hash.slice(1));
  if (wanted?.tagName !== "DETAILS") return;
  wanted.open = true;
  wanted.scrollIntoView();
}

show(
  element("p", {}, page.words),
  element("div", { class: "tools" }, field, status),
  element("nav", {}, ...[...families.keys()].map((family) => element("a", { href: `#${family}` }, family))),
  ...sections,
);
search("");
open();
window.addEventListener("hashchange", open);
