-- steps: SELECT done, total FROM store.copy_some()
-- From here on everything is in both forms: services of this release can begin, beside those of the release before.

DROP FUNCTION store.copy_some();
DROP TABLE store.copying;
ANALYZE store.object, store.change;
