-- Sends a start.
SELECT {name}.send_messages(
    '{a}', ARRAY['{"StartOrchestration":{"instance":"a","orchestration":"Order","input":"","version":"1.0.0","execution_id":1}}'],
    '{NULL}', '{true}', '{NULL}', NULL
)
