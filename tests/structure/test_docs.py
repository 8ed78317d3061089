"""The pages cannot lie: what they show is run, what they quote is there, what they link to exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from tools import doc_blocks
from tools.doc_blocks import GENERATED, NAME, PAGES, ROOT, Block, actual, agree, blocks, workplace

from causalab_mini.cli import execute
from causalab_mini.cli.words import sections
from causalab_mini.spec.document import Document, Intervention, Observe, Read, Save, Site, Write
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.components import COMPONENTS
from causalab_mini.vocabulary.mechanisms import MECHANISMS
from causalab_mini.vocabulary.metrics import METRICS
from causalab_mini.vocabulary.reasons import Reason

WRITTEN = [page for page in PAGES if page != GENERATED]
NAMES = [page.relative_to(ROOT).as_posix() for page in WRITTEN]
LANGUAGES = ("console", "sh", "json", "text", "python", "")
LONGEST = {"CONTRIBUTING.md": 120, "cli.md": 1000}


def page_text(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("page", WRITTEN, ids=NAMES)
def test_what_a_page_shows_is_what_happens(page: Path) -> None:
    with workplace():
        for block in blocks(page):
            answer = actual(block)
            same = (
                answer == block.text if block.note.startswith("file: ") else answer is None or agree(block.text, answer)
            )
            assert same, (
                f"{page.name} shows:\n{block.text}\nand what happens is:\n{answer}\nrun: python tools/doc_blocks.py"
            )
            if block.note.startswith("in: "):
                fits(block)


def fits(block: Block) -> None:
    """A fragment stands in a shipped document, and the document is still well formed."""
    found = re.fullmatch(r"in: (\S+) at (\S+)", block.note)
    assert found, block.note
    whole = doc_blocks.changed(found[1], found[2], json.loads(block.text))
    Path("fragment.json").write_text(json.dumps(whole))
    assert execute(["validate", "fragment.json"]) == 0, block.text


@pytest.mark.parametrize("page", WRITTEN, ids=NAMES)
def test_every_block_is_of_a_kind_that_is_checked(page: Path) -> None:
    assert page.read_text().count("```") % 2 == 0
    for block in blocks(page):
        assert block.language in LANGUAGES, block.text
        if block.language == "json":
            assert block.note.split(": ")[0] in ("file", "in", "from"), f"a JSON block without a note:\n{block.text}"
        else:
            assert block.language == "text" or not block.note.startswith(("file: ", "in: ", "from: ", "refused: "))
        if block.language not in ("console", "sh"):
            assert not re.search(rf"^\$? ?{NAME} ", block.text, re.M), "a command is in a console or sh block"
        for command in block.commands:
            assert command.startswith((f"{NAME} ", "make ")), command
            if command.startswith("make "):
                assert re.search(rf"^{command.split()[1]}:", page_text("Makefile"), re.M), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_pictures_are_there(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        assert not target.startswith(("http:", "https:", "/")), target
        file, _, anchor = target.partition("#")
        path = (page.parent / unquote(file)).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target
        if path.suffix == ".png":
            assert path.stat().st_size < 200_000


def anchors(page: Path) -> set[str]:
    """What headings of a page can be linked to."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_shipped_document_is_listed() -> None:
    listed = re.findall(r"\]\(\.\./documents/v2/(\w+)\.json\)", page_text("docs/shipped.md"))
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "documents/v2").glob("*.json"))


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, todo = set[Path](), [ROOT / "README.md"]
    while todo:
        page = todo.pop().resolve()
        if page in seen:
            continue
        seen.add(page)
        if page.suffix == ".md":
            todo += [page.parent / link.split("#")[0] for link in re.findall(r"\]\(([^)\s#]+)", page.read_text())]
    assert {page.resolve() for page in PAGES} <= seen


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_plain(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"(?<![\w.~])/(root|home|work|tmp|Users|mnt|opt|var)/", text), "a path of some machine"
    assert not re.search(r"https?://", text), "an address"
    assert text.startswith("# ")
    assert text.count("\n") < LONGEST.get(page.name, 400)


@pytest.mark.parametrize("page", WRITTEN, ids=NAMES)
def test_files_and_functions_a_page_names_exist(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    package = ROOT / "src" / "causalab_mini"
    for file, function in re.findall(r"`([\w/]+\.py)`(?:, `([\w.]+)`)?", prose):
        path = next((folder / file for folder in (ROOT, package) if (folder / file).is_file()), None)
        assert path is not None, file
        for name in function.split(".") if function else []:
            assert re.search(rf"(def|class) {name}\b", path.read_text()), f"{file}: {name}"


def headings(name: str) -> set[str]:
    return set(re.findall(r"^#+ `?([^`\n]+?)`?$", page_text(name), re.M))


def rows(name: str) -> set[str]:
    """The words in the first cells of a page's tables."""
    cells = re.findall(r"^\|([^|]+)\|", page_text(name), re.M)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def test_every_kind_has_its_place() -> None:
    from causalab_mini.schedule.optimize import MODES, PASSES

    assert set(COMPONENTS.names()) <= rows("docs/components.md")
    assert set(MECHANISMS.names()) <= headings("docs/mechanisms.md")
    assert set(METRICS.names()) <= headings("docs/metrics.md")
    assert {step.name for step in PASSES} <= headings("docs/schedule.md")
    assert set(MODES) <= rows("docs/schedule.md")
    assert set(Position.model_fields) <= rows("docs/positions.md")
    assert {reason.value for reason in Reason} <= rows("docs/results.md")


MISSING = {
    "sites of several layers": "layers: [a, b], all",
    "`token: input`": "token: input",
    "`decode` as an object": "decode: {…}",
    "`reduce: pca`": "reduce: pca",
}
"""How the last list of documents.md says what `vocab` lists as not implemented yet."""


def test_what_is_not_built_is_said_and_nothing_else() -> None:
    said = page_text("docs/documents.md").partition("## Not implemented yet")[2]
    missing = {word.name for section in sections() if section.key == "not_implemented" for word in section.words}
    for phrase, word in MISSING.items():
        assert (phrase in said) == (word in missing), phrase
    for name in ("subspace", "pca", "gate", "sae", "linear", "continuation_logprob", "fit", "weights"):
        assert (f"`{name}`" in said) == (name in missing), name


@pytest.mark.parametrize(
    "node", [Document, Site, Read, Write, Intervention, Observe, Save], ids=lambda node: node.__name__
)
def test_every_key_of_a_document_is_described(node: type[Document]) -> None:
    names = {field.alias or name for name, field in node.model_fields.items()}
    assert names <= rows("docs/documents.md"), names - rows("docs/documents.md")


def test_metric_pages_agree_with_the_metrics() -> None:
    text = page_text("docs/metrics.md")
    for kind in METRICS:
        section = re.search(rf"^## `{kind.name}`\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        assert section, kind.name
        assert kind.node.formula in section[1], kind.name
        assert f"unit: {kind.node.unit}" in section[1], kind.name
        for field in set(kind.node.model_fields) - {"kind", "of", "token_form"}:
            assert f"`{field}`" in section[1], (kind.name, field)


def test_mechanism_pages_agree_with_the_mechanisms() -> None:
    text = page_text("docs/mechanisms.md")
    for kind in MECHANISMS:
        section = re.search(rf"^## `{kind.name}`\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        assert section, kind.name
        assert kind.node.formula in section[1], kind.name
        for field in kind.node.model_fields:
            assert f"`{field}`" in section[1], (kind.name, field)


def test_a_runs_files_are_described_and_the_picture_is_current() -> None:
    from PIL import Image
    from tools.make_heatmap import PICTURE, cells, digest

    page = page_text("docs/results.md")
    with workplace() as folder:
        run = ["run", "documents/v2/layer_position.json", "--out", "out/grid", "--engine", "hooks"]
        assert execute(run) == 0
        out = folder / "out" / "grid"
        with Image.open(PICTURE) as picture:
            assert picture.info["Description"] == digest(cells(out)), "run: python tools/make_heatmap.py"
        record = json.loads((out / "run.json").read_text())
        for key in keys(record, ("files", "data", "versions")):
            assert f"`{key}`" in page, key
        for key in json.loads((out / "summary.json").read_text())[0]:
            assert f"`{key}`" in page or key in ("layer", "position"), key


def keys(value: object, but: tuple[str, ...]) -> set[str]:
    if isinstance(value, list):
        return {key for item in value for key in keys(item, but)}
    if not isinstance(value, dict):
        return set()
    inside = {key for name, item in value.items() if name not in but for key in keys(item, but)}
    return {*value, *inside}


def test_pages_are_committed() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and os.environ.get("CI"):
        assert set(NAMES) <= set(listed.stdout.splitlines())
