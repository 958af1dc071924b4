"""Whatever workers and clients do in whatever order, a task has exactly one final state."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from answerback import success
from answerback.core.limits import TaskLimits
from answerback.tasks import transitions
from answerback.tasks.task_record import OpenQuestion, TaskRecord, new_id
from answerback.tasks.task_store import Change, MemoryStore

NOW = 1_000_000.0
TOOLS = ("job",)
QUESTIONS = {"a": OpenQuestion("roots/list", {})}
WORKERS = st.sampled_from(["w1", "w1", "w1", "w2"])
STEPS = st.one_of(
    st.tuples(st.just("claim"), WORKERS),
    # A worker may act on any claim that it ever had, also on one that it has lost.
    st.tuples(st.sampled_from(["finish", "ask", "give up", "report"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["answer", "cancel"]), st.just(0)),
)


def _change(step: str, claim: TaskRecord | None) -> Change:
    if step == "answer":
        return partial(transitions.answered, answers={"a": {}})
    if step == "cancel":
        return transitions.cancelled
    assert claim is not None
    held: dict[str, Any] = {"worker": claim.worker, "fence": claim.fence}
    changes: dict[str, Change] = {
        "finish": partial(transitions.finished, reply=success(str(claim.fence)), **held),
        "ask": partial(transitions.asked, questions=QUESTIONS, **held),
        "give up": partial(transitions.given_up, **held),
        "report": partial(transitions.reported, message="half", **held),
    }
    return changes[step]


@settings(max_examples=300, deadline=None)
@given(idempotent=st.booleans(), steps=st.lists(STEPS, min_size=4, max_size=20))
def test_a_task_ends_once_and_only_by_the_worker_that_holds_it(
    idempotent: bool, steps: list[tuple[str, Any]]
) -> None:
    store = MemoryStore()
    task = TaskRecord(
        id=new_id(),
        tool="job",
        arguments=b"{}",
        created=NOW,
        changed=NOW,
        idempotent=idempotent,
    )
    store.add(task, TaskLimits())
    claims: list[TaskRecord] = []
    ends: list[TaskRecord] = []
    for step, which in steps:
        if step == "claim":
            claims += store.claim(which, 10, 1, TOOLS)
        elif step in ("answer", "cancel") or claims:
            claim = claims[which % len(claims)] if claims else None
            changed = store.change(task.id, _change(step, claim))
            ends += [changed] if changed is not None and changed.is_final else []
            if step == "finish" and changed is not None:
                assert claim is claims[-1]

    found = store.get(task.id)
    assert found is not None
    assert len(ends) == int(found.is_final)
    assert ends in ([], [found])
    assert [claim.fence for claim in claims] == list(range(1, len(claims) + 1))
    # It starts again only after a question, or because it is idempotent.
    assert idempotent or len(claims) <= 1 + sum(step == "answer" for step, _ in steps)
