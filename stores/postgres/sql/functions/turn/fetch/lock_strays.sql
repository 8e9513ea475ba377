-- Locks up to 256 ready instances that cannot be leased (see firm_turns) and that are older than the oldest
-- one that can, and returns them. p_lo and p_hi are ranges of pins and p_shut pins to leave out, see
-- ready_turns. p_floor: the head at which the index scan starts.
-- Locks: `instance_locks`, skipping locked rows.
CREATE OR REPLACE FUNCTION {schema}.lock_strays(p_lo BIGINT[], p_hi BIGINT[], p_floor BIGINT DEFAULT 0,
    p_shut BIGINT[] DEFAULT NULL) RETURNS TEXT[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
    v_bound CONSTANT INTEGER := 256;
    v_oldest TEXT[] := ARRAY(SELECT r.instance_id FROM {schema}.ready_turns(p_lo, p_hi, v_bound,
        p_floor, p_shut) AS r);
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
