-- Tasks, plain calls with an idempotency key, and used tokens.
CREATE SCHEMA IF NOT EXISTS answerback;

CREATE TABLE answerback.schema_version (
    version integer PRIMARY KEY,
    made timestamptz NOT NULL DEFAULT now()
);

-- All times are the database's, in seconds since 1970: the clocks of the hosts may differ.
CREATE FUNCTION answerback.now() RETURNS double precision
    LANGUAGE sql VOLATILE AS 'SELECT extract(epoch FROM clock_timestamp())::double precision';

-- Progress and leases change often and do not touch the large columns, which are written once and
-- lie outside the row.
CREATE TABLE answerback.tasks (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    app text NOT NULL,
    tool text NOT NULL,
    owner text NOT NULL,
    key text,
    state text NOT NULL,
    worker text NOT NULL,
    lease double precision NOT NULL,
    fence bigint NOT NULL,
    expires double precision,
    record bytea NOT NULL,
    arguments bytea NOT NULL,
    answers bytea,
    result bytea
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE answerback.tasks
    ALTER COLUMN arguments SET STORAGE EXTERNAL,
    ALTER COLUMN answers SET STORAGE EXTERNAL,
    ALTER COLUMN result SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX tasks_keys ON answerback.tasks (app, owner, key) WHERE key IS NOT NULL;
CREATE INDEX tasks_waiting ON answerback.tasks (app, number)
    WHERE state = 'working' AND worker = '';
CREATE INDEX tasks_claims ON answerback.tasks (worker) WHERE worker <> '';
CREATE INDEX tasks_unfinished ON answerback.tasks (app, owner)
    WHERE state IN ('working', 'input_required') AND owner <> '';
CREATE INDEX tasks_expiry ON answerback.tasks (expires) WHERE expires IS NOT NULL;
CREATE INDEX tasks_owners ON answerback.tasks (app, owner, number);

-- Tokens that can be used once: the links of gates.
CREATE TABLE answerback.used_tokens (
    digest bytea PRIMARY KEY,
    expires double precision NOT NULL
);
CREATE INDEX used_tokens_expiry ON answerback.used_tokens (expires);
