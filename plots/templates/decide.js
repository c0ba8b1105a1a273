// Targets that a reader drags and scenarios that are switched on and off: designs rank, and are judged, at once.
// The rules are those of analysis/decision/designs.py and analysis/decision/verdict.py; the tests hold the two against each other.
const designsTable = document.getElementById("designs");
const controls = document.getElementById("controls");
if (designsTable && controls) {
  const designs = JSON.parse(designsTable.dataset.designs);
  const yearly = designsTable.dataset.yearly === "true";
  const rows = [...designsTable.tBodies[0].rows];
  const input = (name) => controls.elements.namedItem(name);
  const digits = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  // As in say/numbers.py: the power of ten of the last digit that is written, a number, and an end of an interval, which
  // is rounded away from what it holds.
  const lastPlace = (value) => {
    if (value > 0.995 && value < 1) return Math.floor(Math.log10(1 - value)) - 1;
    const power = Number(value.toExponential().split("e")[1]);
    return power === 3 ? 0 : power - 2;
  };
  const number = (value) => {
    if (value > 0.995 && value < 1) return value.toFixed(-lastPlace(value));
    const [mantissa, power] = value.toExponential(2).split("e").map(Number);
    if (value === 0 || (power >= -3 && value < 9999.5)) return value.toFixed(Math.max(2 - power, 0));
    return `${mantissa.toFixed(2)} × 10${[...String(power)].map((digit) => digits[digit]).join("")}`;
  };
  // As `short` there: without zeros at the end, and without a mantissa of 1.
  const short = (value) => number(value).replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "").replace(/^1 × /, "");
  const outwards = (value, sign) => {
    if (value === 0) return 0;
    const place = lastPlace(value);
    const kept = Number(value.toExponential().split("e")[1]) - place + 1;
    const near = Number(value.toPrecision(kept));
    return sign * (near - value) >= 0 ? near : Number((near + sign * 10 ** place).toPrecision(kept));
  };
  const below = (value) => number(outwards(value, -1));
  const above = (value) => number(outwards(value, 1));
  const limit = (name) => (input(name) && !input(name).disabled ? Number(input(name).value) : null);
  const wanted = () => ({
    target: limit("target") === null || limit("target") >= Number(input("target").max) ? Infinity : 10 ** limit("target"),
    p99: limit("p99") === null || limit("p99") >= Number(input("p99").max) ? Infinity : 10 ** limit("p99"),
    copies: limit("copies") ?? 0,
    off: new Set([...controls.querySelectorAll("input[type=checkbox]")].filter((box) => !box.checked).map((box) => box.value)),
  });
  const small = (text, name = "") => Object.assign(document.createElement("small"), { textContent: text, className: name });
  // What other rates make of a design's losses, by its elasticities; those of scenarios that are off make nothing of them.
  const isOff = (figure, want) => [...want.off].some((name) => figure.startsWith(`scenarios.${name}.`));
  const scaled = (design, want) =>
    [...controls.querySelectorAll("input[data-figure]")]
      .filter((slider) => !isOff(slider.dataset.figure, want))
      .reduce((factor, slider) => factor * 10 ** (slider.value * (design.powers[slider.dataset.figure] ?? 0)), 1);
  // What a design comes to without the scenarios that are off, under its worst faults.
  const weigh = (design, want) => {
    const times = scaled(design, want);
    const cases = design.cases.map(({ parts, cluster }) => {
      const on = parts.filter((part) => !want.off.has(part.scenario));
      const sum = (name) => on.reduce((total, part) => total + part[name], 0);
      const whole = (name) =>
        cluster ? -Math.expm1(times * Math.log1p(-Math.min(cluster[name], 1 - 1e-16)) - sum(name)) : Math.min(times * sum(name), yearly ? Infinity : 1);
      const losses = on.reduce((total, part) => total + part.losses, 0) + (cluster && cluster.p > 0 ? 1 : 0);
      return { p: whole("p"), low: whole("low"), high: whole("high"), losses };
    });
    const worst = cases.reduce((most, each) => (each.high > most.high ? each : most));
    const clean = cases.every((each) => !each.losses) && cases.some((each) => each.high > 0);
    const proved = cases.every((each) => each.high === 0);
    const low = Math.max(...cases.map((each) => each.low));
    const missed = [
      ...(low > want.target ? ["loses more than the target"] : []),
      ...(design.p99_high > want.p99 ? [`p99 of a write ${number(design.p99)} ms`] : []),
      ...(design.copies < want.copies ? [`${design.copies || "no"} ${design.copies > 1 ? "copies" : "copy"} when acknowledged`] : []),
      ...design.short,
    ];
    const verdict = missed.length ? "does not meet" : worst.high <= want.target ? "meets" : "undecided";
    return { ...worst, least: low, clean, proved, verdict, missed };
  };
  // Each design whose interval overlaps that of the first of a rank, or lies less than 1% apart, shares the rank.
  const rank = (found) => {
    const group = new Map();
    const firsts = [];
    for (const each of [...found].sort((a, b) => b.proved - a.proved || a.high - b.high)) {
      const shared = each.proved ? -1 : firsts.findIndex((high) => each.least * (1 - 0.01) <= high);
      group.set(each, each.proved || shared >= 0 ? shared : firsts.push(each.high) - 1);
    }
    found.sort((a, b) => group.get(a) - group.get(b) || a.design.place - b.design.place);
    for (const each of found) each.rank = 1 + found.findIndex((other) => group.get(other) === group.get(each));
  };
  const less = (a, b) => (a.copies !== b.copies || a.stored !== b.stored) && a.copies <= b.copies && a.stored <= b.stored;
  const choice = (found, want) => {
    const meets = found.filter((each) => each.verdict === "meets" && !each.design.changed);
    const clean = meets.filter((each) => each.clean);
    const said = want.copies > 0 || designs.some((each) => each.wants);
    const kept = meets.filter((each) => said || !each.clean || !clean.some((other) => less(each.design, other.design)));
    if (want.target === Infinity) return kept;
    const key = ({ design, rank }) =>
      [design.stops, design.stored, rank, said ? 0 : -design.copies, design.p99, design.cost];
    return kept.sort((a, b) => key(a).map((value, i) => value - key(b)[i]).find((gap) => gap !== 0 && !Number.isNaN(gap)) ?? 0);
  };
  const show = () => {
    const want = wanted();
    for (const slider of controls.querySelectorAll("input[data-figure]"))
      slider.previousElementSibling.textContent = short(10 ** slider.value);
    const boxes = [...controls.querySelectorAll("input[type=checkbox]")];
    const nothing = boxes.length > 0 && !designs[0].cases[0].cluster && boxes.every((box) => !box.checked);
    designsTable.hidden = nothing;
    if (nothing) {
      document.getElementById("chosen").textContent = "No scenario is ticked: there is nothing to say.";
      return;
    }
    const found = designs.map((design, i) => ({ design, row: rows[i], i, ...weigh(design, want) }));
    rank(found);
    const [chosen, runnerUp] = choice([...found], want);
    for (const each of found) {
      const cell = (name) => each.row.querySelector(`[data-cell=${name}]`);
      cell("rank").textContent = each.rank;
      const known = each.proved ? "0, proved" : each.losses ? number(each.p) : yearly || each.high < 1 ? `< ${above(each.high)}` : "at most 1";
      const rates = cell("losses").querySelector(".rates");
      cell("losses").textContent = known;
      cell("losses").dataset.value = each.high;
      if (each.losses && each.low < each.high) cell("losses").append(small(`${below(each.low)} to ${above(each.high)}`));
      if (rates) cell("losses").append(rates);
      const verdict = document.createElement("span");
      const none = want.target === Infinity && each.verdict === "meets";
      verdict.className = none ? "" : `verdict ${each.verdict.replaceAll(" ", "-")}`;
      verdict.textContent = none ? "no target" : each.verdict;
      cell("verdict").replaceChildren(verdict, ...each.missed.map((said) => small(said, "extra")));
      each.row.classList.toggle("chosen", each === chosen);
      designsTable.tBodies[0].append(each.row);
    }
    for (const heading of designsTable.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
    const said = (value, unit) => (value === Infinity ? "any" : `${short(value)}${unit}`);
    if (input("target")) document.getElementById("target-said").textContent = said(want.target, "");
    if (input("p99")) document.getElementById("p99-said").textContent = said(want.p99, " ms");
    if (input("copies")) document.getElementById("copies-said").textContent = want.copies;
    const named = chosen ? `Run ${chosen.design.name}.` : "No design meets this.";
    const tie = runnerUp && runnerUp.rank === chosen.rank
      ? (runnerUp.clean && chosen.clean ? ", not told apart: neither lost anything" : ", a tie in losses") : "";
    document.getElementById("chosen").textContent = named + (runnerUp ? ` Runner-up${tie}: ${runnerUp.design.name}.` : "");
  };
  controls.addEventListener("input", show);
  controls.hidden = false;
  show();
}
