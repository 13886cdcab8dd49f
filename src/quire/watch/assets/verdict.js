// The verdict that keeps up: its headline, how much was judged, and each order.
const SIGNS = { holds: "✓", violated: "✗", undecided: "?" };
const SAYS_VERDICT = { holds: "Everything expected holds so far", violated: "Violated", undecided: "No verdict yet" };

const drawHeadline = (verdict) => {
  if (!verdict) return make("p", { class: "empty" }, "No verdict: nobody judges here.");
  const broken = verdict.checks.filter((check) => check.verdict === "violated" && check.expected).map(({ name }) => name);
  const headline = verdict.verdict === "undecided" ? `No verdict yet: ${verdict.why}` : verdict.verdict === "violated" ? `Violated: ${broken.join(", ")}` : SAYS_VERDICT.holds;
  return make("p", { class: `banner ${verdict.verdict}` }, make("span", { class: "sign-big", "aria-hidden": "true" }, SIGNS[verdict.verdict]), headline);
};
const sayJudged = (verdict) => (verdict ? `${thousands(verdict.messages)} messages and ${thousands(verdict.deliveries)} deliveries were judged${verdict.since ? ` since ${sayClock(verdict.since)}` : ""}; ${verdict.lag_s > 0.05 ? `judging is ${saySeconds(verdict.lag_s)} behind` : "nothing waits to be judged"}${verdict.beyond ? `. Not judged: ${verdict.beyond}` : ""}.` : "");
const drawCheck = ({ name, expected, verdict, count, because }) => make("article", { class: `check${expected ? "" : " unexpected"}`, "data-check": name, "data-verdict": verdict },
  make("p", { class: "check-head" }, make("b", {}, name), make("span", { class: `badge ${verdict}` }, `${SIGNS[verdict]} ${verdict}${count ? ` ${thousands(count)} ×` : ""}`), expected ? null : make("span", { class: "aside" }, "not expected")),
  // A violation begins with the name of a member, which is not to be changed.
  make("p", { class: "because" }, verdict === "undecided" ? "" : `${verdict === "holds" ? because.slice(0, 1).toUpperCase() : because.slice(0, 1)}${because.slice(1)}.`));
