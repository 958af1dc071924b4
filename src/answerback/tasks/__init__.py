"""Tasks: calls that outlive their request.

Wires use `TaskService` (in `service`), which keeps one `TaskRecord` (in `task_record`) per task.
For example:

    service = task_service(runtime)              # created on first use, then reused
    made = await service.create(call, key=…)     # a TaskRecord; if refused, a Reply or NeedsInput
    task = await service.get(id, owner)          # None: no such task, or another user's
    task = await service.answer(id, owner, {key: answer})
    task = await service.cancel(id, owner)
    task = await service.wait(id, owner, lambda task: task.is_final, seconds)
    task.reply()                                 # the Reply of a finished task, for any dialect
    owner_of(user)                               # the owner of this user's tasks

`TaskStore` (in `task_store`) stores the records. Each change to a record is one of the functions in
`transitions`, which a store applies as one atomic step: `store.change(id, partial(cancelled,
now=time()))`. Other programs, such as `answerback tasks cancel`, open the same SQLite file and use
these functions; the server sees the change immediately.
"""
