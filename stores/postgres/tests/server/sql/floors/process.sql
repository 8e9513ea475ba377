-- Starts instances in sets of 250, runs an activity for each, and ends them: twice as many turns as activities, each step a
-- transaction of its own.
DO $block$
DECLARE
    v_count CONSTANT INTEGER := 250;
    v_lock CONSTANT BIGINT := 2000;
    v_ones INTEGER[] := ARRAY(SELECT generate_series(1, v_count));
    v_no_texts TEXT[] := array_fill(NULL::text, ARRAY[v_count]);
    v_no_numbers INTEGER[] := array_fill(NULL::integer, ARRAY[v_count]);
    v_first BIGINT[] := array_fill(1::bigint, ARRAY[v_count]);
    v_second BIGINT[] := array_fill(2::bigint, ARRAY[v_count]);
    v_empty TEXT[] := array_fill(''::text, ARRAY[v_count]);
    v_texts TEXT[] := array_fill('x'::text, ARRAY[v_count]);
    v_no BOOLEAN[] := array_fill(false, ARRAY[v_count]);
    v_instances TEXT[];
    v_tokens TEXT[];
BEGIN
    FOR v_set IN 1..{sets} LOOP
        v_instances := ARRAY(SELECT '{prefix}' || v_set || '-' || n FROM generate_series(1, v_count) AS n);
        PERFORM {name}.start_instances(v_instances, v_texts, array_fill(NULL::bigint, ARRAY[v_count]), v_no_texts,
            '{}', '{}', '{}', '{}', '{}', '{}', NULL);
        COMMIT;
        SELECT array_agg(f.token), array_agg(f.instance_id) INTO v_tokens, v_instances
        FROM {name}.fetch_turns(NULL, v_lock, v_count) AS f WHERE f.kind = 'turn';
        COMMIT;
        PERFORM {name}.commit_turns(NULL, v_tokens, v_first, v_texts, v_texts, v_no_texts,
            array_fill('Running'::text, ARRAY[v_count]), v_no_texts, v_no_texts, v_no_numbers, v_no_numbers, v_no_numbers,
            v_no, v_no_texts, v_no, v_ones, v_first, v_texts, v_texts,
            '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
            v_ones, v_texts, v_instances, v_first, v_second, v_empty, v_empty, v_no_texts, v_no_texts,
            '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', p_rising => v_first);
        COMMIT;
        SELECT array_agg(f.token), array_agg(f.instance_id) INTO v_tokens, v_instances
        FROM {name}.fetch_work_items(v_count, '{""}', v_texts, v_lock) AS f WHERE f.kind = 'lease';
        COMMIT;
        PERFORM {name}.finish_work_items(v_tokens, v_instances, v_texts, v_no_texts);
        COMMIT;
        SELECT array_agg(f.token) INTO v_tokens
        FROM {name}.fetch_turns(NULL, v_lock, v_count) AS f WHERE f.kind = 'turn';
        COMMIT;
        PERFORM {name}.commit_turns(NULL, v_tokens, v_first, v_texts, v_texts, v_no_texts,
            array_fill('Completed'::text, ARRAY[v_count]), v_no_texts, v_no_texts, v_no_numbers, v_no_numbers, v_no_numbers,
            v_no, v_no_texts, v_no, v_ones, v_second, v_texts, v_texts,
            '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
            '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
            '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', p_rising => v_second);
        COMMIT;
    END LOOP;
END
$block$
