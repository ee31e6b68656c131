-- Calls that wait for a person have not ended; those that were denied have.
DROP INDEX hostler.tool_calls_open;
DROP INDEX hostler.tool_calls_ended;
CREATE INDEX tool_calls_open ON hostler.tool_calls (spool)
    WHERE state IN ('created', 'waiting_approval', 'running', 'orphaned', 'stale');
CREATE INDEX tool_calls_ended ON hostler.tool_calls (origin, updated_at)
    WHERE state NOT IN ('created', 'waiting_approval', 'running', 'orphaned', 'stale');
DROP TRIGGER ended ON hostler.tool_calls;
CREATE TRIGGER ended AFTER INSERT OR UPDATE OF state ON hostler.tool_calls FOR EACH ROW
WHEN ((NEW.background OR NEW.key IS NOT NULL) AND NEW.state IN ('complete', 'error', 'failed', 'cancelled', 'denied'))
EXECUTE FUNCTION hostler.say_end();
