-- Whole replies that are kept for clients that got only a part. Accounts and owners are fingerprints.
-- The digest is that of the id: without auth, who knows the id reads the reply.
CREATE TABLE answerback.wholes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL,
    app text NOT NULL,
    account bytea NOT NULL,
    owner text NOT NULL,
    session text NOT NULL,
    tool text NOT NULL,
    expires double precision NOT NULL,
    size bigint NOT NULL,
    body bytea NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE answerback.wholes ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX wholes_digests ON answerback.wholes (app, digest);
CREATE INDEX wholes_accounts ON answerback.wholes (app, account, number) INCLUDE (size);
CREATE INDEX wholes_sessions ON answerback.wholes (app, session) WHERE session <> '';
CREATE INDEX wholes_expiry ON answerback.wholes (expires);
