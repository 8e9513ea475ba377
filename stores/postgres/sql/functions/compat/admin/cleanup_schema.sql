-- Compatible function: drops all tables, sequences and functions that the store made in this schema,
-- including this function. The schema and all other objects stay. If another object depends on a table, for
-- example a view of the application, the call fails with the error of the server that names it.
-- Locks: ACCESS EXCLUSIVE on every table of the store.
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
        {schema}.session_trail, {schema}.closed_sessions,
        {schema}.heads, {schema}.watchers, {schema}.nodes, {schema}.set_aside,
        {schema}.listeners,
        {schema}.floors, {schema}.beneath, {schema}.workers, {schema}.worker_handlers, {schema}.routes,
        {schema}.ended_leases, {schema}.steadfast_functions, {schema}.steadfast_migrations;
    DROP SEQUENCE IF EXISTS {schema}.numbers;
END
$function$
