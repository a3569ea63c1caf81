"""Every record that is stored or passed on. No logic beyond derived properties, no I/O.

`words` holds verdicts and states; `asked` what to measure; `found` what was measured; `judged` what it amounts to;
`stored` what is kept. Import from here.

Units are in the names: ``_s`` seconds, ``_bytes`` bytes, ``_tok_s`` tokens a second. A quantity that was not measured is
``None`` beside a status that says why; never NaN, never a silent zero.
"""

from suite.records.asked import (
    Case,
    Deadlines,
    Matrix,
    Protocol,
    Scenario,
    ScorerSpec,
    Tolerance,
    Variant,
)
from suite.records.found import (
    Artifact,
    ArtifactFile,
    Environment,
    Generation,
    Launch,
    Measurement,
    MetricSpec,
    Score,
    SpeedSample,
    Trial,
    VariantFailure,
    Witness,
    Yardstick,
)
from suite.records.judged import (
    Comparison,
    Finding,
    Flip,
    Run,
    VariantResult,
)
from suite.records.stored import (
    BaselineCase,
    BaselineMetric,
    Baselines,
    Note,
    Provenance,
    QualityBaseline,
    RenderedPrompts,
    ResolvedArtifact,
    SpeedBaseline,
)
from suite.records.words import (
    ALL,
    SCHEMA_VERSION,
    VERDICTS_WORST_FIRST,
    Aspect,
    Direction,
    Gate,
    SampleStatus,
    Tier,
    TrialStatus,
    Verdict,
)

__all__ = [
    "ALL",
    "SCHEMA_VERSION",
    "VERDICTS_WORST_FIRST",
    "Artifact",
    "ArtifactFile",
    "Aspect",
    "BaselineCase",
    "BaselineMetric",
    "Baselines",
    "Case",
    "Comparison",
    "Deadlines",
    "Direction",
    "Environment",
    "Finding",
    "Flip",
    "Gate",
    "Generation",
    "Launch",
    "Matrix",
    "Measurement",
    "MetricSpec",
    "Note",
    "Protocol",
    "Provenance",
    "QualityBaseline",
    "RenderedPrompts",
    "ResolvedArtifact",
    "Run",
    "SampleStatus",
    "Scenario",
    "Score",
    "ScorerSpec",
    "SpeedBaseline",
    "SpeedSample",
    "Tier",
    "Tolerance",
    "Trial",
    "TrialStatus",
    "Variant",
    "VariantFailure",
    "VariantResult",
    "Verdict",
    "Witness",
    "Yardstick",
]
