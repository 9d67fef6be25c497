"""The CronJob controller: carries out its plan, and lists the jobs it has created as active."""

from collections.abc import Iterable

from lamina.errors import Outside
from lamina.ports.kube import CRON_JOBS, AlreadyExists, Object, Resource
from lamina_lab.controllers.cronjob import plan as cron_plan
from lamina_lab.controllers.framework.actions import Create
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.framework.kinds import JOBS
from lamina_lab.kubernetes import objects


class CronJobController:
    """The controller of CronJobs."""

    kind = CRON_JOBS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        owner = objects.controller(obj) if resource == JOBS else None
        ours = owner is not None and owner.get("kind") == CRON_JOBS.kind
        return [f"{objects.namespace(obj)}/{owner['name']}"] if owner and ours else []

    async def sync(self, key: str) -> float | None:
        cron_job = self._executor.cache.get(CRON_JOBS, key)
        if cron_job is None:
            return None
        jobs = [
            job
            for job in self._executor.cache.list(JOBS, objects.namespace(cron_job))
            if (objects.controller(job) or {}).get("uid") == objects.uid(cron_job)
        ]
        plan = cron_plan.plan(cron_job, jobs, self._executor.clock.wall())
        for action in plan.actions:
            if isinstance(action, Create):
                plan.status["active"] = [*plan.status["active"], await self._create(cron_job, action)]
            else:
                await self._executor.perform([action])
        await self._executor.publish(CRON_JOBS, cron_job, plan.status)
        return plan.again

    async def _create(self, cron_job: Object, action: Create) -> Object:
        """Create the job and return a reference to it. A job of that name and owner was made by an earlier sync."""
        try:
            made = await self._executor.create(action.resource, action.obj)
        except AlreadyExists:
            found = self._executor.cache.get(JOBS, objects.key(action.obj))
            if found is None or (objects.controller(found) or {}).get("uid") != objects.uid(cron_job):
                raise
            made = found
        except Outside as error:
            message = f"Error creating job: {error}"
            await self._executor.record_event(CRON_JOBS, cron_job, "FailedCreate", message, warning=True)
            raise
        reference = {"kind": JOBS.kind, "apiVersion": JOBS.api_version, "namespace": objects.namespace(made)}
        version = made["metadata"].get("resourceVersion", "")
        return {**reference, "name": objects.name(made), "uid": objects.uid(made), "resourceVersion": version}
