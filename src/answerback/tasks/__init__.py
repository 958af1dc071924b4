"""Tasks: calls that outlive their request.

`TaskService` (in `service`) is what a wire uses; `TaskRecord` (in `task_record`) is the one record
of a task. How a wire uses them:

    service = task_service(registry, handlers)   # made at the first use, then the same one
    made = await service.create(call, key=…)     # a TaskRecord; if refused, a Reply or NeedsInput
    task = await service.get(id, owner)          # None: no such task, or somebody else's
    task = await service.answer(id, owner, {key: answer})
    task = await service.cancel(id, owner)
    task = await service.wait(id, owner, lambda task: task.is_final, seconds)
    task.reply()                                 # the Reply of a finished task, for any dialect
    owner_of(user)                               # the owner of the tasks of this user

`TaskStore` (in `task_store`) keeps the records. Each change of a record is one of the functions in
`transitions`, which a store applies as one atomic step: `store.change(id, partial(cancelled,
now=time()))`. Programs beside a server, such as `answerback tasks cancel`, open the same SQLite
file and use these functions; the server sees the change at once.
"""
