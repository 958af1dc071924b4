-- The SHA-256 of each step's text; steps of programs before this one have none.
ALTER TABLE answerback.schema_version ADD COLUMN checksum text;

-- A worker finds the waiting tasks of its tools without reading those of other tools.
CREATE INDEX tasks_queues ON answerback.tasks (app, tool, number)
    WHERE state = 'working' AND worker = '';
DROP INDEX answerback.tasks_waiting;
