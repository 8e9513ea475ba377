-- Drops all that the store made in this schema, itself included, and nothing else; the schema stays. What others built upon
-- it (a view, say) is not dropped with it: then this fails and names it.
-- Locks: each table, exclusively.
CREATE OR REPLACE FUNCTION {schema}.cleanup_schema()
RETURNS VOID
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    v_function TEXT;
BEGIN
    FOR v_function IN
        SELECT format('%I(%s)', made.name, made.arguments) FROM {schema}.steadfast_functions AS made
    LOOP
        EXECUTE 'DROP FUNCTION IF EXISTS ' || $schema${schema}$schema$ || '.' || v_function;
    END LOOP;
    DROP TABLE IF EXISTS
        {schema}.instances, {schema}.executions, {schema}.history, {schema}.kv, {schema}.orchestrator_queue,
        {schema}.instance_locks, {schema}.pins, {schema}.worker_queue, {schema}.sessions, {schema}.lines,
        {schema}.heads, {schema}.watchers, {schema}.nodes, {schema}.set_aside, {schema}.listeners,
        {schema}.floors, {schema}.beneath, {schema}.steadfast_functions, {schema}.steadfast_migrations;
    DROP SEQUENCE IF EXISTS {schema}.numbers;
END
$function$
