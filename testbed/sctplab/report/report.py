# SPDX-License-Identifier: GPL-2.0
"""Turns a folder of records into summary.csv, plots/ and report.html. Reads records only.

The same records give the same bytes: nothing here looks at the clock or at the machine.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from matplotlib.figure import Figure as MplFigure

from sctplab.errors import LabError
from sctplab.files import write_text
from sctplab.measure.records import load_runs
from sctplab.report import facets, tables
from sctplab.report.contrasts import contrast_table
from sctplab.report.plot_style import COLOURS, GRID, INK, PAPER, save
from sctplab.report.plots import Scene, draw
from sctplab.report.reference import Figure, load_reference, reference_names, reference_path
from sctplab.report.summary import Section, sections, summary_csv
from sctplab.report.tables import Table
from sctplab.report.timeseries import draw_series, series_figures
from sctplab.spec.report_spec import Contrast, Plot, of_scenario

TEMPLATES = Path(__file__).parent / "templates"
EARLIER_PLOT = re.compile(r'href="(plots/[A-Za-z0-9._=+-]+)\.svg"')
MAX_SINGLE = 12  # runs of a scenario of which each gets a picture of its own
MIN_SCALE = 0.65  # of a figure on the page; the reader scrolls sideways beyond that


@dataclass(frozen=True, slots=True)
class Image:
    """A drawn figure: its SVG for the page, the files' stem relative to the report, and what it shows."""

    svg: str
    stem: str
    metric: str  # "" for a time series


@dataclass(frozen=True, slots=True)
class Part:
    """One scenario's section, its images and the printed figures beside it.

    asked: what the scenario file asks for, each with its table; automatic images are then left out.
    """

    section: Section
    images: tuple[Image, ...]
    asked: tuple[tuple[Image | None, Table | None], ...]
    printed: tuple[Figure, ...]
    note: str

    @property
    def every_image(self) -> tuple[Image, ...]:
        return (*self.images, *(image for image, _ in self.asked if image))


def make_report(results_dir: Path, picture: Callable[[Path], MplFigure | None] = lambda record: None) -> Path:
    """Writes the report of RESULTS_DIR/records into RESULTS_DIR; returns the path of report.html.

    PICTURE: draws a single run, from the path of its record, if it has what that takes.
    Raises LabError when there are no records, one cannot be read, or the folder cannot be written.
    """
    if results_dir.is_file():
        raise LabError(f"{results_dir}: is a file; expected a result folder")
    found = sections(load_runs(results_dir))
    try:
        parts = [_part(section, results_dir, picture) for section in found]
        _remove_stale(results_dir, parts)
        write_text(results_dir / "summary.csv", summary_csv(found))
        return write_text(results_dir / "report.html", _html(parts, results_dir))
    except OSError as error:
        raise LabError(f"{error.filename or results_dir}: cannot be written: {error.strerror}") from error


def _part(section: Section, results: Path, picture: Callable[[Path], MplFigure | None]) -> Part:
    printed, note = _printed(section)
    images = []
    wanted = of_scenario(section.scenario)
    for metric in section.headlines:
        if len(section.cells) == 1 or wanted.plots:  # one number needs no plot
            break
        for figure in facets.figures(section, metric):
            scene = Scene(section, figure, printed)
            name = f"{section.scenario}-{figure.name}"
            images.append(_image(draw(scene), name, scene.title, metric.name, results))
    for series in series_figures(section):
        canvas = draw_series(section, series)
        images.append(
            _image(canvas, f"{section.scenario}-{series.name}-over-time", series.title, "", results)
        )
    for run in section.runs if len(section.runs) <= MAX_SINGLE else ():
        drawn = picture(run.path) if run.ok else None
        if drawn:
            images.append(_image(drawn, run.path.stem, f"{run.path.stem}: paths and waits", "", results))
    asked = (*_asked(section, wanted.plots, printed, results), *_contrasts(section, wanted.contrasts))
    return Part(section, tuple(images), asked, tuple(printed), note)


def _asked(
    section: Section, plots: Sequence[Plot], printed: Sequence[Figure], results: Path
) -> Iterator[tuple[Image | None, Table | None]]:
    """The scenario's own plots, each with the table of its numbers after the last of its figures."""
    for plot in plots:
        pooled = section.pooled(plot.pool)
        shown = facets.asked(pooled, plot)
        for figure in shown:
            chosen = [mark for mark in printed if not plot.sources or mark.source in plot.sources]
            scene = Scene(pooled, figure, chosen)
            name = f"{section.scenario}-{figure.name}"
            image = _image(draw(scene), name, scene.title, plot.metric, results)
            table = tables.asked_table(pooled, figure, printed) if figure is shown[-1] else None
            yield image, table


def _contrasts(section: Section, contrasts: Sequence[Contrast]) -> Iterator[tuple[Image | None, Table]]:
    for contrast in contrasts:
        table = contrast_table(section, contrast)
        if table.rows:
            yield None, table


def _image(canvas: MplFigure, name: str, title: str, metric: str, results: Path) -> Image:
    stem = re.sub(r"[^A-Za-z0-9._=+-]", "_", name)
    svg = save(canvas, results / "plots" / stem)
    return Image(inline_svg(svg, re.sub(r"[^A-Za-z0-9]", "-", stem) + "-", title), f"plots/{stem}", metric)


def inline_svg(svg: str, prefix: str, title: str) -> str:
    """An SVG file's text made fit for standing in a page: own ids, the page's colours, no addresses."""
    head, _, body = svg[svg.index("<svg") :].partition(">")
    head = re.sub(r'\s(?:xmlns(?::xlink)?|version|height)="[^"]*"', "", head)
    head = re.sub(r'\swidth="([0-9.]+)pt"', lambda found: _width(float(found[1])), head)
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.S).replace("xlink:href", "href")
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", body)
    curves = [(colour, f"var(--curve{number})") for number, colour in enumerate(COLOURS)]
    for colour, own in ((INK, "currentColor"), (GRID, "var(--grid)"), (PAPER, "none"), *curves):
        body = body.replace(colour, own)
    return f'{head} role="img" aria-label="{html.escape(title)}">{body}'


def _width(points: float) -> str:
    """As wide as drawn, smaller on a narrow screen, but not so small that nobody can read it."""
    return f' style="width:{points:.0f}pt;min-width:{MIN_SCALE * points:.0f}pt"'


def _printed(section: Section) -> tuple[list[Figure], str]:
    """The printed figures that the scenario names; a note instead when their file is not on this machine."""
    figures_found: list[Figure] = []
    missing = []
    for name in sorted({name for run in section.runs for name in reference_names(run.reference)}):
        path = reference_path(name)
        if path.is_file():
            figures_found += load_reference(path)
        else:
            missing.append(name)
    note = (
        f"Reference figures are not shown: {', '.join(missing)} is not beside the scenario files."
        if missing
        else ""
    )
    return figures_found, note


def _html(parts: Sequence[Part], results: Path) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    runs = [run for part in parts for run in part.section.runs]
    return environment.get_template("report.html.j2").render(
        name=results.resolve().name, colours=COLOURS, results=results, parts=parts, runs=runs, page=tables
    )


def _remove_stale(results: Path, parts: Sequence[Part]) -> None:
    """Takes away the plots that an earlier report.html links to and this one does not."""
    page = results / "report.html"
    earlier = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
    kept = {image.stem for part in parts for image in part.every_image}
    for stem in set(EARLIER_PLOT.findall(earlier)) - kept:
        for suffix in (".svg", ".png"):
            (results / f"{stem}{suffix}").unlink(missing_ok=True)
