-- Locks the ready instances that no lease can stand on, as far as they are older than the first on which one can, in a bounded
-- number, and returns them. p_floor is that of the heads.
-- Locks: instance_locks, skipping what others have locked.
CREATE OR REPLACE FUNCTION {schema}.lock_strays(p_lo BIGINT[], p_hi BIGINT[], p_floor BIGINT DEFAULT 0)
    RETURNS TEXT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 256;
    v_oldest TEXT[] := ARRAY(SELECT r.instance_id FROM {schema}.ready_turns(p_lo, p_hi, v_bound,
        p_floor) AS r);
    v_firm TEXT[] := {schema}.firm_turns(v_oldest);
BEGIN
    IF cardinality(v_firm) > 0 THEN
        v_oldest := v_oldest[1:array_position(v_oldest, v_firm[1]) - 1];
    END IF;
    RETURN ARRAY(
        SELECT l.instance_id FROM {schema}.instance_locks AS l
        WHERE l.instance_id = ANY (v_oldest)
          AND l.lock_token IS NULL AND l.head IS NOT NULL
        FOR UPDATE SKIP LOCKED
    );
END
$function$
