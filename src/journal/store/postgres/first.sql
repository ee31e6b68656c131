-- Specification 003 names the columns of tool_calls up to updated_at; times are milliseconds since 1970. Leases are in the server's own
-- time.

CREATE TABLE hostler.tool_calls (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    prompt_id TEXT,
    block_id TEXT,
    api_tool_call_id TEXT,
    tool_name TEXT NOT NULL,
    state TEXT NOT NULL,
    request TEXT,
    response TEXT,
    error TEXT,
    pid BIGINT,
    started_at BIGINT,
    timeout_at BIGINT,
    retry_count BIGINT NOT NULL DEFAULT 0,
    last_heartbeat BIGINT,
    output_stream TEXT,
    max_retries BIGINT NOT NULL DEFAULT 0,
    timeout_seconds DOUBLE PRECISION NOT NULL DEFAULT 300,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    code TEXT,
    fault TEXT,
    retry_at BIGINT,
    tries TEXT,
    process_started BIGINT,
    boot_id TEXT,
    duration_us BIGINT,
    attempt BIGINT NOT NULL DEFAULT 0,
    effects TEXT NOT NULL DEFAULT '',
    level TEXT NOT NULL DEFAULT '',
    background BOOLEAN NOT NULL DEFAULT false,
    session BIGINT NOT NULL DEFAULT 0,
    client TEXT,
    tags TEXT[],
    traceparent TEXT,
    key TEXT,
    tool_version TEXT NOT NULL DEFAULT '',
    workspace TEXT,
    has_secrets BOOLEAN NOT NULL DEFAULT false,
    cancelled TEXT,
    metadata TEXT,
    spool TEXT NOT NULL DEFAULT '',
    origin TEXT NOT NULL DEFAULT ''
);
CREATE INDEX tool_calls_open ON hostler.tool_calls (spool) WHERE state IN ('created', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_ended ON hostler.tool_calls (origin, updated_at)
    WHERE state NOT IN ('created', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_by_tool ON hostler.tool_calls (tool_name, number);
CREATE TABLE hostler.keys (
    person TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    call_id TEXT NOT NULL,
    spool TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (person, tool, key)
);
CREATE TABLE hostler.spools (
    name TEXT PRIMARY KEY,
    segment BIGINT NOT NULL DEFAULT 0,
    position BIGINT NOT NULL DEFAULT 0,
    heartbeat TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE FUNCTION hostler.enqueue(
    tool TEXT,
    arguments JSON DEFAULT '{}',
    tags TEXT[] DEFAULT NULL,
    folder TEXT DEFAULT NULL,
    timeout_seconds DOUBLE PRECISION DEFAULT 0,
    max_retries BIGINT DEFAULT -1
) RETURNS TEXT LANGUAGE plpgsql AS $function$
DECLARE
    call TEXT := replace(gen_random_uuid()::text, '-', '');
    now_ms BIGINT := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    tagged TEXT[] := ARRAY[NULL, NULL, NULL];
    tag TEXT;
BEGIN
    IF json_typeof(arguments) <> 'object' THEN
        RAISE EXCEPTION 'the arguments of a tool are an object, such as {"name": 1}';
    END IF;
    IF timeout_seconds NOT BETWEEN 0 AND 315360000 THEN
        RAISE EXCEPTION 'a time limit is between 0 (that of the tool) and 315360000 seconds';
    END IF;
    tags := ARRAY(SELECT given FROM unnest(tags) AS given WHERE given IS NOT NULL);
    FOREACH tag IN ARRAY tags LOOP
        CASE split_part(tag, ':', 1)
            WHEN 'prompt' THEN tagged[1] := coalesce(tagged[1], substr(tag, 8));
            WHEN 'block' THEN tagged[2] := coalesce(tagged[2], substr(tag, 7));
            WHEN 'tool_call' THEN tagged[3] := coalesce(tagged[3], substr(tag, 11));
            ELSE NULL;
        END CASE;
    END LOOP;
    INSERT INTO hostler.tool_calls (id, prompt_id, block_id, api_tool_call_id, tool_name, state, request, timeout_seconds, max_retries,
        created_at, updated_at, level, background, tags, workspace, origin)
    VALUES (call, tagged[1], tagged[2], tagged[3], tool, 'created', arguments::text, enqueue.timeout_seconds, enqueue.max_retries,
        now_ms, now_ms, 'kept', true, tags,
        CASE WHEN folder IS NULL THEN NULL ELSE json_build_object('directory', folder)::text END, session_user);
    PERFORM pg_notify('hostler_enqueued', tool);
    RETURN call;
END
$function$;
-- Hostlers on other machines may wait for these.
CREATE FUNCTION hostler.say_end() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM pg_notify('hostler_ended', NEW.id);
    RETURN NULL;
END
$function$;
CREATE TRIGGER ended AFTER INSERT OR UPDATE OF state ON hostler.tool_calls FOR EACH ROW
WHEN ((NEW.background OR NEW.key IS NOT NULL) AND NEW.state IN ('complete', 'error', 'failed', 'cancelled'))
EXECUTE FUNCTION hostler.say_end();
