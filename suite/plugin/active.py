"""The plugin while a matrix runs: collects its items, puts them in order, and closes the run."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from suite.engine.belongings import check_directory
from suite.engine.failures import VariantFailed
from suite.engine.locking import RunLock
from suite.engine.opening import Question, open_session, prepare_directory, read_question
from suite.engine.session import MatrixSession
from suite.errors import JournalUnwritable, QuantdriftError, UsageError
from suite.gate.plan import GateItem
from suite.plugin import FIXTURE, NAME, option_reader
from suite.plugin.closing import Outcome, close_run, tell_unwritten
from suite.plugin.fixture import MatrixVariant, OwnTest
from suite.plugin.items import BudgetTest, GateTest, MatrixFile, MatrixItem, raise_failed
from suite.records import Aspect, Variant
from suite.reporting.hostile import plain
from suite.settings import PATHS, Settings, read_settings

USAGE_STATUS = 2
LOST_STATUS = 3
DIRECTORY = "quantdrift_directory"
VARIANT_IN_ID = re.compile(r"\[([a-z0-9_.]+)[-\]]")


def activate(config: pytest.Config) -> None:
    """Read everything, validate it whole, and register the plugin. Ends pytest with status 2 when something is wrong."""
    if str(config.rootpath) not in sys.path:
        sys.path.insert(0, str(config.rootpath))  # where a person's own backends and scorers lie
    try:
        _check_root(config)
        plugin = MatrixPlugin(config)
    except (UsageError, QuantdriftError) as fault:
        pytest.exit(f"quantdrift: {fault}", returncode=USAGE_STATUS)
    config.pluginmanager.register(plugin, NAME)


class MatrixPlugin:
    """Registered only under ``--model-matrix``."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = _read_settings(config)
        self.worker: str | None = _worker_input(config).get("workerid")
        directory = _worker_input(config).get(DIRECTORY)
        self.parallel = bool(directory) or bool(getattr(config.option, "numprocesses", None))
        self.question: Question = read_question(
            self.settings, directory=Path(directory) if directory else None, parallel=self.parallel
        )
        if directory is None and self.settings.report is not None and not self.question.resumed:
            check_directory(self.question.directory)
        self.outcome: Outcome | None = None
        self._session: MatrixSession | None = None
        self._lock: RunLock | None = None
        self._gates: tuple[tuple[Variant, GateItem], ...] = ()
        self._selected: set[str] = set()
        self._reported: set[str] = set()
        self._prepared = False
        self._interrupted = False
        self._own_names: dict[str, str] = {}
        self._say = _progress(config)
        _add_matrix_file(config, self.settings.matrix_file)

    @property
    def session(self) -> MatrixSession:
        """The session; begun, and its directory made, when the first item runs."""
        if self._session is None:
            if self.worker is None:
                self._take_lock()
            self._session = open_session(self.question, self._say, worker=self.worker)
            self._session.select(self._gates)
        return self._session

    def _take_lock(self) -> None:
        """Two processes that wrote into one run would lose each other's work."""
        try:
            self._lock = RunLock(self.question.directory)
        except UsageError as fault:
            pytest.exit(f"quantdrift: {fault}", returncode=USAGE_STATUS)

    # ------------------------------------------------------------------------------------------ collection

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> MatrixFile | None:
        """The matrix file holds the matrix's items."""
        if file_path != self.settings.matrix_file:
            return None
        collector: MatrixFile = MatrixFile.from_parent(parent, path=file_path)
        collector.plugin = self
        return collector

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A user's own test that takes the fixture runs once for each variant."""
        if FIXTURE in metafunc.fixturenames:
            names = [variant.name for variant in self.question.plan.asked_for]
            metafunc.parametrize(FIXTURE, names, indirect=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep what belongs to the matrix: other tests would disturb the timing, and nobody asked for them here."""
        self._own_names = name_own_tests([item for item in items if FIXTURE in getattr(item, "fixturenames", ())])
        other = [item for item in items if not _belongs(item)]
        if other:
            config.hook.pytest_deselected(items=other)
        items[:] = sorted((item for item in items if _belongs(item)), key=self._rank)

    def _rank(self, item: pytest.Item) -> tuple[int, int]:
        """Answers variant by variant, so that each is loaded once; own tests; then all gates, which are judged together."""
        names = [variant.name for variant in self.question.plan.matrix.variants]
        if not isinstance(item, MatrixItem):
            return 1, names.index(_param(item))
        if isinstance(item, BudgetTest):
            return 4, names.index(item.variant.name)
        if not isinstance(item, GateTest):
            return 0, names.index(item.variant.name)
        return 2 if item.gate.aspect is Aspect.QUALITY else 3, names.index(item.variant.name)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What was selected is measured and judged together."""
        self._gates = tuple((item.variant, item.gate) for item in session.items if isinstance(item, GateTest))
        self._selected |= {item.nodeid for item in session.items}

    # ------------------------------------------------------------------------------------------ running

    def hand_out(self, request: pytest.FixtureRequest) -> MatrixVariant:
        """The fixture's value for one test."""
        variant = next(v for v in self.question.plan.matrix.variants if v.name == request.param)
        node = request.node
        test = OwnTest(node.nodeid, self._own_names.get(node.nodeid) or _own_name(node))
        return MatrixVariant(self.session, variant, test)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self) -> Iterator[None]:
        """A user's own test whose variant failed is told like any other item."""
        try:
            return (yield)
        except VariantFailed as failed:
            raise_failed(failed, self.settings)

    @staticmethod
    def pytest_exception_interact(node: pytest.Item, call: pytest.CallInfo[object]) -> None:
        """What the disk does not take need not be measured."""
        if call.excinfo is not None and isinstance(call.excinfo.value, JournalUnwritable):
            node.session.shouldstop = plain(str(call.excinfo.value))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count results, to compare with what was selected."""
        if report.when == "teardown" or report.outcome == "failed":
            self._reported.add(report.nodeid)

    # ------------------------------------------------------------------------------------------ xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Every process of xdist writes into the same run."""
        if not self._prepared:
            self._prepared = True
            self._take_lock()
            prepare_directory(self.question)
        node.workerinput[DIRECTORY] = str(self.question.directory)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Whole variants go to one process each: a model is loaded once."""
        from xdist.scheduler import LoadScopeScheduling

        class VariantScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
            def _split_scope(self, nodeid: str) -> str:
                found = VARIANT_IN_ID.search(nodeid)
                return found[1] if found else nodeid

        return VariantScheduling(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """The controller collects nothing itself."""
        self._selected |= set(ids)

    # ------------------------------------------------------------------------------------------ the end

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell Ctrl-C (and ``pytest.exit``) from ``-x`` and ``--sw``, which pytest and xdist end with a kin of it."""
        self._interrupted |= excinfo.type is KeyboardInterrupt or isinstance(excinfo.value, pytest.exit.Exception)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the run, accept baselines, and tell lost results from failures."""
        try:
            self._conclude(session, exitstatus)
        finally:
            if self._session is not None:
                self._session.close()
            if self._lock is not None:
                self._lock.release()

    def _conclude(self, session: pytest.Session, exitstatus: int) -> None:
        if self.worker is not None or not self._selected or self.config.option.collectonly:
            return
        stopped = self._interrupted or session.shouldstop or session.shouldfail
        lost = set() if stopped else self._selected - self._reported
        try:
            self.outcome = close_run(self.question, self._session, lost=len(lost), interrupted=self._interrupted)
        except (QuantdriftError, OSError) as fault:
            self.outcome = tell_unwritten(self.question, fault)
        if self.outcome.broken:
            session.exitstatus = LOST_STATUS
        elif self.outcome.failed and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the report that was made when the session ended."""
        if self.outcome is None:
            return
        width = shutil.get_terminal_size().columns
        terminalreporter.section("model matrix")
        for line in self.outcome.render(width, color=terminalreporter.hasmarkup):
            terminalreporter.write_line(line)


def _check_root(config: pytest.Config) -> None:
    """Raise UsageError where pytest took a path that an option of ours names for what to run, and another root for it.

    It looks for the root before it knows any plugin's options: a value behind a space is an argument to it then.
    """
    here, given = config.invocation_params.dir, [str(one) for one in config.invocation_params.args]
    is_ours = config.rootpath == here or (config.inipath is not None and here.is_relative_to(config.inipath.parent))
    if is_ours or config.getoption("rootdir"):
        return
    for option, path in pairwise(given):
        if option.startswith("--matrix-") and "=" not in option and (here / path).exists():
            raise UsageError(
                f'write {option}={path}, with "=": pytest takes a path behind a space for what to run, and would look for '
                f"settings, and leave the run, in {config.rootpath} instead of {here}"
            )


def _read_settings(config: pytest.Config) -> Settings:
    """Settings; paths given on the command line start from where pytest was started, those of the ini file from its root."""
    read = option_reader(config)

    def value(name: str) -> Any:
        given = config.getoption(name)
        is_path = given and name in PATHS and not isinstance(given, list)
        return str(config.invocation_params.dir / given) if is_path else read(name)

    return read_settings(value, root=config.rootpath, typed=config.getoption)


def _add_matrix_file(config: pytest.Config, file: Path) -> None:
    """Collect the matrix although no argument names it, unless the person named what to run."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    inside = any(file.is_relative_to(config.invocation_params.dir / arg) for arg in config.args)
    if not named and not inside:
        config.args.append(str(file))


def _worker_input(config: pytest.Config) -> dict[str, Any]:
    """What an xdist controller told this process; empty outside of xdist's workers."""
    told: dict[str, Any] = getattr(config, "workerinput", {})
    return told


def _belongs(item: pytest.Item) -> bool:
    return isinstance(item, MatrixItem) or FIXTURE in getattr(item, "fixturenames", ())


def _param(item: pytest.Item) -> str:
    return str(cast("Any", item).callspec.params[FIXTURE])


def name_own_tests(items: Sequence[pytest.Item]) -> dict[str, str]:
    """Node id → name of its trial; the module is in it where tests of several modules would share one."""
    modules: dict[str, set[str]] = {}
    for item in items:
        modules.setdefault(_own_name(item), set()).add(_module(item))
    return {
        item.nodeid: name if len(modules[name]) == 1 else f"{_module(item)}.{name}"
        for item in items
        for name in (_own_name(item),)
    }


def _module(item: pytest.Item) -> str:
    """``sub.test_own``: also tells apart modules of one name in several directories."""
    return item.nodeid.partition("::")[0].removesuffix(".py").replace("/", ".")


def _own_name(item: pytest.Item) -> str:
    """Class and name without the variant: ``test_json``, ``TestFormat.test_json``, ``test_json-long`` with parameters."""
    name = getattr(item, "originalname", item.name)
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    others = [part for part in cast("Any", item).callspec.id.split("-") if part != _param(item)]
    return "-".join([".".join([*classes, name]), *others])


def _progress(config: pytest.Config) -> Callable[[str], None]:
    """Sentences go to a terminal that a person looks at, and nowhere else."""

    def say(sentence: str) -> None:
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and reporter.isatty and config.option.verbose >= 0:
            reporter.rewrite(f"  {sentence} ", erase=True)

    return say
