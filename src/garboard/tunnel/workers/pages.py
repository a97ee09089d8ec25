"""The pages of a server with workers: health from what the supervisor knows, the rest asked from all of them."""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from garboard.tunnel.metrics import Gauge, Metrics, Total
from garboard.tunnel.server.proxy import PREFIX
from garboard.tunnel.web import OK, Page, PageMaker, Question, json_page
from garboard.tunnel.workers.child import ANSWER_S, Child
from garboard.tunnel.workers.merging import families_text, merge_families, merge_status
from garboard.tunnel.workers.supervisor import WorkerSupervisor
from garboard.values import Json

TRACE_S: Final = 55.0


class SupervisorPages:
    """What the health and admin ports answer."""

    def __init__(self, supervisor: WorkerSupervisor) -> None:
        self._supervisor = supervisor
        self._own = Metrics(
            PREFIX,
            {
                "workers": ("Workers that accept connections.", Gauge(lambda: len(supervisor.running))),
                "worker_restarts_total": ("Workers that were replaced.", Total(lambda: supervisor.restarts)),
            },
        )

    def health(self) -> dict[str, PageMaker]:
        return {"/healthz": self._health, "/readyz": self._readiness, "/ready": self._readiness}

    def questions(self) -> dict[str, Question]:
        return {"/metrics": self._metrics}

    def admin_questions(self) -> dict[str, Question]:
        return {"/metrics": self._metrics, "/status": self._status, "/trace": self._trace}

    def _health(self, _verbose: bool) -> Page:
        if self._supervisor.has_started and self._supervisor.running:
            return OK
        return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "no worker accepts connections")

    def _readiness(self, _verbose: bool) -> Page:
        if self._supervisor.is_stopping:
            return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "the proxy server is stopping")
        if self._supervisor.is_ready:
            return OK
        return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "no connection to any proxy agent")

    async def _metrics(self, _query: Mapping[str, str]) -> Page:
        supervisor = self._supervisor
        await asyncio.gather(*(child.count() for child in supervisor.running))
        counted = [child.metrics for child in supervisor.children]
        return Page(HTTPStatus.OK, families_text(merge_families([*counted, supervisor.retired])) + self._own.text())

    async def _status(self, _query: Mapping[str, str]) -> Page:
        supervisor = self._supervisor
        answers = await asyncio.gather(*(child.ask("/status", {}, ANSWER_S) for child in supervisor.running))
        documents = [json.loads(each.text) for each in answers if each is not None and each.status == HTTPStatus.OK]
        source = supervisor.options.tenants_file
        file: Json = {"path": str(source.path), "problem": supervisor.problem} if source else None
        workers: list[Json] = [_worker(child) for child in supervisor.children]
        return json_page(merge_status(supervisor.options.server_id, documents, workers, file))

    async def _trace(self, query: Mapping[str, str]) -> Page:
        """By the first worker that has the agent; those with most agents are asked first."""
        page = Page(HTTPStatus.SERVICE_UNAVAILABLE, "no worker accepts connections\n")
        for child in sorted(self._supervisor.running, key=lambda each: -sum(each.agents.values())):
            answer = await child.ask("/trace", query, TRACE_S)
            if answer is None:
                continue
            page = Page(HTTPStatus(answer.status), answer.text, kind="application/json")
            if answer.status != HTTPStatus.OK or _has_agent(json.loads(answer.text)):
                return page
        return page


def _has_agent(document: Any) -> bool:
    return len(document["hops"]) > 1


def _worker(child: Child) -> Json:
    state = "running" if child.is_listening else "starting" if child.process else "ended"
    pid = child.process.pid if child.process else None
    agents = sum(child.agents.values())
    return {"id": child.server_id, "pid": pid, "state": state, "agents": agents, "restarts": max(child.starts - 1, 0)}
