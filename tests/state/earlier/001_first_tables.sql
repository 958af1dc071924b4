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

-- The processes that count calls by the limits: the limits are divided among them.
CREATE TABLE answerback.processes (
    name text PRIMARY KEY,
    app text NOT NULL,
    seen double precision NOT NULL
) WITH (fillfactor = 50);

-- One bucket of tokens for each limit and key: when it is full again, and how many tokens were
-- granted last. A full bucket needs no row. Without an index on full_at the updates stay in place.
CREATE TABLE answerback.limits (
    key bytea PRIMARY KEY,
    full_at double precision NOT NULL,
    granted bigint NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000
);

CREATE FUNCTION answerback.tokens_left(
    full_at double precision, at double precision, each double precision, seconds double precision
) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    -- Float rounding: a missing thousandth of a token must not refuse the last call.
    'SELECT greatest(0, floor((at + seconds - greatest(full_at, at)) / each + 0.001))::bigint';

-- Take up to so many tokens of each bucket, or give them back if the number is negative. Returns how
-- many were granted, and the seconds until the next one. The commit does not wait for the disk.
CREATE FUNCTION answerback.take_tokens(
    keys bytea[], wanted bigint[], each double precision[], seconds double precision[]
) RETURNS TABLE (taken bigint, wait double precision) LANGUAGE plpgsql AS $$
DECLARE
    at double precision := answerback.now();
    full_at_then double precision;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR i IN 1 .. cardinality(keys) LOOP
        taken := least(wanted[i], answerback.tokens_left(at, at, each[i], seconds[i]));
        INSERT INTO answerback.limits AS bucket (key, full_at, granted)
            VALUES (keys[i], at + taken * each[i], taken)
        ON CONFLICT (key) DO UPDATE SET
            granted = least(
                wanted[i], answerback.tokens_left(bucket.full_at, at, each[i], seconds[i])
            ),
            full_at = greatest(bucket.full_at, at) + each[i] * least(
                wanted[i], answerback.tokens_left(bucket.full_at, at, each[i], seconds[i])
            )
        RETURNING bucket.granted, bucket.full_at INTO taken, full_at_then;
        wait := greatest(0, full_at_then + each[i] - at - seconds[i]);
        RETURN NEXT;
    END LOOP;
END $$;

-- The breakers that are open or were: the last process that opened or closed one decides.
CREATE TABLE answerback.breakers (
    app text NOT NULL,
    service text NOT NULL,
    is_open boolean NOT NULL,
    probe_at double precision NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (app, service)
) WITH (fillfactor = 50);
