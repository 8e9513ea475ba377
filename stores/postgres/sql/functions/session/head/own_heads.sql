-- Records in the heads of sessions which worker may lease their work: '' for any worker, else ':' followed by
-- the id of the owner.
-- Locks: none. The caller has locked the `lines` rows.
CREATE OR REPLACE FUNCTION {schema}.own_heads(p_scopes TEXT[], p_sessions TEXT[], p_owner TEXT) RETURNS VOID
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
BEGIN
    UPDATE {schema}.heads AS h SET owner = p_owner
    WHERE h.ctid = ANY (ARRAY(
        SELECT of_line.ctid
        FROM (SELECT DISTINCT * FROM unnest(p_scopes, p_sessions)) AS line (scope, session)
        CROSS JOIN LATERAL (
            SELECT h.ctid FROM {schema}.heads AS h
            WHERE h.instance_id = line.scope AND h.session_id = line.session AND h.owner <> p_owner
            OFFSET 0
        ) AS of_line
    ));
END
$function$
