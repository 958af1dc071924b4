-- A worker finds the waiting tasks of its tools without reading those of other tools.
CREATE INDEX tasks_queues ON answerback.tasks (app, tool, number)
    WHERE state = 'working' AND worker = '';
DROP INDEX answerback.tasks_waiting;
