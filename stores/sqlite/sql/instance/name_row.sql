-- Records the orchestration and version of an instance. The first call also sets its parent, the life of that
-- parent, its time of creation and its place in lists, which is its life.
UPDATE instances
SET name = ?2,
    version = ?3,
    parent = iif(name IS NULL, ?4, parent),
    parent_life = iif(name IS NULL, ?8, parent_life),
    created_at = iif(name IS NULL, ?5, created_at),
    ord = iif(name IS NULL, ?6, ord),
    current_execution = iif(name IS NULL, ?7, max(current_execution, ?7))
WHERE key = ?1
