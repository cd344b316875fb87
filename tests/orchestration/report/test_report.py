"""The report from outside: what it says, that its figures lead to runs, and that the page needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from math import floor, log10, nan
from pathlib import Path
from statistics import mean, stdev
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import trim_mean

from evaluators.significance.comparisons import pair
from evaluators.significance.judge import judge
from orchestration.ledger.ledger import Ledger
from orchestration.report import drawing, forms, plots
from orchestration.report.across import ACROSS_HEAD, across
from orchestration.report.glossary import Hover
from orchestration.report.html import html
from orchestration.report.methods import methods
from orchestration.report.tables import (
    arm_cell,
    arm_cells,
    caption,
    cost_rows,
    difference,
    each_run,
    figure,
    p_text,
    places_for,
)
from orchestration.verdicts.costs import with_costs
from orchestration.verdicts.findings import Finding, Findings
from orchestration.verdicts.why import chain
from tests.finished_study import BACKBONE, CLAIMS, RECALL, SPREAD, STRESS, findings_of

ASKED_KEYS = {
    "claim", "treatment", "control", "backbone", "metric", "n_seeds", "delta_mean", "delta_sd", "ci_low", "ci_high",
    "p", "p_adjusted", "sign_agreement", "verdict", "per_seed",
}  # fmt: skip
SKEWED = [0.010, 0.012, 0.009, 0.011, 0.008, 0.013, 0.010, 0.500]
SCATTERED = [0.073, -0.009, 0.066, 0.036, 0.002, 0.020, -0.002, 0.054]


@pytest.fixture(scope="module")
def page(findings: Findings) -> str:
    return html(findings, plots.every(findings), {findings.runs[0].id: "http://127.0.0.1:5000/#/runs/1"})


class Links(HTMLParser):
    """Every id, every link, every element that could fetch something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags[tag] += 1
        self.ids += [found["id"]] if found.get("id") else []
        self.links += [value for name, value in attrs if name in ("href", "xlink:href", "src") and value]


def test_json_has_the_asked_keys_and_the_ledgers_figures(findings: Findings) -> None:
    rows = json.loads(forms.report_json(findings))
    assert [row["claim"] for row in rows] == ["H1", "H3a", "H3b", "H2", "X1"]
    assert all(row.keys() >= ASKED_KEYS for row in rows)
    by_run = {run.id: run.metrics for run in findings.runs}
    for row in rows:
        for seed in row["per_seed"]:
            number = str(seed["seed"])
            assert seed["treatment"] == by_run[row["treatment_runs"][number]][row["metric"]]
            assert seed["control"] == by_run[row["control_runs"][number]][row["metric"]]


def test_one_seed_is_in_the_singular(findings: Findings) -> None:
    finding = findings.findings[0]
    one = replace(finding, verdict=replace(finding.verdict, n_seeds=1))
    assert "\n1 seed, paired; " in forms.table(replace(findings, findings=(one,)))


def test_terminal_table(findings: Findings) -> None:
    lines = forms.table(findings).splitlines()
    assert re.match(r"claim +comparison +metric +difference \[95 %\] +seeds agree +verdict$", lines[0])
    assert re.match(
        r"H1 +B1 - B0 +t2d/recall@10 +\+0\.1\d\d \[\+0\.\d{3}, \+0\.\d{3}\] +8/8 +better \(difference p [<=] ",
        lines[1],
    )
    assert lines[3].startswith("H3b")
    assert "equivalent within ±0.03" in lines[3]
    caption = lines[6]
    assert caption.startswith("6 to 8 seeds, paired; paired t, exact sign-flip, two one-sided tests")
    assert "Holm over 4 declared comparisons" in caption
    assert "* X1: expected better" in lines
    assert "mean ± standard deviation over seeds (number of seeds)" in lines
    assert "failed   M1 on tiny, seed 4   loss is nan at step 12 (hince)" in lines
    assert "missing  1 of 25 runs (M1): not in the ledger" in lines
    assert "note     corpus: a stand-in of 40 concepts" in lines


def test_the_correction_of_late_claims_is_named(findings: Findings) -> None:
    """Their p is corrected among themselves, another way than those that were declared."""
    declared = [one for one in findings.findings if not one.verdict.exploratory]
    late = [replace(one, verdict=replace(one.verdict, exploratory=True, family_size=4)) for one in declared]
    said = "Benjamini-Hochberg over 4 exploratory comparisons; "
    assert "Benjamini-Hochberg" not in forms.table(findings)  # X1 is alone: there is nothing to correct it with
    mixed = replace(findings, findings=(*declared, *late))
    assert f"Holm over 4 declared comparisons, {said}" in forms.table(mixed)
    alone = replace(findings, findings=tuple(late))
    for form in (forms.table(alone), forms.markdown(alone), forms.latex(alone)):
        assert said in form
        assert "Holm" not in form


@pytest.mark.parametrize(
    ("asked", "deltas", "verdict", "side", "p"),
    [
        ("H1", SKEWED, "better", "holds", "= .0078"),
        ("H1", SCATTERED, "undecided", "leaves out", "= .055"),
        ("H3b", SKEWED, "better", "holds", "= .0078"),  # equivalent was expected; the difference decides
        ("H3b", SCATTERED, "undecided", "", ""),  # two one-sided tests decide: the other p is not in question
    ],
)
def test_an_interval_that_is_not_that_of_the_test_is_explained(
    findings: Findings, asked: str, deltas: list[float], verdict: str, side: str, p: str
) -> None:
    """From eight seeds on sign vectors decide, and the interval is Student's t."""
    claim = next(claim for claim in CLAIMS if claim.claim == asked)
    pairs = pair({k: 0.5 + delta for k, delta in enumerate(deltas)}, dict.fromkeys(range(8), 0.5))
    (judged,) = judge([(claim, pairs)])
    assert (judged.test, judged.verdict) == ("exact sign-flip", verdict)
    told = forms.table(replace(findings, findings=(replace(findings.findings[0], verdict=judged),)))
    words = f"the interval is Student's t and {side} 0; the sign-flip test, which decides, has p {p} alone"
    assert (words in told) == ("the interval is Student's t" in told) == bool(side)
    assert words not in forms.table(findings)


def test_markdown_tables_are_rectangular(findings: Findings) -> None:
    text = forms.markdown(findings)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {7, 5, 8}  # 6 columns of claims, 4 of arms, 7 across tasks
    assert text.startswith("# Do hard negatives calibrate")


def test_latex_escapes_and_is_rectangular(findings: Findings) -> None:
    awkward = replace(findings, arms={"B0_x & y": findings.arms["B0"]}, findings=())
    runs = tuple(replace(run, arm="B0_x & y") for run in findings.runs if run.arm == "B0")
    text = forms.latex(replace(awkward, runs=runs))
    assert r"B0\_x \& y" in text
    body = [line for line in forms.latex(findings).splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {5, 3, 6}
    assert r"[95 \%]" in body[0]
    assert r"$\pm$0.03" in forms.latex(findings)


def test_latex_tells_of_what_is_unfinished_and_of_notes(findings: Findings) -> None:
    text = forms.latex(replace(findings, notes=("[a] note",)))
    assert r"\item failed   M1 on tiny, seed 4   loss is nan at step 12 (hince)" in text
    assert r"\item missing  1 of 25 runs (M1): not in the ledger" in text
    assert r"\item {}[a] note" in text
    complete = tuple(run for run in findings.runs if run.status == "finished")
    assert "itemize" not in forms.latex(replace(findings, notes=(), runs=complete))


def test_every_form_explains_a_mark_and_tells_what_is_missing(findings: Findings) -> None:
    (first, *others) = findings.findings
    remarked = replace(
        findings, findings=(replace(first, caveats=("of nouns alone",)), *others), notes=("a note",)
    )
    marked = [line for line in forms.table(remarked).splitlines() if line.startswith("* ")]
    assert [line.split(":")[0] for line in marked if "of nouns alone" in line] == ["* H1"]
    assert all(line.partition(": ")[2] for line in marked)  # no claim without a mark
    listed = [line[2:] for line in forms.markdown(remarked).splitlines() if line.startswith("- ")]
    missing = [
        "failed   M1 on tiny, seed 4   loss is nan at step 12 (hince)",
        "missing  1 of 25 runs (M1): not in the ledger",
    ]
    assert listed == [*(line.replace("*", "\\*", 1) for line in marked), *missing, "a note"]
    assert ": of nouns alone" in forms.latex(remarked)


@pytest.mark.parametrize(
    ("width", "places"),
    [
        (0.5, 3),
        (0.004, 3),
        (0.0004, 4),
        (0.00003, 5),
        (1e-9, 6),
        (0.0, 3),
        (float("nan"), 3),
        (25.0, 1),
        (300.0, 0),
    ],
)
def test_decimals_show_one_digit_of_the_width(width: float, places: int) -> None:
    assert places_for(width) == places


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (1.5812e-8, 6, "+1.58e-08"),
        (-1e-21, 6, "-1.00e-21"),
        (0.0, 6, "+0.000000"),
        (0.0000025, 6, "+0.000003"),
        (5.6e-17, 3, "+0.000"),
        (-0.0001, 3, "+0.000"),
    ],
)
def test_a_figure_too_small_for_decimals_is_written_with_a_power(value: float, places: int, text: str) -> None:
    """Where as many decimals are asked for as there ever are: a difference that is none beside its interval is 0."""
    assert figure(value, places, "+") == text


def test_small_scores_are_no_zeros(findings: Findings) -> None:
    cell = arm_cell([0.98e-8, 1.02e-8])
    assert cell.text == "1.00e-08 ± 2.83e-10"
    assert arm_cell([0.98e-8]).text == "9.80e-09"
    verdict = replace(findings.findings[0].verdict, delta_mean=5.3e-9, ci_low=4.9e-9, ci_high=5.7e-9)
    row = replace(findings.runs[1], metrics={RECALL: 1.53e-8})
    assert "1.53e-08" in html(replace(findings, runs=(findings.runs[0], row, *findings.runs[2:])), {})
    assert difference(verdict) == "+5.30e-09 [+4.90e-09, +5.70e-09]"
    assert difference(replace(verdict, delta_mean=-3.4e-5, ci_low=None, ci_high=None)) == "-0.00003"


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.0123, "= .012"),
        (0.0078125, "= .0078"),
        (0.00001, "< .0001"),
        (0.0001, "= .0001"),
        (0.41, "= .410"),
        (1.0, "= 1.000"),
        (0.05, "= .050"),
        (0.0498, "= .0498"),
        (0.05003, "= .05003"),
        (None, "–"),
    ],
)
def test_p_in_words(p: float | None, text: str) -> None:
    assert p_text(p) == text


def test_arm_cell_by_hand() -> None:
    """1, 2, 3: mean 2, variance (1 + 0 + 1) / 2 = 1."""
    cell = arm_cell([1.0, 2.0, 3.0])
    assert (cell.text, cell.n) == ("2.000 ± 1.000", 3)
    assert arm_cell([1.0, nan, 2.0, 3.0]) == cell  # a run without this figure
    assert arm_cell([0.5]).text == "0.500"
    assert arm_cell([]).text == "–"


def test_across_tasks_describes_each_pair_of_arms_once(findings: Findings) -> None:
    """Five comparisons of three pairs of arms; the anisotropy is better when smaller and stays out."""
    rows, caption = across(findings)
    assert [row[0] for row in rows] == ["B1 - B0", "B1 - B1-noHN", "M1 - B1"]
    assert caption.startswith("t2d/recall@10, stress/negate/auc, every score as it is. A description")
    first = dict(zip(ACROSS_HEAD, rows[0], strict=True))
    assert (first["IQM control"], first["seeds"]) == ("0.550 [0.550, 0.550]", "8")  # untrained: .50 and .60
    assert (first["P(improvement)"], first["ASO"]) == ("1.000 [1.000, 1.000]", "0.00")
    assert rows[2][-1] == "6"  # M1 lacks two of its runs
    values = [v for metric in (RECALL, STRESS) for v in findings.values("B1", BACKBONE, metric).values()]
    assert first["IQM treatment"].startswith(f"{trim_mean(values, 0.25):.3f} [")


def test_across_tasks_are_those_that_both_arms_have(findings: Findings) -> None:
    """A task that the control was never scored on is left out for the pair, and two untrained arms have all seeds."""
    extra = "extra/auc"
    runs = [
        row if row.arm == "B0" else replace(row, metrics={**row.metrics, extra: 0.1 * (row.seed or 0)})
        for row in findings.runs
    ]
    more = {"metrics": {**findings.metrics, extra: True}, "headlines": (RECALL, STRESS, extra)}
    shown = replace(findings, runs=tuple(runs), **more)
    rows, told = across(shown)
    assert rows[0] == across(findings)[0][0]
    assert rows[1] != across(findings)[0][1]
    assert told.startswith("t2d/recall@10, stress/negate/auc, extra/auc, every score as it is")
    (untrained,) = findings.of("B0", BACKBONE)
    other = replace(untrained, arm="Z0", id="0" * 16, metrics={RECALL: 0.52, STRESS: 0.56})
    claim = replace(findings.findings[0], verdict=replace(findings.findings[0].verdict, treatment="Z0"))
    ((name, treatment, control, better, unpaired, _, seeds),) = across(
        replace(findings, runs=(*findings.runs, other), findings=(claim,))
    )[0]
    assert (name, seeds) == ("Z0 - B0", "8")
    assert (treatment, control) == ("0.540 [0.540, 0.540]", "0.550 [0.550, 0.550]")
    assert (better, unpaired) == ("0.500 [0.500, 0.500]", "0.50")  # above in one task, below in the other


def test_across_tasks_have_as_many_decimals_as_their_interval_is_wide(findings: Findings) -> None:
    """Of scores a hundredth as far apart, the first digit of the interval's half width is the last that is told."""
    near = [
        replace(row, metrics={name: 0.5 + (value - 0.5) / 100 for name, value in row.metrics.items()})
        for row in findings.runs
    ]
    rows, _ = across(replace(findings, runs=tuple(near)))
    for cell in (cell for row in rows[1:] for cell in row[1:3]):  # B0, of the first row, has no width
        value, low, high = re.findall(r"[\d.]+", cell)
        half = (float(high) - float(low)) / 2
        assert len(value.partition(".")[2]) == -floor(log10(half)) > 3


def test_every_form_of_the_report_shows_the_tasks_together(findings: Findings, page: str) -> None:
    row = across(findings)[0][0]
    for text in (forms.table(findings, with_across=True), forms.markdown(findings), page):
        assert all(cell in text for cell in row)
        assert "decides no verdict" in text
    assert "decides no verdict" in forms.latex(findings)
    assert "decides no verdict" not in forms.table(findings)  # on the terminal for who asks
    found = json.loads(forms.report_json(findings))
    assert found[0]["across_tasks"]["tasks"] == [RECALL, STRESS]
    assert found[1]["across_tasks"] == found[2]["across_tasks"] != found[0]["across_tasks"]


def test_one_task_alone_is_not_summed_up(findings: Findings) -> None:
    alone = replace(findings, headlines=(RECALL, SPREAD))
    assert across(alone)[0] == []
    assert "decides no verdict" not in forms.table(alone, with_across=True) + forms.markdown(alone) + forms.latex(
        alone
    )
    assert 'id="across"' not in html(alone, {})
    assert json.loads(forms.report_json(alone))[0]["across_tasks"] is None


def test_verdicts_do_not_know_the_tasks_together(findings: Findings) -> None:
    """The words of every verdict are the same whether or not the block is there."""
    alone = forms.table(replace(findings, headlines=()), with_across=True)
    assert forms.table(findings, with_across=True).startswith(alone.partition("\n\n")[0])


def test_tests_of_each_run_are_a_range(findings: Findings) -> None:
    verdict = findings.findings[0].verdict
    runs = (
        {"test": "Steiger's Z", "statistic": 1.4, "p": 0.16},
        {"test": "Steiger's Z", "statistic": -0.2, "p": 0.84},
    )
    assert each_run(verdict) == ""
    text = each_run(replace(verdict, each_run=runs))
    assert text.startswith("Steiger's Z -0.20 to +1.40, p 0.16 to 0.84, of 2 runs of each arm")
    first = replace(findings.findings[0], verdict=replace(verdict, each_run=runs))
    assert "p 0.16 to 0.84" in html(replace(findings, findings=(first,)), {})


def test_page_is_self_contained(page: str) -> None:
    links = Links(page)
    assert not links.tags.keys() & {"iframe", "link", "img", "object", "embed"}
    assert links.tags["script"] == 1
    assert "<script src" not in page
    outside = {link for link in links.links if not link.startswith("#")}
    assert outside == {"http://127.0.0.1:5000/#/runs/1"}
    assert not re.search(r"url\(\s*['\"]?(?!#)|@import|javascript:", page)


def test_every_link_of_the_page_arrives(page: str) -> None:
    links = Links(page)
    repeated = [name for name, count in Counter(links.ids).items() if count > 1]
    assert repeated == []
    assert {link[1:] for link in links.links if link.startswith("#")} <= set(links.ids)


def test_every_seeds_figure_leads_to_its_run(page: str, findings: Findings) -> None:
    for finding in findings.findings:
        for seed in finding.verdict.per_seed:
            for runs in (finding.treatment_runs, finding.control_runs):
                assert f'<a href="#run-{runs[int(seed["seed"])]}">' in page
    targets = set(Links(page).ids)
    assert {f"run-{run.id}" for run in findings.runs} <= targets


def test_plots_lead_within_the_page_and_are_told_to_those_who_hear_it(page: str, findings: Findings) -> None:
    """Each plot has a name, and each link of it that of the run or the claim it leads to."""
    assert "target=" not in page
    drawn = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    names = [svg.attrib["aria-label"] for svg in drawn]
    assert {"Every comparison", "Learning curves", "Figure against figure"} <= set(names)
    assert len(set(names)) == len(drawn) == 3 + len(findings.findings)
    assert all(svg.attrib["role"] == "group" for svg in drawn)  # an image would hide its links
    links = [link for svg in drawn for link in svg.iter("{http://www.w3.org/2000/svg}a")]
    told = {
        link.get("href", link.get("{http://www.w3.org/1999/xlink}href")): link.attrib["aria-label"]
        for link in links
    }
    for row in findings.with_status("finished"):
        seed = "" if row.seed is None else f", seed {row.seed}"
        assert told[f"#run-{row.id}"] == f"{row.arm}{seed}"
    assert {f"{finding.verdict.claim}, {finding.verdict.metric}" for finding in findings.findings} <= set(
        told.values()
    )


def test_page_shows_what_failed_and_what_it_rests_on(page: str, findings: Findings) -> None:
    for words in ("1 failed", "1 not run", "loss is nan at step 12 (hince)", "corpus: a stand-in of 40 concepts"):
        assert words in page
    assert "loses 61 of 2,000 items" in page
    assert page.count("differs between runs") == 1  # two processors, one Python
    for finding in findings.findings:
        assert finding.verdict.sentence.replace("<", "&lt;").replace(">", "&gt;") in page


def test_a_joint_claim_that_fails_is_told_beside_what_was_declared(findings: Findings) -> None:
    first, *others = findings.findings
    says = {"verdict": "fails", "words": "fails: not all of 2 hold", "expect": "all of 2", "as_expected": False}
    joint = replace(first, verdict=replace(first.verdict, parts=2, **says))
    told = replace(findings, findings=(joint, *others))
    assert "* H1: expected all of 2 to hold" in forms.table(told)
    assert re.search(r"H1: expected all of 2 to hold</a> <small>found not all of 2 hold<", html(told, {}))


def test_a_failed_run_of_an_arm_without_training_has_no_seed(findings: Findings) -> None:
    rows = tuple(replace(row, seed=None) if row.status == "failed" else row for row in findings.runs)
    (failed,) = (row for row in rows if row.status == "failed")
    told = replace(findings, runs=rows)
    assert f"failed   {failed.arm} on {BACKBONE}   {failed.problem}" in forms.table(told)
    assert f"{failed.arm} failed" in html(told, plots.every(told))
    assert "seed None" not in forms.table(told) + html(told, plots.every(told))


def troubles_of(page: str) -> list[str]:
    part = page.partition('<div class="trouble">')[2].partition("</div>")[0]
    return re.findall(r'<li><a href="#[^"]*">(.*?)</a>', part)


def test_the_page_lists_what_failed_and_no_more(page: str, findings: Findings) -> None:
    """Of each kind the worst three, and how many others there are."""
    unfinished = ["M1, seed 4 failed", "1 of 25 runs are not in the ledger"]
    unlike = ["H2: expected better", "X1: expected better"]  # undecided for its missing runs, and worse
    lost = [f"{claim} loses 61 of 2,000 items" for claim in ("H1: B1", "H3b: B1", "H2: M1")]
    assert troubles_of(page) == [*unfinished, *unlike, *lost]
    for fails, others in ((3, []), (5, ["2 more failed runs"])):
        rows = [replace(row, status="finished") for row in findings.runs if row.seed is not None]
        rows[:fails] = [replace(row, status="failed") for row in rows[:fails]]
        told = troubles_of(html(replace(findings, runs=tuple(rows)), {}))
        assert told == [*(f"{row.arm}, seed {row.seed} failed" for row in rows[:3]), *others, *unlike, *lost]


def test_the_page_parts_settings_that_differ_from_those_that_all_share(findings: Findings) -> None:
    arms = {"B1": {**findings.arms["B1"], "tau": 0.05}, "B1-noHN": findings.arms["B1-noHN"]}
    page = html(replace(findings, arms=arms), {})
    head, *rows = rows_of(page, "settings")
    assert head[1:] == ["hard_negatives", "tau"]
    assert rows == [["B1", "True", "0.05"], ["B1-noHN", "False", "–"]]
    shared = page.partition("<h3>Shared by all arms</h3>")[2].partition("</dl>")[0]
    told = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", shared)
    assert told == [("train", "True"), ("readout", "mean"), ("steps", "60")]


def test_the_page_takes_1_and_true_for_two_settings_and_tells_what_data_map_to(findings: Findings) -> None:
    loss = {"name": "X", "scale": 1}
    arms = {"B1": {"flag": True, "loss": loss}, "B2": {"flag": 1, "loss": dict(reversed(loss.items()))}}
    page = html(replace(findings, arms=arms, data={"metrics": {"loss": "lower"}, "watch": ["a", "b"]}), {})
    head, *rows = rows_of(page, "settings")
    assert [head, *rows] == [["arm", "flag"], ["B1", "True"], ["B2", "1"]]
    assert "<dt>metrics</dt><dd>{&#39;loss&#39;: &#39;lower&#39;}</dd><dt>watch</dt><dd>a, b</dd>" in page


def test_items_are_read_by_their_texts(findings: Findings) -> None:
    """Where they are known; and an item's name still stands beside its text."""
    first = findings.findings[0]
    item = min(first.items, key=lambda one: one.delta)
    texts = {first.verdict.metric: {item.item_id: "pot: a <deep> container"}}
    page = html(replace(findings, item_texts=texts), plots.every(findings))
    assert f'<td>pot: a &lt;deep&gt; container <span class="each">{item.item_id}</span></td>' in page
    assert "most on pot: a &lt;deep&gt; container" in page


def test_a_term_is_explained_where_it_first_stands(page: str, findings: Findings) -> None:
    """In each page anew, the text of the page itself included."""
    for own in (page, html(findings, {})):
        assert own.count("<abbr") == len(set(re.findall('<abbr title="([^"]*)"', own))) > 1
        assert re.search("<abbr[^>]*>ledger</abbr>", own)
    assert page.count('<abbr title="both arms run with the same seed') == 1
    assert page.index("<abbr") < page.index("paired seeds</abbr>") < page.index('id="answer"')
    said = Hover()
    assert said("<b> & Holm, Holm").startswith("&lt;b&gt; &amp; <abbr title=")
    assert said("Holm") == "Holm"


def rows_of(page: str, section: str) -> list[list[str]]:
    """The cells of every row of a section's tables, as text."""
    part = page.partition(f'<section id="{section}"')[2].partition("</section>")[0]
    rows = (
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        for row in re.findall("<tr.*?</tr>", part, re.DOTALL)
    )
    return [[re.sub("<[^>]*>", "", cell) for cell in row] for row in rows]


def test_the_tables_of_the_page_hold_the_figures_of_the_runs(page: str, findings: Findings) -> None:
    head, *runs = rows_of(page, "runs")
    assert head == ["run", "arm", "seed", "state", *findings.metrics, "seconds", "where"]
    for cells, row in zip(runs, findings.runs, strict=True):
        assert cells[:3] == [row.id, row.arm, "untrained" if row.seed is None else str(row.seed)]
        figures = [f"{row.metrics[name]:.4f}" if row.metrics else "–" for name in findings.metrics]
        assert cells[4:-1] == [*figures, "3.0" if row.metrics else "–"]
    arms = rows_of(page, "arms")
    for number, metric in enumerate(findings.metrics):
        for at, arm in enumerate(findings.arms, 1):
            values = list(findings.values(arm, BACKBONE, metric).values())
            told = (
                f"{mean(values):.3f} ± {stdev(values):.3f} ({len(values)})" if arm != "B0" else f"{values[0]:.3f}"
            )
            assert arms[1 + number][at] == told
    places = [(metric, arm) for metric in findings.metrics for arm in findings.arms]
    for (metric, arm), (_, told, *figures) in zip(places, arms[5:17], strict=True):
        found = findings.values(arm, BACKBONE, metric)
        assert told == arm
        assert figures == [f"{found[seed]:.4f}" if seed in found else "" for seed in (None, *range(8))]


def test_the_seeds_and_items_of_the_page_are_those_of_its_claims(page: str, findings: Findings) -> None:
    seeds = iter([row for row in rows_of(page, "seeds") if row[0] != "seed"])
    for finding in findings.findings:
        for each in finding.verdict.per_seed:
            seed, *figures = next(seeds)
            told = [each[name] for name in ("control", "treatment", "delta")]
            assert seed == str(each["seed"])
            assert [nan if one == "–" else float(one) for one in figures] == pytest.approx(
                told, abs=6e-5, nan_ok=True
            )
    rows, best = rows_of(page, "items"), findings.findings[0].items  # 9 that gain, one as before, 9 that lose
    assert (rows[0][0], rows[10][0]) == ("Largest wins", "Largest losses")
    for cells, item in zip([*rows[1:10], *rows[11:20]], [*best[:9], *best[:-10:-1]], strict=True):
        assert cells[0] == item.item_id
        told = (item.control, item.treatment, item.delta)
        assert [float(cell) for cell in cells[1:]] == pytest.approx(told, abs=6e-4)


def test_bars_of_one_metric_share_a_scale(page: str, findings: Findings) -> None:
    """The farthest end of all stands 48 % from the middle, which is zero."""
    bars = [
        [float(one) for one in re.findall(r"([\d.]+)%", bar)] for bar in re.findall('class="bar".*?</span>', page)
    ]
    known = [one.verdict for one in findings.findings if one.verdict.ci_low is not None]
    for (left, width, middle), verdict in zip(bars, known, strict=True):
        of_metric = [one.verdict for one in findings.findings if one.verdict.metric == verdict.metric]
        ends = [end for v in of_metric for end in (v.ci_low, v.ci_high, v.delta_mean, v.margin) if end is not None]
        told = [
            50 + 48 * end / max(map(abs, ends)) for end in (verdict.ci_low, verdict.ci_high, verdict.delta_mean)
        ]
        assert [left, left + width, middle] == pytest.approx(told, abs=0.11)


def test_the_caption_tells_ranges_and_counts_claims_not_their_parts(findings: Findings) -> None:
    first, second, *_ = findings.findings
    plain = replace(first.verdict, group="", family_size=3, correlation=0.624, unpaired_seeds=20)
    joint = replace(plain, claim="J", parts=2, correlation=None, unpaired_seeds=None)
    part = replace(plain, part_of="J", correlation=0.1, unpaired_seeds=12)
    told = [replace(first, verdict=one) for one in (plain, joint, part, part)]
    said = caption(replace(findings, findings=tuple(told)))
    assert said.endswith(
        "Holm over 3 hypotheses in 2 declared comparisons; arms correlate 0.1 to 0.62 at equal seed; "
        "pairing stands for 12 to 20 unpaired seeds an arm"
    )
    alone = caption(replace(findings, findings=(replace(second, verdict=replace(plain, family_size=1)),)))
    assert "Holm" not in alone
    assert "arms correlate 0.62 at" in alone


def test_the_methods_state_the_counts_of_the_study(findings: Findings) -> None:
    """M1 lacks 2 of 8 seeds; H1, H2, H3a and H3b are corrected together, X1 came late."""
    said = methods(findings)
    assert "We compared B0, B1, B1-noHN and M1 on tiny. The trained recipes (B1, B1-noHN and M1) were " in said
    assert "run with 6 to 8 of 8 random seeds (0 to 7); recipes with the same seed share the order of" in said
    assert "share the order of the data, the initialisation of what they have in common and the neg" in said
    assert "4 comparisons were declared before the first run (SHA-256 of the declaration: 44aa01cd9e" in said
    assert "the paired t test at a level of 0.05. Equivalence was tested with two one-sided tests" in said
    assert "adjusted with Holm's method over 4 hypotheses; intervals are 95 %, unadjusted. 1 further comp" in said
    assert "1 further comparison, made or given other seeds or rows later, is exploratory." in said
    assert "(study 9f31c2ab77e01d4c, rule 2; cite the passport" in said

    first, second, *_ = findings.findings
    grouped = [
        replace(one, verdict=replace(one.verdict, group="recall", family_size=2)) for one in (first, second)
    ]
    alone = replace(second, verdict=replace(second.verdict, group="other", family_size=1))
    versions = {"torch": ("2.4.0", "2.5.1"), "semray": ("1.0",), "cpu": ("Xeon",)}
    said = methods(replace(findings, declared="", environment=versions, findings=(*grouped, alone)))
    assert "3 comparisons were declared before the runs. Differences" in said
    assert "equivalence" not in said.lower()
    assert "Holm's method over 2 of recall hypotheses" in said
    assert "exploratory" not in said
    assert "made with semray 1.0 and torch 2.4.0 and 2.5.1. Every" in said
    assert "Holm" not in methods(replace(findings, findings=(alone,)))


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ({0, 1, 3}, "Each trained recipe (B1, B1-noHN and M1) was run with 3 random seeds (0, 1, 3); recipes"),
        ({2, 3}, "Each trained recipe (B1, B1-noHN and M1) was run with 2 random seeds (2 to 3); recipes"),
        ({5}, "Each trained recipe (B1, B1-noHN and M1) was run with 1 random seed (5); recipes"),
        ({4}, "The trained recipes (B1, B1-noHN and M1) were run with 0 to 1 of 1 random seed (4); recipes"),
        (set(), "on tiny. No run of a trained recipe (B1, B1-noHN and M1) is finished. B0 is not trained"),
    ],
)
def test_the_methods_count_finished_runs_alone(findings: Findings, kept: set[int], told: str) -> None:
    rows = [row if row.seed in (None, *kept) else replace(row, status="missing") for row in findings.runs]
    assert told in methods(replace(findings, runs=tuple(rows)))


def test_the_table_of_arms_is_of_compared_metrics_or_of_all(findings: Findings) -> None:
    for claims, shown in ((findings.findings[:1], [RECALL]), ((), list(findings.metrics))):
        head, *rows = arm_cells(replace(findings, findings=claims))
        assert head == ("arm", *shown)
        assert [row[0] for row in rows] == [*findings.arms]


def test_the_page_counts_the_seeds_that_agree_with_each_claim(page: str, findings: Findings) -> None:
    """By the sign of their mean, which is that of the verdict's word where it has one."""
    told = re.findall(r"(\d+/\d+) (?:<abbr[^>]*>)?seeds agree", page)
    deltas = [[pair["delta"] for pair in finding.verdict.per_seed] for finding in findings.findings]
    assert told == [f"{sum((one > 0) == (mean(of) > 0) for one in of)}/{len(of)}" for of in deltas]


def test_names_are_escaped(findings: Findings) -> None:
    hostile = replace(findings, question="<script>alert(1)</script> & more", notes=("<img src=x>",))
    page = html(hostile, {})
    assert "img" not in Links(page).tags
    assert page.count("<script>") == 1  # the page's own, which its policy names by its digest
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert "alert" not in script


def test_written_files_are_whole_and_the_same_again(findings: Findings, tmp_path: Path) -> None:
    page = forms.write(findings, tmp_path / "new" / "out")
    assert {"forest.png", "curves.png"} <= {path.name for path in page.parent.iterdir()}
    assert not any(path.name.startswith("seeds-") for path in page.parent.iterdir())
    forms.write(findings, page.parent, each_png=True)
    first = {path.name: path.read_bytes() for path in page.parent.iterdir()}
    assert {"report.html", "report.md", "report.tex", "report.json", "forest.png", "curves.png"} <= first.keys()
    assert sum(name.startswith("seeds-") for name in first) == len(findings.findings)
    assert all(content.startswith(b"\x89PNG") for name, content in first.items() if name.endswith(".png"))
    forms.write(findings, page.parent, each_png=True)
    assert {path.name: path.read_bytes() for path in page.parent.iterdir()} == first
    runs = tuple(replace(run, status="missing", curve=(), metrics={}) for run in findings.runs)
    forms.write(replace(findings, findings=(), runs=runs), page.parent)
    assert not list(page.parent.glob("*.png"))  # one of before would be taken for one of this report
    (own := tmp_path / "own" / "layers.png").parent.mkdir()
    own.write_bytes(b"somebody's own")
    for _ in range(2):
        forms.write(replace(findings, findings=(), runs=runs), own.parent)
    assert own.read_bytes() == b"somebody's own"


def test_a_picture_too_tall_for_a_file_is_in_the_page_alone(
    findings: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = forms.write(findings, tmp_path)
    monkeypatch.setattr(drawing, "TALLEST", 10)
    forms.write(findings, tmp_path)
    assert not list(tmp_path.glob("*.png"))
    assert "Learning curves" in page.read_text()


def test_the_panels_of_many_arms_stand_apart(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no layout is looked for, the axes have room between them for the names of their ticks."""
    monkeypatch.setattr(drawing, "LAID_OUT", 1)
    figure = plots.curves(findings)
    assert figure.get_layout_engine() is None
    boxes = [axes.get_tightbbox() for axes in figure.axes if axes.get_visible()]
    assert len(boxes) > 2
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])
    _, panels = drawing.grid(4, 1.0)
    assert [axes.get_visible() for axes in panels.ravel()] == [True] * 4 + [False] * 2


def test_a_study_without_comparisons(findings: Findings) -> None:
    bare = replace(findings, findings=())
    assert forms.table(bare).startswith("arm ")
    assert forms.as_json(bare) == []
    assert "declares no comparison" in html(bare, plots.every(bare))


@pytest.mark.parametrize("scores", [{}, {0: 0.6}, {0: 0.6, 1: 0.6, 2: 0.6}])
def test_too_little_to_judge(findings: Findings, scores: dict[int, float]) -> None:
    """No pair, one pair, identical results: shown as undecided, never as an error."""
    pairs = pair({**dict.fromkeys(range(3)), **scores}, 0.6, seeds=range(3))
    (verdict,) = judge([(CLAIMS[0], pairs)])
    runs = dict.fromkeys(range(3), findings.runs[1].id)
    thin = replace(
        findings,
        findings=(Finding(verdict=verdict, larger_is_better=True, treatment_runs=runs, control_runs=runs),),
    )
    assert "undecided" in forms.table(thin)
    assert "undecided" in html(thin, plots.every(thin))
    assert difference(verdict) == {0: "–", 1: "+0.000", 3: "+0.000"}[len(scores)]
    assert ("\n  seed 0   0.600000 - 0.600000" in chain(thin)) == (len(scores) == 1)  # one seed is still a seed


def test_trained_arms_that_always_score_the_same_are_not_taken_for_one_run(findings: Findings) -> None:
    """Both reach 1.0 with every seed: as many runs as seeds, and a metric at its end."""
    pairs = pair(dict.fromkeys(range(3), 1.0), 1.0, seeds=range(3))
    (verdict, _) = judge([(CLAIMS[0], pairs), (CLAIMS[1], pairs)])
    (single, *_), trained = [run.id for run in findings.runs], [run.id for run in findings.runs[1:4]]
    many = dict(enumerate(trained))
    finding = Finding(
        verdict=verdict, larger_is_better=True, treatment_runs=many, control_runs=dict.fromkeys(many, single)
    )
    shown = replace(findings, findings=(finding,))
    table = forms.table(shown)
    assert "\nthe same at every seed; Holm over 2 " in table
    assert "* H1: both score the same at every seed: the metric may be at its end, or the arms alike\n" in table
    told = table + html(shown, plots.every(shown)) + chain(shown)
    assert "one run of each" not in told
    assert "one run each" not in told
    assert "\n  every seed   1.000000 - 1.000000" in chain(shown)
    alone = replace(finding, treatment_runs=dict.fromkeys(many, single))
    assert "\none run of each arm: no seed moves a figure; Holm" in forms.table(
        replace(findings, findings=(alone,))
    )


def test_several_backbones_are_told_apart(findings: Findings) -> None:
    other = replace(findings.findings[0].verdict, backbone="base")
    both = (findings.findings[0], replace(findings.findings[0], verdict=other))
    rows = tuple(replace(run, backbone="base", id=run.id[::-1]) for run in findings.runs)
    wide = replace(findings, findings=both, runs=findings.runs + rows)
    text = forms.table(wide)
    assert f"B1 - B0 on {BACKBONE}" in text
    assert "B1 - B0 on base" in text
    assert [row[0] for row in across(wide)[0]] == [f"B1 - B0 on {BACKBONE}", "B1 - B0 on base"]
    page = Links(html(wide, plots.every(wide)))
    assert [name for name, count in Counter(page.ids).items() if count > 1] == []
    assert RECALL in forms.markdown(wide)
    named = [axes.get_title(loc="left") for axes in plots.curves(wide).axes if axes.get_visible()]
    assert named == [f"{arm} on {on}" for on in (BACKBONE, "base") for arm in ("B1", "B1-noHN", "M1")]


def test_what_training_costs_is_of_the_runs_own_seconds(tmp_path: Path) -> None:
    """The median run of each trained arm: seconds of training over its steps; against the controls of its claims."""
    ledger = Ledger(tmp_path / "ledger")
    findings = findings_of(ledger)
    odd = {("B1", 0): 1.0, ("B1", 1): 5.0, ("M1", 0): None}  # one quicker, one slower, one that did not record it
    runs = tuple(replace(row, training=odd.get((row.arm, row.seed), row.training)) for row in findings.runs)
    sizes = {"B1": {"batch_size": 16}, "M1": {"batch_size": 0}}  # 0: a word of a script's own
    arms = {arm: {**made, **sizes.get(arm, {})} for arm, made in findings.arms.items()}
    told = with_costs(replace(findings, arms=arms, runs=runs))
    assert {cost.arm for cost in told.costs} == {arm for arm, made in findings.arms.items() if made["train"]}
    for cost in told.costs:
        rows = [row for row in findings.of(cost.arm, cost.backbone) if row.status == "finished"]
        trained = [ledger.training(row.entries[0]).seconds["train"] for row in rows]
        seconds = [odd.get((row.arm, row.seed), one) for row, one in zip(rows, trained, strict=True)]
        steps = [one / row.curve[-1][0] for one, row in zip(seconds, rows, strict=True) if one is not None]
        assert (cost.runs, cost.least, cost.most) == (len(steps), min(steps), max(steps))
        assert cost.a_step == pytest.approx(np.median(steps))
        assert cost.thousand_rows == (pytest.approx(cost.a_step * 1000 / 16) if cost.arm == "B1" else None)
    times = {arm: against for arm, *_, against in cost_rows(told)}
    assert times["B1"] == "1.00 × B1-noHN"  # and not B0, which is not trained
    assert times["B1-noHN"] == "–"
    assert times["M1"] == "1.00 × B1"
    assert "What training costs" in html(told, {})
    assert "What training costs" not in html(findings, {})


def test_layers_and_figures_are_drawn_where_the_runs_have_them(findings: Findings) -> None:
    """A line for each arm with figures of every layer; a mark for each run with both figures, linked to it."""
    assert "layers" not in plots.every(findings)
    depth = {f"layers/{layer}/{name}": 0.1 * layer for layer in range(4) for name in ("mrr", "anisotropy")}
    runs = [
        replace(row, metrics={**row.metrics, **depth, "pair_auc": 0.9}) if row.status == "finished" else row
        for row in findings.runs
    ]
    told = replace(findings, runs=tuple(runs))
    drawn = plots.every(told)
    for part in ("reciprocal rank", "anisotropy", "layer, 0 the embeddings", *findings.arms):
        assert part in drawn["layers"].svg
    finished = {f"#run-{row.id}" for row in runs if row.status == "finished"}
    assert finished <= set(Links(drawn["figures"].svg).links)
    assert "geometry/anisotropy" in drawn["figures"].svg
    assert "pair_auc" in drawn["figures"].svg
    assert "readout/divergence" not in drawn["figures"].svg
    page = html(told, drawn)
    assert "Layer by layer" in page
    assert "Figure against figure" in page
