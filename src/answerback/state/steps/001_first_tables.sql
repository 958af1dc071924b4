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

-- The processes that serve an app. Session ids and streams name the process that holds them, so a
-- number is not given again for a day.
CREATE TABLE answerback.homes (
    number integer PRIMARY KEY CHECK (number BETWEEN 1 AND 65535),
    app text NOT NULL,
    seen double precision NOT NULL,
    has_left boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- Messages between these processes: one row for each receiver, which takes it.
CREATE UNLOGGED TABLE answerback.bus (
    number bigint GENERATED ALWAYS AS IDENTITY,
    receiver integer NOT NULL,
    made double precision NOT NULL DEFAULT answerback.now(),
    message bytea NOT NULL,
    PRIMARY KEY (receiver, number)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- What differs from a new session: that it has ended, its log level and its subscriptions.
-- A number from a sequence would not do for `changed`: its order is not that of the commits.
CREATE TABLE answerback.sessions (
    app text NOT NULL,
    nonce bytea NOT NULL,
    expires double precision NOT NULL,
    has_ended boolean NOT NULL DEFAULT false,
    state bytea,
    changed bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    PRIMARY KEY (app, nonce)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX sessions_changed ON answerback.sessions (app, changed);
CREATE INDEX sessions_expiry ON answerback.sessions (expires);

-- What was enabled or disabled in one of the combined apps, in the order of the numbers.
CREATE SEQUENCE answerback.switch_numbers;
CREATE TABLE answerback.switches (
    app text NOT NULL,
    part integer NOT NULL,
    what text NOT NULL,
    value text NOT NULL,
    is_on boolean NOT NULL,
    number bigint NOT NULL DEFAULT nextval('answerback.switch_numbers'),
    PRIMARY KEY (app, part, what, value)
);
