"""A whole server with workers: its supervisor and its pages."""

import contextlib
from collections.abc import AsyncIterator

from garboard.tunnel.background import beside
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.web import serve_pages
from garboard.tunnel.workers.child import StartWorker
from garboard.tunnel.workers.pages import SupervisorPages
from garboard.tunnel.workers.supervisor import SupervisorTimes, WorkerSupervisor


@contextlib.asynccontextmanager
async def supervise(
    options: ServerOptions, start_worker: StartWorker, times: SupervisorTimes | None = None
) -> AsyncIterator[WorkerSupervisor]:
    """Serve with workers while the context is open; leaving it stops them as the options say."""
    options.check()
    supervisor = WorkerSupervisor(options, start_worker, times or SupervisorTimes())
    pages = SupervisorPages(supervisor)
    admin = (options.admin_bind_address, options.admin_port)
    with contextlib.closing(supervisor):
        async with (
            serve_pages(
                options.health_bind_address, options.health_port, pages.health(), pages.questions()
            ) as supervisor.health_port,
            serve_pages(*admin, {}, pages.admin_questions()) as supervisor.admin_port,
        ):
            await supervisor.open()
            jobs = (supervisor.keep(each) for each in supervisor.children)
            watches = (supervisor.watch(each) for each in supervisor.children)
            async with beside(*jobs, *watches, supervisor.keep_file()):
                try:
                    await supervisor.wait_until_started()
                    yield supervisor
                finally:
                    await supervisor.stop()
