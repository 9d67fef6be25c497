"""The Job controller: pods that run to completion."""

from collections.abc import Iterable

from lamina.ports.kube import PODS, Object, Resource
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.framework.kinds import JOBS
from lamina_lab.controllers.framework.pod_template import pod_from
from lamina_lab.controllers.job import indexes
from lamina_lab.controllers.job import plan as job_plan
from lamina_lab.kubernetes import objects

_REFUSED_PAUSE_S = 5.0


class JobController:
    """The controller of Jobs."""

    kind = JOBS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._refused_until: dict[str, float] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        owner = objects.controller(obj) if resource == PODS else None
        return [f"{objects.namespace(obj)}/{owner['name']}"] if owner and owner.get("kind") == JOBS.kind else []

    async def sync(self, key: str) -> float | None:
        job = self._executor.cache.get(JOBS, key)
        if job is None:
            self._refused_until.pop(key, None)
            return None
        plan = job_plan.plan(job, self._pods_of(job), self._executor.clock.wall())
        if plan.remove:
            await self._executor.delete(JOBS, job)
            return None
        waits = [] if plan.again is None else [plan.again]
        await self._executor.delete_pods(JOBS, job, plan.delete)
        if plan.create and plan.delay > 0:
            waits.append(plan.delay)
        elif plan.create:
            waits += await self._make(key, job, plan.create)
        await self._publish(key, job, plan.status)
        return min(waits, default=None)

    def _pods_of(self, job: Object) -> list[Object]:
        pods = self._executor.cache.list(PODS, objects.namespace(job))
        return [pod for pod in pods if (objects.controller(pod) or {}).get("uid") == objects.uid(job)]

    async def _make(self, key: str, job: Object, count: int) -> list[float]:
        left = self._refused_until.get(key, 0.0) - self._executor.clock.monotonic()
        if left > 0:
            return [left]
        pod = pod_from(objects.spec(job).get("template") or {}, job, JOBS.api_version, JOBS.kind, {})
        pods = [pod] * count
        if indexes.is_indexed(job):
            pods = [indexes.with_index(pod, job, index) for index in indexes.free(job, self._pods_of(job), count)]
        made = await self._executor.create_pods(JOBS, job, pods)
        if not made.failure:
            return []
        self._refused_until[key] = self._executor.clock.monotonic() + _REFUSED_PAUSE_S
        return [_REFUSED_PAUSE_S]

    async def _publish(self, key: str, before: Object, planned: Object) -> None:
        job = self._executor.cache.get(JOBS, key)
        if job is None:
            return
        ended = job_plan.finished({"status": planned}) is not None
        fresh = job_plan.plan(job, self._pods_of(job), self._executor.clock.wall()).status
        status = planned if ended else fresh  # the pods just created are already counted
        await self._executor.publish(JOBS, job, status)
        condition = job_plan.finished({"status": status})
        if condition is not None and job_plan.finished(before) is None:
            if condition["type"] == "Complete":
                await self._executor.record_event(JOBS, job, "Completed", "Job completed")
            else:
                await self._executor.record_event(JOBS, job, condition["reason"], condition["message"], warning=True)
